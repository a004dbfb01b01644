//! The figures beside their targets.

use crate::run::Figures;

/// A target: at most this, at least that, or none.
enum Bound {
    Most(f64),
    Least(f64),
    None,
}

/// Says whether all targets are met.
pub(crate) fn print(empty: &Figures, full: &Figures, text: usize) -> bool {
    let heap = (full.memory - empty.memory) / text as f64;
    #[rustfmt::skip]
    let rows = [
        ("frames a second",                empty.fps,               full.fps,               "",    Bound::Least(20.0)),
        ("delta to visible, median",       empty.delta_median,      full.delta_median,      "ms",  Bound::Most(100.0)),
        ("delta to visible, 99 of 100",    empty.delta_p99,         full.delta_p99,         "ms",  Bound::Most(100.0)),
        ("CPU a frame, median",            empty.frame_median,      full.frame_median,      "ms",  Bound::Most(4.0)),
        ("CPU a frame, 95 of 100",         empty.frame_p95,         full.frame_p95,         "ms",  Bound::Most(8.0)),
        ("CPU of a core",                  empty.share,             full.share,             "%",   Bound::Most(10.0)),
        ("key to echo, median",            empty.key_median,        full.key_median,        "ms",  Bound::Most(5.0)),
        ("key to echo, worst",             empty.key_worst,         full.key_worst,         "ms",  Bound::None),
        ("the same, once it had a core",   empty.key_own,           full.key_own,           "ms",  Bound::Most(16.0)),
        ("all blocks toggled, CPU, worst", empty.toggle_cpu,        full.toggle_cpu,        "ms",  Bound::Most(8.0)),
        ("all blocks toggled, time, worst", empty.toggle_wall,      full.toggle_wall,       "ms",  Bound::None),
        ("start to first frame, CPU",      empty.start_cpu,         full.start_cpu,         "ms",  Bound::Most(40.0)),
        ("start to first frame, time",     empty.start_wall,        full.start_wall,        "ms",  Bound::None),
        ("memory",                         empty.memory / 1e6,      full.memory / 1e6,      "MB",  Bound::None),
        ("idle CPU",                       empty.idle_share,        full.idle_share,        "%",   Bound::Most(0.05)),
        ("written a frame",                empty.kilobytes_a_frame, full.kilobytes_a_frame, "KB",  Bound::None),
    ];
    println!("{:<34} {:>10} {:>10}      target", "", "empty", "full");
    let mut met = true;
    for (name, empty, full, unit, bound) in rows {
        let (target, holds) = match bound {
            Bound::Most(most) => (format!("at most {most}"), empty <= most && full <= most),
            Bound::Least(least) => (format!("at least {least}"), empty >= least && full >= least),
            Bound::None => (String::new(), true),
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
