//! How `aside models --rules` shows the providers of config.toml.

use aside_core::model_table::Price;
use aside_session::provider_tables::ProviderTable;
use serde_json::{Value, json};

use crate::model_rules::{assignments, line};

/// The user's own provider, or their changes to a built-in one.
pub(crate) fn table_text(table: &ProviderTable) -> String {
    let mut text = format!("{}, by config.toml\n", table.name);
    let protocol = table.protocol.map(|protocol| protocol.as_str());
    let key = table.api_key_env.as_deref().or(table.api_key_cmd.as_deref());
    let facts = [
        ("protocol", protocol),
        ("url", table.base_url.as_deref()),
        ("dialect", table.dialect.as_deref()),
        ("key", key),
    ];
    for (label, fact) in facts.into_iter().filter_map(|(label, fact)| Some((label, fact?))) {
        line(&mut text, 2, label, fact);
    }
    for model in &table.models {
        line(&mut text, 2, "models", &model.pattern);
        let limit = model.context_limit.map(|limit| format!("{limit} tokens"));
        let price =
            model.price.as_ref().map(|price| format!("{} in, {} out, per million tokens", price.input, price.output));
        let extra = Some(assignments(&model.extra_body, "")).filter(|extra| !extra.is_empty());
        let facts = [("dialect", model.dialect.clone()), ("also sends", extra), ("context", limit), ("price", price)];
        for (label, fact) in facts.into_iter().filter_map(|(label, fact)| Some((label, fact?))) {
            line(&mut text, 4, label, &fact);
        }
    }
    text
}

/// JSON with the keys of config.toml. Header values may be secret, so only their
/// names are shown.
pub(crate) fn table_json(table: &ProviderTable) -> Value {
    let names = |headers: &[(String, String)]| headers.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let price = |price: &Price| json!({ "input": price.input, "output": price.output, "cached": price.cache_read });
    let models = table.models.iter().map(|model| {
        json!({
            "match": model.pattern, "dialect": model.dialect, "extra_body": model.extra_body,
            "headers": names(&model.headers), "context_limit": model.context_limit, "price": model.price.as_ref().map(price),
        })
    });
    json!({
        "provider": table.name, "protocol": table.protocol.map(|protocol| protocol.as_str()),
        "base_url": table.base_url, "dialect": table.dialect, "api_key_env": table.api_key_env,
        "api_key_cmd": table.api_key_cmd.is_some(), "headers": names(&table.headers),
        "models": models.collect::<Vec<_>>(),
    })
}
