//! Every complaint of the catalogue: its class, its repair, and that the repaired request
//! is accepted. The changes are in `repairs.txt`; after an intended change run with
//! `UPDATE_EXPECT=1` and read the diff.

use std::fmt::Write as _;

use aside_core::block::Block;
use aside_core::dialect::{Carrier, Dialect, ErrorClass, Fault, Repair};
use aside_core::message::{Message, Role};
use aside_core::rules::{AppliedRepair, IssuedThinking, classify, judge, next_repair, repair_ladder};
use aside_core::settings::{Layer, Settings};
use aside_core::wire::{Encoded, Request, encode};
use expect_test::expect_file;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use crate::judge_accepts::{self, HistoryShape, SECRET, SHAPES, headers, models, tools};
use crate::judge_refuses::{
    answer_block, assistant_message, call, conversation, origin_of, result, thinking_block, user,
};
use crate::support::dialects;

/// One complaint, and a conversation that provokes it.
struct RepairCase {
    row: &'static str,
    dialect: &'static str,
    model: &'static str,
    message: &'static str,
    history: HistoryVariant,
    settings: &'static [(&'static str, &'static str)],
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum HistoryVariant {
    /// A turn with its answer, and an open loop of two steps.
    Usual,
    /// The first thinking block comes from an unknown endpoint.
    Elsewhere,
    /// A thinking block follows the answer.
    Orphan,
    /// The thinking block before an answer is missing, the answer's item is not.
    Lost,
    /// The first thinking block occurs twice.
    Twice,
    /// A thinking block that only the provider's store can resolve.
    Unsealed,
    /// The first thinking block has no text.
    Hidden,
}

#[rustfmt::skip]
const CASES: &[RepairCase] = &[
    RepairCase { row: "prefix_changed",        dialect: "anthropic",         model: "claude-opus-5-5",   history: HistoryVariant::Usual,     settings: &[], message: "messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation." },
    RepairCase { row: "bad_signature",         dialect: "anthropic",         model: "claude-sonnet-5",   history: HistoryVariant::Elsewhere, settings: &[], message: "messages.1.content.0: Invalid `signature` in `thinking` block" },
    RepairCase { row: "blocks_modified",       dialect: "anthropic",         model: "claude-sonnet-5",   history: HistoryVariant::Usual,     settings: &[], message: "messages.5.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response." },
    RepairCase { row: "blocks_mismatch",       dialect: "anthropic",         model: "claude-sonnet-4-5", history: HistoryVariant::Usual,     settings: &[], message: "messages.1.content.0: When providing `thinking` or `redacted_thinking` blocks, the blocks must match the parameters during the original request." },
    RepairCase { row: "thinking_expected",     dialect: "anthropic",         model: "claude-sonnet-4-5", history: HistoryVariant::Usual,     settings: &[], message: "messages.3.content.0: Expected `thinking` or `redacted_thinking`, but found `tool_use`." },
    RepairCase { row: "thinking_mode",         dialect: "anthropic",         model: "claude-sonnet-4-5", history: HistoryVariant::Usual,     settings: &[], message: "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior." },
    RepairCase { row: "thinking_mode",         dialect: "anthropic",         model: "claude-new",        history: HistoryVariant::Usual,     settings: &[], message: "adaptive thinking is not supported on this model" },
    RepairCase { row: "binding_header",        dialect: "anthropic",         model: "claude-opus-5-5",   history: HistoryVariant::Usual,     settings: &[], message: "thinking.adaptive.block_binding: Extra inputs are not permitted" },
    RepairCase { row: "orphan_item",           dialect: "openrouter",        model: "m",                 history: HistoryVariant::Orphan,    settings: &[], message: "Item 'rs_1' of type 'reasoning' was provided without its required following item." },
    RepairCase { row: "missing_item",          dialect: "openai",            model: "gpt-5",             history: HistoryVariant::Lost,      settings: &[], message: "Item 'msg_1' of type 'message' was provided without its required 'reasoning' item: 'rs_1'." },
    RepairCase { row: "bad_encrypted",         dialect: "openai",            model: "gpt-5",             history: HistoryVariant::Usual,     settings: &[], message: "The encrypted content gAAA could not be verified. Reason: Encrypted content could not be decrypted or parsed." },
    RepairCase { row: "not_persisted",         dialect: "openrouter-responses", model: "m",              history: HistoryVariant::Unsealed,  settings: &[], message: "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false." },
    RepairCase { row: "duplicate_item",        dialect: "litellm",           model: "m",                 history: HistoryVariant::Twice,     settings: &[], message: "Duplicate item found with id rs_1. Remove duplicate items from your input and try again." },
    RepairCase { row: "passed_back",           dialect: "generic",           model: "m",                 history: HistoryVariant::Usual,     settings: &[], message: "The `reasoning_content` in the thinking mode must be passed back to the API." },
    RepairCase { row: "missing_field",         dialect: "generic",           model: "m",                 history: HistoryVariant::Lost,      settings: &[], message: "Missing `reasoning_content` field in the assistant message at message index 3" },
    RepairCase { row: "missing_with_calls",    dialect: "generic",           model: "m",                 history: HistoryVariant::Usual,     settings: &[("reasoning.includeInContext", "false")], message: "thinking is enabled but reasoning_content is missing in assistant tool call message at index 3" },
    RepairCase { row: "missing_signature",     dialect: "generic",           model: "m",                 history: HistoryVariant::Usual,     settings: &[], message: "Function call is missing a thought_signature in functionCall parts." },
    RepairCase { row: "bad_thought_signature", dialect: "gemini",            model: "gemini-3-pro",      history: HistoryVariant::Usual,     settings: &[], message: "Corrupted thought signature." },
    RepairCase { row: "effort_parameter",      dialect: "xai",               model: "grok-4.3",          history: HistoryVariant::Usual,     settings: &[("reasoning.effort", "low")], message: "Model grok-4.3 does not support parameter reasoningEffort." },
    RepairCase { row: "switch_and_effort",     dialect: "kimi",              model: "kimi-k3",           history: HistoryVariant::Usual,     settings: &[("reasoning.effort", "high")], message: "cannot specify both 'thinking' and 'reasoning_effort'" },
    RepairCase { row: "effort",                dialect: "openai",            model: "gpt-5.6",           history: HistoryVariant::Usual,     settings: &[("reasoning.effort", "max")], message: "Unsupported value: 'reasoning.effort' does not support 'max' with this model. Supported values are: 'low', 'medium', and 'high'." },
    RepairCase { row: "effort",                dialect: "openai",            model: "gpt-5.6",           history: HistoryVariant::Usual,     settings: &[("reasoning.effort", "max")], message: "This model does not support 'reasoning_effort' value 'max'" },
    RepairCase { row: "empty_content",         dialect: "generic",           model: "m",                 history: HistoryVariant::Usual,     settings: &[], message: "text content is empty" },
    RepairCase { row: "forced_tool",           dialect: "deepseek",          model: "deepseek-v4-pro",   history: HistoryVariant::Usual,     settings: &[], message: "Thinking mode does not support this tool_choice" },
    RepairCase { row: "long_id",               dialect: "openai",            model: "gpt-5",             history: HistoryVariant::Usual,     settings: &[], message: "Invalid 'input[1].id': string too long. Expected a string with maximum length 64, but got a string with length 98 instead." },
    RepairCase { row: "sampling",              dialect: "generic",           model: "m",                 history: HistoryVariant::Usual,     settings: &[("request.temperature", "0.5")], message: "Unsupported parameter: 'temperature' is not supported with this model." },
    RepairCase { row: "thinking_while_off",    dialect: "anthropic",         model: "claude-sonnet-5",   history: HistoryVariant::Usual,     settings: &[], message: "messages.5.content.0: When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`." },
    RepairCase { row: "cannot_think",          dialect: "ollama",            model: "llama3",            history: HistoryVariant::Usual,     settings: &[], message: "\"llama3\" does not support thinking" },
    RepairCase { row: "not_taken_back",        dialect: "generic",           model: "m",                 history: HistoryVariant::Usual,     settings: &[("reasoning.includeInContext", "true")], message: "The reasoning_content is an intermediate result for display purposes only and will not be included in the context for inference." },
    RepairCase { row: "budget_range",          dialect: "gemini",            model: "gemini-2.5-pro",    history: HistoryVariant::Usual,     settings: &[("reasoning.maxTokens", "2000")], message: "The thinking budget 2000 is invalid. Please choose a value between 128 and 1024." },
    RepairCase { row: "budget_limit",          dialect: "anthropic",         model: "claude-sonnet-4-5", history: HistoryVariant::Usual,     settings: &[("reasoning.maxTokens", "15000")], message: "`max_tokens` must be greater than `thinking.budget_tokens`." },
    RepairCase { row: "always_thinks",         dialect: "openrouter",        model: "m",                 history: HistoryVariant::Usual,     settings: &[("reasoning.enabled", "false")], message: "Reasoning is mandatory for this endpoint and cannot be disabled." },
    RepairCase { row: "tools_need_no_effort",  dialect: "openai-chat",       model: "gpt-5.4",           history: HistoryVariant::Usual,     settings: &[], message: "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions." },
    RepairCase { row: "parameter_moved",       dialect: "openai",            model: "gpt-5",             history: HistoryVariant::Usual,     settings: &[], message: "Unsupported parameter: 'reasoning'. This parameter has moved to 'thinking.options'." },
    RepairCase { row: "summary_needs_verification", dialect: "openai",       model: "gpt-5",             history: HistoryVariant::Usual,     settings: &[], message: "Your organization must be verified to generate reasoning summaries." },
    RepairCase { row: "reasoning_object",      dialect: "openai",            model: "gpt-5",             history: HistoryVariant::Usual,     settings: &[("reasoning.effort", "high")], message: "Unsupported parameter: 'reasoning.effort' is not supported with this model." },
    RepairCase { row: "include_refused",       dialect: "openai",            model: "gpt-5",             history: HistoryVariant::Usual,     settings: &[], message: "Encrypted content is not supported with this model." },
    RepairCase { row: "thinking_not_first",    dialect: "anthropic",         model: "claude-sonnet-5",   history: HistoryVariant::Orphan,    settings: &[], message: "messages.1.content.0: If an assistant message contains any thinking blocks, the first block must be `thinking` or `redacted_thinking`. Found `text`." },
    RepairCase { row: "thinking_key",          dialect: "anthropic",         model: "claude-sonnet-5",   history: HistoryVariant::Usual,     settings: &[], message: "messages.1.content.0.thinking.thinking: Field required" },
    RepairCase { row: "summary_key",           dialect: "openai",            model: "gpt-5",             history: HistoryVariant::Usual,     settings: &[], message: "Missing required parameter: 'input[1].summary'." },
    RepairCase { row: "item_content",          dialect: "openai",            model: "gpt-5",             history: HistoryVariant::Usual,     settings: &[], message: "Invalid 'input[1].content': array too long. Expected an array with maximum length 0, but got an array with length 1 instead." },
    RepairCase { row: "thinking_kind",         dialect: "mistral",           model: "magistral-medium-latest", history: HistoryVariant::Usual, settings: &[], message: "messages[1]: unknown variant `thinking`, expected `text`" },
    RepairCase { row: "emptied_message",       dialect: "anthropic",         model: "claude-sonnet-5",   history: HistoryVariant::Orphan,    settings: &[], message: "messages.1: all messages must have non-empty content except for the optional final assistant message" },
    RepairCase { row: "prefill",               dialect: "bedrock",           model: "anthropic.claude-sonnet-5", history: HistoryVariant::Orphan, settings: &[], message: "This model does not support assistant message prefill. The conversation must end with a user message." },
    RepairCase { row: "tools_and_thinking",    dialect: "generic",           model: "m",                 history: HistoryVariant::Usual,     settings: &[], message: "reasoning models take no tool_choice" },
    RepairCase { row: "bad_redacted",          dialect: "anthropic",         model: "claude-sonnet-5",   history: HistoryVariant::Hidden,    settings: &[], message: "messages.1.content.0: Invalid `data` in `redacted_thinking` block" },
    RepairCase { row: "no_signature",          dialect: "litellm",           model: "m",                 history: HistoryVariant::Usual,     settings: &[], message: "messages.1.content.0.thinking.signature: Field required" },
    RepairCase { row: "seal_alphabet",         dialect: "gemini",            model: "gemini-3-pro",      history: HistoryVariant::Usual,     settings: &[], message: "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed" },
    RepairCase { row: "encrypted_refused",     dialect: "vllm-responses",    model: "m",                 history: HistoryVariant::Usual,     settings: &[("reasoning.includeInContext", "true")], message: "Encrypted content is not supported." },
    RepairCase { row: "tool_choice_refused",   dialect: "deepseek",          model: "deepseek-v4-pro",   history: HistoryVariant::Usual,     settings: &[], message: "deepseek-reasoner does not support this tool_choice" },
    RepairCase { row: "effort_value",          dialect: "openai-chat",       model: "gpt-5.1",           history: HistoryVariant::Usual,     settings: &[("reasoning.effort", "high")], message: "level \"high\" not supported, valid levels: low, medium" },
    RepairCase { row: "no_text",               dialect: "anthropic",         model: "claude-sonnet-5",   history: HistoryVariant::Hidden,    settings: &[], message: "messages.1.content.0.thinking: each thinking block must contain thinking" },
    RepairCase { row: "clears_nothing",        dialect: "anthropic",         model: "claude-sonnet-5",   history: HistoryVariant::Usual,     settings: &[], message: "`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive" },
    RepairCase { row: "content_beside_thinking", dialect: "llamacpp",        model: "m",                 history: HistoryVariant::Usual,     settings: &[], message: "Cannot pass both content and thinking in an assistant message with tool calls!" },
    RepairCase { row: "template_arguments",    dialect: "vllm",              model: "m",                 history: HistoryVariant::Usual,     settings: &[("reasoning.enabled", "false")], message: "chat_template is not supported for Mistral tokenizers." },
    RepairCase { row: "conflicts_with_thinking", dialect: "qwen",            model: "qwen3-max",         history: HistoryVariant::Usual,     settings: &[], message: "Json mode response is not supported when thinking is enabled" },
];

impl RepairCase {
    fn dialect(&self) -> &'static Dialect {
        dialects().get(self.dialect).unwrap()
    }

    fn messages(&self) -> Vec<Message> {
        let (dialect, model) = (self.dialect(), self.model);
        let mut messages = conversation(dialect, model);
        match self.history {
            HistoryVariant::Usual => (),
            HistoryVariant::Elsewhere => messages[1].origin.as_mut().unwrap().endpoint = None,
            HistoryVariant::Orphan => messages[1].blocks.reverse(),
            HistoryVariant::Lost => drop(messages[1].blocks.remove(0)),
            HistoryVariant::Twice => messages[3].blocks[0] = messages[1].blocks[0].clone(),
            HistoryVariant::Hidden => {
                messages[1].blocks[0] = judge_accepts::thinking_block(dialect, "", "seal1");
            }
            HistoryVariant::Unsealed => {
                if let Block::Thinking(thinking) = &mut messages[1].blocks[0] {
                    thinking.id = Some("rs_1".into());
                }
            }
        }
        messages
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::new();
        for (key, value) in self.settings {
            settings.set(Layer::Session, key, value).unwrap();
        }
        settings
    }

    fn encode(&self, messages: &[Message], repairs: &[AppliedRepair]) -> Encoded {
        let target = origin_of(self.dialect(), self.model).with_model(None).with_dialect(None);
        let messages: Vec<&Message> = messages.iter().collect();
        let (settings, tools) = (self.settings(), tools());
        encode(
            &Request::new(dialects(), self.dialect(), self.model, &target, &settings)
                .with_messages(&messages)
                .with_tools(&tools)
                .with_repairs(repairs),
        )
    }
}

/// A request as lines: one per parameter, and one per message or block.
fn lines(encoded: &Encoded) -> Vec<String> {
    let mut lines: Vec<String> = encoded.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let body: Value = serde_json::from_str(&encoded.body).unwrap();
    for (name, value) in body.as_object().unwrap() {
        let list = matches!(name.as_str(), "messages" | "input" | "contents");
        for element in value.as_array().filter(|_| list).into_iter().flatten() {
            let blocks = ["content", "parts"].iter().find_map(|name| element.get(name)?.as_array());
            match blocks.filter(|_| element.get("role").is_some() && element.get("type").is_none()) {
                Some(blocks) => lines.extend(blocks.iter().map(|block| format!("{}: {block}", element["role"]))),
                None => lines.push(element.to_string()),
            }
        }
        if !list {
            lines.push(format!("{name}: {value}"));
        }
    }
    lines
}

/// The lines that are in only one of the two, in order.
fn difference(before: &[String], after: &[String]) -> String {
    match (before.split_first(), after.split_first()) {
        (Some((a, before)), Some((b, after))) if a == b => difference(before, after),
        (Some((a, rest)), _) if !after.contains(a) => format!("  - {a}\n{}", difference(rest, after)),
        (_, Some((b, rest))) => format!("  + {b}\n{}", difference(before, rest)),
        (Some((a, rest)), None) => format!("  - {a}\n{}", difference(rest, after)),
        (None, None) => String::new(),
    }
}

#[test]
fn e11_each_complaint_changes_a_request_as_little_as_necessary() {
    let mut out = String::new();
    for case in CASES {
        // Rows that depend on the request are found by the request.
        let by_message = classify(dialects().catalogue(), Some(400), case.message);
        let by_id = || dialects().catalogue().iter().find(|row| row.id == case.row && row.when.is_some());
        let row = by_id().or(by_message).unwrap();
        assert_eq!(row.id, case.row, "{}", case.message);
        assert!(row.matches(case.message), "{}", case.message);
        assert!(case.dialect().rules(Some(case.model)).errors.contains(&row.id) || row.fault.is_some(), "{}", case.row);
        let messages = case.messages();
        let before = case.encode(&messages, &[]);
        let applied = AppliedRepair::next(row, case.message, &[]).unwrap();
        let after = case.encode(&messages, std::slice::from_ref(&applied));
        let changed = difference(&lines(&before), &lines(&after));
        writeln!(out, "{} at {} {}: {}", case.row, case.dialect, case.model, applied.repair.as_str()).unwrap();
        writeln!(out, "{}", if changed.is_empty() { "  nothing of ours\n" } else { changed.as_str() }).unwrap();
        let issued: Vec<&Message> = messages.iter().filter(|message| message.role == Role::Assistant).collect();
        let headers = headers(case.dialect(), &after);
        let mut judged =
            judge(case.dialect(), case.model, &headers, &after.body, IssuedThinking::Messages(&issued)).unwrap();
        // The model takes another switch than our data says.
        judged.broken.retain(|broken| applied.repair != Repair::SwitchMode || broken.fault != Fault::Mode);
        assert!(judged.is_ok(), "{} {}: {:?}\n{}", case.row, case.dialect, judged.broken, after.body);
        assert_eq!(messages, case.messages(), "{}: what is stored stays", case.row);
    }
    let missing: Vec<&str> = dialects()
        .catalogue()
        .iter()
        .map(|row| row.id.as_str())
        .filter(|id| !CASES.iter().any(|case| case.row == *id))
        .collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
    expect_file!["repairs.txt"].assert_eq(&out);
}

#[test]
fn e11_a_complaint_means_the_same_in_every_dialect_that_lists_it() {
    let mut n_rows = 0;
    for dialect in dialects().iter() {
        let listed = &dialect.rules(None).errors;
        let rows: Vec<_> = dialects().catalogue().iter().filter(|row| listed.contains(&row.id)).cloned().collect();
        for case in CASES.iter().filter(|case| listed.iter().any(|id| id == case.row)) {
            let row = rows.iter().find(|row| row.id == case.row).unwrap();
            assert!(row.matches(case.message), "{}: {}", dialect.id, case.message);
            // The message alone does not tell a row that depends on the request.
            if row.when.is_none() {
                let found = classify(&rows, None, case.message).map(|row| row.id.as_str());
                assert_eq!(found, Some(case.row), "{}: {}", dialect.id, case.message);
            }
            n_rows += 1;
        }
    }
    assert!(n_rows > 100, "only {n_rows}");
}

#[test]
fn e11_errors_about_something_else_are_not_repaired() {
    #[rustfmt::skip]
    let unrelated = [
        (401, "Incorrect API key provided"),
        (401, "invalid x-api-key"),
        (402, "Insufficient Balance"),
        (403, "Your account does not have access to this model"),
        (404, "The model `x` does not exist"),
        (413, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens."),
        (400, "No tool output found for function call c1."),
        (400, "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."),
        (400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
        (429, "You exceeded your current quota, please check your plan and billing details."),
        (429, "Rate limit reached for requests"),
        (500, "The server had an error while processing your request."),
        (529, "Overloaded"),
    ];
    for (status, message) in unrelated {
        assert_eq!(classify(dialects().catalogue(), Some(status), message), None, "{message}");
    }
}

#[test]
fn e11_after_a_repair_that_does_not_help_the_next_one_is_tried_until_none_is_left() {
    for row in dialects().catalogue() {
        let mut tried = Vec::new();
        while let Some(repair) = next_repair(row, &tried) {
            assert!(!tried.contains(&repair), "{}: {repair:?} twice", row.id);
            tried.push(repair);
            assert!(tried.len() <= 5, "{}: {tried:?}", row.id);
        }
        assert_eq!(tried, repair_ladder(row.repair), "{}", row.id);
        assert_eq!(tried[0], row.repair, "{}: the smallest first", row.id);
        // What has nothing to do with thinking that is sent back does not end with
        // thinking switched off.
        let about_thinking = matches!(
            row.class,
            ErrorClass::Prefix | ErrorClass::Foreign | ErrorClass::Altered | ErrorClass::Missing | ErrorClass::Orphan
        );
        assert!(!about_thinking || tried.last() == Some(&Repair::OffForTurn), "{}: {tried:?}", row.id);
    }
}

/// A provider accepts a request with each rung, on top of the ones before it.
#[test]
fn e11_a_repaired_request_is_accepted_at_every_rung() {
    let mut n_requests = 0;
    for dialect in dialects().iter() {
        for model in models(dialect) {
            for row in dialects().catalogue().iter().filter(|row| dialect.rules(Some(&model)).errors.contains(&row.id))
            {
                let messages = conversation(dialect, &model);
                let issued: Vec<&Message> = messages.iter().filter(|message| message.role == Role::Assistant).collect();
                let mut repairs: Vec<AppliedRepair> = Vec::new();
                while let Some(applied) = AppliedRepair::next(row, &row.says, &repairs) {
                    repairs.push(applied);
                    let encoded = repaired(dialect, &model, &messages, &repairs, &Settings::new());
                    let judged = judge(dialect, &model, &[], &encoded.body, IssuedThinking::Messages(&issued)).unwrap();
                    let name = format!("{} {model} {} {:?}", dialect.id, row.id, repairs.last());
                    assert!(judged.is_ok(), "{name}: {:?}\n{}", judged.broken, encoded.body);
                    n_requests += 1;
                }
            }
        }
    }
    println!("{n_requests} repaired requests judged");
    assert!(n_requests > 1000, "only {n_requests}");
}

/// A conversation: what each step holds, and whether the last turn is an open tool loop.
fn generated_conversation(dialect: &Dialect, model: &str, shapes: &[HistoryShape]) -> Vec<Message> {
    let mut messages = Vec::new();
    for (n, shape) in shapes.iter().enumerate() {
        messages.extend([user(&format!("q{n}")), judge_accepts::step(dialect, model, *shape, n)]);
        if messages.last().is_some_and(Message::has_calls) {
            messages.push(result(1));
            let is_last = n + 1 == shapes.len();
            messages
                .extend((!is_last).then(|| judge_accepts::step(dialect, model, HistoryShape::ThinkingAndText, n + 10)));
        }
    }
    // A request never ends with a finished answer.
    if messages.last().is_some_and(|message| message.role == Role::Assistant) {
        messages.push(user("last"));
    }
    for message in &mut messages {
        for block in &mut message.blocks {
            if let Block::ToolResult(result) = block {
                result.id = "c1".to_owned();
            }
        }
    }
    messages
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever refusals of its own list a provider answers with, in whatever order, each repaired request is
    /// accepted: no repair causes the next refusal.
    #[test]
    fn e11_no_combination_of_repairs_causes_the_next_refusal(
        (dialect, model) in (any::<Index>(), any::<Index>()),
        shapes in proptest::collection::vec(proptest::sample::select(&SHAPES[..]), 1..4),
        setting in proptest::sample::select(&[None, Some(("reasoning.effort", "high")), Some(("reasoning.enabled", "false")), Some(("reasoning.maxTokens", "2000")), Some(("reasoning.includeInContext", "true"))][..]),
        refusals in proptest::collection::vec((any::<Index>(), 0..3_usize), 1..4),
    ) {
        let all: Vec<&Dialect> = dialects().iter().collect();
        let dialect = dialect.get(&all);
        let models = models(dialect);
        let model = model.get(&models);
        let rows: Vec<_> = {
            let listed = &dialect.rules(Some(model)).errors;
            dialects().catalogue().iter().filter(|row| listed.contains(&row.id)).collect()
        };
        prop_assume!(!rows.is_empty());
        let messages = generated_conversation(dialect, model, &shapes);
        let issued: Vec<&Message> = messages.iter().filter(|message| message.role == Role::Assistant).collect();
        let mut settings = Settings::new();
        if let Some((key, value)) = setting {
            settings.set(Layer::Session, key, value).unwrap();
        }
        let judged = |repairs: &[AppliedRepair]| {
            let encoded = repaired(dialect, model, &messages, repairs, &settings);
            let verdict = judge(dialect, model, &[], &encoded.body, IssuedThinking::Messages(&issued)).unwrap();
            (verdict, encoded)
        };
        let (verdict, encoded) = judged(&[]);
        // Some models have no way to do what is asked; the user is told.
        prop_assume!(verdict.is_ok() && encoded.unmet.is_empty());
        let mut repairs: Vec<AppliedRepair> = Vec::new();
        for (row, rung) in &refusals {
            let row = row.get(&rows);
            let mut ladder = AppliedRepair::ladder(row, &row.says);
            ladder.truncate(rung + 1);
            repairs.extend(ladder.pop());
            let (verdict, encoded) = judged(&repairs);
            prop_assert!(
                verdict.is_ok() || !encoded.unmet.is_empty(),
                "{} {model} {} {repairs:?}: {:?}\n{}", dialect.id, row.id, verdict.broken, encoded.body
            );
        }
    }
}

fn repaired(
    dialect: &Dialect,
    model: &str,
    messages: &[Message],
    repairs: &[AppliedRepair],
    settings: &Settings,
) -> Encoded {
    let target = origin_of(dialect, model).with_model(None).with_dialect(None);
    let messages: Vec<&Message> = messages.iter().collect();
    let tools = tools();
    encode(
        &Request::new(dialects(), dialect, model, &target, settings)
            .with_messages(&messages)
            .with_tools(&tools)
            .with_repairs(repairs),
    )
}

fn all_repairs() -> Vec<Repair> {
    let mut all: Vec<Repair> =
        dialects().catalogue().iter().flat_map(|row| repair_ladder(row.repair)).copied().collect();
    all.extend([Repair::DropOlder, Repair::FillCalls]);
    all.dedup();
    all
}

#[test]
fn e13_no_repair_sends_what_the_user_withheld() {
    let withheld = judge_accepts::settings(Some("false"), "none");
    let repairs = all_repairs();
    for dialect in dialects().iter() {
        for shape in SHAPES {
            let messages = judge_accepts::conversation(dialect, "some-model", shape);
            for repair in &repairs {
                let applied = AppliedRepair { repair: *repair, details: vec!["low".to_owned()] };
                let body = repaired(dialect, "some-model", &messages, &[applied], &withheld).body;
                for secret in [SECRET, "seal1", "seal3", "on-the-call"] {
                    assert!(!body.contains(secret), "{} {shape:?} {repair:?}: {secret} in {body}", dialect.id);
                }
            }
        }
    }
}

/// A dialect that refuses duplicate items sends an item once, without any refusal.
#[test]
fn e11_an_item_is_sent_once_where_duplicates_are_refused() {
    for id in ["openai", "openrouter"] {
        let dialect = dialects().get(id).unwrap();
        let again = vec![thinking_block(dialect, "m", 1), call(dialect, "m", 2)];
        let first = vec![thinking_block(dialect, "m", 1), answer_block(dialect, 1)];
        let messages = [
            user("q"),
            assistant_message(dialect, "m", first),
            user("q"),
            assistant_message(dialect, "m", again),
            result(2),
        ];
        let body = repaired(dialect, "m", &messages, &[], &Settings::new()).body;
        assert_eq!(body.matches("seal1").count(), 1, "{id}: {body}");
        assert_eq!(body.matches("msg_1").count(), usize::from(id == "openai"), "{id}: the answer stays as it is");
        assert_eq!(body.matches("fc_2").count(), 0, "{id}: nothing names a thought that is not there");
        let judged = judge_accepts::verdict(dialect, "m", &messages, &body);
        assert!(judged.is_ok(), "{id}: {:?}", judged.broken);
    }
}

/// Older thinking is dropped before that of the open loop.
#[test]
fn e11_older_thinking_is_dropped_before_that_of_the_open_loop() {
    for dialect in dialects().iter() {
        let carrier = dialect.rules(None).echo.carrier;
        if !matches!(carrier, Carrier::Block | Carrier::Item)
            || dialect.protocol == aside_core::protocol::Protocol::Bedrock
        {
            continue;
        }
        let messages = conversation(dialect, "some-model");
        let sent = |repairs: &[AppliedRepair]| {
            let body = repaired(dialect, "some-model", &messages, repairs, &Settings::new()).body;
            [1, 2, 3].map(|n| body.contains(&format!("seal{n}")) || body.contains(&format!("thought {n}")))
        };
        let [_, second, third] = sent(&[]);
        assert!(second && third, "{}", dialect.id);
        assert_eq!(sent(&[Repair::DropOlder.into()]), [false, true, true], "{}", dialect.id);
        assert_eq!(sent(&[Repair::StripTurn.into()]), [false; 3], "{}", dialect.id);
    }
}
