//! Wall times, in addition to the instruction counts: noisy on a shared machine, so
//! not gated. Takes the best of several runs, alternating floor and decoder.

use std::hint::black_box;
use std::time::{Duration, Instant};

use aside_bench::{Chunking, generate, measured_floor, measured_full, rules};
use aside_core::protocol::Protocol;

const DELTAS: usize = 40_000;
const RUNS: usize = 9;

fn main() {
    println!("{:<18} {:>6} {:>12} {:>12} {:>7} {:>10}", "protocol", "cut", "floor ns", "aside ns", "ratio", "MB/s");
    for protocol in Protocol::ALL {
        let bytes = generate::stream(protocol, DELTAS);
        let rules = rules(protocol);
        for (name, chunking) in [("1400", Chunking::Even), ("odd", Chunking::Odd)] {
            let (mut floor, mut full) = (Duration::MAX, Duration::MAX);
            for _ in 0..RUNS {
                floor = floor.min(time(|| drop(black_box(measured_floor(protocol, chunking, &bytes)))));
                full = full.min(time(|| drop(black_box(measured_full(protocol, &rules, chunking, &bytes)))));
            }
            let per_delta = |time: Duration| time.as_nanos() as f64 / DELTAS as f64;
            let speed = bytes.len() as f64 / full.as_secs_f64() / 1e6;
            println!(
                "{:<18} {name:>6} {:>12.0} {:>12.0} {:>7.2} {speed:>10.0}",
                protocol.as_str(),
                per_delta(floor),
                per_delta(full),
                per_delta(full) / per_delta(floor),
            );
        }
    }
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
