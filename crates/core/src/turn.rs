//! One user turn as a machine: what happened goes in, what is to be done next
//! comes out. It knows no network, no clock and no tool; whoever drives it
//! does, and a turn can be replayed at a desk.

use crate::block::{Arguments, Block, Origin, Reply, ToolResult};
use crate::dialect::{ErrorRow, Repair};
use crate::event::{End, Ending, ProviderError};
use crate::message::{Message, Role};
use crate::rules::{self, Cure, Haste};

/// What happened.
#[derive(Debug)]
pub enum Input {
    /// The user's message is in the history.
    Begin,
    /// The stream is over, with whatever came of it.
    Replied(Reply),
    /// The provider said no before anything of an answer came.
    Refused(ProviderError),
    /// The way to the provider failed; what had come by then is kept.
    Broke { partial: Reply, failure: String },
    /// More came than one reply may take in memory; what came up to there is kept.
    Oversized { partial: Reply, most: u64 },
    /// The user wants the answer now; `partial` is what came of the reply so far.
    AnswerNow { partial: Option<Reply> },
    /// All tools of the step have ended.
    Ran(Vec<ToolResult>),
    /// The user stops the turn. `partial` is what came of a running reply, or
    /// `ran` what came of running tools.
    Cancelled { partial: Option<Reply>, ran: Vec<ToolResult> },
}

/// What is to be done next, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Put this into the history.
    Record(Box<Message>),
    /// Say this in one line.
    Tell(Told),
    /// Build the request of this step from the history and send it.
    Send { step: u32, cures: Vec<Cure>, haste: Haste },
    /// Run these calls of the message recorded last, all at once, by their
    /// places among its blocks.
    Run(Vec<usize>),
    /// The turn is over.
    End(TurnEnd),
}

/// What the user should know although the work goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// The provider refused, and the request is changed and sent once more.
    Repaired { row: String, repair: Repair, said: String },
    /// A call whose arguments are no JSON is not run.
    BrokenCall { name: String },
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEnd {
    Answered,
    /// There is thinking and nothing else.
    ThinkingOnly {
        for_length: bool,
    },
    /// Nothing at all came.
    Empty,
    /// The answer is cut at the output limit.
    Length,
    /// The model would not answer, or a filter stood before it.
    Declined(Declined),
    /// The stream stopped before the provider was done.
    CutOff,
    /// The reply was cut because more came than may be kept in memory.
    Oversized {
        most: u64,
    },
    Failed(ProviderError),
    /// The way to the provider failed.
    Unreachable(String),
    Interrupted,
    /// The tools went on for as many steps as they may.
    OutOfSteps(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declined {
    ByModel,
    ByFilter,
}

/// The running turn.
#[derive(Debug)]
pub struct Turn<'a> {
    /// Who the request goes to, and so who made what comes back.
    origin: Origin,
    catalogue: &'a [ErrorRow],
    most_steps: u32,
    step: u32,
    /// Of the step that runs.
    haste: Haste,
    /// In force from the start, because this endpoint asked for them before.
    cures: Vec<Cure>,
    /// Tried in this turn, in order.
    tried: Vec<Cure>,
    /// Calls of the step that are not run, with their results.
    spoiled: Vec<ToolResult>,
    calls: Vec<Called>,
}

/// What the result of a call is given under. The call itself is in the history:
/// its arguments may be long.
#[derive(Debug)]
struct Called {
    id: String,
    name: String,
}

impl<'a> Turn<'a> {
    pub fn new(origin: Origin, catalogue: &'a [ErrorRow], most_steps: u32, cures: Vec<Cure>) -> Turn<'a> {
        let (tried, spoiled, calls) = (Vec::new(), Vec::new(), Vec::new());
        Turn { origin, catalogue, most_steps, step: 0, haste: Haste::None, cures, tried, spoiled, calls }
    }

    /// What was changed where the provider had refused; to be remembered for it.
    pub fn learned(&self) -> &[Cure] {
        &self.tried
    }

    fn cures(&self) -> Vec<Cure> {
        self.cures.iter().chain(&self.tried).cloned().collect()
    }

    pub fn handle(&mut self, input: Input) -> Vec<Action> {
        match input {
            Input::Begin => self.send(),
            Input::Replied(reply) => self.replied(reply),
            Input::Refused(error) => self.refused(error),
            Input::Broke { partial, failure } => {
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
            Input::Ran(results) => self.ran(results),
            Input::Cancelled { partial, ran } => self.cancelled(partial, ran),
        }
    }

    fn send(&mut self) -> Vec<Action> {
        if self.step >= self.most_steps {
            return vec![Action::End(TurnEnd::OutOfSteps(self.most_steps))];
        }
        self.step += 1;
        self.haste = Haste::None;
        vec![self.send_again()]
    }

    /// What was thought is kept, and the same turn asks for the answer. The
    /// words go into the history: what is sealed after them is bound to them.
    fn answer_now(&mut self, partial: Option<Reply>) -> Vec<Action> {
        let mut actions = partial.map(|partial| self.record_partial(partial)).unwrap_or_default();
        actions.push(Action::Record(Box::new(Message::answer_now())));
        self.step += 1;
        self.haste = Haste::AnswerNow;
        actions.push(self.send_again());
        actions
    }

    fn send_again(&self) -> Action {
        Action::Send { step: self.step, cures: self.cures(), haste: self.haste }
    }

    fn replied(&mut self, reply: Reply) -> Vec<Action> {
        // Some say no in a stream that began well.
        if let Some(error) = reply.end.error.clone().filter(|_| reply.blocks.is_empty()) {
            return self.refused(error);
        }
        let end = judge_end(&reply);
        let goes_on = reply.end.ending == Ending::Pause;
        let may_run = reply.end.error.is_none() && reply.end.ending != Ending::CutOff;
        if reply.blocks.is_empty() {
            return vec![Action::End(end)];
        }
        let run = if may_run { self.run(&reply.blocks) } else { Vec::new() };
        let mut actions = vec![Action::Record(Box::new(Message::from_reply(reply, Some(self.origin.clone()))))];
        if !run.is_empty() {
            actions.extend(run);
        } else if goes_on {
            actions.extend(self.send());
        } else {
            actions.push(Action::End(end));
        }
        actions
    }

    /// The smallest change that the provider's words call for, then once more.
    fn refused(&mut self, error: ProviderError) -> Vec<Action> {
        let row = rules::classify(self.catalogue, error.status, &error.message);
        let cure = row.and_then(|row| Cure::next(row, &error.message, &self.cures()).map(|cure| (row, cure)));
        let Some((row, cure)) = cure else { return vec![Action::End(TurnEnd::Failed(error))] };
        let told = Told::Repaired { row: row.id.clone(), repair: cure.repair, said: error.message };
        self.tried.push(cure);
        vec![Action::Tell(told), self.send_again()]
    }

    /// What is to be done with the calls among these blocks; nothing if there
    /// is none.
    fn run(&mut self, blocks: &[Block]) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut sound = Vec::new();
        for (at, block) in blocks.iter().enumerate() {
            let Block::ToolCall(call) = block else { continue };
            let called = Called { id: call.id.as_str().to_owned(), name: call.name.clone() };
            match &call.arguments {
                Arguments::Json(_) => sound.push(at),
                Arguments::Broken(_) => {
                    actions.push(Action::Tell(Told::BrokenCall { name: call.name.clone() }));
                    self.spoiled.push(failed_result(&called, "the arguments are not valid JSON; the tool was not run"));
                }
            }
            self.calls.push(called);
        }
        if !self.calls.is_empty() {
            actions.push(Action::Run(sound));
        }
        actions
    }

    fn ran(&mut self, results: Vec<ToolResult>) -> Vec<Action> {
        let mut actions = vec![self.record_results(results, "the tool gave no result")];
        actions.extend(self.send());
        actions
    }

    /// One result for each call, in the order of the calls.
    fn record_results(&mut self, mut results: Vec<ToolResult>, missing: &str) -> Action {
        results.append(&mut self.spoiled);
        let take = |call: Called| {
            let at = results.iter().position(|result| result.id == call.id);
            Block::ToolResult(at.map_or_else(|| failed_result(&call, missing), |at| results.swap_remove(at)))
        };
        let blocks = std::mem::take(&mut self.calls).into_iter().map(take).collect();
        Action::Record(Box::new(Message::new(Role::Tool, blocks)))
    }

    fn cancelled(&mut self, partial: Option<Reply>, ran: Vec<ToolResult>) -> Vec<Action> {
        let mut actions = partial.map(|partial| self.record_partial(partial)).unwrap_or_default();
        // A call without a result would stand in the way of everything after it.
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

fn failed_result(call: &Called, content: &str) -> ToolResult {
    ToolResult { id: call.id.clone(), name: call.name.clone(), content: content.to_owned(), is_error: true }
}

/// What a reply without calls comes to (T6).
fn judge_end(reply: &Reply) -> TurnEnd {
    let End { ending, error } = &reply.end;
    if let Some(error) = error {
        return TurnEnd::Failed(error.clone());
    }
    let said = reply.blocks.iter().any(|block| match block {
        Block::Text(text) => !text.text.trim().is_empty(),
        Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => true,
        Block::Thinking(_) => false,
    });
    let thought = reply.blocks.iter().any(|block| matches!(block, Block::Thinking(_)));
    match ending {
        Ending::CutOff => TurnEnd::CutOff,
        Ending::Refusal => TurnEnd::Declined(Declined::ByModel),
        Ending::ContentFilter => TurnEnd::Declined(Declined::ByFilter),
        _ if !said && thought => TurnEnd::ThinkingOnly { for_length: *ending == Ending::Length },
        _ if !said => TurnEnd::Empty,
        Ending::Length => TurnEnd::Length,
        Ending::Error => {
            let message = "the provider ended the reply with an error and did not say which".to_owned();
            TurnEnd::Failed(ProviderError { message, code: None, status: None })
        }
        Ending::Stop | Ending::ToolCalls | Ending::Pause | Ending::Unrecognized(_) | Ending::Unsaid => {
            TurnEnd::Answered
        }
    }
}

#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
