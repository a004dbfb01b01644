//! Conversations that leave and come back: as JSON lines, as Markdown, and
//! from the files of other programs. Text in, text out; nobody here opens a
//! file.

mod lines;
mod markdown;
mod others;

use std::fmt;

pub use lines::{Opaque, without_opaque, write_lines};
pub use markdown::{ThinkingAs, left_out_of_markdown, read_markdown, write_markdown};

use crate::conversation::{Conversation, ConversationError};
use crate::dialect::Dialects;
use crate::wire::json::{Kind as Json, Raw, at_path, member, text_member};

/// What can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Lines,
    Markdown,
    ClaudeCode,
    Codex,
    OpenCode,
}

impl Kind {
    pub const ALL: [Kind; 5] = [Kind::Lines, Kind::Markdown, Kind::ClaudeCode, Kind::Codex, Kind::OpenCode];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Lines => "a conversation as JSON lines",
            Kind::Markdown => "a conversation as Markdown",
            Kind::ClaudeCode => "a session of Claude Code",
            Kind::Codex => "a session of Codex",
            Kind::OpenCode => "a session of OpenCode",
        })
    }
}

/// A named text; core reads no files. Most sessions are one file.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    /// With its folders: some programs say there what is in it.
    pub name: &'a str,
    pub text: &'a str,
}

/// A conversation from elsewhere.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Imported {
    pub conversation: Conversation,
    /// What did not come along, and what was guessed.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    #[error("this is nothing that can be imported: {found}")]
    Unknown { found: String },
    #[error("several files are one session only for OpenCode; {name} is {kind}")]
    OneAtATime { name: String, kind: Kind },
    #[error("nothing was said in this file; it looks like {0}")]
    Empty(Kind),
    #[error(transparent)]
    Lines(#[from] ConversationError),
}

impl ImportError {
    fn unknown(text: &str) -> ImportError {
        let start: String = text.trim_start().chars().take(60).filter(|c| !c.is_control()).collect();
        let found = if start.is_empty() { "it is empty".to_owned() } else { format!("it begins with `{start}`") };
        ImportError::Unknown { found }
    }

    /// What could be done about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ImportError::Unknown { .. } => Some(
                "read are: a conversation as JSON lines or as Markdown, a session of Claude Code \
                 (~/.claude/projects/…/*.jsonl) or of Codex (~/.codex/sessions/…/rollout-*.jsonl), \
                 what `opencode export` prints, or the files of an OpenCode before 1.2 (storage/…)",
            ),
            ImportError::OneAtATime { .. } => Some("import one file after another"),
            ImportError::Empty(_) | ImportError::Lines(_) => None,
        }
    }
}

/// What a text is, told by what is in it.
pub fn describe(text: &str) -> Result<Kind, ImportError> {
    let bare = text.trim_start_matches('\u{feff}');
    if markdown::OPENING.iter().zip(bare.lines()).filter(|(ours, line)| *ours == line).count() == 2 {
        return Ok(Kind::Markdown);
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
    // A first line may be one that says nothing; a last one may be cut off.
    let lines = bare.lines().filter_map(|line| Raw::of(line).ok());
    lines.filter_map(kind_of_line).next().ok_or_else(|| ImportError::unknown(bare))
}

/// A text that is one value, laid out in any way.
fn kind_of_object(raw: Raw<'_>) -> Option<Kind> {
    let has = |path: &str| at_path(raw, path).is_some();
    let is_stored = has("sessionID") || has("messageID") || (has("time.created") && (has("title") || has("role")));
    if (has("info") && member(raw, "messages").is_some_and(|list| list.kind() == Json::Array)) || is_stored {
        return Some(Kind::OpenCode);
    }
    kind_of_line(raw)
}

/// What one line gives away, if it does.
fn kind_of_line(raw: Raw<'_>) -> Option<Kind> {
    let has = |name: &str| member(raw, name).is_some();
    let kind = text_member(raw, "type");
    match kind.as_deref() {
        _ if has("aside") || (has("role") && has("blocks")) => Some(Kind::Lines),
        Some("session_meta" | "response_item" | "event_msg" | "turn_context" | "compacted") if has("payload") => {
            Some(Kind::Codex)
        }
        // An item without its envelope: an old file.
        Some("reasoning") if has("summary") => Some(Kind::Codex),
        Some("function_call") if has("call_id") => Some(Kind::Codex),
        Some("message") if ["\"input_text\"", "\"output_text\""].iter().any(|kind| raw.get().contains(kind)) => {
            Some(Kind::Codex)
        }
        Some("user" | "assistant" | "system") if has("message") || has("uuid") => Some(Kind::ClaudeCode),
        Some("summary") if has("leafUuid") => Some(Kind::ClaudeCode),
        Some(_) | None => None,
    }
}

/// Reads one conversation, whatever program wrote it.
pub fn import(files: &[File<'_>], dialects: &Dialects) -> Result<Imported, ImportError> {
    let Some(first) = files.first() else { return Err(ImportError::unknown("")) };
    let kind = match describe(first.text) {
        // Rows of a database have no ids in them; their names do.
        Err(_) if files.len() > 1 => Kind::OpenCode,
        told => told?,
    };
    if files.len() > 1 && kind != Kind::OpenCode {
        return Err(ImportError::OneAtATime { name: first.name.to_owned(), kind });
    }
    let text = first.text.trim_start_matches('\u{feff}');
    let mut imported = match kind {
        Kind::Lines => return Ok(Imported { conversation: Conversation::parse(text)?, notes: Vec::new() }),
        Kind::Markdown => return read_markdown(text),
        Kind::ClaudeCode => others::read_claude_code(text, dialects)?,
        Kind::Codex => others::read_codex(text, dialects)?,
        Kind::OpenCode => others::read_opencode(files, dialects)?,
    };
    others::tell_bound_seals(&mut imported, dialects);
    Ok(imported)
}
