//! A private PostgreSQL server in a temporary folder. The tests of the gateway's
//! processes include this file too.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The server refuses to run as root, so it runs as this user then.
const NOT_ROOT: u32 = 65_534;

/// A running server. Dropping it stops it and deletes its folder.
pub(crate) struct PostgresServer {
    programs: PathBuf,
    folder: PathBuf,
    is_root: bool,
}

impl PostgresServer {
    /// `name` tells the servers of one process apart. None if PostgreSQL is not
    /// installed.
    pub(crate) fn start(name: &str) -> Option<PostgresServer> {
        let installed = std::fs::read_dir("/usr/lib/postgresql").ok()?;
        let mut versions: Vec<PathBuf> = installed.flatten().map(|entry| entry.path().join("bin")).collect();
        versions.sort();
        let programs = versions.pop().filter(|programs| programs.join("initdb").exists())?;
        let folder = std::env::temp_dir().join(format!("aside-pg-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let is_root = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0;
        if is_root {
            chown(&folder, Some(NOT_ROOT), Some(NOT_ROOT)).unwrap();
        }
        let server = PostgresServer { programs, folder, is_root };
        let data = server.data();
        let made = server.run("initdb", &["-D", &data, "-U", "aside", "-A", "trust", "--no-sync"]);
        assert!(made, "initdb failed");
        server.start_again();
        Some(server)
    }

    pub(crate) fn start_again(&self) {
        let socket = self.folder.display().to_string();
        // Nothing here must survive a power cut.
        let options = format!("-k {socket} -c listen_addresses= -c fsync=off -c shared_buffers=16MB");
        let log = self.folder.join("log").display().to_string();
        let started = self.run("pg_ctl", &["-D", &self.data(), "-o", &options, "-l", &log, "-w", "-t", "300", "start"]);
        assert!(started, "{}", std::fs::read_to_string(&log).unwrap_or_default());
    }

    pub(crate) fn stop(&self) {
        self.run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "-w", "-t", "300", "stop"]);
    }

    /// Halts every process of the server. Its connections stay open, and nothing
    /// answers.
    #[allow(dead_code, reason = "not every test binary uses it")]
    pub(crate) fn freeze(&self) {
        self.signal("STOP");
    }

    pub(crate) fn thaw(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let Ok(text) = std::fs::read_to_string(self.folder.join("data/postmaster.pid")) else { return };
        let Some(main) = text.lines().next().map(|line| line.trim().to_owned()) else { return };
        // The main process first, so that it starts no others.
        let children = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let id = entry.file_name().into_string().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.to_owned();
            (parent == main).then_some(id)
        });
        let all: Vec<String> = std::iter::once(main.clone()).chain(children).collect();
        // A process may have ended in the meantime.
        let _ended = Command::new("kill").arg("-s").arg(name).args(all).stderr(Stdio::null()).status();
    }

    /// Runs SQL as the administrator.
    pub(crate) fn sql(&self, database: &str, sql: &str) {
        let socket = self.folder.display().to_string();
        assert!(self.run("psql", &["-q", "-h", &socket, "-U", "aside", "-d", database, "-c", sql]), "{sql}");
    }

    /// The URL of a new database.
    pub(crate) fn new_database(&self, name: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        let host = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://aside@{host}/{name}?sslmode=disable")
    }

    fn data(&self) -> String {
        self.folder.join("data").display().to_string()
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
        self.thaw();
        self.stop();
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}
