//! The routes of the server.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aside_front::slash_commands::{LocalCommand, ParsedLine, parse};
use aside_front::{Command, slash_commands};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Path, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::stream;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use crate::frames::{Frame, Position};
use crate::guard::{self, Refusal};
use crate::hub::{CommandRefusal, Tab};
use crate::page_files;
use crate::peer_user::is_other_user;
use crate::secret::{COOKIE_LIFE, WebSecret};
use crate::sessions::{OpenError, Sessions};

/// The longest body of a request.
const MAX_BODY: usize = 16 << 20;
/// How often a comment is sent, to keep the connection alive and to notice that the tab is closed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/// What every route needs.
pub(crate) struct Server {
    pub(crate) listen: SocketAddr,
    pub(crate) secret: Arc<WebSecret>,
    /// A token from the environment, for an address that other machines can reach.
    pub(crate) fixed_token: Option<String>,
    pub(crate) sessions: Arc<Sessions>,
}

pub(crate) fn router(server: Arc<Server>) -> Router {
    Router::new()
        .route("/api/login", post(login))
        .route("/api/sessions", get(list).post(begin))
        .route("/api/sessions/{id}/events", get(events))
        .route("/api/sessions/{id}/commands", post(command))
        .route("/api/sessions/{id}/blocks/{block}", get(block))
        .route("/api/sessions/{id}/entries", get(entries))
        .route("/api/search", get(search))
        .fallback(page_file)
        .layer(middleware::from_fn_with_state(Arc::clone(&server), guarded))
        .with_state(server)
}

/// Refuses requests that do not come from the page, and adds the headers of every response.
async fn guarded(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let checked = guard::check(server.listen, request.method(), request.headers());
    let is_let_in = match Admission::of(&server, &request) {
        Admission::Granted => true,
        Admission::IfOwnUser(peer) => checked.is_ok() && is_own_user(peer, server.listen).await,
        Admission::Refused => false,
    };
    let mut response = match checked {
        Err(refusal @ Refusal::ContentType) => error(StatusCode::UNSUPPORTED_MEDIA_TYPE, refusal.as_str()),
        Err(refusal) => error(StatusCode::FORBIDDEN, refusal.as_str()),
        Ok(()) if is_let_in => next.run(request).await,
        Ok(()) => error(StatusCode::UNAUTHORIZED, "unauthorized"),
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static("same-origin"));
    }
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// Who may use the server. While it is not running, another user can take its port and get the cookie from the browser.
enum Admission {
    Granted,
    /// If this connection belongs to the user who started the server.
    IfOwnUser(SocketAddr),
    Refused,
}

impl Admission {
    fn of(server: &Server, request: &Request) -> Admission {
        let path = request.uri().path();
        if !path.starts_with("/api/") || path == "/api/login" {
            return Admission::Granted;
        }
        if !guard::is_logged_in(&server.secret, server.listen.port(), request.headers()) {
            return Admission::Refused;
        }
        match (&server.fixed_token, request.extensions().get::<ConnectInfo<SocketAddr>>()) {
            // Anyone who has the token may log in, whichever user it is.
            (Some(_), _) => Admission::Granted,
            (None, Some(ConnectInfo(peer))) => Admission::IfOwnUser(*peer),
            (None, None) => Admission::Refused,
        }
    }
}

async fn is_own_user(peer: SocketAddr, listen: SocketAddr) -> bool {
    matches!(blocking(move || is_other_user(peer, listen)).await, Ok(false))
}

fn answer(status: StatusCode, value: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

fn error(status: StatusCode, word: &str) -> Response {
    answer(status, &json!({"error": word}))
}

impl IntoResponse for OpenError {
    fn into_response(self) -> Response {
        match self {
            OpenError::NotFound => error(StatusCode::NOT_FOUND, "not_found"),
            OpenError::TooMany => error(StatusCode::SERVICE_UNAVAILABLE, "too many sessions are open; close a tab"),
            OpenError::Failed(why) => {
                let value = json!({"error": "failed", "what": why.to_string(), "hint": why.hint_text()});
                answer(StatusCode::UNPROCESSABLE_ENTITY, &value)
            }
        }
    }
}

/// Runs work that waits for the disk or for a session on another thread.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Response> {
    tokio::task::spawn_blocking(work).await.map_err(|_| error(StatusCode::INTERNAL_SERVER_ERROR, "failed"))
}

/// The JSON body of a request.
async fn json_body(request: Request) -> Result<Bytes, Response> {
    let body = to_bytes(request.into_body(), MAX_BODY).await;
    body.map_err(|_| error(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"))
}

async fn login(
    State(server): State<Arc<Server>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let body = match json_body(request).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    let value: Value = serde_json::from_slice(&body).unwrap_or_default();
    let token = value.get("token").and_then(Value::as_str).unwrap_or_default();
    let is_fixed = server.fixed_token.as_ref().is_some_and(|fixed| server.secret.is_same(fixed, token));
    let is_accepted = is_fixed || (is_own_user(peer, server.listen).await && server.secret.use_login_token(token));
    if !is_accepted {
        return error(StatusCode::UNAUTHORIZED, "unauthorized");
    }
    let (name, value) = (guard::cookie_name(server.listen.port()), server.secret.cookie());
    let age = COOKIE_LIFE.as_secs();
    let cookie = format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}");
    (StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response()
}

async fn list(State(server): State<Arc<Server>>) -> Response {
    let sessions = Arc::clone(&server.sessions);
    match blocking(move || sessions.list()).await {
        Ok(Ok(value)) => answer(StatusCode::OK, &value),
        Ok(Err(failed)) => failed.into_response(),
        Err(response) => response,
    }
}

async fn begin(State(server): State<Arc<Server>>, request: Request) -> Response {
    let body = match json_body(request).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    let value: Value = match serde_json::from_slice(if body.is_empty() { b"{}" } else { &body }) {
        Ok(value) => value,
        Err(why) => return error(StatusCode::BAD_REQUEST, &format!("the body is not JSON: {why}")),
    };
    let model = value.get("model").and_then(Value::as_str).map(str::to_owned);
    let sessions = Arc::clone(&server.sessions);
    match blocking(move || sessions.begin(model)).await {
        Ok(Ok(id)) => answer(StatusCode::CREATED, &json!({"id": id})),
        Ok(Err(failed)) => failed.into_response(),
        Err(response) => response,
    }
}

async fn events(State(server): State<Arc<Server>>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    let from = headers.get("last-event-id").and_then(|value| value.to_str().ok()).filter(|text| !text.is_empty());
    let from = match from.map(str::parse::<Position>).transpose() {
        Ok(from) => from,
        Err(_) => return error(StatusCode::BAD_REQUEST, "the Last-Event-ID is not ENTRY.BLOCK.BYTES"),
    };
    let sessions = Arc::clone(&server.sessions);
    let hub = match blocking(move || sessions.get(&id)).await {
        Ok(Ok(hub)) => hub,
        Ok(Err(failed)) => return failed.into_response(),
        Err(response) => return response,
    };
    let tab = hub.connect(from);
    let body = Body::from_stream(stream::unfold(TabStream::new(tab), TabStream::next));
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// The frames of a tab.
struct TabStream {
    tab: Tab,
    /// Frames to send before those that follow.
    first: std::vec::IntoIter<Frame>,
    position: Position,
}

impl TabStream {
    fn new(mut tab: Tab) -> TabStream {
        let first = std::mem::take(&mut tab.first).into_iter();
        TabStream { tab, first, position: Position::default() }
    }

    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, TabStream)> {
        loop {
            let frame = match self.first.next() {
                Some(frame) => frame,
                None => match tokio::time::timeout(KEEP_ALIVE, self.tab.frames.recv()).await {
                    Ok(Ok(frame)) => frame,
                    Ok(Err(RecvError::Lagged(_))) => {
                        let (first, frames) = self.tab.hub.catch_up(self.position);
                        (self.first, self.tab.frames) = (first.into_iter(), frames);
                        continue;
                    }
                    Ok(Err(RecvError::Closed)) => return None,
                    Err(_elapsed) => return Some((Ok(Bytes::from_static(b": alive\n\n")), self)),
                },
            };
            if frame.position != Position::default() {
                self.position = frame.position;
            }
            return Some((Ok(Bytes::copy_from_slice(frame.text.as_bytes())), self));
        }
    }
}

async fn command(State(server): State<Arc<Server>>, Path(id): Path<String>, request: Request) -> Response {
    let body = match json_body(request).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    let command: Command = match serde_json::from_slice(&body) {
        Ok(command) => command,
        Err(why) => return error(StatusCode::BAD_REQUEST, &format!("not a command: {why}")),
    };
    let command = match typed_command(command) {
        Ok(command) => command,
        Err(local) => return *local,
    };
    let sessions = Arc::clone(&server.sessions);
    let done = blocking(move || {
        let hub = sessions.get(&id)?;
        if hub.is_reader() && !sessions.take_over(&hub)? {
            return Ok(Err(CommandRefusal::OpenElsewhere));
        }
        Ok(hub.command(command))
    });
    match done.await {
        Ok(Ok(Ok(()))) => StatusCode::NO_CONTENT.into_response(),
        Ok(Ok(Err(CommandRefusal::OpenElsewhere))) => error(StatusCode::CONFLICT, "open_elsewhere"),
        Ok(Ok(Err(CommandRefusal::TooEarly))) => error(StatusCode::CONFLICT, "too_early"),
        Ok(Ok(Err(CommandRefusal::Answered))) => error(StatusCode::CONFLICT, "answered"),
        Ok(Ok(Err(CommandRefusal::Invalid(why)))) => error(StatusCode::BAD_REQUEST, &why),
        Ok(Err(failed)) => OpenError::into_response(failed),
        Err(response) => response,
    }
}

/// A prompt may be a slash command: one for the session, or one that the page carries out itself.
fn typed_command(command: Command) -> Result<Command, Box<Response>> {
    let (Command::Prompt(text) | Command::Steer(text)) = &command else { return Ok(command) };
    let local = |name: &str, rest: &str| Box::new(answer(StatusCode::OK, &json!({"local": name, "rest": rest})));
    match parse(text) {
        ParsedLine::Text => Ok(command),
        // These switch to another session, which has its own address.
        ParsedLine::Command(Command::Other { name, rest })
            if matches!(name.as_str(), "new" | "resume" | "sessions" | "search" | "open") =>
        {
            Err(local(&name, &rest))
        }
        ParsedLine::Command(Command::Theme(_)) => Err(local("theme", "")),
        ParsedLine::Command(Command::Terminal(_) | Command::Mouse(_)) => {
            let value = json!({"error": "invalid", "what": "this command is for a terminal"});
            Err(Box::new(answer(StatusCode::BAD_REQUEST, &value)))
        }
        ParsedLine::Command(Command::Quit) => Err(local("quit", "")),
        ParsedLine::Command(command) => Ok(command),
        ParsedLine::Local(LocalCommand::AnswerNow) => Ok(Command::AnswerNow),
        ParsedLine::Local(LocalCommand::View(view)) => Ok(Command::View(view)),
        ParsedLine::Local(LocalCommand::Mode(mode)) => Ok(Command::Mode(mode)),
        ParsedLine::Local(LocalCommand::NextMode) => Err(local("nextMode", "")),
        ParsedLine::Local(LocalCommand::Help) => {
            let rows: Vec<[&str; 3]> =
                slash_commands::COMMANDS.iter().map(|entry| [entry.name, entry.arguments, entry.doc]).collect();
            Err(Box::new(answer(StatusCode::OK, &json!({"local": "help", "commands": rows}))))
        }
        ParsedLine::Local(LocalCommand::NextView) => Err(local("nextView", "")),
        ParsedLine::Local(LocalCommand::Sent) => Err(local("sent", "")),
        ParsedLine::Local(LocalCommand::Reader) => Err(local("reader", "")),
        ParsedLine::Local(LocalCommand::CopyAnswer) => Err(local("copyAnswer", "")),
        ParsedLine::Local(LocalCommand::CopyCode) => Err(local("copyCode", "")),
        ParsedLine::Local(LocalCommand::CopyThinking) => Err(local("copyThinking", "")),
        ParsedLine::Local(LocalCommand::Find(_)) => {
            let value = json!({"error": "invalid", "what": "the browser finds text in this page", "hint": "Ctrl+F"});
            Err(Box::new(answer(StatusCode::BAD_REQUEST, &value)))
        }
        ParsedLine::Invalid { what, hint } => {
            Err(Box::new(answer(StatusCode::BAD_REQUEST, &json!({"error": "invalid", "what": what, "hint": hint}))))
        }
    }
}

async fn block(State(server): State<Arc<Server>>, Path((id, place)): Path<(String, String)>) -> Response {
    let parsed = place.split_once('.').and_then(|(entry, block)| Some((entry.parse().ok()?, block.parse().ok()?)));
    let Some((entry, block)) = parsed else {
        return error(StatusCode::BAD_REQUEST, "a block is ENTRY.BLOCK");
    };
    let sessions = Arc::clone(&server.sessions);
    match blocking(move || sessions.block(&id, entry, block)).await {
        Ok(Ok(value)) => answer(StatusCode::OK, &value),
        Ok(Err(failed)) => failed.into_response(),
        Err(response) => response,
    }
}

async fn entries(State(server): State<Arc<Server>>, Path(id): Path<String>, request: Request) -> Response {
    let from = query_value(&request, "from").and_then(|text| text.parse().ok());
    let Some(from) = from else { return error(StatusCode::BAD_REQUEST, "from is missing") };
    let sessions = Arc::clone(&server.sessions);
    match blocking(move || sessions.earlier(&id, from)).await {
        Ok(Ok(value)) => answer(StatusCode::OK, &value),
        Ok(Err(failed)) => failed.into_response(),
        Err(response) => response,
    }
}

async fn search(State(server): State<Arc<Server>>, request: Request) -> Response {
    let words = query_value(&request, "q").unwrap_or_default();
    let sessions = Arc::clone(&server.sessions);
    match blocking(move || sessions.search(&words)).await {
        Ok(Ok(value)) => answer(StatusCode::OK, &value),
        Ok(Err(failed)) => failed.into_response(),
        Err(response) => response,
    }
}

/// A value of the query.
fn query_value(request: &Request, name: &str) -> Option<String> {
    let pairs = request.uri().query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| query_decoded(value))
}

/// Browsers write spaces in a query as `+`. Invalid escapes stay as they are.
fn query_decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

async fn page_file(request: Request) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return error(StatusCode::METHOD_NOT_ALLOWED, "method");
    }
    let Some(file) = page_files::find(request.uri().path()) else {
        return error(StatusCode::NOT_FOUND, "not_found");
    };
    let etag = file.etag();
    // The files change with the program, and asking costs nothing on this machine.
    let headers = [(CONTENT_TYPE, file.content_type), (CACHE_CONTROL, "no-cache"), (ETAG, etag.as_str())];
    let known = request.headers().get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    match known == Some(etag.as_str()) {
        true => (StatusCode::NOT_MODIFIED, headers).into_response(),
        false => (headers, file.content).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded_and_broken_escapes_stay_text() {
        let rows = [("a+b%20c%C3%A4%2", "a b cä%2"), ("%+1", "% 1"), ("%zz%", "%zz%"), ("%2B%25", "+%")];
        for (query, expected) in rows {
            assert_eq!(query_decoded(query), expected, "{query}");
        }
    }
}
