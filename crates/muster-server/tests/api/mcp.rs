//! The MCP lane from the caller's side, over raw messages: the protocol and its abuse, each
//! tool, the refusals, waits, and what stays behind. The official clients are in `tests/peers`.

mod calls;
mod protocol;
mod waits;

use http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Client, TestPlane};

const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");

/// A client of the lane.
pub(crate) struct Mcp(Client);

/// What a tool gave.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) is_error: bool,
    pub(crate) content: Value,
}

impl Mcp {
    pub(crate) fn of(plane: &TestPlane) -> Self {
        Self(plane.client.clone())
    }

    /// Sends bytes as they are.
    pub(crate) async fn raw(&self, body: impl Into<bytes::Bytes>) -> Answer {
        self.0.send(Method::POST, "/mcp", &[ACCEPT], body).await
    }

    /// One request of the protocol.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Answer {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        self.raw(message.to_string()).await
    }

    /// Calls a tool with arguments as text. Checks what holds for every result: both forms
    /// agree, and it fits the tool's own schema.
    pub(crate) async fn tool_raw(&self, name: &str, arguments: &str) -> Given {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#
        );
        // Read first: after a call that outlasts the plane nobody answers.
        let schema = self.schema_of(name).await;
        let answer = self.raw(message).await;
        assert_eq!(answer.status, 200, "{}", answer.json());
        let result = answer.json()["result"].clone();
        let content = result["structuredContent"].clone();
        let text = result["content"][0]["text"].as_str().expect("a text");
        let same: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(same, content, "text and structure agree");
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let faults: Vec<String> = validator
            .iter_errors(&content)
            .map(|fault| fault.to_string())
            .collect();
        assert!(faults.is_empty(), "{name}: {faults:#?} in {content:#}");
        Given {
            is_error: result["isError"] == true,
            content,
        }
    }

    pub(crate) async fn tool(&self, name: &str, arguments: Value) -> Given {
        self.tool_raw(name, &arguments.to_string()).await
    }

    async fn schema_of(&self, name: &str) -> Value {
        let listed = self.ask("tools/list", json!({})).await.json();
        let tools = listed["result"]["tools"].as_array().expect("tools");
        let tool = tools.iter().find(|tool| tool["name"] == name);
        tool.expect("the tool")["outputSchema"].clone()
    }
}

impl Given {
    /// A result that is no error.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert!(!self.is_error, "{:#}", self.content);
        self.content
    }

    /// A tool error of this category.
    #[track_caller]
    pub(crate) fn refused(self, category: &str) -> Value {
        let body = self.content;
        assert!(self.is_error, "{body:#}");
        assert_eq!(body["error_category"], category, "{body:#}");
        assert!(body["error"].is_string() && body["message"].is_string());
        let members = body.as_object().expect("an object");
        assert!(members.values().all(|value| !value.is_null()), "{body:#}");
        body
    }
}

/// How many executions the plane has.
pub(crate) async fn executions(plane: &TestPlane) -> u64 {
    let list = plane.client.get("/api/v1/executions").await.json();
    list["count"].as_u64().expect("a count")
}
