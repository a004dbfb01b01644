//! Why a connection failed, from the kinds of the underlying errors and never from their text.

use std::error::Error;
use std::fmt;
use std::io;

use aside_core::connection_failure::ConnectionFailure;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rustls::CertificateError;

/// The kind of a failed request.
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

/// The address of the proxy for connections to this URL, if it may have caused the failure:
/// once TLS with the provider has started, the proxy is not the cause.
pub(crate) fn proxy_in_the_way(url: &Url, failure: ConnectionFailure) -> Option<String> {
    use ConnectionFailure::{SelfSigned, Tls, UnknownAuthority};
    if matches!(failure, Tls | UnknownAuthority | SelfSigned) {
        return None;
    }
    // The HTTP client reads the same variables in the same way.
    let proxy = Matcher::from_system().intercept(&url.as_str().parse().ok()?)?;
    // Without the user and the password that the URL may have.
    let uri = proxy.uri();
    match (uri.host()?, uri.port_u16()) {
        (host, Some(port)) => Some(format!("{host}:{port}")),
        (host, None) => Some(host.to_owned()),
    }
}

/// The kind of one error in the chain. Most only say that something failed.
fn failure_of(cause: &(dyn Error + 'static)) -> Option<ConnectionFailure> {
    if cause.is::<UnknownHost>() {
        return Some(ConnectionFailure::Dns);
    }
    if let Some(error) = cause.downcast_ref::<rustls::Error>() {
        return Some(tls_failure(error));
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

fn tls_failure(error: &rustls::Error) -> ConnectionFailure {
    let rustls::Error::InvalidCertificate(problem) = error else { return ConnectionFailure::Tls };
    if *problem == CertificateError::UnknownIssuer {
        return ConnectionFailure::UnknownAuthority;
    }
    if let CertificateError::Other(other) = problem
        && other.0.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity)
    {
        return ConnectionFailure::SelfSigned;
    }
    ConnectionFailure::Tls
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
