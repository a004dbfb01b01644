//! What the decisions about one message depend on, and the decisions about its thinking.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{EgressAction, EgressTarget};
use crate::block::{Block, Origin, Thinking, ThinkingContent, Unmodelled};
use crate::dialect::{BindModel, Carrier, Duty, FillEmpty, TurnsIf};
use crate::history::TurnStatus;
use crate::json_text::{Raw, member};
use crate::message::{Message, Role};
use crate::protocol::Protocol;
use crate::rules::EgressReason;
use crate::rules::block_carrier::{block_carrier, field_name};
use crate::rules::request_preferences::{FillerScope, OmittedThinking, RequestPreferences};
use crate::settings::StripThinking;

/// Which calls have results, and which results have calls.
pub(super) struct CallPairs<'a> {
    pub(super) calls: HashSet<&'a str>,
    pub(super) results: HashSet<&'a str>,
    /// Calls with ids from another provider.
    pub(super) foreign: HashSet<&'a str>,
}

impl<'a> CallPairs<'a> {
    pub(super) fn of(messages: &[&'a Message], target: &Origin) -> CallPairs<'a> {
        let mut call_pairs = CallPairs { calls: HashSet::new(), results: HashSet::new(), foreign: HashSet::new() };
        let blocks = messages.iter().flat_map(|message| message.blocks.iter().map(|block| (*message, block)));
        for (message, block) in blocks {
            match block {
                Block::ToolCall(call) => {
                    call_pairs.calls.insert(call.id.as_str());
                    if message.origin.as_ref().is_none_or(|origin| origin.dialect != target.dialect) {
                        call_pairs.foreign.insert(call.id.as_str());
                    }
                }
                Block::ToolResult(result) => drop(call_pairs.results.insert(&result.id)),
                Block::Text(_) | Block::Thinking(_) | Block::Media(_) | Block::Unmodelled(_) => (),
            }
        }
        call_pairs
    }
}

/// Everything that the decisions about one message depend on.
pub(super) struct MessageContext<'a> {
    pub(super) target: EgressTarget<'a>,
    pub(super) preferences: &'a RequestPreferences,
    pub(super) call_pairs: &'a CallPairs<'a>,
    pub(super) status: TurnStatus,
    /// Its turn is the last one with thinking.
    pub(super) in_last_thinking_turn: bool,
}

impl MessageContext<'_> {
    pub(super) fn decide(&self, message: &Message, thinking: &Thinking) -> (EgressAction, EgressReason) {
        if let Some(reason) = self.withheld_reason() {
            return (EgressAction::Dropped, reason);
        }
        let rules = &self.target.rules.echo;
        let sealed = thinking.seals().is_some_and(|seals| seals.signature.is_some() || seals.encrypted.is_some());
        if let Some(maker) = self.foreign_origin(message, sealed || self.target.is_unknown) {
            return (EgressAction::Dropped, EgressReason::Foreign { maker: maker.into_owned() });
        }
        if self.is_omitted(thinking, sealed) {
            return (EgressAction::Dropped, EgressReason::Refused);
        }
        if message.interrupted && !sealed && rules.need_opaque {
            return (EgressAction::Dropped, EgressReason::Interrupted);
        }
        let kept = match self.duty() {
            (Duty::Must | Duty::Should, reason) => reason,
            (Duty::Ignored | Duty::Forbidden, reason) => return (EgressAction::Dropped, reason),
        };
        if rules.need_opaque && !sealed {
            return (EgressAction::Dropped, EgressReason::NotSealed);
        }
        let readable = !thinking.text().trim().is_empty();
        match block_carrier(self.target.rules, self.preferences, thinking) {
            Carrier::None => (EgressAction::Dropped, EgressReason::NoCarrier),
            Carrier::Field if readable => (EgressAction::Field, kept),
            Carrier::ContentTags if readable => (EgressAction::Tags, kept),
            Carrier::Field | Carrier::ContentTags => (EgressAction::Dropped, EgressReason::NothingReadable),
            // A native entry is sent back as an entry; plain text goes into a
            // field.
            Carrier::Details if thinking.native.is_some() => (EgressAction::Verbatim, kept),
            Carrier::Details if readable => (EgressAction::Field, kept),
            Carrier::Details => (EgressAction::Dropped, EgressReason::NothingReadable),
            // The seal is sent with the call; text has no carrier there.
            Carrier::CallExtra if thinking.native.is_none() => (EgressAction::Dropped, EgressReason::NoCarrier),
            Carrier::ContentChunks
            | Carrier::Block
            | Carrier::Item
            | Carrier::Part
            | Carrier::CallExtra
            | Carrier::FieldsOpaque => (EgressAction::Verbatim, kept),
        }
    }

    /// Whether it is omitted because this provider refused it before.
    fn is_omitted(&self, thinking: &Thinking, sealed: bool) -> bool {
        let effect = &self.preferences.repair_effect;
        let is_hidden = matches!(thinking.content, ThinkingContent::Hidden { .. });
        if (effect.omitted_by_seal.omits_hidden() && is_hidden) || (effect.omitted_by_seal.omits_unsealed() && !sealed)
        {
            return true;
        }
        match effect.omitted {
            // The origin is checked elsewhere.
            OmittedThinking::Nothing | OmittedThinking::InexactOrigin => false,
            OmittedThinking::Past => self.status == TurnStatus::Past,
            OmittedThinking::Sealed => sealed,
            OmittedThinking::All => true,
        }
    }

    /// Why the user's settings withhold it, if they do.
    pub(super) fn withheld_reason(&self) -> Option<EgressReason> {
        let open = self.status == TurnStatus::OpenLoop;
        let stripped = match self.preferences.strip {
            StripThinking::None => false,
            StripThinking::All => true,
            StripThinking::AllButLast => !self.in_last_thinking_turn,
        };
        if stripped && !open {
            return Some(EgressReason::Stripped);
        }
        // An unknown endpoint gets its own thinking back until the turn ends.
        let include = self.preferences.include;
        if !include.sends && (include.by_user || !open || !self.target.is_unknown) {
            return Some(EgressReason::NotIncluded);
        }
        if !self.preferences.enabled && !open {
            return Some(EgressReason::ThinkingOff);
        }
        None
    }

    pub(super) fn duty(&self) -> (Duty, EgressReason) {
        let echo = &self.target.rules.echo;
        if self.status == TurnStatus::OpenLoop {
            let sent = matches!(echo.loop_duty, Duty::Must | Duty::Should);
            let spared = sent && self.preferences.strip == StripThinking::All;
            let reason = if spared { EgressReason::LoopIsNeverStripped } else { EgressReason::Loop(echo.loop_duty) };
            return (echo.loop_duty, reason);
        }
        let applies = match echo.turns_if {
            TurnsIf::Always | TurnsIf::Flag => true,
            TurnsIf::Tools => self.target.has_tools,
        };
        let duty = if applies { echo.turns_duty } else { Duty::Ignored };
        // The provider ignores it, so it may be sent if the user asks for it.
        if duty == Duty::Ignored && self.preferences.include.sends && self.preferences.include.by_user {
            return (Duty::Should, EgressReason::Included);
        }
        (duty, EgressReason::Turns(duty))
    }

    /// Who produced a message, if it was not the target of this request.
    pub(super) fn foreign_origin(&self, message: &Message, sealed: bool) -> Option<Cow<'static, str>> {
        let target = self.target.origin;
        // Most messages of the user have none.
        let Some(origin) = &message.origin else { return Some(Cow::Borrowed("an unknown provider")) };
        let exact = self.preferences.repair_effect.omitted >= OmittedThinking::InexactOrigin;
        let differs = |mine: &Option<String>, theirs: &Option<String>| match (mine, theirs) {
            (Some(mine), Some(theirs)) => mine != theirs,
            // An absent member matches anything, until a seal was refused.
            _ => exact && mine != theirs,
        };
        let maker = || {
            let name = origin.dialect.as_deref().or(origin.provider.as_deref()).unwrap_or("another provider");
            Cow::Owned(origin.model.as_deref().map_or_else(|| name.to_owned(), |model| format!("{name}, {model}")))
        };
        if differs(&target.dialect, &origin.dialect) {
            return Some(maker());
        }
        if !sealed {
            return None;
        }
        let bind = &self.target.rules.bind;
        let elsewhere = differs(&target.provider, &origin.provider)
            || differs(&target.endpoint, &origin.endpoint)
            || (exact && differs(&target.model, &origin.model))
            || ((exact || bind.account) && differs(&target.account, &origin.account));
        let other_model = match (&bind.model, &target.model, &origin.model) {
            (BindModel::None, ..) | (_, None, _) | (_, _, None) => false,
            (BindModel::Same, Some(mine), Some(theirs)) => mine != theirs,
            (BindModel::Matrix(name), Some(mine), Some(theirs)) => {
                mine != theirs && !(self.target.can_read)(name, mine, theirs)
            }
        };
        (elsewhere || other_model).then(maker)
    }

    /// Items we do not model can be sent back where content is a list.
    pub(super) fn accepts_unmodelled(&self, role: Role, unmodelled: &Unmodelled) -> bool {
        match self.target.protocol {
            Protocol::OpenaiChat => role == Role::Assistant && self.target.rules.echo.carrier == Carrier::ContentChunks,
            Protocol::Ollama => false,
            Protocol::OpenaiResponses => role == Role::Assistant,
            Protocol::Anthropic | Protocol::Gemini | Protocol::Bedrock => role != Role::System,
            // Only the plan has a member of its own.
            Protocol::Cohere => {
                let native = Raw::of(&unmodelled.native.json);
                role == Role::Assistant && native.is_ok_and(|native| member(native, "tool_plan").is_some())
            }
        }
    }

    pub(super) fn answers_foreign_call(&self, message: &Message) -> bool {
        message.blocks.iter().any(|block| match block {
            Block::ToolResult(result) => self.call_pairs.foreign.contains(result.id.as_str()),
            Block::Text(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::Media(_) | Block::Unmodelled(_) => false,
        })
    }

    pub(super) fn field_name(&self, source: Option<&str>) -> String {
        field_name(self.target.rules, self.preferences, source)
    }

    pub(super) fn needs_filler(&self, message: &Message) -> bool {
        // If thinking is forbidden, so is an empty field.
        if self.duty().0 == Duty::Forbidden || self.preferences.omits_filler {
            return false;
        }
        if self.preferences.repair_effect.filler_scope == FillerScope::OpenLoop && self.status != TurnStatus::OpenLoop {
            return false;
        }
        match self.target.rules.echo.fill_empty {
            FillEmpty::None => self.preferences.filler.is_some() && message.thinking().next().is_some(),
            FillEmpty::WithToolCalls => message.has_calls(),
            FillEmpty::All => true,
        }
    }
}
