//! Translates what a session reports into what an editor shows.
//!
//! One translator serves both ways to see a session. Live, the blocks of a reply are sent while they grow, and
//! the recorded message adds what is known only then. In a stored session the recorded message is all there is,
//! and the same code sends every block of it. So both transcripts are equal.

mod notices;
mod recorded;
mod streaming;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use aside_core::block::{Block, ToolCall, ToolResult};
use aside_core::compaction::is_summary;
use aside_core::event::BlockId;
use aside_core::message::{Message, Role};
use aside_front::wording::turn_notice;
use aside_front::{CostSoFar, Update};

use crate::growth::{ChunkKind, ChunkTarget, Growth};
use crate::requests::ClientAbilities;
use crate::session_update::{
    AsideMeta, Chunk, Content, NoticeSeverity, SessionUpdate, ToolCallFields, ToolContent, ToolStatus,
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
            | Update::TakenBack(_)
            | Update::NotTakenBack(_)
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
