//! A simulated LLM provider. It speaks every protocol and enforces every dialect's rules,
//! using the same data files as aside. Its answers always say that they come from a
//! simulator.
//!
//! [`Service`] decides everything without a socket or a clock. It turns an
//! [`HttpRequest`] into an [`HttpResponse`] whose [`BodyStream`] yields bytes and pauses.
//! [`Simulator`] serves it over HTTP.
//!
//! Reading order: `script`, `service`, `scripted_request`, `reply_plan`, `reply_builder`,
//! `refusals`, `server`.

mod arguments;
mod body_stream;
mod generated_text;
mod held_responses;
mod host_check;
mod http_exchange;
mod issued_thinking;
mod model_names;
mod plain_http;
mod receipt;
mod refusals;
mod reply_builder;
mod reply_plan;
mod route;
mod script;
mod scripted_request;
mod seal;
mod self_description;
mod server;
mod service;
mod thinking_format;
mod timeline;
mod tools;

pub use body_stream::{BodyStep, BodyStream};
pub use http_exchange::{HttpRequest, HttpResponse};
pub use issued_thinking::{Verdict, VerdictKind};
pub use receipt::{ReceiptModel, RequestReceipt};
pub use script::{Behaviour, Script, ScriptError, ScriptOptions, ScriptedCall, behaviour_names};
pub use server::{Bounds, RunningSimulator, Simulator};
pub use service::{Service, Strictness};
