//! Answers that apply to a project, stored in one file for all projects.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::rules::Rule;
use crate::atomic::{self, FileMode};
use crate::dir::{self, Dir, OpenedPath};

/// The maximum size of the file, far more than the answers ever need.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The stored answers of one project.
#[derive(Debug)]
pub struct ProjectMemory {
    file: PathBuf,
    /// The canonical path of the project's root; see [`key`].
    project: String,
    answers: Vec<StoredAnswer>,
}

#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error("{}: {problem}", .file.display())]
    Io { file: PathBuf, problem: io::Error },
    #[error("{} is a link or not a regular file; move it away, it is not used", .file.display())]
    NotPlain { file: PathBuf },
    #[error("{} is not understood, and is left as it is: {problem}", .file.display())]
    NotUnderstood { file: PathBuf, problem: serde_json::Error },
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredAnswers {
    allowed: BTreeMap<String, Vec<StoredAnswer>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredAnswer {
    pub(crate) tool: String,
    /// Without a subject, the answer covers any use inside the working directory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) subject: Option<String>,
}

impl ProjectMemory {
    /// Reads the stored answers. A missing file is empty.
    pub fn open(file: &Path, root: &Path) -> Result<ProjectMemory, MemoryError> {
        let project = key(&fs::canonicalize(root).unwrap_or_else(|_| root.to_owned()));
        let mut stored = read(file)?;
        let answers = stored.allowed.remove(&project).unwrap_or_default();
        Ok(ProjectMemory { file: file.to_owned(), project, answers })
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = Rule> {
        self.answers.iter().map(|answer| Rule::answer(&answer.tool, answer.subject.as_deref()))
    }

    pub(crate) fn remember(&mut self, answer: StoredAnswer) -> Result<(), MemoryError> {
        self.change(|answers| {
            if !answers.contains(&answer) {
                answers.push(answer.clone());
            }
        })?;
        self.answers.push(answer);
        Ok(())
    }

    /// Removes an answer; returns whether it existed.
    pub(crate) fn forget(&mut self, rule: &str) -> Result<bool, MemoryError> {
        let is_it = |answer: &StoredAnswer| Rule::answer(&answer.tool, answer.subject.as_deref()).to_string() == rule;
        if !self.answers.iter().any(is_it) {
            return Ok(false);
        }
        self.change(|answers| answers.retain(|answer| !is_it(answer)))?;
        self.answers.retain(|answer| !is_it(answer));
        Ok(true)
    }

    /// Re-reads the file before changing it: another aside may have written it.
    fn change(&self, change: impl FnOnce(&mut Vec<StoredAnswer>)) -> Result<(), MemoryError> {
        let fail = |problem| MemoryError::Io { file: self.file.clone(), problem };
        let mut stored = read(&self.file)?;
        change(stored.allowed.entry(self.project.clone()).or_default());
        stored.allowed.retain(|_, answers| !answers.is_empty());
        let mut text = serde_json::to_string_pretty(&stored).map_err(|error| fail(error.into()))?;
        text.push('\n');
        if let Some(folder) = self.file.parent() {
            private_folder(folder).map_err(fail)?;
        }
        atomic::write(&self.file, text.as_bytes(), FileMode::Private).map_err(fail)
    }
}

/// The key under which a project is stored. It is unique for each path: a path that is not UTF-8, or contains
/// a replacement character, is written as bytes. Absolute paths begin with a slash, so they cannot be
/// confused with such a key.
fn key(root: &Path) -> String {
    match root.to_str() {
        Some(path) if !path.contains(char::REPLACEMENT_CHARACTER) => path.to_owned(),
        Some(_) | None => {
            let digits = root.as_os_str().as_bytes().iter().map(|byte| format!("{byte:02x}"));
            format!("bytes:{}", digits.collect::<String>())
        }
    }
}

/// Links are not followed: anyone who can create one could choose the answers.
fn read(file: &Path) -> Result<StoredAnswers, MemoryError> {
    let fail = |problem: io::Error| match dir::leads_elsewhere(&problem) {
        true => MemoryError::NotPlain { file: file.to_owned() },
        false => MemoryError::Io { file: file.to_owned(), problem },
    };
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
        return Err(fail(io::ErrorKind::InvalidInput.into()));
    };
    let opened = match Dir::open(folder).and_then(|folder| folder.open_at(Path::new(name))) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(StoredAnswers::default()),
        Err(error) => return Err(fail(error)),
    };
    let OpenedPath::File(opened, _) = opened else { return Err(MemoryError::NotPlain { file: file.to_owned() }) };
    let mut text = String::new();
    opened.take(MAX_BYTES).read_to_string(&mut text).map_err(fail)?;
    serde_json::from_str(&text).map_err(|problem| MemoryError::NotUnderstood { file: file.to_owned(), problem })
}

fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
