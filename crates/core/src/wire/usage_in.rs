//! Reads token usage and finish reasons, under any of the names providers use.

use super::extra_in::ExtraReader;
use crate::dialect::{UsageRules, UsageStream};
use crate::event::{Ending, Event, Sink, Usage};
use crate::json_text::{JsonKind, Raw, at_path, count_of, each_member, is_empty_value};

/// The names of a protocol's counters, the preferred one first. `a.*` is the sum
/// of the members of `a`.
#[derive(Debug)]
pub(super) struct CounterNames {
    pub(super) input: &'static [&'static str],
    pub(super) output: &'static [&'static str],
    pub(super) reasoning: &'static [&'static str],
    pub(super) cached: &'static [&'static str],
    pub(super) cache_write: &'static [&'static str],
    /// Counters that follow from the others.
    pub(super) derived: &'static [&'static str],
    /// The wire name of the usage object, under which unknown counters are kept.
    /// None if the counters are members of a larger object.
    pub(super) container: Option<&'static str>,
}

/// Reads the usage of one reply and reports changes.
#[derive(Debug)]
pub(super) struct UsageReader {
    names: &'static CounterNames,
    rules: UsageRules,
    usage: Usage,
    n_usages: u64,
}

impl UsageReader {
    pub(super) fn new(names: &'static CounterNames, rules: UsageRules) -> UsageReader {
        UsageReader { names, rules, usage: Usage::default(), n_usages: 0 }
    }

    /// How many usage objects were read.
    pub(super) fn n_usages(&self) -> u64 {
        self.n_usages
    }

    /// Reads a usage object; emits the usage if it changed, and the counters that
    /// have no neutral form.
    pub(super) fn read(&mut self, object: Raw<'_>, extra: &mut ExtraReader, sink: &mut dyn Sink) {
        self.n_usages += u64::from(object.kind() == JsonKind::Object);
        let before = self.usage;
        let names = self.names;
        let path = Some(self.rules.path.as_str()).filter(|path| !path.is_empty());
        let reasoning = || path.into_iter().chain(names.reasoning.iter().copied());
        let mut found: [FirstCount; 5] = Default::default();
        each_member(object, |key, value| {
            let [input, output, thinking, cached, cache_write] = &mut found;
            let is_counter = [
                input.offer(names.input.iter().copied(), key, value),
                output.offer(names.output.iter().copied(), key, value),
                thinking.offer(reasoning(), key, value),
                cached.offer(names.cached.iter().copied(), key, value),
                cache_write.offer(names.cache_write.iter().copied(), key, value),
            ];
            if let Some(container) = names.container
                && !is_counter.contains(&true)
                && !names.derived.contains(&key)
                && self.has_unread(key, value)
            {
                extra.keep_part(None, (container, Some(key)), value, sink);
            }
        });
        let [input, output, thinking, cached, cache_write] = found.map(|best| best.count);
        let found = Usage { input, output, reasoning: thinking, cached, cache_write };
        match self.rules.stream {
            UsageStream::Last => self.usage.update(found),
            UsageStream::Sum => self.usage.add(found),
        }
        if self.usage != before {
            sink.take(Event::Usage(self.usage));
        }
    }

    /// Whether a member says more than the counters that are read from it. A
    /// count of zero says nothing.
    fn has_unread(&self, key: &str, value: Raw<'_>) -> bool {
        match value.kind() {
            JsonKind::Object => {
                let mut any = false;
                each_member(value, |name, value| any |= !is_nothing(value) && !self.is_counter(key, name));
                any
            }
            JsonKind::Null | JsonKind::Text | JsonKind::Array | JsonKind::Other => !is_nothing(value),
        }
    }

    /// Whether `object.name` is the path of a counter.
    fn is_counter(&self, object: &str, name: &str) -> bool {
        let CounterNames { input, output, reasoning, cached, cache_write, derived, .. } = self.names;
        let lists = [input, output, reasoning, cached, cache_write, derived];
        let mut paths = lists.into_iter().flat_map(|list| list.iter().copied()).chain([self.rules.path.as_str()]);
        paths.any(|path| {
            let rest = path.strip_prefix(object).and_then(|rest| rest.strip_prefix('.'));
            rest.is_some_and(|rest| rest == name || rest == "*")
        })
    }
}

/// An empty value, zero or false.
fn is_nothing(value: Raw<'_>) -> bool {
    is_empty_value(value) || matches!(value.get(), "0" | "0.0" | "false")
}

/// The count under the first name that has one.
#[derive(Default)]
struct FirstCount {
    rank: usize,
    count: Option<u64>,
}

impl FirstCount {
    /// Returns whether the key is one of the names.
    fn offer<'n>(&mut self, names: impl Iterator<Item = &'n str>, key: &str, value: Raw<'_>) -> bool {
        let mut is_name = false;
        for (rank, name) in names.enumerate() {
            let count = match name.strip_prefix(key) {
                Some("") => {
                    is_name = true;
                    count_of(value)
                }
                Some(".*") => sum_of_members(value),
                Some(rest) => rest.strip_prefix('.').and_then(|path| at_path(value, path)).and_then(count_of),
                None => None,
            };
            if count.is_some() && (self.count.is_none() || rank < self.rank) {
                *self = FirstCount { rank, count };
            }
        }
        is_name
    }
}

fn sum_of_members(object: Raw<'_>) -> Option<u64> {
    let mut sum: Option<u64> = None;
    each_member(object, |_, value| {
        if let Some(count) = count_of(value) {
            sum = Some(sum.unwrap_or(0).saturating_add(count));
        }
    });
    sum
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
