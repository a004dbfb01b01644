//! The tools that a server lists, within limits: all of them are sent with every request, and a server could
//! list them forever.

use rmcp::model::Tool;
use serde_json::{Value, json};

pub(crate) const MAX_PAGES: usize = 50;
const MAX_TOOLS: usize = 200;
const MAX_NAME: usize = 256;
const MAX_DESCRIPTION: usize = 4 * 1024;
const MAX_SCHEMA: usize = 32 * 1024;

/// A tool as its server lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedTool {
    pub(crate) name: String,
    pub(crate) about: String,
    /// A JSON schema, as JSON.
    pub(crate) parameters: String,
}

/// The tools of a server, and how much was left out.
#[derive(Debug, Default)]
pub(crate) struct ToolListing {
    pub(crate) tools: Vec<ListedTool>,
    cut: usize,
    too_large: usize,
    too_many: usize,
    /// The server has more pages than are read.
    pub(crate) endless: bool,
}

impl ToolListing {
    /// Whether further pages could not add a tool.
    pub(crate) fn is_full(&self) -> bool {
        self.tools.len() >= MAX_TOOLS && self.too_many > 0
    }

    pub(crate) fn add(&mut self, tool: Tool) {
        let mut schema = tool.input_schema.as_ref().clone();
        // Some providers reject a schema without these.
        schema.entry("type").or_insert_with(|| json!("object"));
        schema.entry("properties").or_insert_with(|| json!({}));
        let parameters = Value::Object(schema).to_string();
        if parameters.len() > MAX_SCHEMA || tool.name.len() > MAX_NAME {
            self.too_large += 1;
            return;
        }
        if self.tools.len() >= MAX_TOOLS {
            self.too_many += 1;
            return;
        }
        let about = tool.description.map(|text| text.into_owned()).or(tool.title).unwrap_or_default();
        self.cut += usize::from(about.len() > MAX_DESCRIPTION);
        self.tools.push(ListedTool {
            name: tool.name.into_owned(),
            about: truncate(about, MAX_DESCRIPTION),
            parameters,
        });
    }

    /// What was left out, one line each, for the user.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut note = |count: usize, what: &str| {
            if count > 0 {
                notes.push(format!("{count} {what}"));
            }
        };
        note(self.cut, &format!("descriptions of its tools are longer than {MAX_DESCRIPTION} bytes and were cut"));
        note(
            self.too_large,
            &format!(
                "of its tools have a schema of more than {MAX_SCHEMA} bytes or a name of more than {MAX_NAME} and are not offered"
            ),
        );
        note(self.too_many, &format!("of its tools are beyond the {MAX_TOOLS} that are offered"));
        if self.endless {
            notes.push(format!("it lists more than {MAX_PAGES} pages of tools; the rest is not read"));
        }
        notes
    }
}

/// Cuts a text and appends how many bytes are missing.
pub(crate) fn truncate(mut text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let whole = text.len();
    let end = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= most).last().unwrap_or(0);
    text.truncate(end);
    text.push_str(&format!(" [… {} bytes left out]", whole - end));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, about: &str, schema: Value) -> Tool {
        serde_json::from_value(json!({ "name": name, "description": about, "inputSchema": schema })).unwrap()
    }

    #[test]
    fn l4_descriptions_schemas_and_tools_are_bounded_and_cuts_are_reported() {
        let mut listing = ToolListing::default();
        listing.add(tool("long", &"é".repeat(5000), json!({})));
        listing.add(tool("huge", "x", json!({ "type": "object", "properties": { "x": "y".repeat(40_000) } })));
        listing.add(tool(&"n".repeat(300), "x", json!({})));
        for n in 0..300 {
            assert_eq!(listing.is_full(), n > 199, "{n}");
            listing.add(tool(&format!("t{n}"), "x", json!({})));
        }
        assert_eq!(listing.tools.len(), 200);
        let long = &listing.tools[0].about;
        assert!(long.ends_with("é [… 5904 bytes left out]") && long.len() < 4200, "{long}");
        assert!(!listing.tools.iter().any(|tool| tool.name == "huge"));
        let notes = listing.notes();
        let begins = ["1 descriptions", "2 of its tools have", "101 of its tools are beyond"];
        assert_eq!(notes.len(), 3, "{notes:?}");
        for (note, begins) in notes.iter().zip(begins) {
            assert!(note.starts_with(begins), "{note}");
        }
    }
}
