//! Reads token usage and finish reasons, under any of the names providers use.

use crate::dialect::{UsageRules, UsageStream};
use crate::event::{Ending, Usage};
use crate::json_text::{Raw, at_path, count_of, each_member};

/// The names of a protocol's counters, the preferred one first.
#[derive(Debug)]
pub(super) struct CounterNames {
    pub(super) input: &'static [&'static str],
    pub(super) output: &'static [&'static str],
    pub(super) reasoning: &'static [&'static str],
    pub(super) cached: &'static [&'static str],
}

/// Reads the usage of one reply and reports changes.
#[derive(Debug)]
pub(super) struct UsageReader {
    names: &'static CounterNames,
    rules: UsageRules,
    usage: Usage,
}

impl UsageReader {
    pub(super) fn new(names: &'static CounterNames, rules: UsageRules) -> UsageReader {
        UsageReader { names, rules, usage: Usage::default() }
    }

    /// Reads a usage object; returns the usage if it changed.
    pub(super) fn read(&mut self, object: Raw<'_>) -> Option<Usage> {
        let before = self.usage;
        let path = Some(self.rules.path.as_str()).filter(|path| !path.is_empty());
        let reasoning = || path.into_iter().chain(self.names.reasoning.iter().copied());
        let mut found: [FirstCount; 4] = Default::default();
        each_member(object, |key, value| {
            let [input, output, thinking, cached] = &mut found;
            input.offer(self.names.input.iter().copied(), key, value);
            output.offer(self.names.output.iter().copied(), key, value);
            thinking.offer(reasoning(), key, value);
            cached.offer(self.names.cached.iter().copied(), key, value);
        });
        let [input, output, thinking, cached] = found.map(|best| best.count);
        let found = Usage { input, output, reasoning: thinking, cached };
        match self.rules.stream {
            UsageStream::Last => self.usage.update(found),
            UsageStream::Sum => self.usage.add(found),
        }
        (self.usage != before).then_some(self.usage)
    }
}

/// The count under the first name that has one.
#[derive(Default)]
struct FirstCount {
    rank: usize,
    count: Option<u64>,
}

impl FirstCount {
    fn offer<'n>(&mut self, names: impl Iterator<Item = &'n str>, key: &str, value: Raw<'_>) {
        for (rank, name) in names.enumerate() {
            let count = match name.strip_prefix(key) {
                Some("") => count_of(value),
                Some(rest) => rest.strip_prefix('.').and_then(|path| at_path(value, path)).and_then(count_of),
                None => None,
            };
            if count.is_some() && (self.count.is_none() || rank < self.rank) {
                *self = FirstCount { rank, count };
            }
        }
    }
}

/// One table for all protocols, because their finish reasons do not conflict.
pub(super) fn ending_from_reason(reason: &str) -> Ending {
    match reason.to_ascii_lowercase().as_str() {
        "stop" | "eos" | "end_turn" | "stop_sequence" | "complete" | "completed" => Ending::Stop,
        "length" | "max_tokens" | "max_output_tokens" | "model_context_window_exceeded" => Ending::Length,
        "tool_calls" | "function_call" | "tool_use" | "tool_call" => Ending::ToolCalls,
        "content_filter"
        | "content_filtered"
        | "guardrail_intervened"
        | "sensitive"
        | "safety"
        | "recitation"
        | "blocklist"
        | "prohibited_content"
        | "spii"
        | "image_safety"
        | "image_prohibited_content"
        | "image_recitation"
        | "error_toxic" => Ending::ContentFilter,
        "refusal" => Ending::Refusal,
        "pause_turn" => Ending::Pause,
        "error" | "failed" => Ending::Error,
        _ => Ending::Unrecognized(reason.to_owned()),
    }
}
