//! Actions that the helper tries while confined, to check that the confinement works.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Which actions succeeded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "a list of attempts, each of which worked or not")]
pub(crate) struct SelfTestResult {
    pub(crate) write_inside: bool,
    pub(crate) write_outside: bool,
    pub(crate) rename_outside: bool,
    pub(crate) read_open: bool,
    pub(crate) read_secret: bool,
    pub(crate) tcp: bool,
    pub(crate) udp: bool,
    pub(crate) unix: bool,
    pub(crate) terminal: bool,
}

impl SelfTestResult {
    /// The first result that differs from what it should be.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        #[rustfmt::skip]
        let rows = [
            (self.write_inside,    true,  "a command cannot write to its own folder"),
            (self.write_outside,   false, "a command can write outside"),
            (self.rename_outside,  false, "a command can move files outside"),
            (self.read_open,       true,  "a command cannot read what it should"),
            (self.read_secret,     false, "a command can read what is closed to it"),
            (self.tcp,             false, "a command can connect by TCP"),
            (self.udp,             false, "a command can send by UDP"),
            (self.unix,            false, "a command can connect to local sockets"),
            (self.terminal,        false, "a command can open the terminal"),
        ];
        rows.into_iter().find(|(actual, expected, _)| actual != expected).map(|(_, _, problem)| problem)
    }
}

/// Tries every action in a folder prepared by the probe and prints the results. The
/// arguments are `FOLDER PORT`.
#[expect(clippy::print_stdout, reason = "the probe reads it there")]
pub(crate) fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(folder), Some(port)) = (arguments.next(), arguments.next()) else { return ExitCode::from(2) };
    let Some(port) = port.to_str().and_then(|port| port.parse().ok()) else { return ExitCode::from(2) };
    let folder = PathBuf::from(folder);
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let result = SelfTestResult {
        write_inside: fs::write(folder.join("inside/new"), "x").is_ok(),
        write_outside: fs::write(folder.join("outside/new"), "x").is_ok(),
        rename_outside: fs::rename(folder.join("inside/moved"), folder.join("outside/moved")).is_ok(),
        read_open: fs::read(folder.join("outside/open")).is_ok(),
        read_secret: fs::read(folder.join("secret/key")).is_ok(),
        tcp: TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok(),
        udp: UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(b"x", address)).is_ok(),
        unix: UnixStream::connect(folder.join("socket")).is_ok(),
        terminal: fs::OpenOptions::new().write(true).open("/dev/tty").is_ok(),
    };
    let line = serde_json::to_string(&result).unwrap_or_default();
    println!("{line}");
    drop(std::io::stdout().flush());
    ExitCode::SUCCESS
}

/// Prints the Landlock ABI, or why Landlock is unavailable.
#[expect(clippy::print_stdout, reason = "the probe reads it there")]
pub(crate) fn print_landlock_abi() -> ExitCode {
    #[cfg(target_os = "linux")]
    let abi = crate::landlock::abi();
    #[cfg(not(target_os = "linux"))]
    let abi: Result<i32, String> = Err("this is not Linux".to_owned());
    let line = serde_json::to_string(&abi).unwrap_or_default();
    println!("{line}");
    ExitCode::SUCCESS
}
