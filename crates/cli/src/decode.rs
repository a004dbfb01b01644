//! `aside decode`: converts a recorded response to neutral JSON.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};

use anyhow::Context;
use aside_core::block::{Origin, Reply};
use aside_core::dialect::{Dialect, Dialects, Rules};
use aside_core::event::{Event, Sink};
use aside_core::fold::Fold;
use aside_core::frame::DEFAULT_FRAME_LIMIT;
use aside_core::json::{self, JsonLayout};
use aside_core::protocol::Protocol;
use aside_core::rules::rules_with_tags;
use aside_core::safe_json;
use aside_core::settings::TagsMode;
use aside_core::wire::{Decoder, NotUnderstood, detect_protocol};
use aside_session::HintedError;
use aside_session::UserFolders;

use crate::ExitStatus;
use crate::output;
use crate::override_arguments::OverrideArguments;
use crate::report::{as_hinted, print_error};

const CHUNK: usize = 64 * 1024;

/// How much to read ahead to detect the protocol and the model.
const MAX_HEAD: usize = 1024 * 1024;

/// Convert a recorded response to neutral JSON
///
/// Reads a provider's response, streamed or not, and prints its message:
/// thinking, text and tool calls in order, with usage and finish reason.
/// Protocol and framing are detected from the bytes.
///
/// Exit code: 0 decoded, 1 decoded with an error of the provider inside, 2 not
/// understood.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aside decode response.sse
  curl -sN … | aside decode --events -
  aside decode --dialect auto recordings/*.sse
  aside decode --set reasoning.tags=off response.sse")]
pub(crate) struct Arguments {
    /// The wire format: openai-chat, openai-responses, anthropic, gemini, ollama, bedrock or cohere
    #[arg(long, value_name = "P")]
    protocol: Option<Protocol>,

    /// The provider's dialect, or `auto` to detect it from the model's name
    #[arg(long, value_name = "D")]
    dialect: Option<String>,

    /// Print every event as a line of JSON instead of the finished message
    #[arg(long)]
    events: bool,

    #[command(flatten)]
    overrides: OverrideArguments,

    /// Skip a single event or body larger than this
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_FRAME_LIMIT)]
    max_event: usize,

    /// Recorded responses; `-` is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    files: Vec<String>,
}

/// How to read one input.
struct DecodePlan {
    protocol: Protocol,
    rules: Rules,
    origin: Option<Origin>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let dialects = UserFolders::from_environment().dialects()?;
    let tags = arguments.overrides.load()?.settings.tags();
    let mut out = BufWriter::new(output::stdout());
    let mut worst = ExitStatus::Done;
    for name in &arguments.files {
        let outcome = match decode_file(arguments, &dialects, tags, name, &mut out) {
            Ok(outcome) => outcome,
            Err(error) if error.is::<HintedError>() => {
                out.flush()?;
                print_error(&as_hinted(error));
                ExitStatus::UsageError
            }
            Err(error) => return Err(error),
        };
        worst = worst.max(outcome);
    }
    out.flush()?;
    Ok(worst)
}

fn decode_file(
    arguments: &Arguments,
    dialects: &Dialects,
    tags: TagsMode,
    name: &str,
    out: &mut impl Write,
) -> anyhow::Result<ExitStatus> {
    let mut input: Box<dyn Read> = if name == "-" {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(name).map_err(|error| HintedError::new(format!("cannot open {name}: {error}")))?;
        Box::new(file)
    };
    let unreadable = |error: io::Error| HintedError::new(format!("cannot read {name}: {error}"));
    let (head, protocol) = read_head(&mut input, arguments, dialects).map_err(unreadable)?;
    let mut plan = plan(arguments, dialects, name, &head, protocol)?;
    plan.rules = rules_with_tags(dialects, &plan.rules, tags).into_owned();
    let label = (arguments.files.len() > 1).then_some(name);

    let mut sink = DecodeSink {
        fold: Fold::new(),
        lines: arguments.events.then_some(EventLines { label, out: &mut *out, failed: None }),
    };
    let mut decoder = Decoder::with_limit(plan.protocol, &plan.rules, arguments.max_event);
    let mut chunk = head;
    while !chunk.is_empty() {
        decoder.push(&chunk, &mut sink);
        sink.flush()?;
        chunk.resize(CHUNK, 0);
        let n_read = read_some(&mut input, &mut chunk).map_err(unreadable)?;
        chunk.truncate(n_read);
    }
    let finished = decoder.finish(&mut sink);
    sink.flush()?;
    let reply = sink.fold.finish();
    if let Err(error) = finished {
        return Err(not_understood(name, &plan, arguments, &reply, &error).into());
    }
    if !arguments.events {
        let layout = if label.is_some() { JsonLayout::OneLine } else { JsonLayout::Indented };
        let origin = plan.origin.map(|origin| origin.with_model(reply.model.clone()));
        writeln!(out, "{}", json::reply(&reply, origin.as_ref(), label, layout)).context("cannot write the result")?;
    }
    Ok(if reply.end.error.is_some() { ExitStatus::ProviderFailed } else { ExitStatus::Done })
}

/// Folds events, and prints them with `--events`.
struct DecodeSink<'a, W: Write> {
    fold: Fold,
    lines: Option<EventLines<'a, W>>,
}

struct EventLines<'a, W: Write> {
    label: Option<&'a str>,
    out: &'a mut W,
    /// `Sink::take` cannot fail, so the first error is kept until the next flush.
    failed: Option<io::Error>,
}

impl<W: Write> DecodeSink<'_, W> {
    fn flush(&mut self) -> anyhow::Result<()> {
        let Some(lines) = &mut self.lines else { return Ok(()) };
        match lines.failed.take() {
            Some(error) => Err(error).context("cannot write the events"),
            None => lines.out.flush().context("cannot write the events"),
        }
    }
}

impl<W: Write> Sink for DecodeSink<'_, W> {
    fn take(&mut self, event: Event<'_>) {
        self.fold.take(event);
        let Some(lines) = &mut self.lines else { return };
        let Some(line) = json::event(&event, &self.fold) else { return };
        let labelled = lines.label.zip(line.strip_prefix('{'));
        let written = match labelled {
            Some((label, rest)) => writeln!(lines.out, "{{\"file\":{},{rest}", safe_json::to_string(&label)),
            None => writeln!(lines.out, "{line}"),
        };
        if let Err(error) = written {
            lines.failed.get_or_insert(error);
        }
    }
}

/// Reads until the protocol is clear, and the model too if `--dialect` is given.
fn read_head(
    input: &mut dyn Read,
    arguments: &Arguments,
    dialects: &Dialects,
) -> io::Result<(Vec<u8>, Option<Protocol>)> {
    let mut head = Vec::new();
    let declared =
        arguments.protocol.or_else(|| dialects.get(arguments.dialect.as_deref()?).map(|dialect| dialect.protocol));
    loop {
        let start = head.len();
        head.resize(start + CHUNK, 0);
        let n_read = read_some(input, head.get_mut(start..).unwrap_or(&mut []))?;
        head.truncate(start + n_read);
        let protocol = declared.or_else(|| detect_protocol(&head));
        let model_known = || protocol.is_some_and(|protocol| peek_model(&head, protocol, dialects).is_some());
        let enough = protocol.is_some() && (arguments.dialect.is_none() || model_known());
        if n_read == 0 || enough || head.len() >= MAX_HEAD {
            return Ok((head, protocol));
        }
    }
}

fn plan(
    arguments: &Arguments,
    dialects: &Dialects,
    name: &str,
    head: &[u8],
    protocol: Option<Protocol>,
) -> Result<DecodePlan, HintedError> {
    let generic = |protocol: Protocol| {
        dialects.generic(protocol).ok_or_else(|| HintedError::new(format!("no dialect reads {protocol} in general")))
    };
    let named = match arguments.dialect.as_deref() {
        None | Some("auto") => None,
        Some(id) => Some(dialects.get(id).ok_or_else(|| unknown_dialect(dialects, id))?),
    };
    if let (Some(dialect), Some(protocol)) = (named, arguments.protocol)
        && dialect.protocol != protocol
    {
        let what = format!("dialect `{}` speaks {}, not {protocol}", dialect.id, dialect.protocol);
        return Err(HintedError::new(what).hint("leave --protocol out, or name a dialect of that protocol"));
    }
    let Some(protocol) = named.map(|dialect| dialect.protocol).or(protocol) else {
        let found = if head.is_empty() { "is empty" } else { "is of no protocol aside knows" };
        let names: Vec<&str> = Protocol::ALL.iter().map(|protocol| protocol.as_str()).collect();
        let what = format!("{} {found}; expected a response of {}", display_name(name), names.join(", "));
        let hint = "an event stream or a JSON body; use --protocol P if you know which it is";
        return Err(HintedError::new(what).hint(hint));
    };
    let model = arguments.dialect.as_ref().and_then(|_| peek_model(head, protocol, dialects));
    let resolved: Option<&Dialect> = match arguments.dialect.as_deref() {
        Some("auto") => model.as_deref().and_then(|model| dialects.made_by(protocol, model)),
        _ => named,
    };
    let origin =
        resolved.map(|dialect| Origin::default().with_provider(dialect.id.clone()).with_dialect(dialect.id.clone()));
    let dialect = match resolved {
        Some(dialect) => dialect,
        None => generic(protocol)?,
    };
    Ok(DecodePlan { protocol, rules: dialect.rules(model.as_deref()).clone(), origin })
}

/// The model's name in the head of a response.
fn peek_model(head: &[u8], protocol: Protocol, dialects: &Dialects) -> Option<String> {
    let mut model = None;
    let mut find_model = |event: Event<'_>| {
        if let Event::Started { model: name } = event {
            model.get_or_insert_with(|| name.to_owned());
        }
    };
    let mut decoder = Decoder::new(protocol, dialects.generic(protocol)?.rules(None));
    decoder.push(head, &mut find_model);
    // The head may be cut off; only the model's name matters.
    drop(decoder.finish(&mut find_model));
    model
}

fn not_understood(
    name: &str,
    plan: &DecodePlan,
    arguments: &Arguments,
    reply: &Reply,
    error: &NotUnderstood,
) -> HintedError {
    let name = display_name(name);
    let mut what =
        format!("{name} was not understood as {}: {}; expected {}", plan.protocol, error.found, error.expected);
    for note in reply.notes.iter().take(3) {
        what.push_str(&format!("\n  {}: {}", note.code.as_str(), note.message));
    }
    let is_specified = arguments.protocol.is_some() || arguments.dialect.is_some();
    let hint = match is_specified {
        true => "leave --protocol and --dialect out to have the protocol detected from the bytes",
        false => "use --protocol P if it is of another protocol, --max-event BYTES if an event is too large",
    };
    HintedError::new(what).hint(hint)
}

fn unknown_dialect(dialects: &Dialects, id: &str) -> HintedError {
    let known: Vec<&str> = dialects.iter().map(|dialect| dialect.id.as_str()).collect();
    HintedError::new(format!("unknown dialect `{id}`")).hint(format!("auto, or one of: {}", known.join(", ")))
}

fn display_name(name: &str) -> &str {
    if name == "-" { "standard input" } else { name }
}

/// Reads once, and retries if a signal interrupted the system call.
fn read_some(input: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            outcome => return outcome,
        }
    }
}
