//! Receipts: what was done to a request. By default a receipt contains no text of
//! the conversation.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use aside_core::block::Time;
use aside_core::event::Usage;
use aside_core::json_text::split_within;
use aside_core::protocol::Protocol;
use aside_core::rules::{BrokenRule, LeftOut};
use aside_core::wire::Encoded;
use aside_memory::{ReceiptFilter, ReceiptRow, RepairCounts, Tenant, decisions};
use aside_session::times::rfc3339;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::Client;
use crate::recall::{Changes, LossCounts, ReadRequest};

/// How many receipts are kept in memory, and how many bytes of them. The store keeps them for a week.
const MAX_RECEIPTS: usize = 10_000;
const MAX_RECEIPT_BYTES: usize = 32 << 20;

/// How many receipts a list contains.
pub(crate) const LIST_LENGTH: usize = 100;

/// How many decisions and broken rules a receipt contains.
const MAX_ROWS: usize = 1000;

/// The longest request in a full receipt.
const MAX_REQUEST_BYTES: usize = 1 << 20;

/// The longest text of a client in a receipt.
const MAX_TEXT_CHARS: usize = 200;

/// The model of a request: its name as the client wrote it, and what it stands for.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReceiptModel {
    pub(crate) asked: String,
    pub(crate) resolved: Option<String>,
    pub(crate) provider: Option<String>,
    pub(crate) dialect: Option<String>,
}

/// One attempt to get an answer from a provider.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct UpstreamAttempt {
    /// None if there was no answer.
    pub(crate) status: Option<u16>,
    pub(crate) ms: u64,
    /// The repair that was made because of this answer.
    pub(crate) rule: Option<String>,
}

/// When the first parts of a reply arrived.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timing {
    pub(crate) first_byte: Option<Instant>,
    pub(crate) first_thought: Option<Instant>,
    pub(crate) first_answer: Option<Instant>,
}

/// What the client sent and what the provider got, for `receipts = "full"`.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct RequestTexts {
    client: String,
    /// Empty if nothing was sent.
    sent: String,
}

impl RequestTexts {
    pub(crate) fn of_client(body: &str) -> RequestTexts {
        RequestTexts { client: cut(body), sent: String::new() }
    }
}

/// A text, cut if it is too long for a receipt, with a note about what is missing.
fn cut(text: &str) -> String {
    let (kept, rest) = split_within(text, MAX_REQUEST_BYTES);
    if rest.is_empty() { kept.to_owned() } else { format!("{kept}… ({} more bytes)", rest.len()) }
}

/// The record of one request, complete once the reply has ended.
#[derive(Debug, Clone)]
pub(crate) struct Receipt {
    pub(crate) id: String,
    pub(crate) at: Time,
    pub(crate) began: Instant,
    pub(crate) tenant: String,
    pub(crate) client: Client,
    pub(crate) protocol: Protocol,
    pub(crate) model: ReceiptModel,
    pub(crate) status: u16,
    pub(crate) shadow: bool,
    pub(crate) store: &'static str,
    pub(crate) upstream: Vec<UpstreamAttempt>,
    pub(crate) decisions: Vec<Value>,
    pub(crate) judge_before: Vec<Value>,
    pub(crate) judge_after: Vec<Value>,
    pub(crate) left_out: Vec<Value>,
    pub(crate) counts: RepairCounts,
    pub(crate) losses: LossCounts,
    /// The tenant with which it is stored. None if the store does not answer.
    pub(crate) stored_for: Option<Arc<Tenant>>,
    pub(crate) usage: Option<Usage>,
    pub(crate) timing: Timing,
    /// None unless receipts have the whole request.
    pub(crate) texts: Option<RequestTexts>,
}

impl Receipt {
    fn set_left_out(&mut self, left_out: &[LeftOut]) {
        let row = |loss: &LeftOut| json!({ "path": loss.path, "why": loss.reason.to_string() });
        self.left_out = left_out.iter().take(MAX_ROWS).map(row).collect();
    }

    /// Notes what the provider gets.
    pub(crate) fn note_sent(&mut self, body: &str) {
        if let Some(texts) = &mut self.texts {
            texts.sent = cut(body);
        }
    }

    /// Notes what an encoded request contains, and why.
    pub(crate) fn note_encoded(&mut self, read: &ReadRequest, encoded: &Encoded) {
        let messages = read.messages(Changes::Allowed);
        if let Some(recalled) = &read.recalled {
            let refused = self.counts.refused;
            self.counts = recalled.restored.counts().with_encoded(&messages, encoded);
            self.counts.refused = refused;
            let rows = decisions(&recalled.restored, &messages, encoded);
            let rows = rows.iter().take(MAX_ROWS).filter_map(|row| serde_json::to_value(row).ok());
            self.decisions = rows.collect();
        } else {
            self.counts = RepairCounts::default().with_encoded(&messages, encoded);
        }
        self.set_left_out(&encoded.left_out);
    }

    /// The whole receipt as JSON.
    pub(crate) fn to_json(&self) -> String {
        let Client { name, version, .. } = &self.client;
        let ReceiptModel { asked, resolved, provider, dialect } = &self.model;
        let since = |at: Option<Instant>| at.map(|at| milliseconds(at.duration_since(self.began)));
        let receipt = ReceiptJson {
            summary: SummaryJson {
                id: &self.id,
                at: rfc3339(self.at),
                client: ClientJson { name, version, protocol: self.protocol.as_str() },
                model: ModelJson {
                    asked: short(asked),
                    resolved: resolved.as_deref(),
                    provider: provider.as_deref(),
                    dialect: dialect.as_deref(),
                },
                status: self.status,
                repaired: self.counts.to_string(),
            },
            tenant: &self.tenant,
            shadow: self.shadow,
            store: self.store,
            upstream: &self.upstream,
            decisions: &self.decisions,
            judge: JudgeJson { before: &self.judge_before, after: &self.judge_after },
            left_out: &self.left_out,
            usage: self.usage.map(|usage| UsageJson {
                input: usage.input,
                output: usage.output,
                reasoning: usage.reasoning,
                cached: usage.cached,
                cache_write: usage.cache_write,
            }),
            timing: TimingJson {
                first_byte_ms: since(self.timing.first_byte),
                first_thought_ms: since(self.timing.first_thought),
                first_answer_ms: since(self.timing.first_answer),
                total_ms: milliseconds(self.began.elapsed()),
            },
            request: self.texts.as_ref(),
        };
        // Strings, numbers and JSON values: this cannot fail.
        serde_json::to_string(&receipt).unwrap_or_default()
    }

    /// The receipt as it is stored.
    pub(crate) fn to_row(&self, body: String) -> ReceiptRow {
        ReceiptRow {
            id: self.id.clone(),
            at: self.at,
            client: self.client.name.clone(),
            model: short(&self.model.asked),
            status: self.status,
            repaired: self.counts.to_string(),
            body,
        }
    }

    /// One line for the log: nothing of the conversation.
    pub(crate) fn log_line(&self) -> String {
        let resolved = self.model.resolved.as_deref().unwrap_or("no model");
        let client = if self.client.name.is_empty() { "unknown client" } else { &self.client.name };
        format!(
            "{} {} {client} {} {resolved}: {}; {}; {} ms",
            self.id,
            self.status,
            self.protocol,
            self.tenant,
            self.counts,
            milliseconds(self.began.elapsed())
        )
    }
}

/// A receipt as its readers see it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReceiptJson<'a> {
    #[serde(flatten)]
    summary: SummaryJson<'a>,
    tenant: &'a str,
    shadow: bool,
    store: &'a str,
    upstream: &'a [UpstreamAttempt],
    decisions: &'a [Value],
    judge: JudgeJson<'a>,
    left_out: &'a [Value],
    usage: Option<UsageJson>,
    timing: TimingJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'a RequestTexts>,
}

/// The members that every list entry has.
#[derive(Serialize)]
struct SummaryJson<'a> {
    id: &'a str,
    at: String,
    client: ClientJson<'a>,
    model: ModelJson<'a>,
    status: u16,
    repaired: String,
}

/// The same, read from a receipt.
#[derive(Serialize, Deserialize)]
struct Summary {
    id: Value,
    at: Value,
    client: Value,
    model: Value,
    status: Value,
    repaired: Value,
}

#[derive(Serialize)]
struct ClientJson<'a> {
    name: &'a str,
    version: &'a str,
    protocol: &'a str,
}

#[derive(Serialize)]
struct ModelJson<'a> {
    asked: String,
    resolved: Option<&'a str>,
    provider: Option<&'a str>,
    dialect: Option<&'a str>,
}

#[derive(Serialize)]
struct JudgeJson<'a> {
    before: &'a [Value],
    after: &'a [Value],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UsageJson {
    input: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
    cached: Option<u64>,
    cache_write: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TimingJson {
    first_byte_ms: Option<u64>,
    first_thought_ms: Option<u64>,
    first_answer_ms: Option<u64>,
    total_ms: u64,
}

/// The rules that a body breaks, for a receipt.
pub(crate) fn broken_rules(broken: &[BrokenRule]) -> Vec<Value> {
    let row = |rule: &BrokenRule| json!({ "rule": rule.rule, "path": rule.path, "message": rule.message });
    broken.iter().take(MAX_ROWS).map(row).collect()
}

fn milliseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn short(text: &str) -> String {
    text.chars().take(MAX_TEXT_CHARS).collect()
}

/// The newest receipts of all tenants.
#[derive(Debug, Default)]
pub(crate) struct ReceiptLog(Mutex<NewestReceipts>);

#[derive(Debug, Default)]
struct NewestReceipts {
    newest_last: VecDeque<StoredReceipt>,
    n_bytes: usize,
}

#[derive(Debug)]
struct StoredReceipt {
    id: String,
    at: Time,
    tenant: String,
    client: String,
    /// JSON, which takes less memory than values.
    whole: String,
}

impl StoredReceipt {
    fn n_bytes(&self) -> usize {
        self.whole.len()
    }
}

impl ReceiptLog {
    /// Adds a receipt, whose JSON is `whole`.
    pub(crate) fn add(&self, receipt: &Receipt, mut whole: String) {
        whole.shrink_to_fit();
        let stored = StoredReceipt {
            id: receipt.id.clone(),
            at: receipt.at,
            tenant: receipt.tenant.clone(),
            client: receipt.client.name.clone(),
            whole,
        };
        let mut receipts = self.receipts();
        receipts.n_bytes += stored.n_bytes();
        receipts.newest_last.push_back(stored);
        while receipts.newest_last.len() > MAX_RECEIPTS || receipts.n_bytes > MAX_RECEIPT_BYTES {
            let Some(oldest) = receipts.newest_last.pop_front() else { break };
            receipts.n_bytes = receipts.n_bytes.saturating_sub(oldest.n_bytes());
        }
    }

    fn receipts(&self) -> MutexGuard<'_, NewestReceipts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A receipt of a tenant, as JSON.
    pub(crate) fn find(&self, tenant: &str, id: &str) -> Option<String> {
        let receipts = self.receipts();
        let found = receipts.newest_last.iter().rev().find(|receipt| receipt.id == id && receipt.tenant == tenant);
        found.map(|receipt| receipt.whole.clone())
    }

    /// When a receipt of a tenant began, if it is here.
    pub(crate) fn time_of(&self, tenant: &str, id: &str) -> Option<Time> {
        let receipts = self.receipts();
        let found = receipts.newest_last.iter().rev().find(|receipt| receipt.id == id && receipt.tenant == tenant);
        found.map(|receipt| receipt.at)
    }

    /// The newest receipts of a tenant that fit.
    pub(crate) fn list(&self, tenant: &str, filter: &ReceiptFilter) -> Vec<ListedReceipt> {
        let receipts = self.receipts();
        let is_older = |receipt: &StoredReceipt| {
            filter.before.as_ref().is_none_or(|(at, id)| (receipt.at, &receipt.id) < (*at, id))
        };
        let is_of_client = |receipt: &StoredReceipt| filter.client.as_ref().is_none_or(|name| receipt.client == *name);
        let fits = |receipt: &&StoredReceipt| receipt.tenant == tenant && is_of_client(receipt) && is_older(receipt);
        let mut fitting: Vec<&StoredReceipt> = receipts.newest_last.iter().filter(fits).collect();
        fitting.sort_unstable_by(|a, b| (b.at, &b.id).cmp(&(a.at, &a.id)));
        fitting.truncate(filter.limit);
        fitting.into_iter().filter_map(ListedReceipt::of).collect()
    }
}

/// A receipt in a list.
pub(crate) struct ListedReceipt {
    pub(crate) at: Time,
    pub(crate) id: String,
    pub(crate) summary: Value,
}

impl ListedReceipt {
    fn of(receipt: &StoredReceipt) -> Option<ListedReceipt> {
        let summary: Summary = serde_json::from_str(&receipt.whole).ok()?;
        Some(ListedReceipt { at: receipt.at, id: receipt.id.clone(), summary: serde_json::to_value(summary).ok()? })
    }

    /// One that the store has.
    pub(crate) fn of_row(row: &ReceiptRow) -> ListedReceipt {
        let summary = json!({
            "id": row.id,
            "at": rfc3339(row.at),
            "client": { "name": row.client },
            "model": { "asked": row.model },
            "status": row.status,
            "repaired": row.repaired,
        });
        ListedReceipt { at: row.at, id: row.id.clone(), summary }
    }
}

/// The newest receipts of two lists, each once.
pub(crate) fn newest_of(mut here: Vec<ListedReceipt>, stored: Vec<ListedReceipt>) -> Vec<ListedReceipt> {
    let known: HashSet<String> = here.iter().map(|receipt| receipt.id.clone()).collect();
    here.extend(stored.into_iter().filter(|receipt| !known.contains(&receipt.id)));
    here.sort_unstable_by(|a, b| (b.at, &b.id).cmp(&(a.at, &a.id)));
    here.truncate(LIST_LENGTH);
    here
}
