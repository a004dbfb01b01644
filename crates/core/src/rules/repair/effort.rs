//! Replaces a refused effort level with the nearest accepted one.

use crate::dialect::Rules;
use crate::json_text::value_at_mut;
use crate::rules::RequestPreferences;
use crate::rules::request_params::nearest;
use crate::settings::Effort;

/// Restricts the levels to those the provider listed, else removes the one that
/// was sent. Sends none if no level is left.
pub(super) fn restrict(listed: &[String], rules: &mut Rules, preferences: &mut RequestPreferences) {
    let sent = sent(rules, preferences);
    let ladder = &mut rules.ask.effort;
    if listed.is_empty() {
        ladder.values.retain(|level| Some(level) != sent.as_ref());
    } else {
        ladder.values = listed.to_vec();
    }
    ladder.map.retain(|_, word| ladder.values.contains(word));
    if ladder.values.is_empty() {
        drop_level(rules, preferences);
        return;
    }
    let Some(level) = sent.as_deref().and_then(|word| word.parse::<Effort>().ok()) else { return };
    let word = nearest(level, &rules.ask.effort.values);
    // Some dialects switch thinking on with a level.
    if let Some(known) = value_at_mut(&mut rules.ask.on, &rules.ask.effort.path) {
        *known = word.as_str().into();
    }
    if preferences.effort.is_some() {
        preferences.effort = word.parse().ok();
    }
}

/// Removes the parameter.
pub(super) fn drop_level(rules: &mut Rules, preferences: &mut RequestPreferences) {
    preferences.effort = None;
    if let Some((parent, name)) = rules.ask.effort.path.rsplit_once('.') {
        if let Some(below) = value_at_mut(&mut rules.ask.on, parent).and_then(serde_json::Value::as_object_mut) {
            below.remove(name);
        }
    } else {
        rules.ask.on.remove(&rules.ask.effort.path);
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
