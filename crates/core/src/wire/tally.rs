//! Token counters and finish words, from whichever name a provider uses.

use super::json::{Raw, at_path, count_of, each_entry};
use crate::dialect::{UsageRules, UsageStream};
use crate::event::{Ending, Usage};

/// Where a protocol keeps its counters, first name first.
#[derive(Debug)]
pub(super) struct CounterNames {
    pub(super) input: &'static [&'static str],
    pub(super) output: &'static [&'static str],
    pub(super) reasoning: &'static [&'static str],
    pub(super) cached: &'static [&'static str],
}

/// The usage of one reply, told whenever it changes.
#[derive(Debug)]
pub(super) struct Tally {
    names: &'static CounterNames,
    rules: UsageRules,
    usage: Usage,
}

impl Tally {
    pub(super) fn new(names: &'static CounterNames, rules: UsageRules) -> Tally {
        Tally { names, rules, usage: Usage::default() }
    }

    /// Takes in a usage object; some if that changed anything.
    pub(super) fn read(&mut self, object: Raw<'_>) -> Option<Usage> {
        let before = self.usage;
        let path = Some(self.rules.path.as_str()).filter(|path| !path.is_empty());
        let reasoning = || path.into_iter().chain(self.names.reasoning.iter().copied());
        let mut said: [Best; 4] = Default::default();
        each_entry(object, |key, value| {
            let [input, output, thinking, cached] = &mut said;
            input.offer(self.names.input.iter().copied(), key, value);
            output.offer(self.names.output.iter().copied(), key, value);
            thinking.offer(reasoning(), key, value);
            cached.offer(self.names.cached.iter().copied(), key, value);
        });
        let [input, output, thinking, cached] = said.map(|best| best.count);
        let said = Usage { input, output, reasoning: thinking, cached };
        match self.rules.stream {
            UsageStream::Last => self.usage.update(said),
            UsageStream::Sum => self.usage.add(said),
        }
        (self.usage != before).then_some(self.usage)
    }
}

/// The count under the first of several names that has one.
#[derive(Default)]
struct Best {
    place: usize,
    count: Option<u64>,
}

impl Best {
    fn offer<'n>(&mut self, names: impl Iterator<Item = &'n str>, key: &str, value: Raw<'_>) {
        for (place, name) in names.enumerate() {
            let count = match name.strip_prefix(key) {
                Some("") => count_of(value),
                Some(rest) => rest.strip_prefix('.').and_then(|path| at_path(value, path)).and_then(count_of),
                None => None,
            };
            if count.is_some() && (self.count.is_none() || place < self.place) {
                *self = Best { place, count };
            }
        }
    }
}

/// One table for all protocols: their words do not contradict each other.
pub(super) fn ending(word: &str) -> Ending {
    match word.to_ascii_lowercase().as_str() {
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
        _ => Ending::Unrecognized(word.to_owned()),
    }
}
