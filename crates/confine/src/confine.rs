//! How the commands of a session are confined.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use aside_core::question::{Confinement, Network as Shown, Tier};

use crate::launch::{Barrier, Input, Launch, Protection, Text};
use crate::policy::{Network, Places, Policy};
use crate::probe::{self, Found};
use crate::{git, helper, protected};

/// The program that is started as the helper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Helper {
    program: OsString,
    pub(crate) words: Vec<OsString>,
}

impl Helper {
    /// This program, which must call [`helper::run_if_asked`] first of all.
    pub fn this_program() -> Helper {
        let itself = Path::new("/proc/self/exe");
        let program = if itself.exists() {
            // Also when its file was replaced by a newer one meanwhile.
            itself.into()
        } else {
            std::env::current_exe().unwrap_or_default().into()
        };
        Helper { program, words: vec![helper::WORD.into()] }
    }

    /// Another program that calls it.
    pub fn at(program: impl Into<OsString>) -> Helper {
        Helper { program: program.into(), words: vec![helper::WORD.into()] }
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.words);
        command
    }

    /// A path that means the same program to everybody.
    pub(crate) fn file(&self) -> PathBuf {
        fs::canonicalize(&self.program).unwrap_or_else(|_| self.program.clone().into())
    }
}

/// `tools.confine`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wish {
    /// The best tier there is; with none, commands run unconfined and that is said.
    #[default]
    Auto,
    /// The best tier there is; with none, commands are refused.
    Require,
    /// The strong tier, or commands are refused.
    Strong,
    /// No confinement.
    Off,
}

impl Wish {
    pub const WORDS: [&str; 4] = ["auto", "strong", "require", "off"];

    pub fn parse(word: &str) -> Option<Wish> {
        match word {
            "auto" => Some(Wish::Auto),
            "strong" => Some(Wish::Strong),
            "require" => Some(Wish::Require),
            "off" => Some(Wish::Off),
            _ => None,
        }
    }
}

/// What a call asks for beside the usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    Usual,
    Network,
    Unconfined,
}

/// Whether a person looked at this very command and approved it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// It is allowed by a rule, by an earlier answer or by `--yes`.
    Standing,
    ByHand,
}

/// A tier is demanded that is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not run: tools.confine is \"{wish}\", and this machine has {there} ({why})")]
pub struct Refused {
    wish: &'static str,
    there: String,
    why: String,
}

/// The confinement of a session's commands. What the machine can do is looked for
/// when it is first asked.
#[derive(Debug)]
pub struct Confine {
    helper: Helper,
    wish: Wish,
    places: Places,
    /// Where the finding is kept until the next boot.
    memory: Option<PathBuf>,
    limit: Limit,
    found: OnceLock<Found>,
    /// With links followed, as they were when first asked for.
    opened: OnceLock<Opened>,
}

/// What is opened to every command of a session.
#[derive(Debug)]
struct Opened {
    writable: Vec<PathBuf>,
    /// The working directory and the folders beside it, whose protected paths count.
    watched: Vec<PathBuf>,
}

impl Confine {
    pub fn new(helper: Helper, wish: Wish, places: Places) -> Confine {
        Confine {
            helper,
            wish,
            places,
            memory: None,
            limit: Limit::NONE,
            found: OnceLock::new(),
            opened: OnceLock::new(),
        }
    }

    /// Remembers in this folder of aside's own what was found in this boot.
    pub fn remembering(mut self, folder: &Path) -> Confine {
        self.memory = Some(folder.join("confine.json"));
        self
    }

    pub fn limited(mut self, limit: Limit) -> Confine {
        self.limit = limit;
        self
    }

    pub fn helper(&self) -> &Helper {
        &self.helper
    }

    pub fn wish(&self) -> Wish {
        self.wish
    }

    /// What this machine can do. Takes a moment the first time after a boot.
    pub fn found(&self) -> &Found {
        // A finding that commands could have written is not believed.
        self.found.get_or_init(|| {
            let memory = self.memory.as_deref().filter(|file| depth(file, &self.opened().writable).is_none());
            self.limit.applied(probe::remembered(&self.helper, memory))
        })
    }

    /// The best tier of this machine, whatever is wished for.
    pub fn best(&self) -> Tier {
        let found = self.found();
        if found.bubblewrap.is_some() {
            Tier::Strong
        } else if found.landlock.is_some() {
            Tier::Kernel
        } else if found.seatbelt {
            Tier::Seatbelt
        } else {
            Tier::None
        }
    }

    /// The tier that commands of this session have.
    pub fn tier(&self) -> Result<Tier, Refused> {
        if self.wish == Wish::Off {
            return Ok(Tier::None);
        }
        let best = self.best();
        let refused = |wish| Refused { wish, there: format!("the tier {best}"), why: self.found().missing.join("; ") };
        match (self.wish, best) {
            (Wish::Strong, Tier::Strong) | (Wish::Auto | Wish::Off, _) => Ok(best),
            (Wish::Require, Tier::Strong | Tier::Kernel | Tier::Seatbelt) => Ok(best),
            (Wish::Strong, Tier::None | Tier::Kernel | Tier::Seatbelt) => Err(refused("strong")),
            (Wish::Require, Tier::None) => Err(refused("require")),
        }
    }

    /// What holds for a command, as a question shows it.
    pub fn confinement(&self, want: Want) -> Result<Confinement, Refused> {
        let tier = self.tier()?;
        let shown = match want {
            Want::Unconfined => Confinement { tier: Tier::None, network: Shown::On, warnings: Vec::new() },
            Want::Usual | Want::Network if tier == Tier::None => {
                Confinement { tier, network: Shown::On, warnings: Vec::new() }
            }
            Want::Usual => Confinement { tier, network: Shown::Off, warnings: self.warnings(tier, want) },
            Want::Network => Confinement { tier, network: Shown::On, warnings: self.warnings(tier, want) },
        };
        Ok(shown)
    }

    fn warnings(&self, tier: Tier, want: Want) -> Vec<String> {
        let Some(abi) = self.found().landlock.filter(|_| tier == Tier::Kernel) else { return Vec::new() };
        let mut warnings = Vec::new();
        if abi < crate::SIGNALS {
            warnings.push("can signal your processes".to_owned());
        }
        if want == Want::Network && abi < crate::UNIX_SOCKETS {
            warnings.push("can use local sockets such as Docker's".to_owned());
        }
        let exposed = self.policy(Network::Off);
        // What lies in a folder for temporary files is nobody's secret.
        let is_temp = |path: &Path| self.places.temp.iter().any(|temp| path.starts_with(temp));
        let exposed = exposed.exposed().filter(|path| !is_temp(path));
        warnings.extend(exposed.map(|path| format!("can read {}", path.display())));
        warnings
    }

    /// Whether network, once switched on, reaches more than addresses. Then it
    /// asks every time.
    pub fn network_reopens_sockets(&self) -> bool {
        let is_old = self.found().landlock.is_none_or(|abi| abi < crate::UNIX_SOCKETS);
        self.tier().is_ok_and(|tier| tier == Tier::Kernel) && is_old
    }

    /// What the helper is told for one command.
    pub fn launch(
        &self,
        program: &str,
        arguments: &[&str],
        want: Want,
        approval: Approval,
        input: Input,
    ) -> Result<Launch, Refused> {
        let tier = self.tier()?;
        let barrier = match (want, tier) {
            (Want::Unconfined, _) => Barrier::None,
            (Want::Usual | Want::Network, tier) => self.barrier(tier),
        };
        let network = match want {
            Want::Network | Want::Unconfined => Network::On,
            Want::Usual => Network::Off,
        };
        let policy = if barrier == Barrier::None { Policy::default() } else { self.policy(network) };
        Ok(Launch {
            program: program.into(),
            arguments: arguments.iter().map(Text::from).collect(),
            folder: Text::from(self.places.root.as_path()),
            barrier,
            policy,
            input,
            protection: match approval {
                Approval::ByHand => Protection::Keep,
                Approval::Standing => Protection::Restore,
            },
        })
    }

    fn barrier(&self, tier: Tier) -> Barrier {
        let found = self.found();
        match (tier, &found.bubblewrap, found.landlock) {
            (Tier::Strong, Some(program), _) => Barrier::Bubblewrap { program: Text::from(program.as_path()) },
            (Tier::Kernel, _, Some(abi)) => Barrier::Kernel { abi },
            (Tier::Seatbelt, _, _) => Barrier::Seatbelt,
            (Tier::None, _, _) | (Tier::Strong, None, _) | (Tier::Kernel, _, None) => Barrier::None,
        }
    }

    /// What is opened to every command. Caches that are named and missing are made,
    /// so that the first build can fill them.
    fn opened(&self) -> &Opened {
        self.opened.get_or_init(|| {
            for cache in &self.places.caches {
                drop(fs::create_dir_all(cache));
            }
            let mut watched = vec![self.places.root.clone()];
            watched.extend(self.places.directories.iter().filter_map(|path| fs::canonicalize(path).ok()));
            // The working directory had no link in it when the session began; one that
            // is there now is not followed.
            let mut named = self.places.writable();
            named.retain(|path| *path != self.places.root);
            Opened { writable: resolved(named, self.places.root.clone()), watched }
        })
    }

    /// The policy as the files are now.
    pub fn policy(&self, network: Network) -> Policy {
        let Opened { writable, watched } = self.opened();
        let git_folders = git::folders(&self.places.root);
        let mut named = writable.clone();
        named.extend(git_folders.iter().cloned());
        if fs::canonicalize(&self.places.root).ok().as_ref() != Some(&self.places.root) {
            named.retain(|path| *path != self.places.root);
        }
        let writable = outermost(named);
        // What the person opened as a whole is open.
        let there = self.places.unreadable().into_iter().filter(|path| path.symlink_metadata().is_ok());
        let unreadable = there.filter_map(|path| fs::canonicalize(path).ok());
        let unreadable: Vec<PathBuf> = unreadable.filter(|path| !writable.contains(path)).collect();
        let mut protected = protected::paths(watched, &git_folders);
        let ours = self.places.protected.iter().filter(|path| path.symlink_metadata().is_ok());
        protected.extend(ours.filter_map(|path| fs::canonicalize(path).ok()));
        protected.retain(|path| !writable.contains(path) && depth(path, &writable) > depth(path, &unreadable));
        Policy { writable, protected, unreadable, network }
    }
}

/// Without those that lie in another.
fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort_by_key(|path| path.components().count());
    let mut all: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !all.iter().any(|known| path.starts_with(known)) {
            all.push(path);
        }
    }
    all
}

/// The folders with their links followed. One that lies in another is covered by
/// it, and is not followed: a command could have put a link there.
fn resolved(mut named: Vec<PathBuf>, root: PathBuf) -> Vec<PathBuf> {
    named.sort_by_key(|path| path.components().count());
    let mut all = vec![root];
    for path in named {
        let is_covered = |path: &Path| all.iter().any(|known| path.starts_with(known));
        if is_covered(&path) {
            continue;
        }
        if let Ok(path) = fs::canonicalize(&path)
            && path != Path::new("/")
            && !is_covered(&path)
        {
            all.push(path);
        }
    }
    all
}

/// How deep the innermost of the folders is that the path lies in.
fn depth(path: &Path, folders: &[PathBuf]) -> Option<usize> {
    folders.iter().filter(|folder| path.starts_with(folder)).map(|folder| folder.components().count()).max()
}

/// What a test leaves of a machine's abilities, to see how it is on a worse one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub tier: Tier,
    /// Of Landlock.
    pub abi: i32,
}

impl Limit {
    pub const NONE: Limit = Limit { tier: Tier::Strong, abi: i32::MAX };

    /// `ASIDE_CONFINE_MAX` and `ASIDE_CONFINE_ABI`, which can only take away.
    pub fn from_environment() -> Limit {
        let tier = match std::env::var("ASIDE_CONFINE_MAX").as_deref() {
            Ok("kernel") => Tier::Kernel,
            Ok("none") => Tier::None,
            Ok(_) | Err(_) => Tier::Strong,
        };
        let abi = std::env::var("ASIDE_CONFINE_ABI").ok().and_then(|abi| abi.parse().ok());
        Limit { tier, abi: abi.unwrap_or(i32::MAX) }
    }

    fn applied(self, mut found: Found) -> Found {
        if self.tier < Tier::Strong && found.bubblewrap.take().is_some() {
            found.missing.push(format!("strong: limited to the tier {} for a test", self.tier));
        }
        if self.tier < Tier::Kernel && found.landlock.take().is_some() {
            found.missing.push(format!("kernel: limited to the tier {} for a test", self.tier));
        }
        found.seatbelt &= self.tier >= Tier::Seatbelt;
        if let Some(abi) = found.landlock {
            found.landlock = Some(abi.min(self.abi)).filter(|abi| *abi >= crate::OLDEST_LANDLOCK);
            if found.landlock.is_none() {
                found.missing.push(format!("kernel: limited to ABI {} of Landlock for a test", self.abi));
            }
        }
        found
    }
}
