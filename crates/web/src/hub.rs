//! One session with its tabs: updates come in, frames go out to every tab.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aside_core::permission_question::{AnswerChoices, IGNORE_KEYS_MS, PermissionAnswer};
use aside_core::tool_mode::ToolMode;
use aside_front::slash_commands::COMMANDS;
use aside_front::wording::{self, HintStyle, Severity};
use aside_front::{
    Command, CommandOutput, CompletionLists, PendingQuestion, QuestionId, Sending, Status, SteeringError, Update,
};
use serde_json::{Value, json};
use tokio::sync::broadcast;

use crate::entry::{Body, Entry};
use crate::frames::{Frame, Position};
use crate::transcript::Transcript;
use crate::view::{OutputView, QuestionView};

/// Deltas are sent this often: a tab draws a frame in half the time.
const FLUSH_AFTER: Duration = Duration::from_millis(30);
/// When text is sent again while it grows, a tab gets at most this many bytes of it per second.
const RESENT_BYTES_PER_SECOND: usize = 256 << 10;
/// Frames that a slow tab may lag behind before it starts over.
const MAX_LAG: usize = 1024;
/// Notes that are kept for tabs that open later.
const MAX_NOTES: usize = 200;

/// Reads the messages of the session from the store, the newest ones.
pub(crate) type StoredEntries<'a> = dyn Fn(&str) -> Option<(Vec<Entry>, Option<i64>)> + 'a;

/// Why a command was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandRefusal {
    /// Another program has the session open.
    OpenElsewhere,
    /// The user cannot have read the question yet.
    TooEarly,
    /// The question is no longer open.
    Answered,
    /// The command makes no sense here, for this reason.
    Invalid(String),
}

/// A session that tabs can show.
pub(crate) struct Hub {
    state: Mutex<HubState>,
    frames: broadcast::Sender<Frame>,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

struct HubState {
    /// The id in the store.
    id: String,
    transcript: Transcript,
    status: Status,
    lists: CompletionLists,
    prompts: Vec<String>,
    turn: Turn,
    /// What the last request did with thinking, by message and block.
    sent: Value,
    /// The first message that is not part of the summary, after a compaction.
    kept_from: Option<i64>,
    notes: Vec<Value>,
    n_notes: u64,
    questions: Vec<(PendingQuestion, Instant)>,
    access: HubAccess,
    n_tabs: usize,
    /// When the last tab left, or the session was opened.
    idle_since: Instant,
}

/// Who writes to the session.
#[derive(Debug)]
pub(crate) enum HubAccess {
    /// This process, through this channel.
    Writer(Sender<Command>),
    /// Another process; the store is read at intervals.
    Reader,
    /// The session has ended.
    Ended,
}

/// Whether a turn runs.
#[derive(Debug, Clone, Default)]
struct Turn {
    is_running: bool,
    since: Option<u64>,
    sending: Sending,
    retry: Option<Value>,
}

impl Turn {
    fn view(&self) -> Value {
        let Sending { step, model, effort, tokens, limit, .. } = &self.sending;
        json!({
            "running": self.is_running, "since": self.since, "retry": self.retry,
            "step": step, "model": model, "effort": effort, "tokens": tokens, "limit": limit,
        })
    }
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A connected tab: the frames it is missing, and those that follow.
pub(crate) struct Tab {
    pub first: Vec<Frame>,
    pub frames: broadcast::Receiver<Frame>,
    pub hub: Arc<Hub>,
}

impl Drop for Tab {
    fn drop(&mut self) {
        let mut state = self.hub.lock();
        state.n_tabs = state.n_tabs.saturating_sub(1);
        state.idle_since = Instant::now();
    }
}

impl Hub {
    pub(crate) fn new(
        id: String,
        transcript: Transcript,
        status: Status,
        lists: CompletionLists,
        access: HubAccess,
    ) -> Hub {
        let state = HubState {
            id,
            transcript,
            status,
            lists,
            prompts: Vec::new(),
            turn: Turn::default(),
            sent: json!([]),
            kept_from: None,
            notes: Vec::new(),
            n_notes: 0,
            questions: Vec::new(),
            access,
            n_tabs: 0,
            idle_since: Instant::now(),
        };
        Hub { state: Mutex::new(state), frames: broadcast::channel(MAX_LAG).0 }
    }

    fn lock(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn id(&self) -> String {
        self.lock().id.clone()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.lock().turn.is_running
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.lock().access, HubAccess::Ended)
    }

    /// Whether it has had no tab for this long, and nothing is running.
    pub(crate) fn is_idle(&self, long: Duration) -> bool {
        let state = self.lock();
        let is_busy = state.turn.is_running || !state.questions.is_empty() || state.n_tabs > 0;
        !is_busy && state.idle_since.elapsed() >= long
    }

    pub(crate) fn has_tabs(&self) -> bool {
        self.lock().n_tabs > 0
    }

    /// Connects a tab that has read up to `from`.
    pub(crate) fn connect(self: &Arc<Hub>, from: Option<Position>) -> Tab {
        let mut state = self.lock();
        state.n_tabs += 1;
        // Under the lock, so that no frame is lost or sent twice.
        if let Some(frame) = state.transcript.flush() {
            drop(self.frames.send(frame));
        }
        let frames = self.frames.subscribe();
        let first = state.first_frames(from);
        Tab { first, frames, hub: Arc::clone(self) }
    }

    /// What a tab that fell behind is missing.
    pub(crate) fn catch_up(&self, from: Position) -> (Vec<Frame>, broadcast::Receiver<Frame>) {
        let mut state = self.lock();
        if let Some(frame) = state.transcript.flush() {
            drop(self.frames.send(frame));
        }
        let frames = self.frames.subscribe();
        (state.first_frames(Some(from)), frames)
    }

    /// Ends the session. Its thread stores what is open.
    pub(crate) fn end(&self) {
        if let HubAccess::Writer(commands) = std::mem::replace(&mut self.lock().access, HubAccess::Ended) {
            drop(commands.send(Command::Quit));
        }
    }

    /// Another process has closed the session: from now on this one writes it.
    pub(crate) fn take_over(&self, commands: Sender<Command>, status: Status, lists: CompletionLists) {
        let mut state = self.lock();
        state.access = HubAccess::Writer(commands);
        (state.status, state.lists) = (status, lists);
        let hello = state.hello();
        drop(self.frames.send(hello));
    }

    /// A block of a message that a tab may have.
    pub(crate) fn block(&self, entry: i64, block: usize) -> Option<Body> {
        let state = self.lock();
        state.transcript.entries().iter().find(|one| one.id == entry)?.blocks.get(block).cloned()
    }

    pub(crate) fn is_reader(&self) -> bool {
        matches!(self.lock().access, HubAccess::Reader)
    }

    /// Carries out a command.
    pub(crate) fn command(&self, command: Command) -> Result<(), CommandRefusal> {
        let mut state = self.lock();
        let commands = match &state.access {
            HubAccess::Writer(commands) => commands.clone(),
            HubAccess::Reader => return Err(CommandRefusal::OpenElsewhere),
            HubAccess::Ended => return Err(CommandRefusal::Invalid("the session has ended".to_owned())),
        };
        if matches!(command, Command::Terminal(_) | Command::Shell { .. }) {
            return Err(CommandRefusal::Invalid("this command is for a terminal".to_owned()));
        }
        if let Command::Answer { id, answer } = &command {
            let frame = state.answer(*id, answer)?;
            self.send([frame]);
        }
        if matches!(
            command,
            Command::Prompt(_) | Command::PromptWith { .. } | Command::Steer(_) | Command::Retry | Command::Compact
        ) {
            state.turn.is_running = true;
            state.turn.since.get_or_insert_with(now_ms);
            let frame = state.turn_frame();
            self.send([frame]);
        }
        commands.send(command).map_err(|_| CommandRefusal::Invalid("the session has ended".to_owned()))
    }

    /// Takes the updates of a session until it ends.
    pub(crate) fn pump(&self, updates: &Receiver<Update>, stored: &StoredEntries<'_>) {
        let mut flushed = Instant::now();
        loop {
            let resent = self.lock().transcript.resent_bytes();
            let update = match resent {
                None => updates.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(bytes) => {
                    let delay = Duration::from_millis((bytes * 1000 / RESENT_BYTES_PER_SECOND) as u64).max(FLUSH_AFTER);
                    match (flushed + delay).checked_duration_since(Instant::now()) {
                        Some(left) => updates.recv_timeout(left),
                        // Even if more updates are waiting: a fast reply must not delay the frame.
                        None => Err(RecvTimeoutError::Timeout),
                    }
                }
            };
            let mut state = self.lock();
            match update {
                Ok(update) => {
                    let grows = matches!(update, Update::Grew { .. } | Update::Item { .. });
                    if !grows || resent.is_none() {
                        flushed = Instant::now();
                    }
                    if !grows {
                        self.send(state.transcript.flush());
                    }
                    let frames = state.take(update, stored);
                    self.send(frames);
                }
                Err(RecvTimeoutError::Timeout) => {
                    flushed = Instant::now();
                    self.send(state.transcript.flush());
                }
                Err(RecvTimeoutError::Disconnected) => {
                    if matches!(state.access, HubAccess::Writer(_)) {
                        state.access = HubAccess::Ended;
                    }
                    self.send([Frame::new(state.transcript.position(), "ended", &json!({}))]);
                    return;
                }
            }
        }
    }

    /// Updates from the store, for a session that another process writes.
    pub(crate) fn sync(&self, entries: Vec<Entry>, earlier: Option<i64>) {
        let mut state = self.lock();
        let frames = state.transcript.sync(entries, earlier);
        self.send(frames);
    }

    /// Without a tab there is no receiver.
    fn send(&self, frames: impl IntoIterator<Item = Frame>) {
        for frame in frames {
            drop(self.frames.send(frame));
        }
    }
}

impl HubState {
    fn first_frames(&self, from: Option<Position>) -> Vec<Frame> {
        let mut frames = vec![self.hello()];
        match from {
            Some(from) => frames.extend(self.transcript.since(from)),
            None => frames.push(self.transcript.whole()),
        }
        frames
    }

    /// Everything but the messages.
    fn hello(&self) -> Frame {
        let data = json!({
            "session": self.id,
            "readOnly": matches!(self.access, HubAccess::Reader),
            "status": self.status,
            "lists": self.lists,
            "prompts": self.prompts,
            "turn": self.turn.view(),
            "sent": self.sent,
            "notes": self.notes,
            "modes": ToolMode::WORDS,
            "commands": COMMANDS.iter().map(|entry| [entry.name, entry.arguments, entry.doc]).collect::<Vec<_>>(),
            "questions": self.questions.iter().map(|(question, asked)| question_view(question, *asked)).collect::<Vec<_>>(),
            "now": now_ms(),
        });
        // It does not affect the messages, so a tab keeps its position.
        Frame { position: Position::default(), text: format!("event: hello\ndata: {data}\n\n").into() }
    }

    fn frame(&self, event: &str, data: &Value) -> Frame {
        Frame::new(self.transcript.position(), event, data)
    }

    fn turn_frame(&self) -> Frame {
        self.frame("turn", &self.turn.view())
    }

    /// Checks an answer and takes the question away.
    fn answer(&mut self, id: QuestionId, answer: &PermissionAnswer) -> Result<Frame, CommandRefusal> {
        let at = self.questions.iter().position(|(question, _)| question.id == id).ok_or(CommandRefusal::Answered)?;
        let Some((question, asked)) = self.questions.get(at) else { return Err(CommandRefusal::Answered) };
        if asked.elapsed() < Duration::from_millis(IGNORE_KEYS_MS) {
            return Err(CommandRefusal::TooEarly);
        }
        let is_lasting = matches!(answer, PermissionAnswer::Session | PermissionAnswer::Project);
        if is_lasting && !AnswerChoices::new(&question.about).offers_lasting() {
            return Err(CommandRefusal::Invalid("this question has no lasting answer".to_owned()));
        }
        self.questions.remove(at);
        Ok(self.frame("answered", &json!({"id": id.0, "permit": answer.as_str()})))
    }

    /// Shows a line that is not part of the conversation.
    fn note(&mut self, kind: &str, value: Value) -> Frame {
        self.n_notes += 1;
        let note =
            json!({"number": self.n_notes, "after": self.transcript.position().entry, "kind": kind, "value": value});
        let frame = self.frame("note", &note);
        self.notes.push(note);
        if self.notes.len() > MAX_NOTES {
            self.notes.remove(0);
        }
        frame
    }

    fn take(&mut self, update: Update, stored: &StoredEntries<'_>) -> Vec<Frame> {
        let one = |frame: Frame| vec![frame];
        let optional = |frame: Option<Frame>| frame.into_iter().collect();
        match update {
            Update::Sending(sending) => self.sending(*sending),
            Update::Opened { block, opening } => {
                self.turn.retry = None;
                let model = self.turn.sending.model.clone();
                self.transcript.opened(block, &opening, now_ms(), &model)
            }
            Update::Item { block } => optional(self.transcript.item(block)),
            Update::Grew { block, text } => optional(self.transcript.grew(block, &text)),
            Update::Refiled { block, to } => optional(self.transcript.refiled(block, to, now_ms())),
            Update::ClosedAsStreamed { block, span, sealed_bytes } => {
                self.transcript.closed_as_streamed(block, span, sealed_bytes)
            }
            Update::Closed { block, value } => optional(self.transcript.closed(block, &value)),
            Update::Emptied { block } => optional(self.transcript.emptied(block)),
            Update::Retrying { after, attempt, why } => {
                let retry =
                    json!({"afterMs": after.as_millis() as u64, "attempt": attempt, "why": why, "at": now_ms()});
                self.turn.retry = Some(retry);
                one(self.turn_frame())
            }
            Update::TurnNotice(notice) => {
                let text = wording::turn_notice(&notice);
                one(self.note("notice", json!({"what": text.what, "hint": text.detail})))
            }
            Update::Noted(note) => one(self.note("notice", json!({"what": note.message}))),
            Update::ToolStarted(call) => optional(self.transcript.tool_started(&call, now_ms())),
            Update::ToolOutput { call, tail, n_lines } => {
                optional(self.transcript.tool_output(&call, OutputView::new(&tail, n_lines)))
            }
            Update::ToolEnded(result) => self.transcript.tool_ended(&result, now_ms()),
            Update::Recorded(message) => optional(self.transcript.recorded(&message)),
            Update::TurnEnded(end) => self.turn_ended(&end),
            Update::SessionStored(id) => self.stored_as(id),
            Update::MessageStored(id) => {
                self.transcript.set_next_id(id);
                Vec::new()
            }
            Update::QuestionAsked(question) => {
                let view = question_view(&question, Instant::now());
                self.questions.push((*question, Instant::now()));
                one(self.frame("question", &json!(view)))
            }
            Update::QuestionWithdrawn(id) => {
                self.questions.retain(|(question, _)| question.id != id);
                one(self.frame("answered", &json!({"id": id.0, "permit": "withdrawn"})))
            }
            Update::CommandOutput(output) => {
                let (kind, value) = output_view(&output);
                one(self.note(kind, value))
            }
            Update::Compacted { summarised, kept, .. } => {
                let entries = self.transcript.entries();
                let first_kept = entries.len().checked_sub(kept).and_then(|at| entries.get(at));
                self.kept_from = Some(first_kept.map_or(i64::MAX, |entry| entry.id));
                one(self.note("line", json!({"what": wording::compacted(summarised)})))
            }
            Update::Restored(messages) => {
                let reloaded = stored(&self.id);
                let local = || messages.iter().zip(1..).map(|(message, id)| Entry::of(id, message)).collect();
                let (entries, earlier) = reloaded.unwrap_or_else(|| (local(), None));
                self.transcript = Transcript::new(entries, earlier);
                self.kept_from = None;
                one(self.transcript.whole())
            }
            Update::Undone(text) => one(self.frame("undone", &json!({"text": text}))),
            Update::NotSent { text, what, hint } => {
                self.turn = Turn::default();
                let refused = self.frame("notSent", &json!({"text": text}));
                vec![refused, self.note("error", json!({"what": what, "hint": hint})), self.turn_frame()]
            }
            Update::NotSteered { text, error } => {
                let mut frames = one(self.frame("notSent", &json!({"text": text})));
                if let Some(SteeringError { what, hint }) = error {
                    frames.push(self.note("error", json!({"what": what, "hint": hint})));
                }
                frames
            }
            Update::Status(status) => {
                self.status = *status;
                one(self.frame("status", &json!(self.status)))
            }
            Update::CompletionLists(lists) => {
                self.lists = *lists;
                one(self.frame("lists", &json!(self.lists)))
            }
            // The page asks for no live lists.
            Update::Models(_) => Vec::new(),
            Update::PromptHistory(prompts) => {
                let newest = prompts.len().saturating_sub(100);
                self.prompts = prompts.into_iter().skip(newest).collect();
                one(self.frame("prompts", &json!(self.prompts)))
            }
            Update::Ready => {
                let was_running = std::mem::take(&mut self.turn.is_running);
                self.turn.since = None;
                if was_running { one(self.turn_frame()) } else { Vec::new() }
            }
            // The stored message has them; signals do not come this way.
            Update::Sealed { .. } | Update::Usage(_) | Update::ReplyEnded(_) | Update::GoTo { .. } => Vec::new(),
            Update::Interrupt | Update::Quit | Update::Suspend => Vec::new(),
            // The hub asks for none.
            Update::Detail(_) => Vec::new(),
        }
    }

    fn sending(&mut self, sending: Sending) -> Vec<Frame> {
        self.transcript.sending();
        let mut frames: Vec<Frame> = Vec::new();
        for note in &sending.notes {
            frames.push(self.note("notice", json!({"what": note})));
        }
        let entries = self.transcript.entries();
        // Both lists end with the same message, but the transcript may begin later.
        let row = |row: &aside_front::DecisionRow| {
            let from_end = sending.messages.checked_sub(row.message)?;
            let entry = entries.get(entries.len().checked_sub(from_end)?)?;
            let block = row.block.filter(|block| matches!(entry.blocks.get(*block), Some(Body::Thinking(_))))?;
            Some(json!({"entry": entry.id, "block": block, "action": row.action, "why": row.why}))
        };
        let mut known: Vec<Value> = sending.decisions.iter().filter_map(row).collect();
        known.extend(self.kept_from.into_iter().flat_map(|kept_from| summarised(entries, kept_from)));
        let rows = &sending.decisions;
        self.sent = json!({"blocks": known, "rows": rows});
        frames.push(self.frame("sent", &self.sent));
        self.turn = Turn {
            is_running: true,
            since: self.turn.since.or_else(|| Some(now_ms())),
            sending: Sending { notes: Vec::new(), decisions: Vec::new(), ..sending },
            retry: None,
        };
        frames.push(self.turn_frame());
        frames
    }

    fn turn_ended(&mut self, end: &aside_core::turn::TurnEnd) -> Vec<Frame> {
        let mut frames = self.transcript.turn_ended(now_ms());
        self.turn = Turn { sending: std::mem::take(&mut self.turn.sending), ..Turn::default() };
        self.questions.clear();
        if let Some(notice) = wording::turn_end(end, HintStyle::SlashCommands) {
            let kind = match notice.severity {
                Severity::Warning => "warning",
                Severity::Error => "error",
            };
            frames.push(self.note(kind, json!({"what": notice.what, "hint": notice.hint})));
        }
        frames.push(self.turn_frame());
        frames
    }

    /// The session continues in a copy, under another id.
    fn stored_as(&mut self, id: String) -> Vec<Frame> {
        if self.id == id {
            return Vec::new();
        }
        self.id = id;
        vec![self.hello()]
    }
}

/// The thinking of messages that are replaced by a summary.
fn summarised(entries: &[Entry], kept_from: i64) -> impl Iterator<Item = Value> {
    let of_entry = |entry: &Entry| {
        let (id, blocks) = (entry.id, entry.blocks.iter().enumerate());
        let thinking = blocks.filter(|(_, body)| matches!(body, Body::Thinking(_))).map(|(block, _)| block);
        thinking.map(move |block| (id, block)).collect::<Vec<_>>()
    };
    let older = entries.iter().take_while(move |entry| entry.id != kept_from);
    older.flat_map(of_entry).map(|(entry, block)| {
        json!({"entry": entry, "block": block, "action": "summarised", "why": "this turn was replaced by a summary"})
    })
}

fn question_view(question: &PendingQuestion, asked: Instant) -> QuestionView {
    let passed = u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX);
    QuestionView::new(question, IGNORE_KEYS_MS.saturating_sub(passed))
}

/// The output of a command, with Markdown as nodes.
fn output_view(output: &CommandOutput) -> (&'static str, Value) {
    match output {
        CommandOutput::Line(text) => ("line", json!({"what": text})),
        CommandOutput::Error { what, hint } => ("error", json!({"what": what, "hint": hint})),
        CommandOutput::Table { head, rows } => ("table", json!({"head": head, "rows": rows})),
        CommandOutput::Markdown(text) => ("markdown", json!({"nodes": aside_markdown::parse(text)})),
        CommandOutput::Titled { command, page } => {
            let (kind, mut value) = output_view(page);
            if let Some(members) = value.as_object_mut() {
                members.insert("command".to_owned(), json!(command));
            }
            (kind, value)
        }
    }
}
