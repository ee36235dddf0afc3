//! Results of tools: what was found, or the one error shape with `isError`. Each goes out twice,
//! as structured content and as the same JSON in text, as the protocol advises.

use rmcp::model::CallToolResult;
use serde_json::{Map, Value};

use crate::api::problem::Problem;

/// What a tool found.
pub(super) type Found = Map<String, Value>;

/// What a tool comes to.
#[derive(Debug)]
pub(super) enum End {
    /// It did what it was asked.
    Done(Found),
    /// It called a function, and that failed: the error shape and the execution at once.
    Failed(Found),
}

/// The result for the client.
pub(super) fn result(end: Result<End, Problem>) -> CallToolResult {
    match end {
        Ok(End::Done(found)) => CallToolResult::structured(Value::Object(found)),
        Ok(End::Failed(found)) => CallToolResult::structured_error(Value::Object(found)),
        Err(problem) => {
            let body = serde_json::to_value(&problem.body).unwrap_or_default();
            CallToolResult::structured_error(body)
        }
    }
}

/// Adds a member.
pub(super) fn put(found: &mut Found, name: &str, value: impl Into<Value>) {
    found.insert(name.to_owned(), value.into());
}

/// Adds a member that is known, and none where it is not.
pub(super) fn put_if(found: &mut Found, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        put(found, name, value);
    }
}
