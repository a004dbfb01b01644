//! Leaves out and moves the parameters that a provider refused by name.

use serde_json::{Map, Value};

use super::mentions::words;
use crate::json_text::{remove_value, set_value, value_at};
use crate::rules::RequestPreferences;
use crate::rules::request_preferences::SetWhen;

/// Objects of a body that hold parameters.
const CONTAINERS: [&str; 4] = ["generationConfig", "inferenceConfig", "options", "additionalModelRequestFields"];

/// Applies the repairs that name parameters.
pub(crate) fn change_parameters(parameters: &mut Map<String, Value>, preferences: &RequestPreferences) {
    for (from, to) in &preferences.moved_parameters {
        if let Some(value) = remove_value(parameters, from) {
            set_value(parameters, to, value);
        }
    }
    for (path, json, when) in &preferences.set_parameters {
        let applies = *when == SetWhen::Always || value_at(parameters, path).is_some();
        if let (true, Ok(value)) = (applies, serde_json::from_str(json)) {
            set_value(parameters, path, value);
        }
    }
    for path in &preferences.omitted_parameters {
        if remove_value(parameters, path).is_none() {
            remove_nested(parameters, path);
        }
    }
}

/// Removes a parameter that the protocol keeps in a container, in its own
/// spelling.
fn remove_nested(parameters: &mut Map<String, Value>, name: &str) {
    let wanted = words(name);
    for container in CONTAINERS {
        let Some(Value::Object(below)) = parameters.get_mut(container) else { continue };
        below.retain(|known, _| words(known) != wanted);
        if below.is_empty() {
            parameters.remove(container);
        }
    }
}
