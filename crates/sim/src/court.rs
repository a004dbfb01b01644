//! What the played provider refuses: the judge of core over the body, and the
//! seals, which know themselves.

use std::hash::{Hash, Hasher};

use aside_core::block::{Arguments, Block, Seal, Seals, ToolCall};
use aside_core::dialect::{Dialect, ErrorClass, ErrorRow, Fault as RequestFault, PrefixCheck, Rules};
use aside_core::event::ProviderError;
use aside_core::rules::{Broken, Issued, NotARequest, Returned, Verdict, judge};
use aside_core::wire::{Incoming, error_reply};
use serde_json::Value;
use siphasher::sip::SipHasher13;

use crate::play::place;
use crate::seal::{Fault, Unit, check};
use crate::shape::{checks_seals, complaint};
use crate::teller::leader_of;
use crate::tools;

/// A request with all that decides about it.
pub(crate) struct Case<'a> {
    pub(crate) dialect: &'a Dialect,
    pub(crate) rules: &'a Rules,
    pub(crate) catalogue: &'a [ErrorRow],
    pub(crate) model: &'a str,
    pub(crate) headers: &'a [(String, String)],
    pub(crate) body: &'a str,
    pub(crate) incoming: &'a Incoming,
}

/// An answer that refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Case<'_> {
    /// The first rule that a request breaks, as its provider says it.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        let faults = self.seal_faults();
        match self.judged(&faults) {
            Ok(verdict) => {
                let broken = verdict.broken.into_iter().next();
                let refusal = broken.map(|Broken { status, headers, body, .. }| Refusal { status, headers, body });
                refusal.or_else(|| self.led_by_nothing()).or_else(|| self.moved(&faults))
            }
            Err(error) => Some(self.refuse(400, &error.to_string())),
        }
    }

    /// The only place where the judge is asked. What was issued it need not
    /// know: our seals prove themselves.
    fn judged(&self, faults: &[(String, Fault)]) -> Result<Verdict, NotARequest> {
        let forged = |seal: &str| faults.iter().any(|(bad, fault)| bad == seal && *fault == Fault::Forged);
        let is_good = |returned: &Returned<'_>| !forged(returned.seal);
        judge(self.dialect, self.model, self.headers, self.body, Issued::Checked(&is_good))
    }

    /// A hash of the key, which is never looked at otherwise.
    pub(crate) fn account(&self) -> u64 {
        let is_key = |name: &str| matches!(name, "authorization" | "x-api-key" | "api-key" | "x-goog-api-key");
        let mut hasher = SipHasher13::new();
        for (_, value) in self.headers.iter().filter(|(name, _)| is_key(name)) {
            value.hash(&mut hasher);
        }
        hasher.finish()
    }

    pub(crate) fn refuse(&self, status: u16, message: &str) -> Refusal {
        let error = ProviderError { message: message.to_owned(), code: None, status: Some(status) };
        Refusal { status, headers: Vec::new(), body: error_reply(self.dialect.protocol, &error) }
    }

    /// The words of a row of the catalogue, as this dialect says them.
    pub(crate) fn complain(&self, row: &ErrorRow, words: &[(&str, &str)]) -> Refusal {
        let says = row.says_at.get(&self.dialect.id).unwrap_or(&row.says);
        let usual = [("path", "messages.0"), ("place", "messages[0]"), ("index", "0"), ("id", "rs_0")];
        let places = words.iter().chain(&usual);
        let mut message =
            places.fold(says.clone(), |says, (place, words)| says.replace(&format!("{{{place}}}"), words));
        // Words that need more than this to be known again are said plainly.
        if message.contains('{') || !row.fits(&message) {
            message = row.texts.first().cloned().unwrap_or_default();
        }
        let status = row.status.first().copied().unwrap_or(400);
        let error = ProviderError { message, code: row.code.clone(), status: Some(status) };
        Refusal { status, headers: Vec::new(), body: error_reply(self.dialect.protocol, &error) }
    }

    /// An item whose name tells of a thought that did not come back with it.
    fn led_by_nothing(&self) -> Option<Refusal> {
        let row = self.dialect.complaint(self.model, RequestFault::Follower)?;
        if !self.dialect.complains_of(self.model, RequestFault::Follower) {
            return None;
        }
        let blocks = || self.incoming.messages.iter().flat_map(|message| &message.blocks);
        let came_back = |leader: &str| {
            blocks().any(|block| matches!(block, Block::Thinking(thinking) if thinking.id.as_deref() == Some(leader)))
        };
        let (id, kind, leader) = blocks().find_map(|block| {
            let (native, kind) = match block {
                Block::Text(text) => (text.native.as_ref(), "message"),
                Block::ToolCall(call) => (call.native.as_ref(), "function_call"),
                Block::Thinking(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => return None,
            };
            let item: Value = serde_json::from_str(&native?.json).ok()?;
            let id = item.get("id")?.as_str()?;
            let leader = leader_of(id).filter(|leader| !came_back(leader))?;
            Some((id.to_owned(), kind, leader))
        })?;
        Some(self.complain(row, &[("id", &id), ("kind", kind), ("other", &leader)]))
    }

    /// The seals that are not as they were issued, where this provider looks.
    fn seal_faults(&self) -> Vec<(String, Fault)> {
        let mut faults = Vec::new();
        if !checks_seals(self.rules, self.catalogue) {
            return faults;
        }
        let account = self.account();
        for (at, message) in self.incoming.messages.iter().enumerate() {
            let here = place(self.dialect, self.rules, account, self.incoming, at);
            let mut last = 0;
            for (seal, unit) in message.blocks.iter().flat_map(sealed_units) {
                match check(&seal.payload, unit.as_unit(), here) {
                    _ if seal.payload == self.rules.echo.dummy => (),
                    // They come back in their order.
                    Ok(index) if index >= last => last = index,
                    Ok(_) => faults.push((seal.payload.clone(), Fault::Forged)),
                    Err(fault) => faults.push((seal.payload.clone(), fault)),
                }
            }
        }
        faults
    }

    /// Whole seals whose conversation is another one.
    fn moved(&self, faults: &[(String, Fault)]) -> Option<Refusal> {
        let row = complaint(self.rules, self.catalogue, ErrorClass::Prefix)?;
        let moved = faults.iter().any(|(_, fault)| *fault == Fault::Elsewhere);
        (moved && !self.drops_blocks()).then(|| self.complain(row, &[]))
    }

    /// The request asks that thoughts of another prefix are dropped, not refused.
    fn drops_blocks(&self) -> bool {
        let body: Value = serde_json::from_str(self.body).unwrap_or_default();
        self.rules.bind.prefix == PrefixCheck::DropBlock
            && !self.rules.ask.extra.is_empty()
            && contains(&body, &Value::Object(self.rules.ask.extra.clone()))
    }
}

/// What a seal stands on.
enum Sealed<'a> {
    Words(&'a str),
    Call(&'a str, String),
    Itself,
}

impl Sealed<'_> {
    fn as_unit(&self) -> Unit<'_> {
        match self {
            Sealed::Words(words) => Unit::Words(words),
            Sealed::Call(name, arguments) => Unit::Call { name, arguments },
            Sealed::Itself => Unit::Itself,
        }
    }
}

/// The seals of a block, each with what it stands on.
fn sealed_units(block: &Block) -> Vec<(&Seal, Sealed<'_>)> {
    match block {
        Block::Thinking(thinking) => {
            let Some(Seals { signature, encrypted }) = thinking.seals() else { return Vec::new() };
            let signed = signature.iter().map(|seal| (seal, Sealed::Words(thinking.text())));
            signed.chain(encrypted.iter().map(|seal| (seal, Sealed::Itself))).collect()
        }
        Block::ToolCall(ToolCall { seal, name, arguments, .. }) => {
            let (Arguments::Json(text) | Arguments::Broken(text)) = arguments;
            seal.iter().map(|seal| (seal, Sealed::Call(name, tools::canonical(text)))).collect()
        }
        Block::Text(text) => text.seal.iter().map(|seal| (seal, Sealed::Itself)).collect(),
        Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => Vec::new(),
    }
}

/// Whether a body holds everything that a patch sets.
pub(crate) fn contains(body: &Value, patch: &Value) -> bool {
    match (body, patch) {
        (Value::Object(body), Value::Object(patch)) => {
            patch.iter().all(|(name, value)| body.get(name).is_some_and(|held| contains(held, value)))
        }
        (held, value) => held == value,
    }
}
