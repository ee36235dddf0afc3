//! `did:key` for Ed25519, in the two spellings in use: the AgentField SDK's (`z` and base64url)
//! and the standard one (`z` and base58btc). Knows no store.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::VerifyingKey;

/// Multicodec of an Ed25519 public key.
const ED25519_PUB: [u8; 2] = [0xed, 0x01];
const PREFIX: &str = "did:key:z";
/// Longer texts are no DID of ours.
const DID_BYTES_MAX: usize = 256;

/// As the SDK spells it.
pub fn sdk_spelling(key: &VerifyingKey) -> String {
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(tagged(key)))
}

/// As the W3C registry spells it.
pub fn standard_spelling(key: &VerifyingKey) -> String {
    format!("did:key:{}", multibase(key))
}

/// The key as multibase base58btc, as verification methods name it.
pub fn multibase(key: &VerifyingKey) -> String {
    format!("z{}", bs58::encode(tagged(key)).into_string())
}

/// Reads either spelling; `None` when it is neither or no point of the curve.
pub fn read(did: &str) -> Option<VerifyingKey> {
    if did.len() > DID_BYTES_MAX {
        return None;
    }
    let text = did.strip_prefix(PREFIX)?;
    let standard = bs58::decode(text).into_vec().ok();
    standard
        .as_deref()
        .and_then(untagged)
        .or_else(|| untagged(&URL_SAFE_NO_PAD.decode(text).ok()?))
}

fn tagged(key: &VerifyingKey) -> [u8; 34] {
    let mut out = [0u8; 34];
    out[..2].copy_from_slice(&ED25519_PUB);
    out[2..].copy_from_slice(key.as_bytes());
    out
}

fn untagged(bytes: &[u8]) -> Option<VerifyingKey> {
    let key: &[u8; 32] = bytes.strip_prefix(&ED25519_PUB)?.try_into().ok()?;
    VerifyingKey::from_bytes(key).ok()
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::SigningKey;

    use super::*;

    #[test]
    fn both_spellings_read_back() {
        for seed in 0..200u8 {
            let key = SigningKey::from_bytes(&[seed; 32]).verifying_key();
            let sdk = sdk_spelling(&key);
            // 0xed 0x01 in base64url.
            assert!(sdk.starts_with("did:key:z7Q"), "{sdk}");
            assert!(standard_spelling(&key).starts_with("did:key:z6Mk"));
            assert_eq!(read(&sdk), Some(key));
            assert_eq!(read(&standard_spelling(&key)), Some(key));
        }
    }

    #[test]
    fn what_is_no_key_is_none() {
        for text in [
            "",
            "did:key:z",
            "did:key:zzzz",
            "did:web:example.org",
            "did:key:z6Mk\0",
            "did:key:z7QE",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
        assert_eq!(read(&format!("did:key:z{}", "1".repeat(100_000))), None);
    }
}
