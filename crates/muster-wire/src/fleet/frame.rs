//! The frames of a node's control socket, `/v1/node/ws`: JSON text, `v` = 1, a `type`, and an
//! `id` where an answer is awaited. The Relay broker and our own daemon speak the same ones;
//! types that begin with `muster.` are ours alone, negotiated by [`LINK_CAPABILITY`].
//!
//! Lenient in: unknown keys are ignored, an unknown type is [`NodeFrame::Other`]. Exact out:
//! replies carry what the peer's strict reader knows and nothing more. Knows no socket.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::spec::{ExitReport, WorkerSpec};
use super::words::WorkerState;
use crate::time::Timestamp;

/// The capability by which a daemon and a plane agree on the `muster.` frames. Its metadata is
/// a [`LinkOffer`].
pub const LINK_CAPABILITY: &str = "muster:link-v1";

/// What a daemon says of itself in the metadata of [`LINK_CAPABILITY`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkOffer {
    /// Changes when the daemon's memory of its workers was lost (another machine, a wiped state
    /// directory): inventories of different epochs are not compared. A restart keeps it.
    pub epoch: String,
    /// How often it beats, in milliseconds.
    pub beat_ms: u64,
    /// Its process id, for people.
    pub pid: u32,
    /// The host's name, for people.
    #[serde(default)]
    pub host: String,
}

/// Something a node can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capability {
    /// Its name.
    pub name: String,
    /// `action` or `capacity`.
    #[serde(default)]
    pub kind: String,
    /// Free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// Who speaks on a connection of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provider {
    /// `broker`, or `muster`.
    pub name: String,
    /// New for every connection; not an epoch of the node.
    pub instance_id: String,
}

/// A worker in an `inventory.sync` of the broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InventoryAgent {
    /// The id that the plane gave it.
    pub agent_id: String,
    /// Its name on its node.
    pub name: String,
    /// The invocation that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation_id: Option<String>,
}

/// A worker as our daemon reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// Its id.
    pub worker_id: String,
    /// Its name.
    pub name: String,
    /// `starting`, `running` or `restarting`.
    pub state: WorkerState,
    /// Its process, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// When that process was started, by the node's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// How often it was started again.
    #[serde(default)]
    pub restarts: u32,
    /// When it is started again, where it is `restarting`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_start_at: Option<Timestamp>,
}

/// What a node tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum NodeFrame {
    /// The first frame: who it is.
    #[serde(rename = "node.register")]
    Register {
        /// Answer to this; 11.x sends none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The node's name.
        name: String,
        /// The node's id.
        node_id: String,
        /// Who connects.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<Provider>,
        /// What it can do.
        #[serde(default)]
        capabilities: Vec<Capability>,
        /// How many workers it takes; 0 is without bound.
        #[serde(default)]
        max_agents: u32,
        /// Labels.
        #[serde(default)]
        tags: Vec<String>,
        /// Its version.
        #[serde(default)]
        version: String,
    },
    /// The broker's beat; not answered.
    #[serde(rename = "node.heartbeat")]
    Heartbeat {
        /// Never sent so far; answered if it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// What it can do now; names of live workers ride in `relay:live-agents:v1`.
        #[serde(default)]
        capabilities: Vec<Capability>,
        /// How many workers it takes; 0 is without bound.
        #[serde(default)]
        max_agents: u32,
        /// 0..1.
        #[serde(default)]
        load: f64,
        /// How many workers it has.
        #[serde(default)]
        active_agents: u32,
    },
    /// The broker's full set of workers.
    #[serde(rename = "inventory.sync")]
    InventorySync {
        /// Answer to this: the broker's proof of an application behind the socket.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// All of them.
        #[serde(default)]
        agents: Vec<InventoryAgent>,
    },
    /// The broker wants an identity for a worker.
    #[serde(rename = "agent.register")]
    AgentRegister {
        /// Answer to this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The worker's name.
        name: String,
        /// The invocation that starts it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        invocation_id: Option<String>,
    },
    /// The broker gives an identity back.
    #[serde(rename = "agent.deregister")]
    AgentDeregister {
        /// Answer to this, if it is there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Whose.
        agent_id: String,
    },
    /// What became of an `action.invoke`.
    #[serde(rename = "action.result")]
    ActionResult {
        /// Of which.
        invocation_id: String,
        /// What it gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A message reached a worker.
    #[serde(rename = "delivery.ack")]
    DeliveryAck {
        /// The worker's name.
        #[serde(default)]
        agent: String,
        /// Up to which message.
        #[serde(default)]
        up_to_seq: u64,
    },
    /// It says goodbye.
    #[serde(rename = "node.deregister")]
    Deregister {},
    /// Our daemon's beat; acknowledged.
    #[serde(rename = "muster.beat")]
    Beat {
        /// Answer to this.
        id: String,
        /// Counts up within a connection.
        seq: u64,
        /// How many workers it has.
        count: u32,
        /// [`roster_digest`] of their ids.
        digest: String,
        /// 0..1, by the machine's load; `None` when it cannot tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        load: Option<f64>,
    },
    /// Our daemon's full set of workers; answered with an [`InventoryAnswer`].
    #[serde(rename = "muster.inventory")]
    Inventory {
        /// Answer to this.
        id: String,
        /// All of them.
        workers: Vec<WorkerReport>,
    },
    /// One worker's state changed: it was started, or started again. Answered.
    #[serde(rename = "muster.worker")]
    Worker {
        /// Answer to this.
        id: String,
        /// As it now is.
        worker: WorkerReport,
    },
    /// A process exited. Sent again until it is answered.
    #[serde(rename = "muster.exited")]
    Exited {
        /// Answer to this: then it leaves the node's outbox.
        id: String,
        /// Which worker.
        worker_id: String,
        /// Its name.
        #[serde(default)]
        name: String,
        /// Which of its processes: how often it had been started again before.
        restarts: u32,
        /// How it ended.
        exit: ExitReport,
        /// When it is started again; `None` is never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_start_at: Option<Timestamp>,
    },
    /// The daemon stops; its workers go on in their holders, or were stopped before.
    #[serde(rename = "muster.goodbye")]
    Goodbye {
        /// Answer to this.
        id: String,
        /// Why.
        reason: String,
        /// Whether its workers go on.
        workers_stay: bool,
    },
    /// A tunnel could not be opened: nobody listens at that port of the node.
    #[serde(rename = "muster.tunnel.failed")]
    TunnelFailed {
        /// Which.
        tunnel_id: String,
        /// What the dial said.
        error: String,
    },
    /// The answer to a [`PlaneFrame::Ask`].
    #[serde(rename = "reply")]
    Reply {
        /// To which.
        id: String,
    },
    /// A type this build does not know.
    #[serde(other)]
    Other,
}

/// What the plane tells a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum PlaneFrame {
    /// A request was done.
    #[serde(rename = "reply")]
    Reply {
        /// Which.
        id: String,
        /// Always true.
        ok: bool,
        /// What it gave.
        data: Value,
    },
    /// A request was refused.
    #[serde(rename = "error")]
    Error {
        /// Which.
        id: String,
        /// Always false.
        ok: bool,
        /// A word.
        code: String,
        /// A sentence.
        message: String,
    },
    /// Do something: `spawn`, `release` or `restart`.
    #[serde(rename = "action.invoke")]
    ActionInvoke {
        /// Named in the result.
        invocation_id: String,
        /// What.
        action: String,
        /// With what.
        input: Value,
        /// The worker's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent_id: Option<String>,
        /// The worker's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent_name: Option<String>,
    },
    /// Are you there, and with whom? Answered by [`NodeFrame::Reply`], and an inventory follows.
    #[serde(rename = "muster.ask")]
    Ask {
        /// To be named in the reply.
        id: String,
    },
    /// Connect this port of the node to `/v1/node/tunnel/ws`.
    #[serde(rename = "muster.tunnel.open")]
    TunnelOpen {
        /// Named by the node when it connects.
        tunnel_id: String,
        /// A port on the node's loopback.
        port: u16,
    },
    /// A type this build does not know.
    #[serde(other)]
    Other,
}

/// Input of `spawn` for our daemon. It deduplicates by `worker_id`: a repeated start is answered
/// as the first one was, and never run twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnInput {
    /// The worker.
    pub worker_id: String,
    /// Its name.
    pub name: String,
    /// What it is to be.
    pub spec: WorkerSpec,
    /// Variables from the plane on top of `spec.env`: `AGENTFIELD_SERVER`, its key, its id.
    #[serde(default)]
    pub given_env: std::collections::BTreeMap<String, String>,
}

/// Output of `spawn` from our daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum SpawnOutput {
    /// It lived through its start window.
    Started {
        /// Its process; `None` when the node does not say (the broker).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
        /// When it was started; `None` when the node does not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_at: Option<Timestamp>,
    },
    /// It exited within its start window, and its policy does not start it again.
    Exited {
        /// How.
        exit: ExitReport,
    },
    /// It could not be started at all: no such program, no such directory, no room.
    Refused {
        /// A sentence.
        message: String,
        /// The node is full, not the request wrong.
        #[serde(default)]
        full: bool,
    },
}

/// Input of `release` for our daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseInput {
    /// The worker.
    pub worker_id: String,
    /// How long it has between SIGTERM and SIGKILL, in milliseconds; its own grace without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
}

/// Input of `restart` for our daemon: its process is ended like by a release, and started again
/// whatever its policy, with the same variables and terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartInput {
    /// The worker.
    pub worker_id: String,
    /// How long it has between SIGTERM and SIGKILL, in milliseconds; its own grace without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// Who wants it and why, in a sentence: the exit is told with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Output of `restart` from our daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartOutput {
    /// How often it was started again by now: which of its processes `output` is about.
    pub restarts: u32,
    /// What became of its new process, as of a start.
    #[serde(flatten)]
    pub output: SpawnOutput,
}

/// What the plane thinks of one worker of an inventory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemVerdict {
    /// Which.
    pub worker_id: String,
    /// `confirmed`, `adopted`, `refused` (it is not taken over: not this node's, no id of the
    /// plane's, not to be read, or one too many), or `release`: then the node stops it.
    pub verdict: String,
}

/// The answer to an inventory of our daemon.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InventoryAnswer {
    /// One per worker.
    pub verdicts: Vec<ItemVerdict>,
}

/// A digest of a set of worker ids or names: 16 hexadecimal digits, the same for every order.
pub fn roster_digest<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_unstable();
    // FNV-1a, 64 bit: no secret is involved, and both ends are ours.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for name in names {
        for byte in name.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

/// Reads a frame of a node.
///
/// # Errors
/// When it is not JSON, has no `type`, or lacks what its type must have.
pub fn read_node_frame(text: &str) -> Result<NodeFrame, serde_json::Error> {
    serde_json::from_str(text)
}

/// Reads a frame of a node; of an inventory every item for itself. With it come the ids of the
/// items that could not be read, as far as they had one: those are refused, and the rest counts.
///
/// # Errors
/// As [`read_node_frame`], and when an inventory is none.
pub fn read_node_frame_by_item(
    text: &str,
) -> Result<(NodeFrame, Vec<Option<String>>), serde_json::Error> {
    let error = match read_node_frame(text) {
        Ok(frame) => return Ok((frame, Vec::new())),
        Err(error) => error,
    };
    let Ok(mut frame) = serde_json::from_str::<Value>(text) else {
        return Err(error);
    };
    let is_report = |item: &Value| WorkerReport::deserialize(item).is_ok();
    let is_agent = |item: &Value| InventoryAgent::deserialize(item).is_ok();
    type Reads = fn(&Value) -> bool;
    let (list, id, reads): (_, _, Reads) = match frame["type"].as_str() {
        Some("muster.inventory") => ("workers", "worker_id", is_report),
        Some("inventory.sync") => ("agents", "agent_id", is_agent),
        _ => return Err(error),
    };
    let Some(items) = frame.get_mut(list).and_then(Value::as_array_mut) else {
        return Err(error);
    };
    let mut unread = Vec::new();
    items.retain(|item| {
        let read = reads(item);
        if !read {
            unread.push(item.get(id).and_then(Value::as_str).map(str::to_owned));
        }
        read
    });
    match NodeFrame::deserialize(frame) {
        Ok(frame) => Ok((frame, unread)),
        // Something else is wrong, and where is told by the text.
        Err(_) => Err(error),
    }
}

/// Writes a frame with its `v`.
pub fn write_frame<T: Serialize>(frame: &T) -> String {
    #[derive(Serialize)]
    struct Envelope<'a, T> {
        v: u8,
        #[serde(flatten)]
        frame: &'a T,
    }
    serde_json::to_string(&Envelope { v: 1, frame })
        .unwrap_or_else(|error| unreachable!("a frame is always JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inventory_is_read_item_by_item() {
        let text = r#"{"type":"muster.inventory","id":"i","workers":[
            {"worker_id":"a","name":"a","state":"running"},
            {"worker_id":"b","name":"b","state":"bogus"}, {"worker_id":"c","name":"c","state":"running","pid":-1},
            {"name":"d","state":"running"}, 7]}"#;
        let (frame, unread) = read_node_frame_by_item(text).unwrap();
        let NodeFrame::Inventory { workers, .. } = frame else {
            panic!("not an inventory");
        };
        assert_eq!(workers.len(), 1);
        let ids: Vec<_> = unread.iter().map(Option::as_deref).collect();
        assert_eq!(ids, [Some("b"), Some("c"), None, None]);
        let text =
            r#"{"type":"inventory.sync","agents":[{"name":"n"},{"agent_id":"a","name":"n"}]}"#;
        let (frame, unread) = read_node_frame_by_item(text).unwrap();
        assert!(matches!(frame, NodeFrame::InventorySync { agents, .. } if agents.len() == 1));
        assert_eq!(unread, [None]);
        for none in [
            r#"{"type":"muster.inventory","id":"i","workers":7}"#,
            r#"{"type":"muster.inventory","workers":[]}"#,
            r#"{"type":"muster.beat","id":"b","seq":"x"}"#,
            "x",
        ] {
            assert!(read_node_frame_by_item(none).is_err(), "{none}");
        }
    }

    #[test]
    fn a_frame_of_12_and_one_of_11_are_both_read_and_unknown_ones_too() {
        let twelve = r#"{"v":1,"type":"inventory.sync","id":"i","agents":[{"agent_id":"a","name":"n","session_ref":null}],"new":1}"#;
        let NodeFrame::InventorySync { id, agents } = read_node_frame(twelve).unwrap() else {
            panic!("not an inventory");
        };
        assert_eq!((id.as_deref(), agents.len()), (Some("i"), 1));
        let eleven = r#"{"v":1,"type":"inventory.sync","agents":[]}"#;
        assert!(matches!(
            read_node_frame(eleven).unwrap(),
            NodeFrame::InventorySync { id: None, .. }
        ));
        let later = r#"{"v":1,"type":"agent.recover","name":"x"}"#;
        assert_eq!(read_node_frame(later).unwrap(), NodeFrame::Other);
        assert!(read_node_frame("{}").is_err());
    }

    #[test]
    fn a_reply_has_no_keys_that_a_strict_reader_does_not_know() {
        let text = write_frame(&PlaneFrame::Reply {
            id: "r".into(),
            ok: true,
            data: serde_json::json!({}),
        });
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            value,
            serde_json::json!({"v":1,"type":"reply","id":"r","ok":true,"data":{}})
        );
    }

    #[test]
    fn the_digest_does_not_depend_on_the_order_and_does_on_the_names() {
        assert_eq!(roster_digest(["a", "b"]), roster_digest(["b", "a"]));
        assert_ne!(roster_digest(["ab"]), roster_digest(["a", "b"]));
        assert_ne!(roster_digest([]), roster_digest(["a"]));
    }
}
