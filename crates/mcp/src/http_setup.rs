//! Builds the HTTP client and headers for servers with a URL.

use std::collections::HashMap;
use std::time::Duration;

use reqwest::Client;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn client(url: &str) -> Result<Client, String> {
    let url = reqwest::Url::parse(url).map_err(|_| format!("`{url}` is not a URL"))?;
    // Fails if a provider is already installed, which is fine.
    drop(rustls::crypto::ring::default_provider().install_default());
    let builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        // A redirect would send the headers to another host.
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .user_agent(concat!("aside/", env!("CARGO_PKG_VERSION")));
    // Loading the system's certificates would take longer than the request.
    let builder = if url.scheme() == "https" { builder } else { builder.tls_certs_only(std::iter::empty()) };
    builder.build().map_err(|error| error.to_string())
}

pub(crate) fn headers(pairs: &[(String, String)]) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        // The value may be a secret, so report only the name.
        let bad = || format!("the header `{name}` cannot be sent");
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?, value);
    }
    Ok(headers.into_iter().filter_map(|(name, value)| Some((name?, value))).collect())
}
