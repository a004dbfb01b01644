//! What the settings come to for one request, read fresh each time.

use crate::dialect::EchoRules;
use crate::settings::{Effort, Key, SendEmpty, Settings, Strip, Summary};

/// The user's wishes, resolved over the layers.
#[derive(Debug, Clone, PartialEq)]
pub struct Wishes {
    pub enabled: bool,
    pub effort: Option<Effort>,
    pub budget: Option<u64>,
    pub include: Include,
    pub strip: Strip,
    /// Seals on text and calls may go back.
    pub seals: bool,
    /// The field to write, where the user names one.
    pub field: Option<String>,
    /// What stands in an empty field, where the user asks for it.
    pub filler: Option<String>,
    /// The user wants no filler, whatever the provider demands.
    pub omits_filler: bool,
    /// The user's word on summaries, if there is one.
    pub summary: Option<Summary>,
    pub max_tokens: Option<u64>,
    pub temperature: Option<f64>,
}

/// Whether stored thinking goes back, and on whose word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Include {
    pub sends: bool,
    /// The user said so, not a default: no thought leaves against it.
    pub by_user: bool,
}

impl Wishes {
    pub fn of(settings: &Settings, echo: &EchoRules) -> Wishes {
        let (include, layer) = settings.include_in_context();
        let by_user = layer.is_of_the_user();
        // The dialect's own words are in its rules, where a repair can change them.
        let of_the_user = |key: Key| settings.get(key).is_some_and(|(_, layer)| layer.is_of_the_user());
        let send_empty = Some(settings.send_empty()).filter(|_| of_the_user(Key::SendEmpty));
        let filler = match send_empty {
            None | Some(SendEmpty::Omit) => None,
            Some(SendEmpty::Empty) => Some(String::new()),
            Some(SendEmpty::Space) => Some(" ".to_owned()),
        };
        Wishes {
            enabled: settings.enabled().0,
            effort: settings.effort(),
            budget: settings.max_thinking_tokens(),
            include: Include { sends: include || (!by_user && echo.include), by_user },
            strip: settings.strip(),
            seals: include || !by_user,
            field: settings.field_name().filter(|_| of_the_user(Key::FieldName)).map(str::to_owned),
            filler,
            omits_filler: send_empty == Some(SendEmpty::Omit),
            summary: of_the_user(Key::Summary).then(|| settings.summary()),
            max_tokens: settings.max_output_tokens(),
            temperature: settings.temperature(),
        }
    }
}
