//! Measures what confinement adds to a command, over `sh -c :` in the same run.
//!
//!     confined PROGRAM [COUNT]
//!
//! PROGRAM is an `aside` binary, which is its own helper.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use aside_confine::launch::Mechanism;
use aside_confine::{
    Approval, CommandInput, Confine, ConfineSetting, Helper, Launch, PolicyPaths, RequestedAccess, spawn_supervisor,
};

/// The maximum cost of a tier, median against median. The minima are printed too: on a busy
/// machine they say more.
const MOST_KERNEL: Duration = Duration::from_micros(2500);
const MOST_STRONG: Duration = Duration::from_millis(20);

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a measurement is read")]
fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("usage: confined PROGRAM [COUNT]");
        return ExitCode::from(2);
    };
    let count = arguments.next().and_then(|count| count.to_str()?.parse().ok()).unwrap_or(500);
    let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let confine = Confine::new(Helper::at(program), ConfineSetting::Auto, PolicyPaths::from_environment(folder));
    let found = confine.support();
    let strong =
        found.bubblewrap.iter().map(|path| (Mechanism::Bubblewrap { program: path.as_path().into() }, "strong"));
    let kernel = found.landlock.iter().map(|abi| (Mechanism::Kernel { abi: *abi }, "kernel"));
    let tiers: Vec<(Mechanism, &str)> = [(Mechanism::None, "none")].into_iter().chain(kernel).chain(strong).collect();
    // Alternates between tiers, so that other load affects all of them.
    let mut plain = Vec::new();
    let mut confined = vec![Vec::new(); tiers.len()];
    for _ in 0..count {
        plain.push(time(|| bare().is_some_and(|success| success)));
        for ((barrier, _), times) in tiers.iter().zip(&mut confined) {
            let begun = Instant::now();
            let helper = run_confined(&confine, barrier);
            times.push(helper.as_ref().map_or(Duration::MAX, |_| begun.elapsed()));
            // A tool does not wait for the helper to exit either.
            drop(helper.map(|mut helper| helper.wait()));
        }
    }
    let plain = Times::of(plain);
    println!(
        "/bin/sh -c :   {:>8.3} ms, median of {count} (minimum {:.3})",
        milliseconds(plain.median),
        milliseconds(plain.minimum)
    );
    let mut is_over = false;
    for ((_, name), times) in tiers.iter().zip(confined) {
        let times = Times::of(times);
        let added = times.median.saturating_sub(plain.median);
        let least = times.minimum.saturating_sub(plain.minimum);
        let most = match *name {
            "kernel" => Some(MOST_KERNEL),
            "strong" => Some(MOST_STRONG),
            _ => None,
        };
        let bound = most.map(|most| format!(", at most {:.1}", milliseconds(most))).unwrap_or_default();
        println!("{name:<8} adds  {:>8.3} ms{bound} (minimum {:.3})", milliseconds(added), milliseconds(least));
        is_over |= most.is_some_and(|most| added > most);
    }
    if is_over { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn bare() -> Option<bool> {
    Some(Command::new("/bin/sh").args(["-c", ":"]).stdin(Stdio::null()).status().ok()?.success())
}

/// Runs the command behind a barrier; returns the helper if it succeeded.
fn run_confined(confine: &Confine, barrier: &Mechanism) -> Option<Child> {
    let launch = || {
        let (access, approval) = (RequestedAccess::Standard, Approval::Automatic);
        let launch = confine.launch("/bin/sh", &["-c", ":"], access, approval, CommandInput::Empty);
        Ok(Launch { mechanism: barrier.clone(), ..launch.map_err(io::Error::other)? })
    };
    let (helper, report) = spawn_supervisor::run_until_report(confine.helper().command(), launch).ok()?;
    (report.end == aside_confine::CommandEnd::Exited(0)).then_some(helper)
}

/// The duration of a run; `Duration::MAX` if it failed.
fn time(run: impl FnOnce() -> bool) -> Duration {
    let begun = Instant::now();
    if run() { begun.elapsed() } else { Duration::MAX }
}

struct Times {
    median: Duration,
    minimum: Duration,
}

impl Times {
    fn of(mut times: Vec<Duration>) -> Times {
        times.sort_unstable();
        let at = |index: usize| times.get(index).copied().unwrap_or(Duration::MAX);
        Times { median: at(times.len() / 2), minimum: at(0) }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
