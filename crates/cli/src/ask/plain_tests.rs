//! Tests which text reaches which stream.

use aside_core::block::CallId;
use aside_core::dialect::Dialects;
use aside_core::event::{Event, Sink};
use aside_core::fold::Fold;
use aside_core::wire::Decoder;
use aside_engine::Front;
use aside_session::UpdateFront;

use std::num::NonZeroU16;
use std::time::Duration;

use super::*;
use aside_front::Update;

/// Both streams are pipes, thinking is shown.
const PIPES: OutputStyle = OutputStyle {
    out_is_terminal: false,
    err_is_terminal: false,
    colour: false,
    thinking: ThinkingOutput::Show,
    buffers_text: false,
};

struct PlainSink<'a, O: Write, E: Write>(Fold, UpdateFront<&'a mut PlainOutput<O, E>>);

impl<'a, O: Write, E: Write> PlainSink<'a, O, E> {
    fn new(plain: &'a mut PlainOutput<O, E>) -> PlainSink<'a, O, E> {
        PlainSink(Fold::new(), UpdateFront::direct(plain))
    }
}

impl<O: Write, E: Write> Sink for PlainSink<'_, O, E> {
    fn take(&mut self, event: Event<'_>) {
        self.0.take(event);
        self.1.on_update(aside_engine::Update::Event { event, fold: &self.0 });
        self.1.flush();
    }
}

/// The contents of both streams after a reply in this dialect.
fn streams_after(style: OutputStyle, dialect: &str, deltas: &[&str], finish: &str) -> (String, String) {
    let dialects = Dialects::builtin().unwrap();
    let dialect = dialects.get(dialect).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut plain = PlainOutput::new(&mut out, &mut err, style);
    let mut sink = PlainSink::new(&mut plain);
    let mut decoder = Decoder::new(dialect.protocol, dialect.rules(None));
    for delta in deltas {
        let frame = format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
        decoder.push(frame.as_bytes(), &mut sink);
    }
    let end = format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{finish}\"}}]}}\n\n");
    decoder.push(end.as_bytes(), &mut sink);
    decoder.push(b"data: [DONE]\n\n", &mut sink);
    decoder.finish(&mut sink).unwrap();
    plain.finish().unwrap();
    (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

const THOUGHT: &str = r#"{"reasoning_content":"Let me see."}"#;
const ANSWER: &str = r#"{"content":"Four."}"#;
const CALL: &str =
    r#"{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"read","arguments":"{}"}}]}"#;

#[test]
fn t14_the_answer_and_the_thinking_go_to_their_own_streams() {
    let hidden = OutputStyle { thinking: ThinkingOutput::Hide, ..PIPES };
    let only = OutputStyle { thinking: ThinkingOutput::Only, ..PIPES };
    #[rustfmt::skip]
    let cases = [
        ("shown",  PIPES,  "Four.\n", "Let me see.\n"),
        ("hidden", hidden, "Four.\n", ""),
        ("only",   only,   "",        "Let me see.\n"),
    ];
    for (name, style, out, err) in cases {
        let streams = streams_after(style, "deepseek", &[THOUGHT, ANSWER], "stop");
        assert_eq!(streams, (out.to_owned(), err.to_owned()), "{name}");
    }
}

#[test]
fn t14_on_a_terminal_a_line_says_how_long_hidden_thinking_took_and_with_off_nothing_does() {
    for (thinking, has_line) in [(ThinkingOutput::Hide, true), (ThinkingOutput::Off, false)] {
        let style = OutputStyle { out_is_terminal: true, err_is_terminal: true, thinking, ..PIPES };
        let (out, err) = streams_after(style, "deepseek", &[THOUGHT, ANSWER], "stop");
        assert_eq!(out, "Four.\n");
        assert_eq!(err.contains("thought for"), has_line, "{thinking:?}: {err:?}");
        assert_eq!(err.is_empty(), !has_line, "{thinking:?}: {err:?}");
        let mut err = Vec::new();
        let mut plain = PlainOutput::new(Vec::new(), &mut err, style);
        plain.opened(BlockId(0), &OpenedBlock::Thinking);
        plain.tick();
        plain.finish().unwrap();
        let spinner = String::from_utf8(err).unwrap();
        assert_eq!(spinner.contains("thinking"), has_line, "{thinking:?}: {spinner:?}");
    }
}

#[test]
fn t14_text_before_a_call_is_not_part_of_the_answer_in_a_pipe() {
    let style = OutputStyle { buffers_text: true, ..PIPES };
    let words = r#"{"content":"I will look."}"#;
    let (out, err) = streams_after(style, "deepseek", &[THOUGHT, words, CALL], "tool_calls");
    assert_eq!((out.as_str(), err.as_str()), ("", "Let me see.\nI will look.\n"));
    let (out, _) = streams_after(style, "deepseek", &[THOUGHT, ANSWER], "stop");
    assert_eq!(out, "Four.\n", "a step without calls is the answer");
}

#[test]
fn t14_text_that_turns_out_to_be_thinking_never_reaches_standard_output() {
    let deltas = [r#"{"content":"First I add."}"#, r#"{"content":"</think>"}"#, ANSWER];
    let (out, err) = streams_after(OutputStyle { buffers_text: true, ..PIPES }, "vllm", &deltas, "stop");
    assert_eq!((out.as_str(), err.as_str()), ("Four.\n", "First I add.\n"));
}

#[test]
fn d9_thinking_that_turns_out_to_be_text_is_the_answer() {
    // The chat template opened the tag and the model never closed it.
    let mut rules = Dialects::builtin().unwrap().get("vllm").unwrap().rules(None).clone();
    rules.read.tags.start = aside_core::tags::TagStart::Prefilled;
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut plain = PlainOutput::new(&mut out, &mut err, OutputStyle { thinking: ThinkingOutput::Hide, ..PIPES });
    let mut sink = PlainSink::new(&mut plain);
    let mut decoder = Decoder::new(aside_core::protocol::Protocol::OpenaiChat, &rules);
    decoder
        .push(b"data: {\"choices\":[{\"delta\":{\"content\":\"Four.\"},\"finish_reason\":\"stop\"}]}\n\n", &mut sink);
    decoder.finish(&mut sink).unwrap();
    plain.finish().unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "Four.\n");
}

#[test]
fn t9_a_terminal_gets_no_escapes_and_a_pipe_gets_the_bytes() {
    let hostile = r#"{"content":"a\u001b]0;owned\u0007b\u001b[31mc"}"#;
    let terminal = OutputStyle { out_is_terminal: true, err_is_terminal: true, ..PIPES };
    let (out, _) = streams_after(terminal, "deepseek", &[hostile], "stop");
    assert_eq!(out, "abc\n");
    let (out, _) = streams_after(PIPES, "deepseek", &[hostile], "stop");
    assert_eq!(out, "a\u{1b}]0;owned\u{7}b\u{1b}[31mc\n");
}

#[test]
fn thinking_is_dim_and_italic_where_there_is_colour() {
    let style = OutputStyle { out_is_terminal: true, err_is_terminal: true, colour: true, ..PIPES };
    let (_, err) = streams_after(style, "deepseek", &[THOUGHT, ANSWER], "stop");
    assert_eq!(err, "\x1b[2;3mLet me see.\x1b[0m\n");
}

#[test]
fn a_spinner_moves_while_waiting_and_is_erased() {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let style = OutputStyle { out_is_terminal: true, err_is_terminal: true, ..PIPES };
    let mut plain = PlainOutput::new(&mut out, &mut err, style);
    assert!(plain.tick_interval().is_some());
    plain.tick();
    plain.print_line("note: one");
    plain.finish().unwrap();
    let err = String::from_utf8(err).unwrap();
    assert!(err.contains(" waiting 0.0s"), "{err:?}");
    assert!(err.ends_with("\r\x1b[2Knote: one\n"), "{err:?}");
    assert!(PlainOutput::new(Vec::new(), Vec::new(), PIPES).tick_interval().is_none(), "a pipe has no spinner");
}

/// What is written on standard error of a terminal when `tick` comes these seconds after the updates.
fn activity_after(style: OutputStyle, updates: Vec<Update>, seconds: &[u64]) -> String {
    let mut err = Vec::new();
    let mut plain = PlainOutput::new(Vec::new(), &mut err, style);
    updates.into_iter().for_each(|update| plain.take(update));
    let now = Instant::now();
    seconds.iter().for_each(|seconds| plain.draw_activity(now + Duration::from_secs(*seconds)));
    plain.finish().unwrap();
    String::from_utf8(err).unwrap()
}

#[test]
fn t18_a_silence_in_the_middle_of_a_reply_is_counted_below_its_text() {
    let terminal = OutputStyle { out_is_terminal: true, err_is_terminal: true, ..PIPES };
    let hidden = OutputStyle { thinking: ThinkingOutput::Hide, ..terminal };
    let piped = OutputStyle { out_is_terminal: false, ..terminal };
    let opened = |opening| Update::Opened { block: BlockId(0), opening };
    let grew = |text: &str| Update::Grew { block: BlockId(0), text: text.into() };
    let below = "\x1b7\x1b[B\r\x1b[2K";
    #[rustfmt::skip]
    let cases = [
        ("in the answer",    terminal, vec![opened(OpenedBlock::Text), grew("half a li")],      "answering · nothing came for 12s", true),
        ("between lines",    terminal, vec![opened(OpenedBlock::Text), grew("a line\n")],       "answering · nothing came for 12s", false),
        ("in a pipe",        piped,    vec![opened(OpenedBlock::Text), grew("half a li")],      "answering · nothing came for 12s", false),
        ("in thinking",      terminal, vec![opened(OpenedBlock::Thinking), grew("half a li")],  "thinking · nothing came for 12s",  true),
        ("hidden thinking",  hidden,   vec![opened(OpenedBlock::Thinking), grew("half a li")],  "thinking · nothing came for 12s",  false),
        ("before the reply", terminal, vec![Update::Sending(Box::default())],                   "waiting · nothing came for 12s",   false),
    ];
    for (name, style, updates, expected, is_below) in cases {
        let err = activity_after(style, updates, &[5, 12]);
        assert!(err.contains(expected), "{name}: {err:?}");
        assert_eq!(err.contains(below), is_below, "{name}: {err:?}");
        // It goes away.
        let erased = if is_below { "\x1b7\x1b[B\r\x1b[2K\x1b8" } else { "\r\x1b[2K" };
        assert!(err.trim_end_matches('\n').ends_with(erased) || err.contains("thought for"), "{name}: {err:?}");
    }
}

/// Both streams of a terminal.
#[derive(Clone, Default)]
struct SharedScreen(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

impl Write for SharedScreen {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn t18_the_line_about_a_silence_leaves_the_text_above_it_unchanged_on_the_last_row_too() {
    for (name, above) in [("first row", ""), ("last row", "1\n2\n3\n4\n")] {
        let screen = SharedScreen::default();
        let terminal = OutputStyle { out_is_terminal: true, err_is_terminal: true, ..PIPES };
        let mut plain = PlainOutput::new(screen.clone(), screen.clone(), terminal);
        let rows = || {
            let mut parser = vt100::Parser::new(NonZeroU16::new(5).unwrap(), NonZeroU16::new(40).unwrap(), 0);
            // As the terminal driver passes it on.
            let text = String::from_utf8(screen.0.borrow().clone()).unwrap().replace('\n', "\r\n");
            parser.process(text.as_bytes());
            parser.screen().contents().trim_end().to_owned()
        };
        let grew = |text: &str| Update::Grew { block: BlockId(0), text: text.into() };
        plain.take(Update::Opened { block: BlockId(0), opening: OpenedBlock::Text });
        plain.take(grew(&format!("{above}half a li")));
        let now = Instant::now();
        for seconds in [11, 12] {
            plain.draw_activity(now + Duration::from_secs(seconds));
            let shown = rows();
            let (text, line) = shown.rsplit_once('\n').unwrap();
            assert!(text.ends_with("half a li") && line.contains("answering"), "{name}: {shown}");
        }
        plain.take(grew("ne"));
        plain.finish().unwrap();
        let shown = rows();
        assert!(shown.ends_with("half a line"), "{name}: {shown}");
    }
}

#[test]
fn t18_the_wait_before_a_retry_counts_down_in_one_line_that_goes_away() {
    let retrying = || vec![Update::Retrying { after: Duration::from_secs(4), attempt: 2, why: "too busy".into() }];
    let terminal = OutputStyle { err_is_terminal: true, ..PIPES };
    let err = activity_after(terminal, retrying(), &[0, 1, 2, 5, 15]);
    let lines: Vec<&str> = err.split("\r\x1b[2K").collect();
    let expected = [
        "trying again in 4s, attempt 2: too busy",
        "trying again in 3s, attempt 2: too busy",
        "trying again in 2s, attempt 2: too busy",
        "trying again, attempt 2: too busy",
        "waiting · nothing came for 11s",
        "",
    ];
    assert_eq!(lines.len(), expected.len() + 1, "{err:?}");
    for (line, expected) in lines.iter().skip(1).zip(expected) {
        assert!(line.contains(expected), "{line:?} has no {expected:?}");
    }
    assert_eq!(activity_after(PIPES, retrying(), &[]), "too busy; trying again in 4s\n");
}

#[test]
fn t14_repeated_thinking_is_reported_once_on_a_terminal() {
    let again = r#"{"reasoning_content":"Wait, let me think. "}"#;
    let deltas: Vec<&str> = std::iter::repeat_n(again, 40).chain([ANSWER]).collect();
    let terminal = OutputStyle { err_is_terminal: true, thinking: ThinkingOutput::Hide, ..PIPES };
    let (out, err) = streams_after(terminal, "deepseek", &deltas, "stop");
    assert_eq!(out, "Four.\n");
    let said = "note: the thinking repeats the same text 16 times: \"Wait, let me think\" (Ctrl+C stops it)";
    assert_eq!(err.lines().filter(|line| line.contains(said)).count(), 1, "{err}");
    // Without a terminal no one could stop it.
    let (_, err) = streams_after(OutputStyle { thinking: ThinkingOutput::Hide, ..PIPES }, "deepseek", &deltas, "stop");
    assert_eq!(err, "");
}

#[test]
fn t17_the_line_of_a_command_counts_what_the_command_wrote() {
    #[rustfmt::skip]
    let cases = [
        ("one line",    "hi\n[exit code 0]",         false, "✓ shell: 1 line\n"),
        ("three lines", "1\n2\n3\n[exit code 0]",    false, "✓ shell: 3 lines\n"),
        ("no output",   "[exit code 0]",             false, "✓ shell: no output\n"),
        ("a failure",   "1\n2\n3\n[exit code 2]",    true,  "✗ shell: exit code 2: 3\n"),
        ("a denial",    "denied by the user",        true,  "✗ shell: denied by the user\n"),
    ];
    for (name, content, is_error, expected) in cases {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut plain = PlainOutput::new(&mut out, &mut err, PIPES);
        let arguments = Arguments::parse(r#"{"command":"x"}"#.to_owned());
        plain.tool_started(&ToolCall::new(CallId::Given("c".to_owned()), "shell", arguments));
        plain.tool_ended(&ToolResult {
            id: "c".to_owned(),
            name: "shell".to_owned(),
            content: content.to_owned(),
            media: Vec::new(),
            is_error,
        });
        plain.finish().unwrap();
        let err = String::from_utf8(err).unwrap();
        assert_eq!(err.split_once('\n').map(|(_, result)| result), Some(expected), "{name}");
    }
}
