//! `costs instructions PROTOCOL DELTAS even|odd` decodes once with the floor and once
//! with aside; run it under callgrind. `costs memory` measures the heap and fails if a
//! limit is exceeded. `costs dataflow` counts the bytes that a reply allocates on its way
//! to the screen and the store. `costs rebuild COUNTER` builds two requests of one conversation
//! and counts their tokens by estimate or exactly. `costs screen VIEW` draws the
//! terminal screen while deltas arrive; run it under callgrind. `costs screen-memory`
//! measures its heap. `costs serve PROTOCOL DELTAS` answers every request with one
//! stream.

use std::process::ExitCode;
use std::sync::Arc;

use aside_bench::alloc_counter::{self, AllocCounter};
use aside_bench::data_flow::{self, Consumers};
use aside_bench::frames::{self, ScreenBench};
use aside_bench::request_encoding::{EncodingBench, measured_first_build, measured_second_build};
use aside_bench::{Chunking, generate, measured_floor, measured_full, rules};
use aside_core::block::{Block, Reply};
use aside_core::dialect::Tokenizer;
use aside_core::message::Message;
use aside_core::protocol::Protocol;
use aside_core::settings::ThinkingDisplay;
use aside_core::tokens::{EstimateCounter, TokenCounter};
use aside_front::OpenedBlock;

#[global_allocator]
static METER: AllocCounter = AllocCounter;

const MIB: usize = 1 << 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["instructions", protocol, deltas, chunking] => {
            let chunking = if *chunking == "odd" { Chunking::Odd } else { Chunking::Even };
            match (protocol.parse(), deltas.parse()) {
                (Ok(protocol), Ok(deltas)) => instructions(protocol, deltas, chunking),
                _ => usage(),
            }
        }
        ["memory"] => memory(),
        ["dataflow"] => data_flow(),
        ["rebuild", "letters"] => rebuild(Arc::new(EstimateCounter)),
        ["rebuild", "exactly"] => rebuild(aside_tokens::counter(Tokenizer::O200k)),
        ["screen", view] => match view.parse() {
            Ok(view) => screen(view),
            Err(_) => usage(),
        },
        ["screen-memory"] => screen_memory(),
        ["serve", protocol, deltas] => match (protocol.parse(), deltas.parse()) {
            (Ok(protocol), Ok(deltas)) => serve(protocol, deltas),
            _ => usage(),
        },
        _ => usage(),
    }
}

/// Answers every request with a stream of `deltas` deltas, for `scripts/speed`.
fn serve(protocol: Protocol, deltas: usize) -> ExitCode {
    match aside_bench::serve::serve(&generate::stream(protocol, deltas)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the server stopped: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Builds one request, then the next one of the same conversation.
fn rebuild(counter: Arc<dyn TokenCounter>) -> ExitCode {
    let mut bench = EncodingBench::new(counter);
    let first = measured_first_build(&mut bench);
    bench.start_second_build();
    let second = measured_second_build(&mut bench);
    // An encoder that drops content would be fast.
    assert!(first.body.len() > 4 << 20, "{} bytes are less than the thinking", first.body.len());
    let prefix = first.body.strip_suffix("]}").expect("a list ends the body");
    assert!(second.body.starts_with(prefix), "the second request begins like the first");
    assert!(second.tokens > first.tokens, "and is longer");
    ExitCode::SUCCESS
}

const LINES: usize = 200_000;
/// Enough to fill the screen, so that all frames draw the same amount.
const WARM_UP: usize = 20;
const FRAMES: usize = 40;

/// Draws frames with nothing above, with 200,000 lines above, and inside one thinking
/// block at its start and at line 100,000; then in every view.
fn screen(view: ThinkingDisplay) -> ExitCode {
    let mut empty = ScreenBench::new(view, Vec::new());
    empty.begin(OpenedBlock::Thinking);
    empty.frames(WARM_UP);
    let before = empty.written();
    frames::measured_empty_frames(&mut empty, FRAMES);
    // A screen that draws nothing would be fast.
    assert!(empty.written() > before + FRAMES * 200, "only {} bytes", empty.written() - before);
    let mut full = frames::measured_opening(view, frames::long_conversation(LINES, 1_000));
    full.begin(OpenedBlock::Thinking);
    full.frames(WARM_UP);
    frames::measured_full_frames(&mut full, FRAMES);
    for _ in ThinkingDisplay::ALL {
        frames::measured_toggle(&mut full);
    }
    let mut long = ScreenBench::new(view, Vec::new());
    long.begin(OpenedBlock::Thinking);
    long.lines(10);
    long.frames(WARM_UP);
    frames::measured_early_deltas(&mut long, FRAMES);
    (0..1_000).for_each(|_| long.lines(100));
    long.frames(WARM_UP);
    frames::measured_late_deltas(&mut long, FRAMES);
    ExitCode::SUCCESS
}

/// Measures the heap that the screen needs for a long transcript.
fn screen_memory() -> ExitCode {
    let mut held = true;
    println!("{:<12} {:<40} {:>12} {:>12} {:>6}", "view", "above", "text", "peak heap", "ratio");
    for view in [ThinkingDisplay::Live, ThinkingDisplay::Full] {
        for (name, a_turn) in [("200 thoughts of 1,000 lines", 1_000), ("one thought of 200,000 lines", LINES)] {
            let above = frames::long_conversation(LINES, a_turn);
            let text: usize = above.iter().flat_map(Message::thinking).map(|thought| thought.text().len()).sum();
            let ((), heap) = alloc_counter::measure(|| {
                let mut screen = ScreenBench::new(view, above.clone());
                screen.begin(OpenedBlock::Thinking);
                screen.frames(WARM_UP);
            });
            held &= memory_row(view.as_str(), name, text, heap.peak);
        }
        let ((), heap) = alloc_counter::measure(|| {
            let mut screen = ScreenBench::new(view, Vec::new());
            screen.begin(OpenedBlock::Thinking);
            (0..LINES / 100).for_each(|_| {
                screen.lines(100);
                screen.frame();
            });
        });
        held &= memory_row(view.as_str(), "one thought that streams", LINES * 26, heap.peak);
    }
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn memory_row(view: &str, name: &str, text: usize, peak: usize) -> bool {
    let held = peak <= 3 * text + 4 * MIB;
    let verdict = if held { "" } else { "  BROKEN: more than 3x + 4 MiB" };
    println!("{view:<12} {name:<40} {text:>12} {peak:>12} {:>6.2}{verdict}", peak as f64 / text as f64);
    held
}

/// Bytes allocated per byte of text: the fold's copy, the screen's copy, the rows of the journal, and
/// memory to compress and index the longest block. The detection of repetition has a fixed size.
const MAX_ALLOCATED: f64 = 4.0;

/// Counts what a reply allocates on its way to the screen and the store: everything that
/// is allocated from its first byte to the recorded message, freed or not, divided by the
/// length of its text. SQLite's own memory is not counted, and no frame is drawn.
fn data_flow() -> ExitCode {
    const DELTAS: usize = 40_000;
    let bytes = generate::stream(Protocol::OpenaiChat, DELTAS);
    let text = generate::text_bytes(DELTAS);
    println!("{:<28} {:>12} {:>12} {:>8} {:>9}", "reply of 40,000 deltas", "text", "allocated", "ratio", "calls");
    let mut ratio = 0.0;
    for (name, consumers) in [
        ("decoder and fold", Consumers { screen: false, store: false }),
        ("with the screen", Consumers { screen: true, store: false }),
        ("with the store", Consumers { screen: false, store: true }),
        ("with screen and store", Consumers { screen: true, store: true }),
    ] {
        let flow = data_flow::DataFlow::new(consumers);
        let ((), heap) = alloc_counter::measure(|| flow.run(&bytes));
        ratio = heap.bytes as f64 / text as f64;
        println!("{name:<28} {text:>12} {:>12} {ratio:>8.2} {:>9}", heap.bytes, heap.calls);
    }
    if ratio <= MAX_ALLOCATED {
        ExitCode::SUCCESS
    } else {
        println!("BROKEN: more than {MAX_ALLOCATED} bytes allocated per byte of text");
        ExitCode::FAILURE
    }
}

fn usage() -> ExitCode {
    let forms = [
        "instructions PROTOCOL DELTAS even|odd",
        "memory",
        "dataflow",
        "rebuild letters|exactly",
        "screen VIEW",
        "screen-memory",
        "serve PROTOCOL DELTAS",
    ];
    eprintln!("usage: costs {}", forms.join("\n       costs "));
    ExitCode::from(2)
}

fn instructions(protocol: Protocol, deltas: usize, chunking: Chunking) -> ExitCode {
    let bytes = generate::stream(protocol, deltas);
    let rules = rules(protocol);
    let (thinking, text) = measured_floor(protocol, chunking, &bytes);
    let reply = measured_full(protocol, &rules, chunking, &bytes);
    // A decoder that drops text would be fast.
    assert_eq!(reply_text(&reply), (thinking, text), "floor and decoder read the same text");
    ExitCode::SUCCESS
}

fn reply_text(reply: &Reply) -> (String, String) {
    let (mut thinking, mut text) = (String::new(), String::new());
    for block in &reply.blocks {
        match block {
            Block::Thinking(block) => thinking.push_str(block.text()),
            Block::Text(block) => text.push_str(&block.text),
            Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => (),
        }
    }
    (thinking, text)
}

fn memory() -> ExitCode {
    let mut held = true;
    println!("{:<18} {:<34} {:>12} {:>12} {:>9}", "protocol", "input", "content", "peak heap", "calls");
    for protocol in Protocol::ALL {
        held &= allocations(protocol);
    }
    for protocol in Protocol::ALL {
        let big = "All work and no play makes a dull thought.\n".repeat(64 * MIB / 43 + 1);
        held &= one_thinking_block(protocol, "one thought of 64 MiB, one frame", std::iter::once(big));
        let small = std::iter::repeat_n("x".to_owned(), 1_000_000);
        held &= one_thinking_block(protocol, "1,000,000 deltas of one byte", small);
    }
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Ten times the deltas may grow a few buffers more often, but must not allocate for
/// each delta.
fn allocations(protocol: Protocol) -> bool {
    let rules = rules(protocol);
    let calls = |deltas: usize| {
        let bytes = generate::stream(protocol, deltas);
        alloc_counter::measure(|| drop(measured_full(protocol, &rules, Chunking::Even, &bytes))).1.calls
    };
    let (few, many) = (calls(4_000), calls(40_000));
    let held = many < few + 40;
    let verdict = if held { "" } else { "  BROKEN: allocates per delta" };
    println!("{:<18} {:<34} {:>12} {:>12} {:>9}{verdict}", protocol.as_str(), "4,000 and 40,000 deltas", "", few, many);
    held
}

fn one_thinking_block(protocol: Protocol, name: &str, pieces: impl Iterator<Item = String>) -> bool {
    let bytes = generate::one_thinking_block(protocol, pieces);
    let rules = rules(protocol);
    let (reply, heap) = alloc_counter::measure(|| measured_full(protocol, &rules, Chunking::Even, &bytes));
    let content = reply_text(&reply).0.len();
    let bound = 3 * content + MIB;
    let held = heap.peak <= bound;
    let verdict = if held { "" } else { "  BROKEN: more than 3x + 1 MiB" };
    println!("{:<18} {name:<34} {content:>12} {:>12} {:>9}{verdict}", protocol.as_str(), heap.peak, heap.calls);
    held
}
