//! What to change after a provider refused a request: the smallest change that
//! its words call for, one at a time. Storage is not touched, and a thought the
//! user withheld is never sent.

use super::Wishes;
use crate::dialect::{Dedupe, Duty, EmptyContent, ErrorRow, FillEmpty, Foreign, Ids, Repair, Rules, TurnsIf};

/// What a refusal means, if it is about thinking at all.
pub fn classify<'a>(catalogue: &'a [ErrorRow], status: Option<u16>, message: &str) -> Option<&'a ErrorRow> {
    let fits = |row: &&ErrorRow| row.fits(message);
    // The words count more than the code, which resellers change; but another
    // row with the right code goes first.
    let exact = catalogue.iter().filter(fits).find(|row| status.is_none_or(|status| row.status.contains(&status)));
    exact.or_else(|| catalogue.iter().find(fits))
}

/// The next repair to try. None when this one was tried: then it does not help.
pub fn next_repair(row: &ErrorRow, tried: &[Repair]) -> Option<Repair> {
    (!tried.contains(&row.repair)).then_some(row.repair)
}

/// Changes the rules and wishes of one request so that it fits.
pub fn apply(repair: Repair, rules: &mut Rules, wishes: &mut Wishes) {
    match repair {
        Repair::FillAll => fill(FillEmpty::All, rules, wishes),
        Repair::FillLoop | Repair::FillCalls => fill(FillEmpty::WithToolCalls, rules, wishes),
        Repair::StripForeign | Repair::StripTurn | Repair::StripItems | Repair::DropBlock => withhold(rules, wishes),
        Repair::DropOrphan | Repair::DropFollowerIds | Repair::OmitIds => rules.echo.ids = Ids::Omit,
        Repair::FullItems => rules.echo.need_opaque = true,
        Repair::OffForTurn | Repair::SwitchMode => wishes.enabled = false,
        Repair::BindingHeader => {
            rules.ask.headers.clear();
            rules.ask.extra.clear();
        }
        Repair::Dedupe => rules.echo.dedupe = Dedupe::ById,
        Repair::DummySignature => {
            rules.echo.foreign = Foreign::DummySignature;
            wishes.seals = false;
        }
        Repair::NearestEffort => wishes.effort = None,
        Repair::OmitEmptyContent => rules.echo.empty_content = EmptyContent::Omit,
        // We force no tool by ourselves; thinking is what can give way.
        Repair::ToolChoiceAuto => wishes.enabled = false,
        Repair::DropParameters => wishes.temperature = None,
    }
}

/// The field everywhere: the thought where it may go, else the filler.
fn fill(where_: FillEmpty, rules: &mut Rules, wishes: &mut Wishes) {
    rules.echo.fill_empty = where_;
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

/// No thought at all: what is left is a conversation that everybody takes.
fn withhold(rules: &mut Rules, wishes: &mut Wishes) {
    wishes.include.sends = false;
    wishes.include.by_user = true;
    wishes.seals = false;
    rules.echo.ids = Ids::Omit;
}
