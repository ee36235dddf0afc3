//! The Relay broker's frames, 12.x and 11.x.

use std::sync::Arc;
use std::time::Duration;

use muster_engine::fleet::FleetEvent;
use muster_engine::fleet::event::{Beat, Hello, Inventory};
use muster_wire::fleet::WorkerState;
use muster_wire::fleet::frame::{Capability, NodeFrame, PlaneFrame, WorkerReport};
use serde_json::{Value, json};

use super::daemon::accepted;
use crate::app::App;
use crate::fleet::Command;
use crate::fleet::session::{End, Here};

/// The capability in whose metadata a beat names the live workers.
const LIVE_AGENTS: &str = "relay:live-agents:v1";
/// The broker beats every 12 s and pings with each.
const IDLE_MAX: Duration = Duration::from_secs(75);

/// What a broker said of itself.
pub(crate) struct Relay {
    /// 12.x numbers its requests and waits for the answers; 11.x does neither.
    proves: bool,
}

impl Relay {
    pub(super) fn new(register: &NodeFrame) -> Self {
        Self {
            proves: matches!(register, NodeFrame::Register { id: Some(_), .. }),
        }
    }

    pub(super) fn hello(&self, hello: Hello) -> Hello {
        Hello {
            beat_interval: Duration::from_secs(12),
            proves: self.proves,
            ..hello
        }
    }

    pub(super) fn registered(&self, _: &App, register: &NodeFrame) -> Value {
        match register {
            NodeFrame::Register {
                capabilities,
                provider,
                ..
            } => json!({"provider": provider, "accepted_capabilities": accepted(capabilities)}),
            _ => json!({}),
        }
    }

    pub(super) fn idle_max(&self) -> Duration {
        IDLE_MAX
    }

    pub(super) async fn take(&self, here: &Here<'_>, frame: NodeFrame) -> Result<(), End> {
        let (node, link) = (here.link.node.clone(), here.link.id);
        match frame {
            NodeFrame::Heartbeat {
                id,
                capabilities,
                max_agents,
                load,
                active_agents,
            } => {
                let beat = Beat {
                    node,
                    link,
                    count: active_agents,
                    names: live_names(&capabilities),
                    digest: None,
                    load: (max_agents > 0 && load.is_finite()).then_some(load),
                    max_workers: Some(max_agents),
                    at: here.app.clock.now(),
                };
                here.tell(FleetEvent::Beat(Box::new(beat))).await?;
                here.reply(id, json!({})).await;
            }
            NodeFrame::InventorySync { id, agents } => {
                let workers = agents
                    .into_iter()
                    .map(|agent| WorkerReport {
                        worker_id: agent.agent_id,
                        name: agent.name,
                        state: WorkerState::Running,
                        pid: None,
                        started_at: None,
                        restarts: 0,
                        next_start_at: None,
                    })
                    .collect();
                let make = |waiter| {
                    FleetEvent::Inventory(Box::new(Inventory {
                        node,
                        link,
                        workers,
                        waiter: Some(waiter),
                    }))
                };
                here.ask(make).await?;
                here.reply(id, json!({})).await;
            }
            NodeFrame::Register { id, .. }
            | NodeFrame::AgentRegister { id, .. }
            | NodeFrame::AgentDeregister { id, .. } => here.reply(id, json!({})).await,
            NodeFrame::Beat { id, .. }
            | NodeFrame::Inventory { id, .. }
            | NodeFrame::Worker { id, .. }
            | NodeFrame::Exited { id, .. }
            | NodeFrame::Goodbye { id, .. } => {
                let message = "this frame needs the capability muster:link-v1";
                here.refuse(Some(id), "invalid_message", message).await;
            }
            NodeFrame::ActionResult { .. }
            | NodeFrame::DeliveryAck { .. }
            | NodeFrame::Deregister {}
            | NodeFrame::TunnelFailed { .. }
            | NodeFrame::Reply { .. }
            | NodeFrame::Other => {}
        }
        Ok(())
    }

    pub(super) async fn put(&self, here: &Here<'_>, command: Command) -> Option<PlaneFrame> {
        match command {
            Command::Frame(frame) => Some(frame),
            Command::Start(row) => {
                let _ = here
                    .tell(FleetEvent::StartAnswered {
                        node: here.link.node.clone(),
                        worker: row.id,
                        outcome: Err(Arc::from("a broker starts nothing yet")),
                    })
                    .await;
                None
            }
            Command::Release { .. } | Command::Ask => None,
        }
    }
}

/// The names of live workers, where a beat tells them.
fn live_names(capabilities: &[Capability]) -> Option<Vec<Arc<str>>> {
    let live = capabilities.iter().find(|c| c.name == LIVE_AGENTS)?;
    let names = live.metadata.as_ref()?.get("names")?.as_array()?;
    let texts = names.iter().filter_map(Value::as_str);
    Some(texts.map(Arc::from).collect())
}
