//! The parameters of a request: effort, budget and switches. They come from
//! dialect data, never from a formula.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{LeftOut, LeftOutReason, RequestPreferences};
use crate::dialect::{AskRules, Off, Patch};
use crate::json_text::{set_value, value_at};
use crate::protocol::Protocol;
use crate::settings::{Effort, SummaryMode};

/// The parameters of a request, with notes about them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RequestParams {
    pub parameters: Map<String, Value>,
    pub headers: Vec<(String, String)>,
    /// The effort as sent, which may differ from the preferred one.
    pub effort: Option<String>,
    /// The model will or may think.
    pub thinks: bool,
    pub notes: Vec<String>,
    /// The note that says why the effort is not the preferred one.
    pub effort_note: Option<String>,
    /// What was preferred and is not sent.
    pub left_out: Vec<LeftOut>,
}

/// Builds the parameters of a request, apart from its messages.
pub(crate) fn request_params(
    rules: &AskRules,
    preferences: &RequestPreferences,
    protocol: Protocol,
    keep_past_flag: Option<&Patch>,
) -> RequestParams {
    // Some models always think.
    let thinks = preferences.enabled || rules.off == Off::Unsupported;
    let mut params = RequestParams { thinks, ..RequestParams::default() };
    if !preferences.enabled && thinks {
        params.notes.push("this model cannot stop thinking; it was not asked to".to_owned());
    }
    if !thinks {
        if let Off::Patch(patch) = &rules.off {
            merge(&mut params.parameters, patch);
        }
        // Items that are not stored there must be sent back in full, with
        // thinking on or off.
        if protocol == Protocol::OpenaiResponses {
            merge(&mut params.parameters, &rules.extra);
        }
    } else {
        for patch in [&rules.on, &rules.show, &rules.extra] {
            merge(&mut params.parameters, patch);
        }
        params.headers = rules.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        if preferences.enabled {
            params.set_effort(rules, preferences);
            params.set_budget(rules, preferences);
        }
        params.set_summary(preferences);
        if let Some(flag) = keep_past_flag {
            merge(&mut params.parameters, flag);
        }
    }
    params.set_limits(rules, preferences, protocol);
    params
}

/// Parameters for an unknown endpoint. They contain nothing about thinking,
/// since the endpoint may refuse unknown parameters.
pub(crate) fn params_for_unknown_endpoint(
    rules: &AskRules,
    preferences: &RequestPreferences,
    protocol: Protocol,
) -> RequestParams {
    let neutral_rules = AskRules {
        on: Patch::new(),
        off: Off::Patch(Patch::new()),
        show: Patch::new(),
        extra: Patch::new(),
        headers: BTreeMap::new(),
        ..rules.clone()
    };
    let not_sent = [
        (!preferences.enabled).then(|| "thinking is not switched off".to_owned()),
        preferences.effort.map(|effort| format!("effort `{effort}` is not sent")),
        preferences.budget.map(|budget| format!("a thinking budget of {budget} is not sent")),
    ];
    let not_sent: Vec<String> = not_sent.into_iter().flatten().collect();
    let neutral_preferences = RequestPreferences { effort: None, budget: None, ..preferences.clone() };
    let mut params = request_params(&neutral_rules, &neutral_preferences, protocol, None);
    params.thinks = true;
    if !not_sent.is_empty() {
        let note =
            format!("nothing is known of this endpoint: {}; name its dialect if you know it", not_sent.join(", "));
        params.effort_note = preferences.effort.map(|_| note.clone());
        params.notes.push(note);
    }
    params
}

impl RequestParams {
    fn set_effort(&mut self, rules: &AskRules, preferences: &RequestPreferences) {
        let Some(preferred) = preferences.effort else { return };
        if rules.effort.path.is_empty() || rules.effort.values.is_empty() {
            self.left_out.push(LeftOut::new("thinking.effort", LeftOutReason::Refused));
            return;
        }
        let (word, why) = match rules.effort.map.get(preferred.as_str()) {
            Some(mapped) => (mapped.clone(), "as this provider maps it"),
            None => {
                let word = nearest(preferred, &rules.effort.values);
                let is_higher = word.parse().is_ok_and(|level: Effort| level > preferred);
                (word, if is_higher { "the lowest level of this model" } else { "the next lower level of this model" })
            }
        };
        if word != preferred.as_str() {
            let note = format!("effort `{preferred}` is sent as `{word}`, {why}");
            self.effort_note = Some(note.clone());
            self.notes.push(note);
        }
        set_value(&mut self.parameters, &rules.effort.path, Value::from(word.as_str()));
        self.effort = Some(word);
    }

    fn set_budget(&mut self, rules: &AskRules, preferences: &RequestPreferences) {
        let Some(preferred) = preferences.budget else { return };
        if rules.budget.path.is_empty() {
            self.left_out.push(LeftOut::new("thinking.budget", LeftOutReason::Refused));
            return;
        }
        let both =
            |(a, b): &(String, String)| matches!((a.as_str(), b.as_str()), ("effort", "budget") | ("budget", "effort"));
        if self.effort.is_some() && rules.exclusive.iter().any(both) {
            self.left_out.push(LeftOut::new("thinking.budget", LeftOutReason::NotWithEffort));
            return;
        }
        let (least, most) = rules.budget.range.unwrap_or((1, u64::MAX));
        let budget = preferred.clamp(least, most);
        if budget != preferred {
            self.notes.push(format!("a thinking budget of {preferred} is sent as {budget}"));
        }
        merge(&mut self.parameters, &rules.budget.with);
        set_value(&mut self.parameters, &rules.budget.path, Value::from(budget));
    }

    /// Applies the user's choice for summaries, if summaries are requested at
    /// all.
    fn set_summary(&mut self, preferences: &RequestPreferences) {
        let Some(Value::Object(reasoning)) = self.parameters.get_mut("reasoning") else { return };
        match preferences.summary {
            Some(SummaryMode::None) => drop(reasoning.remove("summary")),
            Some(summary) if reasoning.contains_key("summary") => {
                reasoning.insert("summary".to_owned(), Value::from(summary.as_str()));
            }
            Some(_) | None => (),
        }
    }

    /// Sets the output limit, and lowers the budget so that tokens are left for
    /// an answer.
    fn set_limits(&mut self, rules: &AskRules, preferences: &RequestPreferences, protocol: Protocol) {
        let Some(mut limit) = preferences.max_tokens.or(rules.max_tokens.default) else { return };
        let budget = (!rules.budget.path.is_empty()).then(|| value_at(&self.parameters, &rules.budget.path)).flatten();
        if let Some(budget) = budget.and_then(Value::as_u64).filter(|budget| *budget >= limit) {
            let least = rules.budget.range.map_or(1, |(least, _)| least);
            if limit <= least {
                limit = least + 1024;
                self.notes.push(format!("an output limit of {limit} leaves room for thinking and an answer"));
            }
            let fitting = limit - 1024.min(limit - least);
            if fitting != budget {
                self.notes.push(format!("a thinking budget of {fitting} fits below the output limit of {limit}"));
            }
            set_value(&mut self.parameters, &rules.budget.path, Value::from(fitting.min(limit - 1).max(least)));
        }
        if !rules.max_tokens.path.is_empty() {
            set_value(&mut self.parameters, &rules.max_tokens.path, Value::from(limit));
        } else if preferences.max_tokens.is_some() {
            let reason = LeftOutReason::NoParameter { protocol };
            self.left_out.push(LeftOut::new("max_output_tokens", reason));
        }
    }
}

/// The highest supported level that is not above the preferred one, else the
/// lowest.
pub(super) fn nearest(preferred: Effort, values: &[String]) -> String {
    let known = values.iter().filter_map(|word| word.parse::<Effort>().ok().map(|level| (level, word)));
    let mut levels: Vec<(Effort, &String)> = known.collect();
    levels.sort_by_key(|(level, _)| *level);
    let below = levels.iter().rev().find(|(level, _)| *level <= preferred);
    below.or(levels.first()).map_or_else(|| preferred.as_str().to_owned(), |(_, word)| (*word).clone())
}

/// Merges a patch into the parameters, member by member.
pub(crate) fn merge(into: &mut Map<String, Value>, patch: &Patch) {
    for (key, value) in patch {
        match (into.get_mut(key), value) {
            (Some(Value::Object(known)), Value::Object(below)) => merge(known, below),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}
