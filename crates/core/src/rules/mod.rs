//! Applies dialect rules: what is sent to a provider, and why.

mod answer_now;
mod block_carrier;
mod cache_plan;
mod dialect_layer;
mod egress;
mod judge;
mod left_out;
mod reason;
mod repair;
mod repair_loop;
mod request_params;
mod request_preferences;
mod unmet_duties;
mod written_keys;

pub use answer_now::{AnswerMode, apply_answer_now};
pub(crate) use block_carrier::{block_carrier, field_name};
pub use cache_plan::cache_hints;
pub use dialect_layer::{dialect_defaults, rules_with_tags};
pub(crate) use egress::{CacheMark, Egress, EgressTarget, MessagePlan, ThinkingPlan, plan_egress};
pub use egress::{Decision, EgressAction};
pub use judge::{
    BrokenRule, IssuedThinking, JudgeVerdict, NotARequest, ReplayedSeal, RequestedThinking, SealCarrier, judge,
    requested_thinking,
};
pub use left_out::{LeftOut, LeftOutReason};
pub(crate) use left_out::{fits_in_result, result_text};
pub use reason::EgressReason;
pub use repair::{AppliedRepair, LearnedRepair, LearnedRepairs, RepairKey, classify, next_repair, repair_ladder};
pub(crate) use repair::{apply_repair, change_parameters};
pub use repair_loop::{RepairLoop, RepairNotice};
pub(crate) use request_params::params_for_unknown_endpoint;
pub(crate) use request_params::{RequestParams, request_params};
pub(crate) use request_preferences::{BodyEdit, DummySeals, RequestPreferences, SentToolChoice};
pub(crate) use unmet_duties::unmet_duties;
pub use written_keys::{KeyRule, RefusedRequest, WrittenKey};
pub(crate) use written_keys::{written_members, written_parameters};
