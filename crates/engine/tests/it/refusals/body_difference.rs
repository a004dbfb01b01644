//! The difference between two request bodies, as the paths that are in only one of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// `- path` for what is gone, `+ path` for what is new, `~ path=value` for what changed.
pub(crate) fn difference(before: &Value, after: &Value) -> String {
    let is_equal = before == after;
    let (before, after) = (leaves(before), leaves(after));
    let gone = missing_from(&before, &after);
    let new = missing_from(&after, &before);
    let changed: BTreeSet<&String> = gone.keys().filter(|path| new.contains_key(*path)).collect();
    let only = |paths: &BTreeMap<String, Vec<String>>, all: &BTreeMap<String, Vec<String>>| {
        let paths: BTreeSet<String> = paths.keys().filter(|path| !changed.contains(path)).cloned().collect();
        collapsed(&paths, all)
    };
    let mut out: Vec<String> = only(&gone, &before).into_iter().map(|path| format!("- {path}")).collect();
    out.extend(only(&new, &after).into_iter().map(|path| format!("+ {path}")));
    out.extend(changed.iter().map(|path| format!("~ {path}={}", new[*path].join(","))));
    if out.is_empty() && !is_equal {
        out.push("~ order".to_owned());
    }
    out.join(", ")
}

/// All leaf values by path. Indices become the kind of the element.
fn leaves(body: &Value) -> BTreeMap<String, Vec<String>> {
    let mut leaves = BTreeMap::new();
    walk(body, String::new(), &mut leaves);
    leaves
}

fn walk(value: &Value, path: String, leaves: &mut BTreeMap<String, Vec<String>>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                walk(value, below, leaves);
            }
        }
        Value::Array(elements) if !elements.is_empty() => {
            for element in elements {
                let kind = element.get("type").or_else(|| element.get("role")).and_then(Value::as_str);
                let kind = kind.map(|kind| kind.split('.').next_back().unwrap_or(kind));
                let kind = kind.unwrap_or_else(|| element.as_object().and_then(|o| o.keys().next()).map_or("*", |k| k));
                walk(element, format!("{path}[{kind}]"), leaves);
            }
        }
        leaf => leaves.entry(path).or_default().push(leaf.to_string()),
    }
}

fn missing_from(
    these: &BTreeMap<String, Vec<String>>,
    those: &BTreeMap<String, Vec<String>>,
) -> BTreeMap<String, Vec<String>> {
    let mut missing = BTreeMap::new();
    for (path, values) in these {
        let mut others = those.get(path).cloned().unwrap_or_default();
        let mut left = Vec::new();
        for value in values {
            match others.iter().position(|other| other == value) {
                Some(at) => drop(others.swap_remove(at)),
                None => left.push(value.clone()),
            }
        }
        if !left.is_empty() {
            missing.insert(path.clone(), left);
        }
    }
    missing
}

/// A path above stands for all paths below it, if none of them is left out.
fn collapsed(paths: &BTreeSet<String>, all: &BTreeMap<String, Vec<String>>) -> BTreeSet<String> {
    let mut shown = BTreeSet::new();
    for path in paths {
        let ends = path.match_indices(['.', '[']).map(|(at, _)| at).filter(|at| *at > 0);
        let is_whole = |above: &&str| {
            let below = |known: &&String| {
                known.strip_prefix(*above).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            };
            all.keys().filter(below).all(|known| paths.contains(known))
        };
        let above = ends.filter_map(|at| path.get(..at)).find(is_whole).unwrap_or(path);
        shown.insert(above.to_owned());
    }
    shown
}
