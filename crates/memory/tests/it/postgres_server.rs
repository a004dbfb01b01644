//! A private PostgreSQL server in a temporary folder.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::support::Folder;

/// The server refuses to run as root, so it runs as this user then.
const NOT_ROOT: u32 = 65_534;

pub(super) struct PostgresServer {
    programs: PathBuf,
    folder: Folder,
    is_root: bool,
}

impl PostgresServer {
    /// None if PostgreSQL is not installed.
    pub(super) fn start() -> Option<PostgresServer> {
        let installed = std::fs::read_dir("/usr/lib/postgresql").ok()?;
        let mut versions: Vec<PathBuf> = installed.flatten().map(|entry| entry.path().join("bin")).collect();
        versions.sort();
        let programs = versions.pop().filter(|programs| programs.join("initdb").exists())?;
        let folder = Folder::new("pg");
        let is_root = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0;
        if is_root {
            chown(&folder.0, Some(NOT_ROOT), Some(NOT_ROOT)).unwrap();
        }
        let server = PostgresServer { programs, folder, is_root };
        let data = server.data();
        let made = server.run("initdb", &["-D", &data, "-U", "aside", "-A", "trust", "--no-sync"]);
        assert!(made, "initdb failed");
        server.start_again();
        Some(server)
    }

    pub(super) fn start_again(&self) {
        let socket = self.folder.0.display().to_string();
        // Nothing here must survive a power cut.
        let options = format!("-k {socket} -c listen_addresses= -c fsync=off -c shared_buffers=16MB");
        let log = self.folder.0.join("log").display().to_string();
        let started = self.run("pg_ctl", &["-D", &self.data(), "-o", &options, "-l", &log, "-w", "-t", "300", "start"]);
        assert!(started, "{}", std::fs::read_to_string(&log).unwrap_or_default());
    }

    pub(super) fn stop(&self) {
        self.run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "-w", "-t", "300", "stop"]);
    }

    /// Runs SQL as the administrator.
    pub(super) fn sql(&self, database: &str, sql: &str) {
        let socket = self.folder.0.display().to_string();
        assert!(self.run("psql", &["-q", "-h", &socket, "-U", "aside", "-d", database, "-c", sql]), "{sql}");
    }

    /// The URL of a new database.
    pub(super) fn new_database(&self, name: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        let host = self.folder.0.display().to_string().replace('/', "%2F");
        format!("postgres://aside@{host}/{name}?sslmode=disable")
    }

    fn data(&self) -> String {
        self.folder.0.join("data").display().to_string()
    }

    fn run(&self, program: &str, arguments: &[&str]) -> bool {
        let mut command = Command::new(self.programs.join(program));
        command.args(arguments).current_dir(Path::new("/")).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null());
        if self.is_root {
            command.uid(NOT_ROOT).gid(NOT_ROOT);
        }
        command.status().unwrap().success()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop();
    }
}
