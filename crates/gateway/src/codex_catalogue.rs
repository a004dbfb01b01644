//! The catalogue of models that Codex reads: from `/v1/models`, or from the file that
//! its setting `model_catalog_json` names.

use serde_json::{Value, json};

use crate::config::ListedModel;

/// What Codex tells a model of the catalogue about its work. Codex has such a text only for models that it knows.
const INSTRUCTIONS: &str = "You are a coding agent that works in a terminal, in the user's working directory.

- Find out before you answer: read the files that matter, and search instead of guessing.
- Use the tools that you are given. Prefer `rg` for searching. Read a file before you change it.
- Change files with the patch tool if there is one. Keep changes small and in the style of the code around them. \
Never undo changes that are not yours, and never run commands that destroy work unless the user asks for it.
- Run the tests or the build that fit the change, and fix what you broke. Say so if you could not run them.
- Follow the instructions in AGENTS.md files: those of the folder nearest to a file count most.
- Keep going until the task is done. Ask only if you cannot find out what is wanted.
- At the end say in a few sentences what you did and what is left. Name files as `path:line`.";

/// The efforts that Codex knows.
const EFFORTS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];

/// The most bytes of a tool's output that Codex sends.
const MAX_OUTPUT_BYTES: u64 = 10_000;

pub(crate) fn catalogue(models: &[ListedModel]) -> Value {
    let rows: Vec<Value> = models.iter().enumerate().map(|(at, model)| entry(at, model)).collect();
    json!({ "models": rows })
}

fn entry(at: usize, model: &ListedModel) -> Value {
    let known = |effort: &&String| EFFORTS.contains(&effort.as_str());
    let efforts: Vec<&String> = model.efforts.iter().filter(known).collect();
    let preset = |effort: &&String| json!({ "effort": effort, "description": format!("{effort} effort") });
    let default = efforts.iter().find(|effort| effort.as_str() == "medium").or(efforts.last());
    let modalities: &[&str] = if model.images == Some(false) { &["text"] } else { &["text", "image"] };
    let mut row = json!({
        "slug": model.id,
        "display_name": model.id,
        "description": format!("{} through aside", model.owner),
        "supported_reasoning_levels": efforts.iter().map(preset).collect::<Vec<_>>(),
        "shell_type": "shell_command",
        "visibility": "list",
        "supported_in_api": true,
        "priority": at,
        "upgrade": null,
        "base_instructions": INSTRUCTIONS,
        "supports_reasoning_summaries": true,
        "support_verbosity": false,
        "default_verbosity": null,
        "apply_patch_tool_type": "freeform",
        "truncation_policy": { "mode": "bytes", "limit": MAX_OUTPUT_BYTES },
        "supports_parallel_tool_calls": true,
        "experimental_supported_tools": [],
        "input_modalities": modalities,
    });
    if let Value::Object(row) = &mut row {
        if let Some(default) = default {
            row.insert("default_reasoning_level".to_owned(), json!(default));
        }
        if let Some(context) = model.context {
            row.insert("context_window".to_owned(), json!(context));
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g12_a_model_has_what_codex_requires() {
        let efforts = ["low", "high", "max"].map(str::to_owned).to_vec();
        let model = ListedModel {
            id: "kimi/kimi-k3".to_owned(),
            owner: "kimi".to_owned(),
            context: Some(262_144),
            output: None,
            efforts,
            images: Some(false),
        };
        let row = entry(0, &model);
        // Codex drops the whole catalogue if one of these is missing.
        for name in [
            "slug",
            "display_name",
            "supported_reasoning_levels",
            "shell_type",
            "visibility",
            "supported_in_api",
            "priority",
            "base_instructions",
            "supports_reasoning_summaries",
            "support_verbosity",
            "truncation_policy",
            "supports_parallel_tool_calls",
            "experimental_supported_tools",
        ] {
            assert!(row.get(name).is_some_and(|value| !value.is_null()), "{name}: {row}");
        }
        let efforts: Vec<&str> = row["supported_reasoning_levels"]
            .as_array()
            .map(|levels| levels.iter().filter_map(|level| level["effort"].as_str()).collect())
            .unwrap_or_default();
        assert_eq!(efforts, ["low", "high"], "an effort that Codex does not know breaks its catalogue");
        assert_eq!(row["default_reasoning_level"], "high");
        assert_eq!(row["context_window"], 262_144);
        assert_eq!(row["input_modalities"], json!(["text"]));
    }
}
