//! The attempt id: `<execution id>~<n>.<secret>`. The agent gets it as `X-Execution-ID` and
//! echoes it; the plane cuts it down to the execution id before anything is stored, shown or
//! logged. Knows nothing of which attempt is live.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{ExecutionId, IdError};

/// 96 random bits that prove that a message comes from an attempt. Never stored, never logged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AttemptSecret([u8; 12]);

impl fmt::Debug for AttemptSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AttemptSecret(…)")
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl AttemptSecret {
    /// Wraps 96 bits, which the caller took from the operating system or from a test's seed.
    pub fn from_bytes(bytes: [u8; 12]) -> Self {
        Self(bytes)
    }

    /// Sixteen characters of URL-safe base64.
    pub fn text(&self) -> String {
        let mut out = String::with_capacity(16);
        for three in self.0.chunks_exact(3) {
            let bits = u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
            for shift in [18, 12, 6, 0] {
                out.push(ALPHABET[(bits >> shift & 63) as usize] as char);
            }
        }
        out
    }

    /// What is stored in its place.
    pub fn hash(&self) -> SecretHash {
        SecretHash::of(&self.text())
    }
}

/// The first 16 bytes of BLAKE3 over a secret's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SecretHash(pub [u8; 16]);

impl SecretHash {
    /// Hashes the text of a secret as it came over the wire.
    pub fn of(secret: &str) -> Self {
        let mut out = [0u8; 16];
        out.copy_from_slice(&blake3::hash(secret.as_bytes()).as_bytes()[..16]);
        Self(out)
    }
}

/// A whole attempt id as it is sent to an agent.
#[derive(Debug, Clone)]
pub struct AttemptId {
    /// The execution.
    pub execution: ExecutionId,
    /// 1 for the first dispatch.
    pub n: u32,
    /// What proves it.
    pub secret: AttemptSecret,
}

impl AttemptId {
    /// The text that goes into `X-Execution-ID`.
    pub fn text(&self) -> String {
        format!("{}~{}.{}", self.execution, self.n, self.secret.text())
    }
}

/// An id as it came from outside: an execution id, with or without an attempt behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRef {
    /// The part before `~`.
    pub execution: ExecutionId,
    /// The attempt's number and the hash of the secret that came with it.
    pub proof: Option<(u32, SecretHash)>,
}

impl AttemptRef {
    /// Cuts an id down. A malformed tail is no proof, but the execution id before it counts.
    ///
    /// # Errors
    /// When the part before `~` is no id.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let Some((head, tail)) = text.split_once('~') else {
            return Ok(Self {
                execution: ExecutionId::parse(text)?,
                proof: None,
            });
        };
        let proof = tail
            .split_once('.')
            .and_then(|(n, secret)| Some((n.parse().ok()?, SecretHash::of(secret))));
        Ok(Self {
            execution: ExecutionId::parse(head)?,
            proof,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_id_survives_its_round_trip_and_proves_itself() {
        let secret = AttemptSecret::from_bytes([7, 0, 255, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let id = AttemptId {
            execution: ExecutionId::trusted("exec_1"),
            n: 2,
            secret,
        };
        let back = AttemptRef::parse(&id.text()).unwrap();
        assert_eq!(back.execution.as_str(), "exec_1");
        assert_eq!(back.proof, Some((2, secret.hash())));
        assert_eq!(secret.text().len(), 16);
    }

    #[test]
    fn a_malformed_tail_is_no_proof() {
        for text in [
            "exec_1",
            "exec_1~",
            "exec_1~x.y",
            "exec_1~2",
            "exec_1~99999999999.s",
        ] {
            let back = AttemptRef::parse(text).unwrap();
            assert_eq!(back.execution.as_str(), "exec_1");
            assert_eq!(back.proof, None, "{text}");
        }
        assert!(AttemptRef::parse("~1.s").is_err());
        assert!(AttemptRef::parse("a b~1.s").is_err());
    }
}
