//! `aside sessions import`: files, or all sessions of another program.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use aside_core::counted::counted;
use aside_core::dialect::Dialects;
use aside_core::interchange::{ImportError, ImportFile, Imported, Program, import};
use aside_core::safe_json;
use aside_core::terminal_text::terminal_safe_line;
use aside_session::program_sessions::{
    FoundSessions, ImportOutcome, ProgramFolders, ProgramImporter, ProgramSession, check_settings, import_error,
    store_imported,
};
use aside_session::{HintedError, UserFolders, log, session_recorder, times};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};

use crate::ExitStatus;
use crate::input_file;
use crate::output;
use crate::report::{print_error, print_notice};

/// Import sessions of aside or of another program, thinking included
#[derive(Debug, clap::Args)]
#[command(after_help = "Without --from, each FILE is a session: exported by aside, or a file of another program.
With --from, all sessions of that program are imported, one after another, and each is a line:
`imported ID TITLE`, `known ID TITLE` if it was imported before, or `failed ID FILE`.
Sessions of subagents are left out, and so are sessions without messages.

Exit code: 0 done, 1 some sessions failed, 2 wrong usage or a file that cannot be imported.

Examples:
  aside sessions import ~/.claude/projects/…/….jsonl
  aside sessions import --from codex --since 7d
  aside sessions import --from opencode --dry-run
  aside sessions import --from llm ~/backup/logs.db")]
pub(crate) struct Arguments {
    /// Files to import; `-` is standard input. With --from also folders and databases
    #[arg(value_name = "FILE", required_unless_present = "from")]
    files: Vec<String>,

    /// Import all sessions of this program; without FILE, from its own folders
    #[arg(long, value_name = "PROGRAM", value_parser = program_parser())]
    from: Option<Program>,

    /// Only sessions used since then: 7d, 12h, 2026-11-15
    #[arg(long, value_name = "T", requires = "from")]
    since: Option<String>,

    /// Read the sessions and say what would happen, but store nothing
    #[arg(long, requires = "from")]
    dry_run: bool,

    /// Print JSON, one object per session
    #[arg(long, requires = "from")]
    json: bool,
}

fn program_parser() -> impl TypedValueParser<Value = Program> {
    let names = PossibleValuesParser::new(Program::ALL.map(Program::name));
    names.try_map(|name| Program::parse(&name).ok_or_else(|| format!("unknown program `{name}`")))
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let Some(program) = arguments.from else {
        import_files(&arguments.files)?;
        return Ok(ExitStatus::Done);
    };
    let since = arguments.since.as_deref().map(times::parse_past).transpose()?;
    let paths: Vec<PathBuf> = arguments.files.iter().map(PathBuf::from).collect();
    let found = if paths.is_empty() {
        FoundSessions::of_program(program, &ProgramFolders::from_environment(), since)
    } else {
        FoundSessions::of_paths(program, &paths, since)?
    };
    let dialects = UserFolders::from_environment().dialects()?;
    let store = session_recorder::open_store(&UserFolders::from_environment())?;
    let importer = ProgramImporter::new(program, store, &dialects, arguments.dry_run)?;
    let mut run = ImportRun { program, json: arguments.json, totals: ImportTotals::default() };
    run.import_all(importer, found, arguments.dry_run)
}

/// How often progress is shown while lines go to a file or a pipe.
const PROGRESS: Duration = Duration::from_secs(2);

struct ImportRun {
    program: Program,
    json: bool,
    totals: ImportTotals,
}

#[derive(Default)]
struct ImportTotals {
    imported: u64,
    known: u64,
    failed: u64,
    empty: u64,
    subagents: u64,
    /// In how many sessions each note applies.
    notes: BTreeMap<String, u64>,
    passed_over: BTreeMap<String, usize>,
}

impl ImportRun {
    fn import_all(
        &mut self,
        mut importer: ProgramImporter<'_>,
        found: FoundSessions,
        dry_run: bool,
    ) -> anyhow::Result<ExitStatus> {
        self.totals.subagents = u64::try_from(found.n_subagents).unwrap_or(u64::MAX);
        for (path, error) in &found.errors {
            let path = path.display().to_string();
            self.report_failure(&path, &path, error)?;
        }
        if found.sessions.is_empty() && found.errors.is_empty() {
            let places: Vec<String> = found.places.iter().map(|place| place.display().to_string()).collect();
            print_notice(&format!("found no sessions of {} in {}", self.program, places.join(", ")));
        }
        let shows_progress = std::io::stderr().is_terminal() && !std::io::stdout().is_terminal();
        let (count, mut shown) = (found.sessions.len(), Instant::now());
        for (at, session) in found.sessions.iter().enumerate() {
            if shows_progress && shown.elapsed() > PROGRESS {
                print_notice(&format!("{at} of {count} sessions"));
                shown = Instant::now();
            }
            let outcome = importer.import(session);
            self.report(session, outcome)?;
        }
        self.print_summary(dry_run);
        Ok(if self.totals.failed > 0 { ExitStatus::ProviderFailed } else { ExitStatus::Done })
    }

    fn report(&mut self, session: &ProgramSession, outcome: ImportOutcome) -> anyhow::Result<()> {
        let own_id = || session.id().map_or_else(|| session.location(), str::to_owned);
        match outcome {
            ImportOutcome::Empty => self.totals.empty += 1,
            ImportOutcome::Subagent => self.totals.subagents += 1,
            ImportOutcome::Known(known) => {
                self.totals.known += 1;
                let title = known.title.unwrap_or_default();
                let more = json!({ "session": session.id() });
                self.print("known", known.id.as_str(), &title, &session.location(), more)?;
            }
            ImportOutcome::Imported(stored) => {
                self.totals.imported += 1;
                self.totals.add_notes(&stored.imported);
                let source = stored.imported.source.as_ref();
                let id = stored.id.clone().or_else(|| source.and_then(|source| source.session.clone()));
                let id = id.unwrap_or_else(own_id);
                log::write(log::LogLevel::Info, || format!("imported {} as {id}", session.location()));
                let more = json!({
                    "session": source.and_then(|source| source.session.clone()),
                    "messages": stored.n_messages,
                    "model": stored.imported.conversation.model,
                    "folder": source.and_then(|source| source.folder.clone()),
                    "notes": stored.imported.all_notes(),
                });
                self.print("imported", &id, &stored.title, &session.location(), more)?;
            }
            ImportOutcome::Failed(error) => {
                self.report_failure(&own_id(), &session.location(), &error)?;
            }
        }
        Ok(())
    }

    fn report_failure(&mut self, id: &str, location: &str, error: &HintedError) -> std::io::Result<()> {
        self.totals.failed += 1;
        print_error(error);
        self.print("failed", id, location, location, json!({ "error": error.to_string() }))
    }

    fn print(&self, result: &str, id: &str, title: &str, location: &str, more: Value) -> std::io::Result<()> {
        let mut out = output::stdout();
        if !self.json {
            return writeln!(out, "{result} {} {}", terminal_safe_line(id), terminal_safe_line(title));
        }
        let mut line = json!({
            "result": result, "id": id, "title": title,
            "program": self.program.name(), "location": location,
        });
        if let (Some(line), Value::Object(more)) = (line.as_object_mut(), more) {
            line.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
        }
        writeln!(out, "{}", safe_json::to_string(&line))
    }

    fn print_summary(&self, dry_run: bool) {
        let totals = &self.totals;
        for (note, sessions) in &totals.notes {
            print_notice(&format!("note: {note} ({})", counted(*sessions, "session")));
        }
        for (kind, count) in &totals.passed_over {
            print_notice(&format!("note: passed over: {kind}, {count} times"));
        }
        let mut parts = vec![
            format!("{} imported", counted(totals.imported, "session")),
            format!("{} known", totals.known),
            format!("{} failed", totals.failed),
        ];
        if totals.empty > 0 {
            parts.push(format!("{} without messages left out", totals.empty));
        }
        if totals.subagents > 0 {
            parts.push(format!("{} of subagents left out", totals.subagents));
        }
        let start = if dry_run { "dry run, nothing was stored: " } else { "" };
        print_notice(&format!("{start}{}", parts.join(", ")));
    }
}

impl ImportTotals {
    fn add_notes(&mut self, imported: &Imported) {
        for note in &imported.notes {
            *self.notes.entry(note.clone()).or_default() += 1;
        }
        for (kind, count) in &imported.passed_over {
            *self.passed_over.entry(kind.clone()).or_default() += count;
        }
    }
}

fn import_files(names: &[String]) -> anyhow::Result<()> {
    let dialects = UserFolders::from_environment().dialects()?;
    let store = session_recorder::open_store(&UserFolders::from_environment())?;
    // All or nothing: every file is checked before the first session is stored.
    let all = read_all(names, &dialects)?;
    for (names, imported) in all {
        for note in imported.all_notes() {
            print_notice(&format!("note: {note}"));
        }
        let id = store_imported(&store, &imported)?;
        log::write(log::LogLevel::Info, || format!("imported {names} as {id}"));
        writeln!(output::stdout(), "{id}")?;
    }
    Ok(())
}

/// Each session with the names of its files.
fn read_all(names: &[String], dialects: &Dialects) -> Result<Vec<(String, Imported)>, HintedError> {
    let texts: Vec<String> = names.iter().map(|name| read(name)).collect::<Result<_, HintedError>>()?;
    let files: Vec<ImportFile<'_>> = names.iter().zip(&texts).map(|(name, text)| ImportFile { name, text }).collect();
    // Some programs split one session into several files; else each file is a session.
    let all = match import(&files, dialects) {
        Ok(imported) => vec![(names.join(", "), imported)],
        Err(error) if files.len() == 1 => return Err(import_error(&names.join(", "), &error)),
        Err(_) => {
            let one = |file: &ImportFile<'_>| {
                let imported = import(&[*file], dialects).map_err(|error| import_error(file.name, &error))?;
                Ok((file.name.to_owned(), imported))
            };
            files.iter().map(one).collect::<Result<_, HintedError>>()?
        }
    };
    for (name, imported) in &all {
        check_settings(&imported.conversation).map_err(|report| report.prefixed(name))?;
    }
    Ok(all)
}

fn read(name: &str) -> Result<String, HintedError> {
    let bytes = input_file::read_bytes(name)?;
    if bytes.starts_with(b"SQLite format 3\0") {
        return Err(import_error(name, &ImportError::Database));
    }
    String::from_utf8(bytes).map_err(|error| HintedError::new(format!("cannot read {name}: {error}")))
}
