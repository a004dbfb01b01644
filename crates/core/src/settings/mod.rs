//! Settings: one typed table, with values in layers.
//!
//! A setting never changes what is stored. It decides what a request sends or
//! what a screen shows, and is read again for each of them.

mod choices;
mod error;
mod registry;
mod typed;
mod value;

use std::collections::BTreeMap;

pub use choices::{
    Effort, Notify, ScreenTheme, SendEmpty, StripThinking, SummaryMode, TagsMode, ThinkingDisplay, ThinkingFormat,
    UnknownChoice,
};
pub use error::SettingError;
pub use registry::{ALIASES, BuiltinDefault, SettingAlias, SettingChange, SettingInfo, SettingKey, complete};
pub use value::{SettingKind, SettingValue};

/// How thinking is shown.
const VIEW: [SettingKey; 2] = [SettingKey::Display, SettingKey::IncludeInResponse];

/// The source of a value. Later layers win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// The default that is compiled in.
    Builtin,
    /// What the provider or model needs.
    Dialect,
    /// The user's config file.
    Config,
    /// The chosen profile.
    Profile,
    /// A change during the session, which is stored with it.
    Session,
    /// The command line, for one run. A later change during the session replaces it.
    Run,
}

impl Layer {
    /// All layers, weakest first.
    pub const ALL: [Layer; 6] =
        [Layer::Builtin, Layer::Dialect, Layer::Config, Layer::Profile, Layer::Session, Layer::Run];

    /// The name as it is shown to users.
    pub fn as_str(self) -> &'static str {
        match self {
            Layer::Builtin => "built-in",
            Layer::Dialect => "dialect",
            Layer::Config => "config",
            Layer::Profile => "profile",
            Layer::Session => "session",
            Layer::Run => "run",
        }
    }

    /// Whether the user set it, rather than a default.
    pub fn is_set_by_user(self) -> bool {
        self > Layer::Dialect
    }
}

/// All values, by setting and layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    // Ordered by setting, so that the layers of one are adjacent.
    values: BTreeMap<(SettingKey, Layer), SettingValue>,
    version: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::new()
    }
}

impl Settings {
    /// Only the built-in defaults.
    pub fn new() -> Settings {
        let defaults =
            SettingKey::ALL.iter().filter_map(|key| key.builtin().map(|value| ((*key, Layer::Builtin), value)));
        Settings { values: defaults.collect(), version: 0 }
    }

    /// Changes with every modification, for use as a cache key. Comparable only
    /// within one instance, not between clones.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The effective value, and its layer.
    pub fn get(&self, key: SettingKey) -> Option<(&SettingValue, Layer)> {
        self.values_of(key).next().map(|(layer, value)| (value, layer))
    }

    /// All values of a setting, the effective one first.
    pub fn values_of(&self, key: SettingKey) -> impl Iterator<Item = (Layer, &SettingValue)> {
        let layers = self.values.range((key, Layer::Builtin)..=(key, Layer::Run));
        layers.rev().map(|((_, layer), value)| (*layer, value))
    }

    /// The values of one layer.
    pub fn layer(&self, layer: Layer) -> impl Iterator<Item = (SettingKey, &SettingValue)> {
        self.values.iter().filter(move |((_, of), _)| *of == layer).map(|((key, _), value)| (*key, value))
    }

    /// Sets a value from text. An invalid one changes nothing.
    pub fn set(&mut self, layer: Layer, name: &str, text: &str) -> Result<(), SettingError> {
        self.apply(layer, SettingChange::parse(name, text)?);
        Ok(())
    }

    /// Removes a value from a layer. Returns whether there was one.
    pub fn unset(&mut self, layer: Layer, name: &str) -> Result<bool, SettingError> {
        let before = self.version;
        self.put(layer, name.parse()?, None);
        Ok(self.version != before)
    }

    /// Sets or unsets a value in one layer.
    pub fn apply(&mut self, layer: Layer, change: SettingChange) {
        let (key, value) = change.into_parts();
        self.put(layer, key, value);
    }

    /// Replaces all values of a layer, for another profile or model.
    pub fn replace(&mut self, layer: Layer, changes: impl IntoIterator<Item = SettingChange>) {
        let mut wanted: BTreeMap<SettingKey, Option<SettingValue>> =
            SettingKey::ALL.iter().map(|key| (*key, None)).collect();
        wanted.extend(changes.into_iter().map(SettingChange::into_parts));
        for (key, value) in wanted {
            self.put(layer, key, value);
        }
    }

    /// Implements `/thinking VIEW`: selects the view and shows thinking. That is a preference like those of the config,
    /// and no property of the session, unless a layer above the config has another view. Returns whether the values of
    /// the session changed.
    pub fn show(&mut self, view: ThinkingDisplay) -> bool {
        let of_session = |settings: &Settings| -> Vec<Option<SettingValue>> {
            VIEW.iter().map(|key| settings.values.get(&(*key, Layer::Session)).cloned()).collect()
        };
        let before = of_session(self);
        for key in VIEW {
            self.put(Layer::Session, key, None);
        }
        self.put_view(Layer::Config, view);
        if self.display() != view {
            self.put_view(Layer::Session, view);
        }
        of_session(self) != before
    }

    fn put_view(&mut self, layer: Layer, view: ThinkingDisplay) {
        self.put(layer, SettingKey::Display, Some(SettingValue::Choice(view.as_str())));
        self.put(layer, SettingKey::IncludeInResponse, Some(SettingValue::Bool(true)));
    }

    /// Switches the profile. Its display settings take effect even if the user
    /// changed them in this session.
    pub fn load_profile(&mut self, changes: Vec<SettingChange>) {
        for key in VIEW.into_iter().filter(|key| changes.iter().any(|change| change.key() == *key)) {
            self.put(Layer::Session, key, None);
        }
        self.replace(Layer::Profile, changes);
    }

    fn put(&mut self, layer: Layer, key: SettingKey, value: Option<SettingValue>) {
        if layer == Layer::Session {
            self.put(Layer::Run, key, None);
        }
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
