//! `aside replay`: plays a recording through the same decoder and output as the
//! live stream.

use std::fs;
use std::io::{BufWriter, IsTerminal};
use std::time::Duration;

use aside_core::block::Time;
use aside_core::dialect::{Dialects, Rules};
use aside_core::event::{Event, NoteCode, Sink};
use aside_core::fold::Fold;
use aside_core::protocol::Protocol;
use aside_core::wire::Decoder;
use aside_engine::{Front, Update};
use aside_session::{HintedError, UpdateFront, UserFolders};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::ExitStatus;
use crate::ask::plain::{OutputStyle, PlainOutput, ThinkingOutput};

/// Play a recorded stream
///
/// Reads a file written by `aside ask --record FILE` and shows it with its
/// original timing: the answer on standard output, thinking on standard error.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The recorded stream
    #[arg(value_name = "FILE")]
    file: String,

    /// The speed, as a multiple of the original; 0 is without pauses
    #[arg(long, default_value_t = 1.0, value_name = "N")]
    speed: f64,

    /// Show thinking, hide it, or show nothing else
    #[arg(long, value_enum, default_value_t = ThinkingOutput::Show, value_name = "VIEW")]
    thinking: ThinkingOutput,
}

/// One line of a recording.
enum RecordingLine {
    /// A request was sent; a new reply begins.
    Sent,
    /// Bytes received, with their time.
    Received { at: u64, bytes: Vec<u8> },
}

struct RecordedStream {
    protocol: Protocol,
    rules: Rules,
    lines: Vec<RecordingLine>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    if !arguments.speed.is_finite() || arguments.speed < 0.0 {
        return Err(HintedError::new("the speed must be 0 or more")
            .hint("--speed 2 is twice as fast, 0 is without pauses")
            .into());
    }
    let dialects = UserFolders::from_environment().dialects()?;
    let name = &arguments.file;
    let text = fs::read_to_string(name).map_err(|error| HintedError::new(format!("cannot read {name}: {error}")))?;
    let recording = read(&text, &dialects)
        .map_err(|problem| HintedError::new(format!("{name}: {problem}")).hint("aside ask --record FILE writes one"))?;
    let style = OutputStyle {
        out_is_terminal: std::io::stdout().is_terminal(),
        err_is_terminal: std::io::stderr().is_terminal(),
        colour: std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        thinking: arguments.thinking,
        buffers_text: false,
    };
    let (out, err) = (BufWriter::new(std::io::stdout().lock()), BufWriter::new(std::io::stderr()));
    let mut plain = PlainOutput::new(out, err, style);
    play(&recording, arguments.speed, &mut UpdateFront::direct(&mut plain));
    plain.finish()?;
    Ok(ExitStatus::Done)
}

fn read(text: &str, dialects: &Dialects) -> Result<RecordedStream, String> {
    let mut values = text
        .lines()
        .enumerate()
        .map(|(at, line)| serde_json::from_str::<Value>(line).map_err(|error| format!("line {}: {error}", at + 1)));
    let head = values.next().ok_or("it is empty")??;
    let word = |name: &str| head.get(name).and_then(Value::as_str);
    if head.get("recording").and_then(Value::as_u64) != Some(1) {
        return Err("it is not a recording".to_owned());
    }
    let protocol: Protocol = word("protocol").and_then(|word| word.parse().ok()).ok_or("it names no protocol")?;
    let dialect = word("dialect").and_then(|id| dialects.get(id)).or_else(|| dialects.generic(protocol));
    let rules = dialect.ok_or("no dialect has its protocol")?.rules(word("model")).clone();
    let mut lines = Vec::new();
    for value in values {
        lines.extend(line(&value?)?);
    }
    Ok(RecordedStream { protocol, rules, lines })
}

fn line(value: &Value) -> Result<Option<RecordingLine>, String> {
    let at = value.get("at").and_then(Value::as_u64).unwrap_or_default();
    if value.get("body").is_some() {
        return Ok(Some(RecordingLine::Sent));
    }
    if let Some(text) = value.get("text").and_then(Value::as_str) {
        return Ok(Some(RecordingLine::Received { at, bytes: text.as_bytes().to_vec() }));
    }
    match value.get("base64").and_then(Value::as_str) {
        Some(text) => {
            let bytes = STANDARD.decode(text).map_err(|error| format!("invalid base64: {error}"))?;
            Ok(Some(RecordingLine::Received { at, bytes }))
        }
        None => Ok(None),
    }
}

/// Emits the same events as the live stream, with the same pauses.
fn play(recording: &RecordedStream, speed: f64, front: &mut dyn Front) {
    let fresh = || (Decoder::new(recording.protocol, &recording.rules), Fold::new());
    let mut running: Option<(Decoder, Fold)> = None;
    let mut now = 0;
    for line in &recording.lines {
        match line {
            RecordingLine::Sent => end(running.take(), front),
            RecordingLine::Received { at, bytes } => {
                let pause = at.saturating_sub(now);
                now = *at;
                if speed > 0.0 {
                    std::thread::sleep(wait(pause, speed));
                }
                let (decoder, fold) = running.get_or_insert_with(fresh);
                fold.set_now(Time(*at));
                decoder.push(bytes, &mut ReplaySink { fold, front });
                front.flush();
            }
        }
    }
    end(running, front);
}

/// A recording is untrusted: an absurd pause must not overflow.
fn wait(millis: u64, speed: f64) -> Duration {
    let seconds = Duration::from_millis(millis).as_secs_f64() / speed;
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

fn end(running: Option<(Decoder, Fold)>, front: &mut dyn Front) {
    if let Some((decoder, mut fold)) = running {
        // The notes already report what was not understood.
        let _understood = decoder.finish(&mut ReplaySink { fold: &mut fold, front });
        front.flush();
    }
}

struct ReplaySink<'a> {
    fold: &'a mut Fold,
    front: &'a mut dyn Front,
}

impl Sink for ReplaySink<'_> {
    fn take(&mut self, event: Event<'_>) {
        self.fold.take(event);
        self.front.on_update(Update::Event { event, fold: self.fold });
        // The end of a turn would report it, but a recording has none.
        if let Event::Noted(note) = event
            && note.code == NoteCode::CutOff
        {
            self.front.on_update(Update::Noted(&note.message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_in_a_recording_is_too_long() {
        assert_eq!(wait(3000, 2.0), Duration::from_millis(1500));
        assert_eq!(wait(u64::MAX, f64::MIN_POSITIVE), Duration::MAX);
        assert_eq!(wait(0, f64::MIN_POSITIVE), Duration::ZERO);
    }
}
