//! The actions of a turn for every kind of input.

use super::*;
use crate::block::{CallId, Text, Thinking, ThinkingContent, ToolCall};

const MAX_STEPS: u32 = 4;

fn text(text: &str) -> Block {
    Block::Text(Text { text: text.to_owned(), ..Text::default() })
}

fn thinking(text: &str) -> Block {
    Block::Thinking(Thinking::new(ThinkingContent::Open { text: text.to_owned() }, "reasoning_content"))
}

fn call(id: &str, arguments: &str) -> ToolCall {
    let (id, name) = (CallId::Given(id.to_owned()), "read".to_owned());
    ToolCall::new(id, name, Arguments::parse(arguments.to_owned()))
}

fn reply(blocks: Vec<Block>, ending: Ending) -> Reply {
    Reply { blocks, end: ReplyEnd { ending, error: None }, ..Reply::default() }
}

fn result(id: &str, content: &str) -> ToolResult {
    ToolResult {
        id: id.to_owned(),
        name: "read".to_owned(),
        content: content.to_owned(),
        is_error: false,
        media: Vec::new(),
    }
}

fn names(actions: &[Action]) -> Vec<String> {
    let name = |action: &Action| match action {
        Action::Record(message) => format!("record {:?} {}", message.role, message.blocks.len()),
        Action::Notify(told) => format!("tell {told:?}"),
        Action::Send { step, answer_mode: AnswerMode::Normal } => format!("send {step}"),
        Action::Send { step, answer_mode } => format!("send {step} {answer_mode:?}"),
        Action::Run(calls) => format!("run {}", calls.len()),
        Action::End(end) => format!("end {end:?}"),
    };
    actions.iter().map(name).collect()
}

fn turn() -> Turn {
    Turn::new(Origin::default(), MAX_STEPS)
}

#[test]
fn t6_how_a_reply_without_calls_ends_the_turn() {
    let answer = || vec![thinking("hm"), text("yes")];
    #[rustfmt::skip]
    let cases = [
        ("an answer",               answer(),              Ending::Stop,          TurnEnd::Answered),
        ("never said why",          answer(),              Ending::Unsaid,        TurnEnd::Answered),
        ("thinking only",           vec![thinking("hm")], Ending::Stop,          TurnEnd::ThinkingOnly { for_length: false }),
        ("blank text is no answer", vec![thinking("hm"), text(" \n")], Ending::Stop, TurnEnd::ThinkingOnly { for_length: false }),
        ("thinking cut by length",  vec![thinking("hm")], Ending::Length,        TurnEnd::ThinkingOnly { for_length: true }),
        ("answer cut by length",    answer(),              Ending::Length,        TurnEnd::Length),
        ("nothing at all",          vec![],              Ending::Stop,          TurnEnd::Empty),
        ("refused",                 answer(),              Ending::Refusal,       TurnEnd::Declined(Declined::ByModel)),
        ("filtered",                answer(),              Ending::ContentFilter, TurnEnd::Declined(Declined::ByFilter)),
        ("cut off",                 answer(),              Ending::CutOff,        TurnEnd::CutOff),
    ];
    for (name, blocks, ending, expected) in cases {
        let mut turn = turn();
        turn.handle(Input::Begin);
        let empty = blocks.is_empty();
        let actions = turn.handle(Input::Replied(reply(blocks, ending)));
        assert_eq!(actions.last(), Some(&Action::End(expected)), "{name}");
        assert_eq!(matches!(actions.first(), Some(Action::Record(_))), !empty, "{name}: the reply is recorded");
    }
}

#[test]
fn l1_tools_run_until_the_model_answers() {
    let mut turn = turn();
    assert_eq!(names(&turn.handle(Input::Begin)), ["send 1"]);
    let calls = vec![Block::ToolCall(call("a", "{}")), Block::ToolCall(call("b", "{}"))];
    let actions = turn.handle(Input::Replied(reply(calls, Ending::ToolCalls)));
    assert_eq!(names(&actions), ["record Assistant 2", "run 2"]);
    // Results arrive in any order and are recorded in the order of the calls.
    let actions = turn.handle(Input::ToolsFinished(vec![result("b", "2"), result("a", "1")]));
    assert_eq!(names(&actions), ["record Tool 2", "send 2"]);
    let Some(Action::Record(message)) = actions.first() else { panic!("{actions:?}") };
    assert_eq!(message.blocks, [Block::ToolResult(result("a", "1")), Block::ToolResult(result("b", "2"))]);
    let actions = turn.handle(Input::Replied(reply(vec![text("done")], Ending::Stop)));
    assert_eq!(names(&actions), ["record Assistant 1", "end Answered"]);
}

#[test]
fn d15_a_call_with_broken_arguments_is_answered_and_not_run() {
    let mut turn = turn();
    turn.handle(Input::Begin);
    let calls = vec![Block::ToolCall(call("a", "{\"path\":")), Block::ToolCall(call("b", "{}"))];
    let actions = turn.handle(Input::Replied(reply(calls, Ending::ToolCalls)));
    assert_eq!(names(&actions), ["record Assistant 2", "tell BrokenCall { name: \"read\" }", "run 1"]);
    let actions = turn.handle(Input::ToolsFinished(vec![result("b", "2")]));
    let Some(Action::Record(message)) = actions.first() else { panic!("{actions:?}") };
    let [Block::ToolResult(first), Block::ToolResult(second)] = message.blocks.as_slice() else { panic!() };
    assert!(first.is_error && first.content.contains("not valid JSON"), "{first:?}");
    assert_eq!(second, &result("b", "2"));
}

#[test]
fn a_reply_over_the_bound_is_kept_and_its_calls_are_not_run() {
    let mut turn = turn();
    turn.handle(Input::Begin);
    let partial = reply(vec![text("so far"), Block::ToolCall(call("a", "{}"))], Ending::CutOff);
    let actions = turn.handle(Input::Oversized { partial, most: 5 });
    assert_eq!(names(&actions), ["record Assistant 2", "end Oversized { most: 5 }"]);
    let Some(Action::Record(message)) = actions.first() else { panic!("{actions:?}") };
    assert!(message.interrupted);
}

#[test]
fn calls_of_a_reply_that_broke_off_are_not_run() {
    let mut turn = turn();
    turn.handle(Input::Begin);
    let actions = turn.handle(Input::Replied(reply(vec![Block::ToolCall(call("a", "{}"))], Ending::CutOff)));
    assert_eq!(names(&actions), ["record Assistant 1", "end CutOff"]);
}

#[test]
fn the_steps_of_a_turn_are_bounded() {
    let mut turn = turn();
    let mut actions = turn.handle(Input::Begin);
    for _ in 0..MAX_STEPS {
        let step = reply(vec![Block::ToolCall(call("a", "{}"))], Ending::ToolCalls);
        turn.handle(Input::Replied(step));
        actions = turn.handle(Input::ToolsFinished(vec![result("a", "1")]));
    }
    assert_eq!(names(&actions), ["record Tool 1", "end OutOfSteps(4)"]);
}

#[test]
fn a_refusal_ends_the_turn_however_it_arrives() {
    let error = ProviderError::new("insufficient balance").with_status(402);
    let failed = || [Action::End(TurnEnd::Failed(error.clone()))];
    let mut refused = turn();
    refused.handle(Input::Begin);
    assert_eq!(refused.handle(Input::Refused(error.clone())), failed());
    // Some providers report it within a stream that began with 200.
    let mut streamed = turn();
    streamed.handle(Input::Begin);
    let end = ReplyEnd { ending: Ending::Error, error: Some(error.clone()) };
    assert_eq!(streamed.handle(Input::Replied(Reply { end, ..Reply::default() })), failed());
}

#[test]
fn a_stopped_turn_keeps_the_partial_reply_and_leaves_no_call_open() {
    let mut turn = turn();
    turn.handle(Input::Begin);
    let partial = reply(vec![thinking("half a th")], Ending::CutOff);
    let actions = turn.handle(Input::Cancelled { partial: Some(partial), ran: Vec::new() });
    let Some(Action::Record(message)) = actions.first() else { panic!("{actions:?}") };
    assert!(message.interrupted);
    assert_eq!(names(&actions), ["record Assistant 1", "end Interrupted"]);

    let mut running = Turn::new(Origin::default(), MAX_STEPS);
    running.handle(Input::Begin);
    let calls = vec![Block::ToolCall(call("a", "{}")), Block::ToolCall(call("b", "{}"))];
    running.handle(Input::Replied(reply(calls, Ending::ToolCalls)));
    let actions = running.handle(Input::Cancelled { partial: None, ran: vec![result("a", "1")] });
    let Some(Action::Record(message)) = actions.first() else { panic!("{actions:?}") };
    let [Block::ToolResult(first), Block::ToolResult(second)] = message.blocks.as_slice() else { panic!() };
    assert_eq!((first.is_error, second.is_error), (false, true));
}

#[test]
fn a_paused_reply_continues() {
    let mut turn = turn();
    turn.handle(Input::Begin);
    let actions = turn.handle(Input::Replied(reply(vec![text("so far")], Ending::Pause)));
    assert_eq!(names(&actions), ["record Assistant 1", "send 2"]);
}

#[test]
fn l1_answer_now_continues_the_same_turn() {
    let mut turn = turn();
    turn.handle(Input::Begin);
    let partial = reply(vec![thinking("round and round")], Ending::CutOff);
    let actions = turn.handle(Input::AnswerNow { partial: Some(partial) });
    assert_eq!(names(&actions), ["record Assistant 1", "record User 1", "send 2 AnswerNow"]);
    let [Action::Record(kept), Action::Record(nudge), _] = actions.as_slice() else { panic!("{actions:?}") };
    assert!(kept.interrupted, "the thinking is kept and marked");
    assert!(nudge.is_answer_now() && !nudge.begins_turn(), "it starts no turn");
    // The mode applies to this request only: the next step follows the
    // settings.
    turn.handle(Input::Replied(reply(vec![Block::ToolCall(call("c1", "{}"))], Ending::ToolCalls)));
    let actions = turn.handle(Input::ToolsFinished(vec![result("c1", "ok")]));
    assert!(matches!(actions.last(), Some(Action::Send { answer_mode: AnswerMode::Normal, .. })), "{actions:?}");
}

#[test]
fn l1_answer_now_before_any_content_records_no_reply() {
    let mut turn = turn();
    turn.handle(Input::Begin);
    assert_eq!(names(&turn.handle(Input::AnswerNow { partial: None })), ["record User 1", "send 2 AnswerNow"]);
}

fn user(words: &str) -> Message {
    Message::new(Role::User, vec![text(words)])
}

#[test]
fn t20_a_message_sent_during_the_turn_is_recorded_once_after_the_current_step() {
    let mut turn = turn();
    turn.handle(Input::Begin);
    turn.steer(user("only the tests"));
    turn.steer(user("and quickly"));
    let calls = vec![Block::ToolCall(call("a", "{}"))];
    assert_eq!(names(&turn.handle(Input::Replied(reply(calls, Ending::ToolCalls)))), ["record Assistant 1", "run 1"]);
    let actions = turn.handle(Input::ToolsFinished(vec![result("a", "1")]));
    assert_eq!(names(&actions), ["record Tool 1", "record User 1", "record User 1", "send 2"]);
    assert_eq!(actions.get(1), Some(&Action::Record(Box::new(user("only the tests")))));
    assert_eq!(
        names(&turn.handle(Input::Replied(reply(vec![text("done")], Ending::Stop)))),
        ["record Assistant 1", "end Answered"]
    );
    assert_eq!(turn.take_steering(), []);
}

#[test]
fn t20_a_message_sent_during_the_last_step_continues_the_turn_if_the_reply_is_complete() {
    let answer = || vec![thinking("hm"), text("yes")];
    #[rustfmt::skip]
    let cases = [
        ("an answer",     answer(), Ending::Stop,    None,    "send 2"),
        ("length",        answer(), Ending::Length,  None,    "send 2"),
        ("thinking only", vec![thinking("hm")], Ending::Stop, None, "send 2"),
        ("refused",       answer(), Ending::Refusal, Some(1), "end Declined(ByModel)"),
        ("cut off",       answer(), Ending::CutOff,  Some(1), "end CutOff"),
        ("paused",        answer(), Ending::Pause,   Some(1), "send 2"),
    ];
    for (name, blocks, ending, unsent, last) in cases {
        let mut turn = turn();
        turn.handle(Input::Begin);
        turn.steer(user("more"));
        let actions = names(&turn.handle(Input::Replied(reply(blocks, ending))));
        let recorded = actions.iter().filter(|action| *action == "record User 1").count();
        assert_eq!((recorded, actions.last().map(String::as_str)), (1 - unsent.unwrap_or(0), Some(last)), "{name}");
        assert_eq!(turn.take_steering().len(), unsent.unwrap_or(0), "{name}: it is kept");
    }
}

#[test]
fn t20_a_message_for_a_turn_that_ends_first_is_given_back() {
    let mut stopped = turn();
    stopped.handle(Input::Begin);
    stopped.steer(user("more"));
    assert_eq!(names(&stopped.handle(Input::Cancelled { partial: None, ran: Vec::new() })), ["end Interrupted"]);
    assert_eq!(stopped.take_steering(), [user("more")]);
    let mut at_limit = Turn::new(Origin::default(), 1);
    at_limit.handle(Input::Begin);
    at_limit.steer(user("more"));
    let actions = at_limit.handle(Input::Replied(reply(vec![text("yes")], Ending::Stop)));
    assert_eq!(names(&actions), ["record Assistant 1", "end OutOfSteps(1)"]);
    assert_eq!(at_limit.take_steering(), [user("more")]);
}
