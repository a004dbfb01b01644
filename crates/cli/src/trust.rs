//! `aside trust`: which folders' instructions (`AGENTS.md`) are sent to the model.

use std::io::Write;
use std::path::PathBuf;

use aside_engine::project_files::ProjectFiles;
use aside_session::HintedError;
use aside_session::UserFolders;
use aside_session::trust::TrustedFolders;

use crate::{ExitStatus, output};

/// Trust a folder, so that its AGENTS.md is sent to the model
///
/// Trust applies to the root of the repository, or to the folder itself outside
/// one. For a folder that is not trusted, aside asks once on a terminal; without
/// a terminal it does not send the file.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The folder; by default the working directory
    path: Option<PathBuf>,

    /// Stop trusting the folder
    #[arg(long, conflicts_with = "list")]
    forget: bool,

    /// List the trusted folders
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let mut folders = TrustedFolders::open(&UserFolders::from_environment())?;
    if arguments.list {
        for folder in folders.iter() {
            writeln!(output::stdout(), "{}", folder.display())?;
        }
        return Ok(ExitStatus::Done);
    }
    let folder = match &arguments.path {
        Some(path) => path.clone(),
        None => crate::working_directory()?,
    };
    if !folder.is_dir() {
        return Err(HintedError::new(format!("{} is not a folder", folder.display())).into());
    }
    let root = ProjectFiles::find(&folder, &[]).root;
    match arguments.forget {
        true => folders.remove(&root)?,
        false => folders.add(&root)?,
    }
    let is = if arguments.forget { "is no longer trusted" } else { "is trusted" };
    writeln!(output::stdout(), "{} {is}", root.display())?;
    Ok(ExitStatus::Done)
}
