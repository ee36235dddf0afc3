//! Checks the signature that the SDK puts on a submission: Ed25519 over
//! `timestamp:nonce:hex(sha256(body))`. The key is in the DID itself, so no store is read.
//! Decides nothing about what a signer may do.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::Signature;
use muster_wire::Timestamp;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use sha2::{Digest as _, Sha256};

use super::did_key;

/// How far the signer's clock and ours may be apart.
pub const WINDOW_S: i64 = 300;
/// Signatures that are remembered in each of two halves. A full half begins the next one early,
/// which shortens the memory and refuses nobody.
const REMEMBERED_MAX: usize = 131_072;
/// A nonce is text of at most this size.
const NONCE_BYTES_MAX: usize = 128;

const SIGNATURE: &str = "x-did-signature";
const TIMESTAMP: &str = "x-did-timestamp";
const NONCE: &str = "x-did-nonce";
const CALLER: &str = "x-caller-did";

/// Who signed: a DID whose private key the caller has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// As the caller spelled it.
    pub did: String,
}

/// Why a signed submission is not taken. Signing again later, or right, may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureFault {
    /// Some of the four headers are missing.
    Missing(&'static str),
    /// A header cannot be read.
    Malformed(&'static str),
    /// The caller's DID is no `did:key` of an Ed25519 key.
    NoKey,
    /// The signer's clock is too far from ours.
    Window,
    /// It is not over these bytes.
    Wrong,
    /// It was seen before.
    Replayed,
}

impl SignatureFault {
    /// A sentence.
    pub fn message(self) -> String {
        match self {
            SignatureFault::Missing(header) => {
                format!("a signed submission needs the header {header}")
            }
            SignatureFault::Malformed(header) => format!("the header {header} cannot be read"),
            SignatureFault::NoKey => {
                format!("the header {CALLER} is not a did:key of an Ed25519 key")
            }
            SignatureFault::Window => format!(
                "the signature's timestamp is over {WINDOW_S} s away from the plane's clock; check the clocks"
            ),
            SignatureFault::Wrong => {
                format!("the signature is not over this body by the key of {CALLER}")
            }
            SignatureFault::Replayed => {
                "this signature was used before; sign each submission anew".into()
            }
        }
    }
}

/// The check and its memory.
#[derive(Debug, Default)]
pub struct SubmissionCheck(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    young: FxHashSet<u128>,
    old: FxHashSet<u128>,
    since: Timestamp,
}

impl SubmissionCheck {
    /// Checks a submission. `None` when it is not signed: a claimed DID alone asks for nothing.
    ///
    /// # Errors
    /// When it is signed and the signature does not hold.
    pub fn verify(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Option<Signer>, SignatureFault> {
        if ![SIGNATURE, TIMESTAMP, NONCE]
            .iter()
            .any(|name| headers.contains_key(*name))
        {
            return Ok(None);
        }
        let signature: [u8; 64] = STANDARD
            .decode(text(headers, SIGNATURE)?)
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or(SignatureFault::Malformed(SIGNATURE))?;
        let timestamp = text(headers, TIMESTAMP)?;
        let signed_at: i64 = timestamp
            .parse()
            .map_err(|_| SignatureFault::Malformed(TIMESTAMP))?;
        let nonce = text(headers, NONCE)?;
        if nonce.is_empty() || nonce.len() > NONCE_BYTES_MAX {
            return Err(SignatureFault::Malformed(NONCE));
        }
        let did = text(headers, CALLER)?;
        let key = did_key::read(did).ok_or(SignatureFault::NoKey)?;
        let now_s = now.0 / 1_000_000;
        if now_s.saturating_sub(signed_at).saturating_abs() > WINDOW_S {
            return Err(SignatureFault::Window);
        }
        let signed = format!("{timestamp}:{nonce}:{}", hex(&Sha256::digest(body)));
        key.verify_strict(signed.as_bytes(), &Signature::from_bytes(&signature))
            .map_err(|_| SignatureFault::Wrong)?;
        if self.0.lock().saw(&signature, now) {
            return Err(SignatureFault::Replayed);
        }
        Ok(Some(Signer {
            did: did.to_owned(),
        }))
    }
}

impl Seen {
    /// Remembers a signature for at least as long as its timestamp can be taken.
    fn saw(&mut self, signature: &[u8; 64], now: Timestamp) -> bool {
        // Taken from 300 s before to 300 s after: each half spans that, so two cover it.
        let full = self.young.len() >= REMEMBERED_MAX;
        if full || now.since(self.since).as_secs() > 2 * WINDOW_S.unsigned_abs() {
            if full {
                tracing::warn!(
                    remembered = REMEMBERED_MAX,
                    "signatures come faster than the memory against replays is long"
                );
            }
            self.old = std::mem::take(&mut self.young);
            self.since = now;
        }
        let mut short = [0u8; 16];
        short.copy_from_slice(&blake3::hash(signature).as_bytes()[..16]);
        let short = u128::from_le_bytes(short);
        self.old.contains(&short) || !self.young.insert(short)
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<&'a str, SignatureFault> {
    let value = headers.get(name).ok_or(SignatureFault::Missing(name))?;
    value.to_str().map_err(|_| SignatureFault::Malformed(name))
}

/// Lower-case hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)] as char);
        out.push(DIGITS[usize::from(byte & 15)] as char);
    }
    out
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use ed25519_dalek::{Signer as _, SigningKey};

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000_000);

    fn signed(body: &[u8], at: i64, nonce: &str) -> HeaderMap {
        let key = SigningKey::from_bytes(&[5; 32]);
        let text = format!("{at}:{nonce}:{}", hex(&Sha256::digest(body)));
        let signature = STANDARD.encode(key.sign(text.as_bytes()).to_bytes());
        let mut headers = HeaderMap::new();
        for (name, value) in [
            (SIGNATURE, signature),
            (TIMESTAMP, at.to_string()),
            (NONCE, nonce.to_owned()),
            (CALLER, did_key::sdk_spelling(&key.verifying_key())),
        ] {
            headers.insert(name, HeaderValue::from_str(&value).unwrap());
        }
        headers
    }

    #[test]
    fn a_claimed_did_without_a_signature_asks_for_nothing() {
        let check = SubmissionCheck::default();
        let mut headers = HeaderMap::new();
        headers.insert(CALLER, HeaderValue::from_static("did:key:zabc"));
        assert_eq!(check.verify(&headers, b"{}", NOW), Ok(None));
    }

    #[test]
    fn a_signature_is_taken_once() {
        let check = SubmissionCheck::default();
        let headers = signed(b"{}", 1_800_000_000, "n1");
        assert!(check.verify(&headers, b"{}", NOW).unwrap().is_some());
        assert_eq!(
            check.verify(&headers, b"{}", NOW),
            Err(SignatureFault::Replayed)
        );
        let again = signed(b"{}", 1_800_000_000, "n2");
        assert!(check.verify(&again, b"{}", NOW).is_ok());
    }

    #[test]
    fn what_does_not_hold_is_refused_with_its_reason() {
        let check = SubmissionCheck::default();
        let good = signed(b"{}", 1_800_000_000, "n");
        assert_eq!(check.verify(&good, b"{} ", NOW), Err(SignatureFault::Wrong));
        for at in [
            1_800_000_000 - WINDOW_S - 1,
            1_800_000_000 + WINDOW_S + 1,
            i64::MIN,
            i64::MAX,
        ] {
            let headers = signed(b"{}", at, "n");
            assert_eq!(
                check.verify(&headers, b"{}", NOW),
                Err(SignatureFault::Window),
                "{at}"
            );
        }
        for (name, value, want) in [
            (SIGNATURE, "AAAA", SignatureFault::Malformed(SIGNATURE)),
            (TIMESTAMP, "soon", SignatureFault::Malformed(TIMESTAMP)),
            (NONCE, "", SignatureFault::Malformed(NONCE)),
            (CALLER, "did:web:x", SignatureFault::NoKey),
        ] {
            let mut headers = good.clone();
            headers.insert(name, HeaderValue::from_static(value));
            assert_eq!(check.verify(&headers, b"{}", NOW), Err(want));
            headers.remove(name);
            assert_eq!(
                check.verify(&headers, b"{}", NOW),
                Err(SignatureFault::Missing(name))
            );
        }
        let mut binary = good.clone();
        binary.insert(NONCE, HeaderValue::from_bytes(b"\xff").unwrap());
        assert!(check.verify(&binary, b"{}", NOW).is_err());
    }

    #[test]
    fn the_memory_is_bounded_and_outlives_the_window() {
        let mut seen = Seen::default();
        let mut signature = [0u8; 64];
        let at = |s: i64| Timestamp(NOW.0 + s * 1_000_000);
        assert!(!seen.saw(&signature, at(0)));
        for second in (1..=600).step_by(50) {
            assert!(
                seen.saw(&signature, at(second)),
                "forgotten after {second} s"
            );
        }
        for number in 0..(3 * REMEMBERED_MAX as u64) {
            signature[..8].copy_from_slice(&number.to_le_bytes());
            signature[9] = 1;
            seen.saw(&signature, at(601));
        }
        assert!(seen.young.len() + seen.old.len() <= 2 * REMEMBERED_MAX);
    }
}
