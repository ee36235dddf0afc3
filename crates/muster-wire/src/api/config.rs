//! `GET /api/v1/config`: every effective value and where it came from.

use serde::{Deserialize, Serialize};

use super::{At, Open};
use crate::status::words;

words!(
    /// Where a value of the configuration came from.
    ConfigSource {
        /// Nobody set it.
        Default = "default",
        /// A file.
        File = "file",
        /// A variable of upstream's deployments.
        Alias = "alias",
        /// A variable of the environment.
        Environment = "environment",
        /// A flag of the command.
        Flag = "flag",
    }
);

/// A word of [`ConfigSource`].
pub type ConfigSourceWord = Open<ConfigSource>;

/// One value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ConfigValue {
    /// Its key: `server.listen`.
    pub key: String,
    /// What holds; a secret is `(redacted)`.
    pub value: serde_json::Value,
    /// Where it came from.
    pub source: ConfigSourceWord,
    /// Which file and line, which variable, which flag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What to know of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The effective configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ConfigShown {
    /// The plane's time. It reads its configuration when it starts.
    pub as_of: At,
    /// By key.
    pub values: Vec<ConfigValue>,
}
