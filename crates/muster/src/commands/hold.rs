//! `muster hold` and `unhold`: the stop button, and letting go of it after saying what goes out.

use serde_json::{Value, json};

use super::envelope::print_one;
use super::{Asking, consequence, item};
use crate::cli::{Hold, Unhold};
use crate::failure::Outcome;
use crate::out::{self, span};

/// Stops dispatching.
pub(super) async fn hold(asking: &Asking<'_>, args: &Hold) -> Outcome<u8> {
    let mut body = json!({"reason": args.reason});
    if let Some(agent) = &args.agent {
        body["agent"] = json!(agent);
    }
    let held = asking.client.post("/api/v1/hold", &body).await?.json()?;
    if asking.json {
        print_one("hold", &held);
        return Ok(0);
    }
    let whom = args.agent.as_deref().unwrap_or("any agent");
    out::data(&format!(
        "held: nothing is dispatched to {whom}; what runs goes on, calls wait"
    ));
    let again = args
        .agent
        .as_deref()
        .map(|agent| format!(" {agent}"))
        .unwrap_or_default();
    out::talk(&format!("lift it: muster unhold{again}"));
    Ok(0)
}

/// Says what would go out, asks, and lets go.
pub(super) async fn unhold(asking: &Asking<'_>, args: &Unhold) -> Outcome<u8> {
    let body = match &args.agent {
        Some(agent) => json!({"agent": agent}),
        None => json!({}),
    };
    if !args.yes {
        let would = asking.client.post("/api/v1/unhold?dry_run=true", &body);
        let would = would.await?.json()?;
        if !consequence::ask(vec![sends(&would)], "Let it go?")? {
            return Ok(0);
        }
    }
    let before = held(asking).await;
    let lifted = asking.client.post("/api/v1/unhold", &body).await?.json()?;
    let after = held(asking).await;
    if asking.json {
        print_one("unhold", &lifted);
    } else {
        let was = before.is_none_or(|held| is_held(&held, args.agent.as_deref()));
        let go = span::number(item::number(&lifted, &["executions"]).unwrap_or(0));
        out::data(&match (was, &args.agent) {
            (true, _) if go == "0" => "lifted; nothing waited behind it".to_owned(),
            (true, _) => format!("lifted; {go} go out as slots allow"),
            (false, Some(agent)) => format!("{agent} was not held"),
            (false, None) => "there was no hold on all agents".to_owned(),
        });
        for line in after.iter().flat_map(still_held) {
            out::talk(&line);
        }
    }
    Ok(0)
}

/// What is held; `None` when this key may not know.
async fn held(asking: &Asking<'_>) -> Option<Value> {
    asking.client.get_json("/api/v1/hold").await.ok()
}

fn held_agents(held: &Value) -> Vec<&str> {
    let agents = held.get("agents").and_then(Value::as_array);
    agents
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn is_held(held: &Value, agent: Option<&str>) -> bool {
    match agent {
        Some(agent) => held_agents(held).contains(&agent),
        None => held["held"] == true,
    }
}

/// What stays held, with the command that lifts it.
pub(super) fn still_held(held: &Value) -> Vec<String> {
    let all = (held["held"] == true)
        .then(|| "everything is still held; lift it: muster unhold".to_owned());
    let agents = held_agents(held).into_iter().map(|agent| {
        let agent = out::clean(agent);
        format!("{agent} is still held; lift it: muster unhold {agent}")
    });
    all.into_iter().chain(agents).collect()
}

/// What would go out, in a sentence.
pub(super) fn sends(would: &Value) -> String {
    let total = item::number(would, &["executions"]).unwrap_or(0);
    let messages = item::number(would, &["webhooks"]).unwrap_or(0);
    let told = match messages {
        0 => String::new(),
        messages => format!("{} messages for webhooks", span::number(messages)),
    };
    if total == 0 {
        return match messages {
            0 => "nothing waits behind it".to_owned(),
            _ => format!("it lets out {told}"),
        };
    }
    let each: Vec<String> = would
        .get("queued")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|queued| {
            format!(
                "{} to {}",
                span::number(item::number(queued, &["executions"]).unwrap_or(0)),
                item::text(queued, &["agent"]).unwrap_or_default()
            )
        })
        .collect();
    let told = if told.is_empty() {
        told
    } else {
        format!("; and {told}")
    };
    format!("this sends, as slots allow: {}{told}", each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_held_is_said_with_the_command() {
        let held = json!({"held": false, "agents": ["billing"], "queued": []});
        assert!(!is_held(&held, None) && is_held(&held, Some("billing")));
        assert_eq!(
            still_held(&held),
            ["billing is still held; lift it: muster unhold billing"]
        );
        assert_eq!(
            still_held(&json!({"held": true, "agents": []})),
            ["everything is still held; lift it: muster unhold"]
        );
        assert!(still_held(&json!({"held": false, "agents": []})).is_empty());
    }

    #[test]
    fn the_consequence_names_each_agent() {
        let would = json!({"executions": 1204, "queued": [{"agent":"a","executions":1200},{"agent":"b","executions":4}]});
        assert_eq!(
            sends(&would),
            "this sends, as slots allow: 1,200 to a, 4 to b"
        );
        assert_eq!(sends(&json!({"executions": 0})), "nothing waits behind it");
    }
}
