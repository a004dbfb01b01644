//! Making room in a conversation: old turns become a summary, the rest stays
//! as it was. A plan only names messages; nothing leaves the history.

mod transcript;

use std::fmt;

use crate::block::{Block, Text};
use crate::history::Turns;
use crate::message::{Message, Role};

pub use transcript::{Excerpt, Speaker, excerpts};

/// A branch with the tokens the encoder counted.
#[derive(Debug, Clone, Copy)]
pub struct Branch<'a> {
    /// Oldest first.
    pub messages: &'a [&'a Message],
    /// One for each message: [`crate::wire::Encoded::message_tokens`].
    pub tokens: &'a [u64],
}

/// How full the context is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Room {
    /// The request as the encoder counted it: [`crate::wire::Encoded::tokens`].
    pub counted: u64,
    /// The effective count: the same, reconciled with what was reported.
    pub used: u64,
    pub limit: Option<u64>,
    /// The share of the limit at which to compact.
    pub compact_at: Option<f64>,
}

impl Room {
    /// Tokens at which to compact; never where nobody knows a limit.
    fn trigger(self) -> Option<f64> {
        Some(self.limit? as f64 * self.compact_at?)
    }

    fn is_full(self) -> bool {
        self.trigger().is_some_and(|trigger| self.used as f64 >= trigger)
    }
}

/// Who wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// The count, if it is high enough.
    Full,
    /// The user, whatever the count.
    ByHand,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    Nothing(WhyNot),
    Compact(Compaction),
}

/// Why there is nothing to compact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyNot {
    /// The limit is not near, or not known.
    Fits,
    /// The latest turn stays as it is, and there is no other.
    OneTurn,
    /// What stands before the latest turn is a summary already.
    OnlyASummary,
}

/// Lower case, for a line on the screen.
impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WhyNot::Fits => "nothing to compact: the context is not full",
            WhyNot::OneTurn => "nothing to compact: there is only the latest turn, and it is kept as it is",
            WhyNot::OnlyASummary => "nothing to compact: what came before is a summary already",
        })
    }
}

/// Which messages become a summary. Every message of the branch is in one of
/// the two lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compaction {
    /// Whole turns, oldest first; an earlier summary among them.
    pub summarise: Vec<usize>,
    /// System messages, and everything from `from` on.
    pub keep: Vec<usize>,
    /// The first message of the first turn that stays.
    pub from: usize,
}

/// Decides what of a branch is to be summarised.
pub fn plan(branch: Branch<'_>, room: Room, occasion: Occasion) -> Plan {
    if occasion == Occasion::Full && !room.is_full() {
        return Plan::Nothing(WhyNot::Fits);
    }
    let starts = turn_starts(branch.messages);
    let Some((last, older)) = starts.split_last() else { return Plan::Nothing(WhyNot::OneTurn) };
    // Only a cut behind something that was really said gains anything.
    let said = |message: &&Message| message.role != Role::System && !is_summary(message);
    let Some(first_said) = branch.messages.iter().position(said).filter(|first| first < last) else {
        let summary = branch.messages.iter().take(*last).any(|message| is_summary(message));
        return Plan::Nothing(if summary { WhyNot::OnlyASummary } else { WhyNot::OneTurn });
    };
    let tokens_before = tokens_before(branch);
    let keeps_room = |from: usize| keeps_room(room, tokens_before.get(from).copied().unwrap_or_default());
    let roomy = older.iter().copied().filter(|start| *start > first_said).find(|start| keeps_room(*start));
    let everything_fits = keeps_room(0);
    let from = match occasion {
        Occasion::ByHand if everything_fits => *last,
        Occasion::Full | Occasion::ByHand => roomy.unwrap_or(*last),
    };
    let is_old =
        |at: &usize| *at < from && branch.messages.get(*at).is_some_and(|message| message.role != Role::System);
    let (summarise, keep) = (0..branch.messages.len()).partition(is_old);
    Plan::Compact(Compaction { summarise, keep, from })
}

/// The first message of each turn. What stands before the first question
/// belongs to it.
fn turn_starts(messages: &[&Message]) -> Vec<usize> {
    let turns = Turns::of(messages);
    let mut starts: Vec<usize> = Vec::new();
    for (at, turn) in turns.turn_of.iter().enumerate() {
        if *turn >= starts.len() {
            starts.push(at);
        }
    }
    // A nudge is part of the turn that it hastens.
    starts.retain(|at| messages.get(*at).is_none_or(|message| !message.is_nudge()));
    starts
}

/// How many tokens stand before each message, without those that always stay.
fn tokens_before(branch: Branch<'_>) -> Vec<u64> {
    let mut sum = 0;
    let before = branch.messages.iter().zip(branch.tokens).map(|(message, tokens)| {
        let before = sum;
        sum += if message.role == Role::System { 0 } else { *tokens };
        before
    });
    before.collect()
}

/// Whether what stays without so many tokens leaves half of the room free, so
/// that the next turns do not fill it at once. Without a limit nothing does.
fn keeps_room(room: Room, old: u64) -> bool {
    let Some(trigger) = room.trigger() else { return false };
    let kept = room.counted.saturating_sub(old);
    let in_their_tokens = room.used as f64 / room.counted.max(1) as f64;
    kept as f64 * in_their_tokens <= trigger / 2.0
}

impl Compaction {
    /// What a model is asked, to have the summary written. It is made of what
    /// was said and done; what was thought is not in it.
    pub fn request(&self, branch: &[&Message]) -> Vec<Message> {
        let old = self.summarise.iter().filter_map(|at| branch.get(*at).copied());
        let (prompt, transcript) = transcript::request(old);
        vec![say(Role::System, prompt), say(Role::User, transcript)]
    }

    /// The branch as it is sent from now on: the summary in the place of what
    /// it tells, all else as it was.
    pub fn messages<'a>(&self, branch: &[&'a Message], summary: &'a Message) -> Vec<&'a Message> {
        let kept = |before: bool| {
            let chosen = self.keep.iter().filter(move |at| (**at < self.from) == before);
            chosen.filter_map(|at| branch.get(*at).copied())
        };
        kept(true).chain([summary]).chain(kept(false)).collect()
    }
}

/// The member that marks a summary in stored messages.
pub(crate) const MARK: &str = "compacted";

/// A summary as a message of the conversation; none where nothing was written,
/// since that would be forgetting.
pub fn summary_message(summary: &str) -> Option<Message> {
    let summary = summary.trim();
    let text = format!("Summary of the conversation so far:\n\n{summary}");
    let extra = vec![(MARK.to_owned(), "true".to_owned())];
    (!summary.is_empty()).then(|| Message { extra, ..say(Role::User, text) })
}

pub fn is_summary(message: &Message) -> bool {
    message.role == Role::User && message.extra.iter().any(|(name, value)| name == MARK && value == "true")
}

fn say(role: Role, text: String) -> Message {
    Message::new(role, vec![Block::Text(Text { text, ..Text::default() })])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A letter a message: `s`ystem, `u`ser, `a`ssistant, `t`ool, `S`ummary.
    fn messages(drawn: &str) -> Vec<Message> {
        let message = |letter| match letter {
            's' => say(Role::System, "s".into()),
            'u' => say(Role::User, "u".into()),
            'a' => say(Role::Assistant, "a".into()),
            't' => say(Role::Tool, "t".into()),
            _ => summary_message("What was.").expect("there is one"),
        };
        drawn.chars().map(message).collect()
    }

    /// `-` is summarised, `=` is kept; or why not.
    fn drawn(plan: &Plan) -> String {
        match plan {
            Plan::Nothing(why) => format!("{why:?}"),
            Plan::Compact(Compaction { summarise, keep, .. }) => (0..summarise.len() + keep.len())
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
        use Occasion::{ByHand, Full};
        // Ten tokens a message and ten for the tools.
        let limited = |limit, drawn: &str| {
            let counted = 10 * (drawn.len() as u64 + 1);
            Room { counted, used: counted, limit, compact_at: Some(0.5) }
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
            ("by hand, far below",         ByHand, Some(1000), "suauaua",     "=----=="),
            ("by hand, no limit",          ByHand, None,       "suauaua",     "=----=="),
            ("by hand, nearly full",       ByHand, Some(240),  "suauauauaua", "=------===="),
            ("by hand, one turn",          ByHand, Some(1000), "sua",         "OneTurn"),
            ("by hand, nothing at all",    ByHand, Some(1000), "",            "OneTurn"),
            ("by hand, nobody asked yet",  ByHand, Some(1000), "sa",          "OneTurn"),
            ("an earlier summary",         ByHand, Some(1000), "sSuaua",      "=---=="),
            ("nothing but a summary",      ByHand, Some(1000), "sSua",        "OnlyASummary"),
            ("a summary alone gains none", Full,   Some(140),  "Suauaua",     "-----=="),
            ("system messages anywhere",   ByHand, None,       "suasua",      "=--==="),
        ];
        for (name, occasion, limit, roles, expected) in cases {
            let messages = messages(roles);
            let messages: Vec<&Message> = messages.iter().collect();
            let tokens = vec![10; messages.len()];
            let branch = Branch { messages: &messages, tokens: &tokens };
            assert_eq!(drawn(&plan(branch, limited(limit, roles), occasion)), expected, "{name}");
        }
    }

    #[test]
    fn c3_the_effective_count_decides_and_not_ours() {
        let messages = messages("uaua");
        let messages: Vec<&Message> = messages.iter().collect();
        let branch = Branch { messages: &messages, tokens: &[10; 4] };
        let full = |used| {
            let room = Room { counted: 40, used, limit: Some(100), compact_at: Some(0.8) };
            drawn(&plan(branch, room, Occasion::Full))
        };
        assert_eq!((full(79).as_str(), full(80).as_str()), ("Fits", "--=="));
    }

    #[test]
    fn c3_what_is_sent_afterwards_has_the_summary_in_its_place() {
        let messages = messages("sSuasua");
        let messages: Vec<&Message> = messages.iter().collect();
        let room = Room { counted: 0, used: 0, limit: None, compact_at: None };
        let plan = plan(Branch { messages: &messages, tokens: &[] }, room, Occasion::ByHand);
        let Plan::Compact(compaction) = plan else { panic!("{plan:?}") };
        let summary = summary_message("  What was.\n").expect("there is one");
        let expected = vec![messages[0], messages[4], &summary, messages[5], messages[6]];
        assert_eq!(compaction.messages(&messages, &summary), expected);
        assert!(is_summary(&summary) && !is_summary(messages[2]));
        assert!(!summary.is_question() && messages[2].is_question(), "a summary is nobody's question");
    }

    #[test]
    fn c3_an_empty_summary_is_none() {
        assert_eq!(summary_message(" \n"), None);
    }

    #[test]
    fn c3_three_hundred_thousand_messages_are_planned_in_one_go() {
        // The work of one turn must not grow with the square of the history.
        let owned = messages(&"ua".repeat(150_000));
        let branch: Vec<&Message> = owned.iter().collect();
        let tokens = vec![10; branch.len()];
        let room = Room { counted: 3_000_000, used: 3_000_000, limit: Some(100_000), compact_at: Some(0.8) };
        let Plan::Compact(plan) = plan(Branch { messages: &branch, tokens: &tokens }, room, Occasion::Full) else {
            panic!("it is far too long")
        };
        assert_eq!((plan.from, plan.summarise.len()), (296_000, 296_000));
    }
}
