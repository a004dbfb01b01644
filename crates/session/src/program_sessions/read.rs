//! Reads the files or rows of one session, within bounds.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use aside_core::interchange::{ImportFile, Program, TableRows};

use super::find::{ProgramSession, SessionLocation};
use super::unreadable;
use crate::error::HintedError;

/// How many files one session may consist of.
const MAX_FILES: usize = 200_000;

pub(super) enum SessionContent {
    Files(Vec<SessionFile>),
    Rows(Vec<TableRows>),
}

pub(super) struct SessionFile {
    pub(super) name: String,
    pub(super) text: String,
    /// Whether bytes that are not UTF-8 were replaced.
    pub(super) is_lossy: bool,
}

impl SessionFile {
    pub(super) fn as_import_file(&self) -> ImportFile<'_> {
        ImportFile { name: &self.name, text: &self.text }
    }
}

impl ProgramSession {
    /// Reads at most `max_bytes`.
    pub(super) fn content(&self, max_bytes: usize) -> Result<SessionContent, HintedError> {
        let path = match &self.stored_at {
            SessionLocation::File(path) => path,
            SessionLocation::Row { database, layout } => {
                let id = self.id().unwrap_or_default();
                let rows = database.rows(layout, id);
                return rows
                    .map(SessionContent::Rows)
                    .map_err(|error| HintedError::new(format!("{}: {error}", self.location())));
            }
        };
        let mut files = Files { room: max_bytes, max_bytes, files: Vec::new() };
        files.read(path)?;
        if self.known_source().program == Program::OpenCode {
            files.read_parts(path)?;
        }
        Ok(SessionContent::Files(files.files))
    }
}

struct Files {
    room: usize,
    max_bytes: usize,
    files: Vec<SessionFile>,
}

impl Files {
    fn read(&mut self, path: &Path) -> Result<(), HintedError> {
        let too_large = || {
            let (path, limit) = (path.display(), self.max_bytes >> 20);
            HintedError::new(format!("{path}: the session is larger than {limit} MiB"))
        };
        if self.files.len() >= MAX_FILES {
            return Err(HintedError::new(format!("{}: the session has more than {MAX_FILES} files", path.display())));
        }
        let file = fs::File::open(path).map_err(|error| unreadable(path, &error))?;
        let mut bytes = Vec::new();
        let limit = u64::try_from(self.room).unwrap_or(u64::MAX).saturating_add(1);
        file.take(limit).read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
        self.room = self.room.checked_sub(bytes.len()).ok_or_else(too_large)?;
        let (text, is_lossy) = match String::from_utf8(bytes) {
            Ok(text) => (text, false),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
        };
        self.files.push(SessionFile { name: path.display().to_string(), text, is_lossy });
        Ok(())
    }

    /// OpenCode before 1.2: a file for each message and each of its parts.
    fn read_parts(&mut self, session: &Path) -> Result<(), HintedError> {
        let Some(storage) = session.ancestors().nth(3) else { return Ok(()) };
        let Some(id) = session.file_stem() else { return Ok(()) };
        for message in files_in(&storage.join("message").join(id))? {
            self.read(&message)?;
            let parts = message.file_stem().map(|stem| storage.join("part").join(stem));
            for part in parts.map_or(Ok(Vec::new()), |parts| files_in(&parts))? {
                self.read(&part)?;
            }
        }
        Ok(())
    }
}

/// The files of a folder, in order. None if the folder does not exist.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>, HintedError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(folder, &error)),
    };
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    files.sort();
    Ok(files)
}
