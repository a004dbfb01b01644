//! The blocks of a message, in provider-neutral terms.
//!
//! These are plain values without serde, so that renaming a field never changes
//! a format. The public JSON is defined in [`crate::json`].

mod media;
mod origin;

use std::borrow::Cow;
use std::ops::Range;

use crate::event::{Note, ReplyEnd, Usage};
use crate::extra::Extra;
use crate::json_text::{Raw, at_path, canonical, quote_into, range_of};
pub use media::{Media, MediaKind, MediaSource, base64_size};
pub use origin::Origin;

/// One block of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Answer text, or what the user wrote.
    Text(Text),
    /// The model's reasoning.
    Thinking(Thinking),
    /// A request of the model to run a tool.
    ToolCall(ToolCall),
    /// What a tool returned.
    ToolResult(ToolResult),
    /// An image or a document.
    Media(Media),
    /// An item that no other variant can hold.
    Unmodelled(Unmodelled),
}

/// Visible answer text. Never contains thinking.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Text {
    /// The text as received, never trimmed.
    pub text: String,
    /// Some providers attach the opaque payload of the thinking to the answer
    /// text.
    pub seal: Option<Seal>,
    /// The provider's own item. None if the text alone is enough to replay it.
    pub native: Option<Native>,
    /// Members of the wire form that have no neutral form.
    pub extra: Extra,
}

/// A thinking block, as far as the provider reveals it.
#[derive(Debug, Clone, PartialEq)]
pub struct Thinking {
    /// The readable text and the seals, as far as they exist.
    pub content: ThinkingContent,
    /// The wire field or tag it arrived in. The set is open.
    pub source: String,
    /// The provider's own id of the block.
    pub id: Option<String>,
    /// The range of each summary item in the text. Empty if the provider sends
    /// plain text.
    pub items: Vec<Range<usize>>,
    /// None if the time was not measured, such as for a stored file.
    pub span: Option<ThinkingSpan>,
    /// The provider's own item. None if the other fields are enough to replay
    /// it.
    pub native: Option<Native>,
    /// Members of the wire form that have no neutral form.
    pub extra: Extra,
}

/// The three forms of a thinking block.
#[derive(Debug, Clone, PartialEq)]
pub enum ThinkingContent {
    /// Readable. Sent back as plain text or not at all.
    Open {
        /// The text as received.
        text: String,
    },
    /// Readable (possibly empty) and sealed. Sent back unchanged.
    Sealed {
        /// The text as received. Empty if the provider sends only the seal.
        text: String,
        /// At least one of the two is present.
        seals: Seals,
    },
    /// Not readable: redacted, encrypted or only referenced by id.
    Hidden {
        /// Empty if the provider refers to the thinking only by its id.
        seals: Seals,
    },
}

/// A block may hold a signature, an encrypted payload, or both.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Seals {
    /// Proves that the text is unchanged.
    pub signature: Option<Seal>,
    /// Holds the thinking itself, readable only for its issuer.
    pub encrypted: Option<Seal>,
}

/// Bytes that the issuer expects back unchanged. Never parsed, trimmed or
/// logged.
#[derive(Debug, Clone, PartialEq)]
pub struct Seal {
    /// What the payload is for.
    pub kind: SealKind,
    /// The bytes as text, exactly as received.
    pub payload: String,
}

/// The two kinds of opaque payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealKind {
    /// Signs the readable text.
    Signature,
    /// Holds thinking in encrypted form.
    Encrypted,
}

/// One item of a provider's summary. The title is its leading bold line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SummaryItem<'a> {
    /// Without the asterisks. None if the item does not start with a bold line.
    pub title: Option<&'a str>,
    /// The text after the title.
    pub content: &'a str,
}

/// When thinking began and ended. Set only if it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThinkingSpan {
    /// When the block was opened.
    pub started: Time,
    /// When the block was closed, or last changed.
    pub ended: Time,
}

/// Milliseconds since the Unix epoch, supplied by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub u64);

/// The provider's own item, kept if exact replay needs more than the neutral
/// fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Native {
    /// A JSON object, as received.
    pub json: String,
    /// The member that holds this block's own text. It is left out of `json`,
    /// so that the text is not stored twice. A path with a dot in front
    /// (`.a.0.b`) means an empty string inside `json` instead.
    /// [`Native::with_text`] puts the text back.
    pub text_member: Option<String>,
}

impl Native {
    /// The item with the block's text put back.
    pub fn with_text(&self, text: &str) -> String {
        let mut out = String::new();
        self.write_with_text(text, &mut out);
        out
    }

    /// Whether the text was taken out of its place in the middle of the item.
    pub(crate) fn has_place_for_text(&self) -> bool {
        self.text_member.as_ref().is_some_and(|member| split_at_empty(&self.json, member).is_some())
    }

    /// Appends the item with the block's text put back.
    pub(crate) fn write_with_text(&self, text: &str, out: &mut String) {
        let Some(member) = &self.text_member else {
            out.push_str(&self.json);
            return;
        };
        if let Some((before, after)) = split_at_empty(&self.json, member) {
            out.push_str(before);
            quote_into(out, text);
            out.push_str(after);
            return;
        }
        let json = self.json.trim();
        let body = json.strip_prefix('{').and_then(|json| json.strip_suffix('}')).unwrap_or("");
        out.push('{');
        out.push_str(body);
        if !body.trim().is_empty() {
            out.push(',');
        }
        quote_into(out, member);
        out.push(':');
        quote_into(out, text);
        out.push('}');
    }
}

/// The parts of an item around an empty string at this path.
fn split_at_empty<'j>(json: &'j str, path: &str) -> Option<(&'j str, &'j str)> {
    let value = at_path(Raw::of(json).ok()?, path.strip_prefix('.')?).filter(|value| value.get() == "\"\"")?;
    let range = range_of(json, value)?;
    Some((json.get(..range.start)?, json.get(range.end..)?))
}

/// A call of a tool, as the model requested it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Links the call to its result.
    pub id: CallId,
    /// The tool to run, as named in the request.
    pub name: String,
    /// The arguments, checked for valid JSON.
    pub arguments: Arguments,
    /// Some providers attach the opaque payload of the thinking to the call.
    pub seal: Option<Seal>,
    /// The provider's own item. None if the other fields are enough to replay
    /// it.
    pub native: Option<Native>,
    /// Members of the wire form that have no neutral form.
    pub extra: Extra,
}

impl ToolCall {
    /// With neither a seal nor anything else that a provider may add.
    pub fn new(id: CallId, name: impl Into<String>, arguments: Arguments) -> ToolCall {
        ToolCall { id, name: name.into(), arguments, seal: None, native: None, extra: Extra::default() }
    }
}

/// The id that links a tool call to its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallId {
    /// The provider's own id.
    Given(String),
    /// The provider gave no id. This one is stable for the same bytes.
    Invented(String),
}

impl CallId {
    /// The prefix of invented ids, which identifies them when read back.
    pub const INVENTED: &str = "aside_call_";

    /// Restores a stored id as given or invented.
    pub(crate) fn from_stored(id: String) -> CallId {
        if id.is_empty() || id.starts_with(CallId::INVENTED) { CallId::Invented(id) } else { CallId::Given(id) }
    }

    /// The id as it is sent, whether given or invented.
    pub fn as_str(&self) -> &str {
        match self {
            CallId::Given(id) | CallId::Invented(id) => id,
        }
    }
}

/// Arguments of a tool call, parsed once when the call is complete.
#[derive(Debug, Clone, PartialEq)]
pub enum Arguments {
    /// Valid JSON. Keys keep their order.
    Json(String),
    /// Truncated or malformed text. Shown, never executed.
    Broken(String),
}

/// Empty arguments.
impl Default for Arguments {
    fn default() -> Arguments {
        Arguments::Json("{}".to_owned())
    }
}

/// The result of a tool call, for the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The id of the call that it answers.
    pub id: String,
    /// The tool that ran. Some protocols match results by name.
    pub name: String,
    /// The output as text.
    pub content: String,
    /// Images and documents of the output, which follow the text.
    pub media: Vec<Media>,
    /// The tool failed, and the content says why.
    pub is_error: bool,
}

impl ToolResult {
    /// The text, followed by a line for each image and document.
    pub fn described(&self) -> Cow<'_, str> {
        self.described_without(|_| false)
    }

    /// The text, followed by a line for each image and document that is not shown beside it.
    pub(crate) fn described_without(&self, is_shown: impl Fn(&Media) -> bool) -> Cow<'_, str> {
        let mut described = self.media.iter().filter(|media| !is_shown(media)).map(Media::describe).peekable();
        if described.peek().is_none() {
            return Cow::Borrowed(&self.content);
        }
        let text = Some(self.content.clone()).filter(|text| !text.is_empty());
        Cow::Owned(text.into_iter().chain(described).collect::<Vec<_>>().join("\n"))
    }
}

/// An item we do not model. Shown as a grey line, stored, and replayed verbatim
/// to its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Unmodelled {
    /// The whole item.
    pub native: Native,
}

/// One finished or interrupted reply.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    /// In the order in which the provider opened them.
    pub blocks: Vec<Block>,
    /// The final counters of the reply.
    pub usage: Usage,
    /// Why it stopped.
    pub end: ReplyEnd,
    /// The model that the provider named. None if it named none.
    pub model: Option<String>,
    /// The name of a thinking field that was present but stayed empty.
    pub empty_thinking_field: Option<String>,
    /// Members of the reply that have no neutral form.
    pub extra: Extra,
    /// Problems that did not stop the decoding.
    pub notes: Vec<Note>,
}

impl Thinking {
    /// With neither an id nor anything else that a provider may add.
    pub fn new(content: ThinkingContent, source: impl Into<String>) -> Thinking {
        let source = source.into();
        Thinking { content, source, id: None, items: Vec::new(), span: None, native: None, extra: Extra::default() }
    }

    /// The readable text. Empty if there is none.
    pub fn text(&self) -> &str {
        match &self.content {
            ThinkingContent::Open { text } | ThinkingContent::Sealed { text, .. } => text,
            ThinkingContent::Hidden { .. } => "",
        }
    }

    /// The opaque payloads. None if the thinking is open.
    pub fn seals(&self) -> Option<&Seals> {
        match &self.content {
            ThinkingContent::Open { .. } => None,
            ThinkingContent::Sealed { seals, .. } | ThinkingContent::Hidden { seals } => Some(seals),
        }
    }

    /// The items of a summary, in order. Empty if the provider sends plain
    /// text.
    pub fn summary(&self) -> impl Iterator<Item = SummaryItem<'_>> {
        let text = self.text();
        self.items.iter().filter_map(move |range| text.get(range.clone())).map(SummaryItem::parse)
    }

    /// Whether there is no text to show.
    pub fn is_hidden(&self) -> bool {
        match self.content {
            ThinkingContent::Hidden { .. } => true,
            ThinkingContent::Open { .. } | ThinkingContent::Sealed { .. } => false,
        }
    }
}

impl SummaryItem<'_> {
    /// The title is a leading line that is entirely bold.
    pub fn parse(text: &str) -> SummaryItem<'_> {
        let titled = text.trim_start().strip_prefix("**").and_then(|rest| rest.split_once("**"));
        match titled {
            Some((title, rest))
                if !title.trim().is_empty()
                    && !title.contains('\n')
                    && (rest.is_empty() || rest.starts_with(['\n', '\r'])) =>
            {
                SummaryItem { title: Some(title.trim()), content: rest.trim_start_matches(['\n', '\r']) }
            }
            _ => SummaryItem { title: None, content: text },
        }
    }
}

impl Arguments {
    /// Empty text means no arguments, which is an empty object.
    pub fn parse(text: String) -> Arguments {
        if text.trim().is_empty() {
            return Arguments::default();
        }
        match Raw::of(&text) {
            Ok(_) => Arguments::Json(text),
            Err(_) => Arguments::Broken(text),
        }
    }

    /// The canonical form used in JSON lines, so that export and import
    /// round-trip.
    pub(crate) fn canonical(self) -> Arguments {
        match self {
            Arguments::Json(text) => match canonical(&text) {
                Cow::Borrowed(_) => Arguments::Json(text),
                Cow::Owned(shorter) => Arguments::Json(shorter),
            },
            Arguments::Broken(_) => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d10_a_leading_bold_line_is_the_title() {
        #[rustfmt::skip]
        let cases = [
            ("title and body",     "**Plan**\n\nLook up", Some("Plan"), "Look up"),
            ("title alone",        "**Plan**",            Some("Plan"), ""),
            ("bold inside a line", "**Plan** it",         None,         "**Plan** it"),
            ("no bold",            "Look up",             None,         "Look up"),
            ("never closed",       "**Plan",              None,         "**Plan"),
            ("two lines in bold",  "**Pl\nan**\n",        None,         "**Pl\nan**\n"),
        ];
        for (name, text, title, content) in cases {
            let item = SummaryItem::parse(text);
            assert_eq!((item.title, item.content), (title, content), "{name}");
        }
    }

    #[test]
    fn a_native_item_gets_its_text_back() {
        let native = Native { json: r#"{"type":"reasoning.text","index":0}"#.into(), text_member: Some("text".into()) };
        assert_eq!(native.with_text("a \"b\""), r#"{"type":"reasoning.text","index":0,"text":"a \"b\""}"#);
        let nested = Native { json: r#"{"a":{"b":{}}}"#.into(), text_member: Some("text".into()) };
        assert_eq!(nested.with_text("t"), r#"{"a":{"b":{}},"text":"t"}"#);
        let in_place = Native { json: r#"{"a":[{"b":""}],"c":1}"#.into(), text_member: Some(".a.0.b".into()) };
        assert_eq!(in_place.with_text("t\n"), r#"{"a":[{"b":"t\n"}],"c":1}"#);
        let empty = Native { json: "{}".into(), text_member: Some("text".into()) };
        assert_eq!(empty.with_text(""), r#"{"text":""}"#);
    }

    #[test]
    fn d15_arguments_are_parsed_once_and_kept_when_broken() {
        assert_eq!(Arguments::parse(String::new()), Arguments::Json("{}".into()));
        assert_eq!(Arguments::parse(r#"{"b":1,"a":2}"#.into()), Arguments::Json(r#"{"b":1,"a":2}"#.into()));
        assert_eq!(Arguments::parse(r#"{"number": 132"#.into()), Arguments::Broken(r#"{"number": 132"#.into()));
    }
}
