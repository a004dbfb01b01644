//! `/undo`, `/redo`, `/diff` and `/retry`.

use aside_core::block::{Arguments, Block, Time};
use aside_core::counted::counted;
use aside_core::history::EntryId;
use aside_core::mention::{escape_mentions, unescape_mentions};
use aside_core::message::{Message, Role};
use aside_core::permission_question::{PermissionAnswer, PermissionQuestion, QuestionKind, Risk};
use aside_core::terminal_text::terminal_safe_line;
use aside_engine::tools::{ToolEffect, unified_diff};
use aside_front::{Command, CommandOutput, UndoPart, Update};
use aside_store::file_changes::{FileChange, FileChangeId, UnkeptChange};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{CommandOutcome, Driver, replies};
use crate::error::HintedError;
use crate::file_changes::{ChangedFiles, ChangedSince, Direction, FilePlan, FileState, changes_since, unkept_lines};
use crate::session_recorder::store_error;

/// The tools whose changes are recorded.
const RECORDED_TOOLS: [&str; 2] = ["write", "edit"];

/// What `/diff` shows.
const DIFF_SCOPE: &str =
    "what `write` and `edit` changed since this session began, without what was undone; commands are not covered";

/// How many of the commands whose changes stay are listed.
const MAX_NAMED_COMMANDS: usize = 5;

/// How much of such a command is shown.
const MAX_COMMAND_CHARS: usize = 60;

/// The answer to a question outside a turn.
enum Asked {
    Answered(PermissionAnswer),
    /// The user stopped the command.
    Stopped,
    Quit,
}

impl Driver {
    /// Undoes the last turn. If it changed files, asks whether to restore them too.
    pub(super) async fn undo(&mut self, inbox: &mut UnboundedReceiver<Command>) -> Result<CommandOutcome, HintedError> {
        self.open_resumed_recorder();
        let Some((_, turn)) = self.last_prompt() else { return Err(HintedError::new("there is nothing to undo")) };
        let plans = match turn {
            Some(turn) => self.plans(|changes| changes_since(changes, turn), Direction::Undo)?,
            None => Vec::new(),
        };
        let unkept = turn.map(|turn| self.unkept(|change| change.turn == turn)).transpose()?.unwrap_or_default();
        let uncovered = self.uncovered_commands();
        let n_restorable = plans.iter().filter(|plan| plan.state == FileState::AsRecorded).count();
        if n_restorable == 0 {
            let (done, lines) = self.restore(&plans, Direction::Undo, ChangedSince::Skip)?;
            let outcome = self.undo_talk(&done);
            self.say(lines.into_iter().chain(unkept));
            self.say_uncovered(&uncovered);
            return outcome;
        }
        let mut preview: Vec<String> = plans.iter().map(FilePlan::preview).collect();
        preview.extend(unkept.iter().cloned());
        preview.extend(uncovered_line(&uncovered));
        let question = PermissionQuestion {
            id: "undo".to_owned(),
            preview: Some(preview.join("\n")),
            kind: QuestionKind::Undo,
            ..PermissionQuestion::new(
                "undo",
                format!("put {} back too?", counted(n_restorable as u64, "file")),
                Risk::Writes,
            )
        };
        match self.ask_user(question, inbox).await {
            Asked::Answered(PermissionAnswer::Once | PermissionAnswer::Session | PermissionAnswer::Project) => {
                let (done, lines) = self.restore(&plans, Direction::Undo, ChangedSince::Skip)?;
                let outcome = self.undo_talk(&done);
                // After the transcript, which replaces all that was shown before.
                self.say(lines.into_iter().chain(unkept));
                self.say_uncovered(&uncovered);
                outcome
            }
            Asked::Answered(PermissionAnswer::No(_) | PermissionAnswer::Nobody) => {
                let outcome = self.undo_talk(&[]);
                self.say(["the files stay as they are; /undo files puts them back".to_owned()]);
                outcome
            }
            Asked::Stopped => Ok(CommandOutcome::Reply(replies::line("nothing was undone"))),
            Asked::Quit => Ok(CommandOutcome::Quit),
        }
    }

    /// Undoes a part without a question.
    pub(super) fn undo_part(&mut self, part: UndoPart, force: bool) -> Result<CommandOutcome, HintedError> {
        self.open_resumed_recorder();
        let changed_since = if force { ChangedSince::Overwrite } else { ChangedSince::Skip };
        match part {
            UndoPart::Talk => self.undo_talk(&[]),
            UndoPart::Files => {
                let newest = |changes: Vec<FileChange>| {
                    let newest =
                        changes.iter().rev().find(|change| change.undone_by.is_none()).map(|change| change.turn);
                    newest.map(|turn| changes_since(changes, turn)).unwrap_or_default()
                };
                let mut plans = self.plans(newest, Direction::Undo)?;
                let oldest_turn = plans.iter().filter_map(FilePlan::turn).min();
                let unkept = self.unkept(|change| oldest_turn.is_none_or(|oldest| change.turn >= oldest))?;
                if plans.is_empty() {
                    self.say(unkept);
                    return Err(HintedError::new("this session changed no file that can be put back"));
                }
                if force {
                    self.record_other_changes(&plans)?;
                    plans = self.plans(newest, Direction::Undo)?;
                }
                let (done, mut lines) = self.restore(&plans, Direction::Undo, changed_since)?;
                lines.extend(unkept);
                if !done.is_empty() {
                    self.record_undo(None, &done)?;
                    lines.push("/redo takes this back".to_owned());
                }
                self.say(lines);
                self.say_uncovered(&self.uncovered_commands());
                Ok(CommandOutcome::Silent)
            }
        }
    }

    /// Redoes what was undone last.
    pub(super) fn redo(&mut self) -> Result<CommandOutcome, HintedError> {
        self.open_resumed_recorder();
        let nothing = || HintedError::new("there is nothing to redo");
        let (Some(store), Some(recorder)) = (self.store.clone(), &self.recorder) else { return Err(nothing()) };
        let step = store.last_undo(recorder.id()).map_err(|error| store_error(&error))?;
        let Some(step) = step else { return Err(nothing()) };
        let of_step = |changes: Vec<FileChange>| {
            changes.into_iter().filter(|change| change.undone_by == Some(step.id)).collect::<Vec<_>>()
        };
        let plans = self.plans(of_step, Direction::Redo)?;
        let (_, lines) = self.restore(&plans, Direction::Redo, ChangedSince::Skip)?;
        if let Some(head) = step.head.and_then(|head| self.recorder.as_ref()?.entry_of(head)) {
            self.active.session.history.fork(Some(head)).map_err(|error| HintedError::new(error.to_string()))?;
            if let Some(recorder) = &mut self.recorder {
                recorder.move_head(Some(head));
            }
            self.undone_prompt = None;
            self.front.send(Update::Restored(self.branch()));
            self.send_status();
        }
        store.record_redo(step.id).map_err(|error| store_error(&error))?;
        self.say(lines);
        Ok(CommandOutcome::Reply(replies::line("redone")))
    }

    /// What this session's tools changed, as a diff.
    pub(super) fn diff(&mut self, file: Option<&str>) -> Result<CommandOutcome, HintedError> {
        self.open_resumed_recorder();
        let nothing = || HintedError::new("no tool of this session changed a file").hint("commands are not covered");
        let (Some(store), Some(recorder), Some(restorer)) = (&self.store, &self.recorder, &self.active.restorer) else {
            return Err(nothing());
        };
        let changes = store.file_changes(recorder.id()).map_err(|error| store_error(&error))?;
        let changes: Vec<FileChange> = changes.into_iter().filter(|change| change.undone_by.is_none()).collect();
        let mut page = String::new();
        let mut seen: Vec<&str> = Vec::new();
        for first in &changes {
            let name = restorer.name(&first.path);
            let is_meant = file.is_none_or(|file| file == name || file == first.path);
            if !is_meant || seen.contains(&first.path.as_str()) {
                continue;
            }
            seen.push(&first.path);
            let last = changes.iter().rev().find(|change| change.path == first.path).unwrap_or(first);
            let before = first.before.map(|version| store.file_content(version.content)).transpose();
            let before = before.map_err(|error| store_error(&error))?.unwrap_or_default();
            let after = last.after.map(|version| store.file_content(version.content)).transpose();
            let after = after.map_err(|error| store_error(&error))?.unwrap_or_default();
            let diff = match (String::from_utf8(before), String::from_utf8(after)) {
                (Ok(before), Ok(after)) => unified_diff(&name, &before, &after),
                (before, after) => {
                    let length = |text: &Result<String, std::string::FromUtf8Error>| match text {
                        Ok(text) => text.len(),
                        Err(error) => error.as_bytes().len(),
                    };
                    format!("{name}: {} before, {} bytes now\n", length(&before), length(&after))
                }
            };
            page.push_str(&fenced(&diff));
        }
        match (page.is_empty(), file) {
            (false, _) => Ok(CommandOutcome::Reply(CommandOutput::Markdown(format!("{DIFF_SCOPE}\n\n{page}")))),
            (true, Some(file)) => Err(HintedError::new(format!("no tool of this session changed `{file}`"))),
            (true, None) => Err(nothing()),
        }
    }

    /// Sends the last prompt again; the previous answer stays in its branch. A
    /// prompt that `/undo` removed is sent without another undo.
    pub(super) async fn retry(
        &mut self,
        inbox: &mut UnboundedReceiver<Command>,
    ) -> Result<CommandOutcome, HintedError> {
        let prompt = match self.undone_prompt.take() {
            Some(prompt) => prompt,
            None => {
                let prompt = self.branch().into_iter().rev().find(|message| message.begins_turn());
                let Some(prompt) = prompt else { return Err(HintedError::new("nothing was asked yet")) };
                self.move_before_last_turn()?;
                Message::clone(&prompt)
            }
        };
        // Attached files are sent as they were; they are not read again.
        self.send_message(Message::new(Role::User, prompt.blocks), inbox).await
    }

    /// Undoes the last turn of the conversation. `done` are the file changes that were undone.
    fn undo_talk(&mut self, done: &[FileChangeId]) -> Result<CommandOutcome, HintedError> {
        let head = self.active.session.history.head();
        self.undone_prompt = self.move_before_last_turn()?;
        self.record_undo(head, done)?;
        match self.undone_prompt.as_ref().and_then(prompt_text).map(|words| self.as_typed(words)) {
            Some(question) => {
                self.front.send(Update::Undone(question));
                Ok(CommandOutcome::Silent)
            }
            None => Ok(CommandOutcome::Reply(replies::line("the last turn is undone"))),
        }
    }

    /// The prompt as the user typed it. The text of a prompt that was not typed in
    /// this run is untrusted, so its `@path` mentions are escaped.
    fn as_typed(&self, sent: &str) -> String {
        let typed = self.typed_prompts.iter().rev().find(|typed| unescape_mentions(typed) == sent);
        typed.cloned().unwrap_or_else(|| escape_mentions(sent).into_owned())
    }

    /// Moves before the last turn, which stays in the log. Returns its prompt.
    fn move_before_last_turn(&mut self) -> Result<Option<Message>, HintedError> {
        self.open_resumed_recorder();
        let history = &mut self.active.session.history;
        let Some(prompt) = history.undo() else { return Err(HintedError::new("there is nothing to undo")) };
        let question = history.get(prompt).map(|entry| Message::clone(&entry.message));
        let head = history.head();
        if let Some(recorder) = &mut self.recorder {
            recorder.move_head(head);
        }
        self.front.send(Update::Restored(self.branch()));
        // A front end forgets the next request of the branch that was left.
        self.send_status();
        Ok(question)
    }

    /// The last prompt of the conversation, and when it was sent.
    fn last_prompt(&self) -> Option<(EntryId, Option<Time>)> {
        let branch = self.active.session.history.branch();
        branch.into_iter().rev().find(|(_, message)| message.begins_turn()).map(|(id, message)| (id, message.at))
    }

    /// Compares the files of some of the recorded changes with the disk.
    fn plans(
        &self,
        choose: impl FnOnce(Vec<FileChange>) -> Vec<FileChange>,
        direction: Direction,
    ) -> Result<Vec<FilePlan>, HintedError> {
        let (Some(store), Some(recorder), Some(restorer)) = (&self.store, &self.recorder, &self.active.restorer) else {
            return Ok(Vec::new());
        };
        let changes = store.file_changes(recorder.id()).map_err(|error| store_error(&error))?;
        let files = ChangedFiles { store, restorer };
        files.plan(&choose(changes), direction).map_err(|error| store_error(&error))
    }

    /// Names the files with changes that cannot be undone because their content is not kept.
    fn unkept(&self, is_meant: impl Fn(&UnkeptChange) -> bool) -> Result<Vec<String>, HintedError> {
        let (Some(store), Some(recorder), Some(restorer)) = (&self.store, &self.recorder, &self.active.restorer) else {
            return Ok(Vec::new());
        };
        let mut changes = store.unkept_changes(recorder.id()).map_err(|error| store_error(&error))?;
        changes.retain(is_meant);
        Ok(unkept_lines(&changes, restorer))
    }

    /// Records what else changed these files, so that `/redo` brings it back.
    fn record_other_changes(&self, plans: &[FilePlan]) -> Result<(), HintedError> {
        let (Some(store), Some(recorder), Some(restorer)) = (&self.store, &self.recorder, &self.active.restorer) else {
            return Ok(());
        };
        let files = ChangedFiles { store, restorer };
        files.record_other_changes(recorder.id(), plans).map_err(|error| store_error(&error))
    }

    fn restore(
        &self,
        plans: &[FilePlan],
        direction: Direction,
        changed_since: ChangedSince,
    ) -> Result<(Vec<FileChangeId>, Vec<String>), HintedError> {
        let (Some(store), Some(restorer)) = (&self.store, &self.active.restorer) else {
            return Ok((Vec::new(), Vec::new()));
        };
        let files = ChangedFiles { store, restorer };
        let restored = files.restore(plans, direction, changed_since);
        let (done, mut lines) = restored.map_err(|error| store_error(&error))?;
        if direction == Direction::Undo {
            lines.extend(files.remove_created_folders(plans, &self.active.change_recorder));
        }
        Ok((done, lines))
    }

    /// Remembers what was undone, so that it can be redone.
    fn record_undo(&self, head: Option<EntryId>, done: &[FileChangeId]) -> Result<(), HintedError> {
        let (Some(store), Some(recorder)) = (&self.store, &self.recorder) else { return Ok(()) };
        let head = head.and_then(|head| recorder.stored_id(head));
        store.record_undo(recorder.id(), head, done).map_err(|error| store_error(&error))
    }

    /// What the last turn ran besides `write` and `edit`: changes by these calls are not recorded.
    fn uncovered_commands(&self) -> Vec<String> {
        let tools = &self.active.session.tools;
        let changes = |name: &str| {
            !RECORDED_TOOLS.contains(&name)
                && tools.list().any(|tool| tool.name == name && tool.effect == ToolEffect::Changes)
        };
        let mut named: Vec<String> = Vec::new();
        for message in self.branch().iter().rev().take_while(|message| !message.begins_turn()) {
            for block in message.blocks.iter().rev() {
                let Block::ToolCall(call) = block else { continue };
                if changes(&call.name) {
                    named.push(command_of(&call.name, &call.arguments));
                }
            }
        }
        named.reverse();
        named
    }

    fn say(&self, lines: impl IntoIterator<Item = String>) {
        let lines: Vec<String> = lines.into_iter().collect();
        if !lines.is_empty() {
            self.front.send(Update::CommandOutput(replies::line(lines.join("\n"))));
        }
    }

    fn say_uncovered(&self, commands: &[String]) {
        self.say(uncovered_line(commands));
    }

    /// Asks outside a turn. Other commands wait.
    async fn ask_user(&mut self, question: PermissionQuestion, inbox: &mut UnboundedReceiver<Command>) -> Asked {
        use aside_engine::tools::Asker;
        let mut asking = self.asker.ask(question);
        loop {
            tokio::select! {
                answer = &mut asking => return Asked::Answered(answer),
                command = inbox.recv() => match command {
                    Some(Command::Answer { id, answer }) => self.asker.answer(id, answer),
                    Some(Command::Interrupt) => return Asked::Stopped,
                    Some(Command::Quit) | None => return Asked::Quit,
                    Some(other) => self.deferred.push_back(other),
                },
            }
        }
    }
}

/// A short description of a call: the shell command, or the name of the tool.
fn command_of(name: &str, arguments: &Arguments) -> String {
    let command = match arguments {
        Arguments::Json(json) => serde_json::from_str::<serde_json::Value>(json).ok(),
        Arguments::Broken(_) => None,
    };
    let command = command.as_ref().and_then(|arguments| arguments.get("command")?.as_str());
    let whole = terminal_safe_line(command.unwrap_or(name));
    let mut letters = whole.chars();
    let text: String = letters.by_ref().take(MAX_COMMAND_CHARS).collect();
    let more = if letters.next().is_some() { "…" } else { "" };
    format!("`{text}{more}`")
}

fn uncovered_line(commands: &[String]) -> Option<String> {
    let named = commands.iter().take(MAX_NAMED_COMMANDS).cloned().collect::<Vec<_>>().join(", ");
    let more = commands.len().saturating_sub(MAX_NAMED_COMMANDS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!commands.is_empty()).then(|| format!("not covered, so what it changed stays: {named}{more}"))
}

/// A diff as a code block that its content cannot end.
fn fenced(diff: &str) -> String {
    let longest = diff.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if diff.ends_with('\n') { "" } else { "\n" };
    format!("{fence}diff\n{diff}{end}{fence}\n\n")
}

/// The text of a prompt.
fn prompt_text(prompt: &Message) -> Option<&str> {
    match prompt.blocks.first() {
        Some(Block::Text(text)) => Some(&text.text),
        Some(
            Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_),
        )
        | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t21_a_command_that_is_cut_ends_with_an_ellipsis() {
        let shown = |command: &str| {
            let arguments = serde_json::json!({"command": command}).to_string();
            command_of("shell", &Arguments::parse(arguments))
        };
        assert_eq!(shown(&"x".repeat(60)), format!("`{}`", "x".repeat(60)));
        assert_eq!(shown(&"x".repeat(61)), format!("`{}…`", "x".repeat(60)));
    }
}
