//! What executions wait for, in one shape: `{cause, text, …}`. What the plane says of one is
//! kept; what its agent's queue knows is put beside it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::list::Listed;
use super::{Asking, item};
use crate::client::encode;
use crate::failure::Outcome;

/// So many agents are asked for the places in their queues.
const AGENTS_ASKED: usize = 16;

/// The wait of an item; `null` when it waits for nothing.
pub(super) fn of(item: &Value) -> Value {
    let state = item::state(item);
    let reason = item::text(item, &["status_reason", "reason"]).unwrap_or_default();
    let head = reason.split(':').next().unwrap_or_default();
    let mut wait = match item.get("wait").filter(|wait| wait.is_object()) {
        Some(wait) => wait.clone(),
        None if head == "awaiting_agent_restart" => json!({"cause": "agent_restart"}),
        None if state == "paused" => json!({"cause": "paused"}),
        None if state == "waiting" && !head.is_empty() => json!({"cause": head}),
        None if matches!(state.as_str(), "queued" | "waiting") => json!({
            "cause": null,
            "cause_unknown": "the plane does not say it in this list; `muster why` does",
        }),
        None => return Value::Null,
    };
    if wait.get("text").is_none()
        && let Some(said) = item::raw(item, &["why"])
    {
        wait["text"] = json!(said);
    }
    wait
}

/// Puts into each queued item what its agent's queue knows: who holds it up, its place, when it
/// starts.
pub(super) async fn put(asking: &Asking<'_>, items: &mut [Value]) -> Outcome<()> {
    let mut agents: Vec<String> = items
        .iter()
        .filter(|item| is_queued(item))
        .filter_map(|item| item::raw(item, &["agent", "node_id"]))
        .collect();
    agents.sort();
    agents.dedup();
    if agents.is_empty() {
        return Ok(());
    }
    let queues = Listed::of(asking.client.get_json("/api/v1/queues").await?).items;
    let mut places: HashMap<String, Value> = HashMap::new();
    for agent in agents.iter().take(AGENTS_ASKED) {
        let path = format!("/api/v1/queues/{}?limit=1000", encode(agent));
        // A place is worth a look, not a failure.
        let Ok(queue) = asking.client.get_json(&path).await else {
            continue;
        };
        let entries = queue.get("entries").and_then(Value::as_array);
        for entry in entries.into_iter().flatten() {
            if let Some(id) = item::raw(entry, &["execution_id"]) {
                places.insert(id, entry.clone());
            }
        }
    }
    put_known(items, &queues, &places);
    Ok(())
}

fn is_queued(item: &Value) -> bool {
    item::state(item) == "queued"
}

fn put_known(items: &mut [Value], queues: &[Value], places: &HashMap<String, Value>) {
    for item in items.iter_mut().filter(|item| is_queued(item)) {
        let agent = item::raw(item, &["agent", "node_id"]);
        let id = item::raw(item, &["id", "execution_id"]).unwrap_or_default();
        let queue = queues
            .iter()
            .find(|queue| item::raw(queue, &["agent"]) == agent);
        let Some(wait) = queue.and_then(|queue| wait_of(queue, places.get(&id))) else {
            continue;
        };
        if let Some(fields) = item.as_object_mut() {
            fields.entry("wait").or_insert(wait);
        }
    }
}

/// Why something waits in a queue.
fn wait_of(queue: &Value, place: Option<&Value>) -> Option<Value> {
    let running = item::number(queue, &["running"])?;
    let cap = item::number(queue, &["cap"]).filter(|cap| *cap > 0);
    let by = queue.get("held_by").filter(|by| by.is_object());
    let mut wait = match (by, cap) {
        (Some(by), _) => by.clone(),
        (None, _) if queue.get("held") == Some(&json!(true)) => json!({"cause": "hold"}),
        (None, Some(cap)) if running >= cap => json!({"cause": "agent_full"}),
        (None, _) => return None,
    };
    if wait["cause"] == "agent_full" {
        wait["holders"] = json!(running);
        wait["cap"] = json!(cap);
    }
    if let Some(place) = place {
        for (name, of) in [("position", "position"), ("starts_in_ms", "starts_in_ms")] {
            if let Some(value) = place.get(of).filter(|value| !value.is_null()) {
                wait[name] = value.clone();
            }
        }
        if let Some(depth) = item::number(queue, &["queued"]) {
            wait["of"] = json!(depth);
        }
    }
    Some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queued_item_gets_who_holds_it_up_and_its_place() {
        let mut items = [
            json!({"execution_id": "exec_1", "state": "queued", "agent": "a", "function": "f"}),
            json!({"execution_id": "exec_2", "state": "running", "agent": "a", "function": "f"}),
        ];
        let queues = [json!({"agent": "a", "running": 4, "cap": 4, "queued": 29,
            "held_by": {"cause": "agent_full", "text": "4 of 4"}})];
        let places = HashMap::from([(
            "exec_1".to_owned(),
            json!({"execution_id": "exec_1", "position": 14, "starts_in_ms": 20000}),
        )]);
        put_known(&mut items, &queues, &places);
        assert_eq!(
            items[0]["wait"],
            json!({"cause": "agent_full", "text": "4 of 4", "holders": 4, "cap": 4,
                   "position": 14, "of": 29, "starts_in_ms": 20000})
        );
        assert!(items[1].get("wait").is_none());
    }

    #[test]
    fn a_wait_that_nobody_explains_is_unknown_and_what_ended_waits_for_nothing() {
        assert!(of(&json!({"state": "succeeded"})).is_null());
        let wait = of(&json!({"state": "queued", "why": "its agent restarts"}));
        assert!(wait["cause"].is_null() && wait["cause_unknown"].is_string());
        assert_eq!(wait["text"], "its agent restarts");
        let wait = of(&json!({"state": "waiting", "status_reason": "waiting_for_approval: req-1"}));
        assert_eq!(wait["cause"], "waiting_for_approval");
    }
}
