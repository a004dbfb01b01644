//! Maps paths to protocols. Any prefix before the known part of a path is allowed.

use aside_core::protocol::Protocol;
use percent_encoding::percent_decode_str;

/// The target of a request, from its method and path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    About,
    /// An empty response, for clients that only check whether a server is running.
    Alive,
    /// The model list in this protocol's format.
    Models(ModelPage),
    /// One model in this protocol's format.
    Model(ModelPage, String),
    /// Ollama's version endpoint, which clients use to detect it.
    Version,
    /// The number of tokens of a request.
    CountTokens {
        protocol: Protocol,
        /// Set if the path names the model.
        model: Option<String>,
    },
    Generate {
        protocol: Protocol,
        /// Set if the path names the model.
        model: Option<String>,
        /// Set if the path decides it.
        delivery: Option<Delivery>,
    },
    /// A held response, by its id.
    Response(ResponseAction, String),
    /// A connection that the simulator does not upgrade; clients then use plain HTTP.
    WebSocket,
    /// The newest receipts, or the one with this id.
    Receipts(Option<String>),
    /// Not served. Its error has the format of this protocol.
    Unknown(Protocol),
}

/// The formats of model lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelPage {
    Openai,
    Anthropic,
    Gemini,
    Ollama,
    Cohere,
    /// Codex asks for a catalogue of its own.
    Codex,
}

/// What to do with a held response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseAction {
    Fetch,
    FetchInput,
    Delete,
}

/// What a route depends on besides method, path and query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClientHeaders {
    /// The client sends Anthropic's headers: two protocols share the path of the model
    /// list.
    pub(crate) anthropic: bool,
    /// The client is Cohere's SDK, for the same reason.
    pub(crate) cohere: bool,
    /// The client asks for a WebSocket.
    pub(crate) upgrade: bool,
}

impl ClientHeaders {
    pub(crate) fn of(headers: &[(String, String)]) -> ClientHeaders {
        let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let is_cohere = |name: &str| header(name).is_some_and(|value| value.to_lowercase().contains("cohere"));
        ClientHeaders {
            anthropic: header("anthropic-version").is_some(),
            cohere: is_cohere("x-fern-sdk-name") || is_cohere("user-agent"),
            upgrade: header("upgrade").is_some_and(|value| value.eq_ignore_ascii_case("websocket")),
        }
    }
}

/// How the reply is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Streamed,
    Whole,
    /// One body: a list with the whole reply as its only element.
    WholeInList,
}

/// The path of each protocol; clients may put a prefix before it.
pub(crate) fn path(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::OpenaiChat => "/v1/chat/completions",
        Protocol::OpenaiResponses => "/v1/responses",
        Protocol::Anthropic => "/v1/messages",
        Protocol::Gemini => "/v1beta/models/MODEL:streamGenerateContent",
        Protocol::Ollama => "/api/chat",
        Protocol::Bedrock => "/model/MODEL/converse-stream",
        Protocol::Cohere => "/v2/chat",
    }
}

impl Route {
    pub(crate) fn of(method: &str, path: &str, query: &str, client: ClientHeaders) -> Route {
        // Clients write `%3A` and the like in model names. Broken escapes stay text.
        let path = percent_decode_str(path).decode_utf8_lossy();
        let path = path.trim_end_matches('/');
        let route = match method {
            "GET" if client.upgrade => Some(Route::WebSocket),
            "GET" | "HEAD" => route_get(path, query, client),
            "POST" => route_post(path, query),
            "DELETE" => held_response(path, method),
            _ => None,
        };
        route.unwrap_or(Route::Unknown(error_format(path, client)))
    }
}

/// The protocol whose error format fits a path that is not served.
fn error_format(path: &str, client: ClientHeaders) -> Protocol {
    let has = |part: &str| path.contains(part);
    match () {
        () if has("/messages") => Protocol::Anthropic,
        () if has("/v1beta/") && !has("/openai/") => Protocol::Gemini,
        // OpenRouter has `/api/v1`.
        () if has("/api/") && !has("/api/v1/") => Protocol::Ollama,
        () if has("/model/") => Protocol::Bedrock,
        () if has("/v2/") || client.cohere => Protocol::Cohere,
        () if has("/responses") => Protocol::OpenaiResponses,
        () if client.anthropic => Protocol::Anthropic,
        () => Protocol::OpenaiChat,
    }
}

fn route_get(path: &str, query: &str, client: ClientHeaders) -> Option<Route> {
    let page = match () {
        () if path.contains("/v1beta/models") => ModelPage::Gemini,
        () if client.anthropic => ModelPage::Anthropic,
        () if client.cohere => ModelPage::Cohere,
        () if query.split('&').any(|pair| pair.starts_with("client_version=")) => ModelPage::Codex,
        () => ModelPage::Openai,
    };
    match path {
        "" => Some(Route::About),
        "/aside/requests" => Some(Route::Receipts(None)),
        _ if path.ends_with("/models") => Some(Route::Models(page)),
        _ if path.ends_with("/api/tags") || path.ends_with("/api/ps") => Some(Route::Models(ModelPage::Ollama)),
        _ if path.ends_with("/api/version") => Some(Route::Version),
        _ if path.ends_with("/api/hello") => Some(Route::Alive),
        _ => {
            let receipt = path.strip_prefix("/aside/requests/").map(|id| Route::Receipts(Some(id.to_owned())));
            let model = || path.split_once("/models/").map(|(_, name)| Route::Model(page, name.to_owned()));
            receipt.or_else(|| held_response(path, "GET")).or_else(model)
        }
    }
}

/// `/v1/responses/ID` and below.
fn held_response(path: &str, method: &str) -> Option<Route> {
    let (_, rest) = path.split_once("/responses/")?;
    match (method, rest.split_once('/')) {
        ("GET", None) => Some(Route::Response(ResponseAction::Fetch, rest.to_owned())),
        ("GET", Some((id, "input_items"))) => Some(Route::Response(ResponseAction::FetchInput, id.to_owned())),
        ("DELETE", None) => Some(Route::Response(ResponseAction::Delete, rest.to_owned())),
        _ => None,
    }
}

fn route_post(path: &str, query: &str) -> Option<Route> {
    let generate = |protocol| Some(Route::Generate { protocol, model: None, delivery: None });
    let count = |protocol| Some(Route::CountTokens { protocol, model: None });
    let named = |protocol, model: &str, delivery| {
        Some(Route::Generate { protocol, model: Some(model.to_owned()), delivery: Some(delivery) })
    };
    if let Some((_, rest)) = path.split_once("/models/") {
        let listed = !query.split('&').any(|pair| pair == "alt=sse");
        return match rest.rsplit_once(':') {
            Some((model, "generateContent")) => named(Protocol::Gemini, model, Delivery::Whole),
            Some((model, "streamGenerateContent")) if listed => named(Protocol::Gemini, model, Delivery::WholeInList),
            Some((model, "streamGenerateContent")) => named(Protocol::Gemini, model, Delivery::Streamed),
            Some((model, "countTokens")) => {
                Some(Route::CountTokens { protocol: Protocol::Gemini, model: Some(model.to_owned()) })
            }
            _ => None,
        };
    }
    if let Some((_, rest)) = path.split_once("/model/") {
        let (model, action) = rest.rsplit_once('/')?;
        return match action {
            "converse-stream" => named(Protocol::Bedrock, model, Delivery::Streamed),
            "converse" => named(Protocol::Bedrock, model, Delivery::Whole),
            "count-tokens" => Some(Route::CountTokens { protocol: Protocol::Bedrock, model: Some(model.to_owned()) }),
            _ => None,
        };
    }
    match path {
        _ if path.ends_with("/chat/completions") => generate(Protocol::OpenaiChat),
        _ if path.ends_with("/responses/input_tokens") => count(Protocol::OpenaiResponses),
        _ if path.ends_with("/responses") => generate(Protocol::OpenaiResponses),
        _ if path.ends_with("/v1/messages/count_tokens") => count(Protocol::Anthropic),
        _ if path.ends_with("/v1/messages") => generate(Protocol::Anthropic),
        _ if path.ends_with("/api/chat") => generate(Protocol::Ollama),
        // The body names the model.
        _ if path.ends_with("/api/show") => Some(Route::Model(ModelPage::Ollama, String::new())),
        _ if path.ends_with("/v2/chat") => generate(Protocol::Cohere),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x1_every_protocol_has_its_usual_path() {
        let generate = |protocol| Route::Generate { protocol, model: None, delivery: None };
        let named = |protocol, model: &str, how| Route::Generate {
            protocol,
            model: Some(model.to_owned()),
            delivery: Some(how),
        };
        #[rustfmt::skip]
        let cases = [
            ("POST", "/chat/completions",                                     "",        generate(Protocol::OpenaiChat)),
            ("POST", "/v1/chat/completions",                                  "",        generate(Protocol::OpenaiChat)),
            ("POST", "/api/v1/chat/completions/",                             "",        generate(Protocol::OpenaiChat)),
            ("POST", "/v1/responses",                                         "",        generate(Protocol::OpenaiResponses)),
            ("POST", "/v1/messages",                                          "beta=1",  generate(Protocol::Anthropic)),
            ("POST", "/anthropic/v1/messages",                                "",        generate(Protocol::Anthropic)),
            ("POST", "/api/chat",                                             "",        generate(Protocol::Ollama)),
            ("POST", "/v2/chat",                                              "",        generate(Protocol::Cohere)),
            ("POST", "/v1beta/models/gemini:tool-loop:streamGenerateContent", "alt=sse", named(Protocol::Gemini, "gemini:tool-loop", Delivery::Streamed)),
            ("POST", "/v1beta/models/gemini:streamGenerateContent",           "",        named(Protocol::Gemini, "gemini", Delivery::WholeInList)),
            ("POST", "/v1beta/models/gemini:generateContent",                 "",        named(Protocol::Gemini, "gemini", Delivery::Whole)),
            ("POST", "/model/bedrock%3Athoughts%203/converse-stream",         "",        named(Protocol::Bedrock, "bedrock:thoughts 3", Delivery::Streamed)),
            ("POST", "/model/a%+1%zz%2/converse",                             "",        named(Protocol::Bedrock, "a%+1%zz%2", Delivery::Whole)),
            ("POST", "/model/bedrock/converse",                               "",        named(Protocol::Bedrock, "bedrock", Delivery::Whole)),
            ("POST", "/v1/embeddings",                                        "",        Route::Unknown(Protocol::OpenaiChat)),
            ("GET",  "/",                                                     "",        Route::About),
            ("GET",  "/v1/models",                                            "",        Route::Models(ModelPage::Openai)),
            ("GET",  "/v1beta/models",                                        "",        Route::Models(ModelPage::Gemini)),
            ("GET",  "/api/tags",                                             "",        Route::Models(ModelPage::Ollama)),
            ("GET",  "/api/version",                                          "",        Route::Version),
            ("GET",  "/v1/chat/completions",                                  "",        Route::Unknown(Protocol::OpenaiChat)),
            ("POST", "/v1/messages/batches",                                  "",        Route::Unknown(Protocol::Anthropic)),
            ("POST", "/v1beta/models/gemini:embedContent",                    "",        Route::Unknown(Protocol::Gemini)),
            ("POST", "/api/generate",                                         "",        Route::Unknown(Protocol::Ollama)),
            ("POST", "/model/bedrock/invoke",                                 "",        Route::Unknown(Protocol::Bedrock)),
            ("POST", "/v2/rerank",                                            "",        Route::Unknown(Protocol::Cohere)),
            ("POST", "/v1/messages/count_tokens",                             "",        Route::CountTokens { protocol: Protocol::Anthropic, model: None }),
            ("POST", "/v1beta/models/gemini:countTokens",                     "",        Route::CountTokens { protocol: Protocol::Gemini, model: Some("gemini".into()) }),
            ("GET",  "/v1/models/gpt-5.6",                                    "",        Route::Model(ModelPage::Openai, "gpt-5.6".into())),
            ("GET",  "/v1/models",                                            "client_version=1", Route::Models(ModelPage::Codex)),
            ("GET",  "/v1/responses/resp_1",                                  "",        Route::Response(ResponseAction::Fetch, "resp_1".into())),
            ("GET",  "/v1/responses/resp_1/input_items",                      "",        Route::Response(ResponseAction::FetchInput, "resp_1".into())),
            ("DELETE", "/v1/responses/resp_1",                                "",        Route::Response(ResponseAction::Delete, "resp_1".into())),
            ("GET",  "/aside/requests",                                       "",        Route::Receipts(None)),
            ("HEAD", "/api/hello",                                            "",        Route::Alive),
        ];
        for (method, path, query, route) in cases {
            assert_eq!(Route::of(method, path, query, ClientHeaders::default()), route, "{method} {path}");
        }
        assert_eq!(
            Route::of("GET", "/v1/models", "", ClientHeaders { anthropic: true, ..ClientHeaders::default() }),
            Route::Models(ModelPage::Anthropic)
        );
    }
}
