//! The table of all settings. Parsing, validation, completion, config files,
//! profiles and the documentation are derived from it.

use std::fmt;
use std::str::FromStr;

use serde_json::Value as Json;

use super::choices::{
    EFFORT_WORDS, Notify, ScreenTheme, SendEmpty, StripThinking, SummaryMode, TagsMode, ThinkingDisplay, ThinkingFormat,
};
use super::error::SettingError;
use super::value::{SettingKind, SettingValue};

/// The description of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingInfo {
    /// The name in files and on the command line.
    pub name: &'static str,
    /// The values it takes.
    pub kind: SettingKind,
    /// The value if no layer sets one.
    pub builtin: BuiltinDefault,
    /// A one-line description.
    pub doc: &'static str,
}

/// The built-in default of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltinDefault {
    /// The default, as text.
    Is(&'static str),
    /// No default, and what happens without one.
    Unset(&'static str),
}

macro_rules! registry {
    ($($key:ident, $name:literal, $kind:expr, $builtin:expr, $doc:literal;)+) => {
        /// Identifies a setting.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum SettingKey {
            $(#[doc = concat!("The setting `", $name, "`.")] $key,)+
        }

        impl SettingKey {
            /// All settings, in the order of help texts.
            pub const ALL: &'static [SettingKey] = &[$(SettingKey::$key),+];

            /// Its name, its values and what it does.
            pub fn info(self) -> &'static SettingInfo {
                match self {
                    $(SettingKey::$key => &SettingInfo { name: $name, kind: $kind, builtin: $builtin, doc: $doc },)+
                }
            }
        }
    };
}

registry! {
    Enabled, "reasoning.enabled", SettingKind::Bool, BuiltinDefault::Is("true"),
        "request thinking; thinking that arrives unrequested is still read and kept";
    Effort, "reasoning.effort", SettingKind::Choice(EFFORT_WORDS), BuiltinDefault::Unset("the model decides"),
        "how hard to think; a level that the model lacks is lowered to one it has; `none` turns thinking off";
    MaxTokens, "reasoning.maxTokens", SettingKind::Count, BuiltinDefault::Unset("the provider decides"),
        "the token budget for thinking, where the provider accepts one";
    IncludeInContext, "reasoning.includeInContext", SettingKind::Bool, BuiltinDefault::Is("false"),
        "send stored thinking back; dialects turn it on for models that need it or benefit from it";
    IncludeInResponse, "reasoning.includeInResponse", SettingKind::Bool, BuiltinDefault::Is("true"),
        "show thinking at all; false shows it as `off`, whatever reasoning.display says";
    StripFromContext, "reasoning.stripFromContext", SettingKind::Choice(StripThinking::WORDS), BuiltinDefault::Is("none"),
        "stored thinking to leave out, whatever reasoning.includeInContext says; an open tool loop always keeps its own";
    Format, "reasoning.format", SettingKind::Choice(ThinkingFormat::WORDS), BuiltinDefault::Is("field"),
        "how thinking is sent back; protocols with native thinking blocks always use those";
    FieldName, "reasoning.fieldName", SettingKind::Name, BuiltinDefault::Unset("from the dialect"),
        "the field to write thinking to on Chat Completions";
    SendEmpty, "reasoning.sendEmpty", SettingKind::Choice(SendEmpty::WORDS), BuiltinDefault::Is("omit"),
        "what to send when there is no thinking: no field, an empty string or a space";
    Tags, "reasoning.tags", SettingKind::Choice(TagsMode::WORDS), BuiltinDefault::Is("auto"),
        "read <think> tags in the answer as thinking; preopened if the model's template writes the first tag";
    Summary, "reasoning.summary", SettingKind::Choice(SummaryMode::WORDS), BuiltinDefault::Is("auto"),
        "which summary of thinking to request, where a provider offers summaries";
    Display, "reasoning.display", SettingKind::Choice(ThinkingDisplay::WORDS), BuiltinDefault::Is("live"),
        "how thinking is displayed: full, live (folds when done), collapsed or off; never changes what is sent";
    ContextLimit, "context.limit", SettingKind::Count, BuiltinDefault::Unset("from the dialect"),
        "the maximum number of tokens in a request";
    CompactAt, "context.compactAt", SettingKind::Fraction, BuiltinDefault::Is("0.8"),
        "the share of context.limit at which old turns are summarised";
    RequestMaxTokens, "request.maxTokens", SettingKind::Count, BuiltinDefault::Unset("from the dialect"),
        "the maximum number of tokens in one reply";
    Temperature, "request.temperature", SettingKind::Number, BuiltinDefault::Unset("the provider decides"),
        "the sampling temperature";
    ReplyMaxBytes, "reply.maxBytes", SettingKind::Bytes, BuiltinDefault::Is("67108864"),
        "the maximum size of one reply in memory, in bytes; a longer reply is cut off with a notice; 0 for no limit";
    ConnectSeconds, "http.connectSeconds", SettingKind::Number, BuiltinDefault::Is("10"),
        "how long connecting to a provider may take; 0 for no limit; applies to new sessions";
    IdleSeconds, "http.idleSeconds", SettingKind::Number, BuiltinDefault::Is("300"),
        "how long a provider may send nothing; models can think silently for minutes; 0 for no limit; applies to new sessions";
    TotalSeconds, "http.totalSeconds", SettingKind::Number, BuiltinDefault::Unset("no limit"),
        "how long a request and its reply may take together; 0 for no limit; applies to new sessions";
    SystemPrompt, "prompt.system", SettingKind::Text, BuiltinDefault::Unset("a short built-in prompt when tools are on"),
        "the system prompt, or @FILE to read it from";
    ProjectFiles, "prompt.projectFiles", SettingKind::List, BuiltinDefault::Is(r#"["AGENTS.md"]"#),
        "instructions to read from the working folder up to the root of the repository";
    Notify, "screen.notify", SettingKind::Choice(Notify::WORDS), BuiltinDefault::Is("bell"),
        "how the terminal notifies you when a question is waiting or a long turn ends: by the bell or a notification, and in its title";
    ProseWidth, "screen.proseWidth", SettingKind::Count, BuiltinDefault::Is("100"),
        "the widest line of text on the screen, in columns; code and tables may be wider";
    Theme, "screen.theme", SettingKind::Choice(ScreenTheme::WORDS), BuiltinDefault::Is("auto"),
        "the colours of the screen: for a dark or a light background, or as the terminal reports";
    Mouse, "screen.mouse", SettingKind::Bool, BuiltinDefault::Is("true"),
        "clicks and the wheel belong to aside; false leaves them to the terminal, for selecting text";
}

/// Another name for a setting, with its own values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingAlias {
    /// The other name.
    pub name: &'static str,
    /// The setting that it changes.
    pub key: SettingKey,
    /// Its values, and the value of the key for each. None means unset.
    means: &'static [(&'static str, Option<&'static str>)],
}

/// Names from an earlier specification.
pub const ALIASES: &[SettingAlias] = &[
    SettingAlias {
        name: "show_thinking",
        key: SettingKey::Display,
        means: &[("true", Some("live")), ("false", Some("off"))],
    },
    SettingAlias {
        name: "thinking.context_mode",
        key: SettingKey::IncludeInContext,
        means: &[("keep", Some("true")), ("strip", Some("false")), ("provider_default", None)],
    },
];

/// A validated change of one setting. Only the registry creates these.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingChange {
    key: SettingKey,
    value: Option<SettingValue>,
}

impl SettingChange {
    /// Parses a name and a value. Aliases are accepted.
    pub fn parse(name: &str, text: &str) -> Result<SettingChange, SettingError> {
        let parse = |key: SettingKey| key.parse(text).map(|value| SettingChange { key, value: Some(value) });
        match alias(name) {
            Some(alias) => alias.change(text),
            None => name.parse().and_then(parse),
        }
    }

    /// From a name and a typed value, from JSON or from TOML as JSON.
    pub fn accept(name: &str, given: &Json) -> Result<SettingChange, SettingError> {
        if let Some(alias) = alias(name) {
            return alias.change(&as_typed(given));
        }
        let key: SettingKey = name.parse()?;
        let entry = key.info();
        let value = entry.kind.accept(given);
        let value = value.ok_or_else(|| SettingError::bad_value(entry.name, &as_typed(given), entry.kind.valid()))?;
        Ok(SettingChange { key, value: Some(value) })
    }

    /// The setting that changes.
    pub fn key(&self) -> SettingKey {
        self.key
    }

    /// None if the setting is to be unset.
    pub fn value(&self) -> Option<&SettingValue> {
        self.value.as_ref()
    }

    pub(super) fn into_parts(self) -> (SettingKey, Option<SettingValue>) {
        (self.key, self.value)
    }
}

/// `KEY=VALUE`, as in `--set`.
impl FromStr for SettingChange {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<SettingChange, SettingError> {
        let Some((name, value)) = text.split_once('=') else {
            return Err(SettingError::NoValue { text: super::error::quoted(text) });
        };
        SettingChange::parse(name.trim(), value)
    }
}

impl SettingKey {
    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Whether profiles contain it. They contain all settings about thinking.
    pub fn is_about_thinking(self) -> bool {
        self.name().starts_with("reasoning.")
    }

    /// Parses a value.
    pub fn parse(self, text: &str) -> Result<SettingValue, SettingError> {
        let entry = self.info();
        entry.kind.parse(text).ok_or_else(|| SettingError::bad_value(entry.name, text, entry.kind.valid()))
    }

    /// The default, if there is one.
    pub fn builtin(self) -> Option<SettingValue> {
        match self.info().builtin {
            BuiltinDefault::Is(text) => self.info().kind.parse(text),
            BuiltinDefault::Unset(_) => None,
        }
    }
}

impl fmt::Display for SettingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// By name or alias.
impl FromStr for SettingKey {
    type Err = SettingError;

    fn from_str(name: &str) -> Result<SettingKey, SettingError> {
        let key = SettingKey::ALL.iter().copied().find(|key| key.name() == name);
        key.or_else(|| alias(name).map(|alias| alias.key)).ok_or_else(|| SettingError::unknown(name))
    }
}

impl SettingAlias {
    fn change(&self, text: &str) -> Result<SettingChange, SettingError> {
        let words = || self.means.iter().map(|(word, _)| *word).collect::<Vec<_>>();
        let found = self.means.iter().find(|(word, _)| *word == text.trim());
        let (_, meant) = found.ok_or_else(|| {
            let valid = super::choices::one_of(&words());
            SettingError::bad_value(self.name, text, valid)
        })?;
        let value = meant.map(|meant| self.key.parse(meant)).transpose()?;
        Ok(SettingChange { key: self.key, value })
    }
}

/// Completes a setting: names, or the values of a setting after a `=`.
pub fn complete(typed: &str) -> Vec<String> {
    if let Some((name, begun)) = typed.split_once('=') {
        let words: Vec<&str> = match alias(name) {
            Some(alias) => alias.means.iter().map(|(word, _)| *word).collect(),
            None => name.parse::<SettingKey>().map(|key| key.info().kind.choices().to_vec()).unwrap_or_default(),
        };
        let fitting = words.into_iter().filter(|word| word.starts_with(begun));
        return fitting.map(|word| format!("{name}={word}")).collect();
    }
    SettingKey::ALL.iter().map(|key| key.name()).filter(|name| name.starts_with(typed)).map(str::to_owned).collect()
}

fn alias(name: &str) -> Option<&'static SettingAlias> {
    ALIASES.iter().find(|alias| alias.name == name)
}

/// A value as the user would type it.
fn as_typed(given: &Json) -> String {
    given.as_str().map_or_else(|| given.to_string(), str::to_owned)
}
