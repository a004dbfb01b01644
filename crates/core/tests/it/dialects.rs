//! Checks the data files against the master table of the wire formats.

use std::fs;
use std::path::Path;

use aside_core::dialect::{
    BindModel, Carrier, DialectError, DialectSource, Dialects, EFFORT_LEVELS, EchoField, Off, PrefixCheck, Removal,
    Rules, TurnsIf,
};
use aside_core::protocol::Protocol;

fn builtin() -> Dialects {
    Dialects::builtin().expect("valid")
}

fn with(text: &str) -> Result<Dialects, DialectError> {
    Dialects::with_user_files(&[DialectSource { path: "mine.toml", text }])
}

/// How thinking is sent back: `carrier field
/// loop
/// turns if condition`.
fn back(rules: &Rules) -> String {
    let echo = &rules.echo;
    let field = match (&echo.field, echo.carrier) {
        (EchoField::Named(name), Carrier::Field | Carrier::FieldsOpaque) => format!(" {name}"),
        (EchoField::Same, Carrier::Field) => " same".to_owned(),
        (EchoField::AsReceived, Carrier::Field) => " as received".to_owned(),
        _ => String::new(),
    };
    let condition = match echo.turns_if {
        TurnsIf::Always => String::new(),
        TurnsIf::Tools => " if tools".to_owned(),
        TurnsIf::Flag => format!(" if {}", serde_json::Value::from(echo.flag.clone())),
    };
    let (carrier, inner, turns) = (echo.carrier.as_str(), echo.loop_duty.as_str(), echo.turns_duty.as_str());
    format!("{carrier}{field} | {inner} | {turns}{condition}")
}

fn effort(rules: &Rules) -> String {
    let effort = &rules.ask.effort;
    if effort.path.is_empty() { "-".to_owned() } else { format!("{} {}", effort.path, effort.values.join(" ")) }
}

fn off(rules: &Rules) -> String {
    match &rules.ask.off {
        Off::Patch(patch) => serde_json::Value::from(patch.clone()).to_string(),
        Off::Unsupported => "unsupported".to_owned(),
    }
}

#[test]
fn the_master_table_is_in_the_data() {
    let dialects = builtin();
    #[rustfmt::skip]
    let cases = [
        // dialect, model, carrier and field | loop | turns, effort, off
        ("openai", "gpt-5.6-sol",              "item | must | should",                     "reasoning.effort low medium high xhigh max", r#"{"reasoning":{"effort":"none"}}"#),
        ("openai", "gpt-5.5-pro",              "item | must | should",                     "reasoning.effort medium high xhigh",         "unsupported"),
        ("openai", "gpt-5.4",                  "item | must | should",                     "reasoning.effort low medium high xhigh",     r#"{"reasoning":{"effort":"none"}}"#),
        ("openai", "gpt-5.3-chat-latest",      "item | must | should",                     "reasoning.effort medium",                    "unsupported"),
        ("openai", "gpt-5.2-codex",            "item | must | should",                     "reasoning.effort low medium high xhigh",     "unsupported"),
        ("openai", "gpt-5.1-codex-max",        "item | must | should",                     "reasoning.effort low medium high xhigh",     "unsupported"),
        ("openai", "gpt-5.1",                  "item | must | should",                     "reasoning.effort low medium high",           r#"{"reasoning":{"effort":"none"}}"#),
        ("openai", "gpt-5-chat-latest",        "item | must | should",                     "-",                                          "{}"),
        ("openai", "gpt-5-pro",                "item | must | should",                     "reasoning.effort high",                      "unsupported"),
        ("openai", "gpt-5-mini-2025-08-07",    "item | must | should",                     "reasoning.effort minimal low medium high",   "unsupported"),
        ("openai", "o4-mini",                  "item | must | should",                     "reasoning.effort low medium high",           "unsupported"),
        ("openai", "gpt-6-astra",              "item | must | should",                     "reasoning.effort low medium high xhigh max", "unsupported"),
        ("openai", "gpt-4.1",                  "item | must | should",                     "-",                                          "{}"),
        ("openai-chat", "gpt-5",               "none | ignored | ignored",                 "reasoning_effort minimal low medium high",   "unsupported"),
        ("azure", "gpt-5.4",                   "none | ignored | ignored",                 "reasoning_effort low medium high xhigh",     r#"{"reasoning_effort":"none"}"#),
        ("azure-responses", "o3",              "item | must | should",                     "reasoning.effort low medium high",           "unsupported"),
        ("xai-responses", "grok-4.5",          "item | should | should",                   "reasoning.effort low medium high",           "unsupported"),
        ("xai", "grok-3-mini",                 "none | ignored | ignored",                 "reasoning_effort low high",                  "unsupported"),
        ("xai", "grok-4.3",                    "none | ignored | ignored",                 "reasoning_effort low medium high",           r#"{"reasoning_effort":"none"}"#),
        ("xai", "grok-4.6",                    "none | ignored | ignored",                 "reasoning_effort low medium high xhigh",     "unsupported"),
        ("xai", "grok-4-0709",                 "none | ignored | ignored",                 "reasoning_effort low medium high",           r#"{"reasoning_effort":"none"}"#),
        ("xai", "grok-build-0.1",              "none | ignored | ignored",                 "-",                                          "unsupported"),
        ("deepseek", "deepseek-v4-pro",        "field reasoning_content | must | must if tools", "reasoning_effort high max",        r#"{"thinking":{"type":"disabled"}}"#),
        ("deepseek", "deepseek-v3.2",          "field reasoning_content | must | forbidden", "-",                                        r#"{"thinking":{"type":"disabled"}}"#),
        ("deepseek", "deepseek-reasoner",      "field reasoning_content | must | forbidden", "-",                                        "unsupported"),
        ("deepseek", "deepseek-r1-0528",       "none | ignored | forbidden",               "-",                                          "unsupported"),
        ("deepseek-responses", "deepseek-v4-pro", "item | must | must",                    "reasoning.effort high max",              r#"{"reasoning":{"effort":"none"}}"#),
        ("deepseek-anthropic", "deepseek-v4-pro", "block | must | must",                   "output_config.effort high max",          r#"{"thinking":{"type":"disabled"}}"#),
        ("kimi", "kimi-k2.5",                  "field reasoning_content | must | ignored", "-",                                          r#"{"thinking":{"type":"disabled"}}"#),
        ("kimi", "kimi-k2.6",                  r#"field reasoning_content | must | should if {"thinking":{"keep":"all"}}"#, "-",         r#"{"thinking":{"type":"disabled"}}"#),
        ("kimi", "kimi-k2-thinking",           "field reasoning_content | must | ignored", "-",                                          "unsupported"),
        ("kimi", "kimi-k3",                    r#"field reasoning_content | must | should if {"thinking":{"keep":"all"}}"#, "reasoning_effort low high max", "unsupported"),
        ("minimax", "MiniMax-M2",              "details | should | should",                "-",                                          "unsupported"),
        ("minimax", "MiniMax-M3",              "details | should | should",                "-",                                          r#"{"thinking":{"type":"disabled"}}"#),
        ("minimax-tags", "MiniMax-M2",         "content_tags | should | should",           "-",                                          "unsupported"),
        ("zai", "glm-4.6",                     r#"field reasoning_content | should | should if {"thinking":{"clear_thinking":false}}"#, "-", r#"{"thinking":{"type":"disabled"}}"#),
        ("zai", "glm-5.2",                     r#"field reasoning_content | should | should if {"thinking":{"clear_thinking":false}}"#, "reasoning_effort high max", r#"{"thinking":{"type":"disabled"}}"#),
        ("zai", "glm-5.3",                     r#"field reasoning_content | should | should if {"thinking":{"clear_thinking":false}}"#, "reasoning_effort low high max", "unsupported"),
        ("qwen", "qwen-plus",                  "field reasoning_content | should | ignored", "-",                                        r#"{"enable_thinking":false}"#),
        ("qwen", "qwen3.7-max",                r#"field reasoning_content | should | should if {"preserve_thinking":true}"#, "-",        r#"{"enable_thinking":false}"#),
        ("qwen", "qwen3.8-max",                r#"field reasoning_content | should | should if {"preserve_thinking":true}"#, "reasoning_effort low medium xhigh", r#"{"reasoning_effort":"none"}"#),
        ("qwen", "qwen3-235b-a22b-thinking-2507", "field reasoning_content | should | ignored", "-",                                     "unsupported"),
        ("ark", "doubao-seed-1-8",             "field reasoning_content | should | should", "reasoning_effort minimal low medium high xhigh max", r#"{"thinking":{"type":"disabled"}}"#),
        ("siliconflow", "deepseek-ai/DeepSeek-V3.2", "none | ignored | ignored",           "-",                                          r#"{"enable_thinking":false}"#),
        ("qianfan", "ernie-x1",                "field reasoning_content | should | ignored", "-",                                        r#"{"enable_thinking":false}"#),
        ("stepfun", "step-3",                  "field same | should | ignored",            "reasoning_effort low medium high",           "{}"),
        ("openrouter", "anthropic/claude-sonnet-5", "details | must | should",             "reasoning.effort minimal low medium high xhigh max", r#"{"reasoning":{"effort":"none"}}"#),
        ("openrouter-responses", "openai/gpt-5", "item | must | should",                   "reasoning.effort minimal low medium high xhigh max", r#"{"reasoning":{"effort":"none"}}"#),
        ("vllm", "Qwen/Qwen3-4B",              "field reasoning | should | ignored",       "reasoning_effort minimal low medium high xhigh max", r#"{"chat_template_kwargs":{"enable_thinking":false,"thinking":false}}"#),
        ("vllm", "openai/gpt-oss-20b",         "field reasoning | should | ignored",       "reasoning_effort low medium high",           "unsupported"),
        ("sglang", "Qwen/Qwen3-4B",            "field reasoning_content | should | ignored", "reasoning_effort minimal low medium high xhigh max", r#"{"reasoning_effort":"none"}"#),
        ("llamacpp", "qwen3",                  "field reasoning_content | should | ignored", "reasoning_effort minimal low medium high xhigh max",         r#"{"reasoning_effort":"none"}"#),
        ("lmstudio", "qwen3",                  "field same | should | ignored",            "reasoning_effort low medium high xhigh",     r#"{"reasoning_effort":"none"}"#),
        ("groq", "openai/gpt-oss-120b",        "field reasoning | should | ignored",       "reasoning_effort low medium high",           "unsupported"),
        ("groq", "qwen/qwen3-32b",             "field reasoning | should | ignored",       "-",                                          r#"{"reasoning_effort":"none"}"#),
        ("cerebras", "gpt-oss-120b",           r#"field reasoning | should | should if {"clear_thinking":false}"#, "reasoning_effort low medium high", "unsupported"),
        ("cerebras", "zai-glm-4.6",            r#"content_tags | should | should if {"clear_thinking":false}"#, "-",                     r#"{"disable_reasoning":true}"#),
        ("together", "zai-org/GLM-4.6",        "field same | should | ignored",            "reasoning_effort low medium high",           r#"{"reasoning":{"enabled":false}}"#),
        ("fireworks", "deepseek-v4-pro",       r#"field reasoning_content | should | should if {"reasoning_history":"preserved"}"#, "reasoning_effort low medium high xhigh", r#"{"reasoning_effort":"none"}"#),
        ("mistral", "mistral-small-2603",      "content_chunks | should | should",         "reasoning_effort high",                      r#"{"reasoning_effort":"none"}"#),
        ("mistral", "magistral-medium-latest", "content_chunks | should | should",         "-",                                          "unsupported"),
        ("copilot", "gemini-3-pro",            "fields_opaque reasoning_text | must | should", "reasoning_effort low medium high",       "{}"),
        ("copilot-responses", "gpt-5.3-codex", "item | must | should",                     "reasoning.effort low medium high xhigh",     r#"{"reasoning":{"effort":"none"}}"#),
        ("gemini-openai", "gemini-3-pro",      "call_extra | must | should",               "reasoning_effort minimal low medium high",   "unsupported"),
        ("gemini-openai", "gemini-2.5-flash",  "call_extra | should | should",             "reasoning_effort minimal low medium high",   r#"{"reasoning_effort":"none"}"#),
        ("litellm", "claude",                  "details | must | should",                  "reasoning_effort minimal low medium high xhigh",   r#"{"reasoning_effort":"none"}"#),
        ("ollama-openai", "qwen3:8b",          "field reasoning | should | ignored",       "reasoning_effort low medium high max",       r#"{"reasoning_effort":"none"}"#),
        ("ollama-responses", "qwen3:8b",       "item | should | ignored",                  "reasoning.effort low medium high max",       r#"{"reasoning":{"effort":"none"}}"#),
        ("ollama-anthropic", "qwen3:8b",       "block | should | ignored",                 "output_config.effort low medium high max",                                          r#"{"thinking":{"type":"disabled"}}"#),
        ("vllm-responses", "gpt-oss",          "item | should | ignored",                  "reasoning.effort minimal low medium high xhigh max",           r#"{"reasoning":{"effort":"none"}}"#),
        ("lmstudio-responses", "gpt-oss",      "item | should | ignored",                  "reasoning.effort low medium high xhigh",     r#"{"reasoning":{"effort":"none"}}"#),
        ("ollama", "qwen3:8b",                 "field thinking | should | ignored",        "think low medium high max",                  r#"{"think":false}"#),
        ("anthropic", "claude-sonnet-4-5",     "block | must | should",                    "-",                                          "{}"),
        ("anthropic", "claude-opus-4-5",       "block | must | should",                    "output_config.effort low medium high",       "{}"),
        ("anthropic", "claude-opus-4-6",       "block | must | should",                    "output_config.effort low medium high max",   "{}"),
        ("anthropic", "claude-opus-4-8",       "block | must | should",                    "output_config.effort low medium high xhigh max", "{}"),
        ("anthropic", "claude-sonnet-5",       "block | must | should",                    "output_config.effort low medium high xhigh max", r#"{"thinking":{"type":"disabled"}}"#),
        ("anthropic", "claude-haiku-5-5",      "block | must | should",                    "output_config.effort low medium high xhigh max", r#"{"thinking":{"type":"disabled"}}"#),
        ("anthropic", "claude-sonnet-5-5",     "block | must | should",                    "output_config.effort low medium high xhigh max", r#"{"thinking":{"type":"between_tools"}}"#),
        ("anthropic", "claude-opus-5-5",       "block | must | should",                    "output_config.effort low medium high xhigh max", "unsupported"),
        ("anthropic", "claude-fable-5-1",      "block | must | should",                    "output_config.effort low medium high xhigh max", "unsupported"),
        ("kimi-anthropic", "kimi-k3",          "block | must | should",                    "output_config.effort low high max", r#"{"thinking":{"type":"disabled"}}"#),
        ("minimax-anthropic", "MiniMax-M3",    "block | should | should",                  "-",                                          "{}"),
        ("zai-anthropic", "glm-5.2",           "block | must | should",                    "output_config.effort high max",              r#"{"thinking":{"type":"disabled"}}"#),
        ("gemini", "gemini-3-pro-preview",     "part | must | should",                     "generationConfig.thinkingConfig.thinkingLevel low high", "unsupported"),
        ("gemini", "gemini-3.1-pro-preview",   "part | must | should",                     "generationConfig.thinkingConfig.thinkingLevel low medium high", "unsupported"),
        ("gemini", "gemini-3-flash-preview",   "part | must | should",                     "generationConfig.thinkingConfig.thinkingLevel minimal low medium high", "unsupported"),
        ("gemini", "gemini-3.7-flash",         "part | must | should",                     "generationConfig.thinkingConfig.thinkingLevel low medium high", "unsupported"),
        ("vertex", "gemini-3-pro-preview",     "part | must | should",                     "generationConfig.thinkingConfig.thinkingLevel low high", "unsupported"),
        ("vertex-anthropic", "claude-sonnet-4-5@20250929", "block | must | should",         "-",                                          "{}"),
        ("gemini", "gemini-2.5-pro",           "part | should | should",                   "-",                                          "unsupported"),
        ("gemini", "gemini-2.5-flash",         "part | should | should",                   "-",                                          r#"{"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}}"#),
        ("azure-anthropic", "some-model",       "block | must | should",                    "output_config.effort low medium high xhigh max", r#"{"thinking":{"type":"disabled"}}"#),
        ("baseten", "some-model",               "field same | should | ignored",            "reasoning_effort low medium high",           r#"{"chat_template_args":{"enable_thinking":false}}"#),
        ("bedrock-anthropic", "some-model",     "block | must | should",                    "output_config.effort low medium high xhigh max", r#"{"thinking":{"type":"disabled"}}"#),
        ("bedrock-chat", "some-model",          "field reasoning | should | ignored",       "reasoning_effort low medium high",           "{}"),
        ("bedrock-responses", "some-model",     "item | must | should",                     "reasoning.effort low medium high",           r#"{"reasoning":{"effort":"none"}}"#),
        ("chutes", "some-model",                "field reasoning_content | should | ignored", "-",                                          "{}"),
        ("cloudflare", "some-model",            "field reasoning_content | should | ignored", "-",                                          "{}"),
        ("codex", "some-model",                 "item | must | should",                     "reasoning.effort low medium high",           r#"{"reasoning":{"effort":"none"}}"#),
        ("copilot-anthropic", "some-model",     "block | must | should",                    "output_config.effort low medium high xhigh max", r#"{"thinking":{"type":"disabled"}}"#),
        ("databricks", "some-model",            "none | ignored | ignored",                 "reasoning_effort low medium high",           "{}"),
        ("deepinfra", "some-model",             "field reasoning_content | should | ignored", "reasoning_effort low medium high xhigh",     r#"{"reasoning_effort":"none"}"#),
        ("huggingface", "some-model",           "field same | should | ignored",            "reasoning_effort minimal low medium high xhigh", r#"{"reasoning_effort":"none"}"#),
        ("inception", "some-model",             "none | ignored | ignored",                 "reasoning_effort low medium high",           "unsupported"),
        ("kimi-coding", "some-model",           "block | must | should",                    "output_config.effort low high max",          r#"{"thinking":{"type":"disabled"}}"#),
        ("llamacpp-anthropic", "some-model",    "block | should | ignored",                 "-",                                          r#"{"thinking":{"type":"disabled"}}"#),
        ("llamacpp-responses", "some-model",    "item | should | ignored",                  "reasoning.effort low medium high",           r#"{"reasoning":{"effort":"none"}}"#),
        ("lmstudio-anthropic", "some-model",    "block | should | ignored",                 "-",                                          "{}"),
        ("meta", "some-model",                  "item | should | should",                   "reasoning.effort minimal low medium high xhigh", "unsupported"),
        ("nebius", "some-model",                "field reasoning_content | should | ignored", "reasoning_effort low medium high",           "{}"),
        ("novita", "some-model",                "field same | should | ignored",            "-",                                          r#"{"enable_thinking":false}"#),
        ("nvidia", "some-model",                "field reasoning_content | should | ignored", "reasoning_effort low medium high",           r#"{"chat_template_kwargs":{"enable_thinking":false}}"#),
        ("ollama-cloud", "some-model",          "field thinking | should | ignored",        "think low medium high max",                  r#"{"think":false}"#),
        ("opencode-zen", "some-model",          "field reasoning_content | should | ignored", "reasoning_effort low medium high",           "{}"),
        ("perplexity", "some-model",            "none | ignored | ignored",                 "reasoning_effort minimal low medium high",   "unsupported"),
        ("poe", "some-model",                   "none | ignored | ignored",                 "-",                                          "{}"),
        ("qwen-anthropic", "some-model",        "block | should | should",                  "-",                                          r#"{"thinking":{"type":"disabled"}}"#),
        ("qwen-plan", "some-model",             "field reasoning_content | should | ignored", "-",                                          r#"{"enable_thinking":false}"#),
        ("qwen-responses", "some-model",        "item | should | should",                   "reasoning.effort minimal low medium high",   r#"{"reasoning":{"effort":"none"}}"#),
        ("sglang-anthropic", "some-model",      "block | should | ignored",                 "-",                                          r#"{"thinking":{"type":"disabled"}}"#),
        ("sglang-responses", "some-model",      "item | should | ignored",                  "reasoning.effort low medium high",           r#"{"reasoning":{"effort":"none"}}"#),
        ("snowflake", "some-model",             "details | should | ignored",               "reasoning.effort low medium high",           "{}"),
        ("tencent", "some-model",               "none | ignored | ignored",                 "reasoning_effort low medium high",           "{}"),
        ("venice", "some-model",                "field reasoning_content | should | ignored", "reasoning.effort low medium high",           r#"{"venice_parameters":{"disable_thinking":true}}"#),
        ("vercel", "some-model",                "details | must | should",                  "reasoning.effort minimal low medium high xhigh", r#"{"reasoning":{"effort":"none"}}"#),
        ("vllm-anthropic", "some-model",        "block | should | ignored",                 "output_config.effort low medium high xhigh max", r#"{"thinking":{"type":"disabled"}}"#),
        ("xiaomi", "some-model",                "field reasoning_content | should | ignored", "-",                                          r#"{"thinking":{"type":"disabled"}}"#),
        ("zai-coding", "some-model",            r#"field reasoning_content | should | should if {"thinking":{"clear_thinking":false}}"#, "-",                                          r#"{"thinking":{"type":"disabled"}}"#),
        ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "block | must | should", "-",                                        "{}"),
        ("bedrock", "us.anthropic.claude-opus-5-5-v1:0", "block | must | should",          "additionalModelRequestFields.output_config.effort low medium high xhigh max", "unsupported"),
        ("bedrock", "openai.gpt-oss-120b-1:0", "none | forbidden | forbidden",             "additionalModelRequestFields.reasoning_effort low medium high", "unsupported"),
        ("bedrock", "openai.gpt-5.5",          "block | should | should",                  "additionalModelRequestFields.reasoning_effort low medium high", "unsupported"),
        ("bedrock", "us.deepseek.r1-v1:0",     "none | forbidden | forbidden",             "-",                                          "unsupported"),
        ("cohere", "command-a-reasoning-08-2025", "content_chunks | should | should",      "-",                                          r#"{"thinking":{"type":"disabled"}}"#),
        ("generic", "nobody-knows",            "field as received | should | ignored",     "reasoning_effort low medium high",           "{}"),
    ];
    for (id, model, expected_back, expected_effort, expected_off) in cases {
        let rules = dialects.get(id).unwrap_or_else(|| panic!("no dialect {id}")).rules(Some(model));
        assert_eq!(back(rules), expected_back, "{id}/{model}: what goes back");
        assert_eq!(effort(rules), expected_effort, "{id}/{model}: effort");
        assert_eq!(off(rules), expected_off, "{id}/{model}: off");
    }
    let untested: Vec<&str> =
        dialects.iter().map(|d| d.id.as_str()).filter(|id| !cases.iter().any(|case| case.0 == *id)).collect();
    assert!(untested.is_empty(), "no row for {untested:?}");
}

#[test]
fn the_special_rules_are_in_the_data() {
    let dialects = builtin();
    let rules = |id: &str, model: &str| dialects.get(id).expect(id).rules(Some(model));

    let responses = rules("deepseek-responses", "deepseek-v4-pro");
    assert!(responses.echo.repeat_before_each_call && responses.echo.calls_last && !responses.echo.need_opaque);
    assert_eq!(rules("copilot-responses", "gpt-5.4").echo.ids.as_str(), "omit");
    assert_eq!(rules("kimi", "kimi-k3").echo.empty_content.as_str(), "omit");
    assert_eq!(rules("deepseek", "deepseek-v4-pro").echo.fill_empty.as_str(), "all");
    assert_eq!(rules("deepseek", "deepseek-v4-pro").bind.removal, Removal::AllOrNone);
    assert_eq!(rules("openrouter", "x").echo.dedupe.as_str(), "openrouter");
    assert_eq!(rules("gemini", "gemini-3-pro").echo.dummy, "skip_thought_signature_validator");
    assert_eq!(rules("zai", "glm-5.2").ask.effort.map["xhigh"], "max");
    assert!(rules("openai", "gpt-5").bind.account && rules("openai", "gpt-5").echo.need_opaque);
    assert_eq!(rules("openai", "gpt-5.4").ask.on["reasoning"]["effort"], "medium");
    assert_eq!(rules("openai", "gpt-5").ask.extra["include"][0], "reasoning.encrypted_content");

    let bound = rules("anthropic", "claude-opus-5-5");
    assert_eq!((bound.bind.prefix, bound.ask.forced_tools_ok), (PrefixCheck::DropBlock, false));
    assert_eq!(bound.ask.headers["anthropic-beta"], "thinking-binding-controls-2026-08-01");
    assert_eq!(bound.bind.model, BindModel::Matrix("claude".to_owned()));
    let manual = rules("anthropic", "claude-3-7-sonnet-20250219");
    assert_eq!(
        (manual.ask.budget.path.as_str(), &manual.ask.on["thinking"]["type"]),
        ("thinking.budget_tokens", &"enabled".into())
    );
    assert_eq!(rules("siliconflow", "x").ask.budget.range, Some((128, 32768)));
}

#[test]
fn known_models_send_their_thinking_back_without_a_setting_where_it_helps() {
    let dialects = builtin();
    for dialect in dialects.iter().filter(|dialect| dialect.id != "generic") {
        for (model, rules) in dialect.models().chain([("any", dialect.rules(None))]) {
            let wanted =
                ["must", "should"].contains(&rules.echo.loop_duty.as_str()) && rules.echo.carrier != Carrier::None;
            let thinks = rules.ask.default.as_str() != "off" || !rules.ask.on.is_empty();
            assert!(rules.echo.include || !(wanted && thinks), "{}/{model} profits but does not include", dialect.id);
        }
    }
    assert!(!dialects.get("generic").expect("generic").rules(None).echo.include, "an unknown server may refuse fields");
}

#[test]
fn rules_do_not_contradict_themselves() {
    for dialect in builtin().iter() {
        for (model, rules) in dialect.models().chain([("any", dialect.rules(None))]) {
            let name = format!("{}/{model}", dialect.id);
            let ask = &rules.ask;
            assert!(
                ask.default.as_str() != "always" || ask.off == Off::Unsupported,
                "{name} always thinks, yet has a switch"
            );
            assert!(ask.effort.path.is_empty() == ask.effort.values.is_empty(), "{name}: a path without levels");
            assert!(
                ask.effort.map.values().all(|word| ask.effort.values.contains(word)),
                "{name}: maps to a level not taken"
            );
            assert!(ask.effort.values.iter().all(|level| EFFORT_LEVELS.contains(&level.as_str())), "{name}");
            assert!(!ask.max_tokens.path.is_empty(), "{name} has no field for the output limit");
            if rules.echo.carrier == Carrier::FieldsOpaque {
                assert!(!rules.read.opaque.is_empty(), "{name} gives back a seal it does not read");
            }
            if rules.echo.carrier == Carrier::CallExtra {
                assert!(!rules.read.call_extra.is_empty(), "{name} gives back a seal it does not read");
            }
            if rules.echo.carrier == Carrier::ContentTags {
                assert!(!rules.read.tags.pairs.is_empty(), "{name} writes tags it does not know");
            }
        }
    }
}

#[test]
fn every_request_rule_has_its_evidence() {
    let marks = ["[S]", "[D]", "[C]", "[I]", "[K]", "[U]", "recorded", "ours"];
    let marked = |text: &str| marks.iter().any(|mark| text.contains(mark));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dialects");
    for entry in fs::read_dir(folder).expect("dialects").map(|entry| entry.expect("entry").path()) {
        let text = fs::read_to_string(&entry).expect("text");
        for table in text.split("\n[") {
            match table.split(']').next() {
                Some("echo" | "bind" | "ask") => {
                    let unmarked = table.lines().find(|line| line.contains(" = ") && !marked(line));
                    assert_eq!(unmarked, None, "{}: no evidence", entry.display());
                }
                // A mark on a model's pattern applies to its whole table.
                Some("[model") if ["\necho.", "\nbind.", "\nask."].iter().any(|key| table.contains(key)) => {
                    assert!(marked(table), "{}: no evidence in\n[{table}", entry.display())
                }
                _ => (),
            }
        }
    }
}

#[test]
fn a_model_reads_thinking_of_the_models_its_matrix_lists() {
    let dialects = builtin();
    #[rustfmt::skip]
    let cases = [
        // matrix, reader, producer
        ("claude", "claude-opus-5-5",                 "claude-opus-5-5",                  true),
        ("claude", "claude-opus-5-5",                 "claude-opus-5",                    true),
        ("claude", "claude-opus-5-5",                 "claude-sonnet-5-5",                true),
        ("claude", "claude-opus-5-5",                 "claude-fable-5-1",                 false),
        ("claude", "claude-fable-5-1",                "claude-mythos-5-1",                true),
        ("claude", "claude-fable-5-1",                "claude-opus-5-5",                  true),
        ("claude", "claude-fable-5-1",                "claude-sonnet-5-5",                false),
        ("claude", "claude-sonnet-5-5",               "claude-sonnet-5",                  true),
        ("claude", "claude-sonnet-5-5",               "claude-opus-4-8",                  true),
        ("claude", "claude-sonnet-5-5",               "claude-opus-5",                    false),
        ("claude", "claude-haiku-5-5",                "claude-haiku-4-5",                 false),
        ("claude", "claude-sonnet-5",                 "claude-haiku-5-5",                 true),
        ("claude", "claude-opus-5",                   "claude-opus-5-5",                  false),
        ("claude", "claude-opus-4-8",                 "claude-opus-5-20260601",           true),
        ("claude", "claude-sonnet-4-5-20250929",      "claude-3-7-sonnet-20250219",       true),
        ("claude", "claude-opus-5-5-20260901",        "claude-opus-5-5",                  true),
        ("claude", "gpt-5",                           "claude-opus-5",                    false),
        ("claude-bedrock", "us.anthropic.claude-opus-5-5-v1:0", "us.anthropic.claude-sonnet-5-5-v1:0", false),
        ("claude-bedrock", "us.anthropic.claude-opus-5-5-v1:0", "anthropic.claude-opus-5-v1:0",        true),
        ("no such matrix", "a",                       "A",                                true),
        ("no such matrix", "a",                       "b",                                false),
    ];
    for (matrix, reader, producer, expected) in cases {
        assert_eq!(dialects.can_read(matrix, reader, producer), expected, "{matrix}: {reader} reads {producer}");
    }
}

#[test]
fn users_may_add_matrices_and_errors() {
    let dialects = Dialects::with_user_files(&[
        DialectSource { path: "x/matrix.toml", text: "[[matrix]]\nname = \"acme\"\n[[matrix.reader]]\nmatch = \"b*\"\nreads = [\"a*\"]\n" },
        DialectSource { path: "x/errors.toml", text: "[[error]]\nid = \"odd\"\nmatch = [\"Odd Thought\"]\nstatus = [418]\nclass = \"altered\"\nrepair = \"strip_turn\"\n" },
        DialectSource { path: "x/acme.toml", text: "id = \"acme\"\nprotocol = \"anthropic\"\nerrors = [\"odd\"]\n[bind]\nmodel = \"matrix:acme\"\n" },
    ])
    .expect("valid");
    assert!(dialects.can_read("acme", "b1", "a1") && !dialects.can_read("acme", "a1", "b1"));
    assert_eq!(dialects.catalogue()[0].id, "odd", "a user's row is asked first");
    assert_eq!(dialects.get("acme").expect("new").rules(None).errors, ["odd"]);
}

#[test]
fn an_error_message_finds_its_catalogue_row() {
    let dialects = builtin();
    #[rustfmt::skip]
    let cases = [
        ("prefix_changed",        "prefix",      "drop_block",         "messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set …"),
        ("bad_signature",         "foreign",     "strip_foreign",      "messages.1.content.0: Invalid `signature` in `thinking` block"),
        ("bad_signature",         "foreign",     "strip_foreign",      "Provider returned error: invalid signature in thinking block"),
        ("blocks_modified",       "altered",     "strip_turn",         "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were"),
        ("thinking_expected",     "missing",     "off_for_turn",       "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, …"),
        ("thinking_mode",         "config",      "switch_mode",        "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" …"),
        ("thinking_mode",         "config",      "switch_mode",        "adaptive thinking is not supported on this model"),
        ("binding_header",        "config",      "binding_header",     "thinking.adaptive.block_binding: Extra inputs are not permitted"),
        ("orphan_item",           "orphan",      "drop_orphan",        "Item 'rs_1' of type 'reasoning' was provided without its required following item."),
        ("missing_item",          "missing",     "drop_follower_ids",  "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'."),
        ("bad_encrypted",         "foreign",     "strip_items",        "The encrypted content gAAA could not be verified. Reason: Encrypted content could not be decrypted or parsed."),
        ("not_persisted",         "state",       "full_items",         "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."),
        ("duplicate_item",        "duplicate",   "dedupe",             "Duplicate item found with id rs_1"),
        ("passed_back",           "missing",     "fill_all",           "The `reasoning_content` in the thinking mode must be passed back to the API."),
        ("passed_back",           "missing",     "fill_all",           "The `content[].thinking` in the thinking mode must be passed back to the API."),
        ("blocks_mismatch",       "altered",     "drop_older",         "When providing `thinking` blocks, the blocks must match the parameters during the original request."),
        ("switch_and_effort",     "config",      "omit_parameter",     "cannot specify both 'thinking' and 'reasoning_effort'"),
        ("missing_field",         "missing",     "fill_loop",          "Missing `reasoning_content` field in the assistant message at message index 3"),
        ("missing_with_calls",    "missing",     "fill_calls",         "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"),
        ("missing_signature",     "missing",     "dummy_signature",    "Function call is missing a thought_signature in functionCall parts."),
        ("bad_thought_signature", "foreign",     "dummy_everywhere",   "Unable to submit request because Thought signature is not valid.."),
        ("effort",                "config",      "nearest_effort",     "This model does not support 'reasoning_effort' value 'none'"),
        ("effort",                "config",      "nearest_effort",     "output_config.effort: Input should be 'low', 'medium' or 'high'"),
        ("effort_parameter",      "config",      "drop_effort",        "Model grok-4 does not support parameter reasoningEffort."),
        ("not_taken_back",        "shape",       "drop_field",         "The reasoning_content is an intermediate result for display purposes only and will not be included in the context for inference."),
        ("budget_range",          "config",      "drop_budget",        "The thinking budget 99999 is invalid. Please choose a value between 128 and 32768."),
        ("budget_limit",          "config",      "drop_budget",        "`max_tokens` must be greater than `thinking.budget_tokens`."),
        ("empty_content",         "shape",       "omit_empty_content", "Invalid request: text content is empty"),
        ("forced_tool",           "forced_tool", "tool_choice_auto",   "Thinking may not be enabled when tool_choice forces tool use."),
        ("forced_tool",           "forced_tool", "tool_choice_auto",   "Thinking mode does not support this tool_choice"),
        ("forced_tool",           "forced_tool", "tool_choice_auto",   "The tool_choice parameter does not support being set to required or object in thinking mode"),
        ("long_id",               "shape",       "omit_ids",           "Invalid 'input[3].id': string too long (string_above_max_length)"),
        ("sampling",              "config",      "drop_parameters",    "Unsupported parameter: 'temperature' is not supported with this model."),
        ("thinking_while_off",    "config",      "strip_turn",         "When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`."),
        ("cannot_think",          "config",      "plain_request",      "\"llama3\" does not support thinking"),
        ("always_thinks",         "config",      "omit_off",           "Reasoning is mandatory for this endpoint and cannot be disabled."),
        ("always_thinks",         "config",      "omit_off",           "Unsupported thinking type for the current model: disabled"),
        ("tools_need_no_effort",  "config",      "effort_none",        "Function tools with reasoning_effort are not supported for gpt-9 in /v1/chat/completions."),
        ("parameter_moved",       "config",      "move_parameter",     "Unsupported parameter: 'reasoning_effort'. In the Responses API, this parameter has moved to 'reasoning.effort'."),
        ("summary_needs_verification", "config", "omit_parameter",     "Your organization must be verified to generate reasoning summaries."),
        ("reasoning_object",      "config",      "omit_parameter",     "Unsupported parameter: 'reasoning.effort' is not supported with this model."),
        ("include_refused",       "config",      "omit_parameter",     "Encrypted content is not supported with this model."),
        ("thinking_not_first",    "altered",     "thinking_first",     "messages.5.content.0: If an assistant message contains any thinking blocks, the first block must be `thinking` or `redacted_thinking`."),
        ("thinking_key",          "shape",       "add_member",         "messages.3.content.1.thinking.thinking: Field required"),
        ("summary_key",           "shape",       "add_member",         "Missing required parameter: 'input[7].summary'."),
        ("item_content",          "shape",       "omit_member",        "Invalid 'input[3].content': array too long. Expected an array with maximum length 0, but got an array with length 1 instead."),
        ("thinking_kind",         "shape",       "strip_field",        "messages[1]: unknown variant `thinking`, expected one of `text`, `image_url`"),
        ("emptied_message",       "shape",       "drop_emptied",       "messages.9: all messages must have non-empty content except for the optional final assistant message"),
        ("prefill",               "shape",       "drop_emptied",       "This model does not support assistant message prefill."),
        ("tools_and_thinking",    "forced_tool", "tool_choice_auto",   "reasoning models take no tool_choice"),
        ("bad_redacted",          "foreign",     "drop_hidden",        "messages.1.content.0: Invalid `data` in `redacted_thinking` block"),
        ("no_signature",          "foreign",     "drop_unsealed",      "messages.1.content.0.thinking.signature: Field required"),
        ("seal_alphabet",         "foreign",     "standard_base64",    "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed"),
        ("encrypted_refused",     "shape",       "omit_member",        "Encrypted content is not supported."),
        ("tool_choice_refused",   "forced_tool", "drop_tool_choice",   "deepseek-reasoner does not support this tool_choice"),
        ("effort_value",          "config",      "nearest_effort",     "level \"max\" not supported, valid levels: low, medium"),
        ("no_text",               "shape",       "drop_hidden",        "messages.1.content.0.thinking: each thinking block must contain thinking"),
        ("clears_nothing",        "config",      "omit_parameter",     "`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive"),
        ("content_beside_thinking", "shape",     "drop_beside_text",   "Cannot pass both content and thinking in an assistant message with tool calls!"),
        ("thinking_mode",         "config",      "switch_mode",        "invalid params, invalid thinking.type: \"enabled\" (allowed: adaptive, disabled) (2013)"),
        ("template_arguments",    "config",      "omit_parameter",     "chat_template is not supported for Mistral tokenizers."),
        ("conflicts_with_thinking", "config",    "off_for_turn",       "Json mode response is not supported when thinking is enabled"),
    ];
    for (id, class, repair, message) in cases {
        let row =
            dialects.catalogue().iter().find(|row| row.matches(message)).unwrap_or_else(|| panic!("no row: {message}"));
        assert_eq!((row.id.as_str(), row.class.as_str(), row.repair.as_str()), (id, class, repair), "{message}");
        assert!(!row.status.is_empty(), "{id}");
    }
    let untested: Vec<&str> = dialects
        .catalogue()
        .iter()
        .map(|row| row.id.as_str())
        .filter(|id| !cases.iter().any(|case| case.0 == *id))
        .collect();
    assert!(untested.is_empty(), "no text for {untested:?}");
    #[rustfmt::skip]
    let others = [
        ("rate limit reached",                                       None),
        ("The model maker-2-thinking is not supported here",         None),
        ("The model 'maker/some-thinking' is not supported",         None),
        ("extended-thinking is not supported for this model",        Some("cannot_think")),
        ("Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64", None),
        ("Invalid 'input[3].call_id': string too long. Expected a string with maximum length 64",       None),
        ("Invalid 'input[3].id': 'a_1'. Expected an ID that begins with 'b'.",                          Some("long_id")),
        ("Invalid 'previous_response_id': 'a'. Expected an ID that begins with 'b'.",                   None),
    ];
    for (message, expected) in others {
        let row = dialects.catalogue().iter().find(|row| row.when.is_none() && row.matches(message));
        assert_eq!(row.map(|row| row.id.as_str()), expected, "{message}");
    }
}

#[test]
fn a_mistake_in_the_request_rules_names_file_line_and_key() {
    #[rustfmt::skip]
    let cases = [
        ("unknown key",       "[echo]\ncarier = \"field\"\n",                      "mine.toml:4: echo.carier: unknown field `carier`"),
        ("unknown word",      "[echo]\nloop = \"maybe\"\n",                        "mine.toml:4: echo.loop: unknown variant `maybe`"),
        ("wrong carrier",     "[echo]\ncarrier = \"block\"\n",                     "mine.toml:4: echo.carrier: `block` does not fit the openai-chat protocol"),
        ("flag without one",  "[echo]\nturns_if = \"flag\"\n",                     "mine.toml:4: echo.turns_if: `flag` needs an `echo.flag` to send"),
        ("dummy without one", "[echo]\ndummy = \"\"\nforeign = \"dummy_signature\"\n",         "mine.toml:5: echo.foreign: `dummy_signature` needs an `echo.dummy`"),
        ("no field name",     "[echo]\nfield = \"\"\n",                            "mine.toml:4: echo.field: a field needs a name"),
        ("unknown matrix",    "[bind]\nmodel = \"matrix:acme\"\n",                 "mine.toml:4: bind.model: unknown matrix `acme`; known: claude"),
        ("unknown binding",   "[bind]\nmodel = \"all\"\n",                         "mine.toml:4: bind.model: unknown value `all`; use none, same or matrix:NAME"),
        ("unknown off",       "[ask]\noff = \"never\"\n",                          "mine.toml:4: ask.off: unknown value `never`"),
        ("none as a level",   "[ask]\neffort.values = [\"none\", \"low\"]\n",      "mine.toml:4: ask.effort.values: `none` is not an effort level"),
        ("level in a table",  "[ask.effort]\nvalues = [\"huge\"]\n",               "mine.toml:4: ask.effort.values: `huge` is not an effort level"),
        ("range backwards",   "[ask]\nbudget = { path = \"b\", range = [2, 1] }\n", "mine.toml:4: ask.budget.range: the range begins at 2 and ends at 1"),
        ("unknown exclusion", "[ask]\nexclusive = [[\"effort\", \"show\"]]\n",     "mine.toml:4: ask.exclusive: unknown word `show`"),
        ("unknown in effort", "[ask]\neffort.pth = \"x\"\n",                       "mine.toml:4: ask.effort.pth: unknown field `pth`"),
        ("in a model table",  "[[model]]\nmatch = \"*\"\necho.carrier = \"part\"\n", "mine.toml:5: echo.carrier: `part` does not fit"),
        ("wrong pattern",     "[[model]]\nmatch = 7\n",                            "mine.toml:4: model.match: invalid type: integer `7`, expected a pattern, or a list of patterns"),
        ("unknown error",     "errors = [\"oops\"]\n[finish]\nerrors = [\"x\"]\n", "mine.toml:3: errors: unknown error `oops`"),
    ];
    for (name, text, expected) in cases {
        let error = with(&format!("id = \"a\"\nprotocol = \"openai-chat\"\n{text}")).expect_err(name).to_string();
        assert!(error.starts_with(expected), "{name}: {error}");
    }
    for (path, text, expected) in [
        ("x/matrix.toml", "[[matrix]]\nname = \"a\"\nreader = 1\n", "x/matrix.toml:3: matrix.reader: invalid type"),
        (
            "x/errors.toml",
            "[[error]]\nid = \"a\"\nrepair = \"pray\"\n",
            "x/errors.toml:3: error.repair: unknown variant `pray`",
        ),
        ("x/sentinels.toml", "seals = 1\n", "x/sentinels.toml:1: seals: invalid type"),
    ] {
        let error = Dialects::with_user_files(&[DialectSource { path, text }]).expect_err(path).to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn request_rules_are_inherited_and_overridden_like_reply_rules() {
    let text = r#"
id = "acme"
protocol = "anthropic"
[echo]
turns = "must"
[ask]
effort.values = ["low"]
[[model]]
match = ["acme-1*", "acme-2*"]
echo.loop = "ignored"
ask.effort.path = ""
[[model]]
match = "acme-*"
ask.off = "unsupported"
ask.effort.map = { high = "low" }
"#;
    let dialects = with(text).expect("valid");
    let acme = dialects.get("acme").expect("new");
    let generic = dialects.generic(Protocol::Anthropic).expect("generic").rules(None);
    let rules = |model| acme.rules(Some(model));
    assert_eq!(rules("other").echo.carrier, generic.echo.carrier);
    assert_eq!(rules("other").ask.effort.path, generic.ask.effort.path);
    assert_eq!(rules("other").ask.effort.values, ["low"]);
    assert_eq!((back(rules("acme-1")), effort(rules("acme-1"))), ("block | ignored | must".to_owned(), "-".to_owned()));
    assert_eq!(rules("acme-1"), rules("acme-2b"));
    assert_eq!(
        (off(rules("acme-3")), back(rules("acme-3"))),
        ("unsupported".to_owned(), "block | must | must".to_owned())
    );
    assert_eq!(rules("acme-3").ask.effort.map["high"], "low");

    let user = "id = \"kimi\"\n[[model]]\nmatch = \"kimi-k3*\"\nask.effort.values = [\"low\"]\n";
    let dialects = with(user).expect("valid");
    let k3 = dialects.get("kimi").expect("known").rules(Some("kimi-k3"));
    assert_eq!(
        (effort(k3), off(k3)),
        ("reasoning_effort low".to_owned(), "unsupported".to_owned()),
        "merged key by key"
    );
}

#[test]
fn c4_models_with_a_public_vocabulary_are_known() {
    let dialects = builtin();
    #[rustfmt::skip]
    let cases = [
        ("openai",               "gpt-5.6",              "o200k_base"),
        ("openai",               "gpt-4.1-mini",         "o200k_base"),
        ("openai",               "gpt-4-turbo",          "cl100k_base"),
        ("openai",               "gpt-6-astra",          "none"),
        ("openai-chat",          "o3-mini",              "o200k_base"),
        ("openai-chat",          "gpt-3.5-turbo",        "cl100k_base"),
        ("azure",                "gpt-4o",               "o200k_base"),
        ("azure",                "my-deployment",        "none"),
        ("azure-responses",      "gpt-5",                "o200k_base"),
        ("copilot",              "gpt-4o-mini",          "o200k_base"),
        ("copilot",              "claude-sonnet-4.5",    "none"),
        ("copilot-responses",    "gpt-5.3-codex",        "o200k_base"),
        ("openrouter",           "openai/gpt-5.2",       "o200k_base"),
        ("openrouter",           "deepseek/deepseek-v4", "none"),
        ("openrouter-responses", "openai/o4-mini",       "o200k_base"),
        ("groq",                 "openai/gpt-oss-120b",  "o200k_base"),
        ("vllm-responses",       "qwen3",                "none"),
        ("anthropic",            "claude-sonnet-5",      "none"),
    ];
    for (dialect, model, expected) in cases {
        let rules = dialects.get(dialect).unwrap().rules(Some(model));
        assert_eq!(rules.ask.tokenizer.as_str(), expected, "{dialect} {model}");
    }
}
