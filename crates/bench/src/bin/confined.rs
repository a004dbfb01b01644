//! Measures what confinement adds to a command, over `sh -c :` in the same run.
//!
//!     confined PROGRAM [COUNT]
//!
//! PROGRAM is an `aside` binary, which is its own helper. A session starts the helper of the next command
//! while the model works, so the cost of a command is measured with a helper that waits already. The first
//! command of a session also starts its helper; that cost is printed beside it.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use aside_confine::launch::Mechanism;
use aside_confine::spawn_supervisor::WaitingHelper;
use aside_confine::{Approval, CommandInput, Confine, ConfineSetting, Helper, Launch, PolicyPaths, RequestedAccess};

/// The maximum cost of a tier, median against median. The minima are printed too: on a busy
/// machine they say more.
const MOST_KERNEL: Duration = Duration::from_micros(2500);
const MOST_STRONG: Duration = Duration::from_millis(20);
/// Shorter than any model takes between two commands.
const PAUSE: Duration = Duration::from_millis(10);

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
    let mut first = vec![Vec::new(); tiers.len()];
    for _ in 0..count {
        plain.push(time(|| bare().is_some_and(|success| success)));
        for ((barrier, _), (next, first)) in tiers.iter().zip(confined.iter_mut().zip(&mut first)) {
            next.push(run_confined(&confine, barrier, PAUSE).unwrap_or(Duration::MAX));
            first.push(run_confined(&confine, barrier, Duration::ZERO).unwrap_or(Duration::MAX));
        }
    }
    let plain = Times::of(plain);
    println!(
        "/bin/sh -c :   {:>8.3} ms, median of {count} (minimum {:.3})",
        milliseconds(plain.median),
        milliseconds(plain.minimum)
    );
    let mut is_over = false;
    for ((_, name), (times, first)) in tiers.iter().zip(confined.into_iter().zip(first)) {
        let (times, first) = (Times::of(times), Times::of(first));
        let added = times.median.saturating_sub(plain.median);
        let least = times.minimum.saturating_sub(plain.minimum);
        let most = match *name {
            "kernel" => Some(MOST_KERNEL),
            "strong" => Some(MOST_STRONG),
            _ => None,
        };
        let bound = most.map(|most| format!(", at most {:.1}", milliseconds(most))).unwrap_or_default();
        let first = first.median.saturating_sub(plain.median);
        println!(
            "{name:<8} adds  {:>8.3} ms{bound} (minimum {:.3}); the first command of a session {:.3} ms",
            milliseconds(added),
            milliseconds(least),
            milliseconds(first)
        );
        is_over |= most.is_some_and(|most| added > most);
    }
    if is_over { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn bare() -> Option<bool> {
    Some(Command::new("/bin/sh").args(["-c", ":"]).stdin(Stdio::null()).status().ok()?.success())
}

/// Runs the command behind a barrier, this long after its helper was started; returns how long it took, or
/// nothing if it failed. Without a pause, the start of the helper counts.
fn run_confined(confine: &Confine, barrier: &Mechanism, pause: Duration) -> Option<Duration> {
    let mut begun = Instant::now();
    let helper = WaitingHelper::start(&mut confine.helper().command()).ok()?;
    if !pause.is_zero() {
        sleep(pause);
        begun = Instant::now();
    }
    let (access, approval) = (RequestedAccess::Standard, Approval::Automatic);
    let launch = confine.launch("/bin/sh", &["-c", ":"], access, approval, CommandInput::Empty).ok()?;
    let (mut helper, report) = helper.run_until_report(&Launch { mechanism: barrier.clone(), ..launch }).ok()?;
    let taken = begun.elapsed();
    // A tool does not wait for the helper to exit either.
    drop(helper.wait());
    (report.end == aside_confine::CommandEnd::Exited(0)).then_some(taken)
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
