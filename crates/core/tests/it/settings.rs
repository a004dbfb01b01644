//! requirements.md, section 5, and the rules of the seeds about settings.

use std::collections::BTreeSet;

use aside_core::settings::{
    ALIASES, BuiltinDefault, Effort, Layer, SendEmpty, SettingChange, SettingError, SettingKey, SettingKind,
    SettingValue, Settings, StripThinking, SummaryMode, TagsMode, ThinkingDisplay, ThinkingFormat, complete,
};
use serde_json::json;

/// All settings in effect, as `name=value layer`.
fn in_effect(settings: &Settings) -> Vec<String> {
    let draw = |key: &SettingKey| settings.get(*key).map(|(value, layer)| format!("{key}={value} {}", layer.as_str()));
    SettingKey::ALL.iter().filter_map(draw).collect()
}

fn set(settings: &mut Settings, layer: Layer, assignments: &[&str]) {
    for assignment in assignments {
        settings.apply(layer, assignment.parse().unwrap());
    }
}

fn default_of(key: SettingKey) -> Option<String> {
    Settings::new().get(key).map(|(value, layer)| {
        assert_eq!(layer, Layer::Builtin);
        value.to_string()
    })
}

#[test]
fn req_think_006_1_enabled_is_true_by_default() {
    assert_eq!(default_of(SettingKey::Enabled).as_deref(), Some("true"));
    assert_eq!(Settings::new().enabled(), (true, Layer::Builtin));
}

#[test]
fn req_think_006_2_include_in_context_is_false_by_default() {
    assert_eq!(default_of(SettingKey::IncludeInContext).as_deref(), Some("false"));
    assert_eq!(Settings::new().include_in_context(), (false, Layer::Builtin));
}

#[test]
fn req_think_006_3_include_in_response_is_true_by_default() {
    assert_eq!(default_of(SettingKey::IncludeInResponse).as_deref(), Some("true"));
    assert_eq!(Settings::new().display(), ThinkingDisplay::Live);
}

#[test]
fn req_think_006_4_format_is_field_by_default() {
    assert_eq!(default_of(SettingKey::Format).as_deref(), Some("field"));
    assert_eq!(Settings::new().format(), ThinkingFormat::Field);
}

#[test]
fn req_think_006_5_strip_from_context_is_none_by_default() {
    assert_eq!(default_of(SettingKey::StripFromContext).as_deref(), Some("none"));
    assert_eq!(Settings::new().strip(), StripThinking::None);
}

/// For each setting a value that is not its default.
const OTHER_VALUES: &[&str] = &[
    "reasoning.enabled=false",
    "reasoning.effort=high",
    "reasoning.maxTokens=4096",
    "reasoning.includeInContext=true",
    "reasoning.includeInResponse=false",
    "reasoning.stripFromContext=allButLast",
    "reasoning.format=native",
    "reasoning.fieldName=pondering",
    "reasoning.sendEmpty=space",
    "reasoning.tags=preopened",
    "reasoning.summary=detailed",
    "reasoning.display=collapsed",
    "context.limit=100000",
    "context.compactAt=0.5",
    "request.maxTokens=8000",
    "request.temperature=0.7",
    "prompt.system=Be brief.",
    "prompt.projectFiles=[\"NOTES.md\"]",
];

/// Writes settings to a profile as names and JSON values, and reads them again.
fn through_a_profile(settings: &Settings) -> Vec<SettingChange> {
    let held = SettingKey::ALL.iter().filter(|key| key.is_about_thinking());
    let held = held.filter_map(|key| settings.get(*key).map(|(value, _)| (key.name(), value.to_json())));
    held.map(|(name, value)| SettingChange::accept(name, &value).unwrap()).collect()
}

#[test]
fn req_think_006_6_every_thinking_setting_survives_a_profile() {
    let mut saved = Settings::new();
    set(&mut saved, Layer::Session, OTHER_VALUES);
    let mut loaded = Settings::new();
    loaded.replace(Layer::Profile, through_a_profile(&saved));
    let held: Vec<&SettingKey> = SettingKey::ALL.iter().filter(|key| key.is_about_thinking()).collect();
    assert_eq!(held.len(), 12);
    for key in held {
        assert_eq!(loaded.get(*key), saved.get(*key).map(|(value, _)| (value, Layer::Profile)), "{key}");
        assert_ne!(
            loaded.get(*key).map(|(value, _)| value),
            Settings::new().get(*key).map(|(value, _)| value),
            "{key}"
        );
    }
    assert_eq!(loaded.get(SettingKey::ContextLimit), None, "a profile is about thinking");
}

#[test]
fn err_001_a_bad_value_is_refused_with_the_valid_ones_and_changes_nothing() {
    let mut settings = Settings::new();
    set(&mut settings, Layer::Session, &["reasoning.format=native"]);
    let before = settings.clone();
    let error = settings.set(Layer::Session, "reasoning.format", "xml").unwrap_err();
    assert_eq!(error.to_string(), "`reasoning.format` cannot be `xml`; use native or field");
    assert_eq!(settings, before, "the version too");
}

#[test]
fn err_001_a_bad_key_is_refused_with_a_suggestion_and_all_valid_keys() {
    let mut settings = Settings::new();
    let before = settings.clone();
    let refusals = [
        settings.set(Layer::Session, "reasoning.efort", "high").unwrap_err(),
        settings.unset(Layer::Session, "reasoning.efort").unwrap_err(),
        "reasoning.efort=high".parse::<SettingChange>().unwrap_err(),
        SettingChange::accept("reasoning.efort", &json!("high")).unwrap_err(),
    ];
    for error in refusals {
        let text = error.to_string();
        assert!(text.starts_with("unknown setting `reasoning.efort`; did you mean `reasoning.effort`?"), "{text}");
        assert!(SettingKey::ALL.iter().all(|key| text.contains(key.name())), "{text}");
    }
    assert_eq!(settings, before);
    let error = "reasoning.effort".parse::<SettingChange>().unwrap_err();
    assert_eq!(error.to_string(), "`reasoning.effort` gives no value; write it as KEY=VALUE");
}

#[test]
fn s1_one_table_holds_every_setting_of_the_product() {
    // Written from product.md, "Settings".
    #[rustfmt::skip]
    let table: &[(&str, &str, Option<&str>)] = &[
        ("reasoning.enabled",           "true or false",                                       Some("true")),
        ("reasoning.effort",            "minimal, low, medium, high, xhigh, max or none",      None),
        ("reasoning.maxTokens",         "a whole number of at least 1",                        None),
        ("reasoning.includeInContext",  "true or false",                                       Some("false")),
        ("reasoning.includeInResponse", "true or false",                                       Some("true")),
        ("reasoning.stripFromContext",  "all, allButLast or none",                             Some("none")),
        ("reasoning.format",            "native or field",                                     Some("field")),
        ("reasoning.fieldName",         "a name without spaces",                               None),
        ("reasoning.sendEmpty",         "omit, empty or space",                                Some("omit")),
        ("reasoning.tags",              "auto, off or preopened",                              Some("auto")),
        ("reasoning.summary",           "auto, concise, detailed or none",                     Some("auto")),
        ("reasoning.display",           "full, live, collapsed or off",                        Some("live")),
        ("context.limit",               "a whole number of at least 1",                        None),
        ("context.compactAt",           "a number above 0 and up to 1",                        Some("0.8")),
        ("request.maxTokens",           "a whole number of at least 1",                        None),
        ("request.temperature",         "a number of at least 0",                              None),
        ("reply.maxBytes",              "a whole number of bytes, 0 for no limit",             Some("67108864")),
        ("http.connectSeconds",         "a number of at least 0",                              Some("10")),
        ("http.idleSeconds",            "a number of at least 0",                              Some("300")),
        ("http.totalSeconds",           "a number of at least 0",                              None),
        ("prompt.system",               "any text",                                            None),
        ("prompt.projectFiles",         "a list: a,b or [\"a\", \"b\"]",                       Some("[\"AGENTS.md\"]")),
        ("screen.notify",               "off, bell, osc9 or osc777",                           Some("bell")),
        ("screen.proseWidth",           "a whole number of at least 1",                        Some("100")),
        ("screen.theme",                "auto, dark or light",                                 Some("auto")),
        ("screen.mouse",                "true or false",                                       Some("true")),
    ];
    let drawn: Vec<(&str, String, Option<String>)> =
        SettingKey::ALL.iter().map(|key| (key.name(), key.info().kind.valid(), default_of(*key))).collect();
    let expected: Vec<(&str, String, Option<String>)> =
        table.iter().map(|(name, valid, default)| (*name, (*valid).to_owned(), default.map(str::to_owned))).collect();
    assert_eq!(drawn, expected);
}

#[test]
fn s1_the_table_is_sound() {
    let names: BTreeSet<&str> = SettingKey::ALL.iter().map(|key| key.name()).collect();
    assert_eq!(names.len(), SettingKey::ALL.len(), "no name twice");
    for key in SettingKey::ALL {
        let entry = key.info();
        assert_eq!(entry.name.parse(), Ok(*key));
        assert!(!entry.doc.is_empty() && !entry.doc.contains('\n') && !entry.doc.ends_with('.'), "{key}");
        match entry.builtin {
            BuiltinDefault::Is(text) => assert_eq!(key.builtin().unwrap().to_string(), text, "{key}"),
            BuiltinDefault::Unset(why) => assert!(!why.is_empty(), "{key}"),
        }
    }
    for alias in ALIASES {
        assert!(!names.contains(alias.name));
        assert_eq!(alias.name.parse(), Ok(alias.key));
    }
}

#[test]
fn s1_each_setting_takes_what_is_valid_and_nothing_else() {
    #[rustfmt::skip]
    let table: &[(SettingKey, &[&str], &[&str])] = &[
        (SettingKey::Enabled,           &["true", "false"],                                               &["", "yes", "1", "TRUE"]),
        (SettingKey::Effort,            &["minimal", "low", "medium", "high", "xhigh", "max", "none"],    &["", "off", "ultra", "High"]),
        (SettingKey::MaxTokens,         &["1", "32000"],                                                  &["", "0", "-1", "1.5", "8k"]),
        (SettingKey::IncludeInContext,  &["true", "false"],                                               &["keep", "0"]),
        (SettingKey::IncludeInResponse, &["true", "false"],                                               &["live"]),
        (SettingKey::StripFromContext,  &["all", "allButLast", "none"],                                   &["", "last", "allbutlast"]),
        (SettingKey::Format,            &["native", "field"],                                             &["", "xml"]),
        (SettingKey::FieldName,         &["reasoning_content", "thinking"],                               &["", "  ", "two words"]),
        (SettingKey::SendEmpty,         &["omit", "empty", "space"],                                      &["", " ", "null"]),
        (SettingKey::Tags,              &["auto", "off", "preopened"],                                    &["on", "true"]),
        (SettingKey::Summary,           &["auto", "concise", "detailed", "none"],                         &["long"]),
        (SettingKey::Display,           &["full", "live", "collapsed", "off"],                            &["true", "hidden"]),
        (SettingKey::ContextLimit,      &["200000"],                                                      &["0", "200k"]),
        (SettingKey::CompactAt,         &["0.01", "0.8", "1"],                                            &["0", "1.1", "-0.5", "80%", "NaN"]),
        (SettingKey::RequestMaxTokens,  &["8192"],                                                        &["0", "none"]),
        (SettingKey::Temperature,       &["0", "0.7", "2"],                                               &["-1", "inf", "warm"]),
        (SettingKey::ReplyMaxBytes,     &["0", "67108864"],                                               &["", "-1", "1.5", "64M"]),
        (SettingKey::ConnectSeconds,    &["0", "0.5", "10"],                                              &["", "-1", "10s"]),
        (SettingKey::IdleSeconds,       &["0", "0.5", "300"],                                             &["", "-1", "5m"]),
        (SettingKey::TotalSeconds,      &["0", "0.5", "600"],                                             &["", "-1", "forever"]),
        (SettingKey::SystemPrompt,      &["", "Be brief.", "@prompt.md", "two\nlines"],                   &[]),
        (SettingKey::ProjectFiles,      &["[]", "[\"AGENTS.md\",\"NOTES.md\"]"],                           &["[1]", "[\"a\""]),
        (SettingKey::Notify,            &["off", "bell", "osc9", "osc777"],                                  &["", "Bell", "true"]),
        (SettingKey::ProseWidth,        &["1", "100"],                                                       &["", "0", "-1", "wide"]),
        (SettingKey::Theme,             &["auto", "dark", "light"],                                          &["", "blue"]),
        (SettingKey::Mouse,             &["true", "false"],                                                  &["", "on"]),
    ];
    assert_eq!(table.iter().map(|row| row.0).collect::<Vec<_>>(), SettingKey::ALL);
    for (key, valid, invalid) in table {
        for text in *valid {
            let mut settings = Settings::new();
            settings.set(Layer::Session, key.name(), text).unwrap();
            let (value, layer) = settings.get(*key).unwrap();
            assert_eq!((value.to_string().as_str(), layer), (*text, Layer::Session), "{key}");
            // A value that was written to a file reads back the same.
            let change = SettingChange::accept(key.name(), &value.to_json()).unwrap();
            assert_eq!((change.key(), change.value()), (*key, Some(value)), "{key}");
        }
        for text in *invalid {
            let mut settings = Settings::new();
            let error = settings.set(Layer::Session, key.name(), text).unwrap_err();
            let expected = format!("`{key}` cannot be `{text}`; use {}", key.info().kind.valid());
            assert_eq!((error.to_string(), settings), (expected, Settings::new()));
        }
    }
}

#[test]
fn s1_typed_values_follow_the_table() {
    let mut settings = Settings::new();
    // The defaults of the types equal those of the table.
    assert_eq!((settings.strip(), settings.format(), settings.send_empty()), Default::default());
    assert_eq!((settings.tags(), settings.summary(), settings.display()), Default::default());
    assert_eq!((settings.effort(), settings.max_thinking_tokens(), settings.field_name()), (None, None, None));
    assert_eq!((settings.context_limit(), settings.compact_at()), (None, Some(0.8)));
    assert_eq!((settings.max_output_tokens(), settings.temperature(), settings.system_prompt()), (None, None, None));
    assert_eq!(settings.project_files(), ["AGENTS.md"]);
    assert_eq!(settings.max_reply_bytes(), Some(64 << 20));

    set(&mut settings, Layer::Config, OTHER_VALUES);
    assert_eq!(settings.enabled(), (false, Layer::Config));
    assert_eq!(settings.effort(), Some(Effort::High));
    assert_eq!(settings.max_thinking_tokens(), Some(4096));
    assert_eq!(settings.include_in_context(), (true, Layer::Config));
    assert_eq!((settings.strip(), settings.format()), (StripThinking::AllButLast, ThinkingFormat::Native));
    assert_eq!((settings.field_name(), settings.send_empty()), (Some("pondering"), SendEmpty::Space));
    assert_eq!((settings.tags(), settings.summary()), (TagsMode::Preopened, SummaryMode::Detailed));
    assert_eq!((settings.context_limit(), settings.compact_at()), (Some(100_000), Some(0.5)));
    assert_eq!((settings.max_output_tokens(), settings.temperature()), (Some(8000), Some(0.7)));
    assert_eq!(settings.system_prompt(), Some("Be brief."));
    assert_eq!(settings.project_files(), ["NOTES.md"]);
    settings.set(Layer::Session, "reply.maxBytes", "0").unwrap();
    assert_eq!(settings.max_reply_bytes(), None, "0 is no limit");
}

#[test]
fn s1_completion_comes_from_the_table() {
    let cases: &[(&str, &[&str])] = &[
        ("context.", &["context.limit", "context.compactAt"]),
        ("reasoning.f", &["reasoning.format", "reasoning.fieldName"]),
        (
            "reasoning.stripFromContext=all",
            &["reasoning.stripFromContext=all", "reasoning.stripFromContext=allButLast"],
        ),
        ("reasoning.enabled=", &["reasoning.enabled=true", "reasoning.enabled=false"]),
        ("thinking.context_mode=p", &["thinking.context_mode=provider_default"]),
        ("reasoning.maxTokens=", &[]),
        ("nothing", &[]),
        ("nothing=", &[]),
    ];
    for (typed, expected) in cases {
        assert_eq!(complete(typed), *expected, "{typed}");
    }
    assert_eq!(complete("").len(), SettingKey::ALL.len());
}

#[test]
fn a_change_during_the_session_replaces_the_value_of_the_command_line() {
    let mut settings = Settings::new();
    set(&mut settings, Layer::Run, &["reasoning.effort=high"]);
    assert_eq!(settings.get(SettingKey::Effort), Some((&SettingValue::Choice("high"), Layer::Run)));
    set(&mut settings, Layer::Session, &["reasoning.effort=low"]);
    assert_eq!(settings.get(SettingKey::Effort), Some((&SettingValue::Choice("low"), Layer::Session)));
    // The command line is for this run and wins over what a session has stored.
    set(&mut settings, Layer::Run, &["reasoning.effort=high"]);
    assert_eq!(settings.get(SettingKey::Effort), Some((&SettingValue::Choice("high"), Layer::Run)));
    assert_eq!(settings.layer(Layer::Session).count(), 1);
    // Unset during the session, neither is left.
    assert_eq!(settings.unset(Layer::Session, "reasoning.effort"), Ok(true));
    assert_eq!(settings.get(SettingKey::Effort), None);
}

#[test]
fn the_highest_layer_wins_and_each_value_names_its_layer() {
    let mut settings = Settings::new();
    let efforts = ["minimal", "low", "medium", "high", "xhigh"];
    // From the top down: lower layers do not show.
    for (layer, effort) in Layer::ALL.into_iter().zip(efforts).rev() {
        settings.set(layer, "reasoning.effort", effort).unwrap();
        assert_eq!(settings.get(SettingKey::Effort), Some((&SettingValue::Choice("xhigh"), Layer::Session)));
    }
    let said: Vec<(Layer, String)> =
        settings.values_of(SettingKey::Effort).map(|(layer, value)| (layer, value.to_string())).collect();
    let expected: Vec<(Layer, String)> =
        Layer::ALL.into_iter().zip(efforts).map(|(layer, effort)| (layer, effort.to_owned())).rev().collect();
    assert_eq!(said, expected);
    // Removed again, one by one.
    for (layer, effort) in Layer::ALL.into_iter().zip(efforts).rev() {
        assert_eq!(settings.get(SettingKey::Effort), Some((&SettingValue::Choice(effort), layer)));
        assert_eq!(settings.unset(layer, "reasoning.effort"), Ok(true));
        assert_eq!(settings.unset(layer, "reasoning.effort"), Ok(false));
    }
    assert_eq!(settings.get(SettingKey::Effort), None);
    assert_eq!(in_effect(&settings), in_effect(&Settings::new()));
}

#[test]
fn a_setting_of_the_user_wins_over_the_dialect() {
    let mut settings = Settings::new();
    settings.set(Layer::Dialect, "reasoning.includeInContext", "true").unwrap();
    assert_eq!(settings.include_in_context(), (true, Layer::Dialect));
    for layer in [Layer::Config, Layer::Profile, Layer::Session] {
        let mut settings = settings.clone();
        settings.set(layer, "reasoning.includeInContext", "false").unwrap();
        assert_eq!(settings.include_in_context(), (false, layer));
        assert!(layer.is_set_by_user());
    }
    assert!(!Layer::Builtin.is_set_by_user() && !Layer::Dialect.is_set_by_user());
}

#[test]
fn an_effort_of_none_switches_thinking_off_and_is_no_level() {
    let mut settings = Settings::new();
    set(&mut settings, Layer::Config, &["reasoning.enabled=true", "reasoning.effort=none"]);
    assert_eq!((settings.enabled(), settings.effort()), ((false, Layer::Config), None));
    set(&mut settings, Layer::Session, &["reasoning.effort=low"]);
    assert_eq!((settings.enabled(), settings.effort()), ((true, Layer::Config), Some(Effort::Low)));
}

#[test]
fn br_008_a_change_applies_at_the_next_read() {
    let mut settings = Settings::new();
    for (text, expected) in
        [("all", StripThinking::All), ("allButLast", StripThinking::AllButLast), ("none", StripThinking::None)]
    {
        settings.set(Layer::Session, "reasoning.stripFromContext", text).unwrap();
        assert_eq!(settings.strip(), expected);
    }
}

#[test]
fn the_version_changes_with_every_value_and_only_then() {
    let mut settings = Settings::new();
    let mut versions = vec![settings.version()];
    let mut step = |settings: &mut Settings, assignment: &str| {
        set(settings, Layer::Session, &[assignment]);
        versions.push(settings.version());
    };
    for assignment in OTHER_VALUES {
        step(&mut settings, assignment);
    }
    let n_changes = versions.len();
    assert_eq!(versions.into_iter().collect::<BTreeSet<_>>().len(), n_changes, "a version came twice");

    let version = settings.version();
    set(&mut settings, Layer::Session, OTHER_VALUES);
    settings.set(Layer::Session, "reasoning.format", "xml").unwrap_err();
    assert_eq!(settings.unset(Layer::Config, "reasoning.format"), Ok(false));
    settings.replace(Layer::Profile, []);
    assert_eq!(settings.version(), version, "nothing changed");
    settings.unset(Layer::Session, "reasoning.format").unwrap();
    assert_ne!(settings.version(), version);
}

#[test]
fn ec_005_a_profile_applies_at_once_and_replaces_the_previous_one() {
    let profile =
        |assignments: &[&str]| -> Vec<SettingChange> { assignments.iter().map(|text| text.parse().unwrap()).collect() };
    let mut settings = Settings::new();
    set(&mut settings, Layer::Config, &["reasoning.effort=low"]);
    let first = profile(&["reasoning.effort=max", "reasoning.includeInContext=true", "reasoning.display=off"]);
    settings.replace(Layer::Profile, first);
    assert_eq!(settings.effort(), Some(Effort::Max));
    assert_eq!(settings.include_in_context(), (true, Layer::Profile));
    assert_eq!(settings.display(), ThinkingDisplay::Off);

    let version = settings.version();
    settings.replace(Layer::Profile, profile(&["reasoning.display=full"]));
    assert_eq!(settings.effort(), Some(Effort::Low));
    assert_eq!(settings.include_in_context(), (false, Layer::Builtin));
    assert_eq!(settings.display(), ThinkingDisplay::Full);
    assert_ne!(settings.version(), version);
    assert_eq!(settings.layer(Layer::Profile).map(|(key, _)| key).collect::<Vec<_>>(), [SettingKey::Display]);
}

#[test]
fn s2_ec_005_a_profile_sets_the_thinking_display_whatever_it_was_before() {
    let profile =
        |assignments: &[&str]| -> Vec<SettingChange> { assignments.iter().map(|text| text.parse().unwrap()).collect() };
    let mut settings = Settings::new();
    settings.show(ThinkingDisplay::Collapsed);
    set(&mut settings, Layer::Session, &["reasoning.effort=high"]);
    settings.load_profile(profile(&["reasoning.display=full", "reasoning.effort=low"]));
    assert_eq!(settings.display(), ThinkingDisplay::Full);
    assert_eq!(settings.effort(), Some(Effort::High), "everything else is the session's word");
    settings.load_profile(profile(&["reasoning.includeInResponse=false"]));
    assert_eq!(settings.display(), ThinkingDisplay::Off);
    settings.show(ThinkingDisplay::Live);
    settings.load_profile(profile(&["reasoning.effort=max"]));
    assert_eq!(settings.display(), ThinkingDisplay::Live, "a profile that says nothing about it changes nothing");
}

#[test]
fn s5_aliases_mean_what_they_stand_for() {
    #[rustfmt::skip]
    let cases: &[(&str, SettingKey, Option<&str>)] = &[
        ("show_thinking=true",                     SettingKey::Display,          Some("live")),
        ("show_thinking=false",                    SettingKey::Display,          Some("off")),
        ("thinking.context_mode=keep",             SettingKey::IncludeInContext, Some("true")),
        ("thinking.context_mode=strip",            SettingKey::IncludeInContext, Some("false")),
        ("thinking.context_mode=provider_default", SettingKey::IncludeInContext, None),
    ];
    for (assignment, key, expected) in cases {
        let change: SettingChange = assignment.parse().unwrap();
        let value = change.value().map(SettingValue::to_string);
        assert_eq!((change.key(), value.as_deref()), (*key, *expected), "{assignment}");
    }
    assert_eq!(SettingChange::accept("show_thinking", &json!(false)), "show_thinking=false".parse());
    let mut settings = Settings::new();
    set(&mut settings, Layer::Session, &["thinking.context_mode=keep"]);
    assert_eq!(settings.include_in_context(), (true, Layer::Session));
    set(&mut settings, Layer::Session, &["thinking.context_mode=provider_default"]);
    assert_eq!(settings.include_in_context(), (false, Layer::Builtin));
    let error = "thinking.context_mode=drop".parse::<SettingChange>().unwrap_err();
    assert_eq!(error.to_string(), "`thinking.context_mode` cannot be `drop`; use keep, strip or provider_default");
    assert!(matches!(SettingChange::parse("show_thinking", "live"), Err(SettingError::BadValue { .. })));
}

#[test]
fn s5_not_including_in_the_response_is_off_and_a_view_turns_it_on_again() {
    let mut settings = Settings::new();
    set(&mut settings, Layer::Config, &["reasoning.display=full", "reasoning.includeInResponse=false"]);
    assert_eq!(settings.display(), ThinkingDisplay::Off);
    assert_eq!(settings.get(SettingKey::Display).unwrap().0, &SettingValue::Choice("full"));
    assert!(!settings.show(ThinkingDisplay::Collapsed), "no value of the session");
    assert_eq!(settings.display(), ThinkingDisplay::Collapsed);
    assert_eq!(settings.get(SettingKey::IncludeInResponse), Some((&SettingValue::Bool(true), Layer::Config)));
}

#[test]
fn t3_a_chosen_view_is_a_preference_and_replaces_what_the_session_had() {
    #[rustfmt::skip]
    let cases = [
        // layer with another view, chosen view's layer, session's values changed
        (Layer::Config,  Layer::Config,  false),
        (Layer::Profile, Layer::Session, true),
        (Layer::Session, Layer::Config,  true),
        (Layer::Run,     Layer::Config,  false),
    ];
    for (layer, expected, changed) in cases {
        let mut settings = Settings::new();
        set(&mut settings, layer, &["reasoning.display=off"]);
        assert_eq!(settings.show(ThinkingDisplay::Live), changed, "{layer:?}");
        assert_eq!(settings.get(SettingKey::Display), Some((&SettingValue::Choice("live"), expected)), "{layer:?}");
        assert!(!settings.show(ThinkingDisplay::Live), "{layer:?}: nothing is left to change");
    }
}

#[test]
fn s5_display_never_changes_what_is_sent() {
    let sent = |settings: &Settings| {
        let shown = [SettingKey::Display, SettingKey::IncludeInResponse];
        let others = SettingKey::ALL.iter().filter(|key| !shown.contains(key));
        let values: Vec<String> = others.map(|key| format!("{:?}", settings.get(*key))).collect();
        (values, settings.enabled(), settings.include_in_context(), settings.strip())
    };
    let mut settings = Settings::new();
    let before = sent(&settings);
    for view in ThinkingDisplay::ALL {
        settings.show(*view);
        assert_eq!(sent(&settings), before, "{view}");
    }
    set(&mut settings, Layer::Session, &["reasoning.includeInResponse=false", "show_thinking=false"]);
    assert_eq!(sent(&settings), before);
}

#[test]
fn a_kind_that_can_be_listed_is_listed() {
    for key in SettingKey::ALL {
        let kind = key.info().kind;
        assert_eq!(!kind.choices().is_empty(), matches!(kind, SettingKind::Bool | SettingKind::Choice(_)), "{key}");
        assert!(kind.choices().iter().all(|word| key.parse(word).is_ok()), "{key}");
    }
}
