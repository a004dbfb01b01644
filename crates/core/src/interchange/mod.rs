//! Export and import of conversations: as JSON lines, as Markdown, and from the
//! files of other programs. Text in, text out; nothing here opens a file.

mod json_lines;
mod markdown;
mod other_programs;

use std::fmt;

pub(crate) use json_lines::message_json;
pub use json_lines::{OpaqueData, without_opaque, write_lines};
pub use markdown::{ThinkingMarkup, left_out_of_markdown, read_markdown, write_markdown};

use crate::conversation::{Conversation, ConversationError};
use crate::dialect::Dialects;
use crate::json_text::{JsonKind, Raw, at_path, member, text_member};

/// The kinds of files that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportKind {
    /// Our own format, see [`Conversation::parse`].
    JsonLines,
    /// What [`write_markdown`] writes.
    Markdown,
    /// A session of Claude Code, as JSON lines.
    ClaudeCode,
    /// A session of Codex, as JSON lines.
    Codex,
    /// What `opencode export` writes, or the files that older versions of
    /// OpenCode stored.
    OpenCode,
}

impl ImportKind {
    /// All kinds, in the order of help texts.
    pub const ALL: [ImportKind; 5] =
        [ImportKind::JsonLines, ImportKind::Markdown, ImportKind::ClaudeCode, ImportKind::Codex, ImportKind::OpenCode];
}

impl fmt::Display for ImportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ImportKind::JsonLines => "a conversation as JSON lines",
            ImportKind::Markdown => "a conversation as Markdown",
            ImportKind::ClaudeCode => "a session of Claude Code",
            ImportKind::Codex => "a session of Codex",
            ImportKind::OpenCode => "a session of OpenCode",
        })
    }
}

/// A text with its file name. Core does not read files. Most sessions are one
/// file.
#[derive(Debug, Clone, Copy)]
pub struct ImportFile<'a> {
    /// Including its folders, since some programs store information there.
    pub name: &'a str,
    /// The contents of the file.
    pub text: &'a str,
}

/// An imported conversation.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Imported {
    /// The messages with their branches.
    pub conversation: Conversation,
    /// What was left out, and what was guessed.
    pub notes: Vec<String>,
}

/// Files that cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// No known format.
    #[error("this cannot be imported: {found}")]
    Unknown {
        /// How the file begins, in words.
        found: String,
    },
    /// Several files were given for a format that uses one.
    #[error("several files are one session only for OpenCode; {name} is {kind}")]
    OneAtATime {
        /// The name of one of the files.
        name: String,
        /// The format of that file.
        kind: ImportKind,
    },
    /// The format is known, but there is no message.
    #[error("this file contains no messages; it looks like {0}")]
    Empty(ImportKind),
    /// A line of our own format is broken.
    #[error(transparent)]
    Lines(#[from] ConversationError),
}

impl ImportError {
    fn unknown(text: &str) -> ImportError {
        let start: String = text.trim_start().chars().take(60).filter(|c| !c.is_control()).collect();
        let found = if start.is_empty() { "it is empty".to_owned() } else { format!("it begins with `{start}`") };
        ImportError::Unknown { found }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ImportError::Unknown { .. } => Some(
                "supported are a conversation as JSON lines or as Markdown, a session of Claude Code \
                 (~/.claude/projects/…/*.jsonl) or of Codex (~/.codex/sessions/…/rollout-*.jsonl), \
                 what `opencode export` prints, or the files of an OpenCode before 1.2 (storage/…)",
            ),
            ImportError::OneAtATime { .. } => Some("import one file after another"),
            ImportError::Empty(_) | ImportError::Lines(_) => None,
        }
    }
}

/// Detects the kind of a text from its content.
pub fn detect_kind(text: &str) -> Result<ImportKind, ImportError> {
    let bare = text.trim_start_matches('\u{feff}');
    if markdown::OPENING.iter().zip(bare.lines()).filter(|(ours, line)| *ours == line).count() == 2 {
        return Ok(ImportKind::Markdown);
    }
    if bare.starts_with("SQLite format 3") {
        let found = "it is a database; let its own program write the session out (`opencode export`)".to_owned();
        return Err(ImportError::Unknown { found });
    }
    if let Ok(whole) = Raw::of(bare)
        && let Some(kind) = kind_of_object(whole)
    {
        return Ok(kind);
    }
    // The first line may be inconclusive, and the last one truncated.
    let lines = bare.lines().filter_map(|line| Raw::of(line).ok());
    lines.filter_map(kind_of_line).next().ok_or_else(|| ImportError::unknown(bare))
}

/// Detects the kind of a text that is a single JSON value.
fn kind_of_object(raw: Raw<'_>) -> Option<ImportKind> {
    let has = |path: &str| at_path(raw, path).is_some();
    let is_stored = has("sessionID") || has("messageID") || (has("time.created") && (has("title") || has("role")));
    if (has("info") && member(raw, "messages").is_some_and(|list| list.kind() == JsonKind::Array)) || is_stored {
        return Some(ImportKind::OpenCode);
    }
    kind_of_line(raw)
}

/// Detects the kind from one line, if it is conclusive.
fn kind_of_line(raw: Raw<'_>) -> Option<ImportKind> {
    let has = |name: &str| member(raw, name).is_some();
    let kind = text_member(raw, "type");
    match kind.as_deref() {
        _ if has("aside") || (has("role") && has("blocks")) => Some(ImportKind::JsonLines),
        Some("session_meta" | "response_item" | "event_msg" | "turn_context" | "compacted") if has("payload") => {
            Some(ImportKind::Codex)
        }
        // Items without an envelope are from old files.
        Some("reasoning") if has("summary") => Some(ImportKind::Codex),
        Some("function_call") if has("call_id") => Some(ImportKind::Codex),
        Some("message") if ["\"input_text\"", "\"output_text\""].iter().any(|kind| raw.get().contains(kind)) => {
            Some(ImportKind::Codex)
        }
        Some("user" | "assistant" | "system") if has("message") || has("uuid") => Some(ImportKind::ClaudeCode),
        Some("summary") if has("leafUuid") => Some(ImportKind::ClaudeCode),
        Some(_) | None => None,
    }
}

/// Imports one conversation of any kind.
pub fn import(files: &[ImportFile<'_>], dialects: &Dialects) -> Result<Imported, ImportError> {
    let Some(first) = files.first() else { return Err(ImportError::unknown("")) };
    let kind = match detect_kind(first.text) {
        // Database rows contain no ids; their file names do.
        Err(_) if files.len() > 1 => ImportKind::OpenCode,
        detected => detected?,
    };
    if files.len() > 1 && kind != ImportKind::OpenCode {
        return Err(ImportError::OneAtATime { name: first.name.to_owned(), kind });
    }
    let text = first.text.trim_start_matches('\u{feff}');
    let mut imported = match kind {
        ImportKind::JsonLines => return Ok(Imported { conversation: Conversation::parse(text)?, notes: Vec::new() }),
        ImportKind::Markdown => return read_markdown(text),
        ImportKind::ClaudeCode => other_programs::read_claude_code(text, dialects)?,
        ImportKind::Codex => other_programs::read_codex(text, dialects)?,
        ImportKind::OpenCode => other_programs::read_opencode(files, dialects)?,
    };
    other_programs::note_bound_seals(&mut imported, dialects);
    Ok(imported)
}
