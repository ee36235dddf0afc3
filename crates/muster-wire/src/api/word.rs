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

// The lists that answers speak, each by the name under which a derived schema finds it: a
// derive does not see through a generic type.
/// A word of [`AttemptOutcome`](crate::AttemptOutcome).
pub type AttemptOutcomeWord = Open<crate::AttemptOutcome>;
/// A word of [`Decision`](crate::Decision).
pub type DecisionWord = Open<crate::Decision>;
/// A word of [`ExecutionKind`](crate::ExecutionKind).
pub type ExecutionKindWord = Open<crate::ExecutionKind>;
/// A word of [`FunctionKind`](crate::FunctionKind).
pub type FunctionKindWord = Open<crate::FunctionKind>;
/// A word of [`Lane`](crate::Lane).
pub type LaneWord = Open<crate::Lane>;
/// A word of [`Origin`](crate::Origin).
pub type OriginWord = Open<crate::Origin>;
/// A word of [`ReplayMode`](crate::ReplayMode).
pub type ReplayModeWord = Open<crate::ReplayMode>;
/// A word of [`Status`](crate::Status).
pub type StatusWord = Open<crate::Status>;
/// A word of [`WaitCause`](crate::WaitCause).
pub type WaitCauseWord = Open<crate::WaitCause>;
/// A word of [`Act`](super::act::Act).
pub type ActWord = Open<super::act::Act>;
/// A word of [`ApprovalState`](super::approval::ApprovalState).
pub type ApprovalStateWord = Open<super::approval::ApprovalState>;
/// A word of [`DeliveryState`](super::webhook::DeliveryState).
pub type DeliveryStateWord = Open<super::webhook::DeliveryState>;
/// A word of [`StepReceipt`](super::steps::StepReceipt).
pub type StepReceiptWord = Open<super::steps::StepReceipt>;

/// A word of [`SegmentKind`](super::steps::SegmentKind).
pub type SegmentKindWord = Open<super::steps::SegmentKind>;
/// A word of [`WhyAct`](super::why::WhyAct).
pub type WhyActWord = Open<super::why::WhyAct>;
/// A word of [`WhyKind`](super::why::WhyKind).
pub type WhyKindWord = Open<super::why::WhyKind>;

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
