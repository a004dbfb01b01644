//! Translates what a session reports into what an editor shows.
//!
//! One translator serves both ways to see a session. Live, the blocks of a reply are sent while they grow, and
//! the recorded message adds what is known only then. In a stored session the recorded message is all there is,
//! and the same code sends every block of it. So both transcripts are equal.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use aside_core::block::{Block, Thinking, ThinkingContent, ToolCall, ToolResult, Unmodelled};
use aside_core::compaction::is_summary;
use aside_core::event::{BlockId, ProseKind};
use aside_core::json::rfc3339;
use aside_core::message::{Message, Role};
use aside_core::tokens::estimate;
use aside_front::wording::turn_notice;
use aside_front::{CostSoFar, OpenedBlock, Update};

use crate::growth::{ChunkKind, ChunkTarget, Growth};
use crate::requests::ClientAbilities;
use crate::session_update::{
    AsideMeta, Chunk, Content, Cost, NoticeSeverity, SessionUpdate, ThoughtState, ToolCallFields, ToolContent,
    ToolKind, ToolStatus,
};
use crate::tool_calls;

/// The text of a thought that cannot be read.
const HIDDEN_THOUGHT: &str = "(The provider does not show this thought.)";

/// Whether a client shows notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Notices {
    Shown,
    /// They go where only programs see them.
    #[default]
    NotShown,
}

/// Turns updates into notifications of one session.
#[derive(Debug)]
pub(crate) struct Translator {
    folder: PathBuf,
    client: ClientAbilities,
    /// The context window.
    pub limit: Option<u64>,
    pub cost: Option<CostSoFar>,
    /// The id under which the reply is stored.
    reply: Option<String>,
    /// How many replies were not stored.
    n_unsaved: u64,
    blocks: Vec<StreamedBlock>,
    growth: Growth,
    /// The thought that was sent last, if nothing else was sent after it.
    last_thought: Option<ChunkTarget>,
    /// The calls of the last message, and their ids here.
    calls: HashMap<String, (String, ToolCall)>,
    n_outputs: u64,
    n_compactions: u64,
}

/// A block of the reply that streams.
#[derive(Debug)]
struct StreamedBlock {
    kind: BlockKind,
    /// Its position in the message; none if it is empty.
    index: Option<usize>,
    sent: SentText,
    /// How many items of a summary began.
    items: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
    ToolCall,
    Unmodelled,
}

/// What was sent of a block's text.
#[derive(Debug, Clone, Default)]
struct SentText {
    bytes: usize,
    hash: DefaultHasher,
    /// It was sent as text and is thinking, or the other way round.
    was_refiled: bool,
}

impl SentText {
    fn push(&mut self, text: &str) {
        self.bytes += text.len();
        self.hash.write(text.as_bytes());
    }

    /// What is missing of the whole text; none if something else was sent.
    fn rest_of<'t>(&self, whole: &'t str) -> Option<&'t str> {
        let (before, rest) = whole.split_at_checked(self.bytes)?;
        let mut hash = DefaultHasher::new();
        hash.write(before.as_bytes());
        (hash.finish() == self.hash.finish() && !self.was_refiled).then_some(rest)
    }
}

impl Translator {
    pub(crate) fn new(folder: PathBuf, client: ClientAbilities) -> Translator {
        Translator {
            folder,
            client,
            limit: None,
            cost: None,
            reply: None,
            n_unsaved: 0,
            blocks: Vec::new(),
            growth: Growth::default(),
            last_thought: None,
            calls: HashMap::new(),
            n_outputs: 0,
            n_compactions: 0,
        }
    }

    /// When [`Translator::tick`] has something to send.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.growth.deadline()
    }

    pub(crate) fn tick(&mut self, now: Instant, out: &mut Vec<SessionUpdate>) {
        self.growth.flush_if_due(now, out);
    }

    pub(crate) fn flush(&mut self, out: &mut Vec<SessionUpdate>) {
        self.growth.flush(out);
    }

    /// Translates what belongs to the transcript. Everything else is for the peer.
    pub(crate) fn update(&mut self, update: &Update, now: Instant, out: &mut Vec<SessionUpdate>) {
        if !matches!(update, Update::Grew { .. }) {
            self.flush_before(update, out);
        }
        match update {
            Update::Sending(_) => self.end_reply(),
            Update::MessageStored(id) => self.reply = Some(id.to_string()),
            Update::Opened { block, opening } => self.open(*block, opening, out),
            Update::Item { block } => self.begin_item(*block, now, out),
            Update::Grew { block, text } => self.grow(*block, text, Some(now), out),
            Update::Refiled { block, to } => self.refile(*block, *to, now, out),
            Update::ClosedAsStreamed { block, .. } => self.close_hidden(*block, out),
            Update::Closed { block, value } => match &**value {
                Block::Thinking(thinking) if thinking.text().is_empty() => self.close_hidden(*block, out),
                Block::Unmodelled(item) => self.close_item(*block, item, out),
                Block::Thinking(_) | Block::Text(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) => (),
            },
            Update::Emptied { block } => {
                if let Some(block) = self.blocks.get_mut(position(*block)) {
                    block.index = None;
                }
            }
            Update::Noted(note) => self.notice(NoticeSeverity::Info, &note.message, None, out),
            Update::Retrying { why, attempt, .. } => {
                self.notice(NoticeSeverity::Warning, &format!("{why}; trying again ({attempt})"), None, out);
            }
            Update::TurnNotice(notice) => {
                let text = turn_notice(notice);
                self.notice(NoticeSeverity::Warning, &text.what, text.detail.as_deref(), out);
            }
            Update::ToolStarted(call) => {
                if let Some((tool_call_id, _)) = self.calls.get(call.id.as_str()) {
                    let status = Some(ToolStatus::InProgress);
                    let tool_call_id = tool_call_id.clone();
                    out.push(SessionUpdate::ToolCallUpdate(ToolCallFields {
                        tool_call_id,
                        status,
                        ..ToolCallFields::default()
                    }));
                }
            }
            Update::ToolOutput { call, tail, n_lines } => self.running_output(call, tail, *n_lines, out),
            Update::ToolEnded(result) => self.end_call(result, out),
            Update::Recorded(message) => {
                self.recorded(message, out);
                self.end_reply();
            }
            Update::Compacted { summary, .. } => self.compaction(summary, out),
            // The recorded message has what the deltas did not say.
            Update::Sealed { .. } | Update::Usage(_) | Update::ReplyEnded(_) => (),
            Update::TurnEnded(_)
            | Update::Detail(_)
            | Update::SessionStored(_)
            | Update::NotSteered { .. }
            | Update::QuestionAsked(_)
            | Update::QuestionWithdrawn(_)
            | Update::CommandOutput(_)
            | Update::Restored(_)
            | Update::Undone(_)
            | Update::NotSent { .. }
            | Update::GoTo { .. }
            | Update::Status(_)
            | Update::CompletionLists(_)
            | Update::Models(_)
            | Update::PromptHistory(_)
            | Update::Ready
            | Update::Interrupt
            | Update::Quit
            | Update::Suspend => (),
        }
    }

    /// Text before a possible change of its kind waits: it may be reclassified.
    fn flush_before(&mut self, update: &Update, out: &mut Vec<SessionUpdate>) {
        if !matches!(update, Update::Refiled { .. } | Update::Sealed { .. } | Update::Usage(_)) {
            self.growth.flush(out);
        }
    }

    /// All messages of a stored session, with their ids.
    pub(crate) fn replay(&mut self, messages: &[(Option<i64>, Arc<Message>)], out: &mut Vec<SessionUpdate>) {
        for (id, message) in messages {
            self.reply = id.map(|id| id.to_string());
            match message.role {
                Role::User if message.is_answer_now() => (),
                Role::User => self.user_message(message, out),
                Role::System => (),
                Role::Assistant | Role::Tool => self.recorded(message, out),
            }
            self.end_reply();
        }
    }

    /// Older turns were replaced by this summary.
    fn compaction(&mut self, summary: &str, out: &mut Vec<SessionUpdate>) {
        if !self.client.compactions {
            return;
        }
        self.last_thought = None;
        self.n_compactions += 1;
        out.push(SessionUpdate::CompactionUpdate {
            compaction_id: format!("compaction-{}", self.n_compactions),
            status: "completed",
            summary: vec![Content::Text { text: summary.to_owned() }],
        });
    }

    fn user_message(&mut self, message: &Message, out: &mut Vec<SessionUpdate>) {
        self.last_thought = None;
        if let ([Block::Text(summary)], true) = (&message.blocks[..], is_summary(message) && self.client.compactions) {
            return self.compaction(&summary.text, out);
        }
        // The user did not write a summary.
        let kind = if is_summary(message) { ChunkKind::Answer } else { ChunkKind::User };
        for (index, block) in message.blocks.iter().enumerate() {
            let target = ChunkTarget { kind, message_id: self.message_id(index), block: index, item: None };
            match block {
                Block::Text(text) => target.write(&text.text, out),
                Block::Media(media) => out.push(SessionUpdate::UserMessageChunk(Chunk {
                    content: tool_calls::media_content(media),
                    message_id: target.message_id,
                    meta: None,
                })),
                Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Unmodelled(_) => (),
            }
        }
    }

    /// The id of a block: that of the stored message, and the block's position in it.
    fn message_id(&mut self, index: usize) -> String {
        let n_unsaved = &mut self.n_unsaved;
        let reply = self.reply.get_or_insert_with(|| {
            *n_unsaved += 1;
            format!("unsaved-{n_unsaved}")
        });
        format!("{reply}:{index}")
    }

    fn end_reply(&mut self) {
        self.blocks.clear();
        self.reply = None;
    }

    fn open(&mut self, block: BlockId, opening: &OpenedBlock, out: &mut Vec<SessionUpdate>) {
        if position(block) != self.blocks.len() {
            // A new reply whose request was not announced.
            self.blocks.clear();
        }
        let kind = match opening {
            OpenedBlock::Text => BlockKind::Text,
            OpenedBlock::Thinking => BlockKind::Thinking,
            OpenedBlock::ToolCall { .. } => BlockKind::ToolCall,
            OpenedBlock::Unmodelled => BlockKind::Unmodelled,
        };
        let index = self.blocks.iter().filter(|block| block.index.is_some()).count();
        self.blocks.push(StreamedBlock { kind, index: Some(index), sent: SentText::default(), items: 0 });
        if let OpenedBlock::ToolCall { name } = opening {
            let tool_call_id = self.message_id(index);
            self.begin_call(tool_call_id, name, out);
        }
    }

    fn begin_call(&mut self, tool_call_id: String, name: &str, out: &mut Vec<SessionUpdate>) {
        self.last_thought = None;
        out.push(SessionUpdate::ToolCall(ToolCallFields {
            tool_call_id,
            title: Some(name.to_owned()),
            name: Some(name.to_owned()),
            kind: Some(tool_calls::kind(name)),
            status: Some(ToolStatus::Pending),
            ..ToolCallFields::default()
        }));
    }

    /// Each item of a summary but the first begins after a blank line.
    fn begin_item(&mut self, block: BlockId, now: Instant, out: &mut Vec<SessionUpdate>) {
        if self.blocks.get(position(block)).is_some_and(|block| block.sent.bytes > 0) {
            self.grow(block, "\n\n", Some(now), out);
            self.growth.flush(out);
        }
        if let Some(block) = self.blocks.get_mut(position(block)) {
            block.items += 1;
        }
    }

    fn grow(&mut self, block: BlockId, text: &str, now: Option<Instant>, out: &mut Vec<SessionUpdate>) {
        let Some(streamed) = self.blocks.get_mut(position(block)) else { return };
        let (Some(index), false) = (streamed.index, text.is_empty()) else { return };
        let kind = match streamed.kind {
            BlockKind::Text => ChunkKind::Answer,
            BlockKind::Thinking => ChunkKind::Thought(ThoughtState::Open),
            BlockKind::ToolCall | BlockKind::Unmodelled => return,
        };
        if streamed.sent.was_refiled {
            // It is sent again as a whole.
            return;
        }
        streamed.sent.push(text);
        let item = streamed.items.checked_sub(1);
        let target = ChunkTarget { kind, message_id: self.message_id(index), block: index, item };
        self.write(&target, text, now, out);
    }

    fn write(&mut self, target: &ChunkTarget, text: &str, now: Option<Instant>, out: &mut Vec<SessionUpdate>) {
        match target.kind {
            ChunkKind::Thought(_) => {
                let before = self.last_thought.replace(target.clone());
                // A client that joins all thoughts would otherwise run two into each other.
                if let Some(before) = before.filter(|before| before.message_id != target.message_id) {
                    self.growth.push(&before, "\n\n", now, out);
                    self.growth.flush(out);
                }
            }
            ChunkKind::User | ChunkKind::Answer => self.last_thought = None,
        }
        self.growth.push(target, text, now, out);
    }

    /// Text turned out to be thinking, or the other way round. What was sent cannot be taken back, so the block is
    /// sent again when it is recorded.
    fn refile(&mut self, block: BlockId, to: ProseKind, now: Instant, out: &mut Vec<SessionUpdate>) {
        let Some(index) = self.blocks.get(position(block)).and_then(|block| block.index) else { return };
        let message_id = self.message_id(index);
        let held = self.growth.take_back(&message_id);
        let Some(streamed) = self.blocks.get_mut(position(block)) else { return };
        streamed.kind = match to {
            ProseKind::Text => BlockKind::Text,
            ProseKind::Thinking => BlockKind::Thinking,
        };
        match held {
            Some(held) if held.len() == streamed.sent.bytes => {
                streamed.sent = SentText::default();
                self.grow(block, &held, Some(now), out);
            }
            Some(_) | None if streamed.sent.bytes > 0 => {
                streamed.sent.was_refiled = true;
                let what = match to {
                    ProseKind::Text => "what looked like a thought is the answer; it follows as a whole",
                    ProseKind::Thinking => "what looked like the answer is a thought; it follows as a whole",
                };
                self.notice(NoticeSeverity::Warning, what, None, out);
            }
            Some(_) | None => (),
        }
    }

    /// A thought that ended without text is hidden.
    fn close_hidden(&mut self, block: BlockId, out: &mut Vec<SessionUpdate>) {
        let streamed = self.blocks.get(position(block));
        let hidden = streamed.filter(|block| block.kind == BlockKind::Thinking && block.sent.bytes == 0);
        if let Some(index) = hidden.and_then(|block| block.index) {
            self.hidden_thought(index, out);
            if let Some(streamed) = self.blocks.get_mut(position(block)) {
                streamed.sent.push(HIDDEN_THOUGHT);
            }
        }
    }

    /// An item that only the provider understands is shown as a tool call that ended.
    fn item(&mut self, tool_call_id: String, item: &Unmodelled, out: &mut Vec<SessionUpdate>) {
        self.growth.flush(out);
        self.last_thought = None;
        out.push(SessionUpdate::ToolCall(ToolCallFields {
            tool_call_id,
            title: Some("item of the provider".to_owned()),
            kind: Some(ToolKind::Other),
            status: Some(ToolStatus::Completed),
            raw_output: serde_json::from_str(&item.native.json).ok(),
            ..ToolCallFields::default()
        }));
    }

    fn close_item(&mut self, block: BlockId, item: &Unmodelled, out: &mut Vec<SessionUpdate>) {
        let unsent = self.blocks.get_mut(position(block)).filter(|streamed| streamed.sent.bytes == 0);
        let Some((index, streamed)) = unsent.and_then(|streamed| Some((streamed.index?, streamed))) else { return };
        streamed.sent.push(&item.native.json);
        let id = self.message_id(index);
        self.item(id, item, out);
    }

    fn hidden_thought(&mut self, index: usize, out: &mut Vec<SessionUpdate>) {
        let kind = ChunkKind::Thought(ThoughtState::Hidden);
        let target = ChunkTarget { kind, message_id: self.message_id(index), block: index, item: None };
        self.write(&target, HIDDEN_THOUGHT, None, out);
        self.growth.flush(out);
    }

    /// The newest output of a running command. Content replaces the content before, and the result replaces both.
    fn running_output(&self, call: &str, tail: &str, n_lines: u64, out: &mut Vec<SessionUpdate>) {
        let Some((tool_call_id, _)) = self.calls.get(call).filter(|_| !tail.is_empty()) else { return };
        let meta = AsideMeta { lines: Some(n_lines), ..AsideMeta::default() };
        out.push(SessionUpdate::ToolCallUpdate(ToolCallFields {
            tool_call_id: tool_call_id.clone(),
            status: Some(ToolStatus::InProgress),
            content: vec![ToolContent::text(tail)],
            meta: meta.meta(),
            ..ToolCallFields::default()
        }));
    }

    fn end_call(&mut self, result: &ToolResult, out: &mut Vec<SessionUpdate>) {
        if let Some((tool_call_id, call)) = self.calls.remove(&result.id) {
            out.push(SessionUpdate::ToolCallUpdate(tool_calls::ended(tool_call_id, Some(&call), result, &self.folder)));
        }
    }

    /// Sends what was not sent while the message streamed: all of it if it comes from the store.
    fn recorded(&mut self, message: &Message, out: &mut Vec<SessionUpdate>) {
        match message.role {
            Role::Assistant => self.recorded_reply(message, out),
            Role::Tool => {
                for block in &message.blocks {
                    if let Block::ToolResult(result) = block {
                        self.end_call(result, out);
                    }
                }
            }
            Role::User | Role::System => (),
        }
    }

    fn recorded_reply(&mut self, message: &Message, out: &mut Vec<SessionUpdate>) {
        self.growth.flush(out);
        self.calls.clear();
        let mut streamed: HashMap<usize, StreamedBlock> =
            self.blocks.drain(..).filter_map(|block| Some((block.index?, block))).collect();
        for (index, block) in message.blocks.iter().enumerate() {
            let streamed = streamed.remove(&index);
            self.send_missing(index, block, streamed, out);
        }
        self.growth.flush(out);
        for (index, block) in message.blocks.iter().enumerate() {
            match block {
                Block::Thinking(thinking) => self.thought_facts(index, thinking, message, out),
                Block::ToolCall(call) => {
                    let id = self.message_id(index);
                    let fields = tool_calls::with_arguments(id.clone(), call, &self.folder);
                    out.push(SessionUpdate::ToolCallUpdate(fields));
                    self.calls.insert(call.id.as_str().to_owned(), (id, call.clone()));
                }
                Block::Text(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => (),
            }
        }
        self.usage(message, out);
    }

    /// Sends what was not sent of a block.
    fn send_missing(
        &mut self,
        index: usize,
        block: &Block,
        streamed: Option<StreamedBlock>,
        out: &mut Vec<SessionUpdate>,
    ) {
        let target = |kind, message_id| ChunkTarget { kind, message_id, block: index, item: None };
        let message_id = self.message_id(index);
        let sent = streamed.as_ref().map(|block| block.sent.clone()).unwrap_or_default();
        match block {
            Block::Text(text) => {
                let target = target(ChunkKind::Answer, message_id);
                self.send_rest(target, &text.text, &sent, out);
            }
            Block::Thinking(thinking) if thinking.text().is_empty() => {
                if sent.bytes == 0 {
                    self.hidden_thought(index, out);
                }
            }
            Block::Thinking(thinking) if sent.bytes == 0 && !thinking.items.is_empty() => {
                self.send_items(index, thinking, &message_id, out);
            }
            Block::Thinking(thinking) => {
                let target = target(ChunkKind::Thought(ThoughtState::Open), message_id);
                self.send_rest(target, thinking.text(), &sent, out);
            }
            Block::ToolCall(call) => {
                if streamed.is_none() {
                    self.growth.flush(out);
                    self.begin_call(message_id, &call.name, out);
                }
            }
            Block::Media(media) => {
                self.growth.flush(out);
                self.last_thought = None;
                let content = tool_calls::media_content(media);
                out.push(SessionUpdate::AgentMessageChunk(Chunk { content, message_id, meta: None }));
            }
            Block::Unmodelled(item) => {
                if sent.bytes == 0 {
                    self.item(message_id, item, out);
                }
            }
            // Results are in messages of their own.
            Block::ToolResult(_) => (),
        }
    }

    fn send_rest(&mut self, target: ChunkTarget, whole: &str, sent: &SentText, out: &mut Vec<SessionUpdate>) {
        match sent.rest_of(whole) {
            Some("") => (),
            Some(rest) => self.write(&target, rest, None, out),
            None => {
                // The provider corrected itself, or the kind of the block changed. One id never names both versions.
                let message_id = format!("{}:corrected", target.message_id);
                self.write(&ChunkTarget { message_id, ..target }, whole, None, out);
            }
        }
    }

    fn send_items(&mut self, index: usize, thinking: &Thinking, message_id: &str, out: &mut Vec<SessionUpdate>) {
        let (text, mut from) = (thinking.text(), 0);
        let last = thinking.items.len().saturating_sub(1);
        for (item, range) in thinking.items.iter().enumerate() {
            // What stands between two items belongs to the first.
            let to = if item == last {
                text.len()
            } else {
                thinking.items.get(item + 1).map_or(range.end, |next| next.start)
            };
            let kind = ChunkKind::Thought(ThoughtState::Open);
            let target =
                ChunkTarget { kind, message_id: message_id.to_owned(), block: index, item: u32::try_from(item).ok() };
            self.write(&target, text.get(from..to).unwrap_or_default(), None, out);
            from = to;
        }
    }

    /// What is known about a thought only when it is recorded.
    fn thought_facts(&mut self, index: usize, thinking: &Thinking, message: &Message, out: &mut Vec<SessionUpdate>) {
        let state = match &thinking.content {
            ThinkingContent::Hidden { .. } => ThoughtState::Hidden,
            ThinkingContent::Sealed { text, .. } if text.is_empty() => ThoughtState::Hidden,
            ThinkingContent::Sealed { .. } => ThoughtState::Sealed,
            ThinkingContent::Open { .. } => ThoughtState::Open,
        };
        let is_only_one = message.thinking().count() == 1;
        let counted = message.usage.and_then(|usage| usage.reasoning).filter(|_| is_only_one);
        let estimated = (!thinking.text().is_empty()).then(|| estimate(thinking.text()));
        let tokens = counted.or(estimated);
        let meta = AsideMeta {
            message_id: Some(self.message_id(index)),
            block: Some(index),
            state: Some(state),
            source: Some(thinking.source.clone()).filter(|source| !source.is_empty()),
            started_at: thinking.span.map(|span| rfc3339(span.started)),
            ended_at: thinking.span.map(|span| rfc3339(span.ended)),
            tokens,
            estimated: tokens.map(|_| counted.is_none()),
            ..AsideMeta::default()
        };
        out.push(SessionUpdate::SessionInfoUpdate { title: None, meta: meta.meta() });
    }

    fn usage(&mut self, message: &Message, out: &mut Vec<SessionUpdate>) {
        let input = message.usage.and_then(|usage| Some((usage.input?, usage.output.unwrap_or(0))));
        let (Some((input, output)), Some(size)) = (input, self.limit) else { return };
        let cost = self.cost.map(|cost| Cost { amount: cost.microdollars as f64 / 1e6, currency: "USD" });
        out.push(SessionUpdate::UsageUpdate { used: input.saturating_add(output), size, cost });
    }

    /// Tells the user something that is not part of the conversation.
    pub(crate) fn notice(
        &mut self,
        severity: NoticeSeverity,
        what: &str,
        detail: Option<&str>,
        out: &mut Vec<SessionUpdate>,
    ) {
        match self.client.notices {
            Notices::Shown => out.push(SessionUpdate::Notice {
                severity,
                title: what.to_owned(),
                description: detail.map(str::to_owned),
            }),
            Notices::NotShown => {
                let line = detail.map_or_else(|| what.to_owned(), |detail| format!("{what}; {detail}"));
                let meta = AsideMeta { notice: Some(line), ..AsideMeta::default() };
                out.push(SessionUpdate::SessionInfoUpdate { title: None, meta: meta.meta() });
            }
        }
    }

    /// Tells the user something that must not be missed.
    pub(crate) fn warning(&mut self, what: &str, hint: Option<&str>, out: &mut Vec<SessionUpdate>) {
        match self.client.notices {
            Notices::Shown => self.notice(NoticeSeverity::Warning, what, hint, out),
            Notices::NotShown => {
                let hint = hint.map(|hint| format!("\n\nHint: {hint}")).unwrap_or_default();
                self.output(&format!("{what}{hint}"), out);
            }
        }
    }

    /// The output of a command, as a message of its own.
    pub(crate) fn output(&mut self, markdown: &str, out: &mut Vec<SessionUpdate>) {
        self.flush(out);
        self.n_outputs += 1;
        let message_id = format!("output-{}", self.n_outputs);
        let target = ChunkTarget { kind: ChunkKind::Answer, message_id, block: 0, item: None };
        self.last_thought = None;
        target.write(markdown, out);
    }

    /// The id of a call here, and the call.
    pub(crate) fn call(&self, id: &str) -> Option<(&str, &ToolCall)> {
        self.calls.get(id).map(|(tool_call_id, call)| (tool_call_id.as_str(), call))
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        &self.folder
    }
}

/// The content of a question that has no call: its lines as they must be read.
pub(crate) fn lines_content(lines: &[String]) -> ToolContent {
    ToolContent::Content { content: Content::Text { text: format!("```\n{}\n```", lines.join("\n")) } }
}

fn position(BlockId(id): BlockId) -> usize {
    usize::try_from(id).unwrap_or(usize::MAX)
}

#[cfg(test)]
#[path = "translator_tests.rs"]
mod tests;
