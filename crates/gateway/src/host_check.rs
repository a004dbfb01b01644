//! Which `Host` and `Origin` a request may have, so that a web page elsewhere cannot
//! use a gateway on this machine.

use std::net::IpAddr;

use axum::http::HeaderMap;

use crate::error_response::{ErrorKind, GatewayError};

/// What the config allows in addition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AllowedHosts<'a> {
    pub(crate) origins: &'a [String],
    pub(crate) hosts: &'a [String],
    /// The address that the client connected to.
    pub(crate) local: IpAddr,
}

impl AllowedHosts<'_> {
    pub(crate) fn check(&self, headers: &HeaderMap, target: Option<&str>) -> Result<(), GatewayError> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        // A full URL in the request line overrides the header; both must be ours.
        let is_ours = [target, text("host")].into_iter().flatten().all(|host| self.is_ours(host))
            && (target.is_some() || headers.contains_key("host"));
        if !is_ours {
            let message = "the Host header names another machine; add the name to [serve] hosts to allow it";
            return Err(GatewayError::new(ErrorKind::ForeignHost, message));
        }
        match headers.get("origin") {
            Some(origin) if !self.origins.iter().any(|known| known.as_bytes() == origin.as_bytes()) => {
                let message =
                    "requests from web pages are refused; add the page's origin to [serve] origins to allow it";
                Err(GatewayError::new(ErrorKind::ForeignOrigin, message))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn is_ours(&self, authority: &str) -> bool {
        let host = host_of(authority);
        let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let is_loopback = |ip: IpAddr| ip.to_canonical().is_loopback();
        name == "localhost"
            || name.ends_with(".localhost")
            || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(&name) || known.eq_ignore_ascii_case(authority))
            || host.parse::<IpAddr>().is_ok_and(|ip| is_loopback(ip) || ip.to_canonical() == self.local.to_canonical())
    }
}

/// The host in `HOST[:PORT]`, without the brackets of an IPv6 address.
fn host_of(authority: &str) -> &str {
    match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(host, _)| host),
        None => authority.split_once(':').map_or(authority, |(host, _)| host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g8_only_our_own_names_and_allowed_pages_pass() {
        let hosts = ["ai.example".to_owned()];
        let origins = ["https://chat.example".to_owned()];
        let allowed = AllowedHosts { origins: &origins, hosts: &hosts, local: "10.0.0.7".parse().expect("an address") };
        #[rustfmt::skip]
        let cases = [
            ("localhost",       Some("localhost:4140"),     None, None),
            ("loopback",        Some("127.0.0.1:4140"),     None, None),
            ("version 6",       Some("[::1]:4140"),         None, None),
            ("listen address",  Some("10.0.0.7:4140"),      None, None),
            ("listed",          Some("AI.example"),         None, None),
            ("rebound",         Some("evil.example"),       None, Some(421)),
            ("similar",         Some("localhost.evil.com"), None, Some(421)),
            ("none",            None,                       None, Some(421)),
            ("listed page",     Some("localhost"), Some("https://chat.example"), None),
            ("local page",      Some("localhost"), Some("http://localhost:3000"), Some(403)),
        ];
        for (name, host, origin, expected) in cases {
            let mut headers = HeaderMap::new();
            for (key, value) in [("host", host), ("origin", origin)] {
                if let Some(value) = value {
                    headers.insert(key, value.parse().expect("a value"));
                }
            }
            let status = allowed.check(&headers, None).err().map(|error| error.kind.status());
            assert_eq!(status, expected, "{name}");
        }
        let mut headers = HeaderMap::new();
        headers.insert("host", "localhost".parse().expect("a value"));
        assert!(allowed.check(&headers, Some("evil.example")).is_err(), "a whole URL");
    }
}
