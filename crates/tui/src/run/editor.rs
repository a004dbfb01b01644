//! Runs the user's editor on a private temporary file.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Used if neither variable is set.
const FALLBACK_EDITOR: &str = "vi";

/// Opens the text in `$VISUAL`, or else `$EDITOR`, and returns the edited text. The editor owns the
/// terminal in the meantime.
pub fn edit(text: &str) -> io::Result<String> {
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let editor = named("VISUAL").or_else(|| named("EDITOR")).unwrap_or_else(|| FALLBACK_EDITOR.to_owned());
    edit_with(&editor, text)
}

/// While the editor runs, typed keys and signals belong to it.
static EDITOR_RUNNING: AtomicBool = AtomicBool::new(false);

pub fn is_editor_running() -> bool {
    EDITOR_RUNNING.load(Ordering::Relaxed)
}

/// Suspends the whole job when the editor suspends itself; otherwise nothing could resume it. Does
/// nothing without a job-control shell.
pub fn suspend_with_editor() {
    #[cfg(unix)]
    {
        use rustix::process::{Signal, getpgrp, getsid, kill_current_process_group};
        if getsid(None).is_ok_and(|session| session != getpgrp()) {
            kill_current_process_group(Signal::STOP).ok();
        }
    }
}

fn edit_with(editor: &str, text: &str) -> io::Result<String> {
    let draft = DraftFile::new(text)?;
    EDITOR_RUNNING.store(true, Ordering::Relaxed);
    let status = command(editor, &draft).status();
    EDITOR_RUNNING.store(false, Ordering::Relaxed);
    let status = status.map_err(|error| io::Error::other(format!("cannot run `{editor}`: {error}")))?;
    if !status.success() {
        return Err(io::Error::other(format!("`{editor}` failed ({status}); set VISUAL or EDITOR to another")));
    }
    // The file may not be UTF-8, but it is the only copy.
    let edited = std::fs::read(&draft.0)?;
    Ok(String::from_utf8_lossy(&edited).trim_end_matches('\n').to_owned())
}

/// The editor may include arguments, as in `code --wait`.
#[cfg(unix)]
fn command(editor: &str, draft: &DraftFile) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(&draft.0);
    command
}

#[cfg(not(unix))]
fn command(editor: &str, draft: &DraftFile) -> Command {
    let mut words = editor.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(editor));
    command.args(words).arg(&draft.0);
    command
}

/// A temporary file, removed when dropped.
struct DraftFile(PathBuf);

impl DraftFile {
    fn new(text: &str) -> io::Result<DraftFile> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let path = std::env::temp_dir().join(format!("aside-{}-{now}.md", std::process::id()));
        let mut options = OpenOptions::new();
        // Never open a file that somebody else put there.
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path)?;
        let draft = DraftFile(path);
        file.write_all(text.as_bytes())?;
        Ok(draft)
    }
}

impl Drop for DraftFile {
    fn drop(&mut self) {
        // If this fails, the file stays in the temporary folder, readable by the user only.
        std::fs::remove_file(&self.0).ok();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn t10_the_editor_gets_a_private_file_and_its_result_is_returned() {
        // The fake editor writes the file's mode, path and content.
        let editor = r#"f() { { stat -c %a "$1"; echo "$1"; cat "$1"; } >"$1.new" && mv "$1.new" "$1"; }; f"#;
        let edited = edit_with(editor, "two\nlines").unwrap();
        let lines: Vec<&str> = edited.lines().collect();
        let [mode, path, first, second] = lines[..] else { panic!("{lines:?}") };
        assert_eq!((mode, first, second), ("600", "two", "lines"));
        assert!(!std::path::Path::new(path).exists(), "nothing is left behind");
    }

    #[test]
    fn t10_a_failing_editor_is_reported() {
        for (editor, expected) in [("exit 3 #", "`exit 3 #` failed"), ("no-such-editor-here", "failed")] {
            let error = edit_with(editor, "kept").unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("VISUAL"), "{editor}: {error}");
        }
    }
}
