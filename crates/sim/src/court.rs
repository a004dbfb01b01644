//! What the played provider refuses: the judge of core over the body, and the
//! seals, which know themselves.

use std::hash::{Hash, Hasher};

use aside_core::block::{Arguments, Block, Seal};
use aside_core::dialect::{Dialect, ErrorClass, ErrorRow, PrefixCheck, Rules};
use aside_core::event::ProviderError;
use aside_core::rules::{Issued, NotARequest, Verdict, judge};
use aside_core::wire::{Incoming, error_reply};
use serde_json::Value;
use siphasher::sip::SipHasher13;

use crate::play::place;
use crate::seal::{Fault, Place, Unit, check};
use crate::shape::complaint;
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
    pub(crate) body: String,
}

impl Case<'_> {
    /// The first rule that a request breaks, as its provider says it.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        match self.judged() {
            Ok(verdict) => {
                let broken = verdict.broken.into_iter().next();
                let refusal = broken.map(|broken| Refusal { status: broken.status, body: broken.body });
                refusal.or_else(|| self.broken_seal())
            }
            Err(error) => Some(self.refuse(400, &error.to_string())),
        }
    }

    /// The only place where the judge is asked. What was issued it need not
    /// know: our seals prove themselves.
    fn judged(&self) -> Result<Verdict, NotARequest> {
        judge(self.dialect, self.model, self.headers, self.body, Issued::Unknown)
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
        Refusal { status, body: error_reply(self.dialect.protocol, &error) }
    }

    /// A seal that is not as it was issued, where this provider looks.
    fn broken_seal(&self) -> Option<Refusal> {
        let foreign = complaint(self.rules, self.catalogue, ErrorClass::Foreign)?;
        let account = self.account();
        for (at, message) in self.incoming.messages.iter().enumerate() {
            let here = place(self.dialect, self.rules, account, self.incoming, at);
            let mut last = 0;
            for block in &message.blocks {
                match self.seals_hold(block, here, &mut last) {
                    Ok(()) => (),
                    Err(Fault::Forged) => return Some(self.complain(foreign, at)),
                    Err(Fault::Elsewhere) if self.drops_blocks() => (),
                    Err(Fault::Elsewhere) => {
                        let row = complaint(self.rules, self.catalogue, ErrorClass::Prefix).unwrap_or(foreign);
                        return Some(self.complain(row, at));
                    }
                }
            }
        }
        None
    }

    fn complain(&self, row: &ErrorRow, message: usize) -> Refusal {
        let words = row.texts.first().map_or("", String::as_str);
        self.refuse(row.status.first().copied().unwrap_or(400), &format!("messages.{message}: {words}"))
    }

    /// `last` is the index of the seal before: they come back in their order.
    fn seals_hold(&self, block: &Block, here: Place<'_>, last: &mut u16) -> Result<(), Fault> {
        let mut holds = |seal: &Option<Seal>, unit: Unit<'_>| {
            let Some(seal) = seal.as_ref().filter(|seal| seal.payload != self.rules.echo.dummy) else { return Ok(()) };
            let index = check(&seal.payload, unit, here)?;
            if index < *last {
                return Err(Fault::Forged);
            }
            *last = index;
            Ok(())
        };
        match block {
            Block::Thinking(thinking) => match thinking.seals() {
                Some(seals) => {
                    holds(&seals.signature, Unit::Words(thinking.text()))?;
                    holds(&seals.encrypted, Unit::Itself)
                }
                None => Ok(()),
            },
            Block::ToolCall(call) => {
                let arguments = match &call.arguments {
                    Arguments::Json(text) | Arguments::Broken(text) => text,
                };
                holds(&call.seal, Unit::Call { name: &call.name, arguments: &tools::canonical(arguments) })
            }
            Block::Text(text) => holds(&text.seal, Unit::Itself),
            Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => Ok(()),
        }
    }

    /// The request asks that thoughts of another prefix are dropped, not refused.
    fn drops_blocks(&self) -> bool {
        let body: Value = serde_json::from_str(self.body).unwrap_or_default();
        self.rules.bind.prefix == PrefixCheck::DropBlock
            && !self.rules.ask.extra.is_empty()
            && contains(&body, &Value::Object(self.rules.ask.extra.clone()))
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
