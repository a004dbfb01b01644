//! Maps paths to protocols. Any prefix before the known part of a path is allowed.

use aside_core::protocol::Protocol;

/// The target of a request, from its method and path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    About,
    /// The model list in this protocol's format.
    Models(Protocol),
    /// Ollama's version endpoint, which clients use to detect it.
    Version,
    Generate {
        protocol: Protocol,
        /// Set if the path names the model.
        model: Option<String>,
        /// Set if the path decides it.
        delivery: Option<Delivery>,
    },
    Unknown,
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
    /// `anthropic` tells whether the client sends Anthropic's headers: two protocols
    /// share the path of the model list.
    pub(crate) fn of(method: &str, path: &str, query: &str, anthropic: bool) -> Route {
        let path = percent_decode(path);
        let path = path.trim_end_matches('/');
        match method {
            "GET" | "HEAD" => route_get(path, anthropic),
            "POST" => route_post(path, query),
            _ => Route::Unknown,
        }
    }
}

fn route_get(path: &str, anthropic: bool) -> Route {
    match path {
        "" => Route::About,
        _ if path.ends_with("/v1beta/models") => Route::Models(Protocol::Gemini),
        _ if path.ends_with("/models") && anthropic => Route::Models(Protocol::Anthropic),
        _ if path.ends_with("/models") => Route::Models(Protocol::OpenaiChat),
        _ if path.ends_with("/api/tags") => Route::Models(Protocol::Ollama),
        _ if path.ends_with("/api/version") => Route::Version,
        _ => Route::Unknown,
    }
}

fn route_post(path: &str, query: &str) -> Route {
    let generate = |protocol| Route::Generate { protocol, model: None, delivery: None };
    let named = |protocol, model: &str, delivery| Route::Generate {
        protocol,
        model: Some(model.to_owned()),
        delivery: Some(delivery),
    };
    if let Some((_, rest)) = path.split_once("/models/") {
        let listed = !query.split('&').any(|pair| pair == "alt=sse");
        return match rest.rsplit_once(':') {
            Some((model, "generateContent")) => named(Protocol::Gemini, model, Delivery::Whole),
            Some((model, "streamGenerateContent")) if listed => named(Protocol::Gemini, model, Delivery::WholeInList),
            Some((model, "streamGenerateContent")) => named(Protocol::Gemini, model, Delivery::Streamed),
            _ => Route::Unknown,
        };
    }
    if let Some((_, rest)) = path.split_once("/model/") {
        let stream = rest.strip_suffix("/converse-stream").map(|model| (model, Delivery::Streamed));
        let whole = || rest.strip_suffix("/converse").map(|model| (model, Delivery::Whole));
        return stream.or_else(whole).map_or(Route::Unknown, |(model, how)| named(Protocol::Bedrock, model, how));
    }
    match path {
        _ if path.ends_with("/chat/completions") => generate(Protocol::OpenaiChat),
        _ if path.ends_with("/responses") => generate(Protocol::OpenaiResponses),
        _ if path.ends_with("/v1/messages") => generate(Protocol::Anthropic),
        _ if path.ends_with("/api/chat") => generate(Protocol::Ollama),
        _ if path.ends_with("/v2/chat") => generate(Protocol::Cohere),
        _ => Route::Unknown,
    }
}

/// Decodes `%3A` and the like, which clients write in model names.
fn percent_decode(path: &str) -> String {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *byte == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
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
            ("POST", "/model/bedrock/converse",                               "",        named(Protocol::Bedrock, "bedrock", Delivery::Whole)),
            ("POST", "/v1/embeddings",                                        "",        Route::Unknown),
            ("GET",  "/",                                                     "",        Route::About),
            ("GET",  "/v1/models",                                            "",        Route::Models(Protocol::OpenaiChat)),
            ("GET",  "/v1beta/models",                                        "",        Route::Models(Protocol::Gemini)),
            ("GET",  "/api/tags",                                             "",        Route::Models(Protocol::Ollama)),
            ("GET",  "/api/version",                                          "",        Route::Version),
            ("GET",  "/v1/chat/completions",                                  "",        Route::Unknown),
        ];
        for (method, path, query, route) in cases {
            assert_eq!(Route::of(method, path, query, false), route, "{method} {path}");
        }
        assert_eq!(Route::of("GET", "/v1/models", "", true), Route::Models(Protocol::Anthropic));
    }
}
