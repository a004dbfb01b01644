//! The pieces of a message, in words that belong to no provider.
//!
//! These are plain values: no serde here, so that renaming a field is never a
//! format change. The JSON of product contracts lives in [`crate::json`].

use std::borrow::Cow;
use std::ops::Range;

use crate::event::{End, Note, Usage};
use crate::wire::json::canonical;

/// One piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    Text(Text),
    Thinking(Thinking),
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    Image(Image),
    Unmodelled(Unmodelled),
}

/// Visible answer text. A thought is never one of these.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Text {
    pub text: String,
    /// Some providers hang the opaque payload of a thought on the answer text.
    pub seal: Option<Seal>,
    pub native: Option<Native>,
}

/// What the model thought, as far as its provider let us see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Thinking {
    pub content: Content,
    /// The wire field or tag it arrived in; an open set.
    pub source: String,
    /// The provider's own id of the unit.
    pub id: Option<String>,
    /// Where each summary item stands in the text. Empty where the provider
    /// sends plain text.
    pub items: Vec<Range<usize>>,
    pub span: Option<Span>,
    pub native: Option<Native>,
}

/// The three shapes a thought exists in.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Readable; goes back as plain text or not at all.
    Open { text: String },
    /// Readable (possibly empty) and sealed: goes back untouched.
    Sealed { text: String, seals: Seals },
    /// Nothing to read: redacted, encrypted or known only by its id.
    Hidden { seals: Seals },
}

/// A block may hold a signature, an encrypted payload, or both.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Seals {
    pub signature: Option<Seal>,
    pub encrypted: Option<Seal>,
}

/// Bytes the issuer wants back untouched. Never parsed, trimmed or logged.
#[derive(Debug, Clone, PartialEq)]
pub struct Seal {
    pub kind: SealKind,
    pub payload: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealKind {
    Signature,
    Encrypted,
}

/// One item of a provider's summary. The title is its leading bold line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SummaryItem<'a> {
    pub title: Option<&'a str>,
    pub content: &'a str,
}

/// When a thought began and ended; only where somebody measured it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub started: Time,
    pub ended: Time,
}

/// Milliseconds since the Unix epoch, handed in by whoever reads the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub u64);

/// The provider's own item, kept where exact replay needs more than the
/// neutral fields hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Native {
    /// A JSON object, as received.
    pub json: String,
    /// The member that is this block's own text. It is left out of `json`, so
    /// that a thought is not stored twice, and written back by [`Native::whole`].
    pub text_member: Option<String>,
}

impl Native {
    /// The item with the block's text back in its place.
    pub fn whole(&self, text: &str) -> String {
        let Some(member) = &self.text_member else {
            return self.json.clone();
        };
        let json = self.json.trim();
        let body = json.strip_prefix('{').and_then(|json| json.strip_suffix('}')).unwrap_or("");
        let mut out = String::with_capacity(self.json.len() + text.len() + member.len() + 8);
        out.push('{');
        out.push_str(body);
        if !body.trim().is_empty() {
            out.push(',');
        }
        out.push_str(&serde_json::Value::from(member.as_str()).to_string());
        out.push(':');
        out.push_str(&serde_json::Value::from(text).to_string());
        out.push('}');
        out
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub id: CallId,
    pub name: String,
    pub arguments: Arguments,
    pub seal: Option<Seal>,
    pub native: Option<Native>,
}

/// The name a call is answered under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallId {
    Given(String),
    /// The provider gave none; ours is stable for the same bytes.
    Invented(String),
}

impl CallId {
    /// What our own ids begin with, so that they are known again.
    pub const INVENTED: &str = "aside_call_";

    /// An id that was written down, known again as given or as ours.
    pub(crate) fn known(id: String) -> CallId {
        if id.is_empty() || id.starts_with(CallId::INVENTED) { CallId::Invented(id) } else { CallId::Given(id) }
    }

    pub fn as_str(&self) -> &str {
        match self {
            CallId::Given(id) | CallId::Invented(id) => id,
        }
    }
}

/// Arguments of a call, parsed once when the call is complete.
#[derive(Debug, Clone, PartialEq)]
pub enum Arguments {
    /// JSON text that parses; keys in the order they came.
    Json(String),
    /// What came instead, cut off or polluted. Shown, never executed.
    Broken(String),
}

/// No arguments at all.
impl Default for Arguments {
    fn default() -> Arguments {
        Arguments::Json("{}".to_owned())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    pub id: String,
    pub name: String,
    pub content: String,
    pub is_error: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    pub media_type: String,
    /// Base64, as it goes over the wire.
    pub data: String,
}

/// Something we do not understand: shown as a grey line, stored, and replayed
/// verbatim to its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Unmodelled {
    pub native: Native,
}

/// Who made a message, and so who may read its seals. An absent member
/// matches anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    pub provider: Option<String>,
    pub dialect: Option<String>,
    pub model: Option<String>,
    pub endpoint: Option<String>,
    /// A short hash of the key; never the key.
    pub account: Option<String>,
}

/// One finished or interrupted reply.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    pub blocks: Vec<Block>,
    pub usage: Usage,
    pub end: End,
    pub model: Option<String>,
    /// A thinking field that was present but stayed empty.
    pub seen: Option<String>,
    pub notes: Vec<Note>,
}

impl Thinking {
    /// The readable text; empty when nothing is.
    pub fn text(&self) -> &str {
        match &self.content {
            Content::Open { text } | Content::Sealed { text, .. } => text,
            Content::Hidden { .. } => "",
        }
    }

    pub fn seals(&self) -> Option<&Seals> {
        match &self.content {
            Content::Open { .. } => None,
            Content::Sealed { seals, .. } | Content::Hidden { seals } => Some(seals),
        }
    }

    pub fn summary(&self) -> impl Iterator<Item = SummaryItem<'_>> {
        let text = self.text();
        self.items.iter().filter_map(move |range| text.get(range.clone())).map(SummaryItem::parse)
    }

    pub fn is_hidden(&self) -> bool {
        match self.content {
            Content::Hidden { .. } => true,
            Content::Open { .. } | Content::Sealed { .. } => false,
        }
    }
}

impl SummaryItem<'_> {
    /// A leading line that is bold as a whole is the title.
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
    /// Nothing at all means no arguments, which is an empty object.
    pub fn parse(text: String) -> Arguments {
        if text.trim().is_empty() {
            return Arguments::default();
        }
        match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
            Ok(_) => Arguments::Json(text),
            Err(_) => Arguments::Broken(text),
        }
    }

    /// As JSON lines hold them: what is imported must be the same after it was
    /// written out and read again.
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
        assert_eq!(native.whole("a \"b\""), r#"{"type":"reasoning.text","index":0,"text":"a \"b\""}"#);
        let nested = Native { json: r#"{"a":{"b":{}}}"#.into(), text_member: Some("text".into()) };
        assert_eq!(nested.whole("t"), r#"{"a":{"b":{}},"text":"t"}"#);
        let empty = Native { json: "{}".into(), text_member: Some("text".into()) };
        assert_eq!(empty.whole(""), r#"{"text":""}"#);
    }

    #[test]
    fn d15_arguments_are_parsed_once_and_kept_when_broken() {
        assert_eq!(Arguments::parse(String::new()), Arguments::Json("{}".into()));
        assert_eq!(Arguments::parse(r#"{"b":1,"a":2}"#.into()), Arguments::Json(r#"{"b":1,"a":2}"#.into()));
        assert_eq!(Arguments::parse(r#"{"number": 132"#.into()), Arguments::Broken(r#"{"number": 132"#.into()));
    }
}
