//! Rejects cross-origin requests, so that a web page elsewhere cannot use the local
//! server, neither directly nor by DNS rebinding.

use std::net::IpAddr;

/// The result of checking the `Host` and `Origin` headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostCheck {
    Allowed,
    /// A page on this machine; its browser needs CORS headers.
    LocalPage,
    /// A CORS preflight request from such a page.
    Preflight,
    /// The `Host` is not one of this machine's names.
    ForeignHost,
    /// The request comes from a page on another machine.
    ForeignOrigin,
}

/// `local` is the address that the client connected to.
pub(crate) fn check_host(method: &str, headers: &[(String, String)], target: Option<&str>, local: IpAddr) -> HostCheck {
    let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let is_ours = |authority: &str| {
        let host = host_of(authority);
        is_loopback(host) || host.parse::<IpAddr>().is_ok_and(|host| same_address(host, local))
    };
    // A full URL in the request line overrides the `Host` header.
    if !target.or(header("host")).is_some_and(is_ours) || !target.is_none_or(is_ours) {
        return HostCheck::ForeignHost;
    }
    let Some(origin) = header("origin") else { return HostCheck::Allowed };
    let host = origin.split_once("://").map(|(_, authority)| host_of(authority));
    match host {
        Some(host) if !is_loopback(host) => HostCheck::ForeignOrigin,
        None => HostCheck::ForeignOrigin,
        Some(_) if method == "OPTIONS" && header("access-control-request-method").is_some() => HostCheck::Preflight,
        Some(_) => HostCheck::LocalPage,
    }
}

/// The CORS response headers. The origin has already been checked.
pub(crate) fn cors_headers(headers: &[(String, String)], check: HostCheck) -> Vec<(String, String)> {
    let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let Some(origin) = header("origin") else { return Vec::new() };
    let mut out = vec![("access-control-allow-origin".to_owned(), origin), ("vary".to_owned(), "origin".to_owned())];
    match check {
        HostCheck::Preflight => {
            let wanted = header("access-control-request-headers").unwrap_or_default();
            out.push(("access-control-allow-methods".to_owned(), "GET, POST".to_owned()));
            out.push(("access-control-allow-headers".to_owned(), wanted));
            out.push(("access-control-max-age".to_owned(), "600".to_owned()));
        }
        HostCheck::LocalPage => out.push(("access-control-expose-headers".to_owned(), "*".to_owned())),
        HostCheck::Allowed | HostCheck::ForeignHost | HostCheck::ForeignOrigin => return Vec::new(),
    }
    out
}

/// The host in `HOST[:PORT]`, without the brackets of an IPv6 address.
fn host_of(authority: &str) -> &str {
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split_once(']').map_or("", |(host, _)| host);
    }
    authority.split_once(':').map_or(authority, |(host, _)| host)
}

fn is_loopback(host: &str) -> bool {
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|host| host.to_canonical().is_loopback())
}

fn same_address(one: IpAddr, other: IpAddr) -> bool {
    one.to_canonical() == other.to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_headers(method: &str, headers: &[(&str, &str)], local: &str) -> HostCheck {
        let headers: Vec<(String, String)> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        check_host(method, &headers, None, local.parse().expect("an address"))
    }

    #[test]
    fn only_requests_to_this_machine_s_own_names_are_allowed() {
        #[rustfmt::skip]
        let cases = [
            ("localhost",               "localhost:4141",         "127.0.0.1",   HostCheck::Allowed),
            ("in mixed case",           "LocalHost.",             "127.0.0.1",   HostCheck::Allowed),
            ("a subdomain",              "sim.localhost",          "127.0.0.1",   HostCheck::Allowed),
            ("an address",              "127.0.0.1:4141",         "127.0.0.1",   HostCheck::Allowed),
            ("another loopback",         "127.9.9.9",              "127.0.0.1",   HostCheck::Allowed),
            ("version 6",               "[::1]:4141",             "::1",         HostCheck::Allowed),
            ("mapped",                  "[::ffff:127.0.0.1]",     "127.0.0.1",   HostCheck::Allowed),
            ("listening address",        "192.168.1.5:4141",       "192.168.1.5", HostCheck::Allowed),
            ("another address",         "192.168.1.6:4141",       "192.168.1.5", HostCheck::ForeignHost),
            ("a rebound name",           "evil.example:4141",      "127.0.0.1",   HostCheck::ForeignHost),
            ("a similar name",           "localhost.evil.example", "127.0.0.1",   HostCheck::ForeignHost),
            ("a similar prefix",        "127.0.0.1.evil.example", "127.0.0.1",   HostCheck::ForeignHost),
            ("nothing",                 "",                       "127.0.0.1",   HostCheck::ForeignHost),
        ];
        for (name, host, local, expected) in cases {
            assert_eq!(check_headers("POST", &[("host", host)], local), expected, "{name}");
        }
        assert_eq!(check_headers("POST", &[], "127.0.0.1"), HostCheck::ForeignHost, "no host at all");
        let local = "127.0.0.1".parse().expect("an address");
        let host = [("host".to_owned(), "localhost".to_owned())];
        assert_eq!(check_host("GET", &host, Some("evil.example"), local), HostCheck::ForeignHost, "a whole URL");
    }

    #[test]
    fn only_pages_on_this_machine_are_allowed() {
        #[rustfmt::skip]
        let cases = [
            ("this machine",       "POST",    "http://localhost:3000",       HostCheck::LocalPage),
            ("its address",        "POST",    "http://127.0.0.1:3000",       HostCheck::LocalPage),
            ("version 6",          "POST",    "http://[::1]:3000",           HostCheck::LocalPage),
            ("another machine",    "POST",    "https://evil.example",        HostCheck::ForeignOrigin),
            ("a similar name",      "POST",    "http://localhost.evil.example", HostCheck::ForeignOrigin),
            ("a file",             "POST",    "null",                        HostCheck::ForeignOrigin),
            ("a preflight",         "OPTIONS", "http://localhost:3000",       HostCheck::Preflight),
            ("foreign preflight",   "OPTIONS", "https://evil.example",        HostCheck::ForeignOrigin),
        ];
        for (name, method, origin, expected) in cases {
            let headers = [("host", "localhost"), ("origin", origin), ("access-control-request-method", "POST")];
            assert_eq!(check_headers(method, &headers, "127.0.0.1"), expected, "{name}");
        }
    }
}
