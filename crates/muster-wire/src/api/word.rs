//! Words of closed lists in answers. A plane writes only what it knows; a client that is older
//! than its plane keeps what it does not know.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A closed list of words.
pub trait Word: Copy + Sized + 'static {
    /// All of them, in order.
    const WORDS: &'static [Self];
    /// The word on the wire.
    fn text(self) -> &'static str;
}

/// A word of a list, or one that this build does not know.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Open<T> {
    /// One of the list.
    Known(T),
    /// As it came.
    Other(String),
}

impl<T: Word> Open<T> {
    /// The word on the wire.
    pub fn text(&self) -> &str {
        match self {
            Open::Known(word) => word.text(),
            Open::Other(word) => word,
        }
    }

    /// The word, if this build knows it.
    pub fn known(&self) -> Option<T> {
        match self {
            Open::Known(word) => Some(*word),
            Open::Other(_) => None,
        }
    }
}

impl<T: Word> From<T> for Open<T> {
    fn from(word: T) -> Self {
        Open::Known(word)
    }
}

impl<T: Word> From<&str> for Open<T> {
    fn from(text: &str) -> Self {
        let known = T::WORDS.iter().find(|word| word.text() == text);
        known.map_or_else(|| Open::Other(text.to_owned()), |word| Open::Known(*word))
    }
}

impl<T: Word> fmt::Display for Open<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl<T: Word> Serialize for Open<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.text())
    }
}

impl<'de, T: Word> Deserialize<'de> for Open<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::from(String::deserialize(from)?.as_str()))
    }
}

// A word in an answer goes by the name of its list.
#[cfg(feature = "schema")]
impl<T: Word + utoipa::ToSchema> utoipa::PartialSchema for Open<T> {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        T::schema()
    }
}

#[cfg(feature = "schema")]
impl<T: Word + utoipa::ToSchema> utoipa::ToSchema for Open<T> {
    fn name() -> std::borrow::Cow<'static, str> {
        T::name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status;

    #[test]
    fn a_word_of_a_newer_plane_is_kept() {
        let known: Open<Status> = serde_json::from_str("\"queued\"").unwrap();
        assert_eq!(known.known(), Some(Status::Queued));
        let newer: Open<Status> = serde_json::from_str("\"hibernating\"").unwrap();
        assert_eq!(newer, Open::Other("hibernating".into()));
        assert_eq!(serde_json::to_string(&newer).unwrap(), "\"hibernating\"");
    }
}
