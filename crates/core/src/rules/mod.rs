//! Dialect rules at work: what goes back to a provider, and why.

mod ask;
mod egress;
mod haste;
mod judge;
mod layer;
mod repair;
mod unmet;
mod why;
mod wishes;

pub(crate) use ask::ask_a_stranger;
pub use ask::{Asked, ask};
pub(crate) use egress::field_name;
pub use egress::{Action, Decision, Egress, Reader, Step, plan};
pub use haste::{Haste, hasten};
pub use judge::{Broken, Carried, Issued, NotARequest, Returned, Verdict, judge};
pub use layer::{defaults, reading};
pub use repair::{Cure, Cures, apply, classify, ladder, next_repair};
pub(crate) use unmet::unmet;
pub use why::Why;
pub use wishes::{Cut, Dummies, FillWhere, Include, Mend, Wishes};
