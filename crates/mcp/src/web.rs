//! The HTTP client for servers with a URL.

use std::collections::HashMap;
use std::time::Duration;

use reqwest::Client;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

const CONNECT: Duration = Duration::from_secs(10);

pub(crate) fn client(url: &str) -> Result<Client, String> {
    let url = reqwest::Url::parse(url).map_err(|_| format!("`{url}` is no URL"))?;
    // A second call is refused, which is all right: there is one already.
    drop(rustls::crypto::ring::default_provider().install_default());
    let builder = Client::builder()
        .connect_timeout(CONNECT)
        // A redirect would carry the headers to somebody else.
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .user_agent(concat!("aside/", env!("CARGO_PKG_VERSION")));
    // Reading the system's certificates would cost more than the call.
    let builder = if url.scheme() == "https" { builder } else { builder.tls_certs_only(std::iter::empty()) };
    builder.build().map_err(|error| error.to_string())
}

pub(crate) fn headers(pairs: &[(String, String)]) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        // The value may be a secret, so only the name is said.
        let bad = || format!("the header `{name}` cannot be sent");
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?, value);
    }
    Ok(headers.into_iter().filter_map(|(name, value)| Some((name?, value))).collect())
}
