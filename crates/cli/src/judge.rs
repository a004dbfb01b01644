//! `aside judge`: checks a request body against its provider's rules.

use std::io::Write;

use aside_core::conversation::Conversation;
use aside_core::message::{Message, Role};
use aside_core::rules::{IssuedThinking, JudgeVerdict, judge};
use aside_core::safe_json;
use aside_session::HintedError;
use aside_session::UserFolders;
use serde_json::{Value, json};

use crate::ExitStatus;
use crate::input_file;
use crate::output;

/// Check a request body against a provider's rules
///
/// Reads a body as the provider would and prints each rule it breaks, with the
/// status and body of the provider's error. With --after (the earlier turns as a
/// conversation) it also checks that seals were sent back unchanged.
///
/// Exit code: 0 accepted, 1 refused, 2 wrong usage.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aside encode -m kimi/kimi-k3 examples/conversation.jsonl | aside judge --dialect kimi -m kimi-k3
  aside judge --dialect anthropic --after conversation.jsonl request.json")]
pub(crate) struct Arguments {
    /// The dialect whose rules apply
    #[arg(long, value_name = "D")]
    dialect: String,

    /// The model, if rules differ by model; by default the one the body names
    #[arg(short, long, value_name = "MODEL")]
    model: Option<String>,

    /// The earlier turns as a conversation, with the seals the provider issued
    #[arg(long, value_name = "FILE")]
    after: Option<String>,

    /// A request body; `-` is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: String,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let dialects = UserFolders::from_environment().dialects()?;
    let dialect = dialects.get(&arguments.dialect).ok_or_else(|| {
        HintedError::new(format!("unknown dialect `{}`", arguments.dialect)).hint("aside models --rules lists them")
    })?;
    let body = input_file::read_text(&arguments.file)?;
    let named = || serde_json::from_str::<Value>(&body).ok()?.get("model")?.as_str().map(str::to_owned);
    let model = arguments.model.clone().or_else(named).unwrap_or_default();
    let earlier = match &arguments.after {
        Some(path) => {
            let parsed = Conversation::parse(&input_file::read_text(path)?);
            Some(parsed.map_err(|error| HintedError::new(format!("{path}: {error}")))?)
        }
        None => None,
    };
    let branch = earlier.as_ref().map(|conversation| conversation.history.branch());
    let issued: Option<Vec<&Message>> = branch.map(|branch| {
        branch.into_iter().map(|(_, message)| message).filter(|message| message.role == Role::Assistant).collect()
    });
    let issued = issued.as_deref().map_or(IssuedThinking::Unknown, IssuedThinking::Messages);
    let verdict = judge(dialect, &model, &[], &body, issued)
        .map_err(|error| HintedError::new(format!("{}: {error}", arguments.file)))?;
    writeln!(output::stdout(), "{}", safe_json::to_string(&as_json(&verdict)))?;
    Ok(if verdict.is_ok() { ExitStatus::Done } else { ExitStatus::ProviderFailed })
}

fn as_json(verdict: &JudgeVerdict) -> Value {
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
