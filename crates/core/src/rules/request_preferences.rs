//! The settings that matter for one request, resolved each time.

use crate::dialect::EchoRules;
use crate::parameters::Parameters;
use crate::settings::{Effort, SendEmpty, SettingKey, Settings, StripThinking, SummaryMode};

/// The user's preferences, resolved from all layers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RequestPreferences {
    pub enabled: bool,
    pub effort: Option<Effort>,
    pub budget: Option<u64>,
    pub include: Include,
    pub strip: StripThinking,
    /// Seals on text and tool calls may be sent back.
    pub seals: bool,
    /// The field to write to, if the user chose one.
    pub field: Option<String>,
    /// The value for an empty field, if the user chose one.
    pub filler: Option<String>,
    /// The user wants no filler, even if the provider requires one.
    pub omits_filler: bool,
    /// The user's choice for summaries, if any.
    pub summary: Option<SummaryMode>,
    pub max_tokens: Option<u64>,
    pub temperature: Option<f64>,
    /// The effect of repairs for this endpoint.
    pub repair_effect: RepairEffect,
    /// Parameters that the provider refused.
    pub omitted_parameters: Vec<String>,
    /// Paths of parameters, each with the JSON that a provider asked for.
    pub set_parameters: Vec<(String, String, SetWhen)>,
    /// Parameters that the provider wants under another path.
    pub moved_parameters: Vec<(String, String)>,
    pub tool_choice: SentToolChoice,
    /// Changes to the body after it is written.
    pub body_edits: Vec<BodyEdit>,
}

/// What is sent of the request's choice of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum SentToolChoice {
    #[default]
    AsAsked,
    /// Nothing: the model chooses, because the provider refused the choice.
    Omitted,
}

/// Which requests get a parameter that a provider asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetWhen {
    /// Those that have it with another value.
    Present,
    Always,
}

/// A change to a written body that a refusal asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BodyEdit {
    /// Leave out a member of the blocks or items of one kind.
    OmitMember { kind: String, name: String },
    /// Add a member to the blocks or items of one kind that lack it.
    AddMember { kind: String, name: String, json: String },
    /// Leave out assistant messages without content, and empty texts.
    DropEmptied,
    /// Put thinking before the other blocks of its message.
    ThinkingFirst,
    /// Leave out the fields that carry thinking in messages with text and calls.
    DropBesideText,
    /// Write the seals of parts in the standard alphabet of base64.
    StandardBase64,
}

/// What repairs omit or add, beyond settings and dialect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RepairEffect {
    pub omitted: OmittedThinking,
    pub omitted_by_seal: OmittedBySeal,
    /// Omit thinking that nothing follows, in any protocol.
    pub drop_orphans: bool,
    /// Send ids only on items that follow thinking which is sent.
    pub ids_need_thinking: bool,
    pub filler_scope: FillerScope,
    pub dummy_seals: DummySeals,
    /// Do not request thinking until the turn ends. Past thinking stays.
    pub thinking_paused: bool,
}

/// Thinking that is omitted for what it has or lacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum OmittedBySeal {
    #[default]
    Neither,
    /// Thinking that has only a seal.
    Hidden,
    /// Thinking without a seal.
    Unsealed,
    Both,
}

impl OmittedBySeal {
    pub(crate) fn with(self, other: OmittedBySeal) -> OmittedBySeal {
        match (self, other) {
            (OmittedBySeal::Neither, only) | (only, OmittedBySeal::Neither) => only,
            (one, same) if one == same => one,
            _ => OmittedBySeal::Both,
        }
    }

    pub(crate) fn omits_hidden(self) -> bool {
        matches!(self, OmittedBySeal::Hidden | OmittedBySeal::Both)
    }

    pub(crate) fn omits_unsealed(self) -> bool {
        matches!(self, OmittedBySeal::Unsealed | OmittedBySeal::Both)
    }
}

/// Which thinking is omitted because a provider refused it. Later variants omit
/// more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OmittedThinking {
    #[default]
    Nothing,
    /// Seals that were not issued by exactly this endpoint and model.
    InexactOrigin,
    /// Thinking of finished turns.
    Past,
    /// Sealed thinking.
    Sealed,
    All,
}

/// Where a repair adds fillers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FillerScope {
    #[default]
    AsTheDialectSays,
    OpenLoop,
}

/// Which calls get the documented dummy instead of a seal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum DummySeals {
    #[default]
    AsTheDialectSays,
    /// Calls without a usable seal.
    Missing,
    /// All calls.
    Everywhere,
}

/// Whether stored thinking is sent back, and who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Include {
    pub sends: bool,
    /// The user decided, not a default. Thinking is never sent against the
    /// user's choice.
    pub by_user: bool,
}

impl RequestPreferences {
    pub(crate) fn of(settings: &Settings, echo: &EchoRules) -> RequestPreferences {
        let (include, layer) = settings.include_in_context();
        let by_user = layer.is_set_by_user();
        // The dialect's own values stay in its rules, where a repair can change
        // them.
        let of_the_user = |key: SettingKey| settings.get(key).is_some_and(|(_, layer)| layer.is_set_by_user());
        let send_empty = Some(settings.send_empty()).filter(|_| of_the_user(SettingKey::SendEmpty));
        let filler = match send_empty {
            None | Some(SendEmpty::Omit) => None,
            Some(SendEmpty::Empty) => Some(String::new()),
            Some(SendEmpty::Space) => Some(" ".to_owned()),
        };
        RequestPreferences {
            enabled: settings.enabled().0,
            effort: settings.effort(),
            budget: settings.max_thinking_tokens(),
            include: Include { sends: include || (!by_user && echo.include), by_user },
            strip: settings.strip(),
            seals: include || !by_user,
            field: settings.field_name().filter(|_| of_the_user(SettingKey::FieldName)).map(str::to_owned),
            filler,
            omits_filler: send_empty == Some(SendEmpty::Omit),
            summary: of_the_user(SettingKey::Summary).then(|| settings.summary()),
            max_tokens: settings.max_output_tokens(),
            temperature: settings.temperature(),
            repair_effect: RepairEffect::default(),
            omitted_parameters: Vec::new(),
            set_parameters: Vec::new(),
            moved_parameters: Vec::new(),
            tool_choice: SentToolChoice::AsAsked,
            body_edits: Vec::new(),
        }
    }

    /// The only place where settings and the parameters of a request meet: a
    /// parameter wins.
    pub(crate) fn overridden_by(mut self, parameters: &Parameters) -> RequestPreferences {
        let thinking = &parameters.thinking;
        self.enabled = thinking.enabled.unwrap_or(self.enabled);
        self.effort = thinking.effort.or(self.effort);
        self.budget = thinking.budget.or(self.budget);
        self.summary = thinking.summary.or(self.summary);
        self.max_tokens = parameters.max_output_tokens.or(self.max_tokens);
        self.temperature = parameters.sampling.temperature.or(self.temperature);
        self
    }
}
