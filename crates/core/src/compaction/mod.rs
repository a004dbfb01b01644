//! Compaction: old turns are replaced by a summary, the rest stays unchanged. A
//! plan only lists messages; nothing is removed from the history.

mod transcript;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::block::{Block, Text};
use crate::history::Turns;
use crate::message::{Message, Role};

/// A branch with the token counts of the encoder.
#[derive(Debug, Clone, Copy)]
pub struct CountedBranch<'a> {
    /// Oldest first.
    pub messages: &'a [&'a Message],
    /// One for each message: [`crate::wire::Encoded::message_tokens`].
    pub tokens: &'a [u64],
}

/// Within this fraction of the trigger, an estimate does not decide about compaction.
const ESTIMATE_MARGIN: f64 = 0.1;

/// How full the context window is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ContextUsage {
    /// The encoder's count for the request: [`crate::wire::Encoded::tokens`].
    pub counted: u64,
    /// The effective count: `counted`, reconciled with the usage that the
    /// provider reported.
    pub used: u64,
    /// The size of the context window in tokens. None if it is unknown.
    pub limit: Option<u64>,
    /// The fraction of the limit at which to compact.
    pub compact_at: Option<f64>,
}

impl ContextUsage {
    /// The token count at which to compact. None if no limit is known.
    fn trigger(self) -> Option<f64> {
        Some(self.limit? as f64 * self.compact_at?)
    }

    fn is_full(self) -> bool {
        self.trigger().is_some_and(|trigger| self.used as f64 >= trigger)
    }

    /// Whether an estimate is too close to the trigger to decide. Loading a vocabulary
    /// takes time and memory, so never below half of the window.
    pub fn needs_exact_count(self) -> bool {
        let (Some(limit), Some(trigger)) = (self.limit, self.trigger()) else { return false };
        let used = self.used as f64;
        (used - trigger).abs() <= trigger * ESTIMATE_MARGIN && used >= limit as f64 / 2.0
    }
}

/// What triggered the compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CompactionTrigger {
    /// The token count. Compacts only if it is high enough.
    Full,
    /// The user. Compacts at any token count.
    #[default]
    Manual,
    /// The provider refused the conversation because it is too long. Compacts whatever our own count says.
    TooLong,
}

/// The result of [`plan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactionPlan {
    /// There is nothing to do.
    Nothing(NoCompaction),
    /// Summarise these messages.
    Compact(Compaction),
}

/// Why nothing is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoCompaction {
    /// The count is below the trigger, or no limit is known.
    Fits,
    /// The latest turn is always kept, and there is no other.
    OneTurn,
    /// Everything before the latest turn is already a summary.
    OnlySummary,
}

/// Lower case, for use within a line.
impl fmt::Display for NoCompaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoCompaction::Fits => "nothing to compact: the context is not full",
            NoCompaction::OneTurn => "nothing to compact: there is only the latest turn, and it is kept as it is",
            NoCompaction::OnlySummary => "nothing to compact: what came before is a summary already",
        })
    }
}

/// The messages to summarise. Every message of the branch is in exactly one of
/// the two lists.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compaction {
    /// Whole turns, oldest first, including an earlier summary.
    pub summarise: Vec<usize>,
    /// System messages, and everything starting at `from`.
    pub keep: Vec<usize>,
    /// The first message of the first turn that is kept.
    pub from: usize,
}

/// Decides which messages of a branch to summarise.
pub fn plan(branch: CountedBranch<'_>, usage: ContextUsage, trigger: CompactionTrigger) -> CompactionPlan {
    if trigger == CompactionTrigger::Full && !usage.is_full() {
        return CompactionPlan::Nothing(NoCompaction::Fits);
    }
    let starts = turn_starts(branch.messages);
    let Some((last, older)) = starts.split_last() else { return CompactionPlan::Nothing(NoCompaction::OneTurn) };
    // Compacting gains something only if it covers real messages.
    let is_real = |message: &&Message| message.role != Role::System && !is_summary(message);
    let Some(first_real) = branch.messages.iter().position(is_real).filter(|first| first < last) else {
        let summary = branch.messages.iter().take(*last).any(|message| is_summary(message));
        return CompactionPlan::Nothing(if summary { NoCompaction::OnlySummary } else { NoCompaction::OneTurn });
    };
    let tokens_before = tokens_before(branch);
    let leaves_headroom = |from: usize| leaves_headroom(usage, tokens_before.get(from).copied().unwrap_or_default());
    let first_fitting = older.iter().copied().filter(|start| *start > first_real).find(|start| leaves_headroom(*start));
    let everything_fits = leaves_headroom(0);
    let from = match trigger {
        CompactionTrigger::Manual | CompactionTrigger::TooLong if everything_fits => *last,
        CompactionTrigger::Full | CompactionTrigger::Manual | CompactionTrigger::TooLong => {
            first_fitting.unwrap_or(*last)
        }
    };
    let is_old =
        |at: &usize| *at < from && branch.messages.get(*at).is_some_and(|message| message.role != Role::System);
    let (summarise, keep) = (0..branch.messages.len()).partition(is_old);
    CompactionPlan::Compact(Compaction { summarise, keep, from })
}

/// The first message of each turn. Messages before the first prompt belong to
/// the first turn.
fn turn_starts(messages: &[&Message]) -> Vec<usize> {
    let turns = Turns::of(messages);
    let mut starts: Vec<usize> = Vec::new();
    for (at, turn) in turns.turn_of.iter().enumerate() {
        if *turn >= starts.len() {
            starts.push(at);
        }
    }
    // An answer-now message belongs to the turn it interrupts.
    starts.retain(|at| messages.get(*at).is_none_or(|message| !message.is_answer_now()));
    starts
}

/// The number of tokens before each message, not counting those that are always
/// kept.
fn tokens_before(branch: CountedBranch<'_>) -> Vec<u64> {
    let mut sum = 0;
    let before = branch.messages.iter().zip(branch.tokens).map(|(message, tokens)| {
        let before = sum;
        sum += if message.role == Role::System { 0 } else { *tokens };
        before
    });
    before.collect()
}

/// Whether dropping `old` tokens leaves half of the trigger free, so that the
/// next turns do not trigger another compaction. False without a limit.
fn leaves_headroom(usage: ContextUsage, old: u64) -> bool {
    let Some(trigger) = usage.trigger() else { return false };
    let kept = usage.counted.saturating_sub(old);
    let ratio = usage.used as f64 / usage.counted.max(1) as f64;
    kept as f64 * ratio <= trigger / 2.0
}

impl Compaction {
    /// The request that asks a model to write the summary. It contains text,
    /// tool calls and results, but no thinking.
    pub fn request(&self, branch: &[&Message]) -> Vec<Message> {
        let old = self.summarise.iter().filter_map(|at| branch.get(*at).copied());
        let (prompt, transcript) = transcript::request(old);
        vec![text_message(Role::System, prompt), text_message(Role::User, transcript)]
    }

    /// The branch as it is sent from now on, with the summary in place of the
    /// messages it covers.
    pub fn messages<'a>(&self, branch: &[&'a Message], summary: &'a Message) -> Vec<&'a Message> {
        let kept = |before: bool| {
            let chosen = self.keep.iter().filter(move |at| (**at < self.from) == before);
            chosen.filter_map(|at| branch.get(*at).copied())
        };
        kept(true).chain([summary]).chain(kept(false)).collect()
    }

    /// Like [`summary_message`], and says how many of the messages after it are older than it is.
    pub fn summary_message(&self, summary: &str) -> Option<Message> {
        let n_older = self.keep.iter().filter(|at| **at >= self.from).count();
        let mut message = summary_message(summary)?;
        message.unknown_members.push((N_OLDER.to_owned(), n_older.to_string()));
        Some(message)
    }
}

/// The member of a summary that counts the messages after it that were there before it. Providers counted their
/// requests with the messages that the summary replaced.
const N_OLDER: &str = "olderMessagesAfter";

/// The member that marks a summary in stored messages.
pub const MARK: &str = "compacted";

/// Wraps a summary in a message. None if the summary is empty, since that would
/// lose the old turns.
pub fn summary_message(summary: &str) -> Option<Message> {
    let summary = summary.trim();
    let text = format!("Summary of the conversation so far:\n\n{summary}");
    let unknown_members = vec![(MARK.to_owned(), "true".to_owned())];
    (!summary.is_empty()).then(|| Message { unknown_members, ..text_message(Role::User, text) })
}

/// Whether a message is a summary that [`summary_message`] made.
pub fn is_summary(message: &Message) -> bool {
    message.role == Role::User && message.unknown_members.iter().any(|(name, value)| name == MARK && value == "true")
}

/// The provider's count of the last request and its reply. None if a summary has replaced messages since.
pub fn last_counted_tokens(branch: &[&Message]) -> Option<u64> {
    let last = branch.iter().rposition(|message| message.role == Role::Assistant)?;
    let is_outdated = branch
        .iter()
        .enumerate()
        .any(|(at, message)| is_summary(message) && last <= at.saturating_add(n_older_messages_after(message)));
    let usage = branch.get(last)?.usage.filter(|_| !is_outdated)?;
    let input = usage.input.filter(|input| *input > 0)?;
    Some(input.saturating_add(usage.output.unwrap_or_default()))
}

fn n_older_messages_after(summary: &Message) -> usize {
    let found = summary.unknown_members.iter().find(|(name, _)| name == N_OLDER);
    found.and_then(|(_, count)| count.parse().ok()).unwrap_or_default()
}

fn text_message(role: Role, text: String) -> Message {
    Message::new(role, vec![Block::Text(Text { text, ..Text::default() })])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One letter per message: `s`ystem, `u`ser, `a`ssistant, `t`ool,
    /// `S`ummary.
    fn messages(drawn: &str) -> Vec<Message> {
        let message = |character| match character {
            's' => text_message(Role::System, "s".into()),
            'u' => text_message(Role::User, "u".into()),
            'a' => text_message(Role::Assistant, "a".into()),
            't' => text_message(Role::Tool, "t".into()),
            _ => summary_message("What was.").expect("there is one"),
        };
        drawn.chars().map(message).collect()
    }

    /// `-` is summarised, `=` is kept; or the reason for not compacting.
    fn drawn(plan: &CompactionPlan) -> String {
        match plan {
            CompactionPlan::Nothing(why) => format!("{why:?}"),
            CompactionPlan::Compact(Compaction { summarise, keep, .. }) => (0..summarise.len() + keep.len())
                .map(|at| match (summarise.contains(&at), keep.contains(&at)) {
                    (true, false) => '-',
                    (false, true) => '=',
                    _ => '!',
                })
                .collect(),
        }
    }

    #[test]
    fn c3_old_turns_are_summarised_whole_and_the_latest_stays() {
        use CompactionTrigger::{Full, Manual};
        // Ten tokens per message and ten for the tools.
        let limited = |limit, drawn: &str| {
            let counted = 10 * (drawn.len() as u64 + 1);
            ContextUsage { counted, used: counted, limit, compact_at: Some(0.5) }
        };
        #[rustfmt::skip]
        let cases = [
            ("below the trigger",          Full,   Some(1000), "suaua",       "Fits"),
            ("no limit is known",          Full,   None,       "suauauaua",   "Fits"),
            ("at the trigger",             Full,   Some(160),  "uauauau",     "----==="),
            ("as many turns as have room", Full,   Some(240),  "suauauauaua", "=------===="),
            ("no room for two",            Full,   Some(100),  "suauauaua",   "=------=="),
            ("steps stay with their turn", Full,   Some(140),  "uatatauata",  "------===="),
            ("an open loop",               Full,   Some(80),   "uauatat",     "--====="),
            ("a loop that fills it all",   Full,   Some(20),   "uauatatatat", "--========="),
            ("one turn",                   Full,   Some(20),   "suatatat",    "OneTurn"),
            ("by hand, far below",         Manual, Some(1000), "suauaua",     "=----=="),
            ("by hand, no limit",          Manual, None,       "suauaua",     "=----=="),
            ("by hand, nearly full",       Manual, Some(240),  "suauauauaua", "=------===="),
            ("by hand, one turn",          Manual, Some(1000), "sua",         "OneTurn"),
            ("by hand, nothing at all",    Manual, Some(1000), "",            "OneTurn"),
            ("by hand, no prompt yet"   ,  Manual, Some(1000), "sa",          "OneTurn"),
            ("an earlier summary",         Manual, Some(1000), "sSuaua",      "=---=="),
            ("nothing but a summary",      Manual, Some(1000), "sSua",        "OnlySummary"),
            ("a summary alone gains none", Full,   Some(140),  "Suauaua",     "-----=="),
            ("system messages anywhere",   Manual, None,       "suasua",      "=--==="),
        ];
        for (name, trigger, limit, roles, expected) in cases {
            let messages = messages(roles);
            let messages: Vec<&Message> = messages.iter().collect();
            let tokens = vec![10; messages.len()];
            let branch = CountedBranch { messages: &messages, tokens: &tokens };
            assert_eq!(drawn(&plan(branch, limited(limit, roles), trigger)), expected, "{name}");
        }
    }

    #[test]
    fn c3_the_effective_count_decides_not_the_encoders_count() {
        let messages = messages("uaua");
        let messages: Vec<&Message> = messages.iter().collect();
        let branch = CountedBranch { messages: &messages, tokens: &[10; 4] };
        let full = |used| {
            let usage = ContextUsage { counted: 40, used, limit: Some(100), compact_at: Some(0.8) };
            drawn(&plan(branch, usage, CompactionTrigger::Full))
        };
        assert_eq!((full(79).as_str(), full(80).as_str()), ("Fits", "--=="));
    }

    #[test]
    fn c4_only_a_count_close_to_the_trigger_must_be_exact() {
        #[rustfmt::skip]
        let cases = [
            ("far below",            10_000,  Some(100_000), Some(0.8), false),
            ("ten percent below",    72_000,  Some(100_000), Some(0.8), true),
            ("below that",           71_999,  Some(100_000), Some(0.8), false),
            ("ten percent above",    88_000,  Some(100_000), Some(0.8), true),
            ("above that",           88_001,  Some(100_000), Some(0.8), false),
            ("below half",           49_999,  Some(100_000), Some(0.5), false),
            ("at half",              50_000,  Some(100_000), Some(0.5), true),
            ("no limit is known",    80_000,  None,          Some(0.8), false),
            ("compaction is off",    80_000,  Some(100_000), None,      false),
        ];
        for (name, used, limit, compact_at, expected) in cases {
            let usage = ContextUsage { counted: used, used, limit, compact_at };
            assert_eq!(usage.needs_exact_count(), expected, "{name}");
        }
    }

    #[test]
    fn c3_the_summary_replaces_the_messages_it_covers() {
        let messages = messages("sSuasua");
        let messages: Vec<&Message> = messages.iter().collect();
        let usage = ContextUsage { counted: 0, used: 0, limit: None, compact_at: None };
        let plan = plan(CountedBranch { messages: &messages, tokens: &[] }, usage, CompactionTrigger::Manual);
        let CompactionPlan::Compact(compaction) = plan else { panic!("{plan:?}") };
        let summary = summary_message("  What was.\n").expect("there is one");
        let expected = vec![messages[0], messages[4], &summary, messages[5], messages[6]];
        assert_eq!(compaction.messages(&messages, &summary), expected);
        assert!(is_summary(&summary) && !is_summary(messages[2]));
        assert!(!summary.begins_turn() && messages[2].begins_turn(), "a summary starts no turn");
    }

    #[test]
    fn c3_a_count_from_before_the_summary_does_not_hold() {
        let mut messages = messages("sSuasua");
        for message in messages.iter_mut().filter(|message| message.role == Role::Assistant) {
            message.usage = Some(crate::event::Usage::default().with_input(Some(4000)).with_output(Some(200)));
        }
        let branch: Vec<&Message> = messages.iter().collect();
        assert_eq!(last_counted_tokens(&branch), Some(4200));
        let usage = ContextUsage { counted: 0, used: 0, limit: None, compact_at: None };
        let plan = plan(CountedBranch { messages: &branch, tokens: &[] }, usage, CompactionTrigger::Manual);
        let CompactionPlan::Compact(compaction) = plan else { panic!("{plan:?}") };
        let summary = compaction.summary_message("What was.").expect("there is one");
        let mut shorter = compaction.messages(&branch, &summary);
        assert_eq!(last_counted_tokens(&shorter), None, "the kept reply was counted with what was summarised");
        shorter.extend([branch[5], branch[6]]);
        assert_eq!(last_counted_tokens(&shorter), Some(4200), "a later reply was counted with the summary");
        shorter.truncate(5);
        assert_eq!(last_counted_tokens(&shorter), None, "the later reply is undone");
    }

    #[test]
    fn c3_an_empty_summary_gives_no_message() {
        assert_eq!(summary_message(" \n"), None);
    }

    #[test]
    fn c3_planning_is_linear_in_the_number_of_messages() {
        // The cost of one turn must not grow quadratically with the history.
        let owned = messages(&"ua".repeat(150_000));
        let branch: Vec<&Message> = owned.iter().collect();
        let tokens = vec![10; branch.len()];
        let usage = ContextUsage { counted: 3_000_000, used: 3_000_000, limit: Some(100_000), compact_at: Some(0.8) };
        let CompactionPlan::Compact(plan) =
            plan(CountedBranch { messages: &branch, tokens: &tokens }, usage, CompactionTrigger::Full)
        else {
            panic!("it is far too long")
        };
        assert_eq!((plan.from, plan.summarise.len()), (296_000, 296_000));
    }
}
