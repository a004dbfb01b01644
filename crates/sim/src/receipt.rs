//! What the simulator saw and decided for each request, for people and for tests.

use std::collections::VecDeque;
use std::fmt;
use std::hash::Hasher;

use aside_core::protocol::Protocol;
use aside_core::terminal_text::terminal_safe_line;
use serde_json::{Value, json};
use siphasher::sip128::{Hasher128, SipHasher13};

use crate::issued_thinking::{Verdict, VerdictKind};

/// How many receipts are kept.
const MAX_RECEIPTS: usize = 1000;

/// How many receipts a list contains.
const LIST_LENGTH: usize = 100;

/// The longest text of the client in a receipt.
const MAX_TEXT_CHARS: usize = 200;

/// The record of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestReceipt {
    /// `req_` and 26 letters or digits. The same requests in the same order get the same
    /// ids.
    pub id: String,
    /// When it arrived, in Unix milliseconds.
    pub at: u64,
    pub method: String,
    pub path: String,
    /// The client's name and version, from its `User-Agent`.
    pub client: (String, String),
    /// None if the path belongs to no protocol.
    pub protocol: Option<Protocol>,
    pub model: Option<ReceiptModel>,
    pub status: u16,
    pub verdicts: Vec<Verdict>,
}

/// The model of a request: its name as the client wrote it, and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiptModel {
    pub asked: String,
    pub resolved: String,
    pub dialect: String,
}

impl ReceiptModel {
    pub(crate) fn new(asked: &str, resolved: &str, dialect: &str) -> ReceiptModel {
        ReceiptModel { asked: short(asked), resolved: short(resolved), dialect: dialect.to_owned() }
    }
}

impl RequestReceipt {
    pub(crate) fn new(nth: u64, at: u64, method: &str, path: &str, user_agent: &str) -> RequestReceipt {
        let product = user_agent.split(' ').next().unwrap_or_default();
        let (name, version) = product.split_once('/').unwrap_or((product, ""));
        RequestReceipt {
            id: request_id(nth, method, path),
            at,
            method: short(method),
            path: short(path),
            client: (short(name), short(version)),
            protocol: None,
            model: None,
            status: 0,
            verdicts: Vec::new(),
        }
    }

    /// The members that every list entry has.
    fn summary(&self) -> Value {
        let (name, version) = &self.client;
        let protocol = self.protocol.map(Protocol::as_str);
        let model = self.model.as_ref().map(|model| {
            let ReceiptModel { asked, resolved, dialect } = model;
            json!({ "asked": asked, "resolved": resolved, "provider": "sim", "dialect": dialect })
        });
        json!({
            "id": self.id,
            "at": rfc3339(self.at),
            "client": { "name": name, "version": version, "protocol": protocol },
            "model": model,
            "status": self.status,
            "repaired": null,
            "method": self.method,
            "path": self.path,
            "verdicts": self.verdicts,
        })
    }

    /// The whole receipt, in the same format as the gateway's.
    pub(crate) fn to_json(&self) -> Value {
        let broken: Vec<&Verdict> =
            self.verdicts.iter().filter(|verdict| verdict.verdict == VerdictKind::Refused).collect();
        let mut receipt = self.summary();
        let rest = json!({
            "tenant": null,
            "shadow": false,
            "store": "none",
            "upstream": [],
            "decisions": [],
            "judge": { "before": broken, "after": [] },
            "leftOut": [],
            "usage": null,
            "timing": { "firstByteMs": null, "firstThoughtMs": null, "firstAnswerMs": null, "totalMs": null },
        });
        if let (Value::Object(receipt), Value::Object(rest)) = (&mut receipt, rest) {
            receipt.extend(rest);
        }
        receipt
    }

    fn count(&self, kind: VerdictKind) -> usize {
        self.verdicts.iter().filter(|verdict| verdict.verdict == kind).count()
    }
}

/// One line: status, client, request, model, and what happened to the thinking.
impl fmt::Display for RequestReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, version) = &self.client;
        let client = if name.is_empty() { "unknown client".to_owned() } else { format!("{name} {version}") };
        let mut line = format!("{} {}: {} {}", self.status, client.trim_end(), self.method, self.path);
        if let Some(ReceiptModel { asked, dialect, .. }) = &self.model {
            line.push_str(&format!(", {asked} as {dialect}"));
        }
        let kept = self.count(VerdictKind::Kept);
        let n_replies = kept + self.count(VerdictKind::Lost) + self.count(VerdictKind::Unneeded);
        if n_replies > 0 {
            line.push_str(&format!(", thinking of {kept} of {n_replies} replies came back"));
        }
        for verdict in &self.verdicts {
            match verdict.verdict {
                VerdictKind::Lost => line.push_str(&format!("; lost: {} ({})", verdict.path, verdict.rule)),
                VerdictKind::Refused => {
                    line.push_str(&format!("; refused: {} ({}): {}", verdict.path, verdict.rule, verdict.message));
                }
                VerdictKind::Kept | VerdictKind::Unneeded => (),
            }
        }
        f.write_str(&terminal_safe_line(&line))
    }
}

/// The newest receipts.
#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    newest_last: VecDeque<RequestReceipt>,
}

impl RequestLog {
    pub(crate) fn add(&mut self, receipt: RequestReceipt) {
        if self.newest_last.len() >= MAX_RECEIPTS {
            self.newest_last.pop_front();
        }
        self.newest_last.push_back(receipt);
    }

    pub(crate) fn find(&self, id: &str) -> Option<&RequestReceipt> {
        self.newest_last.iter().find(|receipt| receipt.id == id)
    }

    /// The newest ones, newest first.
    pub(crate) fn list(&self) -> Value {
        let requests: Vec<Value> =
            self.newest_last.iter().rev().take(LIST_LENGTH).map(RequestReceipt::summary).collect();
        json!({ "requests": requests, "next": null })
    }
}

fn short(text: &str) -> String {
    text.chars().take(MAX_TEXT_CHARS).collect()
}

/// `req_` and 26 characters in base 32.
fn request_id(nth: u64, method: &str, path: &str) -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut hasher = SipHasher13::new();
    hasher.write_u64(nth);
    hasher.write(method.as_bytes());
    hasher.write(path.as_bytes());
    let mut bits = hasher.finish128().as_u128();
    let mut id = "req_".to_owned();
    for _ in 0..26 {
        let digit = usize::try_from(bits & 31).unwrap_or(0);
        id.push(DIGITS.get(digit).copied().map_or('0', char::from));
        bits >>= 5;
    }
    id
}

/// Unix milliseconds as `2026-11-16T05:42:00.000Z`.
fn rfc3339(at: u64) -> String {
    let (seconds, milliseconds) = (at / 1000, at % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    // Counts years from March, so that the leap day is the last day of a year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x5_times_are_written_as_dates() {
        #[rustfmt::skip]
        let cases = [
            (0,                 "1970-01-01T00:00:00.000Z"),
            (951_782_400_000,   "2000-02-29T00:00:00.000Z"),
            (1_750_000_000_123, "2025-06-15T15:06:40.123Z"),
            (4_102_444_799_999, "2099-12-31T23:59:59.999Z"),
        ];
        for (at, expected) in cases {
            assert_eq!(rfc3339(at), expected);
        }
    }

    #[test]
    fn x5_a_receipt_is_one_printable_line() {
        let mut receipt = RequestReceipt::new(1, 0, "POST", "/v1/messages", "claude-cli/2.1.0 (external, cli)");
        receipt.status = 400;
        receipt.model = Some(ReceiptModel::new("a\u{1b}[2J", "a", "anthropic"));
        let verdict = |verdict, path: &str| Verdict {
            verdict,
            rule: "echo.loop = must".to_owned(),
            path: path.to_owned(),
            message: "no\nway".to_owned(),
        };
        receipt.verdicts =
            vec![verdict(VerdictKind::Kept, "a"), verdict(VerdictKind::Lost, "b"), verdict(VerdictKind::Refused, "c")];
        let line = receipt.to_string();
        assert!(line.starts_with("400 claude-cli 2.1.0: POST /v1/messages, a"), "{line}");
        assert!(
            line.contains("thinking of 1 of 2 replies came back; lost: b (echo.loop = must); refused: c"),
            "{line}"
        );
        assert!(!line.contains(['\n', '\u{1b}']), "{line}");
        assert!(receipt.id.len() == 30 && receipt.id.starts_with("req_"), "{}", receipt.id);
    }
}
