//! Why a request got no reply, by kind. The engine finds out; a front end says what to do about it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kinds of failed connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConnectionFailure {
    /// The request cannot be sent as it is configured.
    InvalidRequest,
    /// The host name could not be resolved.
    Dns,
    /// Nothing listens there.
    Refused,
    /// The proxy between us and the provider failed.
    Proxy,
    /// The certificate was issued by an authority that this machine does not know.
    UnknownAuthority,
    /// The certificate is that of an authority, as some tools make self-signed ones. No server may use it.
    SelfSigned,
    /// No secure connection for another reason, for example because the server has no TLS.
    Tls,
    /// No connection within the time limit.
    ConnectTimeout,
    /// The provider sent nothing for too long.
    IdleTimeout,
    /// The reply took too long as a whole.
    TotalTimeout,
    /// The connection was closed or reset.
    Closed,
    /// Nothing in the reply belongs to the protocol.
    Unreadable,
    /// Anything else.
    Other,
}

impl ConnectionFailure {
    /// Whether a retry may help.
    pub fn is_transient(self) -> bool {
        match self {
            ConnectionFailure::Dns | ConnectionFailure::Closed | ConnectionFailure::Other => true,
            ConnectionFailure::InvalidRequest
            | ConnectionFailure::Refused
            | ConnectionFailure::Proxy
            | ConnectionFailure::UnknownAuthority
            | ConnectionFailure::SelfSigned
            | ConnectionFailure::Tls
            | ConnectionFailure::ConnectTimeout
            | ConnectionFailure::IdleTimeout
            | ConnectionFailure::TotalTimeout
            | ConnectionFailure::Unreadable => false,
        }
    }
}

/// A failed connection, with the words for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionError {
    /// The kind, which decides what to do about it.
    pub failure: ConnectionFailure,
    /// What happened, with the host.
    pub what: String,
}

impl ConnectionError {
    /// A failure of this kind.
    pub fn new(failure: ConnectionFailure, what: impl Into<String>) -> ConnectionError {
        ConnectionError { failure, what: what.into() }
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for ConnectionError {}
