//! Folders whose instructions to the model (`AGENTS.md`) are sent. Whoever
//! clones a repository has not read what it tells the model to do.

use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use aside_core::question::{Permit, Question, Risk};
use aside_engine::project_files::ProjectFiles;
use aside_engine::tools::Asker;

use crate::output;
use crate::report::Report;
use crate::{Outcome, atomic, user_files};

/// Trust a folder, so that its AGENTS.md is sent to the model
///
/// A folder is a repository's root, or the folder itself where there is none.
/// Without this, aside asks once on a terminal, and without a terminal it does
/// not send such files.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The folder; without it, the working directory
    path: Option<PathBuf>,

    /// No longer trust it
    #[arg(long, conflicts_with = "list")]
    forget: bool,

    /// Print the folders that are trusted
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let mut folders = TrustedFolders::open()?;
    if arguments.list {
        for folder in &folders.folders {
            writeln!(output::stdout(), "{}", folder.display())?;
        }
        return Ok(Outcome::Done);
    }
    let folder = match &arguments.path {
        Some(path) => path.clone(),
        None => crate::run::here()?,
    };
    if !folder.is_dir() {
        return Err(Report::new(format!("{} is no folder", folder.display())).into());
    }
    let root = ProjectFiles::find(&folder, &[]).root;
    match arguments.forget {
        true => folders.remove(&root)?,
        false => folders.add(&root)?,
    }
    let is = if arguments.forget { "is no longer trusted" } else { "is trusted" };
    writeln!(output::stdout(), "{} {is}", root.display())?;
    Ok(Outcome::Done)
}

/// What the person decided before, kept in the data folder.
#[derive(Debug, Default)]
pub(crate) struct TrustedFolders {
    file: Option<PathBuf>,
    folders: Vec<PathBuf>,
}

/// Names that are not text are written as their bytes.
const BYTES: &str = "bytes:";

impl TrustedFolders {
    pub(crate) fn open() -> Result<TrustedFolders, Report> {
        let Some(folder) = user_files::data_folder() else { return Ok(TrustedFolders::default()) };
        TrustedFolders::read(folder.join("trust.json"))
    }

    fn read(file: PathBuf) -> Result<TrustedFolders, Report> {
        let names: Vec<String> = match fs::read_to_string(&file) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| {
                Report::new(format!("{} cannot be understood: {error}", file.display()))
                    .hint("remove it; you are asked again about each folder")
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Report::new(format!("cannot read {}: {error}", file.display()))),
        };
        let folders = names.iter().filter_map(|name| path_of(name)).collect();
        Ok(TrustedFolders { file: Some(file), folders })
    }

    pub(crate) fn has(&self, root: &Path) -> bool {
        self.folders.iter().any(|folder| folder == root)
    }

    pub(crate) fn add(&mut self, root: &Path) -> Result<(), Report> {
        if self.has(root) {
            return Ok(());
        }
        self.folders.push(root.to_owned());
        self.write()
    }

    fn remove(&mut self, root: &Path) -> Result<(), Report> {
        self.folders.retain(|folder| folder != root);
        self.write()
    }

    fn write(&self) -> Result<(), Report> {
        let Some(file) = &self.file else { return Err(Report::new("there is no data folder to remember it in")) };
        let names: Vec<String> = self.folders.iter().map(|folder| name_of(folder)).collect();
        let text = serde_json::to_string_pretty(&names).unwrap_or_default() + "\n";
        atomic::write(file, &text).map_err(|error| Report::new(format!("cannot write {}: {error}", file.display())))
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

/// How it is known whether a folder is trusted.
pub(crate) enum Trust<'a> {
    /// Said on the command line.
    Given,
    /// Whoever can be asked.
    Ask(&'a dyn Asker),
    /// What was decided before holds, and nobody is asked.
    AsBefore,
}

impl Trust<'_> {
    /// Whether these files may be sent. What is decided is remembered.
    pub(crate) async fn allows(&self, files: &ProjectFiles, tell: &dyn Fn(&str)) -> Result<bool, Report> {
        let mut folders = TrustedFolders::open()?;
        if files.is_empty() || folders.has(&files.root) {
            return Ok(!files.is_empty());
        }
        let is_trusted = match self {
            Trust::Given => true,
            Trust::AsBefore => return Ok(false),
            Trust::Ask(asker) => match asker.ask(question(files)).await {
                Permit::Once | Permit::Session | Permit::Project => true,
                Permit::No(_) => false,
                Permit::Nobody => {
                    tell(&format!(
                        "note: {} not sent: nobody has trusted {} yet (aside trust, or --trust)",
                        are(&files.names()),
                        files.root.display()
                    ));
                    return Ok(false);
                }
            },
        };
        if is_trusted && let Err(report) = folders.add(&files.root) {
            tell(&format!("trusted for this run only: {report}"));
        }
        Ok(is_trusted)
    }
}

fn question(files: &ProjectFiles) -> Question {
    let why = "This folder has instructions that would be sent to the model as your own.";
    let names = files.names().join("\n");
    let preview = Some(format!("{why}\nA yes is remembered for this folder.\n\n{names}"));
    Question {
        id: "trust".to_owned(),
        preview,
        ..Question::new("trust", files.root.display().to_string(), Risk::Reads)
    }
}

fn are(names: &[String]) -> String {
    format!("{} {}", names.join(", "), if names.len() == 1 { "is" } else { "are" })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

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
}
