//! Settings as the types that code acts on.

use std::str::FromStr;

use super::words::NO_EFFORT;
use super::{Display, Effort, Format, Key, Layer, SendEmpty, Settings, Strip, Summary, TagsMode, Value};

impl Settings {
    /// Whether to ask for thinking, and who decided. An effort of `none` says
    /// no for this request, whatever `reasoning.enabled` says.
    pub fn enabled(&self) -> (bool, Layer) {
        match self.get(Key::Effort) {
            Some((Value::Choice(NO_EFFORT), layer)) => (false, layer),
            _ => self.flag(Key::Enabled),
        }
    }

    /// The rung asked for. Nothing if unset or `none`; [`Settings::enabled`] tells which.
    pub fn effort(&self) -> Option<Effort> {
        self.word(Key::Effort)
    }

    /// Tokens for thinking.
    pub fn max_thinking_tokens(&self) -> Option<u64> {
        self.count(Key::MaxTokens)
    }

    /// Whether stored thinking goes back, and who decided: a user's no is kept
    /// even where the provider demands it.
    pub fn include_in_context(&self) -> (bool, Layer) {
        self.flag(Key::IncludeInContext)
    }

    pub fn strip(&self) -> Strip {
        self.word(Key::StripFromContext).unwrap_or_default()
    }

    pub fn format(&self) -> Format {
        self.word(Key::Format).unwrap_or_default()
    }

    pub fn field_name(&self) -> Option<&str> {
        self.text(Key::FieldName)
    }

    pub fn send_empty(&self) -> SendEmpty {
        self.word(Key::SendEmpty).unwrap_or_default()
    }

    pub fn tags(&self) -> TagsMode {
        self.word(Key::Tags).unwrap_or_default()
    }

    pub fn summary(&self) -> Summary {
        self.word(Key::Summary).unwrap_or_default()
    }

    /// How thinking looks; `includeInResponse=false` is `off` whatever `display` says.
    pub fn display(&self) -> Display {
        match self.flag(Key::IncludeInResponse) {
            (true, _) => self.word(Key::Display).unwrap_or_default(),
            (false, _) => Display::Off,
        }
    }

    pub fn context_limit(&self) -> Option<u64> {
        self.count(Key::ContextLimit)
    }

    /// The same, and who said so.
    pub fn context_limit_by(&self) -> Option<(u64, Layer)> {
        let (_, layer) = self.get(Key::ContextLimit)?;
        Some((self.context_limit()?, layer))
    }

    /// The share of the limit at which to compact; without one, never.
    pub fn compact_at(&self) -> Option<f64> {
        self.number(Key::CompactAt)
    }

    /// Tokens of one answer.
    pub fn max_output_tokens(&self) -> Option<u64> {
        self.count(Key::RequestMaxTokens)
    }

    /// How much of one reply is kept in memory; none: all of it.
    pub fn max_reply_bytes(&self) -> Option<u64> {
        self.count(Key::ReplyMaxBytes).filter(|most| *most > 0)
    }

    pub fn temperature(&self) -> Option<f64> {
        self.number(Key::Temperature)
    }

    /// Text, or `@FILE`; who reads files resolves that.
    pub fn system_prompt(&self) -> Option<&str> {
        self.text(Key::SystemPrompt)
    }

    pub fn project_files(&self) -> &[String] {
        match self.get(Key::ProjectFiles) {
            Some((Value::List(items), _)) => items,
            _ => &[],
        }
    }

    // The registry admits only values of a key's kind, so another kind is as good as none.

    fn flag(&self, key: Key) -> (bool, Layer) {
        match self.get(key) {
            Some((Value::Bool(flag), layer)) => (*flag, layer),
            _ => (false, Layer::Builtin),
        }
    }

    fn word<T: FromStr>(&self, key: Key) -> Option<T> {
        match self.get(key)? {
            (Value::Choice(word), _) => word.parse().ok(),
            _ => None,
        }
    }

    fn count(&self, key: Key) -> Option<u64> {
        match self.get(key)? {
            (Value::Count(count), _) => Some(*count),
            _ => None,
        }
    }

    fn number(&self, key: Key) -> Option<f64> {
        match self.get(key)? {
            (Value::Number(number), _) => Some(*number),
            _ => None,
        }
    }

    fn text(&self, key: Key) -> Option<&str> {
        match self.get(key)? {
            (Value::Text(text), _) => Some(text),
            _ => None,
        }
    }
}
