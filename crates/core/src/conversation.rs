//! A conversation as JSON lines: the output of `decode`, with the other
//! messages around it. Parsed here; written by [`crate::interchange`].

mod message_reader;

use std::collections::BTreeMap;

use crate::history::{EntryId, History};
use crate::json_text::{JsonKind, JsonText, Raw, canonical, each_element, each_member, member, text_member, text_of};
use crate::parameters::ProtocolMembers;
pub(crate) use message_reader::{
    KNOWN_MEMBERS, item_ranges, native_of, parse_block, parse_message, read_ending, read_media, read_message,
    read_thinking,
};

/// A whole conversation file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversation {
    /// The model that the file names.
    pub model: Option<String>,
    /// A title for lists of sessions.
    pub title: Option<String>,
    /// The tools that the model was offered.
    pub tools: Vec<ToolSpec>,
    /// Settings of the session, as written in the file.
    pub settings: BTreeMap<String, String>,
    /// The messages of all branches.
    pub history: History,
    /// Unknown members of the header, kept as JSON.
    pub extra: Vec<(String, String)>,
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name that the model calls.
    pub name: String,
    /// Tells the model what the tool does.
    pub description: String,
    /// A JSON schema, as JSON.
    pub parameters: String,
    /// Whether arguments must fit the schema exactly. None leaves it to the
    /// provider.
    pub strict: Option<bool>,
    /// Members without a neutral form.
    pub extra: Option<ProtocolMembers>,
}

impl ToolSpec {
    /// A tool with a JSON schema for its arguments.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: impl Into<String>) -> ToolSpec {
        ToolSpec {
            name: name.into(),
            description: description.into(),
            parameters: parameters.into(),
            strict: None,
            extra: None,
        }
    }
}

/// A line of a conversation file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
#[non_exhaustive]
pub struct ConversationError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it, in words.
    pub problem: String,
}

impl Conversation {
    /// Reads JSON lines: a header, which is optional, then one message per
    /// line.
    pub fn parse(text: &str) -> Result<Conversation, ConversationError> {
        let mut conversation = Conversation::default();
        let mut names: BTreeMap<String, EntryId> = BTreeMap::new();
        let mut head = None;
        for (line, value) in values(text) {
            let fail = |problem: String| ConversationError { line, problem };
            let raw = Raw::of(value).map_err(|error| fail(error.to_string()))?;
            if raw.kind() != JsonKind::Object {
                return Err(fail("expected an object: a header or a message".to_owned()));
            }
            if member(raw, "aside").is_some() {
                head = member(raw, "head").map(text_of);
                conversation.read_header(raw);
                continue;
            }
            let message = read_message(raw).map_err(fail)?;
            let parent = match member(raw, "parent").map(|parent| (parent.kind(), text_of(parent))) {
                Some((_, Some(name))) => Some(
                    *names
                        .get(&name)
                        .ok_or_else(|| fail(format!("parent `{name}` is not the id of an earlier line")))?,
                ),
                // An explicit null means no parent, unlike a missing member.
                Some((JsonKind::Null, None)) => None,
                Some((_, None)) | None => conversation.history.head(),
            };
            let name = text_member(raw, "id");
            // A name that only states the line number was generated for the
            // file.
            let own = name.clone().filter(|name| *name != line_name(conversation.history.entries().len()));
            let id = conversation.history.insert(own, parent, message);
            names.extend(name.map(|name| (name, id)));
        }
        match head {
            Some(Some(name)) => {
                let id = names.get(&name).copied();
                let problem =
                    || ConversationError { line: 1, problem: format!("head `{name}` is not the id of a line") };
                conversation.history.fork(Some(id.ok_or_else(problem)?)).map_err(|_| problem())?;
            }
            // The head is before the first message: everything was undone.
            Some(None) => drop(conversation.history.fork(None)),
            None => (),
        }
        Ok(conversation)
    }

    fn read_header(&mut self, header: Raw<'_>) {
        each_member(header, |key, value| {
            if !KNOWN_HEADER_MEMBERS.contains(&key) && value.kind() != JsonKind::Null {
                self.extra.push((key.to_owned(), canonical(value.get()).into_owned()));
            }
        });
        self.model = text_member(header, "model");
        self.title = text_member(header, "title");
        if let Some(tools) = member(header, "tools") {
            each_element(tools, |tool| {
                self.tools.push(ToolSpec::new(
                    text_member(tool, "name").unwrap_or_default(),
                    text_member(tool, "description").unwrap_or_default(),
                    member(tool, "parameters").map_or("{}".into(), |json| canonical(json.get())).into_owned(),
                ));
            });
        }
        if let Some(settings) = member(header, "settings") {
            each_member(settings, |key, value| {
                let text = JsonText::of(value).map(JsonText::to_owned_text);
                self.settings.insert(key.to_owned(), text.unwrap_or_else(|| canonical(value.get()).into_owned()));
            });
        }
    }
}

/// Splits a text into JSON values, each with its first line number. A value is
/// on one line, or spread over several lines as `decode` prints it.
fn values(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut start, mut pending) = (0, String::new());
    for (at, line) in text.split_inclusive('\n').enumerate() {
        if pending.trim().is_empty() {
            pending.clear();
            start = at;
        }
        pending.push_str(line);
        // A value ends with its line, or at a line that starts with a bracket.
        let may_end = pending.len() == line.len() || line.starts_with('}');
        if may_end && (Raw::of(&pending).is_ok() || !pending.trim_start().starts_with('{')) {
            found.push((start, pending.len()));
            pending.clear();
        }
    }
    if !pending.trim().is_empty() {
        found.push((start, pending.len()));
    }
    let line_starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let value = |(line, length): (usize, usize)| {
        let from = *line_starts.get(line)?;
        text.get(from..from + length).map(|value| (line + 1, value.trim()))
    };
    found.into_iter().filter_map(value).filter(|(_, value)| !value.is_empty()).collect()
}

/// The generated name of a line that has none and is referenced.
pub(crate) fn line_name(at: usize) -> String {
    format!("#{at}")
}

const KNOWN_HEADER_MEMBERS: [&str; 6] = ["aside", "model", "title", "head", "tools", "settings"];
