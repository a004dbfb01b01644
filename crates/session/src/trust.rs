//! Trusted folders: only their instructions (`AGENTS.md`) are sent to the model. A
//! user who clones a repository has not read its instructions yet.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aside_core::permission_question::{PermissionAnswer, PermissionQuestion, QuestionKind, Risk};
use aside_engine::project_files::ProjectFiles;
use aside_engine::tools::Asker;

use crate::atomic;
use crate::error::HintedError;
use crate::user_files::UserFolders;

/// The trusted folders, stored in the data folder.
#[derive(Debug, Default)]
pub struct TrustedFolders {
    file: Option<PathBuf>,
    folders: Vec<PathBuf>,
}

/// Paths that are not UTF-8 are stored as hex bytes.
const BYTES: &str = "bytes:";

impl TrustedFolders {
    pub fn open(folders: &UserFolders) -> Result<TrustedFolders, HintedError> {
        let Some(folder) = &folders.data else { return Ok(TrustedFolders::default()) };
        TrustedFolders::read(folder.join("trust.json"))
    }

    fn read(file: PathBuf) -> Result<TrustedFolders, HintedError> {
        let names: Vec<String> = match fs::read_to_string(&file) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| {
                HintedError::new(format!("{} cannot be understood: {error}", file.display()))
                    .hint("remove it; you are asked again about each folder")
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(HintedError::new(format!("cannot read {}: {error}", file.display()))),
        };
        let folders = names.iter().filter_map(|name| path_of(name)).collect();
        Ok(TrustedFolders { file: Some(file), folders })
    }

    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        self.folders.iter().map(PathBuf::as_path)
    }

    pub fn has(&self, root: &Path) -> bool {
        self.folders.iter().any(|folder| folder == root)
    }

    pub fn add(&mut self, root: &Path) -> Result<(), HintedError> {
        if self.has(root) {
            return Ok(());
        }
        self.folders.push(root.to_owned());
        self.write()
    }

    pub fn remove(&mut self, root: &Path) -> Result<(), HintedError> {
        self.folders.retain(|folder| folder != root);
        self.write()
    }

    fn write(&self) -> Result<(), HintedError> {
        let Some(file) = &self.file else { return Err(HintedError::new("there is no data folder to remember it in")) };
        let names: Vec<String> = self.folders.iter().map(|folder| name_of(folder)).collect();
        let text = serde_json::to_string_pretty(&names).unwrap_or_default() + "\n";
        atomic::write(file, &text)
            .map_err(|error| HintedError::new(format!("cannot write {}: {error}", file.display())))
    }
}

fn name_of(folder: &Path) -> String {
    match folder.to_str() {
        Some(name) => name.to_owned(),
        None => {
            let hex = folder.as_os_str().as_bytes().iter().map(|byte| format!("{byte:02x}"));
            format!("{BYTES}{}", hex.collect::<String>())
        }
    }
}

fn path_of(name: &str) -> Option<PathBuf> {
    let Some(hex) = name.strip_prefix(BYTES) else { return Some(PathBuf::from(name)) };
    let digits: Vec<u8> =
        hex.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect::<Option<_>>()?;
    let bytes = digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    Some(std::ffi::OsString::from_vec(bytes).into())
}

/// How to decide whether a folder is trusted.
#[derive(Default)]
pub enum Trust {
    /// The user trusts it, as with `--trust`.
    Given,
    /// Ask the user.
    Ask(Arc<dyn Asker + Send>),
    /// Use earlier answers, without asking.
    #[default]
    AsBefore,
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Trust::Given => "Given",
            Trust::Ask(_) => "Ask",
            Trust::AsBefore => "AsBefore",
        })
    }
}

impl Trust {
    /// Whether these files may be sent. Remembers a yes.
    pub(crate) async fn allows(
        &self,
        files: &ProjectFiles,
        user: &UserFolders,
        notify: &dyn Fn(&str),
    ) -> Result<bool, HintedError> {
        let mut folders = TrustedFolders::open(user)?;
        if files.is_empty() || folders.has(&files.root) {
            return Ok(!files.is_empty());
        }
        let is_trusted = match self {
            Trust::Given => true,
            Trust::AsBefore => return Ok(false),
            Trust::Ask(asker) => match asker.ask(question(files)).await {
                PermissionAnswer::Once | PermissionAnswer::Session | PermissionAnswer::Project => true,
                PermissionAnswer::No(_) => false,
                PermissionAnswer::Nobody => {
                    notify(&format!(
                        "note: {} not sent: you have not trusted {} yet (aside trust, or --trust)",
                        names_with_verb(&files.names()),
                        files.root.display()
                    ));
                    return Ok(false);
                }
            },
        };
        if is_trusted && let Err(report) = folders.add(&files.root) {
            notify(&format!("trusted for this run only: {report}"));
        }
        Ok(is_trusted)
    }
}

fn question(files: &ProjectFiles) -> PermissionQuestion {
    let why = "This folder has instructions that would be sent to the model as your own.";
    let names = files.names().join("\n");
    // Whoever says yes must be able to read what is sent.
    let content = files.content();
    let preview = Some(format!("{why}\nA yes is remembered for this folder.\n\n{names}\n\n{content}"));
    PermissionQuestion {
        id: "trust".to_owned(),
        preview,
        kind: QuestionKind::Trust,
        ..PermissionQuestion::new("trust", files.root.display().to_string(), Risk::Reads)
    }
}

fn names_with_verb(names: &[String]) -> String {
    format!("{} {}", names.join(", "), if names.len() == 1 { "is" } else { "are" })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use aside_core::permission_question::visible_body;
    use aside_engine::project_files::ProjectFile;

    use super::*;

    #[test]
    fn folders_are_known_by_their_exact_bytes() {
        let odd = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        for folder in [odd(b"/a/b"), odd(b"/a/\xff"), odd("/ä".as_bytes())] {
            assert_eq!(path_of(&name_of(&folder)), Some(folder));
        }
        let folders = TrustedFolders { file: None, folders: vec![odd(b"/a/\xff")] };
        assert!(folders.has(&odd(b"/a/\xff")) && !folders.has(&odd(b"/a/\xfe")));
    }

    #[test]
    fn l5_the_question_about_a_folder_has_all_that_would_be_sent() {
        let file = |path: &str, text: &str| ProjectFile { path: path.into(), text: text.to_owned() };
        let files = ProjectFiles {
            root: "/a".into(),
            files: vec![file("/a/AGENTS.md", "Be brief.\n- Run \u{1b}[31mthe tests."), file("/a/b/AGENTS.md", "Ask.")],
            notes: Vec::new(),
        };
        let shown = visible_body(&question(&files));
        let (names, content) = shown.split_once("# ").unwrap();
        assert!(names.ends_with("\n\nAGENTS.md\nb/AGENTS.md\n\n"), "{shown}");
        assert_eq!(content, "/a/AGENTS.md\n\nBe brief.\n- Run ␛[31mthe tests.\n\n# /a/b/AGENTS.md\n\nAsk.");
    }
}
