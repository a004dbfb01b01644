//! Typed access to settings.

use std::str::FromStr;

use super::choices::NO_EFFORT;
use super::{
    Effort, Layer, Notify, ScreenTheme, SendEmpty, SettingKey, SettingValue, Settings, StripThinking, SummaryMode,
    TagsMode, ThinkingDisplay, ThinkingFormat,
};

impl Settings {
    /// Whether to request thinking, and which layer decided. An effort of
    /// `none` overrides `reasoning.enabled`.
    pub fn enabled(&self) -> (bool, Layer) {
        match self.get(SettingKey::Effort) {
            Some((SettingValue::Choice(NO_EFFORT), layer)) => (false, layer),
            _ => self.flag(SettingKey::Enabled),
        }
    }

    /// The effort level. None if unset or `none`; [`Settings::enabled`] tells
    /// which.
    pub fn effort(&self) -> Option<Effort> {
        self.word(SettingKey::Effort)
    }

    /// The thinking budget in tokens.
    pub fn max_thinking_tokens(&self) -> Option<u64> {
        self.count(SettingKey::MaxTokens)
    }

    /// Whether stored thinking is sent back, and which layer decided. A no from
    /// the user is respected even if the provider requires thinking.
    pub fn include_in_context(&self) -> (bool, Layer) {
        self.flag(SettingKey::IncludeInContext)
    }

    /// Which stored thinking is left out.
    pub fn strip(&self) -> StripThinking {
        self.word(SettingKey::StripFromContext).unwrap_or_default()
    }

    /// Whether thinking goes back in native blocks or in a field.
    pub fn format(&self) -> ThinkingFormat {
        self.word(SettingKey::Format).unwrap_or_default()
    }

    /// The field for thinking on Chat Completions. None if the dialect decides.
    pub fn field_name(&self) -> Option<&str> {
        self.text(SettingKey::FieldName)
    }

    /// What a field holds if there is no thinking for it.
    pub fn send_empty(&self) -> SendEmpty {
        self.word(SettingKey::SendEmpty).unwrap_or_default()
    }

    /// Whether tags in answers are read as thinking.
    pub fn tags(&self) -> TagsMode {
        self.word(SettingKey::Tags).unwrap_or_default()
    }

    /// Which summary of the thinking is requested.
    pub fn summary(&self) -> SummaryMode {
        self.word(SettingKey::Summary).unwrap_or_default()
    }

    /// How thinking is displayed. `includeInResponse=false` means `off`.
    pub fn display(&self) -> ThinkingDisplay {
        match self.flag(SettingKey::IncludeInResponse) {
            (true, _) => self.word(SettingKey::Display).unwrap_or_default(),
            (false, _) => ThinkingDisplay::Off,
        }
    }

    /// The most tokens of one request. None if neither the user nor the dialect
    /// sets it.
    pub fn context_limit(&self) -> Option<u64> {
        self.count(SettingKey::ContextLimit)
    }

    /// The same, with its layer.
    pub fn context_limit_by(&self) -> Option<(u64, Layer)> {
        let (_, layer) = self.get(SettingKey::ContextLimit)?;
        Some((self.context_limit()?, layer))
    }

    /// The fraction of the limit at which to compact. None means never.
    pub fn compact_at(&self) -> Option<f64> {
        self.number(SettingKey::CompactAt)
    }

    /// The output limit of one reply, in tokens.
    pub fn max_output_tokens(&self) -> Option<u64> {
        self.count(SettingKey::RequestMaxTokens)
    }

    /// How many bytes of one reply are kept in memory. None means all.
    pub fn max_reply_bytes(&self) -> Option<u64> {
        self.count(SettingKey::ReplyMaxBytes).filter(|most| *most > 0)
    }

    /// How long connecting may take, in seconds. None means forever.
    pub fn connect_seconds(&self) -> Option<f64> {
        self.number(SettingKey::ConnectSeconds).filter(|seconds| *seconds > 0.0)
    }

    /// How long a provider may send nothing, in seconds. None means forever.
    pub fn idle_seconds(&self) -> Option<f64> {
        self.number(SettingKey::IdleSeconds).filter(|seconds| *seconds > 0.0)
    }

    /// How long a request and its reply may take together, in seconds. None means forever.
    pub fn total_seconds(&self) -> Option<f64> {
        self.number(SettingKey::TotalSeconds).filter(|seconds| *seconds > 0.0)
    }

    /// The sampling temperature. None if the provider decides.
    pub fn temperature(&self) -> Option<f64> {
        self.number(SettingKey::Temperature)
    }

    /// Text, or `@FILE`, which the caller resolves.
    pub fn system_prompt(&self) -> Option<&str> {
        self.text(SettingKey::SystemPrompt)
    }

    /// Names of instruction files to read from the working directory upwards.
    pub fn project_files(&self) -> &[String] {
        match self.get(SettingKey::ProjectFiles) {
            Some((SettingValue::List(items), _)) => items,
            _ => &[],
        }
    }

    /// How the screen calls the user.
    pub fn notify(&self) -> Notify {
        self.word(SettingKey::Notify).unwrap_or_default()
    }

    /// The widest line of text on the screen, in columns.
    pub fn prose_width(&self) -> u64 {
        self.count(SettingKey::ProseWidth).unwrap_or(u64::MAX)
    }

    /// The colours of the screen.
    pub fn theme(&self) -> ScreenTheme {
        self.word(SettingKey::Theme).unwrap_or_default()
    }

    /// Whether clicks and the wheel belong to the screen.
    pub fn mouse(&self) -> bool {
        self.flag(SettingKey::Mouse).0
    }

    // The registry accepts only values of the right kind, so other kinds cannot
    // occur.

    fn flag(&self, key: SettingKey) -> (bool, Layer) {
        match self.get(key) {
            Some((SettingValue::Bool(flag), layer)) => (*flag, layer),
            _ => (false, Layer::Builtin),
        }
    }

    fn word<T: FromStr>(&self, key: SettingKey) -> Option<T> {
        match self.get(key)? {
            (SettingValue::Choice(word), _) => word.parse().ok(),
            _ => None,
        }
    }

    fn count(&self, key: SettingKey) -> Option<u64> {
        match self.get(key)? {
            (SettingValue::Count(count), _) => Some(*count),
            _ => None,
        }
    }

    fn number(&self, key: SettingKey) -> Option<f64> {
        match self.get(key)? {
            (SettingValue::Number(number), _) => Some(*number),
            _ => None,
        }
    }

    fn text(&self, key: SettingKey) -> Option<&str> {
        match self.get(key)? {
            (SettingValue::Text(text), _) => Some(text),
            _ => None,
        }
    }
}
