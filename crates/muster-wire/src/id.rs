//! Ids: how ours are minted and which foreign ones are taken.
//!
//! Ours are a noun, an underscore and the 26 Crockford base32 characters of a UUIDv7. Foreign
//! ids (run ids of callers, ids minted by an SDK, names of agents) are kept as they came and
//! never parsed.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The longest foreign id that is taken, in bytes.
pub const ID_BYTES_MAX: usize = 128;

const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Mints an id of ours: `exec_01KB6E7M9QX2T4V8N0R53QH8ZT`. Sorts by time of minting.
pub fn mint(noun: &str) -> String {
    let value = uuid::Uuid::now_v7().as_u128();
    let mut out = String::with_capacity(noun.len() + 27);
    out.push_str(noun);
    out.push('_');
    for place in (0..26).rev() {
        let five = ((value >> (place * 5)) & 31) as usize;
        out.push(CROCKFORD[five] as char);
    }
    out
}

/// The noun of an id as [`mint`] makes them; `None` when it is of another form. That it is well
/// formed does not say that it was minted here.
pub fn minted_noun(text: &str) -> Option<&str> {
    let (noun, value) = text.split_once('_')?;
    let is_noun = !noun.is_empty() && noun.bytes().all(|b| b.is_ascii_lowercase());
    let is_value = value.len() == 26 && value.bytes().all(|b| CROCKFORD.contains(&b));
    (is_noun && is_value).then_some(noun)
}

/// Why a string is not an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdError {
    /// It has no characters.
    Empty,
    /// It has more than [`ID_BYTES_MAX`] bytes.
    TooLong,
    /// It has a character outside `[A-Za-z0-9._:-]`.
    Character,
    /// It is `.` or `..`, which no URL path can carry.
    Dots,
}

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IdError::Empty => "an id must not be empty",
            IdError::TooLong => "an id has at most 128 characters",
            IdError::Character => "an id consists of letters, digits, '.', '_', ':' and '-'",
            IdError::Dots => "'.' and '..' are no ids: no URL path can carry them",
        })
    }
}

impl std::error::Error for IdError {}

/// Checks a foreign id: 1 to 128 of `[A-Za-z0-9._:-]`, and not `.` or `..`.
///
/// # Errors
/// Says which of the rules is broken.
pub fn check_id(text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty);
    }
    if text.len() > ID_BYTES_MAX {
        return Err(IdError::TooLong);
    }
    if text == "." || text == ".." {
        return Err(IdError::Dots);
    }
    let fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
    if text.bytes().all(fine) {
        Ok(())
    } else {
        Err(IdError::Character)
    }
}

macro_rules! id_type {
    ($(#[doc = $doc:literal])* $name:ident) => {
        $(#[doc = $doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes a foreign id after checking it.
            ///
            /// # Errors
            /// When it breaks a rule of [`check_id`].
            pub fn parse(text: &str) -> Result<Self, IdError> {
                check_id(text)?;
                Ok(Self(Arc::from(text)))
            }
            /// Takes text that was checked before: minted here or read back from a store.
            pub fn trusted(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        #[cfg(feature = "schema")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                $crate::api::text_schema(concat!($($doc),*))
            }
        }
        #[cfg(feature = "schema")]
        impl utoipa::ToSchema for $name {}
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

id_type!(
    /// One call of one function. Never carries an attempt's secret.
    ExecutionId
);
id_type!(
    /// The tree of executions under one root.
    RunId
);
id_type!(
    /// A callable service; the AgentField wire calls it a node.
    AgentId
);
id_type!(
    /// One process of an agent. `instance_id` of its registration, else `url:` and its address.
    InstanceId
);
id_type!(
    /// A reasoner's or a skill's name within its agent.
    FunctionName
);
id_type!(
    /// A machine that runs workers: `muster node`, or a Relay broker.
    NodeId
);
id_type!(
    /// One supervised process of a node, over all its restarts.
    WorkerId
);

impl ExecutionId {
    /// Mints an execution id.
    pub fn mint() -> Self {
        Self(mint("exec").into())
    }
}
impl RunId {
    /// Mints a run id.
    pub fn mint() -> Self {
        Self(mint("run").into())
    }
}

/// `agent.function`, exactly one dot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// The part before the dot.
    pub agent: AgentId,
    /// The part after the dot.
    pub function: FunctionName,
}

impl Target {
    /// Splits `agent.function`.
    ///
    /// # Errors
    /// A sentence for the caller when there is not exactly one dot or a part is no id.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split('.');
        let (Some(agent), Some(function), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err("a target is written agent.function, with exactly one dot".into());
        };
        Ok(Self {
            agent: AgentId::parse(agent).map_err(|e| format!("agent in target: {e}"))?,
            function: FunctionName::parse(function)
                .map_err(|e| format!("function in target: {e}"))?,
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.agent, self.function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minted_ids_have_the_promised_shape_and_sort_by_time() {
        let first = mint("exec");
        let second = mint("exec");
        assert_eq!(first.len(), 31);
        assert!(first.starts_with("exec_"));
        assert!(check_id(&first).is_ok());
        assert!(first < second, "{first} {second}");
    }

    #[test]
    fn foreign_ids_are_taken_or_refused_by_rule() {
        for (text, want) in [
            ("run_1", Ok(())),
            ("a:b.c-d_E9", Ok(())),
            ("", Err(IdError::Empty)),
            (".", Err(IdError::Dots)),
            ("..", Err(IdError::Dots)),
            ("...", Ok(())),
            ("a b", Err(IdError::Character)),
            ("a/b", Err(IdError::Character)),
            ("a\0", Err(IdError::Character)),
            ("é", Err(IdError::Character)),
        ] {
            assert_eq!(check_id(text), want, "{text:?}");
        }
        assert_eq!(check_id(&"x".repeat(128)), Ok(()));
        assert_eq!(check_id(&"x".repeat(129)), Err(IdError::TooLong));
    }

    #[test]
    fn a_target_has_exactly_one_dot() {
        assert_eq!(Target::parse("a.b").unwrap().to_string(), "a.b");
        for bad in ["", "a", "a.", ".b", "a.b.c", "a b.c"] {
            assert!(Target::parse(bad).is_err(), "{bad:?}");
        }
    }
}
