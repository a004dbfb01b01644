//! Every refusal that a dialect lists, in that dialect's words, against a request that has the fault. `catalogue.txt`
//! says how the next request differs; after an intended change run with `UPDATE_EXPECT=1` and read the diff.

use std::fmt::Write as _;
use std::path::PathBuf;

use aside_core::dialect::{Dialect, ErrorRow};
use aside_core::protocol::Protocol;
use aside_core::rules::{IssuedThinking, judge};
use serde_json::json;

use super::conversations::HistoryVariant;
use super::wrappers::WRAPPERS;
use super::{Healed, RefusalRow, Setup, dialects_for, refuse_once, test_http};
use crate::session_support::dialects;

/// A model that thinks.
fn model(dialect: &Dialect) -> &'static str {
    match dialect.protocol {
        Protocol::Bedrock => "us.anthropic.claude-sonnet-4-6",
        _ => "test-model",
    }
}

/// What a request contains that this row is about, and lines of a dialect file where the dialect itself would
/// prevent the fault.
fn faulty_request(row: &ErrorRow, dialect: &Dialect) -> Setup {
    let rules = dialect.rules(None);
    let (mut settings, mut lines, mut history) = (Vec::new(), Vec::new(), HistoryVariant::Usual);
    match row.id.as_str() {
        "effort" | "effort_parameter" | "effort_value" | "tools_need_no_effort" => {
            settings.push(("reasoning.effort", "xhigh"));
            lines.push(r#"ask.effort.values = ["low", "medium", "high", "xhigh"]"#.to_owned());
            if rules.ask.effort.path.is_empty() {
                lines.push(format!(r#"ask.effort.path = "{}""#, effort_path(dialect.protocol)));
            }
        }
        "binding_header" => {
            let thinking = r#"{ thinking = { block_binding = { prefix_mismatch_behavior = "drop_block" } } }"#;
            lines.push(match dialect.protocol {
                Protocol::Bedrock => format!("ask.extra = {{ additionalModelRequestFields = {thinking} }}"),
                _ => format!("ask.extra = {thinking}"),
            });
        }
        "template_arguments" => {
            lines.push("ask.on = { chat_template_kwargs = { enable_thinking = true } }".to_owned());
        }
        "switch_and_effort" => {
            settings.push(("reasoning.effort", "high"));
            lines.push(r#"ask.effort = { path = "reasoning_effort", values = ["low", "high"] }"#.to_owned());
        }
        "parameter_moved" => {
            settings.push(("reasoning.effort", "high"));
            lines.push(r#"ask.effort.path = "reasoning_effort""#.to_owned());
        }
        "sampling" => {
            settings.push(("request.temperature", "0.5"));
            lines.extend(["ask.forbid = []".to_owned(), "ask.forbid_when_on = []".to_owned()]);
        }
        "budget_range" | "budget_limit" => {
            settings.push(("reasoning.maxTokens", "2000"));
            if rules.ask.budget.path.is_empty() {
                lines.push(r#"ask.budget.path = "thinking.budget_tokens""#.to_owned());
            }
        }
        "cannot_think" => settings.push(("reasoning.effort", "high")),
        "always_thinks" => settings.push(("reasoning.enabled", "false")),
        "passed_back" | "missing_field" | "missing_with_calls" => {
            lines.push(r#"echo.fill_empty = "none""#.to_owned());
            history = HistoryVariant::Lost;
        }
        "missing_signature" => {
            lines.push(r#"echo.foreign = "drop""#.to_owned());
            history = HistoryVariant::UnsealedCall;
        }
        "summary_needs_verification" => {
            lines.push(r#"ask.show = { reasoning = { summary = "auto" } }"#.to_owned());
        }
        "forced_tool" | "tools_and_thinking" | "tool_choice_refused" => {
            settings.push(("tool_choice", "required"));
            // Dialects that know better do not send it.
            lines.push("ask.forced_tools_ok = true".to_owned());
        }
        "empty_content" => {
            lines.push(r#"echo.empty_content = "empty""#.to_owned());
            history = HistoryVariant::EmptyText;
        }
        "bad_redacted" => history = HistoryVariant::Redacted,
        "no_signature" => history = HistoryVariant::Unsealed,
        "seal_alphabet" => history = HistoryVariant::UrlSafeSeals,
        "summary_key" => history = HistoryVariant::NoSummary,
        "item_content" => history = HistoryVariant::ItemContent,
        "thinking_key" => history = HistoryVariant::NoText,
        "thinking_not_first" => history = HistoryVariant::TextFirst,
        "emptied_message" => history = HistoryVariant::EmptyText,
        "prefill" | "orphan_item" | "thinking_while_off" => history = HistoryVariant::ThinkingOnly,
        _ => settings.push(("reasoning.includeInContext", "true")),
    }
    Setup {
        dialect: dialect.id.clone(),
        model: model(dialect).to_owned(),
        settings: settings.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        dialect_lines: lines,
        history,
        change: String::new(),
    }
}

fn effort_path(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::OpenaiChat | Protocol::Cohere => "reasoning_effort",
        Protocol::OpenaiResponses => "reasoning.effort",
        Protocol::Anthropic => "output_config.effort",
        Protocol::Bedrock => "additionalModelRequestFields.output_config.effort",
        Protocol::Gemini => "generationConfig.thinkingConfig.thinkingLevel",
        Protocol::Ollama => "think",
    }
}

/// The row in the words of a dialect.
fn wording(row: &ErrorRow, dialect: &Dialect) -> String {
    let values = [
        ("path", "messages.3.content.0"),
        ("place", "input[3]"),
        ("index", "3"),
        ("field", "reasoning_content"),
        ("id", "rs_2"),
        ("kind", "tool_use"),
        ("other", "rs_1"),
        ("values", "'low', 'medium', 'high'"),
        ("least", "4096"),
        ("most", "32768"),
        ("name", "test-model"),
        (
            "value",
            if row.id == "sampling" {
                "temperature"
            } else if row.id == "thinking_mode" {
                "adaptive"
            } else {
                "xhigh"
            },
        ),
    ];
    let text = row.says_at.get(&dialect.id).unwrap_or(&row.says).clone();
    values.iter().fold(text, |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

fn table_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/refusals/catalogue.txt")
}

#[tokio::test]
async fn e11_every_refusal_in_the_catalogue_is_repaired_or_reaches_the_user() {
    let known = dialects();
    let http = test_http();
    let mut found = String::from(
        "# What a repair changes after each refusal that a dialect lists. `refused` means that the request has nothing\n\
         # to change, so that the user sees the provider's error.\n",
    );
    let (mut n_repaired, mut failures) = (0, Vec::new());
    for dialect in known.iter() {
        for id in &dialect.rules(None).errors {
            let row = known.catalogue().iter().find(|row| row.id == *id).unwrap();
            let setup = faulty_request(row, dialect);
            let message = wording(row, dialect);
            let body = json!({"error": {"message": message, "code": row.code, "param": null, "type": "invalid_request_error"}});
            let refusal = RefusalRow {
                id: format!("{} {id}", dialect.id),
                status: row.status[0],
                body: body.to_string(),
                dialect: dialect.id.clone(),
                model: setup.model.clone(),
                is_negative: false,
            };
            let changed = dialects_for(&refusal, &setup);
            let healed = refuse_once(&refusal, &setup, &WRAPPERS[0], &changed, &http).await;
            let Healed { repaired, answered, change, n_requests, bodies } = &healed;
            let line = match repaired.as_slice() {
                [repair] if *answered && *n_requests == 2 && !change.is_empty() => {
                    n_repaired += 1;
                    let target = changed.get(&dialect.id).unwrap();
                    let verdict =
                        judge(target, &setup.model, &[], &bodies[1].to_string(), IssuedThinking::Unknown).unwrap();
                    if !verdict.is_ok() {
                        failures.push(format!(
                            "{} {id}: the repaired request is refused: {:?}",
                            dialect.id, verdict.broken
                        ));
                    }
                    format!("{repair}: {change}")
                }
                [] if !*answered && *n_requests == 1 => "refused".to_owned(),
                _ => {
                    failures.push(format!("{} {id}: {repaired:?}, {n_requests} requests, {change}", dialect.id));
                    "failed".to_owned()
                }
            };
            writeln!(found, "{} | {id} | {line}", dialect.id).unwrap();
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    assert!(n_repaired > 60, "only {n_repaired} refusals were repaired");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(table_path(), found).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(table_path()).unwrap();
    for (expected, found) in expected.lines().zip(found.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), expected.lines().count(), "UPDATE_EXPECT=1 writes the table");
}
