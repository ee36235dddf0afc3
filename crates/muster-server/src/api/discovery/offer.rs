//! What a registration says of an agent's functions, read leniently: it was checked when it was
//! taken, and a part of another form than expected is left out here.

use std::collections::HashMap;

use muster_wire::FunctionKind;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// The parts of a registration that discovery shows.
#[derive(Debug, Default)]
pub(crate) struct Registration {
    /// The agent's own tags.
    pub(crate) tags: Vec<String>,
    offers: HashMap<(FunctionKind, String), Offer>,
}

/// What it says of one function.
#[derive(Debug, Default, Clone, Deserialize)]
pub(crate) struct Offer {
    #[serde(default)]
    id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(crate) description: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    tags: Option<Vec<String>>,
    #[serde(default, deserialize_with = "lenient")]
    proposed_tags: Option<Vec<String>>,
    pub(crate) input_schema: Option<Box<RawValue>>,
    pub(crate) output_schema: Option<Box<RawValue>>,
    pub(crate) examples: Option<Box<RawValue>>,
}

/// A function as it is shown.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CapabilityFunction)]
pub(crate) struct Function {
    /// Its name.
    pub(crate) id: String,
    /// What it says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// Its tags.
    pub(crate) tags: Vec<String>,
    /// What it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) input_schema: Option<Box<RawValue>>,
    /// What it gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) output_schema: Option<Box<RawValue>>,
    /// Examples.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub(crate) examples: Option<Box<RawValue>>,
    /// `agent:reasoner` or `agent:skill:name`.
    pub(crate) invocation_target: String,
}

#[derive(Debug, Default, Deserialize)]
struct Body {
    #[serde(default, deserialize_with = "lenient")]
    reasoners: Option<Vec<Offer>>,
    #[serde(default, deserialize_with = "lenient")]
    skills: Option<Vec<Offer>>,
    #[serde(default, deserialize_with = "lenient")]
    proposed_tags: Option<Vec<String>>,
}

/// Takes a value of another form as absent.
fn lenient<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    let raw = <Box<RawValue>>::deserialize(from)?;
    Ok(serde_json::from_str(raw.get()).ok())
}

impl Registration {
    /// Reads the body of a registration.
    pub(crate) fn read(body: &[u8]) -> Self {
        let body: Body = serde_json::from_slice(body).unwrap_or_default();
        let mut offers = HashMap::new();
        for (kind, list) in [
            (FunctionKind::Reasoner, body.reasoners),
            (FunctionKind::Skill, body.skills),
        ] {
            for offer in list.unwrap_or_default() {
                offers.insert((kind, offer.id.clone()), offer);
            }
        }
        Self {
            tags: body.proposed_tags.unwrap_or_default(),
            offers,
        }
    }

    /// What it says of a function.
    pub(crate) fn offer(&self, kind: FunctionKind, name: &str) -> Offer {
        self.offers
            .get(&(kind, name.to_owned()))
            .cloned()
            .unwrap_or_default()
    }
}

impl Offer {
    /// Its tags: those it has, and those it proposes.
    pub(crate) fn all_tags(&self) -> Vec<String> {
        let mut tags = self.tags.clone().unwrap_or_default();
        for tag in self.proposed_tags.iter().flatten() {
            if !tags.contains(tag) {
                tags.push(tag.clone());
            }
        }
        tags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_another_form_are_left_out_and_the_rest_is_read() {
        let body = br#"{"reasoners":[{"id":"a","description":7,"tags":["x"],"proposed_tags":["x","y"],
            "input_schema":{"n":123456789012345678901234567890}}],"skills":"none","proposed_tags":["t"]}"#;
        let registration = Registration::read(body);
        let offer = registration.offer(FunctionKind::Reasoner, "a");
        assert_eq!(offer.description, None);
        assert_eq!(offer.all_tags(), ["x", "y"]);
        let schema = offer.input_schema.unwrap();
        assert_eq!(schema.get(), r#"{"n":123456789012345678901234567890}"#);
        assert_eq!(registration.tags, ["t"]);
        assert!(
            registration
                .offer(FunctionKind::Skill, "a")
                .all_tags()
                .is_empty()
        );
        assert!(Registration::read(b"not json").tags.is_empty());
    }
}
