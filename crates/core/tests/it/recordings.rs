//! Real recordings, in the folder that `ASIDE_CORPUS` names. They are not part of the
//! repo. Without the folder these tests do nothing; with it, no recording is skipped.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use aside_core::block::{Arguments, Block, Reply};
use aside_core::event::{Ending, NoteCode};
use aside_core::extra::Extra;
use aside_core::protocol::Protocol;
use aside_core::wire::detect_protocol;
use serde_json::Value;

use crate::support::{decode, events, generic_rules, text, thinking_texts};

/// Expected results that contradict the wire formats: the case, what is disputed, and
/// why. Everything else in these cases is compared.
#[rustfmt::skip]
const DISPUTED: &[(&str, &str, &str)] = &[
    ("181-", "tool_calls", "a `server_tool_use` is run by the provider: it is no call of ours"),
    ("303-", "error", "the message of a list of details is the first `msg`, not the list"),
    ("325-", "text", "white space before a leading tag stays text"),
    ("474-", "tool_calls", "a `function_call` whose name and arguments are empty is padding, not a call"),
];

struct RecordedCase {
    name: String,
    protocol: Protocol,
    bytes: Vec<u8>,
    expected: Value,
}

fn corpus() -> Option<PathBuf> {
    let folder = std::env::var_os("ASIDE_CORPUS").map(PathBuf::from)?;
    assert!(folder.join("cases").is_dir(), "ASIDE_CORPUS names {}, which has no folder `cases`", folder.display());
    Some(folder)
}

fn cases(folder: &Path) -> Vec<RecordedCase> {
    let mut cases = Vec::new();
    let mut folders: Vec<_> = fs::read_dir(folder.join("cases")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for folder in folders {
        let meta: Value = serde_json::from_slice(&fs::read(folder.join("meta.json")).unwrap()).unwrap();
        let Ok(protocol) = meta["protocol"].as_str().unwrap().parse::<Protocol>() else {
            assert_eq!(meta["protocol"], "other");
            continue;
        };
        let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for path in files {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if !name.contains("response.") || name.ends_with("chunks.json") {
                continue;
            }
            let turn = name.split("response.").next().unwrap();
            let expected = fs::read(folder.join(format!("{turn}expected.json"))).unwrap();
            let folder_name = folder.file_name().unwrap().to_string_lossy();
            cases.push(RecordedCase {
                name: format!("{folder_name}/{name}"),
                protocol,
                bytes: fs::read(&path).unwrap(),
                expected: serde_json::from_slice(&expected).unwrap(),
            });
        }
    }
    cases
}

/// All recordings by name, for other tests; none without the folder.
pub(crate) fn recordings() -> Option<Vec<(String, Protocol, Vec<u8>)>> {
    let cases = cases(&corpus()?);
    Some(cases.into_iter().map(|case| (case.name, case.protocol, case.bytes)).collect())
}

/// Every difference between a reply and the expected result.
fn differences(reply: &Reply, expected: &Value) -> Vec<String> {
    let mut out = Vec::new();
    let mut compare = |what: &str, got: Value, wanted: Value| {
        if got != wanted {
            out.push(format!("{what}:\n    got    {}\n    wanted {}", clip(&got), clip(&wanted)));
        }
    };
    let spoken: String = thinking_texts(reply).into_iter().filter(|thought| !thought.trim().is_empty()).collect();
    let wanted: Vec<String> = serde_json::from_value(expected["reasoning"].clone()).unwrap();
    compare("reasoning", spoken.into(), wanted.concat().into());
    compare("text", text(reply).into(), expected["text"].clone());
    compare("tool_calls", calls(reply), expected["tool_calls"].clone());
    let mut wanted: Vec<String> = serde_json::from_value(expected["signatures"].clone()).unwrap();
    wanted.sort();
    compare("signatures", seals(reply).into(), wanted.into());
    for (name, got) in
        [("input", reply.usage.input), ("output", reply.usage.output), ("reasoning", reply.usage.reasoning)]
    {
        compare(&format!("usage.{name}"), got.into(), expected["usage"][name].clone());
    }
    compare("finish", finish(&reply.end.ending).into(), wanted_finish(expected));
    let error = reply.end.error.as_ref().map(|error| error.message.clone());
    compare("error", error.into(), expected["error"].clone());
    out
}

fn clip(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() > 400 { text.chars().take(400).collect::<String>() + "…" } else { text }
}

fn calls(reply: &Reply) -> Value {
    let calls = reply.blocks.iter().filter_map(|block| match block {
        Block::ToolCall(call) => Some(match &call.arguments {
            Arguments::Json(json) => {
                let arguments: Value = serde_json::from_str(json).unwrap();
                serde_json::json!({"name": call.name, "arguments": arguments})
            }
            Arguments::Broken(text) => serde_json::json!({"name": call.name, "arguments": text}),
        }),
        _ => None,
    });
    calls.collect()
}

fn seals(reply: &Reply) -> Vec<String> {
    let mut out = Vec::new();
    for block in &reply.blocks {
        match block {
            Block::Thinking(thinking) => {
                if let Some(seals) = thinking.seals() {
                    out.extend(seals.signature.iter().chain(&seals.encrypted).map(|seal| seal.payload.clone()));
                }
            }
            Block::Text(text) => out.extend(text.seal.iter().map(|seal| seal.payload.clone())),
            Block::ToolCall(call) => out.extend(call.seal.iter().map(|seal| seal.payload.clone())),
            Block::ToolResult(_) | Block::Media(_) => (),
            Block::Unmodelled(unmodelled) => {
                let native: Value = serde_json::from_str(&unmodelled.native.json).unwrap();
                for member in ["thoughtSignature", "encrypted_content", "signature"] {
                    out.extend(native[member].as_str().map(str::to_owned));
                }
            }
        }
    }
    out.sort();
    out
}

fn finish(ending: &Ending) -> Option<&'static str> {
    match ending {
        Ending::Stop => Some("stop"),
        Ending::Length => Some("length"),
        Ending::ToolCalls => Some("tool_calls"),
        Ending::ContentFilter => Some("content_filter"),
        Ending::Refusal => Some("refusal"),
        Ending::Pause => Some("pause"),
        Ending::Error => Some("error"),
        Ending::Unrecognized(_) => Some("other"),
        Ending::Unsaid | Ending::CutOff => None,
    }
}

fn wanted_finish(expected: &Value) -> Value {
    let called = !expected["tool_calls"].as_array().unwrap().is_empty();
    let word = match expected["finish"].as_str() {
        None => return Value::Null,
        Some("stop" | "end_turn" | "STOP" | "COMPLETE" | "completed") if called => "tool_calls",
        Some("stop" | "end_turn" | "STOP" | "COMPLETE" | "completed") => "stop",
        Some("length" | "max_tokens" | "MAX_TOKENS" | "incomplete:max_output_tokens") => "length",
        Some("tool_calls" | "tool_use" | "TOOL_CALL") => "tool_calls",
        Some("SAFETY" | "content_filter") => "content_filter",
        Some("pause_turn") => "pause",
        Some("ERROR") => "error",
        Some("incomplete" | "in_progress") => "other",
        Some(other) => panic!("no meaning is given for the finish word {other}"),
    };
    word.into()
}

#[test]
fn every_recording_decodes_to_its_expected_result() {
    let Some(folder) = corpus() else { return };
    let cases = cases(&folder);
    let mut failures = Vec::new();
    for case in &cases {
        let rules = generic_rules(case.protocol);
        for size in [1, 7, 64, usize::MAX] {
            let (reply, outcome) = decode(case.protocol, &rules, &case.bytes, size);
            let mut wrong = differences(&reply, &case.expected);
            wrong.retain(|difference| {
                !DISPUTED.iter().any(|(name, what, _)| case.name.starts_with(name) && difference.starts_with(what))
            });
            wrong.extend(outcome.err().map(|error| error.to_string()));
            if !wrong.is_empty() {
                failures.push(format!("{} in chunks of {size}\n  {}", case.name, wrong.join("\n  ")));
                break;
            }
        }
    }
    println!("{} recordings, {} disputed", cases.len(), DISPUTED.len());
    assert!(cases.len() > 400, "only {} recordings found", cases.len());
    assert!(failures.is_empty(), "{} of {} recordings differ\n{}", failures.len(), cases.len(), failures.join("\n"));
}

#[test]
fn d17_any_chunking_of_a_recording_gives_the_same_events() {
    let Some(folder) = corpus() else { return };
    for case in cases(&folder) {
        let rules = generic_rules(case.protocol);
        let whole = events(case.protocol, &rules, [case.bytes.as_slice()]);
        for size in [1, 7, 64] {
            assert_eq!(
                events(case.protocol, &rules, case.bytes.chunks(size)),
                whole,
                "{} in chunks of {size}",
                case.name
            );
        }
    }
}

#[test]
fn the_protocol_of_every_recording_is_guessed_from_its_bytes() {
    let Some(folder) = corpus() else { return };
    let mut failures = Vec::new();
    for case in cases(&folder) {
        let guessed = detect_protocol(&case.bytes);
        // Error bodies look the same in several protocols.
        if guessed != Some(case.protocol) && case.expected["error"].is_null() {
            failures.push(format!("{}: {guessed:?}", case.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The names of all members without a neutral form, of the replies and their blocks.
fn extra_names(reply: &Reply) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut add = |place: &str, extra: &Extra| {
        for (name, json) in extra.iter() {
            // The counters of a usage object are kept one by one.
            match serde_json::from_str::<Value>(json) {
                Ok(Value::Object(members)) if name.starts_with("usage") => {
                    names.extend(members.keys().map(|member| format!("{place}{name}.{member}")));
                }
                _ => names.push(format!("{place}{name}")),
            }
        }
    };
    add("", &reply.extra);
    for block in &reply.blocks {
        match block {
            Block::Text(text) => add("text:", &text.extra),
            Block::Thinking(thinking) => add("thinking:", &thinking.extra),
            Block::ToolCall(call) => add("call:", &call.extra),
            Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => (),
        }
    }
    names
}

/// What the recordings hold beyond the neutral form. A name that is missing here
/// was lost or is new; read it before you add it.
#[rustfmt::skip]
const KEPT: &[(Protocol, &[&str])] = &[
    (Protocol::OpenaiChat, &[
        "annotations", "audio", "channel", "citations", "content_filter_results", "copilot_usage", "cost",
        "executed_tools", "graph_data", "images", "logprobs", "matched_stop", "metadata", "native_finish_reason",
        "prompt_filter_results", "provider", "provider_metadata", "related_questions", "search_results", "seed",
        "service_tier", "stop_reason", "system_fingerprint", "time_info", "timings", "token_id",
        "usage.avg_compl_tok_per_sec", "usage.avg_prompt_tok_per_sec", "usage.avg_tok_per_sec",
        "usage.completion_time", "usage.completion_tokens_details", "usage.cost", "usage.cost_details",
        "usage.cost_in_usd_ticks", "usage.is_byok", "usage.market_cost", "usage.prompt_time",
        "usage.prompt_tokens_details", "usage.prompt_tokens_per_second", "usage.queue_time",
        "usage.search_context_size", "usage.server_tool_use_details", "usage.service_tier",
        "usage.time_per_output_token_ms", "usage.time_to_first_token_ms", "usage.tokens_per_second",
        "usage.total_completion_time_sec", "usage.total_prompt_time_sec", "usage.total_time",
        "usage.total_time_sec", "usage_breakdown.models", "venice_parameters",
    ]),
    (Protocol::OpenaiResponses, &[
        "billing", "content_filters", "copilot_usage", "service_tier", "tool_usage", "usage.context_details",
        "usage.cost", "usage.cost_details", "usage.cost_in_usd_ticks", "usage.pydantic_ai_gateway",
    ]),
    (Protocol::Anthropic, &[
        "container", "usage.inference_geo", "usage.iterations", "usage.server_tool_use", "usage.service_tier",
    ]),
    (Protocol::Gemini, &[
        "avgLogprobs", "finishMessage", "groundingMetadata", "promptFeedback", "safetyRatings",
        "urlContextMetadata", "usageMetadata.candidatesTokensDetails", "usageMetadata.promptTokensDetails",
        "usageMetadata.serviceTier", "usageMetadata.toolUsePromptTokenCount",
        "usageMetadata.toolUsePromptTokensDetails", "usageMetadata.trafficType",
    ]),
    (Protocol::Ollama, &[
        "eval_duration", "load_duration", "prompt_eval_duration", "total_duration",
    ]),
    (Protocol::Bedrock, &[
        "metrics",
    ]),
    (Protocol::Cohere, &[
        "citations", "logprobs",
    ]),
];

#[test]
fn d20_what_the_recordings_hold_beyond_the_neutral_form_is_kept() {
    let Some(folder) = corpus() else { return };
    for protocol in Protocol::ALL {
        let mut found = BTreeSet::new();
        for case in cases(&folder).iter().filter(|case| case.protocol == protocol) {
            let (reply, _) = decode(protocol, &generic_rules(protocol), &case.bytes, usize::MAX);
            let names = extra_names(&reply);
            let notes = reply.notes.iter().filter(|note| note.code == NoteCode::Kept).count();
            assert_eq!(notes, usize::from(!names.is_empty()), "{}: {:?}", case.name, reply.notes);
            found.extend(names);
        }
        let wanted = KEPT.iter().find(|(of, _)| *of == protocol).map(|(_, names)| *names).unwrap_or_default();
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(found, wanted, "{protocol}");
    }
}
