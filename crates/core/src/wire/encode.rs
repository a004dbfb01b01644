//! A conversation into the one request a provider takes, with the reasons for
//! everything in it.

use super::draft::Draft;
use super::{chat, cohere, converse, gemini, messages, ollama, responses};
use crate::block::Origin;
use crate::conversation::Tool;
use crate::dialect::{Dialect, Dialects, Repair};
use crate::message::Message;
use crate::protocol::Protocol;
use crate::rules::{self, Asked, Decision, Reader, Wishes};
use crate::settings::Settings;

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
    pub repairs: &'a [Repair],
}

/// A request body with the reasons for everything in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// JSON; the same conversation gives the same bytes.
    pub body: String,
    /// Where it goes, below the base URL.
    pub path: String,
    pub headers: Vec<(String, String)>,
    /// One for each stored block, and one for each filler.
    pub decisions: Vec<Decision>,
    /// The effort as it is sent.
    pub effort: Option<String>,
    pub notes: Vec<String>,
}

pub fn encode(request: &Request<'_>) -> Encoded {
    let mut rules = request.dialect.rules(Some(request.model)).clone();
    let mut wishes = Wishes::of(request.settings, &rules.echo);
    for repair in request.repairs {
        rules::apply(*repair, &mut rules, &mut wishes);
    }
    let rules = &rules;
    let target = Origin {
        dialect: Some(request.dialect.id.clone()),
        model: Some(request.model.to_owned()),
        ..request.target.clone()
    };
    let can_read = |matrix: &str, mine: &str, theirs: &str| request.dialects.can_read(matrix, mine, theirs);
    let reader = Reader { target: &target, rules, can_read: &can_read, has_tools: !request.tools.is_empty() };
    let egress = rules::plan(request.messages, reader, &wishes);
    let flag = egress.sends_past.then_some(&rules.echo.flag);
    let mut asked = rules::ask(&rules.ask, &wishes, flag);
    // Some go on thinking only from a thought. Where there is none to send,
    // thinking pauses until the turn ends.
    if egress.loop_begins_bare && messages::wants_leading_thought(&asked.parameters) {
        wishes.enabled = false;
        asked = rules::ask(&rules.ask, &wishes, None);
        asked
            .notes
            .push("thinking is off until this turn ends: its tool loop has no thought that may go back".to_owned());
    }
    let Asked { parameters, headers, effort, notes } = asked;
    let draft = Draft {
        model: request.model,
        messages: request.messages,
        steps: &egress.steps,
        tools: request.tools,
        parameters: &parameters,
        rules,
        wishes: &wishes,
    };
    let (path, body) = match request.dialect.protocol {
        Protocol::OpenaiChat => ("/chat/completions".to_owned(), chat::write(&draft)),
        Protocol::OpenaiResponses => ("/responses".to_owned(), responses::write(&draft)),
        Protocol::Anthropic => ("/v1/messages".to_owned(), messages::write(&draft)),
        Protocol::Gemini => {
            (format!("/v1beta/models/{}:streamGenerateContent?alt=sse", request.model), gemini::write(&draft))
        }
        Protocol::Ollama => ("/api/chat".to_owned(), ollama::write(&draft)),
        Protocol::Bedrock => (format!("/model/{}/converse-stream", request.model), converse::write(&draft)),
        Protocol::Cohere => ("/v2/chat".to_owned(), cohere::write(&draft)),
    };
    Encoded { body, path, headers, decisions: egress.decisions, effort, notes }
}
