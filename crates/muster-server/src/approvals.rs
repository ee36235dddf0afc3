//! What the shell keeps of approvals: the secret of their webhook with its signatures, which
//! addresses an agent may want to be told at, and where a person decides, so that polls read no
//! store. Decides nothing about executions.

use std::net::SocketAddr;
use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, Uri};
use muster_wire::{ExecutionId, Timestamp};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use crate::config::{Config, Secret};
use crate::directory::Directory;
use crate::dispatch::address::{self, DialRules};
use crate::fleet::tunnel;

/// How old or how far ahead a signed moment may be.
const WINDOW_SECONDS: i64 = 300;
/// Executions whose approval's page is remembered; when full, all are forgotten.
const PAGES_MAX: usize = 4_096;
/// The longest address.
const URL_MAX: usize = 2_048;

/// Headers that may carry the signature, and the one that is written.
const SIGNATURES: [&str; 3] = [
    "x-hax-signature",
    "x-webhook-signature",
    "x-hub-signature-256",
];

/// The page on which a person decides, by execution: request id and address.
type Pages = FxHashMap<ExecutionId, (Arc<str>, Option<Arc<str>>)>;

/// What is kept of approvals beside their rows.
#[derive(Debug, Default)]
pub struct Approvals {
    secret: Option<Secret>,
    pages: Mutex<Pages>,
}

/// Why a signed message is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsigned {
    /// It has no signature.
    Missing,
    /// It is signed with something else, or was changed.
    Wrong,
    /// It was signed too long ago, or in the future.
    Old,
}

impl Unsigned {
    /// A sentence.
    pub fn message(self) -> &'static str {
        match self {
            Unsigned::Missing => {
                "the message is not signed: send X-Hax-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256 of \"t.body\">"
            }
            Unsigned::Wrong => "the signature does not fit the message and the plane's secret",
            Unsigned::Old => "the signature's time is more than 5 minutes from the plane's",
        }
    }
}

impl Approvals {
    /// Reads the secret.
    ///
    /// # Errors
    /// A sentence when the secret's file cannot be read.
    pub fn new(config: &Config) -> Result<Self, String> {
        let auth = &config.auth;
        let text = match (
            &auth.approval_webhook_secret,
            &auth.approval_webhook_secret_file,
        ) {
            (Some(secret), _) => secret.reveal().to_owned(),
            (None, Some(path)) => std::fs::read_to_string(path).map_err(|error| {
                let path = path.display();
                format!("auth.approval_webhook_secret_file {path}: {error}")
            })?,
            (None, None) => String::new(),
        };
        let text = text.trim();
        Ok(Self {
            secret: (!text.is_empty()).then(|| Secret::new(text)),
            pages: Mutex::default(),
        })
    }

    /// Whether messages are signed.
    pub fn has_secret(&self) -> bool {
        self.secret.is_some()
    }

    /// Checks who signed a message.
    ///
    /// # Errors
    /// Why it is not taken.
    pub fn verify(&self, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Result<(), Unsigned> {
        let Some(secret) = &self.secret else {
            return Err(Unsigned::Wrong);
        };
        let given = SIGNATURES.iter().find_map(|name| headers.get(*name));
        let given = given.ok_or(Unsigned::Missing)?;
        let text = given.to_str().map_err(|_| Unsigned::Wrong)?.trim();
        if !text.starts_with("t=") && !text.contains(",t=") {
            let hex = text.strip_prefix("sha256=").unwrap_or(text);
            let right = sign(secret, &[body]);
            return if same(hex, &right) {
                Ok(())
            } else {
                Err(Unsigned::Wrong)
            };
        }
        let parts = || {
            text.split(',')
                .filter_map(|part| part.trim().split_once('='))
        };
        let at = parts()
            .find(|(name, _)| *name == "t")
            .map_or("", |(_, at)| at);
        let right = sign(secret, &[at.as_bytes(), b".", body]);
        let fits = |(name, hex): (&str, &str)| name == "v1" && same(hex, &right);
        // Every part is compared, so that the time it takes tells nothing.
        if parts().filter(|part| fits(*part)).count() == 0 {
            return Err(Unsigned::Wrong);
        }
        let seconds: i64 = at.parse().map_err(|_| Unsigned::Wrong)?;
        let away = (now.0 / 1_000_000).abs_diff(seconds);
        if away > WINDOW_SECONDS.unsigned_abs() {
            return Err(Unsigned::Old);
        }
        Ok(())
    }

    /// The value of `X-Hax-Signature` for a message of ours; `None` without a secret.
    pub fn signature(&self, body: &[u8], now: Timestamp) -> Option<String> {
        let secret = self.secret.as_ref()?;
        let at = (now.0 / 1_000_000).to_string();
        let signed = sign(secret, &[at.as_bytes(), b".", body]);
        Some(format!("t={at},v1={signed}"))
    }

    /// Remembers where a person decides.
    pub(crate) fn remember(&self, id: &ExecutionId, request: Arc<str>, url: Option<Arc<str>>) {
        let mut pages = self.pages.lock();
        if pages.len() >= PAGES_MAX {
            pages.clear();
        }
        pages.insert(id.clone(), (request, url));
    }

    /// Whether an execution asked something lately.
    pub(crate) fn asked(&self, id: &ExecutionId) -> bool {
        self.pages.lock().contains_key(id)
    }

    /// Where a person decides this request; the outer `None` when only the store knows.
    pub(crate) fn page(&self, id: &ExecutionId, request: &str) -> Option<Option<Arc<str>>> {
        let pages = self.pages.lock();
        let (of, url) = pages.get(id)?;
        (**of == *request).then(|| url.clone())
    }
}

fn sign(secret: &Secret, parts: &[&[u8]]) -> String {
    // A key of any length is taken; the other arm is never seen.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.reveal().as_bytes()) else {
        return String::new();
    };
    parts.iter().for_each(|part| mac.update(part));
    let bytes = mac.finalize().into_bytes();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn same(given: &str, right: &str) -> bool {
    !right.is_empty()
        && bool::from(
            given
                .to_ascii_lowercase()
                .as_bytes()
                .ct_eq(right.as_bytes()),
        )
}

/// Scheme, host and port; an address in any spelling is one address.
fn origin(url: &str) -> Option<(bool, String, u16)> {
    let uri: Uri = url.parse().ok()?;
    let https = match uri.scheme_str()? {
        "https" => true,
        "http" => false,
        _ => return None,
    };
    let host = uri.host().filter(|host| !host.is_empty())?;
    let host = match address::literal(host) {
        Some(ip) => ip.to_string(),
        None => host.to_ascii_lowercase(),
    };
    let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
    Some((https, host, port))
}

/// Whether an address belongs to a process of this agent, as it registered it.
pub(crate) fn is_registered(directory: &Directory, agent: &str, url: &str) -> bool {
    registered_at(directory, agent, url).is_some()
}

/// Where an address that an agent registered is called: as it stands, or through the node of the
/// worker that the agent is. `None` when it registered no such address.
pub(crate) fn registered_at(directory: &Directory, agent: &str, url: &str) -> Option<String> {
    let (wanted, entry) = (origin(url)?, directory.agent(agent)?);
    entry.instances().iter().rev().find_map(|instance| {
        let facts = instance.facts()?;
        let mut own = std::iter::once(&facts.base_url).chain(facts.candidates.iter());
        let own: Uri = own
            .find(|own| origin(own).as_ref() == Some(&wanted))?
            .parse()
            .ok()?;
        Some(match tunnel::worker_of(&own) {
            Some(worker) => tunnel::through(url, worker),
            None => url.to_owned(),
        })
    })
}

/// Whether an agent may be told there: at an address it registered, or where webhooks may go.
///
/// # Errors
/// A sentence with a hint.
pub(crate) fn check_callback(
    directory: &Directory,
    rules: &DialRules,
    agent: &str,
    url: &str,
) -> Result<(), String> {
    let uri: Uri = url
        .parse()
        .map_err(|_| "callback_url is no address".to_owned())?;
    let plain = uri.authority().is_some_and(|a| !a.as_str().contains('@'));
    let sound = plain && address::has_sound_port(&uri) && url.len() <= URL_MAX;
    let Some((https, _, port)) = origin(url).filter(|_| sound) else {
        return Err(format!(
            "callback_url must be an http:// or https:// address of at most {URL_MAX} bytes, with a port from 1 to 65535 if any, without user and password"
        ));
    };
    if is_registered(directory, agent, url) {
        return Ok(());
    }
    let host = uri.host().unwrap_or_default();
    let port = uri.port_u16().unwrap_or(if https { 443 } else { port });
    let hint = format!(
        "register {agent} with this address as its base_url, or list the address in webhooks.allow"
    );
    match address::literal(host) {
        Some(ip) => rules.check(SocketAddr::new(ip, port)).map_err(|why| {
            format!("callback_url is no address that {agent} registered, and {why}; {hint}")
        }),
        None if address::is_numeric(host) => {
            Err("callback_url: its host is neither a name nor an address".to_owned())
        }
        // What it resolves to is looked at when it is dialled.
        None => Ok(()),
    }
}

/// Whether a page on which people decide may be linked.
pub(crate) fn is_page(url: &str) -> bool {
    url.len() <= URL_MAX && origin(url).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_secret() -> Approvals {
        Approvals {
            secret: Some(Secret::new("s3cret")),
            pages: Mutex::default(),
        }
    }

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        headers
    }

    #[test]
    fn what_we_sign_we_take_and_nothing_else() {
        let approvals = with_secret();
        let now = Timestamp(1_700_000_000_000_000);
        let signed = approvals.signature(b"{}", now).unwrap();
        for name in ["x-hax-signature", "x-webhook-signature"] {
            assert_eq!(
                approvals.verify(&headers(name, &signed), b"{}", now),
                Ok(())
            );
        }
        let hax = |value: &str| headers("x-hax-signature", value);
        let verify = |value: &str, body: &[u8], now| approvals.verify(&hax(value), body, now);
        assert_eq!(verify(&signed, b"{ }", now), Err(Unsigned::Wrong));
        let later = Timestamp(now.0 + 301_000_000);
        assert_eq!(verify(&signed, b"{}", later), Err(Unsigned::Old));
        let earlier = Timestamp(now.0 - 301_000_000);
        assert_eq!(verify(&signed, b"{}", earlier), Err(Unsigned::Old));
        for bad in ["", "t=,v1=", "t=x,v1=00", "v1=00", "t=1700000000", "00"] {
            assert_eq!(verify(bad, b"{}", now), Err(Unsigned::Wrong), "{bad:?}");
        }
        let none = approvals.verify(&HeaderMap::new(), b"{}", now);
        assert_eq!(none, Err(Unsigned::Missing));
    }

    #[test]
    fn github_s_form_is_taken_too() {
        let approvals = with_secret();
        let signed = sign(approvals.secret.as_ref().unwrap(), &[b"{}"]);
        let now = Timestamp(1);
        for value in [format!("sha256={signed}"), signed.to_ascii_uppercase()] {
            let headers = headers("x-hub-signature-256", &value);
            assert_eq!(approvals.verify(&headers, b"{}", now), Ok(()), "{value}");
            assert_eq!(approvals.verify(&headers, b"[]", now), Err(Unsigned::Wrong));
        }
    }

    #[test]
    fn one_address_in_two_spellings_is_one_origin() {
        let same = [
            "http://localhost:8001/a",
            "http://127.0.0.1:8001",
            "http://127.1:8001/b",
        ];
        for url in same {
            assert_eq!(origin(url), origin(same[0]), "{url}");
        }
        assert_ne!(origin("http://localhost:8002"), origin(same[0]));
        assert_ne!(origin("https://localhost:8001"), origin(same[0]));
        for none in [
            "",
            "localhost:8001",
            "javascript:alert(1)",
            "ftp://a/b",
            "http:///x",
        ] {
            assert_eq!(origin(none), None, "{none}");
        }
        assert!(is_page("https://x.example/r/1"));
        assert!(!is_page("javascript:alert(1)"));
    }
}
