//! `aside encode`: a conversation into the request that would be sent.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use aside_core::safe_json;
use aside_core::wire::merge_body;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::Outcome;
use crate::outgoing::{self, Counting, Outgoing};
use crate::output;
use crate::report::tell;

/// What stands where a key would.
const HIDDEN: &str = "***";

/// Print the request that a conversation would be sent as
///
/// Reads a conversation (JSON lines, as product files and `aside decode` write
/// them) and prints the body that its provider takes: thinking where this
/// provider wants it back, nothing of another's.
///
/// Exit code: 0 done, 1 the provider demands something that cannot be sent, 2
/// asked wrongly.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aside encode -m deepseek/deepseek-v4-pro examples/conversation.jsonl
  aside encode -m anthropic/claude-sonnet-5 --full examples/conversation.jsonl
  aside encode -m kimi/kimi-k3 --set reasoning.effort=low examples/conversation.jsonl")]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: outgoing::Source,

    /// Print method, URL and headers too; keys are shown as ***
    #[arg(long)]
    full: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let outgoing = arguments.source.build(Counting::Roughly)?;
    let text = match arguments.full {
        true => Arc::new(full(&outgoing)?),
        false => merge_body(&outgoing.encoded.body, &outgoing.provider.extra_body),
    };
    // To the byte, unless somebody reads it on a terminal.
    let is_terminal = std::io::stdout().is_terminal();
    let shown = if is_terminal { safe_json::escaped(&text) } else { text.as_str().into() };
    writeln!(output::stdout(), "{shown}")?;
    // What is worth knowing goes beside the data, not into it.
    for note in &outgoing.encoded.notes {
        tell(&format!("note: {note}"));
    }
    for demand in &outgoing.encoded.unmet {
        tell(&format!("error: {demand}"));
    }
    Ok(if outgoing.encoded.unmet.is_empty() { Outcome::Done } else { Outcome::ProviderFailed })
}

fn full(outgoing: &Outgoing) -> anyhow::Result<String> {
    let Outgoing { provider, encoded, .. } = outgoing;
    // The key itself is not asked for: only that there is one.
    let call = provider.call(encoded, (!provider.keys.is_empty()).then_some(HIDDEN))?;
    let headers: serde_json::Map<String, Value> =
        call.headers.into_iter().map(|(name, value)| (name.clone(), Value::from(shown(&name, value)))).collect();
    let head = json!({ "method": "POST", "url": call.url, "headers": headers }).to_string();
    // The body stays as it is sent, to the byte.
    let body: &RawValue = serde_json::from_str(&call.body)?;
    let head = head.strip_suffix('}').unwrap_or(&head);
    Ok(format!("{head},\"body\":{}}}", body.get()))
}

/// A user's own header may hold a secret too.
fn shown(name: &str, value: String) -> String {
    let secret = ["auth", "key", "token", "secret", "cookie"].iter().any(|word| name.contains(word));
    if secret && !value.contains(HIDDEN) { HIDDEN.to_owned() } else { value }
}
