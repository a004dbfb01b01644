//! Settings: one typed table, and values in layers over it.
//!
//! A setting never touches what is stored. It decides what one request sends
//! and what one screen shows, and it is read anew for each of them.

mod error;
mod registry;
mod typed;
mod value;
mod words;

use std::collections::BTreeMap;

pub use error::SettingError;
pub use registry::{ALIASES, Alias, Builtin, Change, Entry, Key, complete};
pub use value::{Kind, Value};
pub use words::{Display, Effort, Format, SendEmpty, Strip, Summary, TagsMode, UnknownWord};

/// Who said a value. The later ones win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    Builtin,
    Dialect,
    Config,
    Profile,
    Session,
}

impl Layer {
    pub const ALL: [Layer; 5] = [Layer::Builtin, Layer::Dialect, Layer::Config, Layer::Profile, Layer::Session];

    pub fn as_str(self) -> &'static str {
        match self {
            Layer::Builtin => "built-in",
            Layer::Dialect => "dialect",
            Layer::Config => "config",
            Layer::Profile => "profile",
            Layer::Session => "session",
        }
    }

    /// Whether the person at the keyboard said it, rather than aside.
    pub fn is_of_the_user(self) -> bool {
        self > Layer::Dialect
    }
}

/// Every value, by setting and layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    // By setting first, so that the layers of one lie side by side.
    values: BTreeMap<(Key, Layer), Value>,
    version: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::new()
    }
}

impl Settings {
    /// The built-in defaults alone.
    pub fn new() -> Settings {
        let defaults = Key::ALL.iter().filter_map(|key| key.builtin().map(|value| ((*key, Layer::Builtin), value)));
        Settings { values: defaults.collect(), version: 0 }
    }

    /// Another number after every change of a value, for whoever caches what
    /// follows from them. It tells states of this value apart, not of its clones.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The value that counts, and who said it.
    pub fn get(&self, key: Key) -> Option<(&Value, Layer)> {
        self.said(key).next().map(|(layer, value)| (value, layer))
    }

    /// Everything said about a setting; what counts comes first.
    pub fn said(&self, key: Key) -> impl Iterator<Item = (Layer, &Value)> {
        let layers = self.values.range((key, Layer::Builtin)..=(key, Layer::Session));
        layers.rev().map(|((_, layer), value)| (*layer, value))
    }

    /// What one layer says, setting by setting.
    pub fn layer(&self, layer: Layer) -> impl Iterator<Item = (Key, &Value)> {
        self.values.iter().filter(move |((_, of), _)| *of == layer).map(|((key, _), value)| (*key, value))
    }

    /// A value as it is typed. Refused, it changes nothing.
    pub fn set(&mut self, layer: Layer, name: &str, text: &str) -> Result<(), SettingError> {
        self.apply(layer, Change::parse(name, text)?);
        Ok(())
    }

    /// Takes back what a layer says; true if it had said something.
    pub fn unset(&mut self, layer: Layer, name: &str) -> Result<bool, SettingError> {
        let before = self.version;
        self.put(layer, name.parse()?, None);
        Ok(self.version != before)
    }

    pub fn apply(&mut self, layer: Layer, change: Change) {
        let (key, value) = change.into_parts();
        self.put(layer, key, value);
    }

    /// Everything a layer says at once: another profile, another model.
    pub fn replace(&mut self, layer: Layer, changes: impl IntoIterator<Item = Change>) {
        let mut wanted: BTreeMap<Key, Option<Value>> = Key::ALL.iter().map(|key| (*key, None)).collect();
        wanted.extend(changes.into_iter().map(Change::into_parts));
        for (key, value) in wanted {
            self.put(layer, key, value);
        }
    }

    /// What `/thinking VIEW` means: look at it this way, and do show it.
    pub fn show(&mut self, layer: Layer, view: Display) {
        self.put(layer, Key::Display, Some(Value::Choice(view.as_str())));
        self.put(layer, Key::IncludeInResponse, Some(Value::Bool(true)));
    }

    /// Another profile. What it says about showing thinking counts at once,
    /// even if the user looked at it in another way before.
    pub fn load_profile(&mut self, changes: Vec<Change>) {
        let shown = [Key::Display, Key::IncludeInResponse];
        for key in shown.into_iter().filter(|key| changes.iter().any(|change| change.key() == *key)) {
            self.put(Layer::Session, key, None);
        }
        self.replace(Layer::Profile, changes);
    }

    fn put(&mut self, layer: Layer, key: Key, value: Option<Value>) {
        let at = (key, layer);
        if self.values.get(&at) == value.as_ref() {
            return;
        }
        match value {
            Some(value) => self.values.insert(at, value),
            None => self.values.remove(&at),
        };
        self.version += 1;
    }
}
