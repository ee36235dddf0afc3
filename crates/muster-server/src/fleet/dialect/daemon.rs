//! Our daemon's frames. Its invocations carry in their id which worker they are about, so that
//! nothing is remembered between a command and its result.

use std::sync::Arc;
use std::time::Duration;

use muster_engine::fleet::event::{Beat, Hello, Inventory};
use muster_engine::fleet::{FleetEvent, FleetReply, WorkerRow};
use muster_wire::WorkerId;
use muster_wire::fleet::ExitReport;
use muster_wire::fleet::frame::{
    Capability, ItemVerdict, LinkOffer, NodeFrame, PlaneFrame, ReleaseInput, RestartInput,
    RestartOutput, SpawnInput, SpawnOutput,
};
use serde_json::{Value, json};

use super::{Unread, clean, is_time, share};
use crate::app::App;
use crate::fleet::session::{End, Here, plain};
use crate::fleet::{Command, worker};

/// It beats many times within this; a link on which nothing at all comes has no other end.
const IDLE_MAX: Duration = Duration::from_secs(120);
/// So much of what is no id is said back.
const ID_SHOWN: usize = 256;
/// Prefixes of invocation ids.
const START: &str = "start:";
const RELEASE: &str = "release:";
const RESTART: &str = "restart:";

/// What the other end said of itself.
pub(crate) struct Daemon {
    offer: LinkOffer,
}

impl Daemon {
    pub(super) fn new(offer: LinkOffer) -> Self {
        Self { offer }
    }

    pub(super) fn hello(&self, app: &App, hello: Hello) -> Hello {
        let host = plain(&self.offer.host, 256);
        Hello {
            host: (!host.is_empty()).then_some(host),
            epoch: Some(plain(&self.offer.epoch, 256)),
            beat_interval: beat_interval(app),
            proves: true,
            ..hello
        }
    }

    /// Every name that it advertised, and how the link is kept.
    pub(super) fn registered(&self, app: &App, register: &NodeFrame) -> Value {
        let NodeFrame::Register {
            capabilities,
            provider,
            ..
        } = register
        else {
            return json!({});
        };
        json!({
            "provider": provider,
            "accepted_capabilities": accepted(capabilities),
            "beat_ms": u64::try_from(beat_interval(app).as_millis()).unwrap_or(u64::MAX),
            "ack_beats": app.config.fleet.ack_deadline,
        })
    }

    pub(super) fn idle_max(&self) -> Duration {
        IDLE_MAX
    }

    pub(super) async fn take(
        &self,
        here: &Here<'_>,
        frame: NodeFrame,
        unread: Unread,
    ) -> Result<(), End> {
        let now = here.app.clock.now();
        let (node, link) = (here.link.node.clone(), here.link.id);
        match frame {
            NodeFrame::Beat {
                id,
                count,
                digest,
                load,
                ..
            } => {
                let beat = Beat {
                    node,
                    link,
                    count,
                    names: None,
                    digest: Some(digest.into()),
                    load: load.and_then(share),
                    max_workers: None,
                    at: here.app.clock.now(),
                };
                here.tell(FleetEvent::Beat(Box::new(beat))).await?;
                here.reply(Some(id), json!({})).await;
            }
            NodeFrame::Inventory { id, workers } => {
                let (mut taken, mut refused) = (Vec::new(), unread);
                for report in workers {
                    match WorkerId::parse(&report.worker_id) {
                        Ok(_) => taken.push(clean(report, now)),
                        Err(_) => refused.push(Some(report.worker_id)),
                    }
                }
                let workers = taken;
                let make = |waiter| {
                    FleetEvent::Inventory(Box::new(Inventory {
                        node,
                        link,
                        workers,
                        waiter: Some(waiter),
                    }))
                };
                match here.ask(make).await? {
                    FleetReply::Inventory(mut answer) => {
                        answer.verdicts.extend(refusals(here, refused));
                        let data = serde_json::to_value(answer).unwrap_or_default();
                        here.reply(Some(id), data).await;
                    }
                    _ => late(here, id).await,
                }
            }
            NodeFrame::Worker { id, worker } => {
                let make = |waiter| FleetEvent::WorkerSeen {
                    node,
                    link,
                    report: Box::new(clean(worker, now)),
                    waiter: Some(waiter),
                };
                here.ask(make).await?;
                here.reply(Some(id), json!({})).await;
            }
            NodeFrame::Exited {
                id,
                worker_id,
                restarts,
                exit,
                next_start_at,
                ..
            } => {
                let Ok(worker) = WorkerId::parse(&worker_id) else {
                    // Taken all the same: it would be sent for ever.
                    here.reply(Some(id), json!({})).await;
                    return Ok(());
                };
                let make = |waiter| FleetEvent::WorkerExited {
                    node,
                    link,
                    worker,
                    restarts,
                    exit: Box::new(bounded(exit)),
                    next_start_at: next_start_at.filter(|at| is_time(*at, now)),
                    waiter: Some(waiter),
                };
                here.ask(make).await?;
                here.reply(Some(id), json!({})).await;
            }
            NodeFrame::Goodbye {
                id,
                reason,
                workers_stay,
            } => {
                let reason = plain(&reason, 256);
                here.tell(FleetEvent::Goodbye {
                    node,
                    link,
                    reason,
                    workers_stay,
                })
                .await?;
                here.reply(Some(id), json!({})).await;
            }
            NodeFrame::ActionResult {
                invocation_id,
                output,
                error,
            } => {
                if let Some(event) = result(here, &invocation_id, output, error) {
                    here.tell(event).await?;
                }
            }
            NodeFrame::Reply { .. } => here.tell(FleetEvent::AskAnswered { node, link }).await?,
            NodeFrame::TunnelFailed { tunnel_id, error } => {
                here.app.fleet.tunnels.failed(&node, &tunnel_id, &error);
            }
            NodeFrame::Register { id, .. } => {
                let message = "it is registered already";
                here.refuse(id, "already_registered", message).await;
            }
            NodeFrame::Heartbeat { id, .. }
            | NodeFrame::InventorySync { id, .. }
            | NodeFrame::AgentRegister { id, .. }
            | NodeFrame::AgentDeregister { id, .. } => {
                let message = "this frame is the broker's, and this link is a daemon's";
                here.refuse(id, "invalid_message", message).await;
            }
            NodeFrame::DeliveryAck { .. } | NodeFrame::Deregister {} | NodeFrame::Other => {}
        }
        Ok(())
    }

    pub(super) async fn put(&self, here: &Here<'_>, command: Command) -> Option<PlaneFrame> {
        match command {
            Command::Frame(frame) => Some(frame),
            Command::Ask => Some(PlaneFrame::Ask {
                id: muster_wire::mint("ask"),
            }),
            Command::Restart {
                worker,
                grace,
                reason,
            } => {
                let input = RestartInput {
                    worker_id: worker.to_string(),
                    grace_ms: grace.map(millis),
                    reason: Some(reason.to_string()),
                };
                Some(PlaneFrame::ActionInvoke {
                    invocation_id: format!("{RESTART}{worker}"),
                    action: "restart".into(),
                    input: serde_json::to_value(input).unwrap_or_default(),
                    agent_id: Some(worker.to_string()),
                    agent_name: None,
                })
            }
            Command::Release {
                worker,
                name,
                grace,
            } => {
                let input = ReleaseInput {
                    worker_id: worker.to_string(),
                    grace_ms: grace.map(millis),
                };
                Some(PlaneFrame::ActionInvoke {
                    invocation_id: format!("{RELEASE}{worker}"),
                    action: "release".into(),
                    input: serde_json::to_value(input).unwrap_or_default(),
                    agent_id: Some(worker.to_string()),
                    agent_name: Some(name.to_string()),
                })
            }
            Command::Start(row) => match spawn_input(here, &row).await {
                Ok(input) => Some(PlaneFrame::ActionInvoke {
                    invocation_id: format!("{START}{}", row.id),
                    action: "spawn".into(),
                    input: serde_json::to_value(input).unwrap_or_default(),
                    agent_id: Some(row.id.to_string()),
                    agent_name: Some(row.name.to_string()),
                }),
                Err(why) => {
                    let _ = here
                        .tell(FleetEvent::StartAnswered {
                            node: here.link.node.clone(),
                            worker: row.id,
                            outcome: Err(why.into()),
                        })
                        .await;
                    None
                }
            },
        }
    }
}

/// What is said of the items that are no workers, and one line for the log.
fn refusals(here: &Here<'_>, refused: Unread) -> Vec<ItemVerdict> {
    if !refused.is_empty() {
        tracing::warn!(
            node.id = %here.link.node, refused = refused.len(),
            "items of a node's inventory are no workers; the rest was taken"
        );
    }
    // An item without any id has nothing by which it could be answered.
    let ids = refused.into_iter().flatten();
    ids.map(|id| ItemVerdict {
        worker_id: id.chars().take(ID_SHOWN).collect(),
        verdict: "refused".into(),
    })
    .collect()
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// How often a daemon beats: as the plane is configured, within what both can keep.
fn beat_interval(app: &App) -> Duration {
    let beat = app.config.fleet.heartbeat.0;
    beat.clamp(Duration::from_millis(50), Duration::from_secs(60))
}

async fn spawn_input(here: &Here<'_>, row: &WorkerRow) -> Result<SpawnInput, String> {
    Ok(SpawnInput {
        worker_id: row.id.to_string(),
        name: row.name.to_string(),
        spec: worker::open(here.app, row).await?,
        given_env: worker::given_env(here.app, here.link, row).await?,
    })
}

/// What became of an invocation, told by its id.
fn result(
    here: &Here<'_>,
    invocation: &str,
    output: Option<Value>,
    error: Option<String>,
) -> Option<FleetEvent> {
    let node = here.link.node.clone();
    let said = match error {
        Some(error) => Err(error.chars().take(2_048).collect::<String>().into()),
        None => Ok(output.unwrap_or_default()),
    };
    if let Some(id) = invocation.strip_prefix(START) {
        let outcome = said.and_then(|output| {
            serde_json::from_value(output)
                .map(|output| Box::new(bounded_output(output)))
                .map_err(|_| Arc::from("the node's answer to the start cannot be read"))
        });
        let worker = WorkerId::parse(id).ok()?;
        return Some(FleetEvent::StartAnswered {
            node,
            worker,
            outcome,
        });
    }
    if let Some(id) = invocation.strip_prefix(RESTART) {
        let outcome = said.and_then(|output| {
            serde_json::from_value(output)
                .map(|output: RestartOutput| {
                    Box::new(RestartOutput {
                        output: bounded_output(output.output),
                        ..output
                    })
                })
                .map_err(|_| Arc::from("the node's answer to the restart cannot be read"))
        });
        let worker = WorkerId::parse(id).ok()?;
        return Some(FleetEvent::RestartAnswered {
            node,
            worker,
            outcome,
        });
    }
    let worker = WorkerId::parse(invocation.strip_prefix(RELEASE)?).ok()?;
    let outcome = said.and_then(|output| {
        serde_json::from_value(output)
            .map(|exit| Box::new(bounded(exit)))
            .map_err(|_| Arc::from("the node's answer to the release cannot be read"))
    });
    Some(FleetEvent::ReleaseAnswered {
        node,
        worker,
        outcome,
    })
}

fn bounded_output(output: SpawnOutput) -> SpawnOutput {
    match output {
        SpawnOutput::Exited { exit } => SpawnOutput::Exited {
            exit: bounded(exit),
        },
        other => other,
    }
}

/// The end of an output as it may be kept: at most 8 KiB of it.
pub(crate) fn bounded(mut exit: ExitReport) -> ExitReport {
    const OUTPUT_MAX: usize = 8 * 1024;
    if exit.output.len() > OUTPUT_MAX {
        let from = exit.output.len() - OUTPUT_MAX;
        let from = (from..).find(|at| exit.output.is_char_boundary(*at));
        exit.output = exit.output.split_off(from.unwrap_or(0));
    }
    if let Some(reason) = &mut exit.reason {
        *reason = reason.chars().take(512).collect();
    }
    exit
}

/// Every name as accepted.
pub(crate) fn accepted(capabilities: &[Capability]) -> Vec<Value> {
    let names = capabilities.iter().map(|capability| &capability.name);
    names
        .map(|name| json!({"name": name, "accepted": true}))
        .collect()
}

async fn late(here: &Here<'_>, id: String) {
    let message = "a newer link of this node is open";
    here.refuse(Some(id), "superseded", message).await;
}
