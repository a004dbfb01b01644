//! How an exchange ended.

use std::fmt;

use aside_core::block::Reply;
use aside_core::connection_failure::ConnectionError;
use aside_core::event::ProviderError;
use aside_core::rules::AppliedRepair;

use super::request::StoppedBy;
use crate::http::{HttpRefusal, InvalidCall};

/// The end of an exchange. What was received is kept in every case.
#[derive(Debug, Clone, PartialEq)]
pub struct ExchangeOutcome {
    pub result: Result<(), ExchangeError>,
    /// Complete if there was no error.
    pub reply: Reply,
    /// The repairs tried in this exchange, in order.
    pub repairs: Vec<AppliedRepair>,
    /// The estimated tokens of the last request.
    pub tokens: u64,
}

impl ExchangeOutcome {
    /// Whether the provider accepted the request, and so its repairs.
    pub fn is_accepted(&self) -> bool {
        self.result.is_ok() || !self.reply.blocks.is_empty()
    }
}

/// Why an exchange has no complete reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    /// The request cannot be sent as it is configured.
    #[error(transparent)]
    Invalid(#[from] InvalidCall),
    /// The provider refused the request, and no repair or retry was left.
    #[error("{0}")]
    Refused(Box<ProviderRefusal>),
    /// Connecting failed, or the connection was lost.
    #[error(transparent)]
    Unreachable(#[from] ConnectionError),
    /// Nothing in the reply belongs to the protocol.
    #[error("{what}")]
    Unreadable { what: String },
    #[error("the reply is larger than {most} bytes")]
    Oversized { most: u64 },
    #[error("cancelled")]
    Cancelled,
    /// The user wants the answer now.
    #[error("stopped to ask for the answer")]
    AnswerNow,
}

impl From<StoppedBy> for ExchangeError {
    fn from(by: StoppedBy) -> ExchangeError {
        match by {
            StoppedBy::Cancel => ExchangeError::Cancelled,
            StoppedBy::AnswerNow => ExchangeError::AnswerNow,
        }
    }
}

/// A refusal, parsed and without keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderRefusal {
    pub error: ProviderError,
    /// The HTTP response. None if the provider refused within a stream.
    pub response: Option<HttpRefusal>,
}

impl fmt::Display for ProviderRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.error.all_words())?;
        self.error.status.map_or(Ok(()), |status| write!(f, " ({status})"))
    }
}
