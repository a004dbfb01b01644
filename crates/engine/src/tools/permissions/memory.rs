//! Answers given for a project, kept in one small file for all projects.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::rules::Rule;
use crate::atomic::{self, Access};
use crate::dir::{self, Dir, Opened};

/// Far more than answers ever take.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// What the user allowed for good in one project.
#[derive(Debug)]
pub struct ProjectMemory {
    file: PathBuf,
    /// The project, by the path of its root with every link followed; see [`key`].
    project: String,
    answers: Vec<Answer>,
}

#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error("{}: {problem}", .file.display())]
    Io { file: PathBuf, problem: io::Error },
    #[error("{} is a link or no plain file; move it away, it is not used", .file.display())]
    NotPlain { file: PathBuf },
    #[error("{} is not understood, and is left as it is: {problem}", .file.display())]
    NotUnderstood { file: PathBuf, problem: serde_json::Error },
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    allowed: BTreeMap<String, Vec<Answer>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) tool: String,
    /// Without one, any use inside the working directory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) subject: Option<String>,
}

impl ProjectMemory {
    /// Reads what is remembered; a file that is not there yet remembers nothing.
    pub fn open(file: &Path, root: &Path) -> Result<ProjectMemory, MemoryError> {
        let project = key(&fs::canonicalize(root).unwrap_or_else(|_| root.to_owned()));
        let mut stored = read(file)?;
        let answers = stored.allowed.remove(&project).unwrap_or_default();
        Ok(ProjectMemory { file: file.to_owned(), project, answers })
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = Rule> {
        self.answers.iter().map(|answer| Rule::answer(&answer.tool, answer.subject.as_deref()))
    }

    pub(crate) fn remember(&mut self, answer: Answer) -> Result<(), MemoryError> {
        self.change(|answers| {
            if !answers.contains(&answer) {
                answers.push(answer.clone());
            }
        })?;
        self.answers.push(answer);
        Ok(())
    }

    /// Takes a yes back; whether there was one.
    pub(crate) fn forget(&mut self, rule: &str) -> Result<bool, MemoryError> {
        let is_it = |answer: &Answer| Rule::answer(&answer.tool, answer.subject.as_deref()).to_string() == rule;
        if !self.answers.iter().any(is_it) {
            return Ok(false);
        }
        self.change(|answers| answers.retain(|answer| !is_it(answer)))?;
        self.answers.retain(|answer| !is_it(answer));
        Ok(true)
    }

    /// Changes the file as it is now: another aside may have written since.
    fn change(&self, change: impl FnOnce(&mut Vec<Answer>)) -> Result<(), MemoryError> {
        let fail = |problem| MemoryError::Io { file: self.file.clone(), problem };
        let mut stored = read(&self.file)?;
        change(stored.allowed.entry(self.project.clone()).or_default());
        stored.allowed.retain(|_, answers| !answers.is_empty());
        let mut text = serde_json::to_string_pretty(&stored).map_err(|error| fail(error.into()))?;
        text.push('\n');
        if let Some(folder) = self.file.parent() {
            private_folder(folder).map_err(fail)?;
        }
        atomic::write(&self.file, text.as_bytes(), Access::Private).map_err(fail)
    }
}

/// What a project is stored under. No two paths have the same key: one that is
/// not UTF-8, or that looks as if it had been made UTF-8, is written as bytes. A
/// whole path begins with a slash and so is never taken for such a key.
fn key(root: &Path) -> String {
    match root.to_str() {
        Some(path) if !path.contains(char::REPLACEMENT_CHARACTER) => path.to_owned(),
        Some(_) | None => {
            let digits = root.as_os_str().as_bytes().iter().map(|byte| format!("{byte:02x}"));
            format!("bytes:{}", digits.collect::<String>())
        }
    }
}

/// Links are not followed: whoever could put one there would choose the answers.
fn read(file: &Path) -> Result<Stored, MemoryError> {
    let fail = |problem: io::Error| match dir::is_elsewhere(&problem) {
        true => MemoryError::NotPlain { file: file.to_owned() },
        false => MemoryError::Io { file: file.to_owned(), problem },
    };
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
        return Err(fail(io::ErrorKind::InvalidInput.into()));
    };
    let opened = match Dir::open(folder).and_then(|folder| folder.look(Path::new(name))) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Stored::default()),
        Err(error) => return Err(fail(error)),
    };
    let Opened::File(opened, _) = opened else { return Err(MemoryError::NotPlain { file: file.to_owned() }) };
    let mut text = String::new();
    opened.take(MOST_BYTES).read_to_string(&mut text).map_err(fail)?;
    serde_json::from_str(&text).map_err(|problem| MemoryError::NotUnderstood { file: file.to_owned(), problem })
}

fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
