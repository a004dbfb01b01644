//! The user's own editor, on a file that nobody else can read.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// What is run if nobody said.
const FALLBACK: &str = "vi";

/// Opens the text in `$VISUAL`, else `$EDITOR`, and returns what is left in
/// the file. The terminal is the editor's until then.
pub fn edit(text: &str) -> io::Result<String> {
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let editor = named("VISUAL").or_else(|| named("EDITOR")).unwrap_or_else(|| FALLBACK.to_owned());
    edit_with(&editor, text)
}

/// An editor has the terminal: what is typed there is not for us.
static LENT: AtomicBool = AtomicBool::new(false);

pub fn is_lent() -> bool {
    LENT.load(Ordering::Relaxed)
}

/// An editor that stops itself stops the whole job, else nobody could wake it.
/// Without a shell that made a job of us, nothing stops.
pub fn stop_with_the_editor() {
    #[cfg(unix)]
    {
        use rustix::process::{Signal, getpgrp, getsid, kill_current_process_group};
        if getsid(None).is_ok_and(|session| session != getpgrp()) {
            kill_current_process_group(Signal::STOP).ok();
        }
    }
}

fn edit_with(editor: &str, text: &str) -> io::Result<String> {
    let draft = Draft::new(text)?;
    LENT.store(true, Ordering::Relaxed);
    let status = command(editor, &draft).status();
    LENT.store(false, Ordering::Relaxed);
    let status = status.map_err(|error| io::Error::other(format!("cannot run `{editor}`: {error}")))?;
    if !status.success() {
        return Err(io::Error::other(format!("`{editor}` failed ({status}); set VISUAL or EDITOR to another")));
    }
    // In whatever letters it was saved, it is the only copy.
    let edited = std::fs::read(&draft.0)?;
    Ok(String::from_utf8_lossy(&edited).trim_end_matches('\n').to_owned())
}

/// An editor may be named with arguments: `code --wait`.
#[cfg(unix)]
fn command(editor: &str, draft: &Draft) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(&draft.0);
    command
}

#[cfg(not(unix))]
fn command(editor: &str, draft: &Draft) -> Command {
    let mut words = editor.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(editor));
    command.args(words).arg(&draft.0);
    command
}

/// A file of our own, gone with this value.
struct Draft(PathBuf);

impl Draft {
    fn new(text: &str) -> io::Result<Draft> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let path = std::env::temp_dir().join(format!("aside-{}-{now}.md", std::process::id()));
        let mut options = OpenOptions::new();
        // Never a file that somebody put there before us.
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path)?;
        let draft = Draft(path);
        file.write_all(text.as_bytes())?;
        Ok(draft)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // What is left behind is in the folder for such things, and ours alone.
        std::fs::remove_file(&self.0).ok();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn t10_the_editor_gets_the_text_in_a_file_of_our_own_and_its_result_comes_back() {
        // It writes the mode of the file, its name and what was in it.
        let editor = r#"f() { { stat -c %a "$1"; echo "$1"; cat "$1"; } >"$1.new" && mv "$1.new" "$1"; }; f"#;
        let edited = edit_with(editor, "two\nlines").unwrap();
        let lines: Vec<&str> = edited.lines().collect();
        let [mode, path, first, second] = lines[..] else { panic!("{lines:?}") };
        assert_eq!((mode, first, second), ("600", "two", "lines"));
        assert!(!std::path::Path::new(path).exists(), "nothing is left behind");
    }

    #[test]
    fn t10_an_editor_that_fails_says_so() {
        for (editor, expected) in [("exit 3 #", "`exit 3 #` failed"), ("no-such-editor-here", "failed")] {
            let error = edit_with(editor, "kept").unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("VISUAL"), "{editor}: {error}");
        }
    }
}
