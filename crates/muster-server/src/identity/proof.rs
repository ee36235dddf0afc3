//! W3C Data Integrity proofs with the cryptosuite `eddsa-jcs-2022`: signs a document and checks
//! one. Knows nothing of credentials, agents or stores.

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::did_key;

const TYPE: &str = "DataIntegrityProof";
const SUITE: &str = "eddsa-jcs-2022";

/// Why a proof does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The document is no JSON object, or has no proof that is one.
    NoProof,
    /// The proof is of a type or suite that is not checked here.
    OtherSuite,
    /// A field of the proof is missing or has another form.
    Malformed(&'static str),
    /// The verification method is no `did:key` of an Ed25519 key.
    Method,
    /// The verification method does not belong to the issuer.
    NotIssuer,
    /// It does not have a canonical form.
    NotCanonical,
    /// The signature is not over this document.
    Signature,
}

impl Fault {
    /// A sentence.
    pub fn message(self) -> String {
        match self {
            Fault::NoProof => "the document has no proof".into(),
            Fault::OtherSuite => format!("only {TYPE} with {SUITE} is checked here"),
            Fault::Malformed(field) => format!("proof.{field} is missing or malformed"),
            Fault::Method => "proof.verificationMethod is not a did:key of an Ed25519 key".into(),
            Fault::NotIssuer => "proof.verificationMethod does not belong to the issuer".into(),
            Fault::NotCanonical => "the document has no canonical form".into(),
            Fault::Signature => "the signature is not over this document".into(),
        }
    }
}

/// Adds a proof to a document.
///
/// # Errors
/// When the document has no canonical form.
pub fn sign(
    mut document: Map<String, Value>,
    key: &SigningKey,
    method: &str,
    created: &str,
) -> Result<Map<String, Value>, Fault> {
    document.remove("proof");
    let mut proof = Map::new();
    proof.insert("type".into(), TYPE.into());
    proof.insert("cryptosuite".into(), SUITE.into());
    proof.insert("created".into(), created.into());
    proof.insert("verificationMethod".into(), method.into());
    proof.insert("proofPurpose".into(), "assertionMethod".into());
    if let Some(context) = document.get("@context") {
        proof.insert("@context".into(), context.clone());
    }
    let signature = key.sign(&hash_data(&proof, &document)?);
    let value = format!("z{}", bs58::encode(signature.to_bytes()).into_string());
    proof.insert("proofValue".into(), value.into());
    document.insert("proof".into(), Value::Object(proof));
    Ok(document)
}

/// Checks the proof of a document and gives the DID that made it. The key comes out of the
/// verification method, which must belong to the issuer.
///
/// # Errors
/// Says what does not hold.
pub fn verify(document: &Value) -> Result<String, Fault> {
    let object = document.as_object().ok_or(Fault::NoProof)?;
    let proof = object
        .get("proof")
        .and_then(Value::as_object)
        .ok_or(Fault::NoProof)?;
    let method = text(proof, "verificationMethod")?;
    let did = method.split('#').next().unwrap_or_default();
    let issuer = match object.get("issuer") {
        Some(Value::String(issuer)) => Some(issuer.as_str()),
        Some(Value::Object(issuer)) => issuer.get("id").and_then(Value::as_str),
        _ => None,
    };
    if issuer != Some(did) {
        return Err(Fault::NotIssuer);
    }
    let key = did_key::read(did).ok_or(Fault::Method)?;
    verify_with(object, &key)?;
    Ok(did.to_owned())
}

/// Checks the proof of a document with a key.
///
/// # Errors
/// Says what does not hold.
pub fn verify_with(object: &Map<String, Value>, key: &VerifyingKey) -> Result<(), Fault> {
    let proof = object
        .get("proof")
        .and_then(Value::as_object)
        .ok_or(Fault::NoProof)?;
    if text(proof, "type")? != TYPE || text(proof, "cryptosuite")? != SUITE {
        return Err(Fault::OtherSuite);
    }
    if text(proof, "proofPurpose")? != "assertionMethod" {
        return Err(Fault::Malformed("proofPurpose"));
    }
    let value = text(proof, "proofValue")?;
    let signature: Option<[u8; 64]> = value
        .strip_prefix('z')
        .filter(|encoded| encoded.len() <= 90)
        .and_then(|encoded| bs58::decode(encoded).into_vec().ok())
        .and_then(|bytes| bytes.try_into().ok());
    let signature = Signature::from_bytes(&signature.ok_or(Fault::Malformed("proofValue"))?);
    let mut config = proof.clone();
    config.remove("proofValue");
    let mut unsecured = object.clone();
    unsecured.remove("proof");
    // The proof's context, where it has one, is that of the document it was made for.
    if let Some(context) = config.get("@context") {
        let starts = match (context, unsecured.get("@context")) {
            (Value::Array(ours), Some(Value::Array(theirs))) => theirs.starts_with(ours),
            (ours, Some(theirs)) => ours == theirs,
            (_, None) => false,
        };
        if !starts {
            return Err(Fault::Malformed("@context"));
        }
        unsecured.insert("@context".into(), context.clone());
    }
    key.verify_strict(&hash_data(&config, &unsecured)?, &signature)
        .map_err(|_| Fault::Signature)
}

fn text<'a>(proof: &'a Map<String, Value>, field: &'static str) -> Result<&'a str, Fault> {
    proof
        .get(field)
        .and_then(Value::as_str)
        .ok_or(Fault::Malformed(field))
}

/// SHA-256 over the canonical proof options, then SHA-256 over the canonical document.
fn hash_data(proof: &Map<String, Value>, document: &Map<String, Value>) -> Result<[u8; 64], Fault> {
    let mut out = [0u8; 64];
    for (part, half) in [proof, document].into_iter().zip(out.chunks_exact_mut(32)) {
        let canonical = serde_json_canonicalizer::to_vec(part).map_err(|_| Fault::NotCanonical)?;
        half.copy_from_slice(&Sha256::digest(&canonical));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The representative `eddsa-jcs-2022` example of the W3C recommendation "Data Integrity
    /// EdDSA Cryptosuites v1.0", appendix B.
    const SIGNED: &str = r##"{
      "@context": ["https://www.w3.org/ns/credentials/v2", "https://www.w3.org/ns/credentials/examples/v2"],
      "id": "urn:uuid:58172aac-d8ba-11ed-83dd-0b3aef56cc33",
      "type": ["VerifiableCredential", "AlumniCredential"],
      "name": "Alumni Credential",
      "description": "A minimum viable example of an Alumni Credential.",
      "issuer": "https://vc.example/issuers/5678",
      "validFrom": "2023-01-01T00:00:00Z",
      "credentialSubject": { "id": "did:example:abcdefgh", "alumniOf": "The School of Examples" },
      "proof": {
        "type": "DataIntegrityProof",
        "cryptosuite": "eddsa-jcs-2022",
        "created": "2023-02-24T23:36:38Z",
        "verificationMethod": "https://vc.example/issuers/5678#z6MkrJVnaZkeFzdQyMZu1cgjg7k1pZZ6pvBQ7XJPt4swbTQ2",
        "proofPurpose": "assertionMethod",
        "@context": ["https://www.w3.org/ns/credentials/v2", "https://www.w3.org/ns/credentials/examples/v2"],
        "proofValue": "z63t83Y53KfzJ5ZosfKTnqfMcKB2dmTrfjSaQjeNNjAD5srBowQfmWqeRb8rRjmeEuCBEsddF9LsVogtuTsijJKh4"
      }
    }"##;
    const PUBLIC: &str = "did:key:z6MkrJVnaZkeFzdQyMZu1cgjg7k1pZZ6pvBQ7XJPt4swbTQ2";
    const PRIVATE: &str = "3u2en7t5LR2WtQH5PfFqMqwVHBeXouLzo6haApm8XHqvjxq";
    const DOCUMENT_HASH: &str = "59b7cb6251b8991add1ce0bc83107e3db9dbbab5bd2c28f687db1a03abc92f19";

    fn signed() -> Map<String, Value> {
        serde_json::from_str(SIGNED).unwrap()
    }

    fn private_key() -> SigningKey {
        let bytes = bs58::decode(PRIVATE).into_vec().unwrap();
        // Multicodec of an Ed25519 private key.
        let seed: [u8; 32] = bytes
            .strip_prefix(&[0x80, 0x26])
            .unwrap()
            .try_into()
            .unwrap();
        SigningKey::from_bytes(&seed)
    }

    #[test]
    fn the_recommendations_example_verifies_and_is_signed_the_same() {
        let document = signed();
        let key = did_key::read(PUBLIC).unwrap();
        verify_with(&document, &key).unwrap();
        let mut config = document["proof"].as_object().unwrap().clone();
        config.remove("proofValue");
        let mut bare = document.clone();
        bare.remove("proof");
        let hashes = hash_data(&config, &bare).unwrap();
        assert_eq!(
            crate::identity::submission::hex(&hashes[32..]),
            DOCUMENT_HASH
        );
        let method = config["verificationMethod"].as_str().unwrap().to_owned();
        let ours = sign(bare, &private_key(), &method, "2023-02-24T23:36:38Z").unwrap();
        assert_eq!(ours, document);
    }

    #[test]
    fn a_changed_document_or_proof_does_not_verify() {
        let key = did_key::read(PUBLIC).unwrap();
        let fault = |change: &dyn Fn(&mut Map<String, Value>)| {
            let mut document = signed();
            change(&mut document);
            verify_with(&document, &key).unwrap_err()
        };
        assert_eq!(
            fault(&|d| d["credentialSubject"]["alumniOf"] = "Elsewhere".into()),
            Fault::Signature
        );
        assert_eq!(
            fault(&|d| d["proof"]["created"] = "2024-02-24T23:36:38Z".into()),
            Fault::Signature
        );
        assert_eq!(
            fault(&|d| d["proof"]["cryptosuite"] = "eddsa-rdfc-2022".into()),
            Fault::OtherSuite
        );
        assert_eq!(
            fault(&|d| d["proof"]["proofValue"] = "z1".into()),
            Fault::Malformed("proofValue")
        );
        assert_eq!(
            fault(&|d| d["proof"]["@context"] = Value::Null),
            Fault::Malformed("@context")
        );
        assert_eq!(fault(&|d| drop(d.remove("proof"))), Fault::NoProof);
        let other = SigningKey::from_bytes(&[3; 32]).verifying_key();
        assert_eq!(verify_with(&signed(), &other), Err(Fault::Signature));
    }

    #[test]
    fn the_method_must_belong_to_the_issuer() {
        let key = SigningKey::from_bytes(&[9; 32]);
        let did = did_key::standard_spelling(&key.verifying_key());
        let method = format!("{did}#{}", did_key::multibase(&key.verifying_key()));
        let document = |issuer: &str| {
            let mut document = Map::new();
            document.insert("issuer".into(), issuer.into());
            document.insert("n".into(), "9007199254740993".into());
            Value::Object(sign(document, &key, &method, "2026-01-01T00:00:00Z").unwrap())
        };
        assert_eq!(verify(&document(&did)), Ok(did.clone()));
        assert_eq!(
            verify(&document("did:example:mallory")),
            Err(Fault::NotIssuer)
        );
        assert_eq!(verify(&Value::Null), Err(Fault::NoProof));
        assert_eq!(
            verify(&serde_json::json!({ "proof": {} })),
            Err(Fault::Malformed("verificationMethod"))
        );
    }
}
