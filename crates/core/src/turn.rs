//! One user turn as a state machine: inputs go in, actions come out. It has no
//! network, clock or tools; the engine provides them, so a turn can be tested
//! without IO.

use serde::{Deserialize, Serialize};

use crate::block::{Arguments, Block, Origin, Reply, ToolResult};
use crate::connection_failure::ConnectionError;
use crate::dialect::Repair;
use crate::event::{Ending, ProviderError, ReplyEnd};
use crate::message::{Message, Role};
use crate::rules::{AnswerMode, RepairNotice};

/// What happened.
#[derive(Debug)]
pub enum Input {
    /// The user's message is in the history.
    Begin,
    /// The stream has ended, complete or not.
    Replied(Reply),
    /// The provider refused the request before it sent any content, and no
    /// repair was left.
    Refused(ProviderError),
    /// The connection to the provider failed. What was received is kept.
    ConnectionFailed {
        /// What was received before.
        partial: Reply,
        /// The cause.
        failure: ConnectionError,
    },
    /// The reply exceeded the memory limit. What was received is kept.
    Oversized {
        /// What was received up to the limit.
        partial: Reply,
        /// The limit in bytes.
        most: u64,
    },
    /// The user wants the answer now. `partial` is the reply so far.
    AnswerNow {
        /// None if no reply has begun.
        partial: Option<Reply>,
    },
    /// All tools of the step have finished.
    ToolsFinished(Vec<ToolResult>),
    /// The user stopped the turn. `partial` is a running reply, `ran` the
    /// results of running tools.
    Cancelled {
        /// None if no reply was running.
        partial: Option<Reply>,
        /// Empty if no tool was running.
        ran: Vec<ToolResult>,
    },
}

/// What to do next, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Add this message to the history.
    Record(Box<Message>),
    /// Notify the user.
    Notify(TurnNotice),
    /// Build the request for this step from the history and send it.
    Send {
        /// The number of the request within the turn, from 1.
        step: u32,
        /// Whether the user asked for the answer now.
        answer_mode: AnswerMode,
    },
    /// Run these calls of the last recorded message concurrently. Indices into
    /// its blocks.
    Run(Vec<usize>),
    /// The turn is over.
    End(TurnEnd),
}

/// Something the user should know while the turn continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TurnNotice {
    /// The provider refused the request, which was repaired and sent again.
    Repaired {
        /// The id of the error row.
        row: String,
        /// What was changed.
        repair: Repair,
        /// The provider's message.
        refusal: String,
    },
    /// A call with invalid JSON as arguments is not run.
    BrokenCall {
        /// The tool that the model called.
        name: String,
    },
}

impl From<RepairNotice> for TurnNotice {
    fn from(RepairNotice { row, repair, refusal }: RepairNotice) -> TurnNotice {
        TurnNotice::Repaired { row, repair, refusal }
    }
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TurnEnd {
    /// The model answered.
    Answered,
    /// The reply contains only thinking.
    ThinkingOnly {
        /// Because the output limit was reached.
        for_length: bool,
    },
    /// The reply is empty.
    Empty,
    /// The answer reached the output limit.
    Length,
    /// The model refused to answer, or a filter blocked it.
    Declined(Declined),
    /// The stream ended before the provider was done.
    CutOff,
    /// The reply exceeded the memory limit.
    Oversized {
        /// The limit in bytes.
        most: u64,
    },
    /// The provider refused the request or failed.
    #[serde(with = "crate::json_value")]
    Failed(ProviderError),
    /// The connection to the provider failed.
    Unreachable(ConnectionError),
    /// The user stopped the turn.
    Interrupted,
    /// The turn reached the maximum number of steps.
    OutOfSteps(u32),
    /// The turn reached the maximum cost.
    OutOfMoney {
        /// What it cost, in millionths of a US dollar.
        microdollars: u64,
        /// The limit, in the same unit.
        most: u64,
    },
}

impl TurnEnd {
    /// Whether it is kept with the last message of the turn, because the messages do not show it.
    pub fn is_kept(&self) -> bool {
        match self {
            TurnEnd::Answered | TurnEnd::ThinkingOnly { .. } => false,
            TurnEnd::Empty
            | TurnEnd::Length
            | TurnEnd::Declined(_)
            | TurnEnd::CutOff
            | TurnEnd::Oversized { .. }
            | TurnEnd::Failed(_)
            | TurnEnd::Unreachable(_)
            | TurnEnd::Interrupted
            | TurnEnd::OutOfSteps(_)
            | TurnEnd::OutOfMoney { .. } => true,
        }
    }

    /// Whether the reply is complete, so that the user's next message can follow it in
    /// the same turn.
    pub fn leaves_room_for_more(&self) -> bool {
        match self {
            TurnEnd::Answered | TurnEnd::ThinkingOnly { .. } | TurnEnd::Length => true,
            TurnEnd::Empty
            | TurnEnd::Declined(_)
            | TurnEnd::CutOff
            | TurnEnd::Oversized { .. }
            | TurnEnd::Failed(_)
            | TurnEnd::Unreachable(_)
            | TurnEnd::Interrupted
            | TurnEnd::OutOfSteps(_)
            | TurnEnd::OutOfMoney { .. } => false,
        }
    }
}

/// Who declined to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Declined {
    /// The model itself.
    ByModel,
    /// A filter of the provider.
    ByFilter,
}

/// A running turn.
#[derive(Debug)]
pub struct Turn {
    /// Where requests go, and so the origin of the replies.
    origin: Origin,
    max_steps: u32,
    step: u32,
    /// How the turn ends instead of sending another request.
    limit_reached: Option<TurnEnd>,
    /// The mode of the current step.
    answer_mode: AnswerMode,
    /// Results for the calls of this step that cannot be run.
    unrunnable: Vec<ToolResult>,
    calls: Vec<OpenCall>,
    /// Messages that the user sent during the turn and that are not in the history yet.
    steering: Vec<Message>,
}

/// The id and name of a call without a result. The call itself is in the
/// history, because its arguments may be long.
#[derive(Debug)]
struct OpenCall {
    id: String,
    name: String,
}

impl Turn {
    /// A turn whose replies come from `origin`. After `max_steps` requests it
    /// ends, so that a model cannot call tools forever.
    pub fn new(origin: Origin, max_steps: u32) -> Turn {
        Turn {
            origin,
            max_steps,
            step: 0,
            limit_reached: None,
            answer_mode: AnswerMode::Normal,
            unrunnable: Vec::new(),
            calls: Vec::new(),
            steering: Vec::new(),
        }
    }

    /// Takes what happened, and says what to do next.
    pub fn handle(&mut self, input: Input) -> Vec<Action> {
        match input {
            Input::Begin => self.send_with_steering(),
            Input::Replied(reply) => self.replied(reply),
            Input::Refused(error) => vec![Action::End(TurnEnd::Failed(error))],
            Input::ConnectionFailed { partial, failure } => {
                let mut actions = self.record_partial(partial);
                actions.push(Action::End(TurnEnd::Unreachable(failure)));
                actions
            }
            Input::Oversized { partial, most } => {
                let mut actions = self.record_partial(partial);
                actions.push(Action::End(TurnEnd::Oversized { most }));
                actions
            }
            Input::AnswerNow { partial } => self.answer_now(partial),
            Input::ToolsFinished(results) => self.tools_finished(results),
            Input::Cancelled { partial, ran } => self.cancelled(partial, ran),
        }
    }

    /// Ends the turn before its next request. Tools that the last reply called still run, so that every call has its
    /// result.
    pub fn end_before_next_request(&mut self, end: TurnEnd) {
        self.limit_reached = Some(end);
    }

    /// Takes a message that the user sent during the turn. It is recorded after the
    /// current step, and the turn goes on with it.
    pub fn steer(&mut self, message: Message) {
        self.steering.push(message);
    }

    /// The messages that were not recorded before the turn ended.
    pub fn take_steering(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.steering)
    }

    /// Records the user's messages and sends the next request.
    fn send_with_steering(&mut self) -> Vec<Action> {
        let send = self.send();
        if matches!(send.first(), Some(Action::End(_))) {
            return send;
        }
        let record = |message: Message| Action::Record(Box::new(message));
        self.take_steering().into_iter().map(record).chain(send).collect()
    }

    fn send(&mut self) -> Vec<Action> {
        if let Some(end) = self.limit_reached.take() {
            return vec![Action::End(end)];
        }
        if self.step >= self.max_steps {
            return vec![Action::End(TurnEnd::OutOfSteps(self.max_steps))];
        }
        self.step += 1;
        self.answer_mode = AnswerMode::Normal;
        vec![self.send_step()]
    }

    /// Keeps the thinking so far and asks for the answer in the same turn. The
    /// message is recorded, because seals issued later are bound to it.
    fn answer_now(&mut self, partial: Option<Reply>) -> Vec<Action> {
        let mut actions = partial.map(|partial| self.record_partial(partial)).unwrap_or_default();
        actions.push(Action::Record(Box::new(Message::answer_now())));
        self.step += 1;
        self.answer_mode = AnswerMode::AnswerNow;
        actions.push(self.send_step());
        actions
    }

    fn send_step(&self) -> Action {
        Action::Send { step: self.step, answer_mode: self.answer_mode }
    }

    fn replied(&mut self, reply: Reply) -> Vec<Action> {
        let end = turn_end(&reply);
        let continues = reply.end.ending == Ending::Pause;
        let may_run = reply.end.error.is_none() && reply.end.ending != Ending::CutOff;
        if reply.blocks.is_empty() {
            return vec![Action::End(end)];
        }
        let run = if may_run { self.run(&reply.blocks) } else { Vec::new() };
        let mut actions = vec![Action::Record(Box::new(Message::from_reply(reply, Some(self.origin.clone()))))];
        if !run.is_empty() {
            actions.extend(run);
        } else if continues {
            // The provider continues its own reply, so nothing may come between.
            actions.extend(self.send());
        } else if !self.steering.is_empty() && end.leaves_room_for_more() {
            actions.extend(self.send_with_steering());
        } else {
            actions.push(Action::End(end));
        }
        actions
    }

    /// What to do with the calls among these blocks. Empty if there are none.
    fn run(&mut self, blocks: &[Block]) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut runnable = Vec::new();
        for (at, block) in blocks.iter().enumerate() {
            let Block::ToolCall(call) = block else { continue };
            let open_call = OpenCall { id: call.id.as_str().to_owned(), name: call.name.clone() };
            match &call.arguments {
                Arguments::Json(_) => runnable.push(at),
                Arguments::Broken(_) => {
                    actions.push(Action::Notify(TurnNotice::BrokenCall { name: call.name.clone() }));
                    self.unrunnable
                        .push(failed_result(&open_call, "the arguments are not valid JSON; the tool was not run"));
                }
            }
            self.calls.push(open_call);
        }
        if !self.calls.is_empty() {
            actions.push(Action::Run(runnable));
        }
        actions
    }

    fn tools_finished(&mut self, results: Vec<ToolResult>) -> Vec<Action> {
        let mut actions = vec![self.record_results(results, "the tool gave no result")];
        actions.extend(self.send_with_steering());
        actions
    }

    /// One result for each call, in the order of the calls.
    fn record_results(&mut self, mut results: Vec<ToolResult>, missing: &str) -> Action {
        results.append(&mut self.unrunnable);
        let take = |call: OpenCall| {
            let at = results.iter().position(|result| result.id == call.id);
            Block::ToolResult(at.map_or_else(|| failed_result(&call, missing), |at| results.swap_remove(at)))
        };
        let blocks = std::mem::take(&mut self.calls).into_iter().map(take).collect();
        Action::Record(Box::new(Message::new(Role::Tool, blocks)))
    }

    fn cancelled(&mut self, partial: Option<Reply>, ran: Vec<ToolResult>) -> Vec<Action> {
        let mut actions = partial.map(|partial| self.record_partial(partial)).unwrap_or_default();
        // A call without a result would break every later request.
        if !self.calls.is_empty() {
            actions.push(self.record_results(ran, "stopped by the user before it ended"));
        }
        actions.push(Action::End(TurnEnd::Interrupted));
        actions
    }

    fn record_partial(&self, partial: Reply) -> Vec<Action> {
        if partial.blocks.is_empty() {
            return Vec::new();
        }
        let mut message = Message::from_reply(partial, Some(self.origin.clone()));
        message.interrupted = true;
        vec![Action::Record(Box::new(message))]
    }
}

fn failed_result(call: &OpenCall, content: &str) -> ToolResult {
    ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        content: content.to_owned(),
        is_error: true,
        media: Vec::new(),
    }
}

/// How a reply without calls ends the turn (T6).
fn turn_end(reply: &Reply) -> TurnEnd {
    let ReplyEnd { ending, error } = &reply.end;
    if let Some(error) = error {
        return TurnEnd::Failed(error.clone());
    }
    let has_answer = reply.blocks.iter().any(|block| match block {
        Block::Text(text) => !text.text.trim().is_empty(),
        Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => true,
        Block::Thinking(_) => false,
    });
    let has_thinking = reply.blocks.iter().any(|block| matches!(block, Block::Thinking(_)));
    match ending {
        Ending::CutOff => TurnEnd::CutOff,
        Ending::Refusal => TurnEnd::Declined(Declined::ByModel),
        Ending::ContentFilter => TurnEnd::Declined(Declined::ByFilter),
        _ if !has_answer && has_thinking => TurnEnd::ThinkingOnly { for_length: *ending == Ending::Length },
        _ if !has_answer => TurnEnd::Empty,
        Ending::Length => TurnEnd::Length,
        Ending::Error => {
            let message = "the provider ended the reply with an error and did not say which".to_owned();
            TurnEnd::Failed(ProviderError::new(message))
        }
        Ending::Stop | Ending::ToolCalls | Ending::Pause | Ending::Unrecognized(_) | Ending::Unsaid => {
            TurnEnd::Answered
        }
    }
}

#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
