//! Applies dialect rules: what is sent to a provider, and why.

mod answer_now;
mod dialect_layer;
mod egress;
mod judge;
mod reason;
mod repair;
mod repair_loop;
mod request_params;
mod request_preferences;
mod unmet_duties;

pub use answer_now::{AnswerMode, apply_answer_now};
pub use dialect_layer::{dialect_defaults, rules_with_tags};
pub(crate) use egress::field_name;
pub use egress::{Decision, Egress, EgressAction, EgressTarget, MessagePlan, plan_egress};
pub use judge::{BrokenRule, IssuedThinking, JudgeVerdict, NotARequest, ReplayedSeal, SealCarrier, judge};
pub use reason::EgressReason;
pub use repair::{
    AppliedRepair, LearnedRepair, LearnedRepairs, RepairKey, apply_repair, classify, next_repair, repair_ladder,
};
pub use repair_loop::{MAX_RESENDS, RepairLoop, RepairNotice};
pub(crate) use request_params::params_for_unknown_endpoint;
pub use request_params::{RequestParams, request_params};
pub use request_preferences::{DummySeals, FillerScope, Include, OmittedThinking, RepairEffect, RequestPreferences};
pub(crate) use unmet_duties::unmet_duties;
