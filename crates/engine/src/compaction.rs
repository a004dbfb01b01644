//! Compaction: replaces older turns with a summary before the context window is full. The original turns stay
//! in the history, on a branch of their own.

use aside_core::block::Block;
use aside_core::compaction::{
    CompactionPlan, CompactionTrigger, ContextUsage, CountedBranch, NoCompaction, last_counted_tokens, plan,
};
use aside_core::history::History;
use aside_core::message::Message;
use aside_core::turn::TurnEnd;
use tokio_util::sync::CancellationToken;

use crate::session::Session;
use crate::tools::NobodyToAsk;
use crate::turn_loop::TooLong;
use crate::update::{Front, Update};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactionResult {
    Skipped(NoCompaction),
    /// The number of messages that were summarised.
    Done(usize),
    /// The model gave no summary; nothing changed.
    Failed(String),
}

/// Nothing of the summary request is shown to the user.
struct SilentFront;

impl Front for SilentFront {
    fn on_update(&mut self, _: Update<'_>) {}
}

impl Session {
    /// Summarises the older turns if the context window is nearly full or the user asked for it.
    pub async fn compact(
        &mut self,
        trigger: CompactionTrigger,
        front: &mut dyn Front,
        cancel: &CancellationToken,
    ) -> CompactionResult {
        let encoded = self.encode(&[]);
        let branch = messages(&self.history);
        let mut usage = ContextUsage {
            counted: encoded.tokens,
            // A resumed session has no calibration yet, but its last reply has a reported count.
            used: self
                .calibration
                .calibrated_tokens(&self.calibration_key(), encoded.tokens)
                .or_else(|| last_counted_tokens(&branch))
                .unwrap_or(encoded.tokens),
            limit: self.settings.context_limit(),
            compact_at: self.settings.compact_at(),
        };
        if trigger == CompactionTrigger::Full
            && usage.needs_exact_count()
            && let Some(exact) = self.exact_tokens().await
        {
            // Providers add tokens of their own, which only their count includes.
            let reported = self.calibration.reported_before(&self.calibration_key(), encoded.tokens);
            usage.used = reported.map_or(exact, |reported| exact.max(reported));
        }
        let branch = messages(&self.history);
        let compaction =
            match plan(CountedBranch { messages: &branch, tokens: &encoded.message_tokens }, usage, trigger) {
                CompactionPlan::Nothing(why) => return CompactionResult::Skipped(why),
                CompactionPlan::Compact(compaction) => compaction,
            };
        drop(encoded);
        let request = compaction.request(&branch);
        let summary = match self.summary(request, cancel).await {
            Ok(summary) => summary,
            Err(why) => return CompactionResult::Failed(why),
        };
        let Some(summary) = compaction.summary_message(&summary) else {
            return CompactionResult::Failed("the summary came back empty".to_owned());
        };
        // The new branch has its own copy of the messages that stay.
        let branch = messages(&self.history);
        let shorter: Vec<Message> = compaction.messages(&branch, &summary).into_iter().cloned().collect();
        // Forking at the empty position always succeeds.
        let _moved = self.history.fork(None);
        for message in shorter {
            self.history.append(message);
        }
        let shorter = messages(&self.history);
        let summarised = compaction.summarise.len();
        front.on_update(Update::Compacted { branch: &shorter, summarised, trigger });
        front.flush();
        CompactionResult::Done(summarised)
    }

    /// The provider's count of the last request of the branch and its reply; none if a summary made it obsolete.
    pub fn last_counted_tokens(&self) -> Option<u64> {
        last_counted_tokens(&messages(&self.history))
    }

    /// Asks the model for a summary, outside the conversation and without tools.
    async fn summary(&mut self, mut request: Vec<Message>, cancel: &CancellationToken) -> Result<String, String> {
        let Some(question) = request.pop() else { return Err("there is nothing to summarise".to_owned()) };
        let mut aside = History::new();
        for message in request {
            aside.append(message);
        }
        let history = std::mem::replace(&mut self.history, aside);
        // The encoder's cache belongs to one history.
        let encoder = std::mem::take(&mut self.encoder);
        let (tools, expected) = (std::mem::take(&mut self.tools), self.expected_tools.take());
        let parameters = std::mem::take(&mut self.parameters);
        let end = self.run_steps(question, TooLong::Report, &mut SilentFront, &NobodyToAsk, cancel).await;
        let summary_history = std::mem::replace(&mut self.history, history);
        (self.encoder, self.tools, self.expected_tools) = (encoder, tools, expected);
        self.parameters = parameters;
        self.calibration.forget_last_request();
        match end {
            TurnEnd::Answered | TurnEnd::Length => Ok(answer_text(&summary_history)),
            TurnEnd::Failed(error) => Err(error.message),
            TurnEnd::Unreachable(error) => Err(error.what),
            TurnEnd::Interrupted => Err("it was stopped".to_owned()),
            TurnEnd::ThinkingOnly { .. }
            | TurnEnd::Empty
            | TurnEnd::Declined(_)
            | TurnEnd::CutOff
            | TurnEnd::Oversized { .. }
            | TurnEnd::OutOfSteps(_)
            | TurnEnd::OutOfMoney { .. } => Err("the model gave no summary".to_owned()),
        }
    }
}

/// The messages of the current branch.
fn messages(history: &History) -> Vec<&Message> {
    history.branch().into_iter().map(|(_, message)| message).collect()
}

/// The text of the last message, without thinking.
fn answer_text(history: &History) -> String {
    let branch = history.branch();
    let blocks = branch.last().map(|(_, message)| message.blocks.as_slice()).unwrap_or_default();
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.as_str()),
        Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => None,
    });
    texts.collect()
}
