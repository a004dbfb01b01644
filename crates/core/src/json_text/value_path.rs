//! Paths into parsed JSON: `a.b.c`. Parameters and dialect patches are small, and
//! are kept as parsed values.

use serde_json::{Map, Value};

/// The value at a path.
pub(crate) fn value_at<'v>(object: &'v Map<String, Value>, path: &str) -> Option<&'v Value> {
    let mut names = path.split('.');
    let first = object.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))
}

pub(crate) fn value_at_mut<'v>(object: &'v mut Map<String, Value>, path: &str) -> Option<&'v mut Value> {
    let mut names = path.split('.');
    let first = object.get_mut(names.next()?)?;
    names.try_fold(first, |value, name| value.get_mut(name))
}

/// Sets the value at a path. Anything but an object on the way is replaced.
pub(crate) fn set_value(object: &mut Map<String, Value>, path: &str, value: Value) {
    let Some((first, rest)) = path.split_once('.') else {
        object.insert(path.to_owned(), value);
        return;
    };
    let below = object.entry(first).or_insert(Value::Null);
    if !below.is_object() {
        *below = Value::Object(Map::new());
    }
    if let Value::Object(below) = below {
        set_value(below, rest, value);
    }
}

/// Removes and returns the value at a path, and the objects on the way that
/// become empty.
pub(crate) fn remove_value(object: &mut Map<String, Value>, path: &str) -> Option<Value> {
    let Some((first, rest)) = path.split_once('.') else { return object.remove(path) };
    let below = object.get_mut(first)?.as_object_mut()?;
    let removed = remove_value(below, rest);
    if below.is_empty() && removed.is_some() {
        object.remove(first);
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_set_at_a_path_is_found_there() {
        let mut object = Map::new();
        set_value(&mut object, "a", json!(1));
        set_value(&mut object, "b.c.d", json!("x"));
        set_value(&mut object, "a.e", json!(2));
        assert_eq!(Value::Object(object.clone()), json!({ "a": { "e": 2 }, "b": { "c": { "d": "x" } } }));
        for (path, expected) in [("a.e", Some(json!(2))), ("b.c.d", Some(json!("x"))), ("b.x", None), ("a.e.f", None)] {
            assert_eq!(value_at(&object, path), expected.as_ref(), "{path}");
            assert_eq!(value_at_mut(&mut object, path).map(|value| value.clone()), expected, "{path}");
        }
        assert_eq!(remove_value(&mut object, "b.c.x"), None);
        assert_eq!(remove_value(&mut object, "b.c.d"), Some(json!("x")));
        assert_eq!(Value::Object(object), json!({ "a": { "e": 2 } }));
    }
}
