//! Where a plane is: `http://127.0.0.1:8080`, `https://plane.example/muster`. Reads the text and
//! spells what is asked there; dials nothing.

use std::fmt;

/// The address of a plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaneAddress {
    /// Whether it is spoken to over TLS.
    pub(crate) secure: bool,
    /// A name or an address, IPv6 without brackets.
    pub(crate) host: String,
    /// Its port.
    pub(crate) port: u16,
    /// What goes before every path; empty, or `/muster`.
    prefix: String,
}

/// Why a text is no address of a plane.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no address of a plane: {why}; write it like http://127.0.0.1:8080")]
pub struct AddressError {
    text: String,
    why: &'static str,
}

impl PlaneAddress {
    /// Reads `http(s)://HOST[:PORT][/PREFIX]`; without a scheme it is `http`.
    ///
    /// # Errors
    /// When it is not that.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let wrong = |why| AddressError {
            text: text.to_owned(),
            why,
        };
        let whole = if text.contains("://") {
            text.to_owned()
        } else {
            format!("http://{text}")
        };
        let uri: http::Uri = whole
            .trim_end_matches('/')
            .parse()
            .map_err(|_| wrong("it cannot be read"))?;
        let secure = match uri.scheme_str() {
            Some("http" | "ws") => false,
            Some("https" | "wss") => true,
            _ => return Err(wrong("its scheme is neither http nor https")),
        };
        if uri.authority().is_some_and(|a| a.as_str().contains('@')) {
            return Err(wrong("it holds a user's name"));
        }
        if uri.query().is_some() {
            return Err(wrong("it has a query"));
        }
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(wrong("it names no host"));
        }
        Ok(Self {
            secure,
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(if secure { 443 } else { 80 }),
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// Host and port as a header has them; without the port where the scheme implies it.
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        match (self.secure, self.port) {
            (false, 80) | (true, 443) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    /// A path of the plane with the prefix before it.
    pub(crate) fn path(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// The address of a socket.
    pub(crate) fn socket(&self, path: &str) -> String {
        let scheme = if self.secure { "wss" } else { "ws" };
        format!("{scheme}://{}{}", self.authority(), self.path(path))
    }
}

impl fmt::Display for PlaneAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_spelled() {
        for (text, shown, socket) in [
            (
                "127.0.0.1:8080",
                "http://127.0.0.1:8080",
                "ws://127.0.0.1:8080/v1",
            ),
            ("http://plane", "http://plane", "ws://plane/v1"),
            ("http://plane:80/", "http://plane", "ws://plane/v1"),
            (
                "wss://p.example/m/",
                "https://p.example/m",
                "wss://p.example/m/v1",
            ),
            (
                "https://[::1]:8443",
                "https://[::1]:8443",
                "wss://[::1]:8443/v1",
            ),
        ] {
            let address = PlaneAddress::parse(text).unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(address.socket("/v1"), socket);
            assert_eq!(PlaneAddress::parse(shown).unwrap(), address);
        }
        for bad in [
            "",
            "ftp://x",
            "http://",
            "http://u:p@x",
            "http://x?y=1",
            "a b",
        ] {
            assert!(PlaneAddress::parse(bad).is_err(), "{bad:?}");
        }
    }
}
