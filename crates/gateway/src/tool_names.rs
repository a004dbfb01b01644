//! Tools that only some protocols have, as functions that every provider has: a
//! freeform tool takes one string, and a tool of a namespace gets a longer name. Calls
//! are turned back for the client.

use std::collections::HashMap;

use aside_core::block::{Arguments, Block};
use aside_core::conversation::ToolSpec;
use aside_core::message::Message;
use aside_core::parameters::NativeTool;
use aside_core::wire::ClientRequest;
use serde_json::{Value, json};

/// Separates a namespace from a name.
const SEPARATOR: &str = "__";

/// The member of a freeform tool's arguments.
const INPUT: &str = "input";

/// What a function stands for in the client's protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClientTool {
    Freeform,
    Namespaced { namespace: String, name: String },
}

/// The tools of a request that were replaced by functions, by the functions' names.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolNames(HashMap<String, ClientTool>);

impl ToolNames {
    pub(crate) fn get(&self, name: &str) -> Option<&ClientTool> {
        self.0.get(name)
    }

    /// Replaces the tools and their calls in a request.
    pub(crate) fn replace(request: &mut ClientRequest) -> ToolNames {
        let mut names = ToolNames::default();
        let native = std::mem::take(&mut request.parameters.native_tools);
        for tool in native {
            match names.functions(&tool) {
                Some(functions) => request.tools.extend(functions),
                None => request.parameters.native_tools.push(tool),
            }
        }
        request.messages.iter_mut().for_each(replace_calls);
        names
    }

    fn functions(&mut self, tool: &NativeTool) -> Option<Vec<ToolSpec>> {
        let value: Value = serde_json::from_str(&tool.json).ok()?;
        match value.get("type").and_then(Value::as_str) {
            Some("custom") => self.freeform(&value).map(|tool| vec![tool]),
            Some("namespace") => self.namespace(&value),
            _ => None,
        }
    }

    /// `{"type":"custom","name":…}`, or with the rest below `custom`.
    fn freeform(&mut self, tool: &Value) -> Option<ToolSpec> {
        let tool = tool.get("custom").unwrap_or(tool);
        let name = tool.get("name")?.as_str()?;
        let mut description = tool.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(grammar) = tool.pointer("/format/definition").and_then(Value::as_str) {
            description.push_str("\n\nThe input must follow this grammar:\n");
            description.push_str(grammar);
        }
        let schema = json!({
            "type": "object",
            "properties": { INPUT: { "type": "string", "description": "the whole input of the tool, as plain text" } },
            "required": [INPUT],
            "additionalProperties": false,
        });
        self.0.insert(name.to_owned(), ClientTool::Freeform);
        Some(ToolSpec::new(name, description, schema.to_string()))
    }

    fn namespace(&mut self, tool: &Value) -> Option<Vec<ToolSpec>> {
        let namespace = tool.get("name")?.as_str()?;
        let mut functions = Vec::new();
        for inner in tool.get("tools")?.as_array()? {
            let name = inner.get("name")?.as_str()?;
            let full = joined(namespace, name);
            let text = |member: &str| inner.get(member).and_then(Value::as_str).unwrap_or_default();
            let schema = inner.get("parameters").map_or_else(|| "{}".to_owned(), Value::to_string);
            functions.push(ToolSpec::new(full.clone(), text("description"), schema));
            let known = ClientTool::Namespaced { namespace: namespace.to_owned(), name: name.to_owned() };
            self.0.insert(full, known);
        }
        Some(functions)
    }
}

fn joined(namespace: &str, name: &str) -> String {
    format!("{namespace}{SEPARATOR}{name}")
}

/// Calls of such tools in the history, as calls of the functions.
fn replace_calls(message: &mut Message) {
    for block in &mut message.blocks {
        let Block::ToolCall(call) = block else { continue };
        let Some(native) = call.native.as_ref() else { continue };
        let Ok(native) = serde_json::from_str::<Value>(&native.json) else { continue };
        let is_freeform = native.get("type").and_then(Value::as_str) == Some("custom_tool_call");
        if is_freeform {
            let input = match &call.arguments {
                Arguments::Json(text) | Arguments::Broken(text) => text,
            };
            call.arguments = Arguments::Json(json!({ INPUT: input }).to_string());
            call.native = None;
        } else if let Some(namespace) = native.get("namespace").and_then(Value::as_str) {
            call.name = joined(namespace, &call.name);
            call.native = None;
        }
    }
}

/// The text of a freeform tool in the arguments of its function. A model that does not follow the schema gets
/// its own text back.
pub(crate) fn freeform_input(arguments: &str) -> String {
    let value: Value = serde_json::from_str(arguments).unwrap_or_default();
    value.get(INPUT).and_then(Value::as_str).map_or_else(|| arguments.to_owned(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use aside_core::dialect::Dialects;
    use aside_core::protocol::Protocol;
    use aside_core::wire::read_request;

    use super::*;

    #[test]
    fn g1_tools_of_codex_become_functions() {
        let body = json!({"model": "m", "input": [
            {"role": "user", "content": "patch it"},
            {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin\n\"x\""},
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
            {"type": "function_call", "call_id": "c2", "namespace": "files", "name": "list", "arguments": "{\"a\":1}"},
            {"type": "function_call_output", "call_id": "c2", "output": "none"},
        ], "tools": [
            {"type": "custom", "name": "apply_patch", "description": "patches", "format": {"type": "grammar", "definition": "start: x"}},
            {"type": "namespace", "name": "files", "tools": [{"type": "function", "name": "list", "parameters": {"type": "object"}}]},
            {"type": "web_search"},
        ]});
        let dialects = Dialects::builtin().expect("dialects");
        let rules = dialects.generic(Protocol::OpenaiResponses).expect("a dialect").rules(None);
        let mut request = read_request(Protocol::OpenaiResponses, rules, &body.to_string()).expect("a request");
        let names = ToolNames::replace(&mut request);
        let functions: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(functions, ["apply_patch", "files__list"]);
        assert!(request.tools.iter().any(|tool| tool.description.contains("start: x")));
        assert_eq!(request.parameters.native_tools.len(), 1, "the provider's own search stays");
        assert_eq!(names.get("apply_patch"), Some(&ClientTool::Freeform));
        let calls: Vec<(String, Arguments)> = request
            .messages
            .iter()
            .flat_map(|message| &message.blocks)
            .filter_map(|block| {
                let Block::ToolCall(call) = block else { return None };
                Some((call.name.clone(), call.arguments.clone()))
            })
            .collect();
        let arguments = Arguments::Json(r#"{"input":"*** Begin\n\"x\""}"#.to_owned());
        assert_eq!(calls.first(), Some(&("apply_patch".to_owned(), arguments)));
        assert_eq!(calls.get(1).map(|(name, _)| name.as_str()), Some("files__list"));
        assert_eq!(freeform_input(r#"{"input":"a\nb"}"#), "a\nb");
        assert_eq!(freeform_input("plain"), "plain");
    }
}
