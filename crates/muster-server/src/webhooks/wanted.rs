//! A webhook as a caller asked for it: checked for its form and against the rules, and sealed,
//! because its address may hold a token as well as its headers do.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Uri};
use muster_wire::ExecutionId;
use serde::{Deserialize, Serialize};

use crate::dispatch::address::{self, DialRules};
use crate::identity::seal::{CannotOpen, Sealer};

/// The longest address.
const URL_MAX: usize = 2_048;
/// The longest secret.
const SECRET_MAX: usize = 512;
/// Headers of the caller's own.
const HEADERS_MAX: usize = 16;
/// Bytes of their names and values together.
const HEADER_BYTES_MAX: usize = 8 * 1_024;

/// What the delivery sets itself, and what belongs to one connection.
const OURS: &[&str] = &[
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-agentfield-signature",
];

/// Where to, signed with what, and which headers go along.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Webhook {
    /// The address.
    pub(crate) url: String,
    /// What signs the messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<String>,
    /// The caller's own headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(String, String)>,
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Webhook({})", self.target())
    }
}

/// As it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// Scheme, host and port: what is shown, and by what deliveries are bounded.
    target: String,
    /// The whole, sealed.
    sealed: String,
}

impl Webhook {
    /// Reads it from a body.
    ///
    /// # Errors
    /// A sentence that repeats nothing of the caller's.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Given {
            url: Option<String>,
            secret: Option<String>,
            headers: Option<std::collections::BTreeMap<String, String>>,
        }
        let given: Given = serde_json::from_str(text).map_err(|_| {
            "webhook must be {\"url\": \"https://…\", \"secret\"?: \"…\", \"headers\"?: {…}}"
                .to_owned()
        })?;
        let url = given.url.ok_or("webhook.url is missing")?;
        check_url(&url)?;
        if let Some(secret) = &given.secret
            && (secret.is_empty() || secret.len() > SECRET_MAX)
        {
            return Err(format!("webhook.secret must have 1 to {SECRET_MAX} bytes"));
        }
        let headers = given.headers.unwrap_or_default();
        check_headers(headers.iter())?;
        Ok(Self {
            url,
            secret: given.secret,
            headers: headers.into_iter().collect(),
        })
    }

    /// Scheme, host and port.
    pub(crate) fn target(&self) -> String {
        let uri: Uri = self.url.parse().unwrap_or_default();
        let scheme = uri.scheme_str().unwrap_or_default();
        let port = uri
            .port_u16()
            .unwrap_or(if scheme == "https" { 443 } else { 80 });
        let host = uri.host().unwrap_or_default().to_ascii_lowercase();
        format!("{scheme}://{host}:{port}")
    }

    /// Looks at an address that stands as a number; a name is looked at when it is dialled.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn check(&self, rules: &DialRules) -> Result<(), String> {
        let uri: Uri = self.url.parse().unwrap_or_default();
        let host = uri.host().unwrap_or_default();
        match address::literal(host) {
            Some(ip) => rules
                .check(SocketAddr::new(ip, uri.port_u16().unwrap_or(443)))
                .map_err(|why| format!("webhook.url: {why}")),
            None if address::is_numeric(host) => {
                Err("webhook.url: its host is neither a name nor an address".to_owned())
            }
            None => Ok(()),
        }
    }

    /// The caller's own headers, ready to be sent.
    pub(crate) fn headers(&self) -> HeaderMap {
        let ready = |(name, value): &(String, String)| {
            let mut value = HeaderValue::from_str(value).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value))
        };
        self.headers.iter().filter_map(ready).collect()
    }

    /// The text for the row: nothing but the target is readable in it.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub(crate) fn seal(&self, sealer: &Sealer, execution: &ExecutionId) -> io::Result<Arc<str>> {
        let whole = serde_json::to_vec(self)?;
        let stored = Stored {
            target: self.target(),
            sealed: STANDARD.encode(sealer.seal(&whole, &about(execution))?),
        };
        Ok(serde_json::to_string(&stored)?.into())
    }

    /// Opens what [`Webhook::seal`] sealed.
    ///
    /// # Errors
    /// When it was sealed with another key, for another execution, or was changed.
    pub(crate) fn open(
        sealer: &Sealer,
        text: &str,
        execution: &ExecutionId,
    ) -> Result<Self, CannotOpen> {
        let stored: Stored = serde_json::from_str(text).map_err(|_| CannotOpen)?;
        let sealed = STANDARD.decode(stored.sealed).map_err(|_| CannotOpen)?;
        let whole = sealer.unseal_text(&sealed, &about(execution))?;
        serde_json::from_slice(&whole).map_err(|_| CannotOpen)
    }
}

/// The target of a stored webhook, for lists.
pub(crate) fn shown_target(text: &str) -> Option<String> {
    let stored: Stored = serde_json::from_str(text).ok()?;
    Some(stored.target)
}

fn about(execution: &ExecutionId) -> String {
    format!("webhook of {execution}")
}

fn check_url(url: &str) -> Result<(), String> {
    if url.len() > URL_MAX {
        return Err(format!("webhook.url is longer than {URL_MAX} bytes"));
    }
    if !url.is_ascii() {
        return Err(
            "webhook.url has a character beyond ASCII: percent-encode it (in a host, its xn-- form)"
                .to_owned(),
        );
    }
    let uri: Uri = url
        .parse()
        .map_err(|_| "webhook.url is no address".to_owned())?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err("webhook.url must begin with http:// or https://".to_owned());
    }
    if uri.host().is_none_or(str::is_empty) {
        return Err("webhook.url names no host".to_owned());
    }
    if uri.authority().is_some_and(|a| a.as_str().contains('@')) {
        return Err("webhook.url must not hold a user or password; use webhook.headers".to_owned());
    }
    if !address::has_sound_port(&uri) {
        return Err("webhook.url: the port must be a number from 1 to 65535".to_owned());
    }
    Ok(())
}

fn check_headers<'a>(
    headers: impl ExactSizeIterator<Item = (&'a String, &'a String)>,
) -> Result<(), String> {
    if headers.len() > HEADERS_MAX {
        return Err(format!("webhook.headers has more than {HEADERS_MAX} lines"));
    }
    let mut bytes = 0;
    for (name, value) in headers {
        bytes += name.len() + value.len();
        let (Ok(name), Ok(_)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_str(value),
        ) else {
            return Err("webhook.headers has a line that is no HTTP header".to_owned());
        };
        if OURS.contains(&name.as_str()) || name.as_str().starts_with("webhook-") {
            return Err(format!(
                "webhook.headers must not have {name}: the plane sets it, or the connection does"
            ));
        }
    }
    if bytes > HEADER_BYTES_MAX {
        return Err(format!(
            "webhook.headers has more than {HEADER_BYTES_MAX} bytes"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_is_said_and_nothing_of_it_is_repeated() {
        for (bad, word) in [
            ("5", "must be"),
            ("{}", "url is missing"),
            (r#"{"url":"canary"}"#, "http"),
            (r#"{"url":"ftp://canary/x"}"#, "http"),
            (r#"{"url":"http://canary:pw@x.example/"}"#, "user"),
            (
                r#"{"url":"https://x.example/canary/ünï"}"#,
                "percent-encode it",
            ),
            (r#"{"url":"https://cänary.example/"}"#, "percent-encode it"),
            (
                r#"{"url":"https://x.example/?canary=\u00fc"}"#,
                "percent-encode it",
            ),
            (r#"{"url":"http://x.example:99999/"}"#, "port"),
            (r#"{"url":"http://x.example:0/"}"#, "port"),
            (r#"{"url":"http://[::1]:99999/"}"#, "port"),
            (r#"{"url":"https://x.example","secret":""}"#, "secret"),
            (
                r#"{"url":"https://x.example","headers":{"Host":"canary"}}"#,
                "host",
            ),
            (
                r#"{"url":"https://x.example","headers":{"Webhook-Id":"canary"}}"#,
                "webhook-id",
            ),
            (
                r#"{"url":"https://x.example","headers":{"a b":"canary"}}"#,
                "no HTTP header",
            ),
            (
                r#"{"url":"https://x.example","headers":{"a":"canary\n"}}"#,
                "no HTTP header",
            ),
            (
                r#"{"url":"https://x.example","headers":{"a":5}}"#,
                "must be",
            ),
        ] {
            let why = Webhook::read(bad).unwrap_err();
            assert!(
                why.contains(word) && !why.contains("canary"),
                "{bad}: {why}"
            );
        }
        let fine = r#"{"url":"https://x.example/p?q=1","secret":null,"headers":{"Authorization":"Bearer t"}}"#;
        let webhook = Webhook::read(fine).unwrap();
        assert_eq!(webhook.target(), "https://x.example:443");
        assert_eq!(webhook.headers()["authorization"], "Bearer t");
    }

    #[test]
    fn it_opens_with_its_key_for_its_execution_only_and_shows_its_target_only() {
        let sealer = Sealer::ephemeral().unwrap();
        let webhook =
            Webhook::read(r#"{"url":"http://x.example:81/token","secret":"s3cret"}"#).unwrap();
        let id = ExecutionId::trusted("exec_1");
        let text = webhook.seal(&sealer, &id).unwrap();
        assert!(!text.contains("token") && !text.contains("s3cret"));
        assert_eq!(shown_target(&text).as_deref(), Some("http://x.example:81"));
        assert_eq!(Webhook::open(&sealer, &text, &id).unwrap(), webhook);
        assert!(Webhook::open(&sealer, &text, &ExecutionId::trusted("exec_2")).is_err());
        assert!(Webhook::open(&Sealer::ephemeral().unwrap(), &text, &id).is_err());
    }

    #[test]
    fn an_address_that_is_a_number_is_checked_in_every_spelling() {
        let rules = DialRules::of_webhooks(&[]).unwrap();
        let check = |url: &str| {
            Webhook::read(&format!("{{\"url\":{url:?}}}"))
                .unwrap()
                .check(&rules)
        };
        for bad in [
            "http://127.1/",
            "http://0x7f.1:80/",
            "http://[::1]/",
            "http://169.254.169.254/",
            "http://256.1/",
            "http://localhost/",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
        for fine in ["http://hooks.example/", "http://8.8.8.8/"] {
            check(fine).unwrap();
        }
    }
}
