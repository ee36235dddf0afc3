//! The one error shape. Absent keys are absent, never null: a null `execution_id` breaks the
//! published SDK.

use serde::{Deserialize, Serialize};

use crate::category::Category;

/// The body of every answer with a status of 400 and above, of an MCP tool error and of the
/// command line's `--json` errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The same word as `error_category`, or a finer one.
    pub error: String,
    /// What clients switch on.
    pub error_category: Category,
    /// A sentence for a person that says what to do.
    pub message: String,
    /// Seconds; always equal to the header `Retry-After`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retry_after: Option<u32>,
    /// Only where an execution exists.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub execution_id: Option<String>,
    /// Whatever helps: the field, the limit, what was looked at.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub details: Option<serde_json::Value>,
}

impl ErrorBody {
    /// A body whose `error` is the category's word.
    pub fn new(category: Category, message: impl Into<String>) -> Self {
        Self {
            error: category.word().to_owned(),
            error_category: category,
            message: message.into(),
            retry_after: None,
            execution_id: None,
            details: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_keys_are_absent() {
        let text =
            serde_json::to_string(&ErrorBody::new(Category::TargetNotFound, "no such agent"))
                .unwrap();
        assert_eq!(
            text,
            r#"{"error":"target_not_found","error_category":"target_not_found","message":"no such agent"}"#
        );
    }
}
