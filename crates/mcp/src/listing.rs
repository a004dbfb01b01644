//! What a server lists, in bounds: a provider is sent all of it with every
//! request, and a server can list for ever.

use rmcp::model::Tool;
use serde_json::{Value, json};

pub(crate) const MOST_PAGES: usize = 50;
const MOST_TOOLS: usize = 200;
const MOST_NAME: usize = 256;
const MOST_DESCRIPTION: usize = 4 * 1024;
const MOST_SCHEMA: usize = 32 * 1024;

/// A tool as its server lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) about: String,
    /// A JSON schema, as JSON.
    pub(crate) parameters: String,
}

/// The tools of a server, and what was left out of them.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) tools: Vec<Listed>,
    cut: usize,
    too_large: usize,
    too_many: usize,
    /// It did not come to an end of its pages.
    pub(crate) endless: bool,
}

impl Listing {
    /// Whether another page could add something.
    pub(crate) fn is_full(&self) -> bool {
        self.tools.len() >= MOST_TOOLS && self.too_many > 0
    }

    pub(crate) fn add(&mut self, tool: Tool) {
        let mut schema = tool.input_schema.as_ref().clone();
        // Some providers refuse a schema without these.
        schema.entry("type").or_insert_with(|| json!("object"));
        schema.entry("properties").or_insert_with(|| json!({}));
        let parameters = Value::Object(schema).to_string();
        if parameters.len() > MOST_SCHEMA || tool.name.len() > MOST_NAME {
            self.too_large += 1;
            return;
        }
        if self.tools.len() >= MOST_TOOLS {
            self.too_many += 1;
            return;
        }
        let about = tool.description.map(|text| text.into_owned()).or(tool.title).unwrap_or_default();
        self.cut += usize::from(about.len() > MOST_DESCRIPTION);
        self.tools.push(Listed { name: tool.name.into_owned(), about: beginning(about, MOST_DESCRIPTION), parameters });
    }

    /// What was left out, a line each, for the user.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut note = |count: usize, what: &str| {
            if count > 0 {
                notes.push(format!("{count} {what}"));
            }
        };
        note(self.cut, &format!("descriptions of its tools are longer than {MOST_DESCRIPTION} bytes and were cut"));
        note(
            self.too_large,
            &format!(
                "of its tools have a schema of more than {MOST_SCHEMA} bytes or a name of more than {MOST_NAME} and are not offered"
            ),
        );
        note(self.too_many, &format!("of its tools are beyond the {MOST_TOOLS} that are offered"));
        if self.endless {
            notes.push(format!("it lists more than {MOST_PAGES} pages of tools; the rest is not read"));
        }
        notes
    }
}

/// The beginning of a text, with how much is missing.
pub(crate) fn beginning(mut text: String, most: usize) -> String {
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
    fn l4_descriptions_schemas_and_tools_are_bounded_and_what_is_cut_is_said() {
        let mut listing = Listing::default();
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
