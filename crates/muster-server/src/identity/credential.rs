//! The execution credential: a W3C Verifiable Credential in which the plane says what an agent
//! reported of one execution. It holds hashes of input and output, never the payloads.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::submission::hex;
use super::{Ready, did_key, proof};

/// Numbers above this are not exact as JSON numbers, which are doubles in canonical form.
const EXACT_MAX: u64 = 1 << 53;

/// What the credential says.
#[derive(Debug, Clone)]
pub struct Statement {
    /// The credential's id.
    pub id: String,
    /// The execution, without its attempt.
    pub execution: String,
    /// Its run.
    pub run: String,
    /// Its session; empty when there is none.
    pub session: String,
    /// Who called.
    pub caller_did: String,
    /// What was called.
    pub target_did: String,
    /// The agent it belongs to.
    pub agent_did: String,
    /// The credential that led to it.
    pub parent: Option<String>,
    /// SHA-256 of the input as it was reported.
    pub input_hash: String,
    /// SHA-256 of the output as it was reported.
    pub output_hash: String,
    /// How it ended.
    pub status: String,
    /// The agent's error text.
    pub error: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
    /// Whether the report carried the secret of the execution's attempt.
    pub is_proved: bool,
    /// When the credential is issued, RFC 3339.
    pub issued_at: String,
}

/// The SHA-256 of what the SDK sends as base64; of nothing for an empty text.
pub fn hash_of(encoded: &str) -> Option<String> {
    let bytes = STANDARD.decode(encoded).ok()?;
    Some(hex(&Sha256::digest(&bytes)))
}

/// A credential as the SDK reads it, signed by the plane.
///
/// # Errors
/// When it has no canonical form, which would be a fault of ours.
pub fn issue(ready: &Ready, said: &Statement) -> Result<Value, proof::Fault> {
    let document = proof::sign(
        document(ready, said),
        &ready.issuer,
        &format!(
            "{}#{}",
            ready.issuer_did,
            did_key::multibase(&ready.issuer.verifying_key())
        ),
        &said.issued_at,
    )?;
    let signature = document["proof"]["proofValue"].clone();
    Ok(json!({
        "vc_id": said.id,
        "execution_id": said.execution,
        "workflow_id": said.run,
        "session_id": said.session,
        "issuer_did": ready.issuer_did,
        "target_did": said.target_did,
        "caller_did": said.caller_did,
        "parent_vc_id": said.parent,
        "vc_document": document,
        "signature": signature,
        "input_hash": said.input_hash,
        "output_hash": said.output_hash,
        "status": said.status,
        "created_at": said.issued_at,
    }))
}

fn document(ready: &Ready, said: &Statement) -> Map<String, Value> {
    let mut subject = Map::new();
    let mut put = |name: &str, value: Value| drop(subject.insert(name.to_owned(), value));
    if !said.target_did.is_empty() {
        put("id", said.target_did.as_str().into());
    }
    put("executionId", said.execution.as_str().into());
    put("workflowId", said.run.as_str().into());
    put("sessionId", said.session.as_str().into());
    put("callerDid", said.caller_did.as_str().into());
    put("targetDid", said.target_did.as_str().into());
    put("agentNodeDid", said.agent_did.as_str().into());
    put("inputHash", said.input_hash.as_str().into());
    put("outputHash", said.output_hash.as_str().into());
    put("status", said.status.as_str().into());
    put("durationMs", whole_number(said.duration_ms));
    put("attemptProved", said.is_proved.into());
    if let Some(error) = &said.error {
        put("errorMessage", error.as_str().into());
    }
    if let Some(parent) = &said.parent {
        put("parentCredential", parent.as_str().into());
    }
    let mut document = Map::new();
    document.insert(
        "@context".into(),
        json!([
            "https://www.w3.org/ns/credentials/v2",
            "https://www.w3.org/ns/credentials/undefined-terms/v2"
        ]),
    );
    document.insert("id".into(), format!("urn:muster:{}", said.id).into());
    document.insert(
        "type".into(),
        json!(["VerifiableCredential", "ExecutionCredential"]),
    );
    document.insert("issuer".into(), ready.issuer_did.as_str().into());
    document.insert("validFrom".into(), said.issued_at.as_str().into());
    document.insert("credentialSubject".into(), Value::Object(subject));
    document
}

fn whole_number(number: u64) -> Value {
    if number <= EXACT_MAX {
        number.into()
    } else {
        number.to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_of_the_decoded_bytes() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hash_of("").as_deref(), Some(empty));
        assert_eq!(
            hash_of("YWJj").as_deref(),
            Some("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        );
        assert_eq!(hash_of("not base64!"), None);
    }

    #[test]
    fn numbers_that_would_lose_digits_become_text() {
        assert_eq!(whole_number(EXACT_MAX), json!(9_007_199_254_740_992_u64));
        assert_eq!(whole_number(EXACT_MAX + 1), json!("9007199254740993"));
    }
}
