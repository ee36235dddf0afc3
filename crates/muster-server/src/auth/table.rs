//! What each route needs of its caller: the one place. A route that is not here is refused to
//! all but admins, and a test compares this table with the routes of the OpenAPI document.

use std::collections::HashMap;
use std::sync::LazyLock;

use http::Method;

use super::scope::Need;

/// One row.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The methods it is about; `HEAD` goes as `GET`.
    pub method: &'static str,
    /// The route's template.
    pub path: &'static str,
    /// What it needs.
    pub need: Need,
    /// Which segment of the path, counted from 0, names the agent as which the caller acts.
    pub agent_segment: Option<usize>,
}

const fn rule(method: &'static str, path: &'static str, need: Need) -> Rule {
    Rule { method, path, need, agent_segment: None }
}

/// A route whose path names the agent as which the caller acts.
const fn as_agent(method: &'static str, path: &'static str, segment: usize) -> Rule {
    Rule { method, path, need: Need::Agent, agent_segment: Some(segment) }
}

use Need::{Admin, Agent, Call, Cancel, Nothing, Operate, Read, Results};

/// Every rule.
pub const RULES: &[Rule] = &[
    // Whether the plane lives.
    rule("GET", "/healthz", Nothing),
    rule("GET", "/health", Nothing),
    rule("GET", "/readyz", Nothing),
    // The plane itself.
    rule("GET", "/api/v1/health", Read),
    rule("GET", "/api/v1/system", Read),
    rule("GET", "/metrics", Read),
    rule("GET", "/openapi.json", Read),
    rule("GET", "/docs", Read),
    rule("GET", "/docs/docs.js", Read),
    rule("GET", "/docs/docs.css", Read),
    rule("GET", "/api/v1/events", Read),
    // A person's decisions.
    rule("GET", "/api/v1/hold", Read),
    rule("POST", "/api/v1/hold", Operate),
    rule("POST", "/api/v1/unhold", Operate),
    rule("GET", "/api/v1/quarantine", Read),
    rule("GET", "/api/v1/quarantine/{id}", Read),
    rule("POST", "/api/v1/quarantine/{id}/drop", Operate),
    // Who may.
    rule("GET", "/api/v1/keys", Admin),
    rule("POST", "/api/v1/keys", Admin),
    rule("POST", "/api/v1/keys/{id}/revoke", Admin),
    rule("POST", "/api/v1/keys/{id}/rotate", Admin),
    rule("GET", "/api/v1/audit", Admin),
];

static BY_PATH: LazyLock<HashMap<&'static str, Vec<&'static Rule>>> = LazyLock::new(|| {
    let mut map: HashMap<&'static str, Vec<&'static Rule>> = HashMap::new();
    for rule in RULES {
        map.entry(rule.path).or_default().push(rule);
    }
    map
});

/// What a matched route needs, and where its path names an agent.
pub fn look_up(method: &Method, template: Option<&str>) -> (Need, Option<usize>) {
    let Some(template) = template else {
        // No such route: whoever may ask anything is told so.
        return (Need::AnyKey, None);
    };
    let Some(rules) = BY_PATH.get(template) else {
        return (Need::Admin, None);
    };
    let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
    match rules.iter().find(|rule| rule.method == method) {
        Some(rule) => (rule.need, rule.agent_segment),
        // A known path with a method it does not take.
        None => (Need::AnyKey, None),
    }
}
