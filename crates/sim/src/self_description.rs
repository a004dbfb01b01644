//! The pages that describe the simulator itself.

use aside_core::dialect::{Dialect, Dialects};
use aside_core::protocol::Protocol;
use serde_json::{Value, json};

use crate::route::path;
use crate::script::behaviour_names;

/// The help page at `/`.
pub(crate) fn page() -> String {
    let mut out =
        "aside sim: a simulator of LLM providers. No model is asked; nothing leaves this machine.\n\n".to_owned();
    for protocol in Protocol::ALL {
        out.push_str(&format!("{:<17} POST {}\n", protocol.as_str(), path(protocol)));
    }
    out.push_str("\nmodels     GET /v1/models; a model is DIALECT[:BEHAVIOUR], any key is accepted\n");
    out.push_str(&format!("behaviours {}\n", behaviour_names()));
    out.push_str("           or a line `sim: NAME [ARG] [key=value…]` in the last user message\n");
    out
}

pub(crate) fn version() -> String {
    json!({ "version": concat!(env!("CARGO_PKG_VERSION"), "-sim") }).to_string()
}

/// The model list in this protocol's format, with every dialect that the protocol can
/// reach.
pub(crate) fn models(protocol: Protocol, dialects: &Dialects) -> String {
    let listed = |known: &[Protocol], model: fn(&Dialect) -> Value| -> Value {
        dialects.iter().filter(|dialect| known.contains(&dialect.protocol)).map(model).collect()
    };
    let list = match protocol {
        Protocol::Gemini => {
            let models = listed(&[protocol], |dialect| {
                json!({
                    "name": format!("models/{}", dialect.id),
                    "displayName": dialect.id,
                    "supportedGenerationMethods": ["generateContent", "streamGenerateContent"],
                })
            });
            json!({ "models": models })
        }
        Protocol::Ollama => {
            json!({ "models": listed(&[protocol], |dialect| json!({ "name": dialect.id, "model": dialect.id })) })
        }
        Protocol::Anthropic => {
            let models =
                listed(&[protocol], |dialect| json!({ "type": "model", "id": dialect.id, "display_name": dialect.id }));
            json!({ "data": models, "has_more": false })
        }
        Protocol::OpenaiChat | Protocol::OpenaiResponses | Protocol::Bedrock | Protocol::Cohere => {
            let models =
                listed(&Protocol::ALL, |dialect| json!({ "id": dialect.id, "object": "model", "owned_by": "sim" }));
            json!({ "object": "list", "data": models })
        }
    };
    list.to_string()
}
