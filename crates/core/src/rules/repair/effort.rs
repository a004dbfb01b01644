//! A level of effort that was refused: the nearest one that is taken.

use crate::dialect::{Patch, Rules};
use crate::rules::Wishes;
use crate::rules::ask::nearest;
use crate::settings::Effort;

/// Only levels that are taken: those the provider listed, else all but the one
/// that was sent. None left, none sent.
pub(super) fn restrict(listed: &[String], rules: &mut Rules, wishes: &mut Wishes) {
    let sent = sent(rules, wishes);
    let ladder = &mut rules.ask.effort;
    if listed.is_empty() {
        ladder.values.retain(|level| Some(level) != sent.as_ref());
    } else {
        ladder.values = listed.to_vec();
    }
    ladder.map.retain(|_, word| ladder.values.contains(word));
    if ladder.values.is_empty() {
        drop_level(rules, wishes);
        return;
    }
    let Some(level) = sent.as_deref().and_then(|word| word.parse::<Effort>().ok()) else { return };
    let word = nearest(level, &rules.ask.effort.values);
    // Some switch thinking on with a level.
    if let Some(known) = at(&mut rules.ask.on, &rules.ask.effort.path) {
        *known = word.as_str().into();
    }
    if wishes.effort.is_some() {
        wishes.effort = word.parse().ok();
    }
}

/// No parameter at all.
pub(super) fn drop_level(rules: &mut Rules, wishes: &mut Wishes) {
    wishes.effort = None;
    if let Some((parent, name)) = rules.ask.effort.path.rsplit_once('.') {
        if let Some(below) = at(&mut rules.ask.on, parent).and_then(serde_json::Value::as_object_mut) {
            below.remove(name);
        }
    } else {
        rules.ask.on.remove(&rules.ask.effort.path);
    }
}

/// The word that was sent, with the wish or with the switch.
fn sent(rules: &mut Rules, wishes: &Wishes) -> Option<String> {
    let effort = &rules.ask.effort;
    if effort.path.is_empty() {
        return None;
    }
    if let Some(wish) = wishes.effort {
        let mapped = effort.map.get(wish.as_str()).cloned();
        return Some(mapped.unwrap_or_else(|| nearest(wish, &effort.values)));
    }
    at(&mut rules.ask.on, &rules.ask.effort.path)?.as_str().map(str::to_owned)
}

fn at<'p>(patch: &'p mut Patch, path: &str) -> Option<&'p mut serde_json::Value> {
    let mut names = path.split('.');
    let first = patch.get_mut(names.next()?)?;
    names.try_fold(first, |value, name| value.get_mut(name))
}
