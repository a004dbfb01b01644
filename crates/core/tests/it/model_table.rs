//! The table of models against the dialects. Both say something about windows and effort levels, from different sources.

use aside_core::dialect::{Dialect, Dialects, FactSource, LimitLevel, Off, matches_pattern};

/// A dialect, a pattern of models, and why the dialect is right where the table differs. Each must occur.
type Exception = (&'static str, &'static str, &'static str);

const LIMITS: &[Exception] = &[
    ("azure", "gpt-3.5-turbo-*", "snapshots that only Azure keeps; nobody compacts for them"),
    ("azure", "claude-*", "the table has Foundry's first figures; Anthropic names its windows for every cloud"),
    ("azure", "gpt-4-32k", "a snapshot that only Azure keeps"),
];

const EFFORTS: &[Exception] = &[
    ("azure", "claude-*", "Foundry takes what Anthropic takes"),
    ("fireworks", "*deepseek-v4*", "a client of Fireworks sends these levels; the table has the maker's own"),
    ("openai-chat", "gpt-5.6", "`max` is only on Responses"),
    ("openai-chat", "gpt-6*", "`max` is only on Responses"),
    ("ollama-cloud", "gpt-oss*", "the server takes four words for every model"),
    ("snowflake", "openai-*", "only three levels are documented for all of them"),
    ("bedrock", "openai.gpt-5*", "the table has the levels of the Responses endpoint, not of Converse"),
    ("copilot", "gpt-5-mini", "Copilot lists levels for each account; the table has one account's"),
    ("vercel", "openai/*", "the gateway takes every level and lowers it to one that the model has"),
    ("openrouter", "openai/*", "OpenRouter takes every level and lowers it to one that the model has"),
];

#[test]
fn every_dialect_of_the_table_exists_and_names_itself() {
    let dialects = Dialects::builtin().unwrap();
    let mut ids: Vec<&str> = dialects.models().names().map(|(dialect, _)| dialect).collect();
    ids.dedup();
    assert!(ids.len() > 20, "{ids:?}");
    for id in ids {
        assert_eq!(dialects.get(id).map(Dialect::table_id), Some(id));
    }
    for dialect in dialects.iter() {
        let named = dialects.get(dialect.table_id()).expect("models_of names a dialect");
        assert_eq!(named.table_id(), named.id, "{}: models_of leads to a dialect with a table", dialect.id);
    }
}

#[test]
fn default_models_are_in_the_table() {
    let dialects = Dialects::builtin().unwrap();
    for dialect in dialects.iter().filter(|dialect| dialect.access.default_model.is_some()) {
        let model = dialect.access.default_model.as_deref().unwrap();
        assert!(dialects.model(dialect, model).is_some(), "{}/{model}", dialect.id);
    }
}

/// Compares a dialect with the table, model by model, and returns what differs besides the exceptions.
fn differences(exceptions: &[Exception], compare: impl Fn(&Dialects, &Dialect, &str) -> Option<String>) -> Vec<String> {
    let dialects = Dialects::builtin().unwrap();
    let mut used = vec![false; exceptions.len()];
    let mut found = Vec::new();
    for dialect in dialects.iter() {
        for row in dialects.models().rows(dialect.table_id()) {
            let model = row.row.model;
            let Some(difference) = compare(&dialects, dialect, model) else { continue };
            let excused = exceptions.iter().position(|(id, pattern, _)| {
                (*id == dialect.id || *id == dialect.table_id()) && matches_pattern(pattern, model)
            });
            match excused {
                Some(at) => used[at] = true,
                None => found.push(format!("{}/{model}: {difference}", dialect.id)),
            }
        }
    }
    let unused = exceptions.iter().zip(used).filter(|(_, used)| !used);
    found.extend(unused.map(|((id, pattern, _), _)| format!("the exception {id}/{pattern} does not occur")));
    found
}

#[test]
fn windows_of_dialects_agree_with_the_table() {
    let found = differences(LIMITS, |dialects, dialect, model| {
        let ask = &dialect.rules(Some(model)).ask;
        let limit = ask.context_limit.filter(|_| ask.context_limit_level == LimitLevel::Model)?;
        let table = dialects.model(dialect, model)?.context_limit()?;
        assert_eq!(dialects.context_limit(dialect, model), Some((limit, FactSource::Dialect)));
        (limit != table).then(|| format!("the dialect says {limit}, the table {table}"))
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn effort_levels_of_dialects_agree_with_the_table() {
    let found = differences(EFFORTS, |dialects, dialect, model| {
        let ask = &dialect.rules(Some(model)).ask;
        let row = dialects.model(dialect, model)?.row;
        let has_rules = dialect.models().any(|(pattern, _)| matches_pattern(pattern, model));
        if row.efforts.is_empty() || ask.effort.path.is_empty() || !has_rules {
            return None;
        }
        let levels: Vec<&str> = row.efforts.iter().copied().filter(|word| *word != "none").collect();
        let dialect_levels: Vec<&str> = ask.effort.values.iter().map(String::as_str).collect();
        let refuses_none = ask.off == Off::Unsupported && row.efforts.contains(&"none");
        (levels != dialect_levels || refuses_none)
            .then(|| format!("the dialect says {dialect_levels:?} and off {:?}, the table {:?}", ask.off, row.efforts))
    });
    assert!(found.is_empty(), "{found:#?}");
}
