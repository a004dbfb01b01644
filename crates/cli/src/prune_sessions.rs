//! `aside sessions prune`: deletes sessions that were not used for a long time.

use std::io::Write;

use aside_core::block::Time;
use aside_core::counted::{bytes_text, counted};
use aside_core::terminal_text::terminal_safe_line;
use aside_session::{HintedError, UserFolders, session_recorder, times};
use aside_store::{SqliteStore, Store};

use crate::ExitStatus;
use crate::output;
use crate::report::print_notice;

/// Delete old sessions permanently, and shrink the database
///
/// Prints a line for each session: `deleted ID TITLE`, `failed ID TITLE`, or with
/// --dry-run `would delete ID TITLE`. A session that is open is not deleted.
///
/// Exit code: 0 done, 1 if a session could not be deleted, 2 wrong usage.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aside sessions prune --older-than 90d --dry-run
  aside sessions prune --older-than 2026-01-01")]
pub(crate) struct Arguments {
    /// Delete sessions that were last used before then: 90d, 12h, 2026-01-01
    #[arg(long, value_name = "T")]
    older_than: String,

    /// Only print what would be deleted
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let before = parse_cutoff(&arguments.older_than)?;
    let store = &session_recorder::open_writable_store(&UserFolders::from_environment())?;
    let sessions = store.sessions(usize::MAX).map_err(|error| session_recorder::store_error(&error))?;
    let (mut deleted, mut failed) = (0, 0);
    let mut out = output::stdout();
    for session in sessions.iter().filter(|session| session.changed < before) {
        let result = match arguments.dry_run {
            true => "would delete",
            false => match store.delete(&session.id) {
                Ok(()) => "deleted",
                Err(error) => {
                    failed += 1;
                    print_notice(&format!("{} is kept: {error}", session.id));
                    "failed"
                }
            },
        };
        deleted += u64::from(result == "deleted");
        writeln!(out, "{result} {} {}", session.id, terminal_safe_line(session.title.as_deref().unwrap_or("")))?;
    }
    out.flush()?;
    if arguments.dry_run {
        return Ok(ExitStatus::Done);
    }
    print_notice(&summary(store, deleted));
    Ok(if failed > 0 { ExitStatus::ProviderFailed } else { ExitStatus::Done })
}

/// Shrinks the file after sessions were deleted, and says what was done.
fn summary(store: &SqliteStore, deleted: u64) -> String {
    if deleted == 0 {
        return "no session was deleted".to_owned();
    }
    let deleted = format!("deleted {}", counted(deleted, "session"));
    let size = store.n_bytes();
    match store.shrink() {
        Ok(()) => {
            format!("{deleted}; the database shrank from {} to {}", bytes_text(size), bytes_text(store.n_bytes()))
        }
        Err(error) => format!("{deleted}; the database keeps its size of {} for now: {error}", bytes_text(size)),
    }
}

/// The time before which sessions are deleted.
fn parse_cutoff(word: &str) -> Result<Time, HintedError> {
    let hint = "an age such as 90d or 12h, or a date such as 2026-01-01";
    let now = session_recorder::now();
    match times::parse(word, now) {
        // Elsewhere `m` is minutes. Whoever means months must not lose everything.
        Some(_) if word.ends_with('m') => {
            Err(HintedError::new(format!("`{word}` could mean months or minutes, so nothing was deleted")).hint(hint))
        }
        Some(time) if time > now => Err(HintedError::new(format!("`{word}` is in the future")).hint(hint)),
        Some(time) => Ok(time),
        None => Err(HintedError::new(format!("`{word}` is not a time")).hint(hint)),
    }
}
