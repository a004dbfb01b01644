//! Finds out which tiers this machine supports by trying them.

use std::fs;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::confine::Helper;
use crate::launch::{CommandEnd, CommandInput, Launch, Mechanism, OnProtectedChange, OsText};
use crate::policy::{NetworkPolicy, Policy};
use crate::self_test::SelfTestResult;
use crate::{MIN_LANDLOCK_ABI, spawn_supervisor};

/// What a machine supports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineSupport {
    /// The path of a bubblewrap that passed the self-test.
    pub bubblewrap: Option<PathBuf>,
    /// The Landlock ABI, if Landlock and seccomp passed the self-test.
    pub landlock: Option<i32>,
    pub seatbelt: bool,
    /// Why better tiers are missing, one line for each.
    pub missing: Vec<String>,
}

/// Tries every tier.
pub(crate) fn probe(helper: &Helper) -> MachineSupport {
    let mut found = MachineSupport::default();
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
    match probe_bubblewrap(helper) {
        Ok(program) => found.bubblewrap = Some(program),
        Err(why) => found.missing.push(format!("strong: {why}")),
    }
    match probe_landlock(helper) {
        Ok(abi) => found.landlock = Some(abi),
        Err(why) => found.missing.push(format!("kernel: {why}")),
    }
    found
}

fn probe_bubblewrap(helper: &Helper) -> Result<PathBuf, String> {
    let program = installed_bubblewrap().ok_or("bubblewrap (bwrap) is not installed")?;
    run_self_test(helper, Mechanism::Bubblewrap { program: OsText::from(program.as_path()) })?;
    Ok(program)
}

fn probe_landlock(helper: &Helper) -> Result<i32, String> {
    let abi = landlock_abi(helper)?;
    if abi < MIN_LANDLOCK_ABI {
        return Err(format!("Landlock of this kernel is ABI {abi}, and {MIN_LANDLOCK_ABI} is needed (Linux 5.19)"));
    }
    run_self_test(helper, Mechanism::Kernel { abi })?;
    Ok(abi)
}

/// Only in system folders, so that a project cannot supply its own.
pub(crate) fn installed_bubblewrap() -> Option<PathBuf> {
    ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"]
        .iter()
        .map(PathBuf::from)
        .find(|path| path.is_file())
}

fn landlock_abi(helper: &Helper) -> Result<i32, String> {
    let failed = |error: io::Error| format!("Landlock could not be tried: {error}");
    let output = helper.command().arg("abi").stdin(Stdio::null()).stderr(Stdio::null()).output().map_err(failed)?;
    let answer: Result<i32, String> =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("Landlock could not be tried: {error}"))?;
    answer
}

/// Runs the self-test confined by this mechanism.
fn run_self_test(helper: &Helper, mechanism: Mechanism) -> Result<(), String> {
    let test_folder = TestFolder::new().map_err(|error| format!("it could not be tried: {error}"))?;
    let launch = Launch {
        program: OsText::from(&helper.canonical_path()),
        arguments: helper.self_test_arguments(&test_folder.folder, test_folder.port).iter().map(OsText::from).collect(),
        folder: OsText::from(test_folder.folder.join("inside").as_path()),
        mechanism,
        policy: Policy {
            writable: vec![test_folder.folder.join("inside")],
            protected: Vec::new(),
            unreadable: vec![test_folder.folder.join("secret")],
            network: NetworkPolicy::Off,
        },
        input: CommandInput::Empty,
        on_protected_change: OnProtectedChange::Restore,
    };
    let (report, output) = spawn_supervisor::run_with_output(helper, &launch)
        .map_err(|error| format!("it could not be tried: {error}"))?;
    let text = String::from_utf8_lossy(&output);
    match report.end {
        CommandEnd::NotStarted(why) => return Err(why),
        CommandEnd::Exited(0) => (),
        CommandEnd::Exited(_) | CommandEnd::Signalled(_) | CommandEnd::Stopped => {
            let line: String = text.lines().last().unwrap_or("it ended without a word").chars().take(200).collect();
            return Err(line);
        }
    }
    let line = text.lines().last().unwrap_or_default();
    let result: SelfTestResult = serde_json::from_str(line).map_err(|_| "the trial gave no answer".to_owned())?;
    match result.problem() {
        Some(problem) => Err(problem.to_owned()),
        None => Ok(()),
    }
}

/// A folder with files to attack, and listening sockets.
struct TestFolder {
    folder: PathBuf,
    port: u16,
    _listeners: (TcpListener, UdpSocket, Option<UnixListener>),
}

impl TestFolder {
    fn new() -> io::Result<TestFolder> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = fs::canonicalize(std::env::temp_dir())?.join(format!("aside-probe-{process}-{count}"));
        // `create` fails if the folder belongs to another user.
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
        // Socket paths are limited in length, and the folder's may be too long.
        let unix = UnixListener::bind(folder.join("socket")).ok();
        Ok(TestFolder { folder, port, _listeners: (tcp, udp, unix) })
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// What the result depends on: this boot, this program, this bubblewrap, this user, and
/// any confinement around us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ProbeKey {
    boot: String,
    program: String,
    bubblewrap: String,
    user: u32,
    around: String,
}

#[derive(Serialize, Deserialize)]
struct CachedProbe {
    key: ProbeKey,
    found: MachineSupport,
}

impl ProbeKey {
    fn now(helper: &Helper) -> Option<ProbeKey> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let about = |path: &Path| {
            let about = fs::metadata(path).ok()?;
            Some(format!("{}:{}:{}:{}", about.dev(), about.ino(), about.size(), about.mtime_nsec() ^ about.mtime()))
        };
        let bubblewrap = installed_bubblewrap().map(|path| about(&path).unwrap_or_default());
        let spaces = ["user", "mnt", "net"].map(|space| fs::read_link(format!("/proc/self/ns/{space}")).ok());
        let limit = fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap_or_default();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let restrictions =
            status.lines().filter(|line| ["Seccomp", "NoNewPrivs", "CapEff"].iter().any(|key| line.starts_with(key)));
        Some(ProbeKey {
            boot: boot.trim().to_owned(),
            program: about(&helper.canonical_path())?,
            bubblewrap: bubblewrap.unwrap_or_default(),
            user: rustix::process::geteuid().as_raw(),
            around: format!("{spaces:?} {} {}", limit.trim(), restrictions.collect::<Vec<_>>().join(" ")),
        })
    }
}

/// The cached result of this boot if it is still valid, otherwise a new one. The file is
/// in aside's own folder, which confined commands cannot write to.
pub(crate) fn cached_probe(helper: &Helper, file: Option<&Path>) -> MachineSupport {
    let key = file.and_then(|_| ProbeKey::now(helper));
    let (Some(file), Some(key)) = (file, key) else { return probe(helper) };
    let known = fs::read(file).ok().and_then(|json| serde_json::from_slice::<CachedProbe>(&json).ok());
    let is_good = |known: &CachedProbe| {
        known.key == key && known.found.bubblewrap.iter().all(|path| Some(path) == installed_bubblewrap().as_ref())
    };
    if let Some(known) = known.filter(is_good) {
        return known.found;
    }
    let found = probe(helper);
    // If this fails, the next run probes again, which only takes longer.
    drop(write_cache(file, &CachedProbe { key, found: found.clone() }));
    found
}

fn write_cache(file: &Path, cached: &CachedProbe) -> io::Result<()> {
    let folder = file.parent().ok_or(io::ErrorKind::NotFound)?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let temporary = folder.join(format!(".confine-{}", std::process::id()));
    drop(fs::remove_file(&temporary));
    let mut to = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    io::Write::write_all(&mut to, &serde_json::to_vec(cached)?)?;
    fs::rename(&temporary, file)
}

impl Helper {
    fn self_test_arguments(&self, folder: &Path, port: u16) -> Vec<std::ffi::OsString> {
        let mut arguments = self.arguments.clone();
        arguments.extend(["try".into(), folder.into(), port.to_string().into()]);
        arguments
    }
}
