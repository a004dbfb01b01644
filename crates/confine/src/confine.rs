//! Decides how the commands of a session are confined.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use aside_core::permission_question::{Confinement, Network, Tier};

use crate::launch::{CommandInput, Launch, Mechanism, OnProtectedChange, OsText};
use crate::policy::{NetworkPolicy, Policy, PolicyPaths};
use crate::probe::{self, MachineSupport};
use crate::{git, protected_paths, supervisor};

/// The program to start as the helper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Helper {
    program: OsString,
    pub(crate) arguments: Vec<OsString>,
}

impl Helper {
    /// This program, which must call [`supervisor::run_if_helper`] before anything else.
    pub fn this_program() -> Helper {
        let itself = Path::new("/proc/self/exe");
        let program = if itself.exists() {
            // This works even if the file has been replaced by a newer version.
            itself.into()
        } else {
            std::env::current_exe().unwrap_or_default().into()
        };
        Helper { program, arguments: vec![supervisor::HELPER_ARGUMENT.into()] }
    }

    /// Another program that calls it.
    pub fn at(program: impl Into<OsString>) -> Helper {
        Helper { program: program.into(), arguments: vec![supervisor::HELPER_ARGUMENT.into()] }
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }

    /// The path by which other processes can start it.
    pub(crate) fn canonical_path(&self) -> PathBuf {
        fs::canonicalize(&self.program).unwrap_or_else(|_| self.program.clone().into())
    }
}

/// The setting `tools.confine`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ConfineSetting {
    /// The best available tier. Without one, commands run unconfined, with a notice.
    #[default]
    Auto,
    /// The best available tier. Without one, commands are refused.
    Require,
    /// The strong tier. Without it, commands are refused.
    Strong,
    /// No confinement.
    Off,
}

impl ConfineSetting {
    pub const VALUES: [&str; 4] = ["auto", "strong", "require", "off"];

    pub fn parse(value: &str) -> Option<ConfineSetting> {
        match value {
            "auto" => Some(ConfineSetting::Auto),
            "strong" => Some(ConfineSetting::Strong),
            "require" => Some(ConfineSetting::Require),
            "off" => Some(ConfineSetting::Off),
            _ => None,
        }
    }
}

/// The access that a tool call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestedAccess {
    Standard,
    Network,
    Unconfined,
}

/// How a command was approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// By a rule, an earlier answer or `--yes`.
    Automatic,
    ByUser,
}

/// The required tier is not available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not run: tools.confine is \"{setting}\", and this machine has {available} ({reason})")]
pub struct TierUnavailable {
    setting: &'static str,
    available: String,
    reason: String,
}

/// Confines the commands of a session. Probes the machine on first use.
#[derive(Debug)]
pub struct Confine {
    helper: Helper,
    setting: ConfineSetting,
    paths: PolicyPaths,
    /// The file that caches the probe result until the next boot.
    cache_file: Option<PathBuf>,
    limit: TierLimit,
    support: OnceLock<MachineSupport>,
    /// With links resolved as they were on first use.
    opened_folders: OnceLock<OpenedFolders>,
}

/// The folders open to every command of a session.
#[derive(Debug)]
struct OpenedFolders {
    writable: Vec<PathBuf>,
    /// The working directory and the user's further folders; their protected paths are
    /// watched.
    watched: Vec<PathBuf>,
}

impl Confine {
    pub fn new(helper: Helper, setting: ConfineSetting, paths: PolicyPaths) -> Confine {
        Confine {
            helper,
            setting,
            paths,
            cache_file: None,
            limit: TierLimit::NONE,
            support: OnceLock::new(),
            opened_folders: OnceLock::new(),
        }
    }

    /// Caches the probe result in this folder, which belongs to aside, until the next
    /// boot.
    pub fn with_cache_in(mut self, folder: &Path) -> Confine {
        self.cache_file = Some(folder.join("confine.json"));
        self
    }

    pub fn with_limit(mut self, limit: TierLimit) -> Confine {
        self.limit = limit;
        self
    }

    pub fn helper(&self) -> &Helper {
        &self.helper
    }

    pub fn setting(&self) -> ConfineSetting {
        self.setting
    }

    /// What this machine supports. The first call after a boot takes a moment.
    pub fn support(&self) -> &MachineSupport {
        // Don't trust a cache file that commands could have written.
        self.support.get_or_init(|| {
            let is_writable =
                |file: &Path| self.opened_folders().writable.iter().any(|folder| file.starts_with(folder));
            let cache_file = self.cache_file.as_deref().filter(|file| !is_writable(file));
            self.limit.apply(probe::cached_probe(&self.helper, cache_file))
        })
    }

    /// The best tier of this machine, whatever the setting.
    pub fn best_tier(&self) -> Tier {
        let support = self.support();
        if support.bubblewrap.is_some() {
            Tier::Strong
        } else if support.landlock.is_some() {
            Tier::Kernel
        } else if support.seatbelt {
            Tier::Seatbelt
        } else {
            Tier::None
        }
    }

    /// The tier for the commands of this session.
    pub fn tier(&self) -> Result<Tier, TierUnavailable> {
        if self.setting == ConfineSetting::Off {
            return Ok(Tier::None);
        }
        let best = self.best_tier();
        let refused = |setting| TierUnavailable {
            setting,
            available: format!("the tier {best}"),
            reason: self.support().missing.join("; "),
        };
        match (self.setting, best) {
            (ConfineSetting::Strong, Tier::Strong) | (ConfineSetting::Auto | ConfineSetting::Off, _) => Ok(best),
            (ConfineSetting::Require, Tier::Strong | Tier::Kernel | Tier::Seatbelt) => Ok(best),
            (ConfineSetting::Strong, Tier::None | Tier::Kernel | Tier::Seatbelt) => Err(refused("strong")),
            (ConfineSetting::Require, Tier::None) => Err(refused("require")),
        }
    }

    /// The confinement of a command, as a permission question shows it.
    pub fn confinement(&self, access: RequestedAccess) -> Result<Confinement, TierUnavailable> {
        let tier = self.tier()?;
        let shown = match access {
            RequestedAccess::Unconfined => Confinement { tier: Tier::None, network: Network::On, warnings: Vec::new() },
            RequestedAccess::Standard | RequestedAccess::Network if tier == Tier::None => {
                Confinement { tier, network: Network::On, warnings: Vec::new() }
            }
            RequestedAccess::Standard => {
                Confinement { tier, network: Network::Off, warnings: self.warnings(tier, access) }
            }
            RequestedAccess::Network => {
                Confinement { tier, network: Network::On, warnings: self.warnings(tier, access) }
            }
        };
        Ok(shown)
    }

    fn warnings(&self, tier: Tier, access: RequestedAccess) -> Vec<String> {
        let Some(abi) = self.support().landlock.filter(|_| tier == Tier::Kernel) else { return Vec::new() };
        let mut warnings = Vec::new();
        if abi < crate::SIGNALS_ABI {
            warnings.push("can signal your processes".to_owned());
        }
        if access == RequestedAccess::Network && abi < crate::UNIX_SOCKETS_ABI {
            warnings.push("can use local sockets such as Docker's".to_owned());
        }
        let exposed = self.policy(NetworkPolicy::Off);
        // Temporary folders contain no secrets.
        let is_temp = |path: &Path| self.paths.temp.iter().any(|temp| path.starts_with(temp));
        let exposed = exposed.exposed().filter(|path| !is_temp(path));
        warnings.extend(exposed.map(|path| format!("can read {}", path.display())));
        warnings
    }

    /// Whether network access also opens local sockets. If so, aside asks every time.
    pub fn network_reopens_sockets(&self) -> bool {
        let is_old = self.support().landlock.is_none_or(|abi| abi < crate::UNIX_SOCKETS_ABI);
        self.tier().is_ok_and(|tier| tier == Tier::Kernel) && is_old
    }

    /// The instructions to the helper for one command.
    pub fn launch(
        &self,
        program: &str,
        arguments: &[&str],
        access: RequestedAccess,
        approval: Approval,
        input: CommandInput,
    ) -> Result<Launch, TierUnavailable> {
        let tier = self.tier()?;
        let mechanism = match (access, tier) {
            (RequestedAccess::Unconfined, _) => Mechanism::None,
            (RequestedAccess::Standard | RequestedAccess::Network, tier) => self.mechanism(tier),
        };
        let network = match access {
            RequestedAccess::Network | RequestedAccess::Unconfined => NetworkPolicy::On,
            RequestedAccess::Standard => NetworkPolicy::Off,
        };
        let policy = if mechanism == Mechanism::None { Policy::default() } else { self.policy(network) };
        Ok(Launch {
            program: program.into(),
            arguments: arguments.iter().map(OsText::from).collect(),
            folder: OsText::from(self.paths.root.as_path()),
            mechanism,
            policy,
            input,
            on_protected_change: match approval {
                Approval::ByUser => OnProtectedChange::Keep,
                Approval::Automatic => OnProtectedChange::Restore,
            },
        })
    }

    fn mechanism(&self, tier: Tier) -> Mechanism {
        let support = self.support();
        match (tier, &support.bubblewrap, support.landlock) {
            (Tier::Strong, Some(program), _) => Mechanism::Bubblewrap { program: OsText::from(program.as_path()) },
            (Tier::Kernel, _, Some(abi)) => Mechanism::Kernel { abi },
            (Tier::Seatbelt, _, _) => Mechanism::Seatbelt,
            (Tier::None, _, _) | (Tier::Strong, None, _) | (Tier::Kernel, _, None) => Mechanism::None,
        }
    }

    /// The folders open to every command. Configured caches that are missing are created,
    /// so that the first build can fill them.
    fn opened_folders(&self) -> &OpenedFolders {
        self.opened_folders.get_or_init(|| {
            for cache in &self.paths.caches {
                drop(fs::create_dir_all(cache));
            }
            let mut watched = vec![self.paths.root.clone()];
            watched.extend(self.paths.directories.iter().filter_map(|path| fs::canonicalize(path).ok()));
            // The working directory contained no link when the session began. A link that
            // is there now is not followed.
            let mut named = self.paths.writable();
            named.retain(|path| *path != self.paths.root);
            OpenedFolders { writable: resolve_links(named, self.paths.root.clone()), watched }
        })
    }

    /// The policy for the current state of the file system.
    pub fn policy(&self, network: NetworkPolicy) -> Policy {
        let OpenedFolders { writable, watched } = self.opened_folders();
        let git_folders = git::folders(&self.paths.root);
        let mut named = writable.clone();
        named.extend(git_folders.iter().cloned());
        if fs::canonicalize(&self.paths.root).ok().as_ref() != Some(&self.paths.root) {
            named.retain(|path| *path != self.paths.root);
        }
        let writable = outermost(named);
        // A folder that the user opened is readable as a whole.
        let existing = self.paths.unreadable().into_iter().filter(|path| path.symlink_metadata().is_ok());
        let unreadable = existing.filter_map(|path| fs::canonicalize(path).ok());
        let unreadable: Vec<PathBuf> = unreadable.filter(|path| !writable.contains(path)).collect();
        let mut protected = protected_paths::all_in(watched, &git_folders);
        protected.extend(self.paths.protected.iter().filter_map(|path| without_links(path)));
        protected.retain(|path| writable.iter().any(|folder| path != folder && path.starts_with(folder)));
        Policy { writable, protected, unreadable, network }
    }
}

/// Removes paths that are inside another path.
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

/// Resolves links in the folders. A folder inside another one is skipped rather than
/// resolved, because a command could have put a link there.
fn resolve_links(mut named: Vec<PathBuf>, root: PathBuf) -> Vec<PathBuf> {
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

/// The path with its links resolved. The end of it need not exist: a command must not create it either.
fn without_links(path: &Path) -> Option<PathBuf> {
    let existing = path.ancestors().find(|above| above.symlink_metadata().is_ok())?;
    let missing = path.strip_prefix(existing).ok()?;
    Some(fs::canonicalize(existing).ok()?.join(missing))
}

/// Limits what is used of this machine, so that tests can simulate a lesser one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TierLimit {
    pub tier: Tier,
    /// The highest Landlock ABI to use.
    pub abi: i32,
}

impl TierLimit {
    pub const NONE: TierLimit = TierLimit { tier: Tier::Strong, abi: i32::MAX };

    /// Reads `ASIDE_CONFINE_MAX` and `ASIDE_CONFINE_ABI`, which can only remove
    /// abilities.
    pub fn from_environment() -> TierLimit {
        let tier = match std::env::var("ASIDE_CONFINE_MAX").as_deref() {
            Ok("kernel") => Tier::Kernel,
            Ok("none") => Tier::None,
            Ok(_) | Err(_) => Tier::Strong,
        };
        let abi = std::env::var("ASIDE_CONFINE_ABI").ok().and_then(|abi| abi.parse().ok());
        TierLimit { tier, abi: abi.unwrap_or(i32::MAX) }
    }

    fn apply(self, mut support: MachineSupport) -> MachineSupport {
        if self.tier < Tier::Strong && support.bubblewrap.take().is_some() {
            support.missing.push(format!("strong: limited to the tier {} for a test", self.tier));
        }
        if self.tier < Tier::Kernel && support.landlock.take().is_some() {
            support.missing.push(format!("kernel: limited to the tier {} for a test", self.tier));
        }
        support.seatbelt &= self.tier >= Tier::Seatbelt;
        if let Some(abi) = support.landlock {
            support.landlock = Some(abi.min(self.abi)).filter(|abi| *abi >= crate::MIN_LANDLOCK_ABI);
            if support.landlock.is_none() {
                support.missing.push(format!("kernel: limited to ABI {} of Landlock for a test", self.abi));
            }
        }
        support
    }
}
