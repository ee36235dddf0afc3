//! Ed25519 keys as JWK text (RFC 8037). The SDK takes them as JSON strings.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{SigningKey, VerifyingKey};
use serde_json::{Value, json};

/// The public half.
pub fn public(key: &VerifyingKey) -> Value {
    json!({ "kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(key.as_bytes()) })
}

/// Both halves. Goes to the agent that owns it and nowhere else.
pub fn private(key: &SigningKey) -> Value {
    let mut jwk = public(&key.verifying_key());
    jwk["d"] = Value::String(URL_SAFE_NO_PAD.encode(key.as_bytes()));
    jwk
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 8037, appendix A.1 and A.2.
    #[test]
    fn the_rfc_example_comes_out() {
        let d = URL_SAFE_NO_PAD
            .decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
            .unwrap();
        let key = SigningKey::from_bytes(&d.try_into().unwrap());
        assert_eq!(
            private(&key),
            json!({
                "kty": "OKP",
                "crv": "Ed25519",
                "d": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
                "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
            })
        );
        assert!(public(&key.verifying_key()).get("d").is_none());
    }
}
