//! A request in, an answer out: everything the simulator decides, without a
//! socket or a clock.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aside_core::dialect::{Dialect, Dialects, Off, Rules};
use aside_core::event::ProviderError;
use aside_core::protocol::Protocol;
use aside_core::tokens;
use aside_core::wire::{Incoming, ReplyHead, StreamWriter, error_reply, read_request};
use serde_json::{Value, json};
use siphasher::sip::SipHasher13;

use crate::about;
use crate::beats::Beat;
use crate::court::{Case, Refusal, contains};
use crate::members::members;
use crate::play::{Scene, pace, play};
use crate::route::{Delivery, Route, path};
use crate::script::{Behaviour, Options, Script, last_user_text};
use crate::stream::{Limits, Stream, Whole};
use crate::words::Dice;

/// When every reply was made. A clock would make no two replies the same.
const CREATED: u64 = 1_750_000_000;

/// How many conversations with faults are remembered.
const MOST_FAULTS: usize = 10_000;

const JSON: &str = "application/json";

/// A member of a body that switches something on or off is no longer than this.
const LONGEST_SWITCH: usize = 64 << 10;

/// A request as a server hears it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub query: &'a str,
    /// Names in lower case.
    pub headers: &'a [(String, String)],
    pub body: &'a [u8],
}

/// What a server is to send.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// How long nothing at all is sent.
    pub delay: Duration,
    pub body: Stream,
}

/// The simulator itself.
#[derive(Debug)]
pub struct Stage {
    dialects: Dialects,
    defaults: Options,
    /// How often each conversation has met the fault it asks for.
    faults: Mutex<HashMap<u64, u32>>,
}

/// Which dialect a model's name means, which of its models, and what to do.
struct Named<'a> {
    dialect: &'a Dialect,
    model: &'a str,
    suffix: Option<&'a str>,
}

impl Stage {
    /// `defaults` hold where a request says nothing else.
    pub fn new(dialects: Dialects, defaults: Options) -> Stage {
        Stage { dialects, defaults, faults: Mutex::default() }
    }

    pub fn answer(&self, asked: &Asked<'_>) -> Answer {
        let header = |name: &str| asked.headers.iter().find(|(known, _)| known == name);
        let route = Route::of(asked.method, asked.path, asked.query, header("anthropic-version").is_some());
        match route {
            Route::About => Answer::whole(200, "text/plain; charset=utf-8", about::page()),
            Route::Version => Answer::whole(200, JSON, about::version()),
            Route::Models(protocol) => Answer::whole(200, JSON, about::models(protocol, &self.dialects)),
            Route::Unknown => {
                let said = format!("{} {} is not served here; GET / says what is", asked.method, asked.path);
                Answer::refused(404, &said)
            }
            Route::Ask { protocol, model, delivery } => self.ask(asked, protocol, model, delivery),
        }
    }

    fn ask(&self, asked: &Asked<'_>, protocol: Protocol, model: Option<String>, how: Option<Delivery>) -> Answer {
        let refuse = |status, message: String| Answer::error(protocol, status, message);
        let Ok(body) = std::str::from_utf8(asked.body) else {
            return refuse(400, "the body is not UTF-8".to_owned());
        };
        let in_body = || members(body, &["model"], LONGEST_SWITCH).get("model")?.as_str().map(str::to_owned);
        let Some(model) = model.or_else(in_body) else {
            return refuse(400, format!("no model is named; the simulator has: {}", self.models()));
        };
        let Some(named) = self.named(&model) else {
            return refuse(404, format!("the simulator has no model `{model}`; it has: {}", self.models()));
        };
        if named.dialect.protocol != protocol {
            let Dialect { id, protocol, .. } = named.dialect;
            return refuse(400, format!("`{id}` speaks {protocol}: POST {}", path(*protocol)));
        }
        let rules = named.dialect.rules(Some(named.model));
        let incoming = match read_request(protocol, rules, body) {
            Ok(incoming) => incoming,
            Err(error) => return refuse(400, error.to_string()),
        };
        match Script::of(named.suffix, &incoming.messages) {
            Ok(script) => {
                let script = Script { options: script.options.or(self.defaults), ..script };
                let whole = if incoming.streams == Some(true) { Delivery::Streamed } else { Delivery::Whole };
                let request =
                    Request { asked, body, named, incoming, model: &model, how: how.unwrap_or(whole), script };
                self.play(&request)
            }
            Err(error) => refuse(400, error.to_string()),
        }
    }

    /// `[sim/]DIALECT[/MODEL][:BEHAVIOUR]`
    fn named<'a>(&'a self, name: &'a str) -> Option<Named<'a>> {
        let name = name.strip_prefix("sim/").unwrap_or(name);
        let (name, suffix) = name.split_once(':').map_or((name, None), |(name, suffix)| (name, Some(suffix)));
        let (id, model) = name.split_once('/').unwrap_or((name, name));
        Some(Named { dialect: self.dialects.get(id)?, model, suffix })
    }

    fn models(&self) -> String {
        self.dialects.iter().map(|dialect| dialect.id.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn play(&self, request: &Request<'_>) -> Answer {
        let case = Case {
            dialect: request.named.dialect,
            rules: request.rules(),
            catalogue: self.dialects.catalogue(),
            model: request.named.model,
            headers: request.asked.headers,
            body: request.body,
            incoming: &request.incoming,
        };
        if let Some(fault) = self.fault(request, &case) {
            return fault;
        }
        if let Some(refusal) = case.refusal() {
            return refusal.into();
        }
        let beats = play(&Scene {
            dialect: case.dialect,
            rules: case.rules,
            catalogue: case.catalogue,
            incoming: case.incoming,
            script: &request.script,
            account: case.account(),
            thinks: !request.is_thinking_off(),
            input_tokens: tokens::estimate(request.body),
        });
        request.answer(beats)
    }

    /// A fault that the script asks for, unless it is over.
    fn fault(&self, request: &Request<'_>, case: &Case<'_>) -> Option<Answer> {
        let (answer, usual): (Answer, Option<u32>) = match &request.script.behaviour {
            Some(Behaviour::Status(status)) => (failure(case.dialect.protocol, *status), None),
            Some(Behaviour::Refuse(id)) => {
                let Some(row) = case.catalogue.iter().find(|row| row.id == *id) else {
                    let known: Vec<&str> = case.catalogue.iter().map(|row| row.id.as_str()).collect();
                    let said = format!("the catalogue has no row `{id}`; it has: {}", known.join(", "));
                    return Some(Answer::error(case.dialect.protocol, 400, said));
                };
                (case.complain(row, &[]).into(), Some(1))
            }
            _ => return None,
        };
        let times = request.script.options.times.or(usual);
        (times.is_none_or(|times| self.nth_fault(request) <= times)).then_some(answer)
    }

    /// Counts the faults of one conversation, from 1.
    fn nth_fault(&self, request: &Request<'_>) -> u32 {
        let mut hasher = SipHasher13::new();
        (request.model, last_user_text(&request.incoming.messages)).hash(&mut hasher);
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        // A server that runs for months forgets what nobody asks for any more.
        if faults.len() >= MOST_FAULTS {
            faults.clear();
        }
        let count = faults.entry(hasher.finish()).or_default();
        *count = count.saturating_add(1);
        *count
    }
}

/// A request that names a model we have.
struct Request<'a> {
    asked: &'a Asked<'a>,
    body: &'a str,
    named: Named<'a>,
    incoming: Incoming,
    /// As the client wrote it.
    model: &'a str,
    how: Delivery,
    script: Script,
}

impl Request<'_> {
    fn rules(&self) -> &Rules {
        self.named.dialect.rules(Some(self.named.model))
    }

    /// The request carries the switch that this dialect has for it.
    fn is_thinking_off(&self) -> bool {
        match &self.rules().ask.off {
            Off::Patch(patch) if !patch.is_empty() => {
                let names: Vec<&str> = patch.keys().map(String::as_str).collect();
                let body = members(self.body, &names, LONGEST_SWITCH);
                contains(&Value::Object(body), &Value::Object(patch.clone()))
            }
            Off::Patch(_) | Off::Unsupported => false,
        }
    }

    fn answer(&self, beats: Vec<Beat>) -> Answer {
        let (protocol, rules) = (self.named.dialect.protocol, self.rules());
        let id = Dice::new(self.script.options.seed.unwrap_or(0), self.body).id("sim-");
        let head = ReplyHead { id: &id, model: self.model, created: CREATED };
        let cut = match self.script.behaviour {
            Some(Behaviour::Cut(bytes)) => Some(bytes),
            _ => None,
        };
        let chunk = self.script.options.chunk.filter(|bytes| *bytes > 0);
        let limits = Limits { pace: pace(&self.script), chunk, cut };
        let (mut content_type, body) = match self.how {
            Delivery::Streamed => {
                let writer = StreamWriter::new(protocol, rules, &head);
                (writer.content_type(), Stream::told(protocol, writer, beats, limits))
            }
            Delivery::Whole | Delivery::Listed => {
                let (rules, model, listed) = (rules.clone(), self.model.to_owned(), self.how == Delivery::Listed);
                let whole = Whole { protocol, rules, model, created: CREATED, listed, beats, id: id.clone() };
                (JSON, Stream::at_once(whole, limits))
            }
        };
        let mut delay = Duration::ZERO;
        match self.script.behaviour {
            Some(Behaviour::ContentType) => content_type = "text/html; charset=utf-8",
            Some(Behaviour::SlowHeaders(time)) => delay = time,
            _ => (),
        }
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Answer { status: 200, headers, delay, body }
    }
}

impl Answer {
    fn whole(status: u16, content_type: &str, body: String) -> Answer {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Answer { status, headers, delay: Duration::ZERO, body: Stream::of(body) }
    }

    /// An answer to whoever spoke no protocol that we know of.
    pub(crate) fn refused(status: u16, message: &str) -> Answer {
        let error = json!({ "error": { "message": message, "type": "simulator_error", "code": status } });
        Answer::whole(status, JSON, error.to_string())
    }

    /// An answer that is only its headers.
    pub(crate) fn empty(status: u16) -> Answer {
        Answer { status, headers: Vec::new(), delay: Duration::ZERO, body: Stream::of(String::new()) }
    }

    fn error(protocol: Protocol, status: u16, message: String) -> Answer {
        let error = ProviderError { message, code: None, status: Some(status) };
        Answer::whole(status, JSON, error_reply(protocol, &error))
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Answer {
        let mut answer = Answer::whole(refusal.status, JSON, refusal.body);
        answer.headers.extend(refusal.headers);
        answer
    }
}

/// What a provider says when it can do nothing for you now.
fn failure(protocol: Protocol, status: u16) -> Answer {
    let (message, code) = match status {
        401 | 403 => ("this key is not accepted (simulated)", "invalid_api_key"),
        429 => ("too many requests, try again later (simulated)", "rate_limit_exceeded"),
        503 | 529 => ("the server is overloaded, try again later (simulated)", "overloaded"),
        500..600 => ("the server had an error (simulated)", "server_error"),
        _ => ("the request was refused (simulated)", "invalid_request_error"),
    };
    let error = ProviderError { message: message.to_owned(), code: Some(code.to_owned()), status: Some(status) };
    let mut answer = Answer::whole(status, JSON, error_reply(protocol, &error));
    if status == 429 {
        answer.headers.push(("retry-after".to_owned(), "1".to_owned()));
    }
    answer
}
