//! Nodes and agents as Relay shows them: the words of its wire, computed from the engine's verdict, and beside
//! them the plane's own word and evidence. What nobody can know is `null` with a reason.

use muster_engine::fleet::NodeRow;
use muster_engine::fleet::effect::NodeView;
use muster_wire::fleet::NodeState;
use serde_json::{Value, json};

use super::record::{Agent, Presence};
use crate::app::App;

/// A node of a list or on its own.
pub(super) fn node(view: &NodeView) -> Value {
    let mut shown = bare(&view.row);
    let live = view.state == NodeState::Online;
    shown["status"] = if live { "online" } else { "offline" }.into();
    shown["live"] = live.into();
    shown["handlers_live"] = live.into();
    shown["load"] = view.load.into();
    shown["active_agents"] = view.workers.value.into();
    shown["last_heartbeat_at"] = json!(view.row.beat.map(|(at, _)| at.rfc3339()));
    shown["state"] = view.state.word().into();
    shown["state_since"] = view.state_at.rfc3339().into();
    shown["evidence"] = view.evidence.as_str().into();
    if view.workers.value.is_none() {
        shown["active_agents_reason"] = json!(view.workers.reason);
        shown["active_agents_last_known"] = json!(view.workers.last.as_ref().map(|(count, at)| {
            let names: Vec<&str> = view.worker_names.iter().map(|name| &**name).collect();
            json!({"count": count, "names": names, "at": at.rfc3339()})
        }));
    }
    shown
}

/// A node that was just enrolled, for its broker alone. Its reader takes no null for the number
/// of agents; it does not look at it either.
pub(super) fn enrolled(row: &NodeRow, token: &str) -> Value {
    let mut shown = bare(row);
    for (key, value) in [("live", false), ("handlers_live", false)] {
        shown[key] = value.into();
    }
    shown["status"] = "offline".into();
    shown["load"] = Value::Null;
    shown["active_agents"] = row.inventory.map_or(0, |(_, count)| count).into();
    shown["token"] = token.into();
    shown
}

fn bare(row: &NodeRow) -> Value {
    let capabilities: Vec<Value> = row
        .capabilities
        .iter()
        .map(|name| json!({"name": name, "kind": "capacity"}))
        .collect();
    json!({
        "id": row.id.as_str(),
        "name": row.name,
        "kind": "ws",
        "role": "broker",
        "capabilities": capabilities,
        "tags": row.labels,
        "version": row.version,
        "max_agents": row.max_workers,
        "created_at": row.enrolled_at.rfc3339(),
    })
}

/// An agent as Relay shows it. `node` is what its node's facts amount to, where that is asked:
/// of an agent of an unreachable node nobody knows whether it is there.
pub(super) fn agent(app: &App, agent: &Agent, node: Option<NodeState>) -> Value {
    let silent = matches!(node, Some(NodeState::Unreachable | NodeState::Lost));
    let status = match agent.presence {
        Presence::Offline => json!("offline"),
        Presence::Online if silent => Value::Null,
        Presence::Online => json!("online"),
    };
    let channels: Vec<Value> = app.relay.look(|tables| {
        let channels = agent.channels.iter().filter_map(|name| tables.channel(name));
        channels
            .map(|channel| {
                let joined_at = agent.created_at.rfc3339();
                json!({"id": channel.id, "name": channel.name, "role": "member", "joined_at": joined_at})
            })
            .collect()
    });
    let mut shown = json!({
        "id": agent.id,
        "agent_id": agent.id,
        "name": agent.name,
        "type": agent.kind,
        "status": status,
        "workspace_id": app.relay.look(|tables| tables.workspace().to_owned()),
        "node_id": agent.node,
        "metadata": agent.metadata,
        "channels": channels,
        "created_at": agent.created_at.rfc3339(),
    });
    if silent && agent.presence == Presence::Online {
        shown["status_reason"] = "its node is unreachable".into();
        shown["last_known_status"] = "online".into();
    }
    shown
}
