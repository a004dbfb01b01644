//! The pages that describe the simulator itself.

use aside_core::dialect::{Dialect, Dialects};
use aside_core::protocol::Protocol;
use serde_json::{Value, json};

use crate::route::{ModelPage, path};
use crate::script::behaviour_names;

/// The help page at `/`.
pub(crate) fn page() -> String {
    let mut out =
        "aside sim: a simulator of LLM providers. No model is called; nothing leaves this machine.\n\n".to_owned();
    for protocol in Protocol::ALL {
        out.push_str(&format!("{:<17} POST {}\n", protocol.as_str(), path(protocol)));
    }
    out.push_str(
        "\nmodels     GET /v1/models; a model is DIALECT[/MODEL][:BEHAVIOUR] or a real name; any key is accepted\n",
    );
    out.push_str("requests   GET /aside/requests; what clients sent, and what happened to the thinking\n");
    out.push_str(&format!("behaviours {}\n", behaviour_names()));
    out.push_str("           or a line `sim: NAME [ARG] [key=value…]` in the last user message\n");
    out.push_str("           the line `sim: help` is answered with what each behaviour does\n");
    out.push_str("           several lines `sim: call TOOL {ARGUMENTS}` are the steps of one turn\n");
    out
}

pub(crate) fn version() -> String {
    json!({ "version": concat!(env!("CARGO_PKG_VERSION"), "-sim") }).to_string()
}

/// The model list in this format: every dialect of its protocols, and the real name of each
/// one's default model.
pub(crate) fn models(page: ModelPage, dialects: &Dialects) -> String {
    let protocols: &[Protocol] = match page {
        ModelPage::Anthropic => &[Protocol::Anthropic],
        ModelPage::Gemini => &[Protocol::Gemini],
        ModelPage::Ollama => &[Protocol::Ollama],
        ModelPage::Cohere => &[Protocol::Cohere],
        ModelPage::Openai => &Protocol::ALL,
        ModelPage::Codex => &[],
    };
    let reachable: Vec<&Dialect> = dialects.iter().filter(|dialect| protocols.contains(&dialect.protocol)).collect();
    let ids = reachable.iter().map(|dialect| dialect.id.as_str());
    let defaults = reachable.iter().filter_map(|dialect| dialect.access.default_model.as_deref());
    let mut names: Vec<&str> = Vec::new();
    for name in ids.chain(defaults) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let list: Vec<Value> = names.iter().map(|name| model(page, name)).collect();
    let (first, last) = (names.first(), names.last());
    let list = match page {
        ModelPage::Gemini | ModelPage::Ollama | ModelPage::Cohere | ModelPage::Codex => json!({ "models": list }),
        ModelPage::Anthropic => json!({ "data": list, "has_more": false, "first_id": first, "last_id": last }),
        ModelPage::Openai => json!({ "object": "list", "data": list }),
    };
    list.to_string()
}

/// One model in this format.
pub(crate) fn model(page: ModelPage, name: &str) -> Value {
    const DATE: &str = "2025-01-01T00:00:00Z";
    match page {
        ModelPage::Gemini => json!({
            "name": format!("models/{name}"),
            "version": "sim",
            "displayName": name,
            "inputTokenLimit": 1_000_000,
            "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
        }),
        ModelPage::Ollama => json!({
            "name": name,
            "model": name,
            "modified_at": DATE,
            "size": 0,
            "digest": "sim",
            "details": { "parent_model": "", "format": "sim", "family": "sim", "families": ["sim"],
                "parameter_size": "0B", "quantization_level": "none" },
            "model_info": { "general.architecture": "sim" },
            "capabilities": ["completion", "tools", "thinking"],
        }),
        ModelPage::Anthropic => {
            json!({ "type": "model", "id": name, "display_name": name, "created_at": DATE })
        }
        ModelPage::Cohere => json!({
            "name": name,
            "endpoints": ["chat"],
            "finetuned": false,
            "context_length": 256_000,
            "is_deprecated": false,
        }),
        ModelPage::Openai | ModelPage::Codex => json!({
            "id": name,
            "object": "model",
            "created": 1_735_689_600,
            "owned_by": "sim",
            // Mistral's SDK requires these.
            "type": "base",
            "capabilities": { "completion_chat": true, "function_calling": true },
        }),
    }
}
