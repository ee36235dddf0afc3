//! What each route needs of its caller: the one place. A route that is not here is refused to
//! all but admins, and a test compares this table with the routes of the OpenAPI document.

use std::hash::{Hash, Hasher};
use std::sync::LazyLock;

use http::Method;
use rustc_hash::{FxHashMap, FxHasher};

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
    /// What the handler asks for itself, where the table asks for nothing.
    pub asks: Option<&'static str>,
}

const fn rule(method: &'static str, path: &'static str, need: Need) -> Rule {
    Rule {
        method,
        path,
        need,
        agent_segment: None,
        asks: None,
    }
}

/// A route whose handler asks for a proof of its own.
const fn asking(method: &'static str, path: &'static str, asks: &'static str) -> Rule {
    Rule {
        method,
        path,
        need: Nothing,
        agent_segment: None,
        asks: Some(asks),
    }
}

/// A route whose path names the agent as which the caller acts.
const fn as_agent(method: &'static str, path: &'static str, segment: usize) -> Rule {
    Rule {
        method,
        path,
        need: Need::Agent,
        agent_segment: Some(segment),
        asks: None,
    }
}

use Need::{Admin, Agent, Call, Cancel, Nothing, Operate, Read, Relay, RelayAny, Results};

/// Every rule. Names between braces are for the reader: only the shape of a path is compared.
pub const RULES: &[Rule] = &[
    // Whether the plane lives.
    rule("GET", "/healthz", Nothing),
    rule("GET", "/health", Nothing),
    rule("GET", "/readyz", Nothing),
    // The dashboard's files: what it shows it asks for as anybody.
    rule("GET", "/", Nothing),
    rule("GET", "/ui", Nothing),
    rule("GET", "/ui/", Nothing),
    rule("GET", "/ui/{path}", Nothing),
    // The key or code in it says who; what it may is known afterwards.
    rule("POST", "/api/v1/session", Nothing),
    rule("GET", "/api/v1/session", Nothing),
    rule("DELETE", "/api/v1/session", Nothing),
    // For whoever has a key at all: the handler asks for one.
    rule("POST", "/api/v1/keys/code", Need::AnyKey),
    // The plane itself.
    rule("GET", "/api/v1/health", Read),
    rule("GET", "/api/v1/system", Read),
    rule("GET", "/api/v1/overview", Read),
    rule("GET", "/api/v1/search", Read),
    rule("GET", "/metrics", Read),
    rule("GET", "/openapi.json", Read),
    rule("GET", "/docs", Read),
    rule("GET", "/api/v1/events", Read),
    rule("GET", "/api/v1/usage", Read),
    Rule {
        asks: Some("Scope: admin; no key needed on loopback."),
        ..rule("GET", "/api/v1/config", Read)
    },
    rule("GET", "/api/v1/queues", Read),
    rule("GET", "/api/v1/llm-circuits", Read),
    rule("GET", "/api/v1/queues/{agent}", Read),
    // Nodes, with their own tokens.
    rule("GET", "/v1/node/ws", Need::Node),
    rule("GET", "/v1/node/tunnel/ws", Need::Node),
    rule("GET", "/v1/node/terminal/ws", Need::Node),
    // The fleet.
    rule("GET", "/api/v1/fleet", Read),
    rule("GET", "/api/v1/fleet/drift", Read),
    rule("GET", "/api/v1/fleet/history", Read),
    rule("GET", "/api/v1/fleet/placements", Read),
    rule("POST", "/api/v1/fleet/doubt/end", Operate),
    rule("GET", "/api/v1/fleet/nodes", Read),
    rule("GET", "/api/v1/fleet/nodes/{node}", Read),
    rule("DELETE", "/api/v1/fleet/nodes/{node}", Operate),
    rule("GET", "/api/v1/fleet/nodes/{node}/history", Read),
    rule("POST", "/api/v1/fleet/nodes/{node}/drain", Operate),
    rule("POST", "/api/v1/fleet/nodes/{node}/cordon", Operate),
    rule("POST", "/api/v1/fleet/nodes/{node}/activate", Operate),
    rule("POST", "/api/v1/fleet/nodes/{node}/retire", Operate),
    rule("POST", "/api/v1/fleet/nodes/{node}/pin", Operate),
    rule("POST", "/api/v1/fleet/nodes/{node}/unpin", Operate),
    rule("POST", "/api/v1/fleet/nodes/{node}/lost", Operate),
    rule("GET", "/api/v1/fleet/enrollments", Admin),
    rule("POST", "/api/v1/fleet/enrollments", Admin),
    rule("POST", "/api/v1/fleet/enrollments/{id}/revoke", Admin),
    asking(
        "POST",
        "/api/v1/fleet/enroll",
        "An enrolment token in the body, also on loopback; no key.",
    ),
    rule("GET", "/api/v1/fleet/workers", Read),
    rule("POST", "/api/v1/fleet/workers", Operate),
    rule("GET", "/api/v1/fleet/workers/{worker}", Read),
    rule("GET", "/api/v1/fleet/workers/{worker}/history", Read),
    rule("POST", "/api/v1/fleet/workers/{worker}/release", Operate),
    rule("POST", "/api/v1/fleet/workers/{worker}/restart", Operate),
    rule("GET", "/api/v1/fleet/workers/{worker}/output", Operate),
    asking(
        "GET",
        "/api/v1/fleet/workers/{worker}/terminal",
        "Always needs a key with scope `operate` in a header, or a ticket that such a key was given.",
    ),
    rule(
        "POST",
        "/api/v1/fleet/workers/{worker}/terminal/ticket",
        Operate,
    ),
    // A person's decisions.
    rule("GET", "/api/v1/hold", Read),
    rule("POST", "/api/v1/hold", Operate),
    rule("POST", "/api/v1/unhold", Operate),
    rule("GET", "/api/v1/approvals", Read),
    rule("POST", "/api/v1/executions/{id}/approval-response", Operate),
    asking(
        "POST",
        "/api/v1/webhooks/approval-response",
        "A signature with `auth.approval_webhook_secret`; where there is none, a key with scope `operate`.",
    ),
    rule("POST", "/api/v1/executions/{id}/pause", Operate),
    rule("POST", "/api/v1/executions/{id}/resume", Operate),
    rule("POST", "/api/v1/workflows/{run}/pause-tree", Operate),
    rule("POST", "/api/v1/workflows/{run}/resume-tree", Operate),
    rule("GET", "/api/v1/quarantine", Read),
    rule("GET", "/api/v1/quarantine/{id}", Read),
    rule("POST", "/api/v1/quarantine/{id}/drop", Operate),
    rule("GET", "/api/v1/webhooks", Read),
    rule("GET", "/api/v1/webhooks/{id}", Read),
    rule("POST", "/api/v1/webhooks/redrive", Operate),
    rule("POST", "/api/v1/webhooks/{id}/redrive", Operate),
    // Who may.
    rule("GET", "/api/v1/keys", Admin),
    rule("POST", "/api/v1/keys", Admin),
    rule("POST", "/api/v1/keys/{id}/revoke", Admin),
    rule("POST", "/api/v1/keys/{id}/rotate", Admin),
    rule("GET", "/api/v1/audit", Admin),
    rule("GET", "/api/v1/tags", Read),
    rule("POST", "/api/v1/tags/{agent}/approve", Admin),
    rule("POST", "/api/v1/tags/{agent}/reject", Admin),
    rule("POST", "/api/v1/backup", Admin),
    // Agents.
    rule("POST", "/api/v1/nodes", Agent),
    rule("POST", "/api/v1/nodes/register", Agent),
    rule("GET", "/api/v1/nodes", Results),
    rule("GET", "/api/v1/nodes/{agent}", Results),
    rule("GET", "/api/v1/nodes/{agent}/history", Read),
    rule("PUT", "/api/v1/nodes/{agent}/cap", Operate),
    rule("POST", "/api/v1/nodes/{agent}/retire", Operate),
    as_agent("POST", "/api/v1/nodes/{agent}/heartbeat", 3),
    as_agent("POST", "/api/v1/nodes/{agent}/shutdown", 3),
    rule("GET", "/api/v1/discovery/capabilities", Results),
    rule("POST", "/api/v1/did/register", Agent),
    rule("GET", "/api/v1/did/resolve/{did}", Results),
    rule("GET", "/api/v1/did/document/{did}", Results),
    rule("POST", "/api/v1/execution/vc", Agent),
    rule("POST", "/api/v1/did/verify", Results),
    rule("GET", "/api/v1/did/workflow/{run}/vc-chain", Results),
    rule("POST", "/api/v1/did/workflow/{run}/vc", Agent),
    rule("GET", "/api/v1/did/export/vcs", Read),
    rule("GET", "/api/v1/policies", Results),
    rule("GET", "/api/v1/revocations", Results),
    rule("GET", "/api/v1/registered-dids", Results),
    rule("GET", "/api/v1/admin/public-key", Results),
    // Calls.
    rule("POST", "/api/v1/execute/{target}", Call),
    rule("POST", "/api/v1/execute/async/{target}", Call),
    rule("GET", "/api/v1/executions", Read),
    rule("POST", "/api/v1/executions/batch-status", Results),
    rule("GET", "/api/v1/executions/{id}", Results),
    rule("GET", "/api/v1/why/{id}", Results),
    rule("GET", "/api/v1/executions/{id}/payload/{kind}", Results),
    rule("GET", "/api/v1/executions/{id}/attempts", Results),
    rule("GET", "/api/v1/executions/{id}/events", Results),
    rule("GET", "/api/v1/executions/{id}/logs", Results),
    rule("GET", "/api/v1/executions/{id}/notes", Results),
    rule("POST", "/api/v1/executions/{id}/cancel", Cancel),
    rule("POST", "/api/v1/executions/{id}/restart", Call),
    rule("GET", "/api/v1/runs", Read),
    rule("GET", "/api/v1/runs/{run}", Results),
    rule("GET", "/api/v1/runs/{run}/steps", Results),
    rule("GET", "/api/v1/runs/{run}/groups", Results),
    rule("POST", "/api/v1/workflows/{run}/cancel-tree", Cancel),
    rule("GET", "/api/ui/v1/executions/events", Results),
    // Tools for language models: each asks for the scope of what it does.
    rule("POST", "/mcp", Results),
    // What agents tell.
    rule("POST", "/api/v1/executions/{id}/status", Agent),
    rule("POST", "/api/v1/executions/{id}/logs", Agent),
    rule("POST", "/api/v1/executions/note", Agent),
    rule("POST", "/api/v1/workflow/executions", Agent),
    rule("POST", "/api/v1/workflow/executions/events", Agent),
    as_agent(
        "POST",
        "/api/v1/agents/{agent}/executions/{id}/request-approval",
        3,
    ),
    as_agent(
        "GET",
        "/api/v1/agents/{agent}/executions/{id}/approval-status",
        3,
    ),
    as_agent(
        "POST",
        "/api/v1/agents/{agent}/executions/{id}/awaiter-status",
        3,
    ),
    // Relay brokers. A workspace key, which every worker of a broker can see, does these alone.
    rule("POST", "/v1/agents", Relay),
    rule("GET", "/v1/agents", RelayAny),
    rule("GET", "/v1/agents/{name}", RelayAny),
    rule("PATCH", "/v1/agents/{name}", Relay),
    rule("DELETE", "/v1/agents/{name}", Relay),
    rule("POST", "/v1/agents/release", Relay),
    rule("POST", "/v1/agents/{name}/events", RelayAny),
    rule("GET", "/v1/agent", RelayAny),
    rule("GET", "/v1/workspace", RelayAny),
    rule("POST", "/v1/nodes", Relay),
    rule("GET", "/v1/nodes", RelayAny),
    rule("GET", "/v1/nodes/{name}", RelayAny),
    rule("GET", "/v1/nodes/{name}/agents", RelayAny),
    rule("POST", "/v1/nodes/{name}/agents", Relay),
    rule("DELETE", "/v1/nodes/{name}/agents/{agent}", Relay),
    rule("POST", "/v1/channels", RelayAny),
    rule("POST", "/v1/channels/{name}/join", RelayAny),
    rule("GET", "/v1/channels/{name}/members", RelayAny),
    rule("POST", "/v1/channels/{name}/mute", RelayAny),
    rule("POST", "/v1/messages/{id}/read", RelayAny),
    // What starts or stops a process there is for whoever may do so elsewhere.
    rule("POST", "/v1/agents/spawn", Operate),
    rule("POST", "/v1/actions/{name}/invoke", Operate),
    rule("POST", "/v1/nodes/{node}/actions/{name}/invoke", Operate),
    rule("GET", "/v1/actions/{name}/invocations/{id}", Read),
    // Agents' memory.
    rule("POST", "/api/v1/memory/set", Agent),
    rule("POST", "/api/v1/memory/get", Results),
    rule("POST", "/api/v1/memory/delete", Agent),
    rule("GET", "/api/v1/memory/list", Results),
    rule("GET", "/api/v1/memory/events/ws", Results),
    rule("GET", "/api/v1/memory/events/sse", Results),
    rule("GET", "/api/v1/memory/events/history", Results),
    rule("POST", "/api/v1/memory/vector/set", Agent),
    rule("POST", "/api/v1/memory/vector/search", Results),
    rule("POST", "/api/v1/memory/vector/delete", Agent),
];

/// Rules by the shape of their path.
static BY_SHAPE: LazyLock<FxHashMap<u64, Vec<&'static Rule>>> = LazyLock::new(|| {
    let mut map: FxHashMap<u64, Vec<&'static Rule>> = FxHashMap::default();
    for rule in RULES {
        map.entry(shape(rule.path)).or_default().push(rule);
    }
    // What is not there yet has rows without methods: whoever may ask anything is told so.
    for (path, _) in crate::api::later::LATER {
        map.entry(shape(path)).or_default();
    }
    map
});

/// A template's hash without the names between its braces.
fn shape(template: &str) -> u64 {
    let mut hasher = FxHasher::default();
    for segment in template.split('/') {
        let segment = if segment.starts_with('{') {
            "{}"
        } else {
            segment
        };
        segment.hash(&mut hasher);
    }
    hasher.finish()
}

/// The rules of a template; `None` when it is not in the table.
fn rules_of(template: &str) -> Option<&'static [&'static Rule]> {
    BY_SHAPE.get(&shape(template)).map(Vec::as_slice)
}

/// What a matched route needs, and which segment of its path names an agent.
pub fn look_up(method: &Method, template: Option<&str>) -> (Need, Option<usize>) {
    let Some(template) = template else {
        // No such route: whoever may ask anything is told so.
        return (Need::AnyKey, None);
    };
    let Some(rules) = rules_of(template) else {
        if crate::api::is_later(template) {
            // Not there yet: whoever may ask anything is told so.
            return (Need::AnyKey, None);
        }
        return (Need::Admin, None);
    };
    let method = if *method == Method::HEAD {
        "GET"
    } else {
        method.as_str()
    };
    match rules.iter().find(|rule| rule.method == method) {
        Some(rule) => (rule.need, rule.agent_segment),
        // A known path with a method it does not take.
        None => (Need::AnyKey, None),
    }
}

/// What the handler of a route asks for itself.
pub fn asks(method: &Method, template: &str) -> Option<&'static str> {
    let rules = rules_of(template)?;
    let rule = rules.iter().find(|rule| rule.method == method.as_str())?;
    rule.asks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_do_not_collide_and_no_rule_is_there_twice() {
        for (index, one) in RULES.iter().enumerate() {
            for other in &RULES[index + 1..] {
                let same = |text: &str| -> String {
                    let fold = |s: &str| {
                        if s.starts_with('{') {
                            "{}".to_owned()
                        } else {
                            s.to_owned()
                        }
                    };
                    text.split('/').map(fold).collect::<Vec<_>>().join("/")
                };
                assert_eq!(
                    shape(one.path) == shape(other.path),
                    same(one.path) == same(other.path)
                );
                assert!(
                    one.method != other.method || same(one.path) != same(other.path),
                    "{} twice",
                    one.path
                );
            }
        }
    }

    #[test]
    fn what_is_not_in_the_table_is_for_admins_and_a_wrong_method_for_anybody() {
        let (need, _) = look_up(&Method::GET, Some("/api/v1/secrets"));
        assert_eq!(need, Need::Admin);
        let (need, _) = look_up(&Method::DELETE, Some("/api/v1/keys"));
        assert_eq!(need, Need::AnyKey);
        let (need, _) = look_up(&Method::HEAD, Some("/api/v1/audit"));
        assert_eq!(need, Need::Admin);
        assert_eq!(look_up(&Method::GET, None).0, Need::AnyKey);
    }

    #[test]
    fn the_agent_s_segment_is_where_the_path_names_it() {
        for rule in RULES {
            if let Some(segment) = rule.agent_segment {
                assert_eq!(
                    rule.path.split('/').skip(1).nth(segment),
                    Some("{agent}"),
                    "{}",
                    rule.path
                );
            }
        }
    }

    #[test]
    fn the_table_has_no_row_without_a_route() {
        let document = crate::api::document();
        let documented = |rule: &Rule| {
            document["paths"]
                .as_object()
                .unwrap()
                .iter()
                .any(|(path, item)| {
                    shape(path) == shape(rule.path)
                        && item.get(rule.method.to_lowercase()).is_some()
                })
        };
        let own = ["/openapi.json", "/docs", "/", "/ui", "/ui/", "/ui/{path}"];
        let missing: Vec<_> = RULES
            .iter()
            .filter(|rule| !own.contains(&rule.path) && !documented(rule))
            .map(|rule| format!("{} {}", rule.method, rule.path))
            .collect();
        assert!(missing.is_empty(), "no route has these: {missing:#?}");
    }

    #[test]
    fn every_route_of_the_document_is_in_the_table() {
        let document = crate::api::document();
        let mut missing = Vec::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for method in item.as_object().unwrap().keys().map(|m| m.to_uppercase()) {
                let known =
                    rules_of(path).is_some_and(|rules| rules.iter().any(|r| r.method == method));
                if !known {
                    missing.push(format!("{method} {path}"));
                }
            }
        }
        assert!(
            missing.is_empty(),
            "add to auth/table.rs what these need: {missing:#?}"
        );
    }
}
