//! A moment as answers spell it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Timestamp;

/// A moment: RFC 3339 in UTC with milliseconds and `Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At(pub Timestamp);

impl From<Timestamp> for At {
    fn from(at: Timestamp) -> Self {
        Self(at)
    }
}

impl Serialize for At {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0.rfc3339())
    }
}

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let at = Timestamp::parse(&text);
        at.map(Self)
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no moment in RFC 3339")))
    }
}

#[cfg(feature = "schema")]
impl utoipa::PartialSchema for At {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::openapi::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("A moment: RFC 3339 in UTC with milliseconds and `Z`."))
            .into()
    }
}

#[cfg(feature = "schema")]
impl utoipa::ToSchema for At {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_text_and_reads_back() {
        let at = At(Timestamp(1_500_000));
        let text = serde_json::to_string(&at).unwrap();
        assert_eq!(text, "\"1970-01-01T00:00:01.500Z\"");
        assert_eq!(serde_json::from_str::<At>(&text).unwrap(), at);
        assert!(serde_json::from_str::<At>("\"soon\"").is_err());
    }
}
