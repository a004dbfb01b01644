//! The one table of settings. Parsing, validation, completion, config files,
//! profiles and the documentation all come from it.

use std::fmt;
use std::str::FromStr;

use serde_json::Value as Json;

use super::error::SettingError;
use super::value::{Kind, Value};
use super::words::{Display, EFFORT_WORDS, Format, SendEmpty, Strip, Summary, TagsMode};

/// What is known about a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// As it is written in files and on the command line.
    pub name: &'static str,
    pub kind: Kind,
    pub builtin: Builtin,
    /// One line on what it does.
    pub doc: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    /// The default, as one would type it.
    Is(&'static str),
    /// No default; and what happens then.
    Unset(&'static str),
}

macro_rules! registry {
    ($($key:ident, $name:literal, $kind:expr, $builtin:expr, $doc:literal;)+) => {
        /// A setting, by a name that cannot be mistyped.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Key {
            $($key,)+
        }

        impl Key {
            pub const ALL: &'static [Key] = &[$(Key::$key),+];

            pub fn entry(self) -> &'static Entry {
                match self {
                    $(Key::$key => &Entry { name: $name, kind: $kind, builtin: $builtin, doc: $doc },)+
                }
            }
        }
    };
}

registry! {
    Enabled, "reasoning.enabled", Kind::Bool, Builtin::Is("true"),
        "ask the provider for thinking; what comes unasked is read and kept all the same";
    Effort, "reasoning.effort", Kind::Choice(EFFORT_WORDS), Builtin::Unset("the model decides"),
        "how hard to think; a level the model lacks is lowered to one it has, `none` switches thinking off";
    MaxTokens, "reasoning.maxTokens", Kind::Count, Builtin::Unset("the provider decides"),
        "tokens for thinking, where the provider takes a budget";
    IncludeInContext, "reasoning.includeInContext", Kind::Bool, Builtin::Is("false"),
        "send stored thinking back; dialects turn it on for the models that need it or profit from it";
    IncludeInResponse, "reasoning.includeInResponse", Kind::Bool, Builtin::Is("true"),
        "show thinking at all; false shows it as `off`, whatever reasoning.display says";
    StripFromContext, "reasoning.stripFromContext", Kind::Choice(Strip::WORDS), Builtin::Is("none"),
        "stored thinking to leave out before reasoning.includeInContext is asked; an open tool loop always keeps its own";
    Format, "reasoning.format", Kind::Choice(Format::WORDS), Builtin::Is("field"),
        "how thinking is sent back; where a protocol has native thinking, that is sent either way";
    FieldName, "reasoning.fieldName", Kind::Name, Builtin::Unset("from the dialect"),
        "the field to write thinking to on Chat Completions";
    SendEmpty, "reasoning.sendEmpty", Kind::Choice(SendEmpty::WORDS), Builtin::Is("omit"),
        "what the field holds when there is no thinking to send: no field, an empty text or a space";
    Tags, "reasoning.tags", Kind::Choice(TagsMode::WORDS), Builtin::Is("auto"),
        "read <think> tags in the answer as thinking; preopened if the model's template writes the first tag";
    Summary, "reasoning.summary", Kind::Choice(Summary::WORDS), Builtin::Is("auto"),
        "which summary of its thinking to ask a provider for that gives summaries";
    Display, "reasoning.display", Kind::Choice(Display::WORDS), Builtin::Is("live"),
        "how thinking looks: full, live (folds when done), collapsed or off; changes nothing that is sent";
    ContextLimit, "context.limit", Kind::Count, Builtin::Unset("from the dialect"),
        "tokens one request may have";
    CompactAt, "context.compactAt", Kind::Fraction, Builtin::Is("0.8"),
        "the share of context.limit at which old turns are summarised";
    RequestMaxTokens, "request.maxTokens", Kind::Count, Builtin::Unset("from the dialect"),
        "tokens the model may write in one answer";
    Temperature, "request.temperature", Kind::Number, Builtin::Unset("the provider decides"),
        "how freely words are chosen";
    ReplyMaxBytes, "reply.maxBytes", Kind::Bytes, Builtin::Is("67108864"),
        "bytes of one reply that are kept in memory; a longer one is stopped there and says so; 0 for no limit";
    SystemPrompt, "prompt.system", Kind::Text, Builtin::Unset("a short one of our own when tools are on"),
        "the system prompt, or @FILE to read it from";
    ProjectFiles, "prompt.projectFiles", Kind::List, Builtin::Is(r#"["AGENTS.md"]"#),
        "instructions to read from the working folder up to the root of the repository";
}

/// Another name for a setting, with words of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alias {
    pub name: &'static str,
    pub key: Key,
    /// Its words, and what each means for the key; nothing: unset.
    means: &'static [(&'static str, Option<&'static str>)],
}

/// Names of the third seed.
pub const ALIASES: &[Alias] = &[
    Alias { name: "show_thinking", key: Key::Display, means: &[("true", Some("live")), ("false", Some("off"))] },
    Alias {
        name: "thinking.context_mode",
        key: Key::IncludeInContext,
        means: &[("keep", Some("true")), ("strip", Some("false")), ("provider_default", None)],
    },
];

/// A checked change of one setting. Only the registry makes one, so whoever
/// holds it has nothing left to check.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    key: Key,
    value: Option<Value>,
}

impl Change {
    /// From a name and a value as they are typed; aliases count.
    pub fn parse(name: &str, text: &str) -> Result<Change, SettingError> {
        let parse = |key: Key| key.parse(text).map(|value| Change { key, value: Some(value) });
        match alias(name) {
            Some(alias) => alias.change(text),
            None => name.parse().and_then(parse),
        }
    }

    /// From a name and a value that has a type: of JSON, or of TOML as JSON.
    pub fn accept(name: &str, given: &Json) -> Result<Change, SettingError> {
        if let Some(alias) = alias(name) {
            return alias.change(&plain(given));
        }
        let key: Key = name.parse()?;
        let entry = key.entry();
        let value = entry.kind.accept(given);
        let value = value.ok_or_else(|| SettingError::bad_value(entry.name, &plain(given), entry.kind.valid()))?;
        Ok(Change { key, value: Some(value) })
    }

    pub fn key(&self) -> Key {
        self.key
    }

    /// Nothing: the setting is to be unset.
    pub fn value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    pub(super) fn into_parts(self) -> (Key, Option<Value>) {
        (self.key, self.value)
    }
}

/// `KEY=VALUE`, as `--set` takes it.
impl FromStr for Change {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Change, SettingError> {
        let Some((name, value)) = text.split_once('=') else {
            return Err(SettingError::NoValue { text: super::error::quoted(text) });
        };
        Change::parse(name.trim(), value)
    }
}

impl Key {
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Whether profiles hold it: every setting about thinking.
    pub fn is_about_thinking(self) -> bool {
        self.name().starts_with("reasoning.")
    }

    /// A value as a person types it.
    pub fn parse(self, text: &str) -> Result<Value, SettingError> {
        let entry = self.entry();
        entry.kind.parse(text).ok_or_else(|| SettingError::bad_value(entry.name, text, entry.kind.valid()))
    }

    /// The default, where there is one.
    pub fn builtin(self) -> Option<Value> {
        match self.entry().builtin {
            Builtin::Is(text) => self.entry().kind.parse(text),
            Builtin::Unset(_) => None,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// By name or alias.
impl FromStr for Key {
    type Err = SettingError;

    fn from_str(name: &str) -> Result<Key, SettingError> {
        let key = Key::ALL.iter().copied().find(|key| key.name() == name);
        key.or_else(|| alias(name).map(|alias| alias.key)).ok_or_else(|| SettingError::unknown(name))
    }
}

impl Alias {
    fn change(&self, text: &str) -> Result<Change, SettingError> {
        let words = || self.means.iter().map(|(word, _)| *word).collect::<Vec<_>>();
        let found = self.means.iter().find(|(word, _)| *word == text.trim());
        let (_, meant) = found.ok_or_else(|| {
            let valid = super::words::one_of(&words());
            SettingError::bad_value(self.name, text, valid)
        })?;
        let value = meant.map(|meant| self.key.parse(meant)).transpose()?;
        Ok(Change { key: self.key, value })
    }
}

/// What may stand where `typed` was begun: the names of settings, and behind
/// a `=` the values of the one named.
pub fn complete(typed: &str) -> Vec<String> {
    if let Some((name, begun)) = typed.split_once('=') {
        let words: Vec<&str> = match alias(name) {
            Some(alias) => alias.means.iter().map(|(word, _)| *word).collect(),
            None => name.parse::<Key>().map(|key| key.entry().kind.words().to_vec()).unwrap_or_default(),
        };
        let fitting = words.into_iter().filter(|word| word.starts_with(begun));
        return fitting.map(|word| format!("{name}={word}")).collect();
    }
    Key::ALL.iter().map(|key| key.name()).filter(|name| name.starts_with(typed)).map(str::to_owned).collect()
}

fn alias(name: &str) -> Option<&'static Alias> {
    ALIASES.iter().find(|alias| alias.name == name)
}

/// A value as one would type it.
fn plain(given: &Json) -> String {
    given.as_str().map_or_else(|| given.to_string(), str::to_owned)
}
