//! `aside encode`: a conversation into the request that would be sent.

use std::io::Write;

use aside_core::protocol::Protocol;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::outgoing::{self, Counting, Outgoing};
use crate::{Outcome, report::Report};

/// Print the request that a conversation would be sent as
///
/// Reads a conversation (JSON lines, as product files and `aside decode` write
/// them) and prints the body that its provider takes: thinking where this
/// provider wants it back, nothing of another's.
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
    let mut out = std::io::stdout().lock();
    if arguments.full {
        writeln!(out, "{}", full(&outgoing)?)?;
    } else {
        writeln!(out, "{}", outgoing.encoded.body)?;
    }
    notes(&outgoing);
    Ok(Outcome::Done)
}

/// What is worth knowing goes beside the data, not into it.
#[expect(clippy::print_stderr, reason = "stdout is the body and nothing else")]
fn notes(outgoing: &Outgoing) {
    for note in &outgoing.encoded.notes {
        eprintln!("note: {note}");
    }
}

fn full(outgoing: &Outgoing) -> anyhow::Result<String> {
    let base = outgoing.dialect.base_url.as_deref().unwrap_or("");
    if base.is_empty() {
        let hint = "give it a base_url in dialects/ of the config folder";
        return Err(Report::new(format!("`{}` has no base URL of its own", outgoing.dialect.id)).hint(hint).into());
    }
    let mut headers = serde_json::Map::new();
    headers.insert("content-type".to_owned(), Value::from("application/json"));
    if outgoing.dialect.api_key_env.is_some() {
        let (name, value) = match outgoing.dialect.protocol {
            Protocol::Anthropic => ("x-api-key", "***"),
            Protocol::Gemini => ("x-goog-api-key", "***"),
            Protocol::OpenaiChat
            | Protocol::OpenaiResponses
            | Protocol::Ollama
            | Protocol::Bedrock
            | Protocol::Cohere => ("authorization", "Bearer ***"),
        };
        headers.insert(name.to_owned(), Value::from(value));
    }
    if outgoing.dialect.protocol == Protocol::Anthropic {
        headers.insert("anthropic-version".to_owned(), Value::from("2023-06-01"));
    }
    for (name, value) in &outgoing.encoded.headers {
        headers.insert(name.clone(), Value::from(value.as_str()));
    }
    let url = format!("{}{}", base.trim_end_matches('/'), outgoing.encoded.path);
    let head = json!({ "method": "POST", "url": url, "headers": headers }).to_string();
    // The body stays as it is sent, to the byte.
    let body = RawValue::from_string(outgoing.encoded.body.clone())?;
    let head = head.strip_suffix('}').unwrap_or(&head);
    Ok(format!("{head},\"body\":{}}}", body.get()))
}
