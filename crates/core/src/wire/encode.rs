//! A conversation into the one request a provider takes, with the reasons for
//! everything in it.

use std::cell::RefCell;
use std::sync::Arc;

use super::call_ids::CallIds;
use super::draft::{Draft, Tokens};
use super::pieces::Pieces;
use super::{chat, cohere, converse, gemini, messages, ollama, responses};
use crate::block::Origin;
use crate::conversation::Tool;
use crate::dialect::{Dialect, Dialects, Duty, Rules};
use crate::history::EntryId;
use crate::message::Message;
use crate::protocol::Protocol;
use crate::rules::{self, Asked, Cure, Decision, Reader, Why, Wishes};
use crate::settings::Settings;
use crate::tokens::Counter;

/// What is to be said, and to whom.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub dialects: &'a Dialects,
    pub dialect: &'a Dialect,
    pub model: &'a str,
    /// Who will read it; its dialect and model are filled in.
    pub target: &'a Origin,
    /// The branch to send, oldest first.
    pub messages: &'a [&'a Message],
    pub tools: &'a [Tool],
    pub settings: &'a Settings,
    /// What earlier refusals of this endpoint taught.
    pub repairs: &'a [Cure],
}

/// A request body with the reasons for everything in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Encoded {
    /// JSON; the same conversation gives the same bytes.
    pub body: Arc<String>,
    /// Where it goes, below the base URL.
    pub path: String,
    pub headers: Vec<(String, String)>,
    /// One for each stored block, and one for each filler.
    pub decisions: Vec<Decision>,
    /// About how many tokens the request is, as it is sent: parameters, tools
    /// and system prompt too. A provider puts words of its own around it; what
    /// that comes to is learned by [`crate::tokens::Calibration`].
    pub tokens: u64,
    /// The part of them that each message has; nothing for a system prompt
    /// that stands elsewhere.
    pub message_tokens: Vec<u64>,
    /// The effort as it is sent.
    pub effort: Option<String>,
    /// What the provider demands and this request cannot give, in words.
    pub unmet: Vec<String>,
    pub notes: Vec<String>,
}

/// Builds one request after another, and writes again only what has changed.
#[derive(Debug, Default)]
pub struct Encoder {
    pieces: Pieces,
    /// What the pieces were written for.
    settled: Option<Settled>,
}

/// Everything but the messages that the writing of a message depends on.
#[derive(Debug, Clone, PartialEq)]
struct Settled {
    dialect: String,
    rules: Rules,
    wishes: Wishes,
}

/// One request on its own.
pub fn encode(request: &Request<'_>) -> Encoded {
    Encoder::new().encode(request, &[])
}

impl Encoder {
    /// Counts tokens by the letters.
    pub fn new() -> Encoder {
        Encoder::default()
    }

    pub fn counting_with(counter: Arc<dyn Counter>) -> Encoder {
        Encoder { pieces: Pieces::counting_with(counter), settled: None }
    }

    /// What tokens are counted by.
    pub fn counter_name(&self) -> &'static str {
        self.counter().name()
    }

    pub(super) fn counter(&self) -> &dyn Counter {
        self.pieces.counter.as_ref()
    }

    /// Builds a request. `entries` say which entry of one history each message
    /// is; what was written for an entry is not written again.
    pub fn encode(&mut self, request: &Request<'_>, entries: &[EntryId]) -> Encoded {
        let protocol = request.dialect.protocol;
        let mut rules = request.dialect.rules(Some(request.model)).clone();
        let mut wishes = Wishes::of(request.settings, &rules.echo);
        for cure in request.repairs {
            rules::apply(cure, &mut rules, &mut wishes);
        }
        let target = Origin {
            dialect: Some(request.dialect.id.clone()),
            model: Some(request.model.to_owned()),
            ..request.target.clone()
        };
        let can_read = |matrix: &str, mine: &str, theirs: &str| request.dialects.can_read(matrix, mine, theirs);
        let reader = Reader {
            protocol,
            target: &target,
            rules: &rules,
            can_read: &can_read,
            has_tools: !request.tools.is_empty(),
        };
        let egress = rules::plan(request.messages, reader, &wishes);
        let flag = egress.sends_past.then_some(&rules.echo.flag);
        let paused = Wishes { enabled: false, ..wishes.clone() };
        let mut asked = match request.dialect.unknown {
            true => rules::ask_a_stranger(&rules.ask, &wishes, protocol),
            false if wishes.mend.pause => rules::ask(&rules.ask, &paused, protocol, None),
            false => rules::ask(&rules.ask, &wishes, protocol, flag),
        };
        // Some go on thinking only from a thought. Where there is none to send,
        // thinking pauses until the turn ends.
        if egress.loop_begins_bare && messages::wants_leading_thought(&asked.parameters) {
            asked = rules::ask(&rules.ask, &paused, protocol, None);
            let note = "thinking is off until this turn ends: its tool loop has no thought that may go back";
            asked.notes.push(note.to_owned());
        }
        let withheld = egress.decisions.iter().any(|decision| decision.why == Why::NotIncluded);
        if withheld && wishes.include.by_user && rules.echo.loop_duty == Duty::Must {
            let note = "thinking that this provider asks for is withheld by your setting reasoning.includeInContext";
            asked.notes.push(note.to_owned());
        }
        let mut unmet = rules::unmet(request.messages, &egress, &rules, &wishes, &asked, reader.has_tools);
        if egress.loop_begins_bare && messages::wants_leading_thought(&asked.parameters) {
            unmet.push("the open tool loop must begin with a thought, and none may be sent".to_owned());
        }
        let settled = Settled { dialect: request.dialect.id.clone(), rules, wishes };
        if self.settled.as_ref() != Some(&settled) {
            self.pieces.forget();
        }
        let settled = self.settled.insert(settled);
        let Asked { parameters, headers, effort, mut notes, .. } = asked;
        let draft = Draft {
            model: request.model,
            messages: request.messages,
            steps: &egress.steps,
            tools: request.tools,
            parameters: &parameters,
            rules: &settled.rules,
            wishes: &settled.wishes,
            entries,
            pieces: &self.pieces,
            call_ids: CallIds::of(settled.rules.echo.call_ids, request.messages),
            tokens: RefCell::default(),
        };
        let (path, body) = write(request, &draft);
        let Tokens { head, messages } = draft.tokens.take();
        let tokens = head + messages.iter().sum::<u64>();
        notes.extend(self.pieces.counter.warning());
        Encoded {
            body: Arc::new(body),
            path,
            headers,
            decisions: egress.decisions,
            tokens,
            message_tokens: messages,
            effort,
            unmet,
            notes,
        }
    }
}

fn write(request: &Request<'_>, draft: &Draft<'_>) -> (String, String) {
    match request.dialect.protocol {
        Protocol::OpenaiChat => ("/chat/completions".to_owned(), chat::write(draft)),
        Protocol::OpenaiResponses => ("/responses".to_owned(), responses::write(draft)),
        Protocol::Anthropic => ("/v1/messages".to_owned(), messages::write(draft)),
        Protocol::Gemini => {
            (format!("/v1beta/models/{}:streamGenerateContent?alt=sse", request.model), gemini::write(draft))
        }
        Protocol::Ollama => ("/api/chat".to_owned(), ollama::write(draft)),
        Protocol::Bedrock => {
            (format!("/model/{}/converse-stream", path_segment(request.model)), converse::write(draft))
        }
        Protocol::Cohere => ("/v2/chat".to_owned(), cohere::write(draft)),
    }
}

/// A name as one segment of a path: some models are named by ARNs, with
/// slashes and colons in them.
fn path_segment(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
