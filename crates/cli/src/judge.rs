//! `aside judge`: a request body against the rules of its provider.

use std::fs;
use std::io::{Read, Write};

use aside_core::conversation::Conversation;
use aside_core::message::{Message, Role};
use aside_core::rules::{Issued, Verdict, judge};
use aside_core::safe_json;
use serde_json::{Value, json};

use crate::output;
use crate::report::Report;
use crate::{Outcome, user_files};

/// Say which of a provider's rules a request body breaks
///
/// Reads a body as the provider would and prints what it would refuse, with its
/// status and the shape of its error. With --after (the earlier turns as a
/// conversation) it also sees whether what was issued came back unchanged.
///
/// Exit code: 0 accepted, 1 refused, 2 you asked wrongly.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aside encode -m kimi/kimi-k3 examples/conversation.jsonl | aside judge --dialect kimi -m kimi-k3
  aside judge --dialect anthropic --after conversation.jsonl request.json")]
pub(crate) struct Arguments {
    /// Whose rules count
    #[arg(long, value_name = "D")]
    dialect: String,

    /// The model, where rules differ by model; else the one the body names
    #[arg(short, long, value_name = "MODEL")]
    model: Option<String>,

    /// The earlier turns as a conversation: what the provider gave out
    #[arg(long, value_name = "FILE")]
    after: Option<String>,

    /// A request body; `-` is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: String,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let dialects = user_files::dialects()?;
    let dialect = dialects.get(&arguments.dialect).ok_or_else(|| {
        Report::new(format!("unknown dialect `{}`", arguments.dialect)).hint("aside models lists them")
    })?;
    let body = read(&arguments.file)?;
    let named = || serde_json::from_str::<Value>(&body).ok()?.get("model")?.as_str().map(str::to_owned);
    let model = arguments.model.clone().or_else(named).unwrap_or_default();
    let earlier = match &arguments.after {
        Some(path) => {
            let parsed = Conversation::parse(&read(path)?);
            Some(parsed.map_err(|error| Report::new(format!("{path}: {error}")))?)
        }
        None => None,
    };
    let branch = earlier.as_ref().map(|conversation| conversation.history.branch());
    let issued: Option<Vec<&Message>> = branch.map(|branch| {
        branch.into_iter().map(|(_, message)| message).filter(|message| message.role == Role::Assistant).collect()
    });
    let issued = issued.as_deref().map_or(Issued::Unknown, Issued::Messages);
    let verdict = judge(dialect, &model, &[], &body, issued)
        .map_err(|error| Report::new(format!("{}: {error}", arguments.file)))?;
    writeln!(output::stdout(), "{}", safe_json::to_string(&as_json(&verdict)))?;
    Ok(if verdict.is_ok() { Outcome::Done } else { Outcome::ProviderFailed })
}

fn as_json(verdict: &Verdict) -> Value {
    let broken: Vec<Value> = verdict
        .broken
        .iter()
        .map(|broken| {
            let body = serde_json::from_str::<Value>(&broken.body).unwrap_or_default();
            json!({ "rule": broken.rule, "path": broken.path, "status": broken.status, "body": body })
        })
        .collect();
    json!({ "ok": verdict.is_ok(), "broken": broken, "unverified": verdict.unverified })
}

fn read(path: &str) -> Result<String, Report> {
    let mut text = String::new();
    let outcome = match path {
        "-" => std::io::stdin().read_to_string(&mut text).map(drop),
        path => fs::read_to_string(path).map(|content| text = content),
    };
    outcome.map(|()| text).map_err(|error| Report::new(format!("cannot read {path}: {error}")))
}
