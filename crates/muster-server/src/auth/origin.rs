//! Which `Host` a request may name and from which web page it may come. A local port that
//! starts work is remote code execution from any web page, so these rules hold on every
//! listener, loopback too. Knows nothing of keys: whether one exempts is the caller's business.

use std::net::IpAddr;

use http::header::{CONTENT_TYPE, HOST, ORIGIN, UPGRADE};
use http::{HeaderMap, Method, Uri, Version};

/// Host names that are ours beside addresses and `localhost`.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    names: Vec<String>,
}

/// Why a request was refused for where it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// The `Host` is no name of this plane.
    Host,
    /// It comes from a page of another origin.
    Origin,
    /// A browser's body that is not JSON.
    ContentType,
}

impl Hosts {
    /// The names of `server.allowed_hosts` and of the listeners.
    pub fn new(names: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let names = names
            .into_iter()
            .filter_map(|name| host_of(name.as_ref()).map(|(host, _)| host.to_ascii_lowercase()))
            .collect();
        Self { names }
    }

    /// Whether the request names us: every authority it carries must be one of ours.
    pub fn names_us(&self, uri: &Uri, version: Version, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let first = hosts.next();
        if hosts.next().is_some() {
            return false;
        }
        let header_fits = match first {
            Some(value) => value.to_str().is_ok_and(|text| self.is_ours(text)),
            // Before HTTP/1.1 there was no Host, and no browser speaks that any more.
            None => version < Version::HTTP_11 || uri.authority().is_some(),
        };
        // The authority of an absolute-form target outranks the header, so both must fit.
        header_fits && uri.authority().is_none_or(|a| self.is_ours(a.as_str()))
    }

    fn is_ours(&self, authority: &str) -> bool {
        let Some((host, _port)) = host_of(authority) else {
            return false;
        };
        if is_address(host) || host.eq_ignore_ascii_case("localhost") {
            return true;
        }
        self.names
            .iter()
            .any(|name| name.eq_ignore_ascii_case(host))
    }
}

/// Splits `host[:port]` and drops one trailing dot; `None` when it is not that.
fn host_of(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (inside, after) = rest.split_once(']')?;
            inside.parse::<std::net::Ipv6Addr>().ok()?;
            (
                &authority[..inside.len() + 2],
                after.strip_prefix(':').or(after.is_empty().then_some("")),
            )
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, Some("")),
        },
    };
    let port = match port? {
        "" => None,
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => Some(digits.parse().ok()?),
        _ => return None,
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    let fine =
        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'[' | b']' | b':');
    (!host.is_empty() && host.bytes().all(fine)).then_some((host, port))
}

fn is_address(host: &str) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|h| h.strip_suffix(']'))
        .unwrap_or(host);
    bare.parse::<IpAddr>().is_ok()
}

/// Checks where a browser says that a request comes from. A client that is no browser sends
/// none of these headers and passes.
///
/// # Errors
/// Says which rule refused it.
pub fn check(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    has_body: bool,
) -> Result<(), Foreign> {
    let origin = headers.get(ORIGIN);
    let site = headers.get("sec-fetch-site");
    if origin.is_none() && site.is_none() {
        return Ok(());
    }
    let foreign_origin =
        origin.is_some_and(|origin| !is_same_origin(origin.as_bytes(), uri, headers));
    let cross_site = site.is_some_and(|site| site.as_bytes().eq_ignore_ascii_case(b"cross-site"));
    if (foreign_origin || cross_site || headers.get_all(ORIGIN).iter().count() > 1)
        && !is_navigation_to_a_page(method, uri, headers)
    {
        return Err(Foreign::Origin);
    }
    let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    if !reads && has_body && !is_json(headers) {
        return Err(Foreign::ContentType);
    }
    Ok(())
}

/// Whether an origin is the very authority that the request went to, port included.
fn is_same_origin(origin: &[u8], uri: &Uri, headers: &HeaderMap) -> bool {
    let ours = match uri.authority() {
        Some(authority) => Some(authority.as_str()),
        None => headers.get(HOST).and_then(|h| h.to_str().ok()),
    };
    let Some((our_host, our_port)) = ours.and_then(host_of) else {
        return false;
    };
    let Ok(origin) = std::str::from_utf8(origin) else {
        return false;
    };
    let (rest, default) = if let Some(rest) = origin.strip_prefix("http://") {
        (rest, 80)
    } else if let Some(rest) = origin.strip_prefix("https://") {
        (rest, 443)
    } else {
        return false;
    };
    host_of(rest).is_some_and(|(host, port)| {
        host.eq_ignore_ascii_case(our_host)
            && port.unwrap_or(default) == our_port.unwrap_or(default)
    })
}

/// A person followed a link to a page. `Sec-Fetch-*` cannot be forged by a page's script.
fn is_navigation_to_a_page(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    let says = |name: &str, word: &str| {
        headers
            .get(name)
            .is_some_and(|v| v.as_bytes() == word.as_bytes())
    };
    let path = uri.path();
    *method == Method::GET
        && !headers.contains_key(UPGRADE)
        && says("sec-fetch-mode", "navigate")
        && says("sec-fetch-dest", "document")
        && (path == "/" || path == "/ui" || path.starts_with("/ui/") || path == "/docs")
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(Ok(value)) = headers.get(CONTENT_TYPE).map(|v| v.to_str()) else {
        return false;
    };
    let essence = value.split(';').next().unwrap_or("").trim();
    essence.eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(
                http::HeaderName::from_bytes(name.as_bytes()).unwrap(),
                value.parse().unwrap(),
            );
        }
        map
    }

    fn host_fits(hosts: &Hosts, target: &str, host: &[&str]) -> bool {
        let pairs: Vec<(&str, &str)> = host.iter().map(|h| ("host", *h)).collect();
        hosts.names_us(&target.parse().unwrap(), Version::HTTP_11, &headers(&pairs))
    }

    #[test]
    fn addresses_localhost_and_listed_names_are_ours_and_nothing_else_is() {
        let hosts = Hosts::new(["plane.example", "Muster.internal:8080"]);
        for ours in [
            "127.0.0.1",
            "127.0.0.1:8080",
            "10.1.2.3:9",
            "[::1]",
            "[::1]:8080",
            "[fe80::1]:1",
            "localhost",
            "LOCALHOST:8080",
            "localhost.",
            "plane.example",
            "plane.example:65535",
            "PLANE.example.",
            "muster.internal",
        ] {
            assert!(host_fits(&hosts, "/", &[ours]), "{ours}");
        }
        for foreign in [
            "evil.example",
            "localhost.evil.example",
            "evil.localhost",
            "127.0.0.1.nip.io",
            "plane.example.evil",
            "user@localhost",
            "localhost:80:80",
            "localhost:x",
            "localhost:99999",
            "[::1",
            "[::1]x",
            "[evil]",
            "::1",
            "",
            ":8080",
            "local host",
            "localhost/",
            "2130706433",
            "0x7f000001",
        ] {
            assert!(!host_fits(&hosts, "/", &[foreign]), "{foreign}");
        }
    }

    #[test]
    fn an_absolute_target_must_fit_as_well_as_the_header() {
        let hosts = Hosts::default();
        assert!(host_fits(
            &hosts,
            "http://localhost:8080/x",
            &["localhost:8080"]
        ));
        assert!(!host_fits(
            &hosts,
            "http://evil.example/x",
            &["localhost:8080"]
        ));
        assert!(!host_fits(&hosts, "http://localhost/x", &["evil.example"]));
        assert!(
            !host_fits(&hosts, "/", &["localhost", "localhost"]),
            "two hosts are ambiguous"
        );
    }

    #[test]
    fn a_missing_host_passes_only_before_http_1_1() {
        let hosts = Hosts::default();
        let none = HeaderMap::new();
        let root: Uri = "/".parse().unwrap();
        assert!(!hosts.names_us(&root, Version::HTTP_11, &none));
        assert!(hosts.names_us(&root, Version::HTTP_10, &none));
    }

    fn verdict(
        method: &str,
        target: &str,
        pairs: &[(&str, &str)],
        body: bool,
    ) -> Result<(), Foreign> {
        check(
            &method.parse().unwrap(),
            &target.parse().unwrap(),
            &headers(pairs),
            body,
        )
    }

    #[test]
    fn only_the_very_same_origin_passes() {
        for (host, origin) in [
            ("localhost:8080", "http://localhost:8080"),
            ("LOCALHOST:8080", "http://localhost:8080"),
            ("127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("[::1]:8080", "http://[::1]:8080"),
            ("plane.example", "https://plane.example"),
            ("plane.example:443", "https://plane.example"),
            ("plane.example", "http://plane.example:80"),
        ] {
            let pairs = [
                ("host", host),
                ("origin", origin),
                ("content-type", "application/json"),
            ];
            assert_eq!(
                verdict("POST", "/api/v1/x", &pairs, true),
                Ok(()),
                "{origin}"
            );
        }
        for (host, origin) in [
            ("localhost:8080", "http://localhost:8081"),
            ("localhost:8080", "http://localhost"),
            ("localhost:8080", "http://127.0.0.1:8080"),
            ("localhost:8080", "http://evil.example"),
            ("localhost:8080", "http://localhost:8080.evil.example"),
            ("localhost:8080", "http://localhost:8080/"),
            ("localhost:8080", "http://user@localhost:8080"),
            ("localhost:8080", "null"),
            ("localhost:8080", ""),
            ("localhost:8080", "file://"),
            ("localhost:8080", "chrome-extension://abc"),
        ] {
            for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
                let pairs = [("host", host), ("origin", origin)];
                assert_eq!(
                    verdict(method, "/api/v1/x", &pairs, false),
                    Err(Foreign::Origin),
                    "{method} {origin}"
                );
            }
        }
    }

    #[test]
    fn a_cross_site_request_passes_only_as_a_navigation_to_a_page() {
        let link = [
            ("host", "localhost:8080"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        for page in ["/", "/ui", "/ui/runs/run_1", "/docs"] {
            assert_eq!(verdict("GET", page, &link, false), Ok(()), "{page}");
            assert_eq!(verdict("POST", page, &link, false), Err(Foreign::Origin));
        }
        assert_eq!(
            verdict("GET", "/api/v1/executions", &link, false),
            Err(Foreign::Origin)
        );
        assert_eq!(verdict("GET", "/uix", &link, false), Err(Foreign::Origin));
        let framed = [link[0], link[1], link[2], ("sec-fetch-dest", "iframe")];
        assert_eq!(verdict("GET", "/ui/", &framed, false), Err(Foreign::Origin));
        let mut socket = link.to_vec();
        socket.push(("upgrade", "websocket"));
        assert_eq!(verdict("GET", "/ui/", &socket, false), Err(Foreign::Origin));
        let image = [
            link[0],
            link[1],
            ("sec-fetch-mode", "no-cors"),
            ("sec-fetch-dest", "image"),
        ];
        assert_eq!(verdict("GET", "/ui/", &image, false), Err(Foreign::Origin));
    }

    #[test]
    fn a_browser_s_body_must_be_json_and_others_may_send_any() {
        let own = [("host", "localhost"), ("origin", "http://localhost")];
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "application/jsonx",
        ] {
            let pairs = [own[0], own[1], ("content-type", kind)];
            assert_eq!(
                verdict("POST", "/x", &pairs, true),
                Err(Foreign::ContentType),
                "{kind}"
            );
        }
        assert_eq!(verdict("POST", "/x", &own, true), Err(Foreign::ContentType));
        assert_eq!(verdict("POST", "/x", &own, false), Ok(()));
        let json = [
            own[0],
            own[1],
            ("content-type", "application/json; charset=utf-8"),
        ];
        assert_eq!(verdict("POST", "/x", &json, true), Ok(()));
        assert_eq!(
            verdict(
                "POST",
                "/x",
                &[("host", "localhost"), ("content-type", "text/plain")],
                true
            ),
            Ok(())
        );
    }
}
