//! The menus of a session: its model, how hard it thinks, and what tools may do without a question.

use aside_core::settings::SettingKey;
use aside_front::{Command, Status, ToolMode};
use serde::Serialize;

use crate::rpc::RpcError;
use crate::session_update::{ConfigOption, ConfigValue};

const MODEL: &str = "model";
const EFFORT: &str = "effort";
const MODE: &str = "mode";

/// The value of `effort` that leaves the choice to the settings and the model.
const DEFAULT: &str = "default";
/// The value of `effort` that switches thinking off.
const NONE: &str = "none";

/// All menus, the most important first.
pub(crate) fn options(status: &Status, models: &[String]) -> Vec<ConfigOption> {
    let mut options = vec![model(status, models)];
    options.extend(effort(status));
    options.extend(status.mode.map(mode));
    options
}

/// The modes as older clients know them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Modes {
    current_mode_id: &'static str,
    available_modes: Vec<Mode>,
}

#[derive(Debug, Serialize)]
struct Mode {
    id: &'static str,
    name: &'static str,
    description: &'static str,
}

/// None without tools.
pub(crate) fn modes(status: &Status) -> Option<Modes> {
    let mode = |mode: ToolMode| Mode { id: mode.as_str(), name: mode_name(mode), description: mode_description(mode) };
    let available_modes = ToolMode::ALL.into_iter().map(mode).collect();
    Some(Modes { current_mode_id: status.mode?.as_str(), available_modes })
}

fn mode_name(mode: ToolMode) -> &'static str {
    match mode {
        ToolMode::Ask => "Ask",
        ToolMode::AcceptEdits => "Accept edits",
        ToolMode::ReadOnly => "Read only",
    }
}

fn mode_description(mode: ToolMode) -> &'static str {
    match mode {
        ToolMode::Ask => "asks before it changes a file or runs a command",
        ToolMode::AcceptEdits => "changes files of the project without a question; asks before commands",
        ToolMode::ReadOnly => "offers the model only tools that read",
    }
}

fn mode(current: ToolMode) -> ConfigOption {
    let value = |mode: ToolMode| ConfigValue {
        value: mode.as_str().to_owned(),
        name: mode_name(mode).to_owned(),
        description: Some(mode_description(mode)),
    };
    ConfigOption {
        id: MODE,
        name: "Mode",
        category: "mode",
        kind: "select",
        current_value: current.as_str().to_owned(),
        options: ToolMode::ALL.into_iter().map(value).collect(),
    }
}

fn model(status: &Status, models: &[String]) -> ConfigOption {
    let mut names: Vec<&String> = Vec::new();
    for name in std::iter::once(&status.model).chain(models) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let value = |name: &String| ConfigValue { value: name.clone(), name: name.clone(), description: None };
    ConfigOption {
        id: MODEL,
        name: "Model",
        category: "model",
        kind: "select",
        current_value: status.model.clone(),
        options: names.into_iter().map(value).collect(),
    }
}

/// None if the model has no levels.
fn effort(status: &Status) -> Option<ConfigOption> {
    if status.efforts.is_empty() {
        return None;
    }
    let current = current_effort(status);
    let mut words = vec![DEFAULT, NONE];
    words.extend(status.efforts.iter().map(String::as_str).filter(|word| ![DEFAULT, NONE].contains(word)));
    // A level that the model lacks is lowered in each request, and stays set for another model.
    if !words.contains(&current) {
        words.push(current);
    }
    let value = |word: &str| ConfigValue {
        value: word.to_owned(),
        name: word.to_owned(),
        description: match word {
            DEFAULT => Some("what the settings and the model say"),
            NONE => Some("no thinking"),
            _ => None,
        },
    };
    Some(ConfigOption {
        id: EFFORT,
        name: "Thinking",
        category: "thought_level",
        kind: "select",
        current_value: current.to_owned(),
        options: words.into_iter().map(value).collect(),
    })
}

fn current_effort(status: &Status) -> &str {
    match (&status.effort, status.thinking_is_off) {
        (_, true) => NONE,
        (Some(level), false) => level,
        (None, false) => DEFAULT,
    }
}

/// The command that sets an option.
pub(crate) fn command(id: &str, value: &str, status: &Status, models: &[String]) -> Result<Command, RpcError> {
    let options = options(status, models);
    let Some(option) = options.iter().find(|option| option.id == id) else {
        let known: Vec<&str> = options.iter().map(|option| option.id).collect();
        return Err(RpcError::invalid_params(format!("unknown option `{id}`; there are: {}", known.join(", "))));
    };
    // The session knows every model; the menu has only the usual ones.
    if id != MODEL && option.options.iter().all(|known| known.value != value) {
        let known: Vec<&str> = option.options.iter().map(|known| known.value.as_str()).collect();
        let problem = format!("`{value}` is not a value of `{id}`; there are: {}", known.join(", "));
        return Err(RpcError::invalid_params(problem));
    }
    Ok(match (id, value) {
        (MODE, word) => Command::Mode(mode_named(word)?),
        (MODEL, name) => Command::Model(Some(name.to_owned())),
        (_, DEFAULT) => Command::Unset(SettingKey::Effort.name().to_owned()),
        (_, level) => Command::Effort(Some(level.to_owned())),
    })
}

pub(crate) fn mode_named(word: &str) -> Result<ToolMode, RpcError> {
    let known = ToolMode::WORDS.join(", ");
    word.parse().map_err(|_| RpcError::invalid_params(format!("unknown mode `{word}`; there are: {known}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(effort: Option<&str>, efforts: &[&str]) -> Status {
        Status {
            model: "acme/deep".into(),
            effort: effort.map(str::to_owned),
            mode: Some(ToolMode::Ask),
            efforts: efforts.iter().map(|word| (*word).to_owned()).collect(),
            ..Status::default()
        }
    }

    fn values(option: &ConfigOption) -> Vec<&str> {
        option.options.iter().map(|value| value.value.as_str()).collect()
    }

    #[test]
    fn a1_the_menus_have_the_current_value_and_what_can_be_chosen() {
        let models = ["acme/fast".to_owned(), "acme/deep".to_owned()];
        let shown = options(&status(None, &["low", "high"]), &models);
        assert_eq!(
            shown.iter().map(|option| (option.id, option.category)).collect::<Vec<_>>(),
            [("model", "model"), ("effort", "thought_level"), ("mode", "mode")]
        );
        assert_eq!((shown[0].current_value.as_str(), values(&shown[0])), ("acme/deep", vec!["acme/deep", "acme/fast"]));
        assert_eq!(
            (shown[1].current_value.as_str(), values(&shown[1])),
            ("default", vec!["default", "none", "low", "high"])
        );
        let off = Status { thinking_is_off: true, ..status(None, &["low"]) };
        assert_eq!(options(&off, &models)[1].current_value, "none");
        let other = options(&status(Some("max"), &["low"]), &models);
        assert_eq!(values(&other[1]), ["default", "none", "low", "max"], "the current value is always there");
        let plain = Status { mode: None, ..status(None, &[]) };
        assert_eq!(options(&plain, &models).len(), 1, "a model without levels and tools");
    }

    #[test]
    fn a1_a_value_that_is_not_in_the_menu_is_refused() {
        let now = status(None, &["low"]);
        let set = |id: &str, value: &str| command(id, value, &now, &[]).map_err(|error| error.code);
        #[rustfmt::skip]
        let cases = [
            ("effort", "low",       Ok(Command::Effort(Some("low".into())))),
            ("effort", "none",      Ok(Command::Effort(Some("none".into())))),
            ("effort", "default",   Ok(Command::Unset("reasoning.effort".into()))),
            ("effort", "huge",      Err(-32602)),
            ("model",  "acme/else", Ok(Command::Model(Some("acme/else".into())))),
            ("mode",   "read-only", Ok(Command::Mode(ToolMode::ReadOnly))),
            ("mode",   "yolo",      Err(-32602)),
            ("speed",  "fast",      Err(-32602)),
        ];
        for (id, value, expected) in cases {
            assert_eq!(set(id, value), expected, "{id}={value}");
        }
    }
}
