//! Replaces a refused effort level with the nearest accepted one.

use crate::dialect::{AskRules, EFFORT_LEVELS, Off, Patch, Rules, ThinkingWithTools};
use crate::json_text::{remove_value, set_value, value_at, value_at_mut};
use crate::rules::RequestPreferences;
use crate::rules::request_params::nearest;
use crate::settings::Effort;

/// Restricts the levels to those the provider listed, else removes the one that
/// was sent. Sends none if no level is left.
pub(super) fn restrict(listed: &[String], rules: &mut Rules, preferences: &mut RequestPreferences) {
    let sent = sent(rules, preferences);
    let levels: Vec<String> = listed.iter().filter(|word| EFFORT_LEVELS.contains(&word.as_str())).cloned().collect();
    let has_default = listed.iter().any(|word| word == DEFAULT);
    let ladder = &mut rules.ask.effort;
    if listed.is_empty() {
        // Every model with levels has the middle ones. If one of them is refused,
        // this model has no levels.
        let is_usual = |level: &str| matches!(level, "low" | "medium" | "high");
        let has_levels = !sent.as_deref().is_some_and(is_usual);
        ladder.values.retain(|level| has_levels && is_usual(level));
    } else if levels.is_empty() && has_default {
        ladder.values = EFFORT_LEVELS.map(str::to_owned).to_vec();
        ladder.map = EFFORT_LEVELS.map(|level| (level.to_owned(), DEFAULT.to_owned())).into();
        replace_switch(rules, DEFAULT);
        return;
    } else {
        ladder.values = levels;
    }
    ladder.map.retain(|_, word| ladder.values.contains(word));
    if ladder.values.is_empty() {
        drop_level(rules, preferences);
        return;
    }
    // A switch that is not a level stands for the middle one.
    let Some(level) = sent.map(|word| word.parse::<Effort>().unwrap_or(Effort::Medium)) else { return };
    let word = nearest(level, &rules.ask.effort.values);
    replace_switch(rules, &word);
    if preferences.effort.is_some() {
        preferences.effort = word.parse().ok();
    }
}

/// The word for the provider's own choice.
const DEFAULT: &str = "default";

/// Some dialects switch thinking on with a level.
fn replace_switch(rules: &mut Rules, word: &str) {
    if let Some(known) = value_at_mut(&mut rules.ask.on, &rules.ask.effort.path).filter(|known| known.is_string()) {
        *known = word.into();
    }
}

/// Sends the level `none`, for models whose default level is refused with tools.
pub(super) fn send_none(rules: &mut Rules, preferences: &mut RequestPreferences) {
    drop_level(rules, preferences);
    preferences.budget = None;
    let path = match rules.ask.effort.path.as_str() {
        "" => "reasoning_effort".to_owned(),
        path => path.to_owned(),
    };
    for patch in [Some(&mut rules.ask.on), off_patch(&mut rules.ask.off)].into_iter().flatten() {
        set_value(patch, &path, "none".into());
    }
}

fn off_patch(off: &mut Off) -> Option<&mut Patch> {
    match off {
        Off::Patch(patch) => Some(patch),
        Off::Unsupported => None,
    }
}

/// Removes the parameter. A switch that is not a level stays.
pub(super) fn drop_level(rules: &mut Rules, preferences: &mut RequestPreferences) {
    preferences.effort = None;
    let AskRules { on, off, effort, tools, .. } = &mut rules.ask;
    // Where tools need thinking off, the switch must stay.
    let off = off_patch(off).filter(|_| *tools != ThinkingWithTools::WithOff);
    for patch in [Some(on), off].into_iter().flatten() {
        if value_at(patch, &effort.path).is_some_and(serde_json::Value::is_string) {
            remove_value(patch, &effort.path);
        }
    }
}

/// The level that was sent, from the user's preference or from the switch.
fn sent(rules: &mut Rules, preferences: &RequestPreferences) -> Option<String> {
    let effort = &rules.ask.effort;
    if effort.path.is_empty() {
        return None;
    }
    if let Some(preferred) = preferences.effort {
        let mapped = effort.map.get(preferred.as_str()).cloned();
        return Some(mapped.unwrap_or_else(|| nearest(preferred, &effort.values)));
    }
    value_at_mut(&mut rules.ask.on, &rules.ask.effort.path)?.as_str().map(str::to_owned)
}
