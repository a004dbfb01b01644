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
    /// What refusals of this endpoint taught.
    pub mend: Mend,
}

/// What repairs leave out or put in, beyond what settings and dialect say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mend {
    pub cut: Cut,
    /// Thoughts that nothing follows are left out, whatever the protocol.
    pub drop_orphans: bool,
    /// Ids stand only on items behind a thought that is sent.
    pub ids_need_thought: bool,
    pub fill: FillWhere,
    pub dummies: Dummies,
    /// Thinking is not asked for until the turn ends; what there is of it stays.
    pub pause: bool,
}

/// Which thinking is left out because a provider refused it; of two, the one
/// further down counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cut {
    #[default]
    Nothing,
    /// Seals that exactly this endpoint and model did not make.
    Inexact,
    /// Thoughts of finished turns.
    Past,
    /// Thoughts with a seal.
    Sealed,
    All,
}

/// Where a filler that a repair asks for is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FillWhere {
    #[default]
    AsTheDialectSays,
    OpenLoop,
}

/// Which calls get the documented dummy in place of a seal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dummies {
    #[default]
    AsTheDialectSays,
    /// Calls without a seal of ours.
    Missing,
    /// All of them.
    Everywhere,
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
            mend: Mend::default(),
        }
    }
}
