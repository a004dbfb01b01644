//! Export and import of conversations: as JSON lines, as Markdown, and from the
//! files of other programs. Text in, text out; nothing here opens a file.

mod databases;
mod json_lines;
mod markdown;
mod other_programs;
mod program;

use std::collections::BTreeMap;
use std::fmt;

pub use databases::{DatabaseLayout, TableRows, database_layouts};
pub use json_lines::{OpaqueData, without_opaque, write_lines};
pub(crate) use json_lines::{message_json, write_message};
pub use markdown::{ThinkingMarkup, left_out_of_markdown, read_markdown, write_markdown};
pub use other_programs::imported_from;
pub use program::{ImportSource, Program};

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
    /// A session of another program.
    Session(Program),
}

impl fmt::Display for ImportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportKind::JsonLines => f.write_str("a conversation as JSON lines"),
            ImportKind::Markdown => f.write_str("a conversation as Markdown"),
            ImportKind::Session(program) => write!(f, "a session of {program}"),
        }
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
    /// How many records of each kind were passed over.
    pub passed_over: BTreeMap<String, usize>,
    /// The program and session that it comes from. None for our own formats.
    pub source: Option<ImportSource>,
}

impl Imported {
    /// The notes, with a sentence for each kind of record that was passed over.
    pub fn all_notes(&self) -> Vec<String> {
        let passed_over = self.passed_over.iter().map(|(kind, count)| format!("passed over: {kind}, {count} times"));
        self.notes.iter().cloned().chain(passed_over).collect()
    }
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
    /// A database holds many sessions.
    #[error("this is a database, not one session")]
    Database,
    /// Several files were given for a format that uses one.
    #[error("several files are one session only for OpenCode; {name} is {kind}")]
    OneAtATime {
        /// The name of one of the files.
        name: String,
        /// The format of that file.
        kind: ImportKind,
    },
    /// The file belongs to another program.
    #[error("this is {kind}, not {expected}")]
    OtherKind {
        /// What the file is.
        kind: ImportKind,
        /// What it should be.
        expected: ImportKind,
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
                "supported are a conversation as JSON lines or as Markdown, session files of Claude Code, Codex, \
                 Gemini CLI, pi and goose, what `opencode export` prints, and the files of an OpenCode before 1.2; \
                 `aside sessions import --from PROGRAM` finds the sessions of a program, in databases too",
            ),
            ImportError::Database => {
                Some("name the program that wrote it: `aside sessions import --from opencode FILE`, or goose, or llm")
            }
            ImportError::OneAtATime { .. } => Some("import one file after another"),
            ImportError::OtherKind { .. } => Some("name the right program after --from, or import the file without it"),
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
        return Err(ImportError::Database);
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
    if has("sessionId") && has("projectHash") && has("messages") {
        return Some(ImportKind::Session(Program::GeminiCli));
    }
    let is_stored = has("sessionID") || has("messageID") || (has("time.created") && (has("title") || has("role")));
    if (has("info") && member(raw, "messages").is_some_and(|list| list.kind() == JsonKind::Array)) || is_stored {
        return Some(ImportKind::Session(Program::OpenCode));
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
            Some(ImportKind::Session(Program::Codex))
        }
        // Items without an envelope are from old files.
        Some("reasoning") if has("summary") => Some(ImportKind::Session(Program::Codex)),
        Some("function_call") if has("call_id") => Some(ImportKind::Session(Program::Codex)),
        Some("message") if ["\"input_text\"", "\"output_text\""].iter().any(|kind| raw.get().contains(kind)) => {
            Some(ImportKind::Session(Program::Codex))
        }
        // The headers of the newer programs, then their messages.
        Some("session") if has("cwd") => Some(ImportKind::Session(Program::Pi)),
        Some("message") if has("parentId") && has("message") => Some(ImportKind::Session(Program::Pi)),
        Some("user" | "assistant" | "system") if has("message") || has("uuid") => {
            Some(ImportKind::Session(Program::ClaudeCode))
        }
        Some("summary") if has("leafUuid") => Some(ImportKind::Session(Program::ClaudeCode)),
        Some("user" | "gemini") if has("content") && has("timestamp") => Some(ImportKind::Session(Program::GeminiCli)),
        None if has("sessionId") && has("projectHash") => Some(ImportKind::Session(Program::GeminiCli)),
        None if has("working_dir") && has("message_count") => Some(ImportKind::Session(Program::Goose)),
        None if has("role") && has("created") && has("content") => Some(ImportKind::Session(Program::Goose)),
        Some(_) | None => None,
    }
}

/// Imports one conversation of any kind.
pub fn import(files: &[ImportFile<'_>], dialects: &Dialects) -> Result<Imported, ImportError> {
    let Some(first) = files.first() else { return Err(ImportError::unknown("")) };
    let kind = match detect_kind(first.text) {
        // Database rows contain no ids; their file names do.
        Err(ImportError::Unknown { .. }) if files.len() > 1 => ImportKind::Session(Program::OpenCode),
        detected => detected?,
    };
    if files.len() > 1 && kind != ImportKind::Session(Program::OpenCode) {
        return Err(ImportError::OneAtATime { name: first.name.to_owned(), kind });
    }
    let text = first.text.trim_start_matches('\u{feff}');
    match kind {
        ImportKind::JsonLines => Ok(Imported { conversation: Conversation::parse(text)?, ..Imported::default() }),
        ImportKind::Markdown => read_markdown(text),
        ImportKind::Session(program) => {
            let mut imported = read_session(program, files, dialects)?;
            other_programs::finish(&mut imported, dialects);
            Ok(imported)
        }
    }
}

/// Imports one session of a program. What the files do not say about the session
/// is taken from `known`, for example from the names of their folders.
pub fn import_session(
    files: &[ImportFile<'_>],
    known: &ImportSource,
    dialects: &Dialects,
) -> Result<Imported, ImportError> {
    let text = files.first().map_or("", |file| file.text);
    let detected = detect_kind(text);
    let expected = ImportKind::Session(known.program);
    if let Ok(kind) = detected
        && kind != expected
    {
        return Err(ImportError::OtherKind { kind, expected });
    }
    let mut imported = match (read_session(known.program, files, dialects), detected) {
        // A session without messages is not a session, whatever the file is.
        (Err(ImportError::Empty(_)), Err(unknown)) if !is_json_object(text) => return Err(unknown),
        (read, _) => read?,
    };
    if let Some(source) = &mut imported.source {
        source.session = source.session.take().or_else(|| known.session.clone());
        source.folder = source.folder.take().or_else(|| known.folder.clone());
    }
    other_programs::finish(&mut imported, dialects);
    Ok(imported)
}

/// Whether the text begins with a JSON object, on one line or on several.
fn is_json_object(text: &str) -> bool {
    let object = |text: &str| Raw::of(text).is_ok_and(|raw| raw.kind() == JsonKind::Object);
    text.lines().find(|line| !line.trim().is_empty()).is_some_and(object) || object(text)
}

fn read_session(program: Program, files: &[ImportFile<'_>], dialects: &Dialects) -> Result<Imported, ImportError> {
    let text = files.first().map_or("", |file| file.text).trim_start_matches('\u{feff}');
    match program {
        Program::ClaudeCode => other_programs::read_claude_code(text, dialects),
        Program::Codex => other_programs::read_codex(text, dialects),
        Program::OpenCode => other_programs::read_opencode(files, dialects),
        Program::GeminiCli => other_programs::read_gemini_cli(text, dialects),
        Program::Pi => other_programs::read_pi(text, dialects),
        Program::Goose => other_programs::read_goose(text, dialects),
        // Its sessions are in a database only.
        Program::Llm => Err(ImportError::unknown(text)),
    }
}

/// Imports one session from the rows of a program's database, see
/// [`database_layouts`].
pub fn import_rows(program: Program, tables: &[TableRows], dialects: &Dialects) -> Result<Imported, ImportError> {
    let mut imported = match program {
        Program::OpenCode => other_programs::read_opencode_rows(tables, dialects)?,
        Program::Goose => other_programs::read_goose_rows(tables, dialects)?,
        Program::Llm => other_programs::read_llm_rows(tables, dialects)?,
        Program::ClaudeCode | Program::Codex | Program::GeminiCli | Program::Pi => {
            return Err(ImportError::Empty(ImportKind::Session(program)));
        }
    };
    other_programs::finish(&mut imported, dialects);
    Ok(imported)
}
