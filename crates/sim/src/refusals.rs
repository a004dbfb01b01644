//! What the simulated provider refuses: requests that break core's judge rules, and seals
//! that fail verification.

use std::hash::{Hash, Hasher};

use aside_core::block::{Arguments, Block, Seal, Seals, ToolCall};
use aside_core::dialect::{Dialect, ErrorClass, ErrorRow, Fault as RequestFault, PrefixCheck, Rules};
use aside_core::event::ProviderError;
use aside_core::rules::{BrokenRule, IssuedThinking, JudgeVerdict, NotARequest, ReplayedSeal, judge};
use aside_core::wire::{ClientRequest, error_reply};
use serde_json::Value;
use siphasher::sip::SipHasher13;

use crate::issued_thinking::{Verdict, VerdictKind};
use crate::reply_builder::leading_thinking_id;
use crate::reply_plan::seal_context;
use crate::seal::{SealFault, SealedContent, check};
use crate::thinking_format::{catalogue_row, checks_seals};
use crate::tools;

/// A request with everything needed to check it.
pub(crate) struct RequestCheck<'a> {
    pub(crate) dialect: &'a Dialect,
    pub(crate) rules: &'a Rules,
    pub(crate) catalogue: &'a [ErrorRow],
    pub(crate) model: &'a str,
    pub(crate) headers: &'a [(String, String)],
    pub(crate) body: &'a str,
    pub(crate) incoming: &'a ClientRequest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusalResponse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// A refusal and the rules that led to it.
pub(crate) struct Refusal {
    pub(crate) response: RefusalResponse,
    pub(crate) verdicts: Vec<Verdict>,
}

fn refused(rule: &str, path: &str, message: &str) -> Verdict {
    let (rule, path, message) = (rule.to_owned(), path.to_owned(), message.to_owned());
    Verdict { verdict: VerdictKind::Refused, rule, path, message }
}

impl RequestCheck<'_> {
    /// The refusal for the first broken rule, in the provider's wording, with all broken
    /// rules.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        let faults = self.seal_faults();
        let broken = match self.run_judge(&faults) {
            Ok(verdict) => verdict.broken,
            Err(error) => {
                let verdicts = vec![refused("protocol", "", &error.to_string())];
                return Some(Refusal { response: self.refusal_with(400, &error.to_string()), verdicts });
            }
        };
        let verdicts = broken.iter().map(|broken| refused(&broken.rule, &broken.path, &broken.message)).collect();
        let first = broken.into_iter().next();
        if let Some(BrokenRule { status, headers, body, .. }) = first {
            return Some(Refusal { response: RefusalResponse { status, headers, body }, verdicts });
        }
        let of_seals = |rule: &str, response: RefusalResponse| {
            let verdicts = vec![refused(rule, "", &response.body)];
            Refusal { response, verdicts }
        };
        let missing = self.missing_thinking().map(|response| of_seals("an item needs its thinking item", response));
        missing.or_else(|| self.changed_prefix(&faults).map(|response| of_seals("bind.prefix", response)))
    }

    /// Runs core's judge. It needs no list of issued seals, because the simulator's seals
    /// verify themselves.
    fn run_judge(&self, faults: &[(String, SealFault)]) -> Result<JudgeVerdict, NotARequest> {
        let forged = |seal: &str| faults.iter().any(|(bad, fault)| bad == seal && *fault == SealFault::Forged);
        let is_good = |returned: &ReplayedSeal<'_>| !forged(returned.seal);
        judge(self.dialect, self.model, self.headers, self.body, IssuedThinking::Verifiable(&is_good))
    }

    /// A hash of the API key, which is used for nothing else.
    pub(crate) fn account_hash(&self) -> u64 {
        let is_key = |name: &str| matches!(name, "authorization" | "x-api-key" | "api-key" | "x-goog-api-key");
        let mut hasher = SipHasher13::new();
        for (_, value) in self.headers.iter().filter(|(name, _)| is_key(name)) {
            account_of(value).hash(&mut hasher);
        }
        hasher.finish()
    }

    pub(crate) fn refusal_with(&self, status: u16, message: &str) -> RefusalResponse {
        let error = ProviderError::new(message).with_status(status);
        RefusalResponse { status, headers: Vec::new(), body: error_reply(self.dialect.protocol, &error) }
    }

    /// The refusal of a catalogue row, in this dialect's wording.
    pub(crate) fn refusal_from_row(&self, row: &ErrorRow, values: &[(&str, &str)]) -> RefusalResponse {
        let template = row.says_at.get(&self.dialect.id).unwrap_or(&row.says);
        let defaults = [("path", "messages.0"), ("place", "messages[0]"), ("index", "0"), ("id", "rs_0")];
        let values = values.iter().chain(&defaults);
        let mut message =
            values.fold(template.clone(), |template, (name, value)| template.replace(&format!("{{{name}}}"), value));
        // Fall back to the catalogue's plain text if placeholders remain or the client
        // could not recognise the message.
        if message.contains('{') || !row.matches(&message) {
            message = row.texts.first().cloned().unwrap_or_default();
        }
        let status = row.status.first().copied().unwrap_or(400);
        let error = ProviderError::new(message).with_code(row.code.clone()).with_status(status);
        RefusalResponse { status, headers: Vec::new(), body: error_reply(self.dialect.protocol, &error) }
    }

    /// The refusal of an item that was sent back without the thinking item it depends on.
    fn missing_thinking(&self) -> Option<RefusalResponse> {
        let row = self.dialect.error_row(self.model, RequestFault::Follower)?;
        if !self.dialect.reports_fault(self.model, RequestFault::Follower) {
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
                Block::Thinking(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => return None,
            };
            let item: Value = serde_json::from_str(&native?.json).ok()?;
            let id = item.get("id")?.as_str()?;
            let leader = leading_thinking_id(id).filter(|leader| !came_back(leader))?;
            Some((id.to_owned(), kind, leader))
        })?;
        Some(self.refusal_from_row(row, &[("id", &id), ("kind", kind), ("other", &leader)]))
    }

    /// Seals that fail verification, if this provider checks them.
    fn seal_faults(&self) -> Vec<(String, SealFault)> {
        let mut faults = Vec::new();
        if !checks_seals(self.rules, self.catalogue) {
            return faults;
        }
        let account = self.account_hash();
        for (at, message) in self.incoming.messages.iter().enumerate() {
            let here = seal_context(self.dialect, self.rules, account, self.incoming, at);
            let mut last = 0;
            for (seal, content) in message.blocks.iter().flat_map(seals_of) {
                match check(&seal.payload, content.as_sealed_content(), here) {
                    _ if seal.payload == self.rules.echo.dummy => (),
                    // Seals must come back in order.
                    Ok(index) if index >= last => last = index,
                    Ok(_) => faults.push((seal.payload.clone(), SealFault::Forged)),
                    Err(fault) => faults.push((seal.payload.clone(), fault)),
                }
            }
        }
        faults
    }

    /// The refusal of valid seals whose preceding conversation has changed.
    fn changed_prefix(&self, faults: &[(String, SealFault)]) -> Option<RefusalResponse> {
        let row = catalogue_row(self.rules, self.catalogue, ErrorClass::Prefix)?;
        let changed_prefix = faults.iter().any(|(_, fault)| *fault == SealFault::WrongPrefix);
        (changed_prefix && !self.asks_to_drop_blocks()).then(|| self.refusal_from_row(row, &[]))
    }

    /// Whether the request asks to drop such thinking blocks rather than refuse.
    fn asks_to_drop_blocks(&self) -> bool {
        let body: Value = serde_json::from_str(self.body).unwrap_or_default();
        self.rules.bind.prefix == PrefixCheck::DropBlock
            && !self.rules.ask.extra.is_empty()
            && contains(&body, &Value::Object(self.rules.ask.extra.clone()))
    }
}

/// What identifies the account in an authorization header: the key, or for AWS the access
/// key id, because its signature differs for each request.
fn account_of(value: &str) -> &str {
    let credential = value.strip_prefix("AWS4-HMAC-SHA256").and_then(|rest| rest.split_once("Credential="));
    credential.map_or(value, |(_, scope)| scope.split('/').next().unwrap_or_default())
}

/// What a seal in a request was issued for.
enum BlockContent<'a> {
    Text(&'a str),
    Call(&'a str, String),
    PayloadOnly,
}

impl BlockContent<'_> {
    fn as_sealed_content(&self) -> SealedContent<'_> {
        match self {
            BlockContent::Text(words) => SealedContent::Text(words),
            BlockContent::Call(name, arguments) => SealedContent::Call { name, arguments },
            BlockContent::PayloadOnly => SealedContent::PayloadOnly,
        }
    }
}

/// The seals of a block, each with the content it was issued for.
fn seals_of(block: &Block) -> Vec<(&Seal, BlockContent<'_>)> {
    match block {
        Block::Thinking(thinking) => {
            let Some(Seals { signature, encrypted }) = thinking.seals() else { return Vec::new() };
            let signed = signature.iter().map(|seal| (seal, BlockContent::Text(thinking.text())));
            signed.chain(encrypted.iter().map(|seal| (seal, BlockContent::PayloadOnly))).collect()
        }
        Block::ToolCall(ToolCall { seal, name, arguments, .. }) => {
            let (Arguments::Json(text) | Arguments::Broken(text)) = arguments;
            seal.iter().map(|seal| (seal, BlockContent::Call(name, tools::canonical(text)))).collect()
        }
        Block::Text(text) => text.seal.iter().map(|seal| (seal, BlockContent::PayloadOnly)).collect(),
        Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => Vec::new(),
    }
}

/// Whether a body contains everything that a patch sets.
pub(crate) fn contains(body: &Value, patch: &Value) -> bool {
    match (body, patch) {
        (Value::Object(body), Value::Object(patch)) => {
            patch.iter().all(|(name, value)| body.get(name).is_some_and(|held| contains(held, value)))
        }
        (held, value) => held == value,
    }
}

#[cfg(test)]
mod tests {
    use super::account_of;

    #[test]
    fn x1_an_account_is_the_same_for_each_request() {
        #[rustfmt::skip]
        let cases = [
            ("Bearer k",                                                                           "Bearer k"),
            ("AWS4-HMAC-SHA256 Credential=AKIA/20260101/us-east-1/bedrock/aws4_request, Signature=1", "AKIA"),
            ("AWS4-HMAC-SHA256 Credential=AKIA/20260102/us-east-1/bedrock/aws4_request, Signature=2", "AKIA"),
            ("AWS4-HMAC-SHA256 nothing",                                                           "AWS4-HMAC-SHA256 nothing"),
        ];
        for (header, account) in cases {
            assert_eq!(account_of(header), account);
        }
    }
}
