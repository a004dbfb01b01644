//! Which requests the server accepts at all. A page of another origin can send requests to this
//! machine; browsers say so in `Host`, `Origin` and `Sec-Fetch-Site`.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{CONTENT_TYPE, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, Method};

use crate::secret::WebSecret;

/// The header that a page of another origin cannot send, because no CORS header allows it.
pub(crate) const CUSTOM_HEADER: &str = "aside-web";

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Host,
    Origin,
    FetchSite,
    Method,
    CustomHeader,
    ContentType,
}

impl Refusal {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Refusal::Host => "host",
            Refusal::Origin => "origin",
            Refusal::FetchSite => "sec-fetch-site",
            Refusal::Method => "method",
            Refusal::CustomHeader => "aside-web header missing",
            Refusal::ContentType => "content-type is not application/json",
        }
    }
}

/// Checks what a browser says about where a request comes from.
pub(crate) fn check(listen: SocketAddr, method: &Method, headers: &HeaderMap) -> Result<(), Refusal> {
    let host = single(headers, HOST.as_str()).ok_or(Refusal::Host)?;
    if !is_own_host(listen, host) {
        return Err(Refusal::Host);
    }
    if headers.contains_key(ORIGIN) {
        let origin = single(headers, ORIGIN.as_str()).and_then(|origin| origin.strip_prefix("http://"));
        if !origin.is_some_and(|origin| origin.eq_ignore_ascii_case(host)) {
            return Err(Refusal::Origin);
        }
    }
    const FETCH_SITE: &str = "sec-fetch-site";
    if headers.contains_key(FETCH_SITE) && !matches!(single(headers, FETCH_SITE), Some("same-origin" | "none")) {
        return Err(Refusal::FetchSite);
    }
    match *method {
        Method::GET | Method::HEAD => Ok(()),
        Method::POST if single(headers, CUSTOM_HEADER) != Some("1") => Err(Refusal::CustomHeader),
        Method::POST if !is_json(headers) => Err(Refusal::ContentType),
        Method::POST => Ok(()),
        _ => Err(Refusal::Method),
    }
}

/// The value of a header that occurs once.
fn single<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = single(headers, CONTENT_TYPE.as_str()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// A name that another site controls can be made to point at this machine, so only addresses and
/// `localhost` count.
fn is_own_host(listen: SocketAddr, host: &str) -> bool {
    let Some((name, port)) = host.rsplit_once(':') else { return false };
    if port != listen.port().to_string() {
        return false;
    }
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let Ok(address) = bare.parse::<IpAddr>() else { return false };
    let is_bracketed = bare.len() != name.len();
    if is_bracketed != address.is_ipv6() {
        return false;
    }
    let is_local = address == IpAddr::from([127, 0, 0, 1]) || address == IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]);
    is_local || address == listen.ip() || listen.ip().is_unspecified()
}

/// Whether the request has a valid cookie of this server.
pub(crate) fn is_logged_in(secret: &WebSecret, port: u16, headers: &HeaderMap) -> bool {
    let name = cookie_name(port);
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.any(|(key, value)| key == name && secret.is_cookie(value))
}

/// Cookies are shared between ports, so the name contains the port.
pub(crate) fn cookie_name(port: u16) -> String {
    format!("aside_{port}")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn w4_only_requests_of_the_page_itself_are_taken() {
        let local: SocketAddr = "127.0.0.1:4242".parse().unwrap();
        let json: &[(&str, &str)] =
            &[("host", "127.0.0.1:4242"), ("aside-web", "1"), ("content-type", "application/json")];
        let post = |more: &[(&'static str, &'static str)]| [json, more].concat();
        #[rustfmt::skip]
        let cases = [
            ("plain",               Method::GET,     vec![("host", "127.0.0.1:4242")],                                     Ok(())),
            ("localhost",           Method::GET,     vec![("host", "localhost:4242")],                                     Ok(())),
            ("six",                 Method::GET,     vec![("host", "[::1]:4242")],                                         Ok(())),
            ("no host",             Method::GET,     vec![],                                                               Err(Refusal::Host)),
            ("two hosts",           Method::GET,     vec![("host", "127.0.0.1:4242"), ("host", "evil.example")],           Err(Refusal::Host)),
            ("no port",             Method::GET,     vec![("host", "127.0.0.1")],                                          Err(Refusal::Host)),
            ("other port",          Method::GET,     vec![("host", "127.0.0.1:80")],                                       Err(Refusal::Host)),
            ("rebound name",        Method::GET,     vec![("host", "evil.example:4242")],                                  Err(Refusal::Host)),
            ("name like ours",      Method::GET,     vec![("host", "127.0.0.1.evil.example:4242")],                        Err(Refusal::Host)),
            ("another address",     Method::GET,     vec![("host", "192.168.1.4:4242")],                                   Err(Refusal::Host)),
            ("own origin",          Method::POST,    post(&[("origin", "http://127.0.0.1:4242")]),                         Ok(())),
            ("other origin",        Method::POST,    post(&[("origin", "http://evil.example")]),                           Err(Refusal::Origin)),
            ("other port's origin", Method::POST,    post(&[("origin", "http://127.0.0.1:4243")]),                         Err(Refusal::Origin)),
            ("null origin",         Method::POST,    post(&[("origin", "null")]),                                          Err(Refusal::Origin)),
            ("https origin",        Method::POST,    post(&[("origin", "https://127.0.0.1:4242")]),                        Err(Refusal::Origin)),
            ("localhost as origin", Method::POST,    post(&[("origin", "http://localhost:4242")]),                         Err(Refusal::Origin)),
            ("cross site",          Method::GET,     vec![("host", "127.0.0.1:4242"), ("sec-fetch-site", "cross-site")],   Err(Refusal::FetchSite)),
            ("same site",           Method::GET,     vec![("host", "127.0.0.1:4242"), ("sec-fetch-site", "same-site")],    Err(Refusal::FetchSite)),
            ("typed address",       Method::GET,     vec![("host", "127.0.0.1:4242"), ("sec-fetch-site", "none")],         Ok(())),
            ("options",             Method::OPTIONS, post(&[]),                                                            Err(Refusal::Method)),
            ("delete",              Method::DELETE,  post(&[]),                                                            Err(Refusal::Method)),
            ("form",                Method::POST,    vec![("host", "127.0.0.1:4242"), ("aside-web", "1"), ("content-type", "text/plain")], Err(Refusal::ContentType)),
            ("no custom header",    Method::POST,    vec![("host", "127.0.0.1:4242"), ("content-type", "application/json")], Err(Refusal::CustomHeader)),
        ];
        for (name, method, headers, expected) in cases {
            let mut map = HeaderMap::new();
            for (key, value) in headers {
                map.append(
                    axum::http::HeaderName::from_bytes(key.as_bytes()).unwrap(),
                    HeaderValue::from_str(value).unwrap(),
                );
            }
            assert_eq!(check(local, &method, &map), expected, "{name}");
        }
        let everywhere: SocketAddr = "0.0.0.0:4242".parse().unwrap();
        assert!(is_own_host(everywhere, "192.168.1.4:4242"));
        assert!(!is_own_host(everywhere, "my-laptop.example:4242"), "a name can be rebound");
    }
}
