//! Dialect rules at work: what goes back to a provider, and why.

mod ask;
mod egress;
mod judge;
mod repair;
mod why;
mod wishes;

pub use ask::{Asked, ask};
pub(crate) use egress::field_name;
pub use egress::{Action, Decision, Egress, Reader, Step, plan};
pub use judge::{Broken, Carried, Issued, NotARequest, Returned, Verdict, judge};
pub use repair::{Cure, Cures, apply, classify, ladder, next_repair};
pub use why::Why;
pub use wishes::{Cut, Dummies, FillWhere, Include, Mend, Wishes};
