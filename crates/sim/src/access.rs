//! Who may ask: a web page somewhere else must not talk to a server on this
//! machine, neither by its own name for it nor as a stranger.

use std::net::IpAddr;

/// What the headers of a request say about who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Granted,
    /// A page of this machine asks, and its browser wants to hear that it may.
    Page,
    /// The same, before the request itself.
    Preflight,
    /// The name it asks for is none of ours.
    OtherHost,
    /// A page of another machine asks.
    OtherOrigin,
}

/// `local` is the address that the client reached us at.
pub(crate) fn access(method: &str, headers: &[(String, String)], target: Option<&str>, local: IpAddr) -> Access {
    let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let is_ours = |authority: &str| {
        let host = host_of(authority);
        is_loopback(host) || host.parse::<IpAddr>().is_ok_and(|host| same(host, local))
    };
    // Whoever writes a whole URL into the first line means that host.
    if !target.or(header("host")).is_some_and(is_ours) || !target.is_none_or(is_ours) {
        return Access::OtherHost;
    }
    let Some(origin) = header("origin") else { return Access::Granted };
    let host = origin.split_once("://").map(|(_, authority)| host_of(authority));
    match host {
        Some(host) if !is_loopback(host) => Access::OtherOrigin,
        None => Access::OtherOrigin,
        Some(_) if method == "OPTIONS" && header("access-control-request-method").is_some() => Access::Preflight,
        Some(_) => Access::Page,
    }
}

/// What a browser wants to hear. The origin was checked to be of this machine.
pub(crate) fn cors(headers: &[(String, String)], access: Access) -> Vec<(String, String)> {
    let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let Some(origin) = header("origin") else { return Vec::new() };
    let mut out = vec![("access-control-allow-origin".to_owned(), origin), ("vary".to_owned(), "origin".to_owned())];
    match access {
        Access::Preflight => {
            let wanted = header("access-control-request-headers").unwrap_or_default();
            out.push(("access-control-allow-methods".to_owned(), "GET, POST".to_owned()));
            out.push(("access-control-allow-headers".to_owned(), wanted));
            out.push(("access-control-max-age".to_owned(), "600".to_owned()));
        }
        Access::Page => out.push(("access-control-expose-headers".to_owned(), "*".to_owned())),
        Access::Granted | Access::OtherHost | Access::OtherOrigin => return Vec::new(),
    }
    out
}

/// The host of `HOST[:PORT]`, of an IPv6 address without its brackets.
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

fn same(one: IpAddr, other: IpAddr) -> bool {
    one.to_canonical() == other.to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, headers: &[(&str, &str)], local: &str) -> Access {
        let headers: Vec<(String, String)> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        access(method, &headers, None, local.parse().expect("an address"))
    }

    #[test]
    fn only_this_machine_by_its_own_names_is_answered() {
        #[rustfmt::skip]
        let cases = [
            ("localhost",               "localhost:4141",         "127.0.0.1",   Access::Granted),
            ("in other letters",        "LocalHost.",             "127.0.0.1",   Access::Granted),
            ("a name below it",         "sim.localhost",          "127.0.0.1",   Access::Granted),
            ("an address",              "127.0.0.1:4141",         "127.0.0.1",   Access::Granted),
            ("another of them",         "127.9.9.9",              "127.0.0.1",   Access::Granted),
            ("version 6",               "[::1]:4141",             "::1",         Access::Granted),
            ("mapped",                  "[::ffff:127.0.0.1]",     "127.0.0.1",   Access::Granted),
            ("where it listens",        "192.168.1.5:4141",       "192.168.1.5", Access::Granted),
            ("where it does not",       "192.168.1.6:4141",       "192.168.1.5", Access::OtherHost),
            ("a name that leads here",  "evil.example:4141",      "127.0.0.1",   Access::OtherHost),
            ("one that looks like it",  "localhost.evil.example", "127.0.0.1",   Access::OtherHost),
            ("one that begins like it", "127.0.0.1.evil.example", "127.0.0.1",   Access::OtherHost),
            ("nothing",                 "",                       "127.0.0.1",   Access::OtherHost),
        ];
        for (name, host, local, expected) in cases {
            assert_eq!(asked("POST", &[("host", host)], local), expected, "{name}");
        }
        assert_eq!(asked("POST", &[], "127.0.0.1"), Access::OtherHost, "no host at all");
        let local = "127.0.0.1".parse().expect("an address");
        let host = [("host".to_owned(), "localhost".to_owned())];
        assert_eq!(access("GET", &host, Some("evil.example"), local), Access::OtherHost, "a whole URL");
    }

    #[test]
    fn only_pages_of_this_machine_are_answered() {
        #[rustfmt::skip]
        let cases = [
            ("this machine",       "POST",    "http://localhost:3000",       Access::Page),
            ("its address",        "POST",    "http://127.0.0.1:3000",       Access::Page),
            ("version 6",          "POST",    "http://[::1]:3000",           Access::Page),
            ("another machine",    "POST",    "https://evil.example",        Access::OtherOrigin),
            ("one like it",        "POST",    "http://localhost.evil.example", Access::OtherOrigin),
            ("a file",             "POST",    "null",                        Access::OtherOrigin),
            ("before a request",   "OPTIONS", "http://localhost:3000",       Access::Preflight),
            ("of somebody else",   "OPTIONS", "https://evil.example",        Access::OtherOrigin),
        ];
        for (name, method, origin, expected) in cases {
            let headers = [("host", "localhost"), ("origin", origin), ("access-control-request-method", "POST")];
            assert_eq!(asked(method, &headers, "127.0.0.1"), expected, "{name}");
        }
    }
}
