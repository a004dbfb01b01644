//! Requests that the gateway does not understand, passed on to a provider: bytes in, bytes
//! out, with the provider's key.

use aside_core::wire::{Destination, http_get};
use aside_engine::http::{ForwardedRequest, sent_path};
use axum::body::Body;
use bytes::Bytes;

use crate::config::Target;
use crate::error_response::{ErrorKind, GatewayError, GatewayResponse};
use crate::forwarded_headers::{forwarded_headers, reply_headers};
use crate::gateway::RequestContext;
use crate::provider_error::{ReadableError, is_compressed};
use crate::relay::{RelayFraming, relay};
use crate::request_body::read_bytes;
use crate::route::percent_decode;
use crate::same_protocol::{no_key, with_query};

/// The ends of paths that are served elsewhere, and where.
const SERVED: [(&str, &str); 6] = [
    ("/chat/completions", "/v1/chat/completions"),
    ("/responses", "/v1/responses"),
    ("/messages", "/v1/messages"),
    (":generateContent", "/v1beta/models/MODEL:generateContent"),
    (":streamGenerateContent", "/v1beta/models/MODEL:streamGenerateContent"),
    ("/api/chat", "/api/chat"),
];

/// The last words of paths at which providers generate something, or let others do so, and which are not served here.
/// The models and limits of a key cannot be applied to them.
const GENERATING: [&str; 42] = [
    "batch",
    "batches",
    "batchgeneratecontent",
    "chat",
    "client_secrets",
    "compact",
    "complete",
    "completion",
    "completions",
    "conversations",
    "converse",
    "converse-stream",
    "edits",
    "generate",
    "generate_stream",
    "generateanswer",
    "generatemessage",
    "generatetext",
    "generations",
    "infill",
    "interactions",
    "invocations",
    "invoke",
    "invoke-with-response-stream",
    "jobs",
    "model-invocation-job",
    "predict",
    "predictlongrunning",
    "rawpredict",
    "realtime",
    "remix",
    "runs",
    "serverstreamingpredict",
    "sessions",
    "speech",
    "streamrawpredict",
    "threads",
    "transcription_sessions",
    "transcriptions",
    "translations",
    "variations",
    "videos",
];

fn generates(rest: &str) -> bool {
    let path = rest.trim_end_matches('/').to_ascii_lowercase();
    path.rsplit(['/', ':']).next().is_some_and(|word| GENERATING.contains(&word))
}

/// Where a path is served instead. Servers may ignore a slash at the end, and case.
fn served_elsewhere(rest: &str) -> Option<&'static str> {
    let path = rest.trim_end_matches('/').to_ascii_lowercase();
    SERVED.iter().find(|(end, _)| path.ends_with(&end.to_ascii_lowercase())).map(|(_, served)| *served)
}

/// Whether a provider reads the path as written here. Otherwise it could reach what is served elsewhere, past the
/// limits of the key. An empty last segment is a slash at the end.
fn is_plain_path(rest: &str) -> bool {
    let is_special = |letter: char| letter.is_control() || matches!(letter, '%' | '?' | '#' | '\\' | ';');
    let is_plain_segment = |segment: &str| !matches!(segment, "" | "." | "..") && segment.trim() == segment;
    let path = rest.strip_prefix('/').unwrap_or(rest);
    let path = path.strip_suffix('/').unwrap_or(path);
    !path.contains(is_special) && path.split('/').all(is_plain_segment)
}

impl RequestContext {
    pub(crate) async fn pass(&self, provider: &str, rest: &str, body: Body) -> Result<GatewayResponse, GatewayError> {
        if !is_plain_path(rest) {
            return Err(GatewayError::bad_request(
                "a path below /pass has no empty, `.` or `..` segments, no escapes, and no space around a segment",
            ));
        }
        if let Some(served) = served_elsewhere(rest) {
            let message = format!("replies are not served below /pass; use {served}");
            return Err(GatewayError::new(ErrorKind::NotFound, message));
        }
        if self.caller.has_models_or_limits() && generates(rest) {
            let message = format!(
                "the key has models or limits, which cannot be applied to `{rest}`; use /v1/chat/completions, \
                 /v1/responses or /v1/messages, or a key without models and limits"
            );
            return Err(GatewayError::new(ErrorKind::NotFound, message));
        }
        if !self.caller.may_pass_to(provider) {
            let message = format!("the key has no pass = [\"{provider}\"]");
            return Err(GatewayError::new(ErrorKind::NotFound, message));
        }
        let target = self.config.target(&format!("{provider}/*"), &self.gateway.simulator).await?;
        let endpoint = &target.endpoint;
        let root = root_of(&endpoint.base_url).ok_or_else(|| GatewayError::bad_request("the provider has no URL"))?;
        let key = endpoint.valid_key().await.map_err(|error| no_key(&target, &error))?;
        let to = Destination { base_url: root, ..endpoint.destination(key.as_ref()) };
        let (url, own) = http_get(&with_query(rest, &self.query), &to);
        // What was checked above is what the provider gets.
        if !is_sent_as(&url, rest) {
            return Err(GatewayError::bad_request("the path below /pass would reach the provider as another one"));
        }
        self.relay_raw(&target, &url, own, body).await
    }

    /// Sends the client's request to a provider as it is, with these headers, and passes the answer on.
    pub(crate) async fn relay_raw(
        &self,
        target: &Target,
        url: &str,
        own: Vec<(String, String)>,
        body: Body,
    ) -> Result<GatewayResponse, GatewayError> {
        let mut headers = forwarded_headers(&self.headers);
        headers.retain(|(name, _)| !own.iter().any(|(known, _)| known == name));
        headers.extend(own);
        if let Some(encoding) = self.headers.get("content-encoding").and_then(|value| value.to_str().ok()) {
            headers.push(("content-encoding".to_owned(), encoding.to_owned()));
        }
        let bytes = read_bytes(body, &self.headers, self.config.serve.max_body).await?;
        let request = ForwardedRequest { method: &self.method, url, headers: &headers, body: Bytes::from(bytes) };
        let failed = |error: aside_engine::http::CallError| {
            let what = target.redactor.clean(&error.to_string()).into_owned();
            GatewayError::new(ErrorKind::UpstreamUnreachable, what)
        };
        let mut reply = self.config.http().forward(request).await.map_err(failed)?;
        let mut keys = target.redactor.stream();
        if reply.status() >= 400 && is_compressed(&reply) {
            return ReadableError::read(reply, keys).await.map(ReadableError::into_response);
        }
        let (mut relay, body) = relay(RelayFraming::Plain, self.config.serve.keep_alive);
        let mut answer = GatewayResponse::new(body);
        *answer.status_mut() = reply.status().try_into().unwrap_or(axum::http::StatusCode::BAD_GATEWAY);
        answer.headers_mut().extend(reply_headers(&reply, &mut keys));
        let http = self.config.http().clone();
        tokio::spawn(async move {
            loop {
                let Ok(next) = relay.wait_for(reply.next_bytes(&http)).await else { return };
                let bytes = match &next {
                    Ok(Some(bytes)) => keys.pass(bytes.clone()),
                    Ok(None) | Err(_) => keys.finish().into(),
                };
                if relay.send(bytes).await.is_err() {
                    return;
                }
                match next {
                    Ok(Some(_)) => (),
                    Ok(None) => return,
                    Err(error) => return relay.abort(&error.what),
                }
            }
        });
        Ok(answer)
    }
}

/// Whether a request for the URL has this path, which is not escaped.
fn is_sent_as(url: &str, path: &str) -> bool {
    sent_path(url).is_ok_and(|sent| percent_decode(&sent) == path)
}

/// Scheme, host and port of a URL.
fn root_of(url: &str) -> Option<&str> {
    let start = url.find("://")? + 3;
    let end = url.get(start..)?.find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    url.get(..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g4_a_pass_path_starts_at_the_host() {
        assert_eq!(root_of("https://api.example:8443/v1?x=1"), Some("https://api.example:8443"));
        assert_eq!(root_of("http://127.0.0.1:1"), Some("http://127.0.0.1:1"));
        assert_eq!(root_of("nothing"), None);
    }

    #[test]
    fn g8_replies_cannot_be_had_below_pass_by_another_spelling() {
        let spellings = [
            "/v1/chat/completions",
            "/v1/chat/completions/",
            "/v1/chat/completions?",
            "/v1/chat/completions#",
            "/v1/chat/completions;x",
            "/v1/chat/./completions",
            "/v1/chat/x/../completions",
            "/v1/chat//completions",
            "/v1/chat/%2e/completions",
            "/v1\\chat\\completions",
            "/v1/Chat/Completions",
            "/v1beta/models/m:GenerateContent",
            "/v1/messages\r",
            "/v1/messages ",
            "/v1/chat/completions  /",
            "/v1/chat/completions/ ",
            "/v1/chat /completions",
            "/v1/chat/completions\u{a0}",
            "/v1beta/models/m:generateContent\u{3000}",
        ];
        for path in spellings {
            assert!(!is_plain_path(path) || served_elsewhere(path).is_some(), "{path}");
        }
        for path in ["/v1/files", "/v1/files/", "/v1/files/file-1/content", "/v1/models/a:countTokens", "/v1/my file"] {
            assert!(is_plain_path(path) && served_elsewhere(path).is_none() && !generates(path), "{path}");
        }
    }

    #[test]
    fn g8_a_path_is_sent_as_it_was_checked() {
        for path in ["/v1/files", "/v1/files/", "/v1/my file/x", "/v1/caf\u{e9}", "/v1/a\"b<c>|{d}"] {
            assert!(is_sent_as(&format!("http://h{path}?q=a b"), path), "{path}");
        }
        for path in ["/v1/messages ", "/v1/mess\tages", "/v1/x/../messages", "/v1/messages?a", "/v1\\messages"] {
            assert!(!is_sent_as(&format!("http://h{path}"), path), "{path}");
        }
    }

    #[test]
    fn g11_paths_that_generate_something_are_recognised() {
        for path in [
            "/v1/completions",
            "/v1/Completions/",
            "/api/generate",
            "/v1/batches",
            "/v1/messages/batches",
            "/v1/responses/compact",
            "/v1beta/models/m:batchGenerateContent",
            "/v1/projects/p/models/m:streamRawPredict",
            "/model/m/invoke-with-response-stream",
            "/v2/chat",
        ] {
            assert!(generates(path), "{path}");
        }
        for path in ["/v1/embeddings", "/v1/batches/batch_1", "/v1beta/models/m:embedContent", "/v1/rerank"] {
            assert!(!generates(path), "{path}");
        }
    }
}
