//! How thinking is asked for: effort, budget and switches, by dialect data and
//! never by a formula.

use serde_json::{Map, Value};

use super::Wishes;
use crate::dialect::{AskRules, Off, Patch};
use crate::settings::Effort;

/// The parameters of a request, and what is worth saying about them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asked {
    pub parameters: Map<String, Value>,
    pub headers: Vec<(String, String)>,
    /// The effort as it is sent, which may not be the effort wished for.
    pub effort: Option<String>,
    pub notes: Vec<String>,
}

/// What a request asks for, beside its messages.
pub fn ask(rules: &AskRules, wishes: &Wishes, keeps_past: Option<&Patch>) -> Asked {
    let mut asked = Asked::default();
    let off = !wishes.enabled;
    if off {
        match &rules.off {
            Off::Patch(patch) => merge(&mut asked.parameters, patch),
            Off::Unsupported => asked.notes.push("this model cannot stop thinking; nothing was asked of it".to_owned()),
        }
    } else {
        for patch in [&rules.on, &rules.show, &rules.extra] {
            merge(&mut asked.parameters, patch);
        }
        asked.headers = rules.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        asked.effort(rules, wishes);
        asked.budget(rules, wishes);
        if let Some(flag) = keeps_past {
            merge(&mut asked.parameters, flag);
        }
    }
    asked.limits(rules, wishes, off);
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
        // A budget must leave room for an answer.
        let most = wishes.max_tokens.map_or(most, |limit| most.min(limit.saturating_sub(1)));
        let budget = wish.clamp(least, most.max(least));
        if budget != wish {
            self.notes.push(format!("a thinking budget of {wish} is sent as {budget}"));
        }
        merge(&mut self.parameters, &rules.budget.with);
        set(&mut self.parameters, &rules.budget.path, Value::from(budget));
    }

    fn limits(&mut self, rules: &AskRules, wishes: &Wishes, off: bool) {
        let limit = wishes.max_tokens.or(rules.max_tokens.default);
        if let Some(limit) = limit.filter(|_| !rules.max_tokens.path.is_empty()) {
            set(&mut self.parameters, &rules.max_tokens.path, Value::from(limit));
        }
        let Some(temperature) = wishes.temperature else { return };
        let forbids = |names: &[String]| names.iter().any(|name| name == "temperature");
        if forbids(&rules.forbid) {
            self.notes.push("this model takes no temperature; none was sent".to_owned());
        } else if !off && forbids(&rules.forbid_when_on) {
            self.notes.push("this model takes no temperature while it thinks; none was sent".to_owned());
        } else {
            self.parameters.insert("temperature".to_owned(), Value::from(temperature));
        }
    }
}

/// The highest supported level below the wish, else the lowest there is.
fn nearest(wish: Effort, values: &[String]) -> String {
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
