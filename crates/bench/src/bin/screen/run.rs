//! One run: starts the program, sends a prompt, types while the reply streams, then idles.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::PoisonError;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::program::ProgramUnderTest;
use crate::server::{self, SendTimes, StreamedReply};
use crate::watch::{DELTAS, DrawnFrame, KEYS, LAST_ANSWER, ScreenLog, lock_output};

/// Half thinking, half answer, a thousand deltas a second.
const STREAMED: usize = 10_000;
const BETWEEN_KEYS: Duration = Duration::from_millis(97);
const IDLE: Duration = Duration::from_secs(5);
/// Status messages disappear after three seconds.
const UNTIL_IDLE: Duration = Duration::from_secs(4);

#[derive(Debug, Clone, Copy)]
pub(crate) enum StartState<'a> {
    Empty,
    Full(&'a str),
}

/// In milliseconds unless stated otherwise.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    pub(crate) start_cpu: f64,
    pub(crate) start_wall: f64,
    pub(crate) fps: f64,
    /// Percent of a core, while deltas arrive.
    pub(crate) share: f64,
    pub(crate) frame_median: f64,
    pub(crate) frame_p95: f64,
    pub(crate) delta_median: f64,
    pub(crate) delta_p99: f64,
    pub(crate) key_median: f64,
    pub(crate) key_worst: f64,
    /// Without the time spent waiting for a core.
    pub(crate) key_own: f64,
    pub(crate) toggle_cpu: f64,
    pub(crate) toggle_wall: f64,
    pub(crate) idle_share: f64,
    /// In bytes.
    pub(crate) memory: f64,
    pub(crate) kilobytes_a_frame: f64,
}

impl Figures {
    fn all(&mut self) -> [&mut f64; 16] {
        let Figures {
            start_cpu,
            start_wall,
            fps,
            share,
            frame_median,
            frame_p95,
            delta_median,
            delta_p99,
            key_median,
            key_worst,
            key_own,
            toggle_cpu,
            toggle_wall,
            idle_share,
            memory,
            kilobytes_a_frame,
        } = self;
        [
            start_cpu,
            start_wall,
            fps,
            share,
            frame_median,
            frame_p95,
            delta_median,
            delta_p99,
            key_median,
            key_worst,
            key_own,
            toggle_cpu,
            toggle_wall,
            idle_share,
            memory,
            kilobytes_a_frame,
        ]
    }

    /// The median of each figure over all runs.
    pub(crate) fn medians(runs: &[Figures]) -> Figures {
        let mut out = Figures::default();
        for (index, figure) in out.all().into_iter().enumerate() {
            let mut values: Vec<f64> = runs.iter().map(|run| *run.clone().all()[index]).collect();
            *figure = percentile(&mut values, 0.5);
        }
        out
    }
}

/// The smallest value that this share of the values does not exceed.
fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = ((values.len() as f64 * share).ceil() as usize).clamp(1, values.len().max(1)) - 1;
    values.get(at).copied().unwrap_or(f64::NAN)
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

const ARGUMENTS: [&str; 4] = ["-m", "local/m", "--set", "context.limit=100000000"];

/// Starts a server and configures it as the provider.
fn serve(reply: StreamedReply, folder: &Path) -> io::Result<SendTimes> {
    let (address, sent) = server::start(reply)?;
    let provider = format!("[providers.local]\nprotocol = \"openai-chat\"\nbase_url = \"http://{address}\"\n");
    fs::write(folder.join("config/config.toml"), provider)?;
    Ok(sent)
}

/// The memory of the process, in bytes, after a reply with this many lines of thinking and five idle seconds.
pub(crate) fn memory_after_long_reply(binary: &Path, lines: usize, folder: &Path) -> io::Result<usize> {
    fs::create_dir_all(folder.join("config"))?;
    serve(StreamedReply::LongThinking(lines), folder)?;
    let mut program = ProgramUnderTest::start(binary, &ARGUMENTS, folder)?;
    program.until(Duration::from_secs(30), |output| output.frames.first().map(|frame| frame.at))?;
    program.type_in("go")?;
    program.type_in("\r")?;
    program.until(Duration::from_secs(120), |output| output.letters.get(&LAST_ANSWER).copied())?;
    sleep(IDLE);
    let resident = program.resident();
    program.leave()?;
    Ok(resident)
}

pub(crate) fn measure(binary: &Path, start: StartState<'_>, folder: &Path) -> io::Result<Figures> {
    let sent = serve(StreamedReply::Paced(STREAMED), folder)?;
    let mut arguments = ARGUMENTS.to_vec();
    if let StartState::Full(id) = start {
        arguments.extend(["--resume", id]);
    }
    let mut program = ProgramUnderTest::start(binary, &arguments, folder)?;
    let mut figures = Figures::default();
    let opened = |output: &ScreenLog| {
        let shown = match start {
            StartState::Empty => output.frames.first().map(|frame| frame.at),
            StartState::Full(_) => output.letters.get(&LAST_ANSWER).copied(),
        };
        shown.filter(|shown| output.frames.iter().any(|frame| frame.at >= *shown))
    };
    let shown = program.until(Duration::from_secs(30), opened)?;
    figures.start_cpu = program.cpu() as f64 / 1e6;
    figures.start_wall = ms(shown - program.began);
    sleep(Duration::from_millis(500));
    stream(&mut program, &sent, &mut figures)?;
    figures.memory = program.memory() as f64;
    toggle(&mut program, &mut figures)?;
    sleep(UNTIL_IDLE);
    let before = program.cpu();
    sleep(IDLE);
    figures.idle_share = (program.cpu() - before) as f64 / IDLE.as_nanos() as f64 * 100.0;
    program.leave()?;
    Ok(figures)
}

fn stream(program: &mut ProgramUnderTest, sent: &SendTimes, figures: &mut Figures) -> io::Result<()> {
    program.type_in("go")?;
    program.type_in("\r")?;
    program.until(Duration::from_secs(20), |output| output.letters.get(&DELTAS).copied())?;
    let (began, cpu) = (Instant::now(), program.cpu());
    let (first, bytes) = {
        let output = lock_output(&program.output);
        (output.frames.len(), output.bytes)
    };
    let mut typed = Vec::new();
    loop {
        sleep(BETWEEN_KEYS);
        if sent.lock().unwrap_or_else(PoisonError::into_inner).len() >= STREAMED {
            break;
        }
        let key = KEYS + typed.len() as u32;
        typed.push((key, Instant::now()));
        program.type_in(&char::from_u32(key).unwrap_or('x').to_string())?;
    }
    let passed = began.elapsed();
    figures.share = (program.cpu() - cpu) as f64 / passed.as_nanos() as f64 * 100.0;
    let last = DELTAS + STREAMED as u32 - 1;
    program.until(Duration::from_secs(20), |output| output.letters.get(&last).copied())?;
    let output = lock_output(&program.output);
    let frames: Vec<DrawnFrame> =
        output.frames.iter().skip(first).filter(|frame| frame.at < began + passed).copied().collect();
    figures.fps = frames.len() as f64 / passed.as_secs_f64();
    figures.kilobytes_a_frame = (output.bytes - bytes) as f64 / 1024.0 / frames.len().max(1) as f64;
    let mut costs: Vec<f64> =
        frames.windows(2).map(|pair| pair[1].times.cpu.saturating_sub(pair[0].times.cpu) as f64 / 1e6).collect();
    figures.frame_median = percentile(&mut costs, 0.5);
    figures.frame_p95 = percentile(&mut costs, 0.95);
    let mut delays = delays(&output, &sent.lock().unwrap_or_else(PoisonError::into_inner));
    figures.delta_median = percentile(&mut delays, 0.5);
    figures.delta_p99 = percentile(&mut delays, 0.99);
    let echoes: Vec<(f64, f64)> = typed.iter().map(|(key, at)| echo(&output, *key, *at)).collect();
    figures.key_median = percentile(&mut echoes.iter().map(|echo| echo.0).collect::<Vec<_>>(), 0.5);
    figures.key_worst = percentile(&mut echoes.iter().map(|echo| echo.0).collect::<Vec<_>>(), 1.0);
    figures.key_own = percentile(&mut echoes.iter().map(|echo| echo.0 - echo.1).collect::<Vec<_>>(), 1.0);
    Ok(())
}

/// How long a key took to appear, and how much of that the drawing thread waited for
/// a core, which is due to other load on the machine.
fn echo(output: &ScreenLog, key: u32, typed: Instant) -> (f64, f64) {
    let Some(shown) = output.letters.get(&key).copied() else { return (f64::INFINITY, 0.0) };
    let waited = |frame: Option<&DrawnFrame>| frame.map_or(0, |frame| frame.times.waited);
    let before = waited(output.frames.iter().rev().find(|frame| frame.at < typed));
    let after = waited(output.frames.iter().find(|frame| frame.at >= shown));
    (ms(shown.saturating_duration_since(typed)), after.saturating_sub(before) as f64 / 1e6)
}

/// The time from sending each delta until it, or a later one, was on the screen.
fn delays(output: &ScreenLog, sent: &[Instant]) -> Vec<f64> {
    let mut shown = None;
    let mut delays = Vec::new();
    for (index, at) in sent.iter().enumerate().rev() {
        let own = output.letters.get(&(DELTAS + index as u32)).copied();
        shown = [shown, own].into_iter().flatten().min();
        delays.extend(shown.map(|shown| ms(shown.saturating_duration_since(*at))));
    }
    delays
}

/// Switches through all views, back to the first.
fn toggle(program: &mut ProgramUnderTest, figures: &mut Figures) -> io::Result<()> {
    for _ in 0..4 {
        sleep(Duration::from_millis(300));
        let (frames, cpu, at) = (lock_output(&program.output).frames.len(), program.screen_cpu(), Instant::now());
        program.type_in("\x14")?;
        let frame = program.until(Duration::from_secs(20), |output| output.frames.get(frames).copied())?;
        figures.toggle_wall = figures.toggle_wall.max(ms(frame.at - at));
        figures.toggle_cpu = figures.toggle_cpu.max(frame.times.cpu.saturating_sub(cpu) as f64 / 1e6);
    }
    Ok(())
}
