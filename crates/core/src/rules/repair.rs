//! What to change after a provider refused a request: the smallest change that
//! its words call for, one at a time. Storage is not touched, and a thought the
//! user withheld is never sent.

mod cures;
mod effort;

use super::Wishes;
use super::wishes::{Cut, Dummies, FillWhere};
use crate::dialect::{
    Carrier, Dedupe, Duty, EmptyContent, ErrorRow, FillEmpty, Ids, Off, Patch, Repair, Rules, TurnsIf,
};
pub use cures::{Cure, Cures};

/// What a refusal means, if it is about thinking at all.
pub fn classify<'a>(catalogue: &'a [ErrorRow], status: Option<u16>, message: &str) -> Option<&'a ErrorRow> {
    let fits = |row: &&ErrorRow| row.fits(message);
    // The words count more than the code, which resellers change; but another
    // row with the right code goes first.
    let exact = catalogue.iter().filter(fits).find(|row| status.is_none_or(|status| row.status.contains(&status)));
    exact.or_else(|| catalogue.iter().find(fits))
}

/// The next repair to try: the smallest that was not tried yet. None when
/// there is nothing left to try.
pub fn next_repair(row: &ErrorRow, tried: &[Repair]) -> Option<Repair> {
    ladder(row.repair).iter().copied().find(|repair| !tried.contains(repair))
}

/// What is tried, smallest first; the last rung is to go without thinking for
/// this turn.
pub fn ladder(repair: Repair) -> &'static [Repair] {
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
        R::FullItems => &[R::FullItems, R::StripItems, R::OmitIds, R::OffForTurn],
        R::Dedupe => &[R::Dedupe, R::StripItems, R::OffForTurn],
        R::FillAll => &[R::FillAll, R::OffForTurn],
        R::FillLoop => &[R::FillLoop, R::FillCalls, R::FillAll, R::OffForTurn],
        R::FillCalls => &[R::FillCalls, R::FillAll, R::OffForTurn],
        R::DummySignature => &[R::DummySignature, R::DummyEverywhere, R::OffForTurn],
        R::DummyEverywhere => &[R::DummyEverywhere, R::StripTurn, R::OffForTurn],
        R::NearestEffort => &[R::NearestEffort, R::DropEffort, R::OffForTurn],
        R::DropEffort => &[R::DropEffort, R::OffForTurn],
        R::DropBudget => &[R::DropBudget, R::OffForTurn],
        R::OmitEmptyContent => &[R::OmitEmptyContent],
        R::ToolChoiceAuto => &[R::ToolChoiceAuto],
        R::OmitIds => &[R::OmitIds, R::StripItems, R::OffForTurn],
        R::DropParameters => &[R::DropParameters, R::OffForTurn],
    }
}

/// Changes the rules and wishes of one request so that it fits.
pub fn apply(cure: &Cure, rules: &mut Rules, wishes: &mut Wishes) {
    match cure.repair {
        Repair::FillAll => fill(FillEmpty::All, rules, wishes),
        Repair::FillCalls => fill(FillEmpty::WithToolCalls, rules, wishes),
        Repair::FillLoop => {
            fill(FillEmpty::WithToolCalls, rules, wishes);
            wishes.mend.fill = FillWhere::OpenLoop;
        }
        Repair::StripForeign => cut(Cut::Inexact, wishes),
        Repair::DropOlder => cut(Cut::Past, wishes),
        Repair::DropBlock => cut(Cut::Sealed, wishes),
        Repair::StripTurn | Repair::StripItems => cut(Cut::All, wishes),
        Repair::DropOrphan => wishes.mend.drop_orphans = true,
        Repair::DropFollowerIds => wishes.mend.ids_need_thought = true,
        Repair::OmitIds => rules.echo.ids = Ids::Omit,
        Repair::FullItems => rules.echo.need_opaque = true,
        Repair::DropField => drop_field(rules, wishes),
        // We force no tool by ourselves; thinking is what can give way.
        Repair::OffForTurn | Repair::ToolChoiceAuto => wishes.mend.pause = true,
        Repair::SwitchMode => switch_mode(cure, rules),
        Repair::BindingHeader => {
            rules.ask.headers.clear();
            rules.ask.extra.clear();
        }
        Repair::Dedupe => {
            rules.echo.dedupe = if rules.echo.carrier == Carrier::Details { Dedupe::Openrouter } else { Dedupe::ById };
        }
        Repair::DummySignature => wishes.mend.dummies = Dummies::Missing,
        Repair::DummyEverywhere => {
            wishes.mend.dummies = Dummies::Everywhere;
            wishes.seals = false;
        }
        Repair::NearestEffort => effort::restrict(&cure.words, rules, wishes),
        Repair::DropEffort => effort::drop_level(rules, wishes),
        Repair::DropBudget => wishes.budget = None,
        Repair::OmitEmptyContent => rules.echo.empty_content = EmptyContent::Omit,
        Repair::DropParameters => wishes.temperature = None,
    }
}

/// Neither thinking nor a filler, but where an open loop is refused without.
fn drop_field(rules: &mut Rules, wishes: &mut Wishes) {
    wishes.filler = None;
    if rules.echo.loop_duty == Duty::Must {
        cut(Cut::Past, wishes);
        wishes.mend.fill = FillWhere::OpenLoop;
    } else {
        cut(Cut::All, wishes);
        rules.echo.fill_empty = FillEmpty::None;
    }
}

/// More is left out with each refusal, never less.
fn cut(cut: Cut, wishes: &mut Wishes) {
    wishes.mend.cut = wishes.mend.cut.max(cut);
}

/// The field everywhere: the thought where it may go, else the filler.
fn fill(where_: FillEmpty, rules: &mut Rules, wishes: &mut Wishes) {
    rules.echo.fill_empty = where_;
    wishes.mend.fill = FillWhere::AsTheDialectSays;
    if !wishes.include.by_user {
        wishes.include.sends = true;
    }
    if where_ == FillEmpty::All && rules.echo.turns_duty == Duty::Ignored {
        rules.echo.turns_duty = Duty::Should;
        rules.echo.turns_if = TurnsIf::Always;
    }
    if rules.echo.loop_duty == Duty::Ignored {
        rules.echo.loop_duty = Duty::Should;
    }
}

/// The tokens a budget starts with where one must stand and nobody set one.
const A_BUDGET: u64 = 4096;

/// The other way to say what was refused: a budget for `adaptive`, `adaptive`
/// for a budget. Where there is no off-switch, none is sent.
fn switch_mode(cure: &Cure, rules: &mut Rules) {
    let refused = |word: &str| cure.words.iter().any(|refused| refused == word);
    if refused("disabled") || refused("between_tools") {
        rules.ask.off = Off::Unsupported;
        return;
    }
    let least = rules.ask.budget.range.map_or(A_BUDGET, |(least, _)| least.max(A_BUDGET));
    let Some(thinking) = thinking_of(&mut rules.ask.on) else { return };
    if refused("adaptive") {
        thinking.insert("type".to_owned(), "enabled".into());
        thinking.insert("budget_tokens".to_owned(), least.into());
    } else if refused("enabled") {
        thinking.insert("type".to_owned(), "adaptive".into());
        thinking.remove("budget_tokens");
        rules.ask.budget.path.clear();
    }
}

/// The switch, wherever the protocol has it.
fn thinking_of(on: &mut Patch) -> Option<&mut Patch> {
    let below = on.contains_key("additionalModelRequestFields");
    let patch = if below { on.get_mut("additionalModelRequestFields")?.as_object_mut()? } else { on };
    patch.get_mut("thinking")?.as_object_mut()
}
