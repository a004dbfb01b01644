//! The wording of notices that several front ends show.

use std::time::Duration;

use aside_core::compaction::CompactionTrigger;
use aside_core::connection_failure::ConnectionFailure;
use aside_core::counted::counted;
use aside_core::event::{ContextOverflow, ProviderError};
use aside_core::turn::{Declined, TurnEnd, TurnNotice};

/// Shown for a reply that contains only thinking. Requirement T6 specifies the wording.
pub const THINKING_ONLY: &str = "Model provided reasoning but no response. Try rephrasing your question.";

/// The name of what a hint tells the user to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HintStyle {
    /// `--set KEY=VALUE`, for a front end that answers once.
    CommandLine,
    /// `/set KEY=VALUE`, for a front end that stays open.
    SlashCommands,
    /// Where models and effort levels are chosen in menus, and slash commands can be typed.
    Menus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    Warning,
    Error,
}

/// What to tell the user at the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndNotice {
    pub severity: Severity,
    pub what: String,
    pub hint: Option<String>,
}

/// A notice during a turn: a headline and a line of detail, if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeText {
    pub what: String,
    pub detail: Option<String>,
}

pub fn turn_notice(notice: &TurnNotice) -> NoticeText {
    match notice {
        TurnNotice::Repaired { row, repair, refusal } => {
            let refusal = refusal.lines().next().unwrap_or("");
            let change = repair.as_str().replace('_', " ");
            NoticeText {
                what: format!("the provider refused ({row}: {refusal})"),
                detail: Some(format!("retried after: {change}")),
            }
        }
        TurnNotice::BrokenCall { name } => {
            NoticeText { what: format!("the arguments of `{name}` are not valid JSON; it was not run"), detail: None }
        }
    }
}

/// That the provider sends nothing, and for how long.
pub fn silence(lasted: Duration) -> String {
    format!("nothing came for {}", duration(milliseconds(lasted)))
}

/// That a request is sent again. The time that is left comes first, because the reason may be long.
pub fn retrying(left: Duration, attempt: u32, why: &str) -> String {
    match milliseconds(left).div_ceil(1000) {
        0 => format!("trying again, attempt {attempt}: {why}"),
        left => format!("trying again in {left}s, attempt {attempt}: {why}"),
    }
}

/// Formats a duration: `0.4s`, `12s`, `2m 5s`, `1h 2m`.
pub fn duration(ms: u64) -> String {
    match ms {
        0..=949 => format!("0.{}s", (ms + 50) / 100),
        950..=59_499 => format!("{}s", (ms + 500) / 1000),
        59_500..=3_599_499 => format!("{}m {}s", (ms + 500) / 60_000, (ms + 500) / 1000 % 60),
        _ => format!("{}h {}m", (ms + 500) / 3_600_000, (ms + 500) / 60_000 % 60),
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What was summarised, and why if the user did not ask for it.
pub fn compacted(summarised: usize, trigger: CompactionTrigger) -> String {
    let done = format!("replaced {} with a summary", counted(summarised as u64, "older message"));
    match trigger {
        CompactionTrigger::Manual => done,
        CompactionTrigger::Full => format!("the context window is nearly full: {done}"),
        CompactionTrigger::TooLong => format!("the conversation was too long for the model: {done}"),
    }
}

/// The notice for the end of a turn; none for a complete answer.
pub fn turn_end(end: &TurnEnd, style: HintStyle) -> Option<EndNotice> {
    let (severity, what) = match end {
        TurnEnd::Answered => return None,
        TurnEnd::ThinkingOnly { .. } => (Severity::Warning, THINKING_ONLY.to_owned()),
        TurnEnd::Length => (Severity::Warning, "the answer is cut at the output limit".to_owned()),
        TurnEnd::Empty => (Severity::Error, "the model sent nothing at all".to_owned()),
        TurnEnd::Declined(Declined::ByModel) => (Severity::Error, "the model declined to answer".to_owned()),
        TurnEnd::Declined(Declined::ByFilter) => (Severity::Error, "a content filter stopped the answer".to_owned()),
        TurnEnd::CutOff => (Severity::Error, "the answer stops before the provider said that it was done".to_owned()),
        TurnEnd::Oversized { most } => {
            (Severity::Error, format!("the answer was cut at {most} bytes, which is reply.maxBytes"))
        }
        TurnEnd::Failed(error) => {
            let status = error.status.map(|status| format!(" ({status})")).unwrap_or_default();
            (Severity::Error, format!("the provider failed{status}: {}", indented(error.all_words())))
        }
        TurnEnd::Unreachable(error) => (Severity::Error, indented(&error.what)),
        TurnEnd::Interrupted => (Severity::Warning, "interrupted".to_owned()),
        TurnEnd::OutOfSteps(steps) => {
            (Severity::Warning, format!("stopped after {} of tools", counted(u64::from(*steps), "step")))
        }
        TurnEnd::OutOfMoney { microdollars, most } => {
            let dollars = |micro: u64| micro as f64 / 1e6;
            let what = format!("stopped after ${:.4}; --max-cost is ${}", dollars(*microdollars), dollars(*most));
            (Severity::Warning, what)
        }
    };
    let hint = match (end, style) {
        (TurnEnd::Unreachable(error), style) => Some(connection_hint(error.failure, style)),
        (end, HintStyle::CommandLine) => command_line_hint(end).map(str::to_owned),
        (end, HintStyle::SlashCommands) => slash_command_hint(end).map(str::to_owned),
        (end, HintStyle::Menus) => menu_hint(end).map(str::to_owned),
    };
    Some(EndNotice { severity, what, hint })
}

/// Words that are not ours. No line of them begins where ours do, so that none looks like a hint.
pub fn indented(words: &str) -> String {
    let lines = words.split(['\n', '\r']).filter(|line| !line.trim().is_empty());
    lines.collect::<Vec<_>>().join("\n  ")
}

/// What to do about a failed connection. The wording fits every front end, since settings have the same names
/// everywhere.
fn connection_hint(failure: ConnectionFailure, style: HintStyle) -> String {
    let remedy = match failure {
        ConnectionFailure::InvalidRequest => {
            "correct the provider in config.toml; `aside config path` says where it is"
        }
        ConnectionFailure::Dns => "check the host name in the provider's base_url, and the network",
        ConnectionFailure::Refused => "start the server, or check the host and port in the provider's base_url",
        ConnectionFailure::Proxy => {
            "check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY; hosts that need no proxy are listed in NO_PROXY"
        }
        ConnectionFailure::UnknownAuthority => {
            "if you trust this server, add its certificate authority to the system's or name its PEM file in SSL_CERT_FILE"
        }
        ConnectionFailure::SelfSigned => {
            "give the server a certificate with CA:FALSE (openssl req -x509 -addext basicConstraints=CA:FALSE …), and \
             name its PEM file in SSL_CERT_FILE if you trust it"
        }
        ConnectionFailure::Tls => {
            "check the certificate of the server and this machine's clock; a base_url of a server without TLS begins \
             with http://"
        }
        ConnectionFailure::ConnectTimeout => {
            "check the network and the provider's base_url; the setting http.connectSeconds is the time limit"
        }
        ConnectionFailure::IdleTimeout => {
            "raise the setting http.idleSeconds if the model is silent for longer while it thinks"
        }
        ConnectionFailure::TotalTimeout => "raise the setting http.totalSeconds, or unset it for no limit",
        ConnectionFailure::Unreadable => "check the provider's base_url and protocol",
        ConnectionFailure::Closed | ConnectionFailure::Other => "check the network and the provider's base_url",
    };
    match style {
        HintStyle::CommandLine if failure == ConnectionFailure::Closed => {
            format!("ask again; what came is kept; if that persists, {remedy}")
        }
        HintStyle::CommandLine => remedy.to_owned(),
        HintStyle::SlashCommands if is_read_at_start(failure) => {
            format!("{remedy}; then leave and continue with aside -c")
        }
        HintStyle::SlashCommands => format!("/retry asks again; if that persists, {remedy}"),
        HintStyle::Menus => format!("{remedy}, then send /retry"),
    }
}

/// Whether the remedy is in a file or a variable that is read once, so that asking again does not help.
fn is_read_at_start(failure: ConnectionFailure) -> bool {
    match failure {
        ConnectionFailure::InvalidRequest | ConnectionFailure::UnknownAuthority | ConnectionFailure::SelfSigned => true,
        ConnectionFailure::Dns
        | ConnectionFailure::Refused
        | ConnectionFailure::Proxy
        | ConnectionFailure::Tls
        | ConnectionFailure::ConnectTimeout
        | ConnectionFailure::IdleTimeout
        | ConnectionFailure::TotalTimeout
        | ConnectionFailure::Unreadable
        | ConnectionFailure::Closed
        | ConnectionFailure::Other => false,
    }
}

const AT_OUTPUT_LIMIT: &str = "it stopped at the output limit: raise request.maxTokens or lower reasoning.effort";
const CONTINUE: &str = "ask it to continue if it was making progress";
const TOO_LONG: &str = "the conversation is too long for this model: send less, begin a new session, or ask a model with a \
                        larger window with -m";
// The older turns were summarised already, if there were any.
const SCREEN_TOO_LONG: &str = "the message does not fit: /undo takes it back, /model switches to a model with a larger \
                               window, /new begins a new session";
const MENU_TOO_LONG: &str = "the message does not fit: send /undo, choose a model with a larger window, or begin a new \
                             session";
const SCREEN_COMPACT_AGAIN: &str = "the conversation is too long for this model: /compact tries again to summarise older turns, \
                                    /model switches to a model with a larger window";
const MENU_COMPACT_AGAIN: &str = "the conversation is too long for this model: send /compact to summarise older turns, choose a \
                                  model with a larger window, or begin a new session";
const OTHER_WORDS: &str = "put it differently, or ask another model with -m";

fn command_line_hint(end: &TurnEnd) -> Option<&'static str> {
    Some(match end {
        TurnEnd::Answered
        | TurnEnd::ThinkingOnly { for_length: false }
        | TurnEnd::Interrupted
        | TurnEnd::Unreachable(_) => return None,
        TurnEnd::ThinkingOnly { for_length: true } => AT_OUTPUT_LIMIT,
        TurnEnd::Length => "raise it with --set request.maxTokens=N, or ask it to continue",
        TurnEnd::Empty => "ask again, or another model with -m",
        TurnEnd::Declined(Declined::ByModel | Declined::ByFilter) => OTHER_WORDS,
        TurnEnd::CutOff => "what came is above; ask again",
        TurnEnd::Oversized { .. } => "what came is kept; raise it with --set reply.maxBytes=N, 0 for no limit",
        TurnEnd::Failed(error) => match error.overflow {
            ContextOverflow::None => hint_for_status(hinted_status(error)),
            ContextOverflow::Final | ContextOverflow::CompactionFailed => TOO_LONG,
        },
        TurnEnd::OutOfSteps(_) | TurnEnd::OutOfMoney { .. } => CONTINUE,
    })
}

fn slash_command_hint(end: &TurnEnd) -> Option<&'static str> {
    Some(match end {
        TurnEnd::Answered
        | TurnEnd::ThinkingOnly { for_length: false }
        | TurnEnd::Interrupted
        | TurnEnd::Unreachable(_) => return None,
        TurnEnd::Declined(_) => "put it differently, or ask another /model",
        TurnEnd::Failed(error) => match error.overflow {
            ContextOverflow::None => screen_hint_for_status(hinted_status(error)),
            ContextOverflow::Final => SCREEN_TOO_LONG,
            ContextOverflow::CompactionFailed => SCREEN_COMPACT_AGAIN,
        },
        TurnEnd::ThinkingOnly { for_length: true } => AT_OUTPUT_LIMIT,
        TurnEnd::Length => "raise it with /set request.maxTokens=N, or ask it to continue",
        TurnEnd::Empty => "/retry, or another /model",
        TurnEnd::CutOff => "what came is kept; /retry asks again",
        TurnEnd::Oversized { .. } => "what came is kept; raise it with /set reply.maxBytes=N, 0 for no limit",
        TurnEnd::OutOfSteps(_) | TurnEnd::OutOfMoney { .. } => CONTINUE,
    })
}

fn screen_hint_for_status(status: Option<u16>) -> &'static str {
    match status {
        Some(401 | 403) => "check the key: aside doctor says which variable it is read from",
        Some(402) => "the account has no credit, or the model is not in its plan; /model switches to another",
        Some(404) => "check the model's name; /model switches to another",
        Some(413) => "the conversation is too long for this model: /compact summarises older turns",
        Some(429) => "the provider limits how often it is asked; wait and /retry, or switch with /model",
        Some(status) if status >= 500 => "the fault is the provider's; /retry asks again, /model switches to another",
        _ => "/sent shows what was sent; /retry asks again, /undo takes the message back",
    }
}

fn menu_hint(end: &TurnEnd) -> Option<&'static str> {
    match end {
        TurnEnd::Failed(error) => Some(match error.overflow {
            ContextOverflow::None => menu_hint_for_status(hinted_status(error)),
            ContextOverflow::Final => MENU_TOO_LONG,
            ContextOverflow::CompactionFailed => MENU_COMPACT_AGAIN,
        }),
        TurnEnd::Declined(_) => Some("put it differently, or choose another model"),
        TurnEnd::Empty => Some("send /retry, or choose another model"),
        other @ (TurnEnd::Answered
        | TurnEnd::ThinkingOnly { .. }
        | TurnEnd::Length
        | TurnEnd::CutOff
        | TurnEnd::Oversized { .. }
        | TurnEnd::Unreachable(_)
        | TurnEnd::Interrupted
        | TurnEnd::OutOfSteps(_)
        | TurnEnd::OutOfMoney { .. }) => slash_command_hint(other),
    }
}

fn menu_hint_for_status(status: Option<u16>) -> &'static str {
    match status {
        Some(401 | 403) => "check the key: `aside doctor` in a terminal says which variable it is read from",
        Some(402) => "the account has no credit, or the model is not in its plan; choose another model",
        Some(404) => "choose another model, or check the provider's base_url",
        Some(413) => "send /compact, or begin a new session",
        Some(429) => "the provider limits how often it is asked; wait and send /retry, or choose another model",
        Some(status) if status >= 500 => "the fault is the provider's; send /retry later, or choose another model",
        _ => "send /retry, or choose another model",
    }
}

/// The status that the hint is about. Not every provider uses 402 for an account without credit.
fn hinted_status(error: &ProviderError) -> Option<u16> {
    if error.lacks_credit { Some(402) } else { error.status }
}

fn hint_for_status(status: Option<u16>) -> &'static str {
    match status {
        Some(401 | 403) => "check the key: aside doctor says which variable it is read from",
        Some(402) => "the account has no credit, or the model is not in its plan",
        Some(404) => "check the model's name and the provider's base_url",
        Some(300..=399) => {
            "the provider redirects to another address: correct its base_url, http:// or https:// included"
        }
        Some(413) => TOO_LONG,
        Some(429) => "the provider limits how often it is asked; wait, or ask another model with -m",
        Some(status) if status >= 500 => "the fault is the provider's; try again later, or ask another model with -m",
        _ => "aside encode shows the request; --set changes what is sent",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_costs_too_much_names_what_it_cost_and_the_limit() {
        let end = TurnEnd::OutOfMoney { microdollars: 17_200, most: 12_000 };
        let notice = turn_end(&end, HintStyle::CommandLine).expect("there is one");
        assert_eq!(notice.what, "stopped after $0.0172; --max-cost is $0.012");
    }

    #[test]
    fn t2_a_duration_is_short_and_never_shows_zero_hours() {
        #[rustfmt::skip]
        let cases = [
            (50,         "0.1s"),
            (949,        "0.9s"),
            (950,        "1s"),
            (12_400,     "12s"),
            (59_499,     "59s"),
            (59_500,     "1m 0s"),
            (125_000,    "2m 5s"),
            (3_599_499,  "59m 59s"),
            (3_599_500,  "1h 0m"),
            (7_380_000,  "2h 3m"),
        ];
        for (ms, expected) in cases {
            assert_eq!(duration(ms), expected, "{ms}");
        }
    }
}
