//! Making room: older turns become a summary before the window is full. What
//! they were stays in the history, in a branch of its own.

use aside_core::block::Block;
use aside_core::compact::{Branch, Occasion, Plan, Room, WhyNot, plan, summary_message};
use aside_core::history::History;
use aside_core::message::{Message, Role};
use aside_core::turn::TurnEnd;
use tokio_util::sync::CancellationToken;

use crate::session::Session;
use crate::tools::NobodyToAsk;
use crate::update::{Front, Update};

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compacted {
    Nothing(WhyNot),
    /// So many messages are one summary now.
    Done(usize),
    /// The summary could not be had; nothing changed.
    Failed(String),
}

/// The summary is nobody's conversation: only how it ends counts.
struct Silent;

impl Front for Silent {
    fn hear(&mut self, _: Update<'_>) {}
}

impl Session {
    /// Sums up the older turns: where the window is nearly full, or because the
    /// user wants it.
    pub async fn compact(
        &mut self,
        occasion: Occasion,
        front: &mut dyn Front,
        cancel: &CancellationToken,
    ) -> Compacted {
        let encoded = self.encode(&[]);
        let messages = |history: &History| -> Vec<Message> {
            history.branch().into_iter().map(|(_, message)| message.clone()).collect()
        };
        let branch: Vec<&Message> = self.history.branch().into_iter().map(|(_, message)| message).collect();
        let room = Room {
            counted: encoded.tokens,
            // A session that goes on has the count of its last answer at first.
            used: self
                .measure
                .effective(&self.who(), encoded.tokens)
                .or_else(|| reported(&branch))
                .unwrap_or(encoded.tokens),
            limit: self.settings.context_limit(),
            compact_at: self.settings.compact_at(),
        };
        let compaction = match plan(Branch { messages: &branch, tokens: &encoded.message_tokens }, room, occasion) {
            Plan::Nothing(why) => return Compacted::Nothing(why),
            Plan::Compact(compaction) => compaction,
        };
        drop(encoded);
        // Only now: most turns compact nothing, and a conversation may be long.
        let owned = messages(&self.history);
        let branch: Vec<&Message> = owned.iter().collect();
        let summary = match self.summary(compaction.request(&branch), cancel).await {
            Ok(summary) => summary,
            Err(why) => return Compacted::Failed(why),
        };
        let Some(summary) = summary_message(&summary) else {
            return Compacted::Failed("the summary came back empty".to_owned());
        };
        let shorter = compaction.messages(&branch, &summary);
        // Nothing is a place of every history, so this does not fail.
        let _moved = self.history.fork(None);
        for message in &shorter {
            self.history.append((*message).clone());
        }
        front.hear(Update::Compacted { branch: &shorter, summarised: compaction.summarise.len() });
        front.rest();
        Compacted::Done(compaction.summarise.len())
    }

    /// Has the model write a summary, beside the conversation and without tools.
    async fn summary(&mut self, mut request: Vec<Message>, cancel: &CancellationToken) -> Result<String, String> {
        let Some(question) = request.pop() else { return Err("there is nothing to sum up".to_owned()) };
        let mut aside = History::new();
        for message in request {
            aside.append(message);
        }
        let history = std::mem::replace(&mut self.history, aside);
        // What was written of one history is not to be found in another.
        let encoder = std::mem::take(&mut self.encoder);
        let (tools, coming) = (std::mem::take(&mut self.tools), self.coming.take());
        let end = self.steps(question, &mut Silent, &NobodyToAsk, cancel).await;
        let said = std::mem::replace(&mut self.history, history);
        (self.encoder, self.tools, self.coming) = (encoder, tools, coming);
        self.measure.forget_the_last();
        match end {
            TurnEnd::Answered | TurnEnd::Length => Ok(last_words(&said)),
            TurnEnd::Failed(error) => Err(error.message),
            TurnEnd::Unreachable(why) => Err(why),
            TurnEnd::Interrupted => Err("it was stopped".to_owned()),
            TurnEnd::ThinkingOnly { .. }
            | TurnEnd::Empty
            | TurnEnd::Declined(_)
            | TurnEnd::CutOff
            | TurnEnd::Oversized { .. }
            | TurnEnd::OutOfSteps(_) => Err("the model gave no summary".to_owned()),
        }
    }
}

/// What the provider counted last: the request before, and the answer to it.
fn reported(branch: &[&Message]) -> Option<u64> {
    let usage = branch.iter().rev().find(|message| message.role == Role::Assistant)?.usage?;
    Some(usage.input?.saturating_add(usage.output.unwrap_or_default()))
}

/// The answer of the last message; a thought is none.
fn last_words(history: &History) -> String {
    let branch = history.branch();
    let blocks = branch.last().map(|(_, message)| message.blocks.as_slice()).unwrap_or_default();
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.as_str()),
        Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => None,
    });
    texts.collect()
}
