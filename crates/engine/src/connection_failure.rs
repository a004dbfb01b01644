//! Why a connection failed, from the kinds of the underlying errors and never from their text.

use std::error::Error;
use std::fmt;
use std::io;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionFailure {
    /// The host name could not be resolved.
    Dns,
    /// Nothing listens there.
    Refused,
    /// No secure connection, for example because the certificate is not trusted.
    Tls,
    ConnectTimeout,
    /// The provider sent nothing for too long.
    IdleTimeout,
    /// The reply took too long as a whole.
    TotalTimeout,
    /// The connection was closed or reset.
    Closed,
    Other,
}

impl ConnectionFailure {
    /// Whether a retry may help.
    pub fn is_transient(self) -> bool {
        match self {
            ConnectionFailure::Dns | ConnectionFailure::Closed | ConnectionFailure::Other => true,
            ConnectionFailure::Refused
            | ConnectionFailure::Tls
            | ConnectionFailure::ConnectTimeout
            | ConnectionFailure::IdleTimeout
            | ConnectionFailure::TotalTimeout => false,
        }
    }

    pub(crate) fn of(error: &reqwest::Error) -> ConnectionFailure {
        if error.is_timeout() {
            return if error.is_connect() { ConnectionFailure::ConnectTimeout } else { ConnectionFailure::IdleTimeout };
        }
        let mut cause: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(error) = cause {
            if let Some(failure) = failure_of(error) {
                return failure;
            }
            cause = error.source();
        }
        ConnectionFailure::Other
    }
}

/// What one error of the chain says. Most say only that something failed.
fn failure_of(cause: &(dyn Error + 'static)) -> Option<ConnectionFailure> {
    if cause.is::<UnknownHost>() {
        return Some(ConnectionFailure::Dns);
    }
    if cause.is::<rustls::Error>() {
        return Some(ConnectionFailure::Tls);
    }
    if let Some(error) = cause.downcast_ref::<hyper::Error>()
        && (error.is_incomplete_message() || error.is_closed())
    {
        return Some(ConnectionFailure::Closed);
    }
    let error = cause.downcast_ref::<io::Error>()?;
    // The source of an `io::Error` is the source of the error inside it, not that error.
    if let Some(inner) = error.get_ref()
        && let Some(failure) = failure_of(inner)
    {
        return Some(failure);
    }
    io_failure(error.kind())
}

fn io_failure(kind: io::ErrorKind) -> Option<ConnectionFailure> {
    if kind == io::ErrorKind::ConnectionRefused {
        return Some(ConnectionFailure::Refused);
    }
    let is_closed = matches!(
        kind,
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected
            | io::ErrorKind::UnexpectedEof
    );
    is_closed.then_some(ConnectionFailure::Closed)
}

/// The system's resolver, with an error type that can be recognised.
#[derive(Debug)]
pub(crate) struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            // The port is replaced by that of the URL.
            match tokio::net::lookup_host((name.as_str(), 0)).await {
                Ok(addresses) => {
                    let addresses: Addrs = Box::new(addresses.collect::<Vec<_>>().into_iter());
                    Ok(addresses)
                }
                Err(error) => Err(UnknownHost(error).into()),
            }
        })
    }
}

#[derive(Debug)]
struct UnknownHost(io::Error);

impl fmt::Display for UnknownHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for UnknownHost {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}
