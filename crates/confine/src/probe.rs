//! Which tier this machine has, by trying it.

use std::fs;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::attempt::Worked;
use crate::confine::Helper;
use crate::launch::{Barrier, End, Input, Launch, Protection, Text};
use crate::policy::{Network, Policy};
use crate::{OLDEST_LANDLOCK, run};

/// What a machine can do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// This bubblewrap holds what it should.
    pub bubblewrap: Option<PathBuf>,
    /// Landlock of this ABI and seccomp hold what they should.
    pub landlock: Option<i32>,
    pub seatbelt: bool,
    /// Why there is no better tier, one line for each that is missing.
    pub missing: Vec<String>,
}

/// Tries every tier of this system.
pub(crate) fn probe(helper: &Helper) -> Found {
    let mut found = Found::default();
    if cfg!(target_os = "macos") {
        found.seatbelt = Path::new("/usr/bin/sandbox-exec").exists();
        if !found.seatbelt {
            found.missing.push("seatbelt: there is no /usr/bin/sandbox-exec".to_owned());
        }
        return found;
    }
    if !cfg!(target_os = "linux") {
        found.missing.push("there is no confinement for this system".to_owned());
        return found;
    }
    match strong(helper) {
        Ok(program) => found.bubblewrap = Some(program),
        Err(why) => found.missing.push(format!("strong: {why}")),
    }
    match kernel(helper) {
        Ok(abi) => found.landlock = Some(abi),
        Err(why) => found.missing.push(format!("kernel: {why}")),
    }
    found
}

fn strong(helper: &Helper) -> Result<PathBuf, String> {
    let program = bubblewrap().ok_or("bubblewrap (bwrap) is not installed")?;
    try_out(helper, Barrier::Bubblewrap { program: Text::from(program.as_path()) })?;
    Ok(program)
}

fn kernel(helper: &Helper) -> Result<i32, String> {
    let abi = landlock(helper)?;
    if abi < OLDEST_LANDLOCK {
        return Err(format!("Landlock of this kernel is ABI {abi}, and {OLDEST_LANDLOCK} is needed (Linux 5.19)"));
    }
    try_out(helper, Barrier::Kernel { abi })?;
    Ok(abi)
}

/// The one in a folder of the system, so that no project can bring its own.
pub(crate) fn bubblewrap() -> Option<PathBuf> {
    ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"]
        .iter()
        .map(PathBuf::from)
        .find(|path| path.is_file())
}

fn landlock(helper: &Helper) -> Result<i32, String> {
    let failed = |error: io::Error| format!("Landlock could not be tried: {error}");
    let output = helper.command().arg("abi").stdin(Stdio::null()).stderr(Stdio::null()).output().map_err(failed)?;
    let answer: Result<i32, String> =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("Landlock could not be tried: {error}"))?;
    answer
}

/// Runs the attempts behind the barrier and judges what worked.
fn try_out(helper: &Helper, barrier: Barrier) -> Result<(), String> {
    let stage = Stage::new().map_err(|error| format!("it could not be tried: {error}"))?;
    let launch = Launch {
        program: Text::from(&helper.file()),
        arguments: helper.attempt(&stage.folder, stage.port).iter().map(Text::from).collect(),
        folder: Text::from(stage.folder.join("inside").as_path()),
        barrier,
        policy: Policy {
            writable: vec![stage.folder.join("inside")],
            protected: Vec::new(),
            unreadable: vec![stage.folder.join("secret")],
            network: Network::Off,
        },
        input: Input::Nothing,
        protection: Protection::Restore,
    };
    let (report, output) = run::collect(helper, &launch).map_err(|error| format!("it could not be tried: {error}"))?;
    let said = String::from_utf8_lossy(&output);
    match report.end {
        End::NotStarted(why) => return Err(why),
        End::Exited(0) => (),
        End::Exited(_) | End::Signalled(_) | End::Stopped => {
            let line: String = said.lines().last().unwrap_or("it ended without a word").chars().take(200).collect();
            return Err(line);
        }
    }
    let line = said.lines().last().unwrap_or_default();
    let worked: Worked = serde_json::from_str(line).map_err(|_| "the trial gave no answer".to_owned())?;
    match worked.problem() {
        Some(problem) => Err(problem.to_owned()),
        None => Ok(()),
    }
}

/// A folder with something to take, and somebody who listens.
struct Stage {
    folder: PathBuf,
    port: u16,
    _listeners: (TcpListener, UdpSocket, Option<UnixListener>),
}

impl Stage {
    fn new() -> io::Result<Stage> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = fs::canonicalize(std::env::temp_dir())?.join(format!("aside-probe-{process}-{count}"));
        // A folder of this name that is somebody else's is not used.
        drop(fs::remove_dir_all(&folder));
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        for name in ["inside", "outside", "secret"] {
            fs::create_dir(folder.join(name))?;
        }
        for name in ["inside/moved", "outside/open", "secret/key"] {
            fs::write(folder.join(name), "x")?;
        }
        let tcp = TcpListener::bind("127.0.0.1:0")?;
        let port = tcp.local_addr()?.port();
        let udp = UdpSocket::bind(("127.0.0.1", port)).or_else(|_| UdpSocket::bind("127.0.0.1:0"))?;
        // The name of a socket is short, and the folder's may be long.
        let unix = UnixListener::bind(folder.join("socket")).ok();
        Ok(Stage { folder, port, _listeners: (tcp, udp, unix) })
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// What the finding depends on: this boot, this program, this bubblewrap, this
/// user, and whatever confines us ourselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Key {
    boot: String,
    program: String,
    bubblewrap: String,
    user: u32,
    around: String,
}

#[derive(Serialize, Deserialize)]
struct Remembered {
    key: Key,
    found: Found,
}

impl Key {
    fn now(helper: &Helper) -> Option<Key> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let about = |path: &Path| {
            let about = fs::metadata(path).ok()?;
            Some(format!("{}:{}:{}:{}", about.dev(), about.ino(), about.size(), about.mtime_nsec() ^ about.mtime()))
        };
        let bubblewrap = bubblewrap().map(|path| about(&path).unwrap_or_default());
        let spaces = ["user", "mnt", "net"].map(|space| fs::read_link(format!("/proc/self/ns/{space}")).ok());
        let limit = fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap_or_default();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let held =
            status.lines().filter(|line| ["Seccomp", "NoNewPrivs", "CapEff"].iter().any(|key| line.starts_with(key)));
        Some(Key {
            boot: boot.trim().to_owned(),
            program: about(&helper.file())?,
            bubblewrap: bubblewrap.unwrap_or_default(),
            user: rustix::process::geteuid().as_raw(),
            around: format!("{spaces:?} {} {}", limit.trim(), held.collect::<Vec<_>>().join(" ")),
        })
    }
}

/// The finding of earlier in this boot, if it is still good, else a new one. The
/// file lies in aside's own folder, which no confined command can write to.
pub(crate) fn remembered(helper: &Helper, file: Option<&Path>) -> Found {
    let key = file.and_then(|_| Key::now(helper));
    let (Some(file), Some(key)) = (file, key) else { return probe(helper) };
    let known = fs::read(file).ok().and_then(|json| serde_json::from_slice::<Remembered>(&json).ok());
    let is_good = |known: &Remembered| {
        known.key == key && known.found.bubblewrap.iter().all(|path| Some(path) == bubblewrap().as_ref())
    };
    if let Some(known) = known.filter(is_good) {
        return known.found;
    }
    let found = probe(helper);
    // Without it the next one tries again, which only takes longer.
    drop(keep(file, &Remembered { key, found: found.clone() }));
    found
}

fn keep(file: &Path, remembered: &Remembered) -> io::Result<()> {
    let folder = file.parent().ok_or(io::ErrorKind::NotFound)?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let beside = folder.join(format!(".confine-{}", std::process::id()));
    drop(fs::remove_file(&beside));
    let mut to = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    io::Write::write_all(&mut to, &serde_json::to_vec(remembered)?)?;
    fs::rename(&beside, file)
}

impl Helper {
    fn attempt(&self, folder: &Path, port: u16) -> Vec<std::ffi::OsString> {
        let mut words = self.words.clone();
        words.extend(["try".into(), folder.into(), port.to_string().into()]);
        words
    }
}
