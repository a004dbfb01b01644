//! An HTTP client for rmcp that limits the size of responses.
//!
//! rmcp's own client limits single events of a stream, but reads a whole body into memory. So this client
//! handles POST itself and passes the other requests on.

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

use crate::bounded_reader::{LimitExceeded, MAX_BYTES, ServerLimit};
use crate::nesting::Nesting;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";

#[derive(Debug, Clone)]
pub(crate) struct BoundedHttpClient {
    pub(crate) client: Client,
    pub(crate) exceeded: LimitExceeded,
}

type Failure = StreamableHttpError<Error>;

impl BoundedHttpClient {
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

impl StreamableHttpClient for BoundedHttpClient {
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
        if let (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, Some(challenge)) =
            (status, header_text(response.headers(), &WWW_AUTHENTICATE))
        {
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)));
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session_id.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = header_text(response.headers(), &HeaderName::from_static(SESSION));
        let kind = header_text(response.headers(), &CONTENT_TYPE);
        let is = |challenge: &str| kind.as_deref().is_some_and(|kind| kind.starts_with(challenge));
        if !status.is_success() {
            return error_response(response, is(JSON), session).await;
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
        match (serde_json::from_slice(&read_body(response).await?), wants_answer) {
            (Ok(answer), _) => Ok(StreamableHttpPostResponse::Json(answer, session)),
            // A notification needs no response.
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
            .get_stream_with_max_sse_event_size(uri, session_id, last_event_id, auth_header, custom_headers, MAX_BYTES)
            .await
    }
}

fn header_text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// An error response, with the server's own message if it has one.
async fn error_response(
    response: Response,
    is_json: bool,
    session: Option<String>,
) -> Result<StreamableHttpPostResponse, Failure> {
    let status = response.status();
    let wait = header_text(response.headers(), &RETRY_AFTER);
    let is_for_keys = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if is_json
        && !is_for_keys
        && let Ok(refusal @ JsonRpcMessage::Error(_)) =
            serde_json::from_slice::<ServerJsonRpcMessage>(&read_body(response).await?)
    {
        return Ok(StreamableHttpPostResponse::Json(refusal, session));
    }
    match status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
        true => Err(HttpStatusError::new(status.as_u16(), wait).into()),
        false => Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("HTTP {status}")))),
    }
}

/// Reads the body, up to the limit.
async fn read_body(mut response: Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(StreamableHttpError::Client)? {
        body.extend_from_slice(&piece);
        if body.len() > MAX_BYTES {
            return Err(StreamableHttpError::Io(too_long()));
        }
    }
    Ok(body)
}

/// The events of one response. Their total size is limited, because they lead to one result.
fn events(response: Response, exceeded: LimitExceeded) -> BoxStream<'static, Result<Sse, SseError>> {
    let mut seen = 0_usize;
    let too_deep = exceeded.clone();
    let bounded = response.bytes_stream().map_err(io::Error::other).map(move |piece| {
        let piece = piece?;
        seen = seen.saturating_add(piece.len());
        if seen > MAX_BYTES {
            // rmcp closes the connection and does not report this error.
            exceeded.set(ServerLimit::Length);
            return Err(too_long());
        }
        Ok(piece)
    });
    let shallow = move |event: Result<Sse, SseError>| {
        let data = event.as_ref().ok().and_then(|event| event.data.as_deref()).unwrap_or_default();
        if Nesting::default().is_exceeded_by(data.as_bytes()) {
            too_deep.set(ServerLimit::Nesting);
            return Err(SseError::Body(ServerLimit::Nesting.to_string().into()));
        }
        event
    };
    SseStream::from_bytes_stream(bounded).map(shallow).boxed()
}

fn too_long() -> io::Error {
    io::Error::other(format!("the response exceeds {MAX_BYTES} bytes"))
}
