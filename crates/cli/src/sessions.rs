//! `aside sessions`: what was said, listed, shown, taken elsewhere and brought in.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use aside_core::block::{Arguments as CallArguments, Block, Thinking};
use aside_core::conversation::Conversation;
use aside_core::dialect::Dialects;
use aside_core::exchange::{File, ImportError, Imported, Opaque, ThinkingAs, import, write_lines, write_markdown};
use aside_core::message::{Message, Role};
use aside_core::safe_json;
use aside_core::screen::neutral_line;
use aside_core::settings::Change;
use aside_core::text::split_within;
use aside_store::{SqliteStore, Store};
use clap::{Subcommand, ValueEnum};
use serde_json::json;

use crate::keep::{self, Which};
use crate::output;
use crate::report::{Report, tell};
use crate::settings::refused;
use crate::times;
use crate::{Outcome, log, user_files};

/// List, show, export, import and delete sessions
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List sessions, the last one used first
    List {
        /// At most so many
        #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
        most: usize,
        /// Print JSON, one object a line
        #[arg(long)]
        json: bool,
    },
    /// Print a transcript, thinking folded to a line
    Show {
        /// The session, by id, title, or the beginning of either; else the last one
        #[arg(value_name = "ID")]
        id: Option<String>,
        /// Thinking in full, folded, or left out
        #[arg(long, value_enum, default_value_t = Fold::Folded, value_name = "VIEW")]
        thinking: Fold,
    },
    /// Write a session as Markdown or as JSON lines
    #[command(after_help = "JSON lines hold everything, in all branches, and read back equal. Markdown is
for people: the current branch, without signatures and encrypted payloads.")]
    Export {
        /// The session, by id, title, or the beginning of either; else the last one
        #[arg(value_name = "ID")]
        id: Option<String>,
        #[arg(long, value_enum, default_value_t = Format::Markdown, value_name = "FORMAT")]
        format: Format,
        /// How thinking stands in Markdown
        #[arg(long, value_enum, default_value_t = Shown::Callout, value_name = "SHAPE")]
        thinking: Shown,
        /// Leave signatures and encrypted payloads out of JSON lines
        #[arg(long)]
        no_opaque: bool,
        /// Where to; else standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Bring in a session: ours, or one of Claude Code, Codex or OpenCode
    Import {
        /// What was exported, or another program's session; `-` is standard input
        #[arg(value_name = "FILE", required = true)]
        files: Vec<String>,
    },
    /// Delete a session for good
    Delete {
        #[arg(value_name = "ID")]
        id: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Fold {
    Full,
    Folded,
    Omit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Markdown,
    Jsonl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shown {
    /// A folded `> [!thinking]-` callout
    Callout,
    /// A `<details>` element
    Details,
    Omit,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    match &arguments.action {
        Action::List { most, json } => list(*most, *json)?,
        Action::Show { id, thinking } => show(id.as_deref(), *thinking)?,
        Action::Export { id, format, thinking, no_opaque, output } => {
            let text = exported(id.as_deref(), *format, *thinking, *no_opaque)?;
            write(&text, output.as_deref())?;
        }
        Action::Import { files } => bring_in(files)?,
        Action::Delete { id } => delete(id)?,
    }
    Ok(Outcome::Done)
}

/// The session that is named, else the last one.
fn which(id: Option<&str>) -> Which<'_> {
    id.map_or(Which::Last, Which::Named)
}

fn list(most: usize, as_json: bool) -> anyhow::Result<()> {
    let store = keep::store()?;
    let sessions = store.sessions(most).map_err(|error| keep::trouble(&error))?;
    let mut out = output::stdout();
    if sessions.is_empty() && !as_json {
        tell("there is no session yet; aside ask begins one");
    }
    for session in sessions {
        let (id, messages) = (session.id.as_str(), session.n_messages);
        let title = session.title.as_deref().unwrap_or("");
        let model = session.model.as_deref().unwrap_or("");
        if as_json {
            let (created, changed) = (times::rfc3339(session.created), times::rfc3339(session.changed));
            let line = json!({ "id": id, "title": title, "model": model, "messages": messages, "created": created, "changed": changed });
            writeln!(out, "{}", safe_json::to_string(&line))?;
        } else {
            let changed = times::local(session.changed);
            writeln!(out, "{id}  {changed}  {messages:>5}  {:<28} {}", neutral_line(model), neutral_line(title))?;
        }
    }
    Ok(())
}

fn show(id: Option<&str>, fold: Fold) -> anyhow::Result<()> {
    let store = keep::store()?;
    let Some(resumed) = keep::resume(&store, which(id))? else { return Ok(()) };
    let mut out = output::stdout();
    for (_, message) in resumed.conversation.history.branch() {
        out.write_all(transcript(message, fold).as_bytes())?;
    }
    Ok(())
}

/// One message as a person reads it.
fn transcript(message: &Message, fold: Fold) -> String {
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
            (Block::Thinking(thinking), _) => out.push_str(&thought(thinking, fold)),
            (Block::ToolCall(call), _) => {
                let (CallArguments::Json(text) | CallArguments::Broken(text)) = &call.arguments;
                out.push_str(&format!("→ {} {text}\n", call.name));
            }
            (Block::ToolResult(result), _) => {
                let mark = if result.is_error { '✗' } else { '✓' };
                out.push_str(&format!("{mark} {}: {} lines\n\n", result.name, result.content.lines().count()));
            }
            (Block::Image(image), _) => out.push_str(&format!("[{}]\n\n", image.media_type)),
            (Block::Unmodelled(_), _) => out.push_str("[something aside does not know; kept]\n\n"),
            (Block::Text(_), _) => (),
        }
    }
    if message.interrupted {
        out.push_str("(interrupted)\n\n");
    }
    out
}

fn thought(thinking: &Thinking, fold: Fold) -> String {
    let took = thinking.span.map(|span| span.ended.0.saturating_sub(span.started.0) / 1000);
    let took = took.map_or(String::new(), |seconds| format!(" for {seconds}s"));
    if fold == Fold::Omit {
        return String::new();
    }
    if thinking.text().trim().is_empty() {
        return format!("▶ Thought{took} · hidden by provider\n\n");
    }
    if fold == Fold::Folded {
        let title = thinking.summary().find_map(|item| item.title);
        let said = title.map_or_else(|| format!("\"{}\"", first_words(thinking.text())), str::to_owned);
        return format!("▶ Thought{took} · {said}\n\n");
    }
    let lines: String = thinking.text().lines().map(|line| format!("│ {line}\n")).collect();
    format!("▼ Thought{took}\n{lines}\n")
}

/// About forty letters, cut at a word.
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

fn exported(id: Option<&str>, format: Format, thinking: Shown, no_opaque: bool) -> anyhow::Result<String> {
    let store = keep::store()?;
    let Some(resumed) = keep::resume(&store, which(id))? else { return Ok(String::new()) };
    Ok(match format {
        Format::Jsonl => {
            let opaque = if no_opaque { Opaque::LeaveOut } else { Opaque::Keep };
            write_lines(&resumed.conversation, opaque)
        }
        Format::Markdown => {
            let thinking = match thinking {
                Shown::Callout => ThinkingAs::Callout,
                Shown::Details => ThinkingAs::Details,
                Shown::Omit => ThinkingAs::Omit,
            };
            write_markdown(&resumed.conversation, thinking)
        }
    })
}

fn write(text: &str, output: Option<&Path>) -> anyhow::Result<()> {
    match output {
        Some(path) => crate::atomic::write(path, text)
            .map_err(|error| Report::new(format!("cannot write {}: {error}", path.display())).into()),
        None => Ok(output::stdout().write_all(text.as_bytes())?),
    }
}

fn bring_in(names: &[String]) -> anyhow::Result<()> {
    let dialects = user_files::dialects()?;
    let store = keep::store()?;
    // All or nothing: what cannot be imported is known before anything is.
    let all = read_all(names, &dialects)?;
    for (names, imported) in all {
        for note in &imported.notes {
            tell(&format!("note: {note}"));
        }
        let id = store.import(&imported.conversation, Some(keep::now())).map_err(|error| keep::trouble(&error))?;
        log::note(log::Level::Info, || format!("imported {names} as {id}"));
        writeln!(output::stdout(), "{id}")?;
    }
    Ok(())
}

/// Each session with the names of the files it stood in.
fn read_all(names: &[String], dialects: &Dialects) -> Result<Vec<(String, Imported)>, Report> {
    let texts: Vec<String> = names.iter().map(|name| read(name)).collect::<Result<_, Report>>()?;
    let files: Vec<File<'_>> = names.iter().zip(&texts).map(|(name, text)| File { name, text }).collect();
    // Several files are one session only where a program keeps it in pieces.
    let all = match import(&files, dialects) {
        Ok(imported) => vec![(names.join(", "), imported)],
        Err(error) if files.len() == 1 => return Err(not_imported(&names.join(", "), &error)),
        Err(_) => {
            let one = |file: &File<'_>| {
                let imported = import(&[*file], dialects).map_err(|error| not_imported(file.name, &error))?;
                Ok((file.name.to_owned(), imported))
            };
            files.iter().map(one).collect::<Result<_, Report>>()?
        }
    };
    for (name, imported) in &all {
        valid_settings(&imported.conversation).map_err(|report| report.about(name))?;
    }
    Ok(all)
}

fn not_imported(name: &str, error: &ImportError) -> Report {
    let report = Report::new(format!("{name}: {error}"));
    match error.hint() {
        Some(hint) => report.hint(hint),
        None => report,
    }
}

/// A file may be anybody's: what it sets must be a setting, with a value that
/// it takes. Tools and permissions are none.
fn valid_settings(conversation: &Conversation) -> Result<(), Report> {
    let wrong = conversation.settings.iter().find_map(|(key, value)| Change::parse(key, value).err());
    wrong.map_or(Ok(()), |error| Err(refused(&error)))
}

fn read(name: &str) -> Result<String, Report> {
    let mut text = String::new();
    let read = match name {
        "-" => std::io::stdin().read_to_string(&mut text).map(drop),
        path => fs::read_to_string(path).map(|content| text = content),
    };
    read.map_err(|error| Report::new(format!("cannot read {name}: {error}")))?;
    Ok(text)
}

fn delete(word: &str) -> anyhow::Result<()> {
    let store: &SqliteStore = &*keep::store()?;
    let id = store.find(word).map_err(|error| keep::trouble(&error))?;
    store.delete(&id).map_err(|error| keep::trouble(&error))?;
    tell(&format!("deleted {id}"));
    Ok(())
}
