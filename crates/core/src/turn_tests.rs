//! What a turn does next, for everything that can happen to it.

use super::*;
use crate::block::{CallId, Content, Text, Thinking, ToolCall};
use crate::dialect::Dialects;

const MOST: u32 = 4;

fn text(text: &str) -> Block {
    Block::Text(Text { text: text.to_owned(), ..Text::default() })
}

fn thought(text: &str) -> Block {
    Block::Thinking(Thinking {
        content: Content::Open { text: text.to_owned() },
        source: "reasoning_content".to_owned(),
        id: None,
        items: Vec::new(),
        span: None,
        native: None,
    })
}

fn call(id: &str, arguments: &str) -> ToolCall {
    let (id, name) = (CallId::Given(id.to_owned()), "read".to_owned());
    ToolCall { id, name, arguments: Arguments::parse(arguments.to_owned()), seal: None, native: None }
}

fn reply(blocks: Vec<Block>, ending: Ending) -> Reply {
    Reply { blocks, end: End { ending, error: None }, ..Reply::default() }
}

fn result(id: &str, content: &str) -> ToolResult {
    ToolResult { id: id.to_owned(), name: "read".to_owned(), content: content.to_owned(), is_error: false }
}

fn names(actions: &[Action]) -> Vec<String> {
    let name = |action: &Action| match action {
        Action::Record(message) => format!("record {:?} {}", message.role, message.blocks.len()),
        Action::Tell(told) => format!("tell {told:?}"),
        Action::Send { step, cures, haste: Haste::None } => format!("send {step} {cures:?}"),
        Action::Send { step, cures, haste } => format!("send {step} {cures:?} {haste:?}"),
        Action::Run(calls) => format!("run {}", calls.len()),
        Action::End(end) => format!("end {end:?}"),
    };
    actions.iter().map(name).collect()
}

fn turn(dialects: &Dialects) -> Turn<'_> {
    Turn::new(Origin::default(), dialects.catalogue(), MOST, Vec::new())
}

#[test]
fn t6_how_a_reply_without_calls_ends_the_turn() {
    let dialects = Dialects::builtin().unwrap();
    let said = || vec![thought("hm"), text("yes")];
    #[rustfmt::skip]
    let cases = [
        ("an answer",               said(),              Ending::Stop,          TurnEnd::Answered),
        ("never said why",          said(),              Ending::Unsaid,        TurnEnd::Answered),
        ("thinking only",           vec![thought("hm")], Ending::Stop,          TurnEnd::ThinkingOnly { for_length: false }),
        ("blank text is no answer", vec![thought("hm"), text(" \n")], Ending::Stop, TurnEnd::ThinkingOnly { for_length: false }),
        ("thinking cut by length",  vec![thought("hm")], Ending::Length,        TurnEnd::ThinkingOnly { for_length: true }),
        ("answer cut by length",    said(),              Ending::Length,        TurnEnd::Length),
        ("nothing at all",          vec![],              Ending::Stop,          TurnEnd::Empty),
        ("refused",                 said(),              Ending::Refusal,       TurnEnd::Declined(Declined::ByModel)),
        ("filtered",                said(),              Ending::ContentFilter, TurnEnd::Declined(Declined::ByFilter)),
        ("cut off",                 said(),              Ending::CutOff,        TurnEnd::CutOff),
    ];
    for (name, blocks, ending, expected) in cases {
        let mut turn = turn(&dialects);
        turn.handle(Input::Begin);
        let empty = blocks.is_empty();
        let actions = turn.handle(Input::Replied(reply(blocks, ending)));
        assert_eq!(actions.last(), Some(&Action::End(expected)), "{name}");
        assert_eq!(matches!(actions.first(), Some(Action::Record(_))), !empty, "{name}: what came is recorded");
    }
}

#[test]
fn l1_tools_run_until_the_model_answers() {
    let dialects = Dialects::builtin().unwrap();
    let mut turn = turn(&dialects);
    assert_eq!(names(&turn.handle(Input::Begin)), ["send 1 []"]);
    let calls = vec![Block::ToolCall(call("a", "{}")), Block::ToolCall(call("b", "{}"))];
    let actions = turn.handle(Input::Replied(reply(calls, Ending::ToolCalls)));
    assert_eq!(names(&actions), ["record Assistant 2", "run 2"]);
    // Results come in any order and are recorded in the order of the calls.
    let actions = turn.handle(Input::Ran(vec![result("b", "2"), result("a", "1")]));
    assert_eq!(names(&actions), ["record Tool 2", "send 2 []"]);
    let Some(Action::Record(message)) = actions.first() else { panic!("{actions:?}") };
    assert_eq!(message.blocks, [Block::ToolResult(result("a", "1")), Block::ToolResult(result("b", "2"))]);
    let actions = turn.handle(Input::Replied(reply(vec![text("done")], Ending::Stop)));
    assert_eq!(names(&actions), ["record Assistant 1", "end Answered"]);
}

#[test]
fn d15_a_call_with_broken_arguments_is_answered_and_not_run() {
    let dialects = Dialects::builtin().unwrap();
    let mut turn = turn(&dialects);
    turn.handle(Input::Begin);
    let calls = vec![Block::ToolCall(call("a", "{\"path\":")), Block::ToolCall(call("b", "{}"))];
    let actions = turn.handle(Input::Replied(reply(calls, Ending::ToolCalls)));
    assert_eq!(names(&actions), ["record Assistant 2", "tell BrokenCall { name: \"read\" }", "run 1"]);
    let actions = turn.handle(Input::Ran(vec![result("b", "2")]));
    let Some(Action::Record(message)) = actions.first() else { panic!("{actions:?}") };
    let [Block::ToolResult(first), Block::ToolResult(second)] = message.blocks.as_slice() else { panic!() };
    assert!(first.is_error && first.content.contains("not valid JSON"), "{first:?}");
    assert_eq!(second, &result("b", "2"));
}

#[test]
fn a_reply_over_the_bound_is_kept_and_its_calls_are_not_run() {
    let dialects = Dialects::builtin().unwrap();
    let mut turn = turn(&dialects);
    turn.handle(Input::Begin);
    let partial = reply(vec![text("so far"), Block::ToolCall(call("a", "{}"))], Ending::CutOff);
    let actions = turn.handle(Input::Oversized { partial, most: 5 });
    assert_eq!(names(&actions), ["record Assistant 2", "end Oversized { most: 5 }"]);
    let Some(Action::Record(message)) = actions.first() else { panic!("{actions:?}") };
    assert!(message.interrupted);
}

#[test]
fn calls_of_a_reply_that_broke_off_are_not_run() {
    let dialects = Dialects::builtin().unwrap();
    let mut turn = turn(&dialects);
    turn.handle(Input::Begin);
    let actions = turn.handle(Input::Replied(reply(vec![Block::ToolCall(call("a", "{}"))], Ending::CutOff)));
    assert_eq!(names(&actions), ["record Assistant 1", "end CutOff"]);
}

#[test]
fn the_steps_of_a_turn_are_bounded() {
    let dialects = Dialects::builtin().unwrap();
    let mut turn = turn(&dialects);
    let mut actions = turn.handle(Input::Begin);
    for _ in 0..MOST {
        let step = reply(vec![Block::ToolCall(call("a", "{}"))], Ending::ToolCalls);
        turn.handle(Input::Replied(step));
        actions = turn.handle(Input::Ran(vec![result("a", "1")]));
    }
    assert_eq!(names(&actions), ["record Tool 1", "end OutOfSteps(4)"]);
}

#[test]
fn e11_a_refusal_about_thinking_is_repaired_and_sent_once_more() {
    let dialects = Dialects::builtin().unwrap();
    let mut turn = turn(&dialects);
    turn.handle(Input::Begin);
    let said = "The `reasoning_content` in the thinking mode must be passed back to the API.";
    let error = || ProviderError { message: said.to_owned(), code: None, status: Some(400) };
    let actions = turn.handle(Input::Refused(error()));
    let [Action::Tell(Told::Repaired { repair, .. }), Action::Send { step: 1, cures, haste: Haste::None }] =
        actions.as_slice()
    else {
        panic!("{actions:?}")
    };
    assert_eq!(cures, &[Cure::from(*repair)]);
    assert_eq!(turn.learned(), cures, "the cure is there to be remembered");
    // The same words in a stream that began with 200 are a refusal too.
    let mut streamed = Turn::new(Origin::default(), dialects.catalogue(), MOST, Vec::new());
    streamed.handle(Input::Begin);
    let reply = Reply { end: End { ending: Ending::Error, error: Some(error()) }, ..Reply::default() };
    assert_eq!(streamed.handle(Input::Replied(reply)), actions);
}

#[test]
fn a_refusal_that_is_about_something_else_ends_the_turn() {
    let dialects = Dialects::builtin().unwrap();
    let mut turn = turn(&dialects);
    turn.handle(Input::Begin);
    let error = ProviderError { message: "insufficient balance".to_owned(), code: None, status: Some(402) };
    assert_eq!(turn.handle(Input::Refused(error.clone())), [Action::End(TurnEnd::Failed(error))]);
}

#[test]
fn a_stopped_turn_keeps_what_came_and_leaves_no_call_open() {
    let dialects = Dialects::builtin().unwrap();
    let mut turn = turn(&dialects);
    turn.handle(Input::Begin);
    let partial = reply(vec![thought("half a th")], Ending::CutOff);
    let actions = turn.handle(Input::Cancelled { partial: Some(partial), ran: Vec::new() });
    let Some(Action::Record(message)) = actions.first() else { panic!("{actions:?}") };
    assert!(message.interrupted);
    assert_eq!(names(&actions), ["record Assistant 1", "end Interrupted"]);

    let mut running = Turn::new(Origin::default(), dialects.catalogue(), MOST, Vec::new());
    running.handle(Input::Begin);
    let calls = vec![Block::ToolCall(call("a", "{}")), Block::ToolCall(call("b", "{}"))];
    running.handle(Input::Replied(reply(calls, Ending::ToolCalls)));
    let actions = running.handle(Input::Cancelled { partial: None, ran: vec![result("a", "1")] });
    let Some(Action::Record(message)) = actions.first() else { panic!("{actions:?}") };
    let [Block::ToolResult(first), Block::ToolResult(second)] = message.blocks.as_slice() else { panic!() };
    assert_eq!((first.is_error, second.is_error), (false, true));
}

#[test]
fn a_paused_reply_goes_on() {
    let dialects = Dialects::builtin().unwrap();
    let mut turn = turn(&dialects);
    turn.handle(Input::Begin);
    let actions = turn.handle(Input::Replied(reply(vec![text("so far")], Ending::Pause)));
    assert_eq!(names(&actions), ["record Assistant 1", "send 2 []"]);
}

#[test]
fn l1_who_wants_the_answer_now_gets_it_in_the_same_turn() {
    let dialects = Dialects::builtin().unwrap();
    let mut turn = turn(&dialects);
    turn.handle(Input::Begin);
    let partial = reply(vec![thought("round and round")], Ending::CutOff);
    let actions = turn.handle(Input::AnswerNow { partial: Some(partial) });
    assert_eq!(names(&actions), ["record Assistant 1", "record User 1", "send 2 [] AnswerNow"]);
    let [Action::Record(kept), Action::Record(nudge), _] = actions.as_slice() else { panic!("{actions:?}") };
    assert!(kept.interrupted, "what was thought is kept and marked");
    assert!(nudge.is_nudge() && !nudge.is_question(), "it begins no turn");
    // A repair changes the request; it is still the one in haste.
    let refused = ProviderError {
        message:
            "Unsupported value: 'reasoning.effort' does not support 'max' with this model. Supported values are: 'low'."
                .into(),
        code: None,
        status: Some(400),
    };
    let actions = turn.handle(Input::Refused(refused));
    assert!(matches!(actions.last(), Some(Action::Send { haste: Haste::AnswerNow, .. })), "{actions:?}");
    // And only that one: a call and its result go on as the settings say.
    turn.handle(Input::Replied(reply(vec![Block::ToolCall(call("c1", "{}"))], Ending::ToolCalls)));
    let actions = turn.handle(Input::Ran(vec![result("c1", "ok")]));
    assert!(matches!(actions.last(), Some(Action::Send { haste: Haste::None, .. })), "{actions:?}");
}

#[test]
fn l1_before_anything_came_there_is_nothing_to_keep() {
    let dialects = Dialects::builtin().unwrap();
    let mut turn = turn(&dialects);
    turn.handle(Input::Begin);
    assert_eq!(names(&turn.handle(Input::AnswerNow { partial: None })), ["record User 1", "send 2 [] AnswerNow"]);
}
