//! What was used: tokens, seconds and money, by turn, model, day or session.
//!
//! Counters are the provider's own. Where it gave none, the text is counted and
//! the figure says that it is an estimate.

use std::collections::BTreeMap;

use aside_core::block::{Origin, Time};
use aside_core::event::Usage;

use crate::session::{MessageId, SessionId};

/// What is wanted. Prices and dialects are handed in: the store knows neither.
pub struct LedgerQuery<'a> {
    pub by: By,
    pub session: Option<SessionId>,
    pub since: Option<Time>,
    /// The terms of whoever made a message.
    pub terms: &'a dyn Fn(&Origin) -> Terms,
    /// Minutes that local time is ahead of UTC, for whose days are meant.
    pub minutes_ahead: i32,
}

/// How lines are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Turn,
    Model,
    Day,
    Session,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    pub price: Option<Price>,
    pub counting: Counting,
}

/// Money per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// What cached input costs; the same as other input where nobody said.
    pub cached: Option<f64>,
}

/// Whether a provider's output count holds its thinking count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    InOutput,
    BesideOutput,
}

/// What a line is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// The message that began the turn.
    Turn {
        session: SessionId,
        turn: MessageId,
    },
    /// None where nobody said which model it was.
    Model(Option<String>),
    /// Days since 1970-01-01, in the time that was asked for.
    Day(i64),
    Session {
        id: SessionId,
        title: Option<String>,
    },
}

/// A sum that says how much of it was guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    pub count: u64,
    pub is_estimate: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LedgerLine {
    pub group: Group,
    pub n_replies: u64,
    pub input: Tokens,
    pub cached: Tokens,
    pub thinking: Tokens,
    pub answer: Tokens,
    /// From the first byte asked for to the last one received; only of replies
    /// that were measured.
    pub seconds: Option<f64>,
    pub thinking_seconds: Option<f64>,
    pub cost: Cost,
}

/// What it cost, as far as prices are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cost {
    Unknown,
    /// Some replies had no price or no counters, so it was at least this.
    AtLeast(f64),
    Known(f64),
}

/// One reply as the store has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) origin: Origin,
    pub(crate) usage: Usage,
    /// Estimates from the text, for what the provider did not count.
    pub(crate) thinking_guess: u64,
    pub(crate) answer_guess: u64,
    pub(crate) took_ms: Option<u64>,
    pub(crate) thought_ms: Option<u64>,
}

/// Lines that grow entry by entry.
#[derive(Debug, Default)]
pub(crate) struct Book {
    lines: BTreeMap<Group, LedgerLine>,
}

impl Book {
    pub(crate) fn add(&mut self, group: Group, entry: &Entry, terms: Terms) {
        let line = self.lines.entry(group.clone()).or_insert_with(|| LedgerLine {
            group,
            n_replies: 0,
            input: Tokens::default(),
            cached: Tokens::default(),
            thinking: Tokens::default(),
            answer: Tokens::default(),
            seconds: None,
            thinking_seconds: None,
            cost: Cost::Known(0.0),
        });
        let (thinking, answer) = entry.split(terms.counting);
        line.n_replies += 1;
        line.input.add(Tokens { count: entry.usage.input.unwrap_or(0), is_estimate: entry.usage.input.is_none() });
        line.cached.add(Tokens { count: entry.usage.cached.unwrap_or(0), is_estimate: false });
        line.thinking.add(thinking);
        line.answer.add(answer);
        add_seconds(&mut line.seconds, entry.took_ms);
        add_seconds(&mut line.thinking_seconds, entry.thought_ms);
        let first = line.n_replies == 1;
        line.cost = line.cost.and(entry.cost(terms), first);
    }

    pub(crate) fn into_lines(self) -> Vec<LedgerLine> {
        self.lines.into_values().collect()
    }
}

impl Entry {
    /// Thinking and answer tokens, each from the provider where it counted.
    fn split(&self, counting: Counting) -> (Tokens, Tokens) {
        let guessed = |count: u64| Tokens { count, is_estimate: count > 0 };
        let counted = |count: u64| Tokens { count, is_estimate: false };
        match (self.usage.output, self.usage.reasoning, counting) {
            (Some(output), Some(thinking), Counting::InOutput) => {
                (counted(thinking), counted(output.saturating_sub(thinking)))
            }
            (Some(output), Some(thinking), Counting::BesideOutput) => (counted(thinking), counted(output)),
            // The sum is known and the thinking is not: the guess is a share of it.
            (Some(output), None, _) => {
                let thinking = self.thinking_guess.min(output);
                let is_estimate = thinking > 0;
                (guessed(thinking), Tokens { count: output - thinking, is_estimate })
            }
            (None, Some(thinking), _) => (counted(thinking), guessed(self.answer_guess)),
            (None, None, _) => (guessed(self.thinking_guess), guessed(self.answer_guess)),
        }
    }

    /// None where the price or a counter is not known: money is not guessed.
    fn cost(&self, terms: Terms) -> Option<f64> {
        let price = terms.price?;
        let (input, output) = (self.usage.input?, self.usage.output?);
        let cached = self.usage.cached.unwrap_or(0).min(input);
        let beside = match terms.counting {
            Counting::InOutput => 0,
            Counting::BesideOutput => self.usage.reasoning.unwrap_or(0),
        };
        let per_million = |count: u64, price: f64| count as f64 * price / 1e6;
        Some(
            per_million(input - cached, price.input)
                + per_million(cached, price.cached.unwrap_or(price.input))
                + per_million(output + beside, price.output),
        )
    }
}

impl Tokens {
    fn add(&mut self, other: Tokens) {
        self.count = self.count.saturating_add(other.count);
        self.is_estimate |= other.is_estimate;
    }
}

impl Cost {
    fn and(self, next: Option<f64>, is_first: bool) -> Cost {
        match (self, next) {
            (Cost::Known(sum), Some(next)) => Cost::Known(sum + next),
            (Cost::AtLeast(sum), Some(next)) => Cost::AtLeast(sum + next),
            (Cost::Unknown, Some(next)) => Cost::AtLeast(next),
            (_, None) if is_first => Cost::Unknown,
            (Cost::Known(sum) | Cost::AtLeast(sum), None) => Cost::AtLeast(sum),
            (Cost::Unknown, None) => Cost::Unknown,
        }
    }
}

fn add_seconds(sum: &mut Option<f64>, ms: Option<u64>) {
    if let Some(ms) = ms {
        *sum = Some(sum.unwrap_or(0.0) + ms as f64 / 1000.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(input: Option<u64>, output: Option<u64>, reasoning: Option<u64>, cached: Option<u64>) -> Entry {
        Entry {
            origin: Origin::default(),
            usage: Usage { input, output, reasoning, cached },
            thinking_guess: 40,
            answer_guess: 10,
            took_ms: None,
            thought_ms: Some(1500),
        }
    }

    #[test]
    fn c6_thinking_and_answer_are_told_apart_and_guesses_are_marked() {
        use Counting::{BesideOutput, InOutput};
        #[rustfmt::skip]
        let cases = [
            ("in output",     entry(Some(9), Some(100), Some(70), None), InOutput,     (70, false), (30, false)),
            ("beside output", entry(Some(9), Some(100), Some(70), None), BesideOutput, (70, false), (100, false)),
            ("not told",      entry(Some(9), Some(100), None, None),     InOutput,     (40, true),  (60, true)),
            ("guess too big", entry(Some(9), Some(30), None, None),      InOutput,     (30, true),  (0, true)),
            ("nothing told",  entry(None, None, None, None),             InOutput,     (40, true),  (10, true)),
        ];
        for (name, entry, counting, thinking, answer) in cases {
            let (a, b) = entry.split(counting);
            assert_eq!(((a.count, a.is_estimate), (b.count, b.is_estimate)), (thinking, answer), "{name}");
        }
    }

    #[test]
    fn c6_cost_is_told_only_as_far_as_it_is_known() {
        let price = Price { input: 1.0, output: 10.0, cached: Some(0.1) };
        let terms = Terms { price: Some(price), counting: Counting::InOutput };
        let known = entry(Some(1_000_000), Some(100_000), None, Some(500_000));
        let unknown = entry(None, None, None, None);
        #[rustfmt::skip]
        let cases = [
            ("known",        vec![&known],            Cost::Known(0.5 + 0.05 + 1.0)),
            ("unknown",      vec![&unknown],          Cost::Unknown),
            ("known first",  vec![&known, &unknown],  Cost::AtLeast(1.55)),
            ("known second", vec![&unknown, &known],  Cost::AtLeast(1.55)),
        ];
        for (name, entries, expected) in cases {
            let mut book = Book::default();
            for entry in entries {
                book.add(Group::Model(None), entry, terms);
            }
            let lines = book.into_lines();
            assert_eq!(lines[0].cost, expected, "{name}");
        }
    }
}
