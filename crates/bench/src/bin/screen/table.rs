//! Prints the figures with their targets.

use crate::run::Figures;

/// The target of a figure: an upper bound, a lower bound, or none.
enum Limit {
    AtMost(f64),
    AtLeast(f64),
    None,
}

/// Prints the table; returns whether all targets are met.
pub(crate) fn print(empty: &Figures, full: &Figures, text: usize) -> bool {
    let heap = (full.memory - empty.memory) / text as f64;
    #[rustfmt::skip]
    let rows = [
        ("frames a second",                empty.fps,               full.fps,               "",    Limit::AtLeast(20.0)),
        ("delta to visible, median",       empty.delta_median,      full.delta_median,      "ms",  Limit::AtMost(100.0)),
        ("delta to visible, 99 of 100",    empty.delta_p99,         full.delta_p99,         "ms",  Limit::AtMost(100.0)),
        ("CPU a frame, median",            empty.frame_median,      full.frame_median,      "ms",  Limit::AtMost(4.0)),
        ("CPU a frame, 95 of 100",         empty.frame_p95,         full.frame_p95,         "ms",  Limit::AtMost(8.0)),
        ("CPU of a core",                  empty.share,             full.share,             "%",   Limit::AtMost(10.0)),
        ("key to echo, median",            empty.key_median,        full.key_median,        "ms",  Limit::AtMost(5.0)),
        ("key to echo, worst",             empty.key_worst,         full.key_worst,         "ms",  Limit::None),
        ("the same, once it had a core",   empty.key_own,           full.key_own,           "ms",  Limit::AtMost(16.0)),
        ("all blocks toggled, CPU, worst", empty.toggle_cpu,        full.toggle_cpu,        "ms",  Limit::AtMost(8.0)),
        ("all blocks toggled, time, worst", empty.toggle_wall,      full.toggle_wall,       "ms",  Limit::None),
        ("start to first frame, CPU",      empty.start_cpu,         full.start_cpu,         "ms",  Limit::AtMost(40.0)),
        ("start to first frame, time",     empty.start_wall,        full.start_wall,        "ms",  Limit::None),
        ("memory",                         empty.memory / 1e6,      full.memory / 1e6,      "MB",  Limit::None),
        ("idle CPU",                       empty.idle_share,        full.idle_share,        "%",   Limit::AtMost(0.05)),
        ("written a frame",                empty.kilobytes_a_frame, full.kilobytes_a_frame, "KB",  Limit::None),
    ];
    println!("{:<34} {:>10} {:>10}      target", "", "empty", "full");
    let mut met = true;
    for (name, empty, full, unit, bound) in rows {
        let (target, holds) = match bound {
            Limit::AtMost(most) => (format!("at most {most}"), empty <= most && full <= most),
            Limit::AtLeast(least) => (format!("at least {least}"), empty >= least && full >= least),
            Limit::None => (String::new(), true),
        };
        met &= holds;
        println!("{name:<34} {empty:>10.2} {full:>10.2} {unit:<4} {target}{}", if holds { "" } else { "  MISSED" });
    }
    let holds = heap <= 3.0;
    met &= holds;
    let mark = if holds { "" } else { "  MISSED" };
    println!("{:<34} {:>10} {heap:>10.2} {:<4} at most 3{mark}", "memory over empty, times the text", "", "x");
    met
}

/// The most memory that the process may have after a reply of 5 MB.
const MAX_RESIDENT: f64 = 40.0;

/// Prints the memory after a long reply; returns whether the target is met.
pub(crate) fn print_resident(resident: usize) -> bool {
    let megabytes = resident as f64 / 1e6;
    let holds = megabytes <= MAX_RESIDENT;
    let mark = if holds { "" } else { "  MISSED" };
    let name = "resident, 5 s after a 5 MB reply";
    println!("{name:<34} {megabytes:>10.2} {:>10} {:<4} at most {MAX_RESIDENT}{mark}", "", "MB");
    holds
}
