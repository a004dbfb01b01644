//! An HTTP client for rmcp that reads no answer without an end.
//!
//! rmcp's own bounds an event of a stream, but reads a whole body into memory
//! however long it is. So a POST is done here, and the rest is left to it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{Client, Error, RequestBuilder, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

use crate::limited::{Exceeded, MOST_BYTES};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";

#[derive(Debug, Clone)]
pub(crate) struct BoundedClient {
    pub(crate) client: Client,
    pub(crate) exceeded: Exceeded,
}

type Failure = StreamableHttpError<Error>;

impl BoundedClient {
    fn request(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> RequestBuilder {
        let mut request = self.client.post(uri).header(ACCEPT, [EVENTS, JSON].join(", "));
        if let Some(auth) = auth {
            request = request.bearer_auth(auth);
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        request.json(message)
    }
}

impl StreamableHttpClient for BoundedClient {
    type Error = Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let wants_answer = matches!(message, JsonRpcMessage::Request(_));
        let request = self.request(&uri, &message, session_id.as_deref(), auth_header, custom_headers);
        let response = request.send().await.map_err(StreamableHttpError::Client)?;
        let status = response.status();
        if let (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, Some(wanted)) =
            (status, text_of(response.headers(), &WWW_AUTHENTICATE))
        {
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(wanted)));
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session_id.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = text_of(response.headers(), &HeaderName::from_static(SESSION));
        let kind = text_of(response.headers(), &CONTENT_TYPE);
        let is = |wanted: &str| kind.as_deref().is_some_and(|kind| kind.starts_with(wanted));
        if !status.is_success() {
            return failed(response, is(JSON), session).await;
        }
        if is(EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(events(response, self.exceeded.clone()), session));
        }
        if !is(JSON) {
            let is_empty = response.content_length() == Some(0);
            return match is_empty && !wants_answer {
                true => Ok(StreamableHttpPostResponse::Accepted),
                false => Err(StreamableHttpError::UnexpectedContentType(kind)),
            };
        }
        match (serde_json::from_slice(&whole(response).await?), wants_answer) {
            (Ok(answer), _) => Ok(StreamableHttpPostResponse::Json(answer, session)),
            // Nothing was asked, so nothing is missing.
            (Err(_), false) => Ok(StreamableHttpPostResponse::Accepted),
            (Err(error), true) => Err(StreamableHttpError::Deserialize(error)),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        self.client.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.client
            .get_stream_with_max_sse_event_size(uri, session_id, last_event_id, auth_header, custom_headers, MOST_BYTES)
            .await
    }
}

fn text_of(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// A refusal, in the server's words where it has some.
async fn failed(
    response: Response,
    is_json: bool,
    session: Option<String>,
) -> Result<StreamableHttpPostResponse, Failure> {
    let status = response.status();
    let wait = text_of(response.headers(), &RETRY_AFTER);
    let is_for_keys = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if is_json
        && !is_for_keys
        && let Ok(refusal @ JsonRpcMessage::Error(_)) =
            serde_json::from_slice::<ServerJsonRpcMessage>(&whole(response).await?)
    {
        return Ok(StreamableHttpPostResponse::Json(refusal, session));
    }
    match status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
        true => Err(HttpStatusError::new(status.as_u16(), wait).into()),
        false => Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("HTTP {status}")))),
    }
}

/// The body, unless it is too long.
async fn whole(mut response: Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(StreamableHttpError::Client)? {
        body.extend_from_slice(&piece);
        if body.len() > MOST_BYTES {
            return Err(StreamableHttpError::Io(too_long()));
        }
    }
    Ok(body)
}

/// The events of one answer. All of them together are bounded, since they lead
/// to one result.
fn events(response: Response, exceeded: Exceeded) -> BoxStream<'static, Result<Sse, SseError>> {
    let mut seen = 0_usize;
    let bounded = response.bytes_stream().map_err(io::Error::other).map(move |piece| {
        let piece = piece?;
        seen = seen.saturating_add(piece.len());
        if seen > MOST_BYTES {
            // The error ends the connection and is not passed on.
            exceeded.set();
            return Err(too_long());
        }
        Ok(piece)
    });
    SseStream::from_bytes_stream(bounded).boxed()
}

fn too_long() -> io::Error {
    io::Error::other(format!("it sent an answer of more than {MOST_BYTES} bytes"))
}
