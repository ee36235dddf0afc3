//! The routes as the document lists them, and what every answer must be.

use std::time::Duration;

use muster_store::{ExecutionFilter, Page};
use muster_wire::Category;
use serde_json::{Value, json};

use crate::support::agent::Agent;
use crate::support::{Answer, World};

/// Most that any refusal may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A method and a template.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// In upper case.
    pub(crate) method: String,
    /// With its braces.
    pub(crate) template: String,
}

impl Route {
    /// The path with every parameter replaced.
    pub(crate) fn filled(&self, with: &str) -> String {
        let mut out = String::new();
        for segment in self.template.split('/').skip(1) {
            out.push('/');
            out.push_str(if segment.starts_with('{') {
                with
            } else {
                segment
            });
        }
        out
    }

    /// Whether its path has a parameter.
    pub(crate) fn has_parameter(&self) -> bool {
        self.template.contains('{')
    }
}

/// The agent that hostile requests are about. The one that must still work is another.
pub(crate) const VICTIM: &str = "victim";

/// Every route.
pub(crate) async fn all(world: &World) -> Vec<Route> {
    let document = world.get("/openapi.json").await.json();
    let paths = document["paths"].as_object().expect("paths").clone();
    let mut routes = Vec::new();
    for (template, item) in paths {
        for method in item.as_object().expect("methods").keys() {
            routes.push(Route {
                method: method.to_uppercase(),
                template: template.clone(),
            });
        }
    }
    assert!(routes.len() > 30, "{}", routes.len());
    routes
}

/// What is wrong with an answer, if anything.
pub(crate) fn fault(answer: &Answer) -> Option<String> {
    let status = answer.status;
    if status < 400 {
        return None;
    }
    if status >= 500 && status != 501 && status != 503 {
        return Some(format!("{status} {}", answer.text()));
    }
    let Ok(mut body) = serde_json::from_slice::<Value>(&answer.body) else {
        return Some(format!(
            "{status} without the one shape: {:?}",
            answer.text()
        ));
    };
    // A JSON-RPC error carries it as its data.
    if body["jsonrpc"] == "2.0" {
        body = body["error"]["data"].take();
    }
    // The surface for Relay brokers has the word and the sentence in an envelope of its own.
    if body["ok"] == Value::Bool(false) {
        let text = |name: &str| body["error"][name].as_str().is_some_and(|t| !t.is_empty());
        let is_fine = text("code") && text("message") && body["error"]["code"] != "internal_error";
        return (!is_fine).then(|| format!("{status} {body}"));
    }
    let known = |word: &str| Category::ALL.iter().any(|category| category.word() == word);
    let text = |name: &str| body[name].as_str().filter(|text| !text.is_empty());
    match (text("error"), text("error_category"), text("message")) {
        (Some(_), Some(category), Some(_)) if known(category) && category != "internal_error" => {}
        _ => return Some(format!("{status} {body}")),
    }
    if body
        .as_object()
        .is_some_and(|members| members.values().any(Value::is_null))
    {
        return Some(format!("a null in {body}"));
    }
    let header = answer
        .header("retry-after")
        .and_then(|value| value.parse::<u64>().ok());
    if header != body["retry_after"].as_u64() {
        return Some(format!("Retry-After {header:?} and {body}"));
    }
    None
}

/// Executions in the store.
pub(crate) async fn executions(world: &World) -> usize {
    world
        .plane
        .app
        .blocking(|stores| {
            let page = Page {
                after: None,
                limit: 100_000,
            };
            stores
                .decisions
                .executions(&ExecutionFilter::default(), &page)
                .expect("a list")
                .len()
        })
        .await
}

/// The plane still does what it is for.
pub(crate) async fn still_works(world: &World, agent: &Agent) {
    let path = format!("/api/v1/execute/{}.echo", agent.id);
    let answer = world
        .as_owner("POST", &path, &json!({ "input": { "n": 1 } }))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["result"]["n"], 1);
    assert_eq!(world.get("/healthz").await.status, 200);
    assert_eq!(world.get("/readyz").await.status, 200);
}
