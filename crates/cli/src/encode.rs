//! `aside encode`: prints the request that would be sent for a conversation.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use aside_core::safe_json;
use aside_core::wire::merge_body;
use aside_session::request_preview::{RequestPreview, TokenCounting};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::ExitStatus;
use crate::output;
use crate::report::print_notice;
use crate::request_arguments::RequestArguments;

/// Printed in place of a key.
const HIDDEN: &str = "***";

/// Print the request that would be sent for a conversation
///
/// Reads a conversation (JSON lines, as `aside sessions export --format jsonl`
/// and `aside decode` write them) and prints the request body: with the thinking
/// that this provider wants back, without the thinking of other providers.
///
/// Exit code: 0 done, 1 the provider demands something that cannot be sent, 2
/// wrong usage.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aside encode -m deepseek/deepseek-v4-pro examples/conversation.jsonl
  aside encode -m anthropic/claude-sonnet-5 --full examples/conversation.jsonl
  aside encode -m kimi/kimi-k3 --set reasoning.effort=low examples/conversation.jsonl")]
pub(crate) struct Arguments {
    #[command(flatten)]
    request: RequestArguments,

    /// Print method, URL and headers too; keys are shown as ***
    #[arg(long)]
    full: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let preview = arguments.request.build(TokenCounting::Estimate)?;
    let text = match arguments.full {
        true => Arc::new(full(&preview)?),
        false => merge_body(&preview.encoded.body, &preview.provider.extra_body),
    };
    // Exact bytes, except on a terminal.
    let is_terminal = std::io::stdout().is_terminal();
    let shown = if is_terminal { safe_json::escaped(&text) } else { text.as_str().into() };
    writeln!(output::stdout(), "{shown}")?;
    // Notes go to standard error; standard output is only data.
    for note in &preview.encoded.notes {
        print_notice(&format!("note: {note}"));
    }
    for loss in &preview.encoded.left_out {
        print_notice(&format!("note: {loss}"));
    }
    for demand in &preview.encoded.unmet {
        print_notice(&format!("error: {demand}"));
    }
    Ok(if preview.encoded.unmet.is_empty() { ExitStatus::Done } else { ExitStatus::ProviderFailed })
}

fn full(preview: &RequestPreview) -> anyhow::Result<String> {
    let RequestPreview { provider, encoded, .. } = preview;
    // Only whether the provider takes a key matters here, not its value.
    let call = provider.http_call(encoded, (!provider.keys.is_empty()).then_some(HIDDEN))?;
    let headers: serde_json::Map<String, Value> =
        call.headers.into_iter().map(|(name, value)| (name.clone(), Value::from(shown(&name, value)))).collect();
    let head = json!({ "method": "POST", "url": call.url, "headers": headers }).to_string();
    // The body must stay byte for byte as it would be sent.
    let body: &RawValue = serde_json::from_str(&call.body)?;
    let head = head.strip_suffix('}').unwrap_or(&head);
    Ok(format!("{head},\"body\":{}}}", body.get()))
}

/// Hides secrets in the user's own headers.
fn shown(name: &str, value: String) -> String {
    let secret = ["auth", "key", "token", "secret", "cookie"].iter().any(|word| name.contains(word));
    if secret && !value.contains(HIDDEN) { HIDDEN.to_owned() } else { value }
}
