//! Which path belongs to which protocol.

use aside_core::protocol::Protocol;
use percent_encoding::percent_decode_str;

/// The target of a request, from its method and path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    Generate {
        protocol: Protocol,
        /// Set if the path names the model.
        model: Option<String>,
        delivery: ReplyDelivery,
    },
    CountTokens {
        protocol: Protocol,
        model: Option<String>,
    },
    Models(ListShape),
    Model(ListShape, String),
    /// The body names the model.
    OllamaModel,
    OllamaVersion,
    /// A response of the Responses API, by its id.
    StoredResponse {
        id: String,
        action: ResponseAction,
    },
    /// A WebSocket request; clients use HTTP instead after a 426.
    WebSocket,
    /// Any other request to a provider, passed on unchanged.
    Pass {
        provider: String,
        rest: String,
    },
    Receipts,
    Receipt(String),
    Alive,
    Ready,
    Metrics,
    /// `GET /`, which Ollama's clients send first.
    Root,
    /// `HEAD /api/hello`
    Hello,
    Unknown(Protocol),
}

/// What to do with a response that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseAction {
    Fetch,
    Delete,
    InputItems,
    Cancel,
}

/// How the reply is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyDelivery {
    /// The body decides.
    AsAsked,
    Streamed,
    Whole,
    /// One body: a list with the whole reply as its only element.
    WholeInList,
}

/// The formats of model lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListShape {
    Openai,
    Anthropic,
    Gemini,
    Ollama,
    Codex,
}

/// What a route depends on besides method and path.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RouteHints<'a> {
    pub(crate) query: &'a str,
    pub(crate) has_anthropic_version: bool,
    pub(crate) wants_web_socket: bool,
}

impl Route {
    pub(crate) fn of(method: &str, path: &str, hints: RouteHints<'_>) -> Route {
        let path = percent_decode(path);
        let path = path.trim_end_matches('/');
        let found = match method {
            _ if path.starts_with("/pass/") => pass(path),
            "GET" | "HEAD" if hints.wants_web_socket && path == "/v1/responses" => Some(Route::WebSocket),
            "GET" | "HEAD" => get(path, hints),
            "POST" => post(path, hints),
            "DELETE" => stored_response(path, ResponseAction::Delete),
            _ => None,
        };
        found.unwrap_or(Route::Unknown(error_shape(path, hints)))
    }

    /// The protocol whose error format the client understands.
    pub(crate) fn error_shape(&self) -> Protocol {
        match self {
            Route::Generate { protocol, .. } | Route::CountTokens { protocol, .. } | Route::Unknown(protocol) => {
                *protocol
            }
            Route::Models(shape) | Route::Model(shape, _) => match shape {
                ListShape::Openai | ListShape::Codex => Protocol::OpenaiChat,
                ListShape::Anthropic => Protocol::Anthropic,
                ListShape::Gemini => Protocol::Gemini,
                ListShape::Ollama => Protocol::Ollama,
            },
            Route::OllamaModel | Route::OllamaVersion => Protocol::Ollama,
            Route::StoredResponse { .. } | Route::WebSocket => Protocol::OpenaiResponses,
            Route::Pass { .. }
            | Route::Receipts
            | Route::Receipt(_)
            | Route::Alive
            | Route::Ready
            | Route::Metrics
            | Route::Root
            | Route::Hello => Protocol::OpenaiChat,
        }
    }
}

fn error_shape(path: &str, hints: RouteHints<'_>) -> Protocol {
    match () {
        () if path.starts_with("/v1/messages") || hints.has_anthropic_version => Protocol::Anthropic,
        () if path.starts_with("/v1beta/") => Protocol::Gemini,
        () if path.starts_with("/api/") => Protocol::Ollama,
        () if path.starts_with("/v1/responses") => Protocol::OpenaiResponses,
        () => Protocol::OpenaiChat,
    }
}

fn get(path: &str, hints: RouteHints<'_>) -> Option<Route> {
    let v1_shape = match () {
        () if hints.has_anthropic_version => ListShape::Anthropic,
        () if hints.query.split('&').any(|pair| pair.starts_with("client_version=")) => ListShape::Codex,
        () => ListShape::Openai,
    };
    match path {
        "" => Some(Route::Root),
        "/healthz" => Some(Route::Alive),
        "/readyz" => Some(Route::Ready),
        "/metrics" => Some(Route::Metrics),
        "/aside/requests" => Some(Route::Receipts),
        "/v1/models" => Some(Route::Models(v1_shape)),
        "/v1beta/models" => Some(Route::Models(ListShape::Gemini)),
        "/api/tags" | "/api/ps" => Some(Route::Models(ListShape::Ollama)),
        "/api/version" => Some(Route::OllamaVersion),
        "/api/hello" => Some(Route::Hello),
        _ => {
            let named = |prefix: &str| path.strip_prefix(prefix).map(str::to_owned);
            let receipt = named("/aside/requests/").map(Route::Receipt);
            let gemini = || named("/v1beta/models/").map(|name| Route::Model(ListShape::Gemini, name));
            let openai = || named("/v1/models/").map(|name| Route::Model(v1_shape, name));
            let stored = || match path.strip_suffix("/input_items") {
                Some(path) => stored_response(path, ResponseAction::InputItems),
                None => stored_response(path, ResponseAction::Fetch),
            };
            receipt.or_else(gemini).or_else(openai).or_else(stored)
        }
    }
}

fn post(path: &str, hints: RouteHints<'_>) -> Option<Route> {
    let generate = |protocol| Some(Route::Generate { protocol, model: None, delivery: ReplyDelivery::AsAsked });
    match path {
        "/v1/chat/completions" => generate(Protocol::OpenaiChat),
        "/v1/responses" => generate(Protocol::OpenaiResponses),
        "/v1/messages" => generate(Protocol::Anthropic),
        "/api/chat" => generate(Protocol::Ollama),
        "/v1/messages/count_tokens" => Some(Route::CountTokens { protocol: Protocol::Anthropic, model: None }),
        "/api/show" => Some(Route::OllamaModel),
        _ => {
            let cancel = path.strip_suffix("/cancel").and_then(|path| stored_response(path, ResponseAction::Cancel));
            cancel.or_else(|| gemini_verb(path, hints))
        }
    }
}

/// `/v1beta/models/MODEL:VERB`, also below `/v1`. The model may contain slashes and colons. Some clients leave out
/// `models/` if it contains a slash.
fn gemini_verb(path: &str, hints: RouteHints<'_>) -> Option<Route> {
    let rest = path.strip_prefix("/v1beta/").or_else(|| path.strip_prefix("/v1/"))?;
    let (named, verb) = rest.rsplit_once(':')?;
    let model = named.strip_prefix("models/").or(named.contains('/').then_some(named));
    let model = model.filter(|model| !model.is_empty())?;
    let model = Some(model.to_owned());
    let generate = |delivery| Route::Generate { protocol: Protocol::Gemini, model: model.clone(), delivery };
    match verb {
        "generateContent" => Some(generate(ReplyDelivery::Whole)),
        "streamGenerateContent" if hints.query.split('&').any(|pair| pair == "alt=sse") => {
            Some(generate(ReplyDelivery::Streamed))
        }
        "streamGenerateContent" => Some(generate(ReplyDelivery::WholeInList)),
        "countTokens" => Some(Route::CountTokens { protocol: Protocol::Gemini, model }),
        _ => None,
    }
}

/// `/v1/responses/ID`
fn stored_response(path: &str, action: ResponseAction) -> Option<Route> {
    let id = path.strip_prefix("/v1/responses/")?;
    (!id.is_empty() && !id.contains('/')).then(|| Route::StoredResponse { id: id.to_owned(), action })
}

fn pass(path: &str) -> Option<Route> {
    let (provider, rest) = path.strip_prefix("/pass/")?.split_once('/')?;
    (!provider.is_empty()).then(|| Route::Pass { provider: provider.to_owned(), rest: format!("/{rest}") })
}

/// Decodes `%2F` and the like, which clients write in model names. Broken escapes stay text.
pub(crate) fn percent_decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g1_every_client_protocol_has_its_paths() {
        let generate = |protocol| Route::Generate { protocol, model: None, delivery: ReplyDelivery::AsAsked };
        let gemini = |model: &str, delivery| Route::Generate {
            protocol: Protocol::Gemini,
            model: Some(model.to_owned()),
            delivery,
        };
        let response = |action| Route::StoredResponse { id: "resp_1".to_owned(), action };
        #[rustfmt::skip]
        let cases = [
            ("POST", "/v1/chat/completions", "", generate(Protocol::OpenaiChat)),
            ("POST", "/v1/responses", "", generate(Protocol::OpenaiResponses)),
            ("POST", "/v1/messages", "beta=true", generate(Protocol::Anthropic)),
            ("POST", "/api/chat", "", generate(Protocol::Ollama)),
            ("POST", "/v1beta/models/sim/gemini:streamGenerateContent", "alt=sse", gemini("sim/gemini", ReplyDelivery::Streamed)),
            ("POST", "/v1beta/models/sim%2Fgemini:tool-loop:streamGenerateContent", "", gemini("sim/gemini:tool-loop", ReplyDelivery::WholeInList)),
            ("POST", "/v1beta/sim/gemini:generateContent", "", gemini("sim/gemini", ReplyDelivery::Whole)),
            ("POST", "/v1beta/gemini-3:generateContent", "", Route::Unknown(Protocol::Gemini)),
            ("POST", "/v1/models/gemini-3:generateContent", "", gemini("gemini-3", ReplyDelivery::Whole)),
            ("POST", "/v1beta/models/a%+1%zz%2:generateContent", "", gemini("a%+1%zz%2", ReplyDelivery::Whole)),
            ("POST", "/v1beta/models/g:countTokens", "", Route::CountTokens { protocol: Protocol::Gemini, model: Some("g".into()) }),
            ("POST", "/v1/messages/count_tokens", "", Route::CountTokens { protocol: Protocol::Anthropic, model: None }),
            ("POST", "/v1/embeddings", "", Route::Unknown(Protocol::OpenaiChat)),
            ("POST", "/v1beta/models/g:embedContent", "", Route::Unknown(Protocol::Gemini)),
            ("POST", "/api/generate", "", Route::Unknown(Protocol::Ollama)),
            ("POST", "/v1/messages/batches", "", Route::Unknown(Protocol::Anthropic)),
            ("POST", "/v1/responses/resp_1/cancel", "", response(ResponseAction::Cancel)),
            ("GET",  "/v1/models", "", Route::Models(ListShape::Openai)),
            ("GET",  "/v1/models", "client_version=0.166", Route::Models(ListShape::Codex)),
            ("GET",  "/v1/models/openai/gpt-5", "", Route::Model(ListShape::Openai, "openai/gpt-5".into())),
            ("GET",  "/v1beta/models", "", Route::Models(ListShape::Gemini)),
            ("GET",  "/api/tags", "", Route::Models(ListShape::Ollama)),
            ("GET",  "/v1/responses/resp_1", "", response(ResponseAction::Fetch)),
            ("GET",  "/v1/responses/resp_1/input_items", "", response(ResponseAction::InputItems)),
            ("DELETE", "/v1/responses/resp_1", "", response(ResponseAction::Delete)),
            ("GET",  "/aside/requests/req_1", "", Route::Receipt("req_1".into())),
            ("PUT",  "/pass/openai/v1/files", "", Route::Pass { provider: "openai".into(), rest: "/v1/files".into() }),
            ("HEAD", "/", "", Route::Root),
        ];
        for (method, path, query, route) in cases {
            let hints = RouteHints { query, ..RouteHints::default() };
            assert_eq!(Route::of(method, path, hints), route, "{method} {path}");
        }
        let anthropic = RouteHints { has_anthropic_version: true, ..RouteHints::default() };
        assert_eq!(Route::of("GET", "/v1/models", anthropic), Route::Models(ListShape::Anthropic));
        let socket = RouteHints { wants_web_socket: true, ..RouteHints::default() };
        assert_eq!(Route::of("GET", "/v1/responses", socket), Route::WebSocket);
    }
}
