//! Bodies of the answers under `/api/v1` that a dashboard or another program reads, one module
//! per noun. With the feature `schema` each is a component of the OpenAPI document.
//!
//! How they say what is not there: a key that is always present and may be unknown is an
//! `Option` marked `required` (it is `null`, with the reason beside it under `<key>_unknown`); a
//! key that is absent when it does not apply is an `Option` that is skipped. A word of a closed
//! list is an [`Open`] one: a plane writes only words of its list, and a client keeps one that it
//! does not know as it came.

pub mod act;
pub mod agents;
pub mod approval;
mod at;
pub mod audit;
pub mod caps;
pub mod circuits;
pub mod config;
pub mod events;
pub mod execution;
pub mod fleet;
pub mod held;
pub mod keys;
mod known;
pub mod log;
pub mod overview;
pub mod queues;
pub mod retire;
pub mod run;
pub mod search;
pub mod session;
pub mod steps;
pub mod usage;
pub mod webhook;
pub mod why;
pub mod word;

pub use at::At;
pub use known::{LastCount, LastMeasure};
pub use word::{Open, Word};

#[cfg(feature = "schema")]
pub(crate) use schema::{text_schema, words_schema};

#[cfg(feature = "schema")]
mod schema {
    use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};

    /// A string that is one of some words.
    pub(crate) fn words_schema<'a>(
        about: &str,
        words: impl Iterator<Item = &'a str>,
    ) -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(about.trim()))
            .enum_values(Some(words.map(str::to_owned)))
            .into()
    }

    /// A string.
    pub(crate) fn text_schema(about: &str) -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(about.trim()))
            .into()
    }
}
