//! Lists the sessions of a program without reading them.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use aside_core::block::Time;
use aside_core::interchange::{DatabaseLayout, ImportSource, Program};
use aside_store::ForeignDatabase;

use super::locations::{FileKind, ProgramFolders, SearchPath, file_kind, session_id};
use super::{MAX_SESSION_BYTES, MAX_SESSIONS, unreadable};
use crate::error::HintedError;

/// How many folders deep a folder is searched that the user names.
const NAMED_DEPTH: usize = 6;

/// A session that was found, and where it is.
pub struct ProgramSession {
    program: Program,
    pub(super) stored_at: SessionLocation,
    id: Option<String>,
    used: Option<Time>,
    is_named: bool,
}

pub(super) enum SessionLocation {
    File(PathBuf),
    Row { database: Rc<ForeignDatabase>, layout: &'static DatabaseLayout },
}

/// The sessions of a program, oldest first.
#[derive(Default)]
pub struct FoundSessions {
    pub sessions: Vec<ProgramSession>,
    /// Where sessions were looked for.
    pub places: Vec<PathBuf>,
    /// Sessions of subagents, which are left out.
    pub n_subagents: usize,
    /// Files and folders that exist but cannot be read.
    pub errors: Vec<(PathBuf, HintedError)>,
    databases: BTreeSet<PathBuf>,
}

impl ProgramSession {
    /// The program's own id, as far as it is known without reading the session.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The file, for messages.
    pub fn location(&self) -> String {
        match &self.stored_at {
            SessionLocation::File(path) => path.display().to_string(),
            SessionLocation::Row { database, .. } => {
                format!("{}, session {}", database.path().display(), self.id.as_deref().unwrap_or_default())
            }
        }
    }

    /// When the session was last used.
    pub fn used(&self) -> Option<Time> {
        self.used
    }

    /// Whether the user named its file.
    pub(super) fn is_named(&self) -> bool {
        self.is_named
    }

    /// What the place of the session says about it.
    pub(super) fn known_source(&self) -> ImportSource {
        let mut source = ImportSource::new(self.program);
        source.session = self.id.clone();
        source.folder = match &self.stored_at {
            SessionLocation::File(path) if self.program == Program::GeminiCli => project_root(path),
            SessionLocation::File(_) | SessionLocation::Row { .. } => None,
        };
        source
    }
}

/// Gemini CLI stores the working directory next to the folder of the sessions.
fn project_root(session: &Path) -> Option<String> {
    let mut text = String::new();
    let file = fs::File::open(session.parent()?.parent()?.join(".project_root")).ok()?;
    file.take(4096).read_to_string(&mut text).ok()?;
    Some(text.trim().to_owned()).filter(|folder| !folder.is_empty())
}

impl FoundSessions {
    /// Looks in the program's own folders.
    pub fn of_program(program: Program, folders: &ProgramFolders, since: Option<Time>) -> FoundSessions {
        let mut found = FoundSessions::default();
        for place in folders.places(program) {
            found.places.push(place.path.clone());
            if place.path.is_file() {
                found.add_file(program, &place.path, false);
            } else {
                found.walk(program, &place);
            }
        }
        found.sorted(since)
    }

    /// Looks in files and folders that the user names.
    pub fn of_paths(program: Program, paths: &[PathBuf], since: Option<Time>) -> Result<FoundSessions, HintedError> {
        let mut found = FoundSessions::default();
        for path in paths {
            found.places.push(path.clone());
            let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
            if metadata.is_dir() {
                found.walk(program, &SearchPath { path: path.clone(), depth: NAMED_DEPTH });
            } else {
                found.add_file(program, path, true);
            }
        }
        Ok(found.sorted(since))
    }

    fn sorted(mut self, since: Option<Time>) -> FoundSessions {
        self.sessions.retain(|session| since.is_none_or(|since| session.used.is_none_or(|used| used >= since)));
        self.sessions.sort_by_key(|session| session.used);
        self
    }

    fn walk(&mut self, program: Program, place: &SearchPath) {
        let entries = match fs::read_dir(&place.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => {
                self.errors.push((place.path.clone(), unreadable(&place.path, &error)));
                return;
            }
        };
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        // `read_dir` returns files in no particular order.
        paths.sort();
        for path in paths {
            if path.is_dir() {
                if place.depth > 0 {
                    self.walk(program, &SearchPath { path, depth: place.depth - 1 });
                }
            } else if file_kind(program, &path) != FileKind::Other {
                self.add_file(program, &path, false);
            }
        }
    }

    fn add_file(&mut self, program: Program, path: &Path, is_named: bool) {
        if self.sessions.len() >= MAX_SESSIONS {
            if self.sessions.len() == MAX_SESSIONS {
                let what = format!("there are more than {MAX_SESSIONS} sessions; the rest was left out");
                let error = HintedError::new(what).hint("name folders to import them in parts");
                self.errors.push((path.to_owned(), error));
            }
            return;
        }
        let metadata = match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => metadata,
            Ok(_) => {
                self.errors.push((path.to_owned(), HintedError::new(format!("{} is not a file", path.display()))));
                return;
            }
            Err(error) => {
                self.errors.push((path.to_owned(), unreadable(path, &error)));
                return;
            }
        };
        if is_database(path) {
            if self.databases.insert(path.to_owned())
                && let Err(error) = self.add_database(program, path)
            {
                self.errors.push((path.to_owned(), error));
            }
            return;
        }
        let modified = metadata.modified().ok();
        let since_epoch = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let used = since_epoch.and_then(|since| u64::try_from(since.as_millis()).ok()).map(Time);
        let id = session_id(program, path);
        self.sessions.push(ProgramSession {
            program,
            stored_at: SessionLocation::File(path.to_owned()),
            id,
            used,
            is_named,
        });
    }

    fn add_database(&mut self, program: Program, path: &Path) -> Result<(), HintedError> {
        let failed = |error: aside_store::ForeignDatabaseError| HintedError::new(error.to_string());
        let database = Rc::new(ForeignDatabase::open(path, MAX_SESSION_BYTES).map_err(failed)?);
        for layout in database.layouts(program).map_err(failed)? {
            for session in database.sessions(layout).map_err(failed)? {
                if session.is_subagent {
                    self.n_subagents += 1;
                    continue;
                }
                let stored_at = SessionLocation::Row { database: Rc::clone(&database), layout };
                let (id, used) = (Some(session.id), session.updated);
                self.sessions.push(ProgramSession { program, stored_at, id, used, is_named: false });
            }
        }
        Ok(())
    }
}

fn is_database(path: &Path) -> bool {
    let mut start = [0; 16];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == *b"SQLite format 3\0"
}
