//! `costs instructions PROTOCOL DELTAS even|odd` decodes once with the floor
//! and once with aside, to be run under callgrind. `costs memory` measures the
//! heap and fails where a bound is broken. `costs rebuild COUNTER` builds two
//! requests of one conversation, their tokens counted by letters or exactly.
//! `costs serve PROTOCOL DELTAS` answers every request with one stream.

use std::process::ExitCode;
use std::sync::Arc;

use aside_bench::meter::{self, Meter};
use aside_bench::rebuild::{Desk, measured_first_build, measured_second_build};
use aside_bench::{Cut, generate, measured_floor, measured_full, rules};
use aside_core::block::{Block, Reply};
use aside_core::dialect::Tokenizer;
use aside_core::protocol::Protocol;
use aside_core::tokens::{Counter, Letters};

#[global_allocator]
static METER: Meter = Meter;

const MIB: usize = 1 << 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["instructions", protocol, deltas, cut] => {
            let cut = if *cut == "odd" { Cut::Odd } else { Cut::Even };
            match (protocol.parse(), deltas.parse()) {
                (Ok(protocol), Ok(deltas)) => instructions(protocol, deltas, cut),
                _ => usage(),
            }
        }
        ["memory"] => memory(),
        ["rebuild", "letters"] => rebuild(Arc::new(Letters)),
        ["rebuild", "exactly"] => rebuild(aside_tokens::counter(Tokenizer::O200k)),
        ["serve", protocol, deltas] => match (protocol.parse(), deltas.parse()) {
            (Ok(protocol), Ok(deltas)) => serve(protocol, deltas),
            _ => usage(),
        },
        _ => usage(),
    }
}

/// A stream of so many deltas for everybody who asks; `scripts/speed` does.
fn serve(protocol: Protocol, deltas: usize) -> ExitCode {
    match aside_bench::serve::serve(&generate::stream(protocol, deltas)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the server stopped: {error}");
            ExitCode::FAILURE
        }
    }
}

/// One request, then the next one of the same conversation.
fn rebuild(counter: Arc<dyn Counter>) -> ExitCode {
    let mut desk = Desk::new(counter);
    let first = measured_first_build(&mut desk);
    desk.one_more_turn();
    let second = measured_second_build(&mut desk);
    // An encoder that forgets what was said would be fast.
    assert!(first.body.len() > 4 << 20, "{} bytes are less than the thinking", first.body.len());
    let prefix = first.body.strip_suffix("]}").expect("a list ends the body");
    assert!(second.body.starts_with(prefix), "the second request begins like the first");
    assert!(second.tokens > first.tokens, "and is longer");
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    let forms = ["instructions PROTOCOL DELTAS even|odd", "memory", "rebuild letters|exactly", "serve PROTOCOL DELTAS"];
    eprintln!("usage: costs {}", forms.join("\n       costs "));
    ExitCode::from(2)
}

fn instructions(protocol: Protocol, deltas: usize, cut: Cut) -> ExitCode {
    let bytes = generate::stream(protocol, deltas);
    let rules = rules(protocol);
    let (thinking, text) = measured_floor(protocol, cut, &bytes);
    let reply = measured_full(protocol, &rules, cut, &bytes);
    // A decoder that loses text would be fast.
    assert_eq!(said(&reply), (thinking, text), "floor and decoder read the same text");
    ExitCode::SUCCESS
}

fn said(reply: &Reply) -> (String, String) {
    let (mut thinking, mut text) = (String::new(), String::new());
    for block in &reply.blocks {
        match block {
            Block::Thinking(block) => thinking.push_str(block.text()),
            Block::Text(block) => text.push_str(&block.text),
            Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => (),
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
        held &= one_thought(protocol, "one thought of 64 MiB, one frame", std::iter::once(big));
        let small = std::iter::repeat_n("x".to_owned(), 1_000_000);
        held &= one_thought(protocol, "1,000,000 deltas of one byte", small);
    }
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Ten times the deltas may cost the growth of a few buffers more, not one
/// allocation a delta.
fn allocations(protocol: Protocol) -> bool {
    let rules = rules(protocol);
    let calls = |deltas: usize| {
        let bytes = generate::stream(protocol, deltas);
        meter::measure(|| drop(measured_full(protocol, &rules, Cut::Even, &bytes))).1.calls
    };
    let (few, many) = (calls(4_000), calls(40_000));
    let held = many < few + 40;
    let verdict = if held { "" } else { "  BROKEN: allocates per delta" };
    println!("{:<18} {:<34} {:>12} {:>12} {:>9}{verdict}", protocol.as_str(), "4,000 and 40,000 deltas", "", few, many);
    held
}

fn one_thought(protocol: Protocol, name: &str, pieces: impl Iterator<Item = String>) -> bool {
    let bytes = generate::one_thought(protocol, pieces);
    let rules = rules(protocol);
    let (reply, heap) = meter::measure(|| measured_full(protocol, &rules, Cut::Even, &bytes));
    let content = said(&reply).0.len();
    let bound = 3 * content + MIB;
    let held = heap.peak <= bound;
    let verdict = if held { "" } else { "  BROKEN: more than 3x + 1 MiB" };
    println!("{:<18} {name:<34} {content:>12} {:>12} {:>9}{verdict}", protocol.as_str(), heap.peak, heap.calls);
    held
}
