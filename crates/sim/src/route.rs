//! Which protocol a path belongs to, whatever stands before it.

use aside_core::protocol::Protocol;

/// What a request is about, from its method and path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    About,
    /// A list of models, as this protocol has it.
    Models(Protocol),
    /// What one asks Ollama to see whether it is there.
    Version,
    Ask {
        protocol: Protocol,
        /// Where the path names it.
        model: Option<String>,
        /// Where the path says it.
        delivery: Option<Delivery>,
    },
    Unknown,
}

/// How a reply goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Streamed,
    Whole,
    /// Whole, as the only element of a list.
    Listed,
}

/// Where each protocol is asked; a client may put a prefix before any of them.
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
    /// `anthropic` says whether the client speaks as one of Anthropic's: two
    /// protocols share a path for their lists.
    pub(crate) fn of(method: &str, path: &str, query: &str, anthropic: bool) -> Route {
        let path = decoded(path);
        let path = path.trim_end_matches('/');
        match method {
            "GET" | "HEAD" => asked_for(path, anthropic),
            "POST" => posted(path, query),
            _ => Route::Unknown,
        }
    }
}

fn asked_for(path: &str, anthropic: bool) -> Route {
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

fn posted(path: &str, query: &str) -> Route {
    let ask = |protocol| Route::Ask { protocol, model: None, delivery: None };
    let named = |protocol, model: &str, delivery| Route::Ask {
        protocol,
        model: Some(model.to_owned()),
        delivery: Some(delivery),
    };
    if let Some((_, rest)) = path.split_once("/models/") {
        let listed = !query.split('&').any(|pair| pair == "alt=sse");
        return match rest.rsplit_once(':') {
            Some((model, "generateContent")) => named(Protocol::Gemini, model, Delivery::Whole),
            Some((model, "streamGenerateContent")) if listed => named(Protocol::Gemini, model, Delivery::Listed),
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
        _ if path.ends_with("/chat/completions") => ask(Protocol::OpenaiChat),
        _ if path.ends_with("/responses") => ask(Protocol::OpenaiResponses),
        _ if path.ends_with("/v1/messages") => ask(Protocol::Anthropic),
        _ if path.ends_with("/api/chat") => ask(Protocol::Ollama),
        _ if path.ends_with("/v2/chat") => ask(Protocol::Cohere),
        _ => Route::Unknown,
    }
}

/// `%3A` and its like, as clients write model names into paths.
fn decoded(path: &str) -> String {
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
        let ask = |protocol| Route::Ask { protocol, model: None, delivery: None };
        let named =
            |protocol, model: &str, how| Route::Ask { protocol, model: Some(model.to_owned()), delivery: Some(how) };
        #[rustfmt::skip]
        let cases = [
            ("POST", "/chat/completions",                                     "",        ask(Protocol::OpenaiChat)),
            ("POST", "/v1/chat/completions",                                  "",        ask(Protocol::OpenaiChat)),
            ("POST", "/api/v1/chat/completions/",                             "",        ask(Protocol::OpenaiChat)),
            ("POST", "/v1/responses",                                         "",        ask(Protocol::OpenaiResponses)),
            ("POST", "/v1/messages",                                          "beta=1",  ask(Protocol::Anthropic)),
            ("POST", "/anthropic/v1/messages",                                "",        ask(Protocol::Anthropic)),
            ("POST", "/api/chat",                                             "",        ask(Protocol::Ollama)),
            ("POST", "/v2/chat",                                              "",        ask(Protocol::Cohere)),
            ("POST", "/v1beta/models/gemini:tool-loop:streamGenerateContent", "alt=sse", named(Protocol::Gemini, "gemini:tool-loop", Delivery::Streamed)),
            ("POST", "/v1beta/models/gemini:streamGenerateContent",           "",        named(Protocol::Gemini, "gemini", Delivery::Listed)),
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
