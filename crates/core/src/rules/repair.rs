//! Repairs a refused request with the smallest change that the error message
//! calls for, one at a time. Storage is not changed, and thinking that the user
//! withheld is never sent.

mod about_effort;
mod applied;
mod effort;
mod learned;
mod mentions;
mod named_key;
mod parameters;

use super::request_preferences::{
    BodyEdit, DummySeals, FillerScope, OmittedBySeal, OmittedThinking, SentToolChoice, SetWhen,
};
use super::{RefusedRequest, RequestPreferences};
use crate::dialect::{
    Carrier, Dedupe, Dialects, Duty, EmptyContent, ErrorRow, FillEmpty, Foreign, Ids, Off, Patch, Repair, RequestPart,
    Rules, TurnsIf, normalized_error,
};
use crate::event::ProviderError;
use crate::json_text::value_at_mut;
pub use applied::AppliedRepair;
pub use learned::{LearnedRepair, LearnedRepairs, RepairKey};
pub(crate) use parameters::change_parameters;

/// The id under which repairs by the general rule are reported.
const NAMED_KEY: &str = "named_key";

/// What a refusal means: the row or rule that recognised it, and the repairs to
/// try, smallest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Diagnosis {
    pub(super) row: String,
    pub(super) ladder: Vec<AppliedRepair>,
}

/// Statuses that are about the key or the balance of the account.
const ABOUT_THE_ACCOUNT: [u16; 2] = [401, 402];

/// What a refusal of this request means, if it is about thinking. The catalogue
/// comes first; below it, a message that names one of our keys is enough.
pub(super) fn diagnose(dialects: &Dialects, error: &ProviderError, refused: &RefusedRequest) -> Option<Diagnosis> {
    if error.status.is_some_and(|status| ABOUT_THE_ACCOUNT.contains(&status)) {
        return None;
    }
    let message = match &error.code {
        Some(code) => format!("{} {code}", error.all_words()),
        None => error.all_words().to_owned(),
    };
    let applies = |row: &ErrorRow| match row.when {
        None => true,
        // Many things have a list of values.
        Some(RequestPart::Effort) if row.repair == Repair::NearestEffort => {
            about_effort::lists_levels(error.all_words(), refused)
        }
        Some(part) => refused.has(part),
    };
    // Without a mode, there is none to switch; a parameter that was not sent cannot be left out, nor a header that is
    // sent for its sake.
    let has_key = |row: &ErrorRow| {
        let is_sent =
            |key: &String| key.split('.').next().is_some_and(|name| refused.body.contains(&format!("\"{name}\":")));
        refused.written.is_empty() || row.keys.is_empty() || row.keys.iter().any(is_sent)
    };
    let applies = |row: &ErrorRow| {
        applies(row)
            && (row.repair != Repair::SwitchMode || !applied::modes_in(&message).is_empty())
            && (!matches!(row.repair, Repair::OmitParameter | Repair::BindingHeader) || has_key(row))
    };
    if let Some(row) = matching_row(dialects.catalogue(), error.status, &message, applies) {
        let mut ladder = AppliedRepair::ladder(row, &message);
        if row.repair == Repair::OffForTurn {
            // What conflicts with thinking goes before thinking does.
            let sampling = applied::sampling_in(&message);
            let drop =
                (!sampling.is_empty()).then_some(AppliedRepair { repair: Repair::DropParameters, details: sampling });
            ladder.splice(0..0, drop.into_iter().chain(named_key::missing_value(error.all_words(), refused)));
        }
        // Where a message lists levels, one of them is nearer to what was asked for than none.
        let levels = applied::levels_in(&message);
        if row.repair == Repair::DropEffort && refused.has(RequestPart::Effort) && !levels.is_empty() {
            ladder.insert(0, AppliedRepair { repair: Repair::NearestEffort, details: levels });
        }
        // A level or a switch that turns thinking off is left out before another
        // one is tried.
        if refused.has(RequestPart::Off)
            && matches!(row.repair, Repair::NearestEffort | Repair::SwitchMode | Repair::DropBudget)
        {
            ladder.insert(0, Repair::OmitOff.into());
        }
        ladder.splice(0..0, named_key::demanded_value(error.all_words(), refused));
        return Some(Diagnosis { row: row.id.clone(), ladder });
    }
    if dialects.is_unrelated(&message) {
        return None;
    }
    let ladder = named_key::repairs_for_named_key(error.status, error.all_words(), refused);
    (!ladder.is_empty()).then(|| Diagnosis { row: NAMED_KEY.to_owned(), ladder })
}

/// The error row for a refusal, if it is about thinking. Rows that depend on the
/// request are not considered.
pub fn classify<'a>(catalogue: &'a [ErrorRow], status: Option<u16>, message: &str) -> Option<&'a ErrorRow> {
    matching_row(catalogue, status, message, |row| row.when.is_none())
}

fn matching_row<'a>(
    catalogue: &'a [ErrorRow],
    status: Option<u16>,
    message: &str,
    applies: impl Fn(&ErrorRow) -> bool,
) -> Option<&'a ErrorRow> {
    let message = normalized_error(message);
    let fits = |row: &&ErrorRow| applies(row) && row.matches_normalized(&message);
    // The message counts more than the status, which resellers change. Among
    // matching rows, one with the right status wins.
    let exact = catalogue.iter().filter(fits).find(|row| status.is_none_or(|status| row.status.contains(&status)));
    exact.or_else(|| catalogue.iter().find(fits))
}

/// The smallest repair that was not tried yet. None if all were tried.
pub fn next_repair(row: &ErrorRow, tried: &[Repair]) -> Option<Repair> {
    repair_ladder(row.repair).iter().copied().find(|repair| !tried.contains(repair))
}

/// The repairs to try, smallest first. The last resort is to switch thinking
/// off for this turn.
pub fn repair_ladder(repair: Repair) -> &'static [Repair] {
    use Repair as R;
    match repair {
        R::DropBlock => &[R::DropBlock, R::StripTurn, R::OffForTurn],
        R::StripForeign => &[R::StripForeign, R::DropOlder, R::StripTurn, R::OffForTurn],
        R::DropOlder => &[R::DropOlder, R::StripTurn, R::OffForTurn],
        R::StripTurn => &[R::StripTurn, R::OffForTurn],
        R::DropField => &[R::DropField, R::OffForTurn],
        R::OffForTurn => &[R::OffForTurn],
        R::SwitchMode => &[R::SwitchMode, R::OffForTurn],
        R::BindingHeader => &[R::BindingHeader, R::DropBlock, R::OffForTurn],
        R::DropOrphan => &[R::DropOrphan, R::StripItems, R::OffForTurn],
        R::DropFollowerIds => &[R::DropFollowerIds, R::OmitIds, R::StripItems, R::OffForTurn],
        R::StripItems => &[R::StripItems, R::OmitIds, R::OffForTurn],
        R::FullItems => &[R::FullItems, R::OmitIds, R::StripItems, R::OffForTurn],
        R::Dedupe => &[R::Dedupe, R::StripItems, R::OffForTurn],
        R::FillAll => &[R::FillAll, R::FillSpace, R::OffForTurn],
        R::FillLoop => &[R::FillLoop, R::FillCalls, R::FillAll, R::OffForTurn],
        R::FillCalls => &[R::FillCalls, R::FillAll, R::FillSpace, R::OffForTurn],
        R::FillSpace => &[R::FillSpace, R::OffForTurn],
        R::StandardBase64 => &[R::StandardBase64, R::DummyEverywhere, R::StripTurn, R::OffForTurn],
        R::DropHidden => &[R::DropHidden, R::DropOlder, R::StripTurn, R::OffForTurn],
        R::DropUnsealed => &[R::DropUnsealed, R::DropOlder, R::StripTurn, R::OffForTurn],
        R::DummySignature => &[R::DummySignature, R::DummyEverywhere, R::OffForTurn],
        R::DummyEverywhere => &[R::DummyEverywhere, R::StripTurn, R::OffForTurn],
        R::NearestEffort => &[R::NearestEffort, R::DropEffort, R::OffForTurn],
        R::DropEffort => &[R::DropEffort, R::OffForTurn],
        R::DropBudget => &[R::DropBudget, R::OffForTurn],
        R::OmitEmptyContent => &[R::OmitEmptyContent, R::DropEmptied],
        R::ToolChoiceAuto => &[R::ToolChoiceAuto, R::DropToolChoice],
        R::OmitIds => &[R::OmitIds, R::StripItems, R::OffForTurn],
        R::DropParameters => &[R::DropParameters],
        R::OmitOff => &[R::OmitOff, R::PlainRequest],
        R::PlainRequest => &[R::PlainRequest, R::OffForTurn, R::StripField],
        R::SetParameter => &[R::SetParameter, R::OmitParameter, R::PlainRequest],
        R::OmitParameter => &[R::OmitParameter, R::PlainRequest],
        R::MoveParameter => &[R::MoveParameter, R::OmitParameter, R::PlainRequest],
        R::OmitMember => &[R::OmitMember, R::StripTurn, R::OffForTurn],
        R::AddMember => &[R::AddMember, R::StripTurn, R::OffForTurn],
        R::StripField => &[R::StripField, R::OffForTurn],
        R::DropEmptied => &[R::DropEmptied],
        R::ThinkingFirst => &[R::ThinkingFirst, R::StripTurn, R::OffForTurn],
        R::DropBesideText => &[R::DropBesideText, R::StripField, R::OffForTurn],
        R::EffortNone => &[R::EffortNone, R::DropEffort],
        R::DropToolChoice => &[R::DropToolChoice, R::OffForTurn],
    }
}

/// Changes the rules and preferences of one request.
pub(crate) fn apply_repair(applied: &AppliedRepair, rules: &mut Rules, preferences: &mut RequestPreferences) {
    match applied.repair {
        Repair::FillAll => fill(FillEmpty::All, rules, preferences),
        Repair::FillCalls => fill(FillEmpty::WithToolCalls, rules, preferences),
        Repair::FillLoop => {
            fill(FillEmpty::WithToolCalls, rules, preferences);
            preferences.repair_effect.filler_scope = FillerScope::OpenLoop;
        }
        Repair::FillSpace => {
            let scope = match rules.echo.fill_empty {
                FillEmpty::None | FillEmpty::WithToolCalls => FillEmpty::WithToolCalls,
                FillEmpty::All => FillEmpty::All,
            };
            fill(scope, rules, preferences);
            preferences.filler = Some(" ".to_owned());
        }
        Repair::StandardBase64 => preferences.body_edits.push(BodyEdit::StandardBase64),
        Repair::DropHidden => omit_by_seal(OmittedBySeal::Hidden, preferences),
        Repair::DropUnsealed => omit_by_seal(OmittedBySeal::Unsealed, preferences),
        Repair::StripForeign => omit(OmittedThinking::InexactOrigin, preferences),
        Repair::DropOlder => omit(OmittedThinking::Past, preferences),
        Repair::DropBlock => omit(OmittedThinking::Sealed, preferences),
        Repair::StripTurn | Repair::StripItems => omit(OmittedThinking::All, preferences),
        Repair::DropOrphan => preferences.repair_effect.drop_orphans = true,
        Repair::DropFollowerIds => preferences.repair_effect.ids_need_thinking = true,
        Repair::OmitIds => rules.echo.ids = Ids::Omit,
        Repair::FullItems => rules.echo.need_opaque = true,
        Repair::DropField => drop_field(rules, preferences),
        // A forced tool is what the request wants, so thinking is switched off.
        Repair::OffForTurn | Repair::ToolChoiceAuto => preferences.repair_effect.thinking_paused = true,
        Repair::SwitchMode => switch_mode(applied, rules),
        Repair::BindingHeader => {
            rules.ask.headers.clear();
            rules.ask.extra.clear();
        }
        Repair::Dedupe => {
            rules.echo.dedupe = if rules.echo.carrier == Carrier::Details { Dedupe::Openrouter } else { Dedupe::ById };
        }
        Repair::DummySignature => preferences.repair_effect.dummy_seals = DummySeals::Missing,
        Repair::DummyEverywhere => {
            preferences.repair_effect.dummy_seals = DummySeals::Everywhere;
            preferences.seals = false;
        }
        Repair::NearestEffort => effort::restrict(&applied.details, rules, preferences),
        Repair::DropEffort => effort::drop_level(rules, preferences),
        Repair::DropBudget => drop_budget(applied, rules, preferences),
        Repair::OmitEmptyContent => rules.echo.empty_content = EmptyContent::Omit,
        Repair::DropParameters => {
            // A message that names none means the one that we send.
            if applied.details.is_empty() || applied.details.iter().any(|name| name == "temperature") {
                preferences.temperature = None;
            }
            preferences.omitted_parameters.extend(applied.details.iter().cloned());
        }
        Repair::OmitOff => rules.ask.off = Off::Patch(Patch::new()),
        Repair::PlainRequest => plain_request(rules, preferences),
        Repair::OmitParameter => preferences.omitted_parameters.extend(applied.details.iter().cloned()),
        Repair::SetParameter => {
            if let [path, json, rest @ ..] = applied.details.as_slice() {
                let when = if rest.is_empty() { SetWhen::Present } else { SetWhen::Always };
                preferences.set_parameters.push((path.clone(), json.clone(), when));
            }
        }
        Repair::MoveParameter => {
            if let [from, to, ..] = applied.details.as_slice() {
                preferences.moved_parameters.push((from.clone(), to.clone()));
            }
        }
        Repair::OmitMember => {
            if let [kind, name, ..] = applied.details.as_slice() {
                preferences.body_edits.push(BodyEdit::OmitMember { kind: kind.clone(), name: name.clone() });
            }
        }
        Repair::AddMember => {
            if let [kind, name, json, ..] = applied.details.as_slice() {
                let (kind, name, json) = (kind.clone(), name.clone(), json.clone());
                preferences.body_edits.push(BodyEdit::AddMember { kind, name, json });
            }
        }
        Repair::StripField => {
            omit(OmittedThinking::All, preferences);
            preferences.seals = false;
            rules.echo.foreign = Foreign::Drop;
            preferences.filler = None;
            preferences.omits_filler = true;
        }
        Repair::DropEmptied => {
            preferences.repair_effect.drop_orphans = true;
            preferences.body_edits.push(BodyEdit::DropEmptied);
        }
        Repair::ThinkingFirst => preferences.body_edits.push(BodyEdit::ThinkingFirst),
        Repair::DropBesideText => preferences.body_edits.push(BodyEdit::DropBesideText),
        Repair::EffortNone => effort::send_none(rules, preferences),
        Repair::DropToolChoice => {
            preferences.tool_choice = SentToolChoice::Omitted;
            preferences.omitted_parameters.push("tool_choice".to_owned());
        }
    }
}

/// Sends neither thinking nor a filler, except where an open loop requires it.
fn drop_field(rules: &mut Rules, preferences: &mut RequestPreferences) {
    preferences.filler = None;
    if rules.echo.loop_duty == Duty::Must {
        omit(OmittedThinking::Past, preferences);
        preferences.repair_effect.filler_scope = FillerScope::OpenLoop;
    } else {
        omit(OmittedThinking::All, preferences);
        rules.echo.fill_empty = FillEmpty::None;
    }
}

/// Sends no budget. One that the dialect requires becomes the least that is
/// accepted.
fn drop_budget(applied: &AppliedRepair, rules: &mut Rules, preferences: &mut RequestPreferences) {
    preferences.budget = None;
    let named = applied.details.first().and_then(|least| least.parse().ok());
    let least = named.or(rules.ask.budget.range.map(|(least, _)| least));
    if let (Some(least), Some(required)) = (least, value_at_mut(&mut rules.ask.on, &rules.ask.budget.path)) {
        *required = least.into();
    }
}

/// Sends nothing about thinking, as to an unknown endpoint.
fn plain_request(rules: &mut Rules, preferences: &mut RequestPreferences) {
    let ask = &mut rules.ask;
    ask.on.clear();
    ask.off = Off::Patch(Patch::new());
    ask.show.clear();
    ask.headers.clear();
    // Whether the provider stores replies is not about thinking.
    ask.extra.retain(|name, _| name == "store");
    rules.echo.flag.clear();
    preferences.effort = None;
    preferences.budget = None;
}

/// Each refusal can only omit more, never less.
fn omit_by_seal(omitted: OmittedBySeal, preferences: &mut RequestPreferences) {
    let effect = &mut preferences.repair_effect;
    effect.omitted_by_seal = effect.omitted_by_seal.with(omitted);
}

fn omit(omitted: OmittedThinking, preferences: &mut RequestPreferences) {
    preferences.repair_effect.omitted = preferences.repair_effect.omitted.max(omitted);
}

/// Fills the field everywhere: with thinking where allowed, else with the
/// filler.
fn fill(scope: FillEmpty, rules: &mut Rules, preferences: &mut RequestPreferences) {
    rules.echo.fill_empty = scope;
    preferences.repair_effect.filler_scope = FillerScope::AsTheDialectSays;
    if !preferences.include.by_user {
        preferences.include.sends = true;
    }
    if scope == FillEmpty::All && rules.echo.turns_duty == Duty::Ignored {
        rules.echo.turns_duty = Duty::Should;
        rules.echo.turns_if = TurnsIf::Always;
    }
    if rules.echo.loop_duty == Duty::Ignored {
        rules.echo.loop_duty = Duty::Should;
    }
}

/// The default budget if one is required and none is set.
const DEFAULT_BUDGET: u64 = 4096;

/// Switches to the other mode: a budget instead of `adaptive`, or the reverse.
/// Where thinking cannot be switched off, no switch is sent.
fn switch_mode(applied: &AppliedRepair, rules: &mut Rules) {
    let refused = |word: &str| applied.details.iter().any(|refused| refused == word);
    if refused("disabled") || refused("between_tools") {
        rules.ask.off = Off::Unsupported;
        return;
    }
    let least = rules.ask.budget.range.map_or(DEFAULT_BUDGET, |(least, _)| least.max(DEFAULT_BUDGET));
    let Some(thinking) = thinking_object(&mut rules.ask.on) else { return };
    if refused("adaptive") {
        thinking.insert("type".to_owned(), "enabled".into());
        thinking.insert("budget_tokens".to_owned(), least.into());
    } else if refused("enabled") {
        thinking.insert("type".to_owned(), "adaptive".into());
        thinking.remove("budget_tokens");
        rules.ask.budget.path.clear();
    }
}

/// The thinking object, wherever the protocol places it.
fn thinking_object(on: &mut Patch) -> Option<&mut Patch> {
    let below = on.contains_key("additionalModelRequestFields");
    let patch = if below { on.get_mut("additionalModelRequestFields")?.as_object_mut()? } else { on };
    patch.get_mut("thinking")?.as_object_mut()
}
