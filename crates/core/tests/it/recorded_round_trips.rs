//! Recorded conversations there and back: a recorded reply is decoded, stored and encoded
//! again, and compared with what a real client sent back and the provider accepted. The
//! recordings are in the folder that `ASIDE_CORPUS` names, as in `recordings.rs`.

use std::fs;
use std::path::{Path, PathBuf};

use aside_core::block::{Block, CallId, Origin, Text, ToolResult};
use aside_core::conversation::ToolSpec;
use aside_core::dialect::{Dialect, Ids};
use aside_core::message::{Message, Role};
use aside_core::protocol::Protocol;
use aside_core::rules::EgressAction;
use aside_core::settings::{Layer, Settings};
use aside_core::wire::{Request, encode};
use serde_json::Value;

use crate::request_messages::{MessagePiece, PieceKind, assistant_run, results, text_and_calls, without_thinking};
use crate::support::{decode, dialects};

/// The dialect of a recorded provider; all others use the generic one of their protocol.
#[rustfmt::skip]
const DIALECT_OF: &[(&str, Protocol, &str)] = &[
    ("alibaba",        Protocol::OpenaiChat,      "qwen"),
    ("azure",          Protocol::OpenaiResponses, "azure-responses"),
    ("cerebras",       Protocol::OpenaiChat,      "cerebras"),
    ("deepseek",       Protocol::OpenaiChat,      "deepseek"),
    ("deepseek",       Protocol::OpenaiResponses, "deepseek-responses"),
    ("github-copilot", Protocol::OpenaiChat,      "copilot"),
    ("github-copilot", Protocol::OpenaiResponses, "copilot-responses"),
    ("groq",           Protocol::OpenaiChat,      "groq"),
    ("llamacpp",       Protocol::OpenaiChat,      "llamacpp"),
    ("mistral",        Protocol::OpenaiChat,      "mistral"),
    ("ollama",         Protocol::OpenaiChat,      "ollama-openai"),
    ("openai",         Protocol::OpenaiChat,      "openai-chat"),
    ("openrouter",     Protocol::OpenaiChat,      "openrouter"),
    ("openrouter",     Protocol::OpenaiResponses, "openrouter-responses"),
    ("together",       Protocol::OpenaiChat,      "together"),
    ("xai",            Protocol::OpenaiChat,      "xai"),
    ("xai",            Protocol::OpenaiResponses, "xai-responses"),
    ("zai",            Protocol::OpenaiChat,      "zai"),
    // Hosts without a dialect of their own that accept OpenRouter's details.
    ("snowflake",      Protocol::OpenaiChat,      "openrouter"),
    ("vercel-gateway", Protocol::OpenaiChat,      "openrouter"),
];

/// The reply is not in the next request, or not as it was given.
#[rustfmt::skip]
const NOT_SENT_BACK: &[(&str, &str)] = &[
    ("061-/turn1", "the client leans on `previous_response_id`"),
    ("078-/turn1", "the client sends references to stored items"),
    ("131-/turn1", "the client asks again without the answer"),
    ("318-/turn1", "refused; the client makes up a call from the error"),
    ("319-/turn1", "refused; the client makes up an answer from the error"),
    ("364-/turn1", "refused, and asked again"),
    ("368-/turn1", "an error in the stream, and asked again"),
    ("382-/turn1", "an empty answer, and asked again"),
];

/// Thinking that a client sent and a dialect withholds, by rule: the provider accepts it
/// but ignores it. Texts and calls are compared.
#[rustfmt::skip]
const HELD_BACK: &[(&str, &[&str], &str)] = &[
    ("echo.need_opaque = true", &["065-", "093-", "299-", "473-"], "items that only the provider's store could resolve; we ask it to store nothing"),
    ("echo.need_opaque = true", &["192-"],                         "unsigned: the client wrote it into the text, where we never put it"),
    ("echo.loop = ignored",     &["286-", "290-"],                 "documented as not read by this provider"),
    ("echo.turns = ignored",    &["359-", "423-"],                 "the server's template drops it before the next question"),
];

/// Errors of single clients: the round trip, what is not compared, and why.
#[rustfmt::skip]
const DISPUTED: &[(&str, &str, &str)] = &[
    ("008-/turn1", "thinking",  "the client drops a thought that has a seal but no text"),
    ("216-/turn1", "thinking",  "the client leaves an empty shell of the details"),
    ("231-/turn1", "text",      "the client loses the first delta of the thought"),
    ("062-/turn3", "place",     "the client makes up a namespace"),
    ("076-/turn1", "call_id",   "the client answers under the item's id instead of the call's"),
    ("206-/turn1", "call_id",   "the client renames a call whose id comes again in the next turn"),
    ("206-/turn2", "call_id",   "as in turn 1"),
    ("463-/turn1", "arguments", "the client sends `{}` for the value it was given"),
    ("148-/turn1", "shape",     "the client moves the text behind the result of the call"),
    ("148-/turn2", "shape",     "as in turn 1"),
    ("488-/turn1", "shape",     "the client counts a repeated finish as a second call"),
    ("490-/turn1", "shape",     "as in 488"),
];

/// A reply and the next request, which was accepted.
struct RoundTrip {
    name: String,
    provider: String,
    protocol: Protocol,
    model: String,
    /// Whether the client sends thinking back; if not, only the rest is compared.
    replays: bool,
    response: Vec<u8>,
    /// The messages that the next request adds.
    added: Vec<Value>,
}

pub(crate) fn dialect_of(provider: &str, protocol: Protocol) -> &'static Dialect {
    match DIALECT_OF.iter().find(|row| (row.0, row.1) == (provider, protocol)) {
        Some((_, _, id)) => dialects().get(id).unwrap_or_else(|| panic!("no dialect {id}")),
        None => dialects().generic(protocol).unwrap(),
    }
}

pub(crate) fn corpus() -> Option<PathBuf> {
    let folder = std::env::var_os("ASIDE_CORPUS").map(PathBuf::from)?;
    assert!(folder.join("cases").is_dir(), "ASIDE_CORPUS names {}, which has no folder `cases`", folder.display());
    Some(folder)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn messages_in(request: &Value) -> Vec<Value> {
    let list = ["messages", "input", "contents"].iter().find_map(|name| request.get(name)).unwrap();
    list.as_array().cloned().unwrap_or_else(|| vec![list.clone()])
}

fn trips(folder: &Path) -> Vec<RoundTrip> {
    let mut trips = Vec::new();
    let mut cases: Vec<_> = fs::read_dir(folder.join("cases")).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    for case in cases {
        let meta = json(&case.join("meta.json"));
        let Ok(protocol) = meta["protocol"].as_str().unwrap().parse::<Protocol>() else {
            assert_eq!(meta["protocol"], "other");
            continue;
        };
        let request = |turn: usize| case.join(format!("turn{turn}.request.json"));
        for turn in (1..).take_while(|turn| request(turn + 1).exists()) {
            if meta["turn_status"][format!("turn{}", turn + 1)] != 200 {
                continue;
            }
            let (before, next) = (json(&request(turn)), json(&request(turn + 1)));
            let model = next["model"].as_str().or(meta["model"].as_str()).unwrap();
            trips.push(RoundTrip {
                name: format!("{}/turn{turn}", case.file_name().unwrap().to_string_lossy()),
                provider: meta["provider"].as_str().unwrap().to_owned(),
                protocol,
                model: model.to_owned(),
                replays: meta["features"].as_array().unwrap().iter().any(|feature| feature == "replays-reasoning"),
                response: response(&case, turn),
                added: messages_in(&next).split_off(messages_in(&before).len().min(messages_in(&next).len())),
            });
        }
    }
    trips
}

fn response(case: &Path, turn: usize) -> Vec<u8> {
    let endings = ["sse", "json", "ndjson", "eventstream"];
    let paths = endings.iter().map(|ending| case.join(format!("turn{turn}.response.{ending}")));
    let path = paths.into_iter().find(|path| path.exists());
    fs::read(path.unwrap_or_else(|| panic!("{} has no response {turn}", case.display()))).unwrap()
}

impl RoundTrip {
    fn dialect(&self) -> &'static Dialect {
        dialect_of(&self.provider, self.protocol)
    }

    /// Sends thinking back; to an unknown host in the field that its client used.
    fn settings(&self, theirs: &[MessagePiece]) -> Settings {
        let mut settings = Settings::new();
        settings.set(Layer::Session, "reasoning.includeInContext", "true").unwrap();
        let field =
            theirs.iter().find(|piece| piece.kind == PieceKind::Thinking && piece.place.starts_with("reasoning"));
        if let Some(field) = field.filter(|_| self.dialect().generic && self.protocol == Protocol::OpenaiChat) {
            settings.set(Layer::Session, "reasoning.fieldName", &field.place).unwrap();
        }
        settings
    }

    /// What aside would send in place of the client, and which rules withheld thinking.
    fn ours(&self, theirs: &[MessagePiece]) -> (Vec<MessagePiece>, Vec<String>) {
        let dialect = self.dialect();
        let (reply, outcome) = decode(self.protocol, dialect.rules(Some(&self.model)), &self.response, usize::MAX);
        outcome.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let origin = Origin::default()
            .with_provider(self.provider.clone())
            .with_dialect(dialect.id.clone())
            .with_model(self.model.clone());
        let answer = Message::from_reply(reply, Some(origin.clone()));
        let next = self.next(&answer);
        let question = Message::new(Role::User, vec![text("q")]);
        let offered = ToolSpec::new("t", "d", r#"{"type":"object"}"#);
        let encoded = encode(
            &Request::new(dialects(), dialect, &self.model, &origin, &self.settings(theirs))
                .with_messages(&[&question, &answer, &next])
                .with_tools(&[offered]),
        );
        // The provider accepted the request, so no demand can be unmet.
        assert_eq!(encoded.unmet, Vec::<String>::new(), "{}", self.name);
        let body: Value = serde_json::from_str(&encoded.body).unwrap();
        let dropped = encoded.decisions.iter().filter(|decision| decision.action == EgressAction::Dropped);
        let rules = dropped.map(|decision| decision.reason.rule()).collect();
        (assistant_run(self.protocol, &messages_in(&body)[1..]), rules)
    }

    /// The recorded results of the calls, or another question.
    fn next(&self, answer: &Message) -> Message {
        let calls: Vec<(&CallId, &str)> = answer
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::ToolCall(call) => Some((&call.id, call.name.as_str())),
                _ => None,
            })
            .collect();
        let results = results(self.protocol, &self.added).into_iter().zip(&calls).map(|(content, (id, name))| {
            let (id, name) = (id.as_str().to_owned(), (*name).to_owned());
            Block::ToolResult(ToolResult { id, name, content, is_error: false, media: Vec::new() })
        });
        let results: Vec<Block> = results.collect();
        if results.is_empty() { Message::new(Role::User, vec![text("n")]) } else { Message::new(Role::Tool, results) }
    }
}

fn text(text: &str) -> Block {
    Block::Text(Text { text: text.to_owned(), ..Text::default() })
}

/// Whether a name, a case number with an optional turn, means this round trip.
fn is_named(trip: &RoundTrip, name: &str) -> bool {
    let (case, turn) = name.split_once('/').unwrap_or((name, ""));
    trip.name.starts_with(case) && trip.name.ends_with(turn)
}

fn exceptions() -> impl Iterator<Item = &'static str> {
    let held = HELD_BACK.iter().flat_map(|(_, cases, _)| cases.iter().copied());
    let not_sent = NOT_SENT_BACK.iter().map(|(name, _)| *name);
    held.chain(not_sent).chain(DISPUTED.iter().map(|(name, ..)| *name))
}

fn disputed(trip: &RoundTrip, what: &str) -> bool {
    DISPUTED.iter().any(|(name, disputed, _)| is_named(trip, name) && *disputed == what)
}

/// Differences that do not matter to a provider:
/// - Gemini's thought texts are summaries, which may be left out;
/// - a client writes Gemini's signatures in the other base64 alphabet;
/// - a client repeats thinking in a second field.
fn normalize(trip: &RoundTrip, ours: &mut Vec<MessagePiece>, theirs: &mut Vec<MessagePiece>) {
    if trip.protocol == Protocol::Gemini && !theirs.iter().any(|piece| piece.kind == PieceKind::Thinking) {
        ours.retain(|piece| piece.kind != PieceKind::Thinking || !piece.seals.is_empty());
    }
    if trip.protocol == Protocol::Gemini {
        for seal in theirs.iter_mut().flat_map(|piece| &mut piece.seals) {
            *seal = seal.replace('-', "+").replace('_', "/");
        }
    }
    let is_ours = |piece: &MessagePiece| ours.iter().any(|our| our.place == piece.place && our.text == piece.text);
    let said: Vec<String> = theirs.iter().filter(|piece| is_ours(piece)).map(|piece| piece.text.clone()).collect();
    theirs.retain(|piece| piece.kind != PieceKind::Thinking || is_ours(piece) || !said.contains(&piece.text));
}

/// Every difference between two normalized messages.
fn differences(trip: &RoundTrip, ours: &[MessagePiece], theirs: &[MessagePiece]) -> Vec<String> {
    let shape = |pieces: &[MessagePiece]| pieces.iter().map(|piece| piece.kind).collect::<Vec<_>>();
    if shape(ours) != shape(theirs) {
        return vec!["shape".to_owned()];
    }
    let mut out = Vec::new();
    for (our, their) in ours.iter().zip(theirs) {
        let tags = their.place == "tags";
        let ids_optional = trip.dialect().rules(Some(&trip.model)).echo.ids == Ids::Omit;
        #[rustfmt::skip]
        let rows = [
            // Some clients use tags although the provider has a field.
            ("place",     our.place == their.place || tags || (their.kind != PieceKind::Thinking && their.place.is_empty())),
            ("text",      our.text == their.text || (tags && our.text.trim() == their.text)),
            ("arguments", our.arguments == their.arguments),
            // Gemini's ids are optional; some clients omit them, some invent missing ones.
            ("call_id",   our.call_id == their.call_id || (trip.protocol == Protocol::Gemini && (our.call_id.is_none() || their.call_id.is_none()))),
            // A client or a dialect may omit an item's id if its encrypted payload is there.
            ("id",        our.id == their.id || their.id.is_none() || (our.id.is_none() && ids_optional)),
            ("seals",     our.seals == their.seals),
        ];
        out.extend(rows.iter().filter(|(_, same)| !same).map(|(what, _)| (*what).to_owned()));
    }
    out
}

/// Whether the client sent thinking back, and every difference.
fn compare(trip: &RoundTrip, mut theirs: Vec<MessagePiece>) -> (bool, Vec<String>) {
    let (mut ours, held) = trip.ours(&theirs);
    let held = held.iter().any(|rule| {
        HELD_BACK.iter().any(|(name, cases, _)| name == rule && cases.iter().any(|case| is_named(trip, case)))
    });
    if !trip.replays || held {
        (ours, theirs) = (text_and_calls(ours), text_and_calls(theirs));
    } else if disputed(trip, "thinking") {
        (ours, theirs) = (without_thinking(ours), without_thinking(theirs));
    }
    let thinks = theirs.iter().any(MessagePiece::carries_thinking);
    normalize(trip, &mut ours, &mut theirs);
    let mut wrong = differences(trip, &ours, &theirs);
    wrong.retain(|what| !disputed(trip, what));
    if !wrong.is_empty() {
        wrong.push(format!("\n  ours   {ours:?}\n  theirs {theirs:?}"));
    }
    (thinks, wrong)
}

#[test]
fn requests_match_what_providers_accepted() {
    let Some(folder) = corpus() else { return };
    let trips = trips(&folder);
    for name in exceptions() {
        assert!(trips.iter().any(|trip| is_named(trip, name)), "{name} names no round trip");
    }
    let (mut compared, mut with_thinking) = (0, 0);
    let mut failures = Vec::new();
    for trip in &trips {
        let theirs = assistant_run(trip.protocol, &trip.added);
        if NOT_SENT_BACK.iter().any(|(name, _)| is_named(trip, name)) {
            continue;
        }
        if theirs.is_empty() {
            failures.push(format!("{}: nothing was sent back", trip.name));
            continue;
        }
        let (thinks, wrong) = compare(trip, theirs);
        compared += 1;
        with_thinking += usize::from(thinks);
        if !wrong.is_empty() {
            failures.push(format!("{} ({}): {}", trip.name, trip.dialect().id, wrong.join(" ")));
        }
    }
    println!(
        "{compared} round trips compared, {with_thinking} with thinking; {} not sent back, {} disputed",
        NOT_SENT_BACK.len(),
        DISPUTED.len()
    );
    assert!(with_thinking > 60, "only {with_thinking} round trips with thinking");
    assert!(failures.is_empty(), "{} of {compared} round trips differ\n{}", failures.len(), failures.join("\n"));
}
