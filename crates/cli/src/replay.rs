//! `aside replay`: a recorded stream once more, through the same decoder and
//! onto the same streams as when it was live.

use std::fs;
use std::io::{BufWriter, IsTerminal};
use std::time::Duration;

use aside_core::block::Time;
use aside_core::dialect::{Dialects, Rules};
use aside_core::event::{Event, Sink};
use aside_core::fold::Fold;
use aside_core::protocol::Protocol;
use aside_core::wire::Decoder;
use aside_engine::{Front, Update};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::ask::plain::{Look, Plain, Thinking};
use crate::report::Report;
use crate::{Outcome, user_files};

/// Play a recorded stream
///
/// Reads what `aside ask --record FILE` wrote and shows it as it came: the
/// answer on standard output, thinking on standard error.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[arg(value_name = "FILE")]
    file: String,

    /// How many times faster than it was; 0 is at once
    #[arg(long, default_value_t = 1.0, value_name = "N")]
    speed: f64,

    /// Show thinking, hide it, or show nothing else
    #[arg(long, value_enum, default_value_t = Thinking::Show, value_name = "VIEW")]
    thinking: Thinking,
}

/// One line of a recording.
enum Line {
    /// A request went out; an answer begins.
    Sent,
    /// Bytes, and when they came.
    Came { at: u64, bytes: Vec<u8> },
}

struct Tape {
    protocol: Protocol,
    rules: Rules,
    lines: Vec<Line>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    if !arguments.speed.is_finite() || arguments.speed < 0.0 {
        return Err(Report::new("the speed is a number from 0 on")
            .hint("--speed 2 is twice as fast, 0 at once")
            .into());
    }
    let dialects = user_files::dialects()?;
    let name = &arguments.file;
    let text = fs::read_to_string(name).map_err(|error| Report::new(format!("cannot read {name}: {error}")))?;
    let tape = read(&text, &dialects)
        .map_err(|problem| Report::new(format!("{name}: {problem}")).hint("aside ask --record FILE writes one"))?;
    let look = Look {
        out_is_terminal: std::io::stdout().is_terminal(),
        err_is_terminal: std::io::stderr().is_terminal(),
        colour: std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        thinking: arguments.thinking,
        holds: false,
    };
    let (out, err) = (BufWriter::new(std::io::stdout().lock()), BufWriter::new(std::io::stderr()));
    let mut plain = Plain::new(out, err, look);
    play(&tape, arguments.speed, &mut plain);
    plain.finish()?;
    Ok(Outcome::Done)
}

fn read(text: &str, dialects: &Dialects) -> Result<Tape, String> {
    let mut values = text
        .lines()
        .enumerate()
        .map(|(at, line)| serde_json::from_str::<Value>(line).map_err(|error| format!("line {}: {error}", at + 1)));
    let head = values.next().ok_or("it is empty")??;
    let word = |name: &str| head.get(name).and_then(Value::as_str);
    if head.get("recording").and_then(Value::as_u64) != Some(1) {
        return Err("it is no recording".to_owned());
    }
    let protocol: Protocol = word("protocol").and_then(|word| word.parse().ok()).ok_or("it names no protocol")?;
    let dialect = word("dialect").and_then(|id| dialects.get(id)).or_else(|| dialects.generic(protocol));
    let rules = dialect.ok_or("nobody speaks its protocol")?.rules(word("model")).clone();
    let mut lines = Vec::new();
    for value in values {
        lines.extend(line(&value?)?);
    }
    Ok(Tape { protocol, rules, lines })
}

fn line(value: &Value) -> Result<Option<Line>, String> {
    let at = value.get("at").and_then(Value::as_u64).unwrap_or_default();
    if value.get("body").is_some() {
        return Ok(Some(Line::Sent));
    }
    if let Some(text) = value.get("text").and_then(Value::as_str) {
        return Ok(Some(Line::Came { at, bytes: text.as_bytes().to_vec() }));
    }
    match value.get("base64").and_then(Value::as_str) {
        Some(text) => {
            let bytes = STANDARD.decode(text).map_err(|error| format!("bytes that are no base64: {error}"))?;
            Ok(Some(Line::Came { at, bytes }))
        }
        None => Ok(None),
    }
}

/// The same events as when it was live, at the same distances.
fn play(tape: &Tape, speed: f64, front: &mut dyn Front) {
    let fresh = || (Decoder::new(tape.protocol, &tape.rules), Fold::new());
    let mut running: Option<(Decoder, Fold)> = None;
    let mut now = 0;
    for line in &tape.lines {
        match line {
            Line::Sent => end(running.take(), front),
            Line::Came { at, bytes } => {
                let pause = at.saturating_sub(now);
                now = *at;
                if speed > 0.0 {
                    std::thread::sleep(wait(pause, speed));
                }
                let (decoder, fold) = running.get_or_insert_with(fresh);
                fold.set_now(Time(*at));
                decoder.push(bytes, &mut Tee { fold, front });
                front.rest();
            }
        }
    }
    end(running, front);
}

/// A recording may be anybody's: no time in it is too long to be told.
fn wait(millis: u64, speed: f64) -> Duration {
    let seconds = Duration::from_millis(millis).as_secs_f64() / speed;
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

fn end(running: Option<(Decoder, Fold)>, front: &mut dyn Front) {
    if let Some((decoder, mut fold)) = running {
        // What is not understood was said by its notes.
        let _understood = decoder.finish(&mut Tee { fold: &mut fold, front });
        front.rest();
    }
}

struct Tee<'a> {
    fold: &'a mut Fold,
    front: &'a mut dyn Front,
}

impl Sink for Tee<'_> {
    fn take(&mut self, event: Event<'_>) {
        self.fold.take(event);
        self.front.hear(Update::Event { event, fold: self.fold });
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
