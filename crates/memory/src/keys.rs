//! The keys by which a reply is found again: hashes of what the user could see,
//! made in one pass over the conversation.

use std::collections::HashMap;

use aside_core::block::{MediaSource, ToolCall, ToolResult};
use aside_core::{Block, Message, Role};
use ring::hmac;

use crate::normal_form::{self, VERSION};
use crate::tenant::Tenant;

/// A turn with at least this much visible text is distinctive by itself.
const DISTINCTIVE_TEXT: usize = 64;
/// So is one whose arguments have at least this many bytes.
const DISTINCTIVE_ARGUMENTS: usize = 16;
/// The ids that we mint: this prefix and this many letters and digits.
const MINTED_PREFIX: &str = "call_";
const MINTED_DIGITS: usize = 20;

/// A hash that finds replies, keyed by its tenant's secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub(crate) [u8; 16]);

/// What a key was made of. The numbers are stored and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyKind {
    /// The id of a tool call, minted by us.
    MintedId = 1,
    /// The provider's ids of all calls, with the calls.
    CallIds = 2,
    /// The turn, and the previous turn with everything between.
    Chain = 3,
    /// The turn, and the client's session.
    Session = 4,
    /// The turn alone, if it is distinctive.
    Turn = 5,
    /// What an interrupted reply answered, whatever its content.
    Interrupted = 6,
    /// The turn and the messages since the previous turn, whatever that was.
    Question = 7,
    /// The provider's id of the whole response. No turn of a request has it.
    ResponseId = 8,
}

impl KeyKind {
    pub(crate) fn of_number(number: i64) -> Option<KeyKind> {
        use KeyKind::{CallIds, Chain, Interrupted, MintedId, Question, ResponseId, Session, Turn};
        let all = [MintedId, CallIds, Chain, Session, Turn, Interrupted, Question, ResponseId];
        all.into_iter().find(|kind| *kind as i64 == number)
    }
}

/// Whether a turn is unlikely to be equal to another by chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Distinctive {
    No,
    /// Because of its text.
    WithText,
    /// Because of its arguments, even without its text.
    Always,
}

/// The keys of one assistant turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnKeys {
    /// The index of the message.
    pub(crate) message: usize,
    /// What the user could see of it.
    pub(crate) turn: Key,
    /// The same without the text, if there are calls beside it. Some clients drop
    /// such text.
    bare_turn: Option<Key>,
    /// The previous turn and everything between.
    pub(crate) chain: Key,
    /// Everything since the previous turn.
    pub(crate) question: Key,
    /// It is the first turn of the history, which may have been cut before it.
    pub(crate) is_first: bool,
    /// None without calls.
    pub(crate) call_ids: Option<Key>,
    /// One for each call whose id we may have minted.
    pub(crate) minted: Vec<Key>,
    pub(crate) n_calls: usize,
    /// The ids of its calls cannot belong to another turn.
    pub(crate) has_unique_ids: bool,
    distinctive: Distinctive,
}

impl TurnKeys {
    /// The keys to look up for a turn of a request.
    pub(crate) fn lookup(&self, tenant: &Tenant, session: Option<&str>) -> Vec<(KeyKind, Key)> {
        let mut keys = self.keys_of_ids();
        keys.extend(self.keys_of_turn(tenant, self.turn, self.distinctive != Distinctive::No, session));
        keys.push((KeyKind::Interrupted, self.interrupted_key(tenant)));
        // The first turn of a history may have had others before it.
        let other = if self.is_first { KeyKind::Chain } else { KeyKind::Question };
        keys.retain(|(kind, _)| *kind != other);
        keys
    }

    /// The keys to store for a reply, apart from those of minted ids.
    pub(crate) fn to_store(&self, tenant: &Tenant, session: Option<&str>, is_interrupted: bool) -> Vec<(KeyKind, Key)> {
        let mut keys: Vec<(KeyKind, Key)> = self.call_ids.map(|key| (KeyKind::CallIds, key)).into_iter().collect();
        keys.extend(self.keys_of_turn(tenant, self.turn, self.distinctive != Distinctive::No, session));
        if let Some(bare) = self.bare_turn {
            keys.extend(self.keys_of_turn(tenant, bare, self.distinctive == Distinctive::Always, session));
        }
        if is_interrupted {
            keys.push((KeyKind::Interrupted, self.interrupted_key(tenant)));
        }
        keys
    }

    fn keys_of_ids(&self) -> Vec<(KeyKind, Key)> {
        let minted = self.minted.iter().map(|key| (KeyKind::MintedId, *key));
        minted.chain(self.call_ids.map(|key| (KeyKind::CallIds, key))).collect()
    }

    fn keys_of_turn(
        &self,
        tenant: &Tenant,
        turn: Key,
        is_distinctive: bool,
        session: Option<&str>,
    ) -> Vec<(KeyKind, Key)> {
        let with = |kind: &str, other: &[u8]| {
            let mut hasher = KeyHasher::new(tenant, kind);
            hasher.piece(&turn.0);
            hasher.piece(other);
            hasher.finish()
        };
        let mut keys = vec![
            (KeyKind::Chain, with("turn and chain", &self.chain.0)),
            (KeyKind::Question, with("turn and question", &self.question.0)),
        ];
        keys.extend(session.map(|session| (KeyKind::Session, with("turn and session", session.as_bytes()))));
        if is_distinctive {
            keys.push((KeyKind::Turn, turn));
        }
        keys
    }

    fn interrupted_key(&self, tenant: &Tenant) -> Key {
        let mut hasher = KeyHasher::new(tenant, "interrupted");
        hasher.piece(&self.question.0);
        hasher.finish()
    }
}

/// The keys of a whole conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConversationKeys {
    /// One for each assistant message, in order.
    pub(crate) turns: Vec<TurnKeys>,
    /// What the keys of the next reply depend on.
    pub(crate) next: BeforeTurn,
}

/// What comes before a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BeforeTurn {
    previous: Option<Key>,
    question: Key,
}

impl ConversationKeys {
    /// Hashes every message once.
    pub(crate) fn of(tenant: &Tenant, messages: &[&Message]) -> ConversationKeys {
        let mut turns = Vec::new();
        let mut previous: Option<Key> = None;
        let mut between: Vec<&Message> = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            match message.role {
                // It changes between requests.
                Role::System => (),
                Role::User | Role::Tool => between.push(message),
                Role::Assistant => {
                    let before = BeforeTurn { previous, question: question_key(tenant, &between) };
                    let turn = turn_keys(tenant, at, message, &before);
                    previous = Some(turn.turn);
                    turns.push(turn);
                    between.clear();
                }
            }
        }
        let next = BeforeTurn { previous, question: question_key(tenant, &between) };
        ConversationKeys { turns, next }
    }
}

/// The keys of one assistant message.
pub(crate) fn turn_keys(tenant: &Tenant, at: usize, message: &Message, before: &BeforeTurn) -> TurnKeys {
    let text = normal_form::answer_text(&message.blocks);
    let calls: Vec<(&ToolCall, String)> = message
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::ToolCall(call) => Some((call, normal_form::arguments(&call.arguments).into_owned())),
            Block::Text(_) | Block::Thinking(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => None,
        })
        .collect();
    let mut turn = KeyHasher::new(tenant, "turn");
    turn.piece(text.as_bytes());
    let mut ids = KeyHasher::new(tenant, "call ids");
    let mut bare = (!calls.is_empty() && !text.is_empty()).then(|| KeyHasher::new(tenant, "turn"));
    bare.iter_mut().for_each(|bare| bare.piece(b""));
    for (call, arguments) in &calls {
        for hasher in [Some(&mut turn), bare.as_mut()].into_iter().flatten() {
            hasher.piece(call.name.as_bytes());
            hasher.piece(arguments.as_bytes());
        }
        ids.piece(call.id.as_str().as_bytes());
        ids.piece(call.name.as_bytes());
        ids.piece(arguments.as_bytes());
    }
    let mut chain = KeyHasher::new(tenant, "chain");
    chain.piece(before.previous.as_ref().map_or(b"".as_slice(), |key| key.0.as_slice()));
    chain.piece(&before.question.0);
    let argument_bytes = calls.iter().map(|(_, arguments)| arguments.len()).max().unwrap_or(0);
    TurnKeys {
        message: at,
        turn: turn.finish(),
        bare_turn: bare.map(KeyHasher::finish),
        chain: chain.finish(),
        question: before.question,
        is_first: before.previous.is_none(),
        call_ids: (!calls.is_empty()).then(|| ids.finish()),
        minted: calls.iter().filter_map(|(call, _)| minted_key(tenant, call.id.as_str())).collect(),
        n_calls: calls.len(),
        has_unique_ids: calls.iter().all(|(call, _)| is_unique_id(call.id.as_str())),
        distinctive: match (argument_bytes >= DISTINCTIVE_ARGUMENTS, text.len() >= DISTINCTIVE_TEXT) {
            (true, _) => Distinctive::Always,
            (false, true) => Distinctive::WithText,
            (false, false) => Distinctive::No,
        },
    }
}

/// Everything from the user and the tools, in one hash. How it is divided
/// into messages does not count, because protocols divide it differently.
fn question_key(tenant: &Tenant, between: &[&Message]) -> Key {
    let blocks = || between.iter().flat_map(|message| &message.blocks);
    let mut hasher = KeyHasher::new(tenant, "question");
    hasher.piece(normal_form::user_text(blocks()).as_bytes());
    let mut results: HashMap<&str, &ToolResult> = HashMap::new();
    for block in blocks() {
        match block {
            // Some clients write a result twice when they resume a session.
            Block::ToolResult(result) if is_repeated(result, &mut results) => (),
            Block::ToolResult(result) => {
                hasher.piece(b"result");
                hasher.piece(normal_form::result_text(&result.content).as_bytes());
                result.media.iter().for_each(|media| hasher.media(&media.source));
            }
            Block::Media(media) => hasher.media(&media.source),
            Block::Text(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::Unmodelled(_) => (),
        }
    }
    hasher.finish()
}

/// Whether an earlier result is the same.
fn is_repeated<'a>(result: &'a ToolResult, earlier: &mut HashMap<&'a str, &'a ToolResult>) -> bool {
    let first = *earlier.entry(&result.id).or_insert(result);
    !std::ptr::eq(first, result) && first == result
}

/// A new id of a tool call.
pub(crate) fn mint_call_id() -> String {
    format!("{MINTED_PREFIX}{}", crate::random::base62(MINTED_DIGITS))
}

/// The key of an id that we may have minted.
pub(crate) fn minted_key(tenant: &Tenant, id: &str) -> Option<Key> {
    let digits = id.strip_prefix(MINTED_PREFIX)?;
    let is_ours = digits.len() == MINTED_DIGITS && digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_ours.then(|| {
        let mut hasher = KeyHasher::new(tenant, "minted id");
        hasher.piece(id.as_bytes());
        hasher.finish()
    })
}

/// The key of a provider's id for a whole response.
pub(crate) fn response_key(tenant: &Tenant, id: &str) -> Key {
    let mut hasher = KeyHasher::new(tenant, "response id");
    hasher.piece(id.as_bytes());
    hasher.finish()
}

/// Whether an id is random, as opposed to a counter (`call_1`, `functions.ls:0`).
/// Its last part must be long, or have both letters and digits.
fn is_unique_id(id: &str) -> bool {
    let last = id.rsplit(['_', ':', '-', '.']).next().unwrap_or("");
    let has = |is: fn(&u8) -> bool| last.bytes().any(|byte| is(&byte));
    last.len() >= 16 || (last.len() >= 8 && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic))
}

/// A keyed hash of several pieces, each with its length.
struct KeyHasher(hmac::Context);

impl KeyHasher {
    fn new(tenant: &Tenant, kind: &str) -> KeyHasher {
        let mut hasher = KeyHasher(hmac::Context::with_key(tenant.hash_key()));
        hasher.piece(VERSION);
        hasher.piece(kind.as_bytes());
        hasher
    }

    fn piece(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn media(&mut self, source: &MediaSource) {
        self.piece(b"media");
        match source {
            MediaSource::Data(content) | MediaSource::Url(content) | MediaSource::FileId(content) => {
                self.piece(content.as_bytes())
            }
        }
    }

    fn finish(self) -> Key {
        let mut key = [0; 16];
        key.iter_mut().zip(self.0.sign().as_ref()).for_each(|(out, byte)| *out = *byte);
        Key(key)
    }
}

/// The digest of a text, for receipts.
pub(crate) fn text_digest(tenant: &Tenant, text: &str) -> Key {
    let mut hasher = KeyHasher::new(tenant, "receipt");
    hasher.piece(text.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g2_counters_are_no_evidence_of_their_own() {
        #[rustfmt::skip]
        let cases = [
            ("call_1", false), ("functions.bash:0", false), ("aside_call_3", false), ("call_0_0", false), ("", false),
            ("toolu_01A09q90qw90lq917835lq9", true), ("call_00_x8Bq2LmVf3kZ", true), ("D681PevKs", true),
            ("chatcmpl-tool-0b7f4a3c9d2e4f1aa7c6", true), ("call_12345678", false), ("call_abcdefgh", false), ("call_00_lrFbLOrrIfbvGqPzHrMq", true),
        ];
        for (id, unique) in cases {
            assert_eq!(is_unique_id(id), unique, "{id}");
        }
    }

    #[test]
    fn g2_minted_ids_fit_every_known_limit() {
        let tenant = Tenant::new("a", &[1; 32]);
        let id = mint_call_id();
        assert_eq!(id.len(), 25);
        assert!(minted_key(&tenant, &id).is_some() && minted_key(&tenant, "call_1").is_none());
        assert_ne!(mint_call_id(), id);
    }
}
