//! `aside sessions`: lists, shows, exports, imports, deletes and prunes sessions.

use std::io::Write;
use std::path::{Path, PathBuf};

use aside_core::block::{Arguments as CallArguments, Block, Thinking};
use aside_core::interchange::{OpaqueData, ThinkingMarkup, write_lines, write_markdown};
use aside_core::json_text::split_within;
use aside_core::message::{Message, Role};
use aside_core::safe_json;
use aside_core::terminal_text::terminal_safe_line;
use aside_session::UserFolders;
use aside_session::session_recorder;
use aside_session::stored_session::{self, FoundSession, ResumedSession, SessionChoice};
use aside_session::times;
use aside_session::{HintedError, SessionId};
use aside_store::{SqliteStore, Store};
use clap::{Subcommand, ValueEnum};
use serde_json::json;

use crate::ExitStatus;
use crate::import_sessions;
use crate::output;
use crate::prune_sessions;
use crate::report::print_notice;
use aside_core::counted::counted;

/// List, show, export, import, delete and prune sessions
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: SessionsCommand,
}

#[derive(Debug, Subcommand)]
enum SessionsCommand {
    /// List sessions: this folder's first, then others with their folder; the most recently
    /// used first
    List {
        /// The maximum number of sessions
        #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
        most: usize,
        /// Print JSON, one object per line
        #[arg(long)]
        json: bool,
    },
    /// Print a transcript, with thinking folded to one line
    Show {
        /// The session: its id, title, or the beginning of either; by default the last one
        #[arg(value_name = "ID")]
        id: Option<String>,
        /// Show thinking in full, fold it, or leave it out
        #[arg(long, value_enum, default_value_t = ThinkingView::Folded, value_name = "VIEW")]
        thinking: ThinkingView,
    },
    /// Write a session as Markdown or as JSON lines
    #[command(after_help = "JSON lines hold everything, in all branches, and read back equal. Markdown
is for reading: the current branch, without signatures and encrypted payloads.")]
    Export {
        /// The session: its id, title, or the beginning of either; by default the last one
        #[arg(value_name = "ID")]
        id: Option<String>,
        #[arg(long, value_enum, default_value_t = ExportFormat::Markdown, value_name = "FORMAT")]
        format: ExportFormat,
        /// How Markdown shows thinking
        #[arg(long, value_enum, default_value_t = MarkdownThinking::Callout, value_name = "SHAPE")]
        thinking: MarkdownThinking,
        /// Leave signatures and encrypted payloads out of JSON lines
        #[arg(long)]
        no_opaque: bool,
        /// Write to this file instead of standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    Import(import_sessions::Arguments),
    /// Delete a session permanently
    Delete {
        /// Its id, title, or the beginning of either
        #[arg(value_name = "ID")]
        id: String,
    },
    Prune(prune_sessions::Arguments),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ThinkingView {
    Full,
    Folded,
    Omit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    Markdown,
    Jsonl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MarkdownThinking {
    /// A folded `> [!thinking]-` callout
    Callout,
    /// A `<details>` element
    Details,
    Omit,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    match &arguments.action {
        SessionsCommand::List { most, json } => list(*most, *json)?,
        SessionsCommand::Show { id, thinking } => show(id.as_deref(), *thinking)?,
        SessionsCommand::Export { id, format, thinking, no_opaque, output } => {
            let text = export_text(id.as_deref(), *format, *thinking, *no_opaque)?;
            write(&text, output.as_deref())?;
        }
        SessionsCommand::Import(arguments) => return import_sessions::run(arguments),
        SessionsCommand::Delete { id } => delete(id)?,
        SessionsCommand::Prune(arguments) => return prune_sessions::run(arguments),
    }
    Ok(ExitStatus::Done)
}

/// The named session, else the last one.
fn read_session(id: Option<&str>) -> Result<ResumedSession, HintedError> {
    let store = session_recorder::open_store(&UserFolders::from_environment())?;
    let choice = id.map_or(SessionChoice::LastAnywhere, |id| SessionChoice::Named(id.to_owned()));
    match stored_session::find_session(&store, &choice, &crate::working_directory()?)? {
        FoundSession::Stored(id) => stored_session::read(&store, id),
        FoundSession::NoneHere(none) => Err(none.error()),
        FoundSession::New => Err(HintedError::new("no session was named")),
    }
}

fn list(most: usize, as_json: bool) -> anyhow::Result<()> {
    let store = session_recorder::open_store(&UserFolders::from_environment())?;
    let root = stored_session::session_folder(&crate::working_directory()?).root;
    let sessions = store.sessions_by_folder(&root, most).map_err(|error| session_recorder::store_error(&error))?;
    let mut out = output::stdout();
    if sessions.is_empty() && !as_json {
        print_notice("there is no session yet; aside ask begins one");
    }
    let ids: Vec<&SessionId> = sessions.iter().map(|session| &session.id).collect();
    let lengths = store.branch_lengths(&ids).map_err(|error| session_recorder::store_error(&error))?;
    for (session, length) in sessions.iter().zip(lengths) {
        let messages = length.n_messages;
        let id = session.id.as_str();
        let title = session.title.as_deref().unwrap_or("");
        let model = session.model.as_deref().unwrap_or("");
        if as_json {
            let (created, changed) = (times::rfc3339(session.created), times::rfc3339(session.changed));
            let folder = session.folder.as_ref().map(|folder| folder.path.as_str());
            let line = json!({ "id": id, "title": title, "model": model, "messages": messages, "created": created, "changed": changed, "folder": folder });
            writeln!(out, "{}", safe_json::to_string(&line))?;
        } else {
            let changed = times::local(session.changed);
            let folder = stored_session::other_folder(session, &root);
            let folder = folder.map(|folder| format!("  (in {})", terminal_safe_line(folder)));
            writeln!(
                out,
                "{id}  {changed}  {messages:>5}  {:<28} {}{}",
                terminal_safe_line(model),
                terminal_safe_line(title),
                folder.unwrap_or_default()
            )?;
        }
    }
    Ok(())
}

fn show(id: Option<&str>, view: ThinkingView) -> anyhow::Result<()> {
    let resumed = read_session(id)?;
    let mut out = output::stdout();
    for (_, message) in resumed.conversation.history.branch() {
        out.write_all(transcript(message, view).as_bytes())?;
    }
    Ok(())
}

/// One message of the transcript.
fn transcript(message: &Message, view: ThinkingView) -> String {
    let mut out = String::new();
    for block in &message.blocks {
        match (block, message.role) {
            (Block::Text(_), Role::System) => (),
            (Block::Text(text), Role::User) => {
                for line in text.text.lines() {
                    out.push_str(&format!("> {line}\n"));
                }
                out.push('\n');
            }
            (Block::Text(text), _) if !text.text.trim().is_empty() => {
                out.push_str(&format!("{}\n\n", text.text.trim()))
            }
            (Block::Thinking(thinking), _) => out.push_str(&thinking_summary(thinking, view)),
            (Block::ToolCall(call), _) => {
                let (CallArguments::Json(text) | CallArguments::Broken(text)) = &call.arguments;
                out.push_str(&format!("→ {} {text}\n", call.name));
            }
            (Block::ToolResult(result), _) => {
                let mark = if result.is_error { '✗' } else { '✓' };
                out.push_str(&format!(
                    "{mark} {}: {}\n\n",
                    result.name,
                    counted(result.described().lines().count() as u64, "line")
                ));
            }
            (Block::Media(media), _) => out.push_str(&format!("{}\n\n", media.describe())),
            (Block::Unmodelled(_), _) => out.push_str("[something aside does not know; kept]\n\n"),
            (Block::Text(_), _) => (),
        }
    }
    if message.interrupted {
        out.push_str("(interrupted)\n\n");
    }
    out
}

fn thinking_summary(thinking: &Thinking, view: ThinkingView) -> String {
    let took = thinking.span.map(|span| span.ended.0.saturating_sub(span.started.0) / 1000);
    let took = took.map_or(String::new(), |seconds| format!(" for {seconds}s"));
    if view == ThinkingView::Omit {
        return String::new();
    }
    if thinking.text().trim().is_empty() {
        return format!("▶ Thought{took} · hidden by provider\n\n");
    }
    if view == ThinkingView::Folded {
        let title = thinking.summary().find_map(|item| item.title);
        let summary = title.map_or_else(|| format!("\"{}\"", first_words(thinking.text())), str::to_owned);
        return format!("▶ Thought{took} · {summary}\n\n");
    }
    let lines: String = thinking.text().lines().map(|line| format!("│ {line}\n")).collect();
    format!("▼ Thought{took}\n{lines}\n")
}

/// About forty characters, cut at a word boundary.
fn first_words(text: &str) -> String {
    let (text, _) = split_within(text.trim_start(), 1000);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(40) {
        None => line,
        Some((at, _)) => {
            let cut = line.get(..at).unwrap_or_default();
            format!("{}…", cut.rsplit_once(' ').map_or(cut, |(before, _)| before))
        }
    }
}

fn export_text(
    id: Option<&str>,
    format: ExportFormat,
    thinking: MarkdownThinking,
    no_opaque: bool,
) -> anyhow::Result<String> {
    let resumed = read_session(id)?;
    Ok(match format {
        ExportFormat::Jsonl => {
            let opaque = if no_opaque { OpaqueData::LeaveOut } else { OpaqueData::Keep };
            write_lines(&resumed.conversation, opaque)
        }
        ExportFormat::Markdown => {
            let thinking = match thinking {
                MarkdownThinking::Callout => ThinkingMarkup::Callout,
                MarkdownThinking::Details => ThinkingMarkup::Details,
                MarkdownThinking::Omit => ThinkingMarkup::Omit,
            };
            write_markdown(&resumed.conversation, thinking)
        }
    })
}

fn write(text: &str, output: Option<&Path>) -> anyhow::Result<()> {
    match output {
        Some(path) => aside_session::write_atomically(path, text)
            .map_err(|error| HintedError::new(format!("cannot write {}: {error}", path.display())).into()),
        None => Ok(output::stdout().write_all(text.as_bytes())?),
    }
}

fn delete(word: &str) -> anyhow::Result<()> {
    let store: &SqliteStore = &*session_recorder::open_store(&UserFolders::from_environment())?;
    let id = store.find(word).map_err(|error| session_recorder::store_error(&error))?;
    store.delete(&id).map_err(|error| session_recorder::store_error(&error))?;
    print_notice(&format!("deleted {id}"));
    Ok(())
}
