//! `aside models --rules`: shows each dialect with its rules and models.

use std::io::{BufWriter, Write};

use anyhow::Context;
use aside_core::dialect::{
    AskDefault, AskRules, Auth, BindModel, BindRules, Carrier, Details, Dialect, Duty, EchoField, EchoRules, FillEmpty,
    Foreign, Off, Patch, PrefixCheck, ReadRules, Removal, Rules, ThinkingWithTools, Tokenizer, TurnsIf,
};
use aside_core::safe_json;
use aside_core::tags::TagStart;
use aside_session::HintedError;
use aside_session::UserFolders;
use aside_session::provider_tables::ProviderTable;
use aside_session::settings::configured_providers;
use serde_json::{Value, json};

use crate::ExitStatus;
use crate::configured_models::{table_json, table_text};
use crate::output;

const WIDTH: usize = 80;

/// The column where facts begin, after their labels.
const FACT_COLUMN: usize = 18;

/// Default facts, which are not shown for a dialect as a whole.
const DEFAULT_FACTS: [&str; 6] =
    ["nothing to send", "nothing known", "not needed", "the provider", "unknown", "estimated"];

/// Prints the rules of the dialects, and the providers of config.toml, whose ids contain all words.
pub(crate) fn print_rules(words: &[String], json: bool) -> anyhow::Result<ExitStatus> {
    let dialects = UserFolders::from_environment().dialects()?;
    let own = configured_providers(&UserFolders::from_environment())?;
    let ids: Vec<&str> =
        dialects.iter().map(|dialect| dialect.id.as_str()).chain(own.iter().map(|table| table.name.as_str())).collect();
    let wanted = |id: &str| match words {
        // A whole id names only itself.
        [word] if ids.contains(&word.as_str()) => id == word,
        words => words.iter().all(|word| id.contains(word.as_str())),
    };
    if !ids.iter().any(|id| wanted(id)) {
        let what = format!("unknown dialect `{}`", words.join(" "));
        let known: Vec<&str> = dialects.iter().map(|dialect| dialect.id.as_str()).collect();
        return Err(HintedError::new(what).hint(format!("one of: {}", known.join(", "))).into());
    }
    let chosen: Vec<&Dialect> = dialects.iter().filter(|dialect| wanted(&dialect.id)).collect();
    let own: Vec<&ProviderTable> = own.iter().filter(|table| wanted(&table.name)).collect();
    let mut out = BufWriter::new(output::stdout());
    let written = if json {
        let list: Value =
            chosen.iter().map(|dialect| as_json(dialect)).chain(own.iter().map(|table| table_json(table))).collect();
        writeln!(out, "{}", safe_json::escaped(&format!("{list:#}")))
    } else {
        let texts: Vec<String> =
            chosen.iter().map(|dialect| as_text(dialect)).chain(own.iter().map(|table| table_text(table))).collect();
        write!(out, "{}", texts.join("\n"))
    };
    written.and_then(|()| out.flush()).context("cannot write the list")?;
    Ok(ExitStatus::Done)
}

/// Groups consecutive model patterns with equal rules.
fn groups(dialect: &Dialect) -> Vec<(Vec<&str>, &Rules)> {
    let mut groups: Vec<(Vec<&str>, &Rules)> = Vec::new();
    for (pattern, rules) in dialect.models() {
        match groups.last_mut() {
            Some((patterns, known)) if *known == rules => patterns.push(pattern),
            Some(_) | None => groups.push((vec![pattern], rules)),
        }
    }
    groups
}

// Text output.

fn as_text(dialect: &Dialect) -> String {
    let mut text = format!("{}\n", dialect.id);
    line(&mut text, 2, "protocol", dialect.protocol.as_str());
    line(&mut text, 2, "url", dialect.base_url.as_deref().unwrap_or("your own"));
    line(&mut text, 2, "key", &key(dialect));
    if let Some(model) = &dialect.access.default_model {
        line(&mut text, 2, "default", model);
    }
    if dialect.unknown {
        line(&mut text, 2, "sends", "no thinking parameters: the server is unknown");
    }
    let base = facts(dialect.rules(None));
    for (label, fact) in base.iter().filter(|(_, fact)| !DEFAULT_FACTS.contains(&fact.as_str())) {
        line(&mut text, 2, label, fact);
    }
    for (patterns, rules) in groups(dialect) {
        line(&mut text, 2, "models", &patterns.join(", "));
        let differing: Vec<_> = facts(rules).into_iter().zip(&base).filter(|(own, base)| own != *base).collect();
        if differing.is_empty() {
            line(&mut text, 4, "", "no differences shown here");
        }
        for ((label, fact), _) in differing {
            line(&mut text, 4, label, &fact);
        }
    }
    text
}

fn key(dialect: &Dialect) -> String {
    let auth = match dialect.access.auth {
        Auth::Bearer => String::new(),
        auth @ (Auth::XApiKey | Auth::XGoogApiKey | Auth::ApiKey) => format!(", as {}", auth.as_str()),
    };
    dialect.api_key_env.as_ref().map_or("none".to_owned(), |name| format!("{name}{auth}"))
}

/// The facts about a set of rules, with fixed labels in a fixed order.
fn facts(rules: &Rules) -> Vec<(&'static str, String)> {
    let Rules { read, echo, bind, ask, .. } = rules;
    vec![
        ("thinking in", thinking_in(read)),
        ("sent back", sent_back(echo)),
        ("in tool loop", duty(echo.loop_duty).to_owned()),
        ("across turns", across_turns(echo)),
        ("filler", filler(echo)),
        ("valid for", valid_for(bind)),
        ("thinking", thinking(ask).to_owned()),
        ("on", assignments(&ask.on, "nothing to send")),
        ("off", off(&ask.off)),
        ("effort", effort(ask)),
        ("budget", budget(ask)),
        ("visible via", assignments(&ask.show, "nothing to send")),
        ("also sends", also_sends(ask)),
        ("rejects", rejects(ask)),
        ("output", output(ask)),
        ("context", ask.context_limit.map_or("unknown".to_owned(), |limit| format!("{limit} tokens"))),
        ("tokenizer", tokenizer(ask)),
    ]
}

fn thinking_in(read: &ReadRules) -> String {
    let mut all = Vec::new();
    if !read.text.is_empty() {
        all.push(format!("the first of {}", read.text.join(", ")));
    }
    match read.details {
        Details::None => (),
        Details::Openrouter => all.push("reasoning_details".to_owned()),
        Details::Litellm => all.push("thinking_blocks".to_owned()),
        Details::Any => all.push("reasoning_details or thinking_blocks".to_owned()),
    }
    if read.content_chunks {
        all.push("parts of the content".to_owned());
    }
    all.extend(read.opaque.iter().map(|field| format!("a seal in {field}")));
    all.extend(read.call_extra.iter().map(|field| format!("a seal on calls in {field}")));
    let tags: Vec<&str> = read.tags.pairs.iter().map(|pair| pair.id.as_str()).collect();
    if !tags.is_empty() {
        let start = match read.tags.start {
            TagStart::Explicit => "",
            TagStart::Prefilled => ", opened by the chat template",
            TagStart::Auto => ", possibly opened by the chat template",
        };
        all.push(format!("tags {}{start}", tags.join(" ")));
    }
    if all.is_empty() { "the protocol's own thinking fields".to_owned() } else { all.join("; ") }
}

fn sent_back(echo: &EchoRules) -> String {
    let field = match &echo.field {
        EchoField::Same => "the field it came in",
        EchoField::AsReceived => "the field, entry or tags it came in",
        EchoField::Named(name) => name,
    };
    let place = match echo.carrier {
        Carrier::None => return "never".to_owned(),
        Carrier::Field => field.to_owned(),
        Carrier::Details => "the array it came in".to_owned(),
        Carrier::ContentTags => "tags in the content".to_owned(),
        Carrier::ContentChunks => "parts of the content".to_owned(),
        Carrier::Block => "blocks".to_owned(),
        Carrier::Item => "items".to_owned(),
        Carrier::Part => "parts, with their seals".to_owned(),
        Carrier::CallExtra => "seals on the tool calls".to_owned(),
        Carrier::FieldsOpaque => format!("{field}, and the seal next to it"),
    };
    let when = if echo.include { "by default" } else { "only if enabled" };
    let sealed = if echo.need_opaque { "; only with a seal" } else { "" };
    let foreign = match echo.foreign {
        Foreign::Drop => "",
        Foreign::AsField => "; thinking from other providers goes in the field",
        Foreign::DummySignature => "; calls from other providers get a dummy seal",
    };
    format!("in {place}, {when}{sealed}{foreign}")
}

fn duty(duty: Duty) -> &'static str {
    match duty {
        Duty::Must => "must be sent back",
        Duty::Should => "should be sent back",
        Duty::Ignored => "need not be sent back",
        Duty::Forbidden => "must not be sent back",
    }
}

fn across_turns(echo: &EchoRules) -> String {
    let duty = duty(echo.turns_duty);
    match echo.turns_if {
        TurnsIf::Always => duty.to_owned(),
        TurnsIf::Tools => format!("{duty} if tools are offered, else ignored"),
        TurnsIf::Flag => format!("{duty} with {}, else ignored", assignments(&echo.flag, "")),
    }
}

fn filler(echo: &EchoRules) -> String {
    let filler = match echo.carrier {
        Carrier::Details => "[]".to_owned(),
        Carrier::Block | Carrier::Item => "an empty block".to_owned(),
        Carrier::None
        | Carrier::Field
        | Carrier::ContentTags
        | Carrier::ContentChunks
        | Carrier::Part
        | Carrier::CallExtra
        | Carrier::FieldsOpaque => format!("{:?}", echo.filler),
    };
    match echo.fill_empty {
        FillEmpty::None => "not needed".to_owned(),
        FillEmpty::WithToolCalls => format!("{filler} in messages with tool calls and no thinking"),
        FillEmpty::All => format!("{filler} in every message without thinking"),
    }
}

fn valid_for(bind: &BindRules) -> String {
    let mut all = vec!["the provider".to_owned()];
    match &bind.model {
        BindModel::None => (),
        BindModel::Same => all.push("the model".to_owned()),
        BindModel::Matrix(name) => all.push(format!("the models of the matrix {name}")),
    }
    if bind.account {
        all.push("the account".to_owned());
    }
    match bind.prefix {
        PrefixCheck::None | PrefixCheck::Record => (),
        PrefixCheck::Error => all.push("the same preceding messages (else refused)".to_owned()),
        PrefixCheck::DropBlock => all.push("the same preceding messages (else dropped)".to_owned()),
    }
    let removal = match bind.removal {
        Removal::Any => "",
        Removal::PrefixOnly => "; only the oldest may be removed",
        Removal::AllOrNone => "; all or none may be removed",
    };
    format!("{}{removal}", all.join(", "))
}

fn thinking(ask: &AskRules) -> &'static str {
    match ask.default {
        AskDefault::On => "on unless disabled",
        AskDefault::Off => "only if enabled",
        AskDefault::Always => "always",
    }
}

fn off(off: &Off) -> String {
    match off {
        Off::Patch(patch) => assignments(patch, "by sending nothing"),
        Off::Unsupported => "cannot be switched off".to_owned(),
    }
}

fn effort(ask: &AskRules) -> String {
    if ask.effort.path.is_empty() {
        return "none".to_owned();
    }
    let map: Vec<String> = ask.effort.map.iter().map(|(level, word)| format!("{level} as {word}")).collect();
    let map = if map.is_empty() { String::new() } else { format!("; {}", map.join(", ")) };
    format!("{}: {}{map}", ask.effort.path, ask.effort.values.join(", "))
}

fn budget(ask: &AskRules) -> String {
    if ask.budget.path.is_empty() {
        return "none".to_owned();
    }
    let range = ask.budget.range.map_or(String::new(), |(least, most)| format!(": {least} to {most}"));
    let pair =
        |a: &str, b: &str| ask.exclusive.iter().any(|(one, two)| (one == a && two == b) || (one == b && two == a));
    let alone = if pair("effort", "budget") { ", not together with effort" } else { "" };
    format!("{}{range}{alone}", ask.budget.path)
}

fn also_sends(ask: &AskRules) -> String {
    let headers = ask.headers.iter().map(|(name, value)| format!("header {name}: {value}"));
    let extra = Some(assignments(&ask.extra, "")).filter(|text| !text.is_empty());
    let all: Vec<String> = extra.into_iter().chain(headers).collect();
    if all.is_empty() { "nothing to send".to_owned() } else { all.join(", ") }
}

fn rejects(ask: &AskRules) -> String {
    let forced = (!ask.forced_tools_ok).then(|| "a forced tool while thinking".to_owned());
    let thinking = ask.forbid_when_on.iter().map(|name| format!("{name} while thinking"));
    let tools = match ask.tools {
        ThinkingWithTools::Ok => None,
        ThinkingWithTools::WithOff => Some("tools while thinking".to_owned()),
        ThinkingWithTools::ResponsesOnly => Some("tools".to_owned()),
    };
    let all: Vec<String> = ask.forbid.iter().cloned().chain(thinking).chain(forced).chain(tools).collect();
    if all.is_empty() { "nothing known".to_owned() } else { all.join(", ") }
}

fn output(ask: &AskRules) -> String {
    let path = if ask.max_tokens.path.is_empty() { "limit unknown" } else { &ask.max_tokens.path };
    ask.max_tokens.default.map_or(path.to_owned(), |limit| format!("{path}: {limit} by default"))
}

fn tokenizer(ask: &AskRules) -> String {
    match ask.tokenizer {
        Tokenizer::O200k | Tokenizer::Cl100k => ask.tokenizer.as_str().to_owned(),
        Tokenizer::None => "estimated".to_owned(),
    }
}

/// A JSON patch written as `a.b=c`.
pub(crate) fn assignments(patch: &Patch, nothing: &str) -> String {
    let mut all = Vec::new();
    flatten("", patch, &mut all);
    if all.is_empty() { nothing.to_owned() } else { all.join(", ") }
}

fn flatten(path: &str, patch: &Patch, all: &mut Vec<String>) {
    for (name, value) in patch {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match value {
            Value::Object(inner) => flatten(&path, inner, all),
            Value::String(word) => all.push(format!("{path}={word}")),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => all.push(format!("{path}={value}")),
        }
    }
}

pub(crate) fn line(text: &mut String, indent: usize, label: &str, fact: &str) {
    let first = format!("{}{label:<width$}", " ".repeat(indent), width = FACT_COLUMN - indent);
    wrap(text, &first, &" ".repeat(FACT_COLUMN), fact);
}

/// Wraps at spaces, and a word too long for a line after one of its dots.
fn wrap(text: &mut String, first: &str, next: &str, fact: &str) {
    let mut current = first.to_owned();
    let mut empty = true;
    for word in fact.split(' ').flat_map(|word| pieces(word, WIDTH - FACT_COLUMN)) {
        let gap = usize::from(!empty && !word.glued);
        if !empty && current.chars().count() + gap + word.text.chars().count() > WIDTH {
            text.push_str(&current);
            text.push('\n');
            current = next.to_owned();
            empty = true;
        }
        if !empty && !word.glued {
            current.push(' ');
        }
        current.push_str(word.text);
        empty = false;
    }
    text.push_str(current.trim_end());
    text.push('\n');
}

struct WordPiece<'a> {
    text: &'a str,
    /// No space before this piece.
    glued: bool,
}

fn pieces(word: &str, most: usize) -> Vec<WordPiece<'_>> {
    if word.chars().count() <= most {
        return vec![WordPiece { text: word, glued: false }];
    }
    word.split_inclusive('.').enumerate().map(|(index, text)| WordPiece { text, glued: index > 0 }).collect()
}

// JSON output, with the keys of the dialect files.

fn as_json(dialect: &Dialect) -> Value {
    let models: Vec<Value> = groups(dialect)
        .into_iter()
        .map(|(patterns, rules)| {
            let mut object = rules_json(rules);
            if let Some(object) = object.as_object_mut() {
                object.insert("match".to_owned(), json!(patterns));
            }
            object
        })
        .collect();
    let mut object = rules_json(dialect.rules(None));
    if let Some(object) = object.as_object_mut() {
        object.insert("id".to_owned(), json!(dialect.id));
        object.insert("protocol".to_owned(), json!(dialect.protocol.as_str()));
        object.insert("base_url".to_owned(), json!(dialect.base_url));
        object.insert("api_key_env".to_owned(), json!(dialect.api_key_env));
        object.insert("auth".to_owned(), json!(dialect.access.auth.as_str()));
        object.insert("headers".to_owned(), json!(dialect.access.headers));
        object
            .insert("region_env".to_owned(), json!(dialect.access.vars_env.get("region").cloned().unwrap_or_default()));
        object.insert("vars_env".to_owned(), json!(dialect.access.vars_env));
        object.insert("path".to_owned(), json!(dialect.access.path));
        object.insert("default_model".to_owned(), json!(dialect.access.default_model));
        object.insert("order".to_owned(), json!(dialect.access.order));
        object.insert("unknown".to_owned(), json!(dialect.unknown));
        object.insert("model".to_owned(), Value::Array(models));
    }
    object
}

fn rules_json(rules: &Rules) -> Value {
    let Rules { read, echo, bind, ask, usage, finish, errors } = rules;
    let tags: Vec<&str> = read.tags.pairs.iter().map(|pair| pair.id.as_str()).collect();
    json!({
        "read": {
            "text": read.text, "details": read.details.as_str(), "opaque": read.opaque, "call_extra": read.call_extra,
            "content_chunks": read.content_chunks, "delta_mode": read.delta_mode.as_str(), "tags": tags,
            "assemble_by": read.assemble_by.as_str(), "final_from": read.final_from.as_str(),
        },
        "echo": echo_json(echo),
        "bind": {
            "model": match &bind.model {
                BindModel::None => "none".to_owned(),
                BindModel::Same => "same".to_owned(),
                BindModel::Matrix(name) => format!("matrix:{name}"),
            },
            "account": bind.account, "prefix": bind.prefix.as_str(), "removal": bind.removal.as_str(),
        },
        "ask": ask_json(ask),
        "usage": { "path": usage.path, "included": usage.included, "stream": usage.stream.as_str() },
        "finish": { "errors": finish.errors, "calls_override": finish.calls_override },
        "errors": errors,
    })
}

fn echo_json(echo: &EchoRules) -> Value {
    json!({
        "include": echo.include, "carrier": echo.carrier.as_str(),
        "field": match &echo.field { EchoField::Same => "same", EchoField::AsReceived => "as_received", EchoField::Named(name) => name },
        "loop": echo.loop_duty.as_str(), "turns": echo.turns_duty.as_str(), "turns_if": echo.turns_if.as_str(),
        "flag": echo.flag, "fill_empty": echo.fill_empty.as_str(), "fill": echo.filler,
        "need_opaque": echo.need_opaque, "ids": echo.ids.as_str(), "call_ids": echo.call_ids.as_str(), "item_text": echo.item_text.as_str(),
        "repeat_before_each_call": echo.repeat_before_each_call, "calls_last": echo.calls_last,
        "empty_content": echo.empty_content.as_str(), "dedupe": echo.dedupe.as_str(),
        "foreign": echo.foreign.as_str(), "dummy": echo.dummy, "dummy_detail": echo.dummy_detail,
    })
}

fn ask_json(ask: &AskRules) -> Value {
    json!({
        "on": ask.on,
        "off": match &ask.off { Off::Patch(patch) => json!(patch), Off::Unsupported => json!("unsupported") },
        "default": ask.default.as_str(),
        "effort": { "path": ask.effort.path, "values": ask.effort.values, "map": ask.effort.map },
        "budget": { "path": ask.budget.path, "range": ask.budget.range, "with": ask.budget.with },
        "exclusive": ask.exclusive, "show": ask.show, "extra": ask.extra, "headers": ask.headers,
        "forbid": ask.forbid, "forbid_when_on": ask.forbid_when_on, "forced_tools_ok": ask.forced_tools_ok, "tools": ask.tools.as_str(),
        "max_tokens": { "path": ask.max_tokens.path, "default": ask.max_tokens.default },
        "context_limit": ask.context_limit, "tokenizer": ask.tokenizer.as_str(),
    })
}
