//! How thinking is asked for: effort, budget and switches, by dialect data and
//! never by a formula.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Wishes;
use crate::dialect::{AskRules, Off, Patch};
use crate::protocol::Protocol;
use crate::settings::{Effort, Summary};

/// The parameters of a request, and what is worth saying about them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asked {
    pub parameters: Map<String, Value>,
    pub headers: Vec<(String, String)>,
    /// The effort as it is sent, which may not be the effort wished for.
    pub effort: Option<String>,
    /// The model will think, or may.
    pub thinks: bool,
    pub notes: Vec<String>,
}

/// What a request asks for, beside its messages.
pub fn ask(rules: &AskRules, wishes: &Wishes, protocol: Protocol, keeps_past: Option<&Patch>) -> Asked {
    // A model that cannot stop thinks, whatever is wished.
    let thinks = wishes.enabled || rules.off == Off::Unsupported;
    let mut asked = Asked { thinks, ..Asked::default() };
    if !wishes.enabled && thinks {
        asked.notes.push("this model cannot stop thinking; it was not asked to".to_owned());
    }
    if !thinks {
        if let Off::Patch(patch) = &rules.off {
            merge(&mut asked.parameters, patch);
        }
        // What is not stored there must come back whole, thinking or not.
        if protocol == Protocol::OpenaiResponses {
            merge(&mut asked.parameters, &rules.extra);
        }
    } else {
        for patch in [&rules.on, &rules.show, &rules.extra] {
            merge(&mut asked.parameters, patch);
        }
        asked.headers = rules.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        if wishes.enabled {
            asked.effort(rules, wishes);
            asked.budget(rules, wishes);
        }
        asked.summary(wishes);
        if let Some(flag) = keeps_past {
            merge(&mut asked.parameters, flag);
        }
    }
    asked.limits(rules, wishes);
    asked.sampling(rules, wishes, protocol, thinks);
    asked
}

/// What is asked of an endpoint that nobody knows: nothing about thinking,
/// since it may refuse what it does not know.
pub(crate) fn ask_a_stranger(rules: &AskRules, wishes: &Wishes, protocol: Protocol) -> Asked {
    let silent = AskRules {
        on: Patch::new(),
        off: Off::Patch(Patch::new()),
        show: Patch::new(),
        extra: Patch::new(),
        headers: BTreeMap::new(),
        ..rules.clone()
    };
    let unheard = [
        (!wishes.enabled).then(|| "thinking is not switched off".to_owned()),
        wishes.effort.map(|effort| format!("effort `{effort}` is not sent")),
        wishes.budget.map(|budget| format!("a thinking budget of {budget} is not sent")),
    ];
    let unheard: Vec<String> = unheard.into_iter().flatten().collect();
    let quiet = Wishes { effort: None, budget: None, ..wishes.clone() };
    let mut asked = ask(&silent, &quiet, protocol, None);
    asked.thinks = true;
    if !unheard.is_empty() {
        let note =
            format!("nothing is known of this endpoint: {}; name its dialect if you know it", unheard.join(", "));
        asked.notes.push(note);
    }
    asked
}

impl Asked {
    fn effort(&mut self, rules: &AskRules, wishes: &Wishes) {
        let Some(wish) = wishes.effort else { return };
        if rules.effort.path.is_empty() || rules.effort.values.is_empty() {
            self.notes.push(format!("this model takes no effort; `{wish}` was not sent"));
            return;
        }
        let word = match rules.effort.map.get(wish.as_str()) {
            Some(mapped) => mapped.clone(),
            None => nearest(wish, &rules.effort.values),
        };
        if word != wish.as_str() {
            self.notes.push(format!("effort `{wish}` is sent as `{word}`, the nearest this model takes"));
        }
        set(&mut self.parameters, &rules.effort.path, Value::from(word.as_str()));
        self.effort = Some(word);
    }

    fn budget(&mut self, rules: &AskRules, wishes: &Wishes) {
        let Some(wish) = wishes.budget else { return };
        if rules.budget.path.is_empty() {
            self.notes.push(format!("this model takes no thinking budget; {wish} was not sent"));
            return;
        }
        let both =
            |(a, b): &(String, String)| matches!((a.as_str(), b.as_str()), ("effort", "budget") | ("budget", "effort"));
        if self.effort.is_some() && rules.exclusive.iter().any(both) {
            self.notes.push("this provider takes an effort or a budget, not both; the effort was sent".to_owned());
            return;
        }
        let (least, most) = rules.budget.range.unwrap_or((1, u64::MAX));
        let budget = wish.clamp(least, most);
        if budget != wish {
            self.notes.push(format!("a thinking budget of {wish} is sent as {budget}"));
        }
        merge(&mut self.parameters, &rules.budget.with);
        set(&mut self.parameters, &rules.budget.path, Value::from(budget));
    }

    /// The user's word on summaries, where summaries are asked for at all.
    fn summary(&mut self, wishes: &Wishes) {
        let Some(Value::Object(reasoning)) = self.parameters.get_mut("reasoning") else { return };
        match wishes.summary {
            Some(Summary::None) => drop(reasoning.remove("summary")),
            Some(summary) if reasoning.contains_key("summary") => {
                reasoning.insert("summary".to_owned(), Value::from(summary.as_str()));
            }
            Some(_) | None => (),
        }
    }

    /// The output limit, and a budget that leaves room for an answer below it.
    fn limits(&mut self, rules: &AskRules, wishes: &Wishes) {
        let Some(mut limit) = wishes.max_tokens.or(rules.max_tokens.default) else { return };
        let budget = (!rules.budget.path.is_empty()).then(|| at(&self.parameters, &rules.budget.path)).flatten();
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
            set(&mut self.parameters, &rules.budget.path, Value::from(fitting.min(limit - 1).max(least)));
        }
        if !rules.max_tokens.path.is_empty() {
            set(&mut self.parameters, &rules.max_tokens.path, Value::from(limit));
        }
    }

    fn sampling(&mut self, rules: &AskRules, wishes: &Wishes, protocol: Protocol, thinks: bool) {
        let Some(temperature) = wishes.temperature else { return };
        let forbids = |names: &[String]| names.iter().any(|name| name == "temperature");
        if forbids(&rules.forbid) {
            self.notes.push("this model takes no temperature; none was sent".to_owned());
        } else if thinks && forbids(&rules.forbid_when_on) {
            self.notes.push("this model takes no temperature while it thinks; none was sent".to_owned());
        } else {
            let path = match protocol {
                Protocol::Gemini => "generationConfig.temperature",
                Protocol::Bedrock => "inferenceConfig.temperature",
                Protocol::Ollama => "options.temperature",
                Protocol::OpenaiChat | Protocol::OpenaiResponses | Protocol::Anthropic | Protocol::Cohere => {
                    "temperature"
                }
            };
            set(&mut self.parameters, path, Value::from(temperature));
        }
    }
}

/// A value below members: `a.b.c`.
fn at<'v>(parameters: &'v Map<String, Value>, path: &str) -> Option<&'v Value> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let value = parameters.get(first)?;
    rest.map_or(Some(value), |rest| at(value.as_object()?, rest))
}

/// The highest supported level below the wish, else the lowest there is.
pub(super) fn nearest(wish: Effort, values: &[String]) -> String {
    let levels = values.iter().filter_map(|word| word.parse::<Effort>().ok().map(|level| (level, word)));
    let mut rungs: Vec<(Effort, &String)> = levels.collect();
    rungs.sort_by_key(|(level, _)| *level);
    let below = rungs.iter().rev().find(|(level, _)| *level <= wish);
    below.or(rungs.first()).map_or_else(|| wish.as_str().to_owned(), |(_, word)| (*word).clone())
}

/// Lays a patch over parameters, member by member.
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

/// Sets a member below members: `a.b.c`.
fn set(into: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            into.insert(path.to_owned(), value);
        }
        Some((first, rest)) => {
            let below = into.entry(first).or_insert_with(|| Value::Object(Map::new()));
            if !below.is_object() {
                *below = Value::Object(Map::new());
            }
            if let Value::Object(below) = below {
                set(below, rest, value);
            }
        }
    }
}
