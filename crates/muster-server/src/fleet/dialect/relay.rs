//! The Relay broker's frames, 12.x and 11.x. What it cannot tell (pid, start time, exit code) is
//! left out, with the reason. An invocation's id carries which worker it is about, so that nothing
//! is remembered between a command and its result but that one is under way.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::close_code;
use muster_engine::fleet::event::{Beat, Hello, Inventory};
use muster_engine::fleet::{FleetEvent, FleetQuestion, FleetReply, WorkerRow};
use muster_wire::fleet::frame::{
    Capability, InventoryAgent, NodeFrame, PlaneFrame, SpawnOutput, WorkerReport,
};
use muster_wire::fleet::{ExitReport, WorkerSpec, WorkerState};
use muster_wire::{WorkerId, mint};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::daemon::accepted;
use super::{NAME_MAX, Unread, clean, share};
use crate::api::fleet;
use crate::app::App;
use crate::fleet::session::{End, Here, plain};
use crate::fleet::{Command, worker};
use crate::relay::NOT_REPORTED;
use crate::relay::identity::{self, Leaving};

/// The capability in whose metadata a beat names the live workers.
const LIVE_AGENTS: &str = "relay:live-agents:v1";
/// The broker beats every 12 s and pings with each.
const BEAT: Duration = Duration::from_secs(12);
/// Longer than three missed beats, which the engine sees first.
const IDLE_MAX: Duration = Duration::from_secs(75);

/// Prefixes of invocation ids.
const START: &str = "start:";
const RELEASE: &str = "release:";
const ASK: &str = "ask:";

/// So many agents that are none of the plane's are named in a line.
const STRANGERS_NAMED: usize = 10;

/// The longest reason of a broker that is kept.
const REASON_MAX: usize = 2_048;

/// What a broker said of itself, and what it was told to do.
pub(crate) struct Relay {
    /// 12.x numbers its requests and waits for the answers; 11.x does neither.
    proves: bool,
    /// Workers that are being started or released: what the broker tells of their identity
    /// meanwhile is part of that, and its result says how it went.
    under_way: Mutex<HashSet<WorkerId>>,
}

impl Relay {
    pub(super) fn new(register: &NodeFrame) -> Self {
        Self {
            proves: matches!(register, NodeFrame::Register { id: Some(_), .. }),
            under_way: Mutex::default(),
        }
    }

    pub(super) fn hello(&self, hello: Hello) -> Hello {
        Hello {
            beat_interval: BEAT,
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

    pub(super) async fn take(
        &self,
        here: &Here<'_>,
        frame: NodeFrame,
        unread: Unread,
    ) -> Result<(), End> {
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
                    load: share(load).filter(|_| max_agents > 0),
                    max_workers: Some(max_agents),
                    at: here.app.clock.now(),
                };
                here.tell(FleetEvent::Beat(Box::new(beat))).await?;
                here.reply(id, json!({})).await;
            }
            NodeFrame::InventorySync { id, agents } => {
                // Answered as soon as the engine will see it: a slow store must not look to all
                // brokers at once as if nobody were here.
                let inventory = Inventory {
                    node,
                    link,
                    workers: minted(here, agents, unread.len()).await?,
                    waiter: None,
                };
                here.tell(FleetEvent::Inventory(Box::new(inventory)))
                    .await?;
                here.reply(id, json!({})).await;
            }
            NodeFrame::AgentRegister {
                id,
                name,
                invocation_id,
            } => identify(here, id, name, invocation_id).await?,
            NodeFrame::AgentDeregister { id, agent_id } => {
                if let Some(event) = self.deregistered(here, &agent_id).await? {
                    here.tell(event).await?;
                }
                here.reply(id, json!({})).await;
            }
            NodeFrame::ActionResult {
                invocation_id,
                output,
                error,
            } => {
                let said = match error {
                    Some(error) => Err(error.chars().take(REASON_MAX).collect::<String>().into()),
                    None => Ok(output.unwrap_or_default()),
                };
                if let Some(event) = self.result(here, &invocation_id, said) {
                    here.tell(event).await?;
                }
            }
            NodeFrame::Deregister {} => {
                here.tell(FleetEvent::Goodbye {
                    node,
                    link,
                    reason: "its broker deregistered it".into(),
                    workers_stay: false,
                })
                .await?;
            }
            NodeFrame::Register { id, .. } => here.reply(id, json!({})).await,
            NodeFrame::Beat { id, .. }
            | NodeFrame::Inventory { id, .. }
            | NodeFrame::Worker { id, .. }
            | NodeFrame::Exited { id, .. }
            | NodeFrame::Goodbye { id, .. } => {
                let message = "this frame needs the capability muster:link-v1";
                here.refuse(Some(id), "invalid_message", message).await;
            }
            // Nothing is delivered, so nothing is acknowledged that anybody waits for.
            NodeFrame::DeliveryAck { .. }
            | NodeFrame::TunnelFailed { .. }
            | NodeFrame::Reply { .. }
            | NodeFrame::Other => {}
        }
        Ok(())
    }

    /// A broker gave an identity back. Its worker has ended, unless that is part of a start or
    /// release under way.
    async fn deregistered(&self, here: &Here<'_>, agent: &str) -> Result<Option<FleetEvent>, End> {
        let node = here.link.node.clone();
        let own = here.app.relay.look(|tables| {
            let agent = tables.by_id(agent)?;
            Some(agent.node.as_deref() == Some(node.as_str()))
        });
        if own == Some(true)
            && let Err(problem) = identity::leave(here.app, agent, Leaving::Offline).await
        {
            tracing::warn!(node.id = %node, agent.id = agent, error = %problem.body.message, "the record of an agent could not be written");
        }
        let Some(worker) = worker_id(agent) else {
            return Ok(None);
        };
        let own = match own {
            Some(own) => own,
            None => is_placed(here, &worker).await?,
        };
        if !own || self.under_way.lock().contains(&worker) {
            return Ok(None);
        }
        Ok(Some(FleetEvent::WorkerExited {
            node,
            link: here.link.id,
            worker,
            restarts: 0,
            exit: Box::new(not_reported(here)),
            next_start_at: None,
            waiter: None,
        }))
    }

    /// What became of an invocation, told by its id.
    fn result(
        &self,
        here: &Here<'_>,
        invocation: &str,
        said: Result<Value, Arc<str>>,
    ) -> Option<FleetEvent> {
        let node = here.link.node.clone();
        if invocation.strip_prefix(ASK).is_some() {
            // It refused an action that it does not know: it is there.
            let link = here.link.id;
            return Some(FleetEvent::AskAnswered { node, link });
        }
        if let Some(id) = invocation.strip_prefix(START) {
            let worker = WorkerId::parse(id).ok()?;
            self.under_way.lock().remove(&worker);
            let started = SpawnOutput::Started {
                pid: None,
                started_at: None,
            };
            return Some(FleetEvent::StartAnswered {
                node,
                worker,
                outcome: said.map(|_| Box::new(started)),
            });
        }
        let worker = WorkerId::parse(invocation.strip_prefix(RELEASE)?).ok()?;
        self.under_way.lock().remove(&worker);
        Some(FleetEvent::ReleaseAnswered {
            node,
            worker,
            outcome: said.map(|_| Box::new(not_reported(here))),
        })
    }

    pub(super) async fn put(&self, here: &Here<'_>, command: Command) -> Option<PlaneFrame> {
        match command {
            Command::Frame(frame) => Some(frame),
            // It knows none, and the engine asks it for none.
            Command::Restart { .. } => None,
            // It has no request of that kind, and answers one that it does not know.
            Command::Ask => {
                let invocation = format!("{ASK}{}", mint("ask"));
                Some(invoke(invocation, "muster.ask", json!({}), None))
            }
            Command::Start(row) => {
                self.under_way.lock().insert(row.id.clone());
                match spawn_input(here, &row).await {
                    Ok(input) => {
                        let invocation = format!("{START}{}", row.id);
                        Some(invoke(
                            invocation,
                            "spawn",
                            input,
                            Some((&row.id, &row.name)),
                        ))
                    }
                    Err(why) => {
                        self.under_way.lock().remove(&row.id);
                        let failed = FleetEvent::StartAnswered {
                            node: here.link.node.clone(),
                            worker: row.id,
                            outcome: Err(why.into()),
                        };
                        let _ = here.tell(failed).await;
                        None
                    }
                }
            }
            Command::Release { worker, name, .. } => {
                self.under_way.lock().insert(worker.clone());
                let input = json!({"name": name});
                let invocation = format!("{RELEASE}{worker}");
                Some(invoke(invocation, "release", input, Some((&worker, &name))))
            }
        }
    }
}

fn invoke(
    invocation_id: String,
    action: &str,
    input: Value,
    agent: Option<(&WorkerId, &Arc<str>)>,
) -> PlaneFrame {
    PlaneFrame::ActionInvoke {
        invocation_id,
        action: action.to_owned(),
        input,
        agent_id: agent.map(|(id, _)| id.to_string()),
        agent_name: agent.map(|(_, name)| name.to_string()),
    }
}

/// The input of `spawn`: any command, in a terminal.
async fn spawn_input(here: &Here<'_>, row: &WorkerRow) -> Result<Value, String> {
    let mut spec = worker::open(here.app, row).await?;
    spec.env
        .extend(worker::given_env(here.app, here.link, row).await?);
    Ok(harness(&row.name, &spec))
}

fn harness(name: &str, spec: &WorkerSpec) -> Value {
    let mut config = json!({
        "runtime": "pty",
        "command": spec.command,
        "args": spec.args,
        "env": spec.env,
    });
    if let Some(cwd) = &spec.cwd {
        config["cwd"] = cwd.as_str().into();
    }
    // Without `cli` it starts nothing, although it runs what `harnessConfig` says.
    json!({"name": name, "cli": spec.command, "harnessConfig": config})
}

/// Gives an agent of this broker its identity. What the plane placed has its id already.
async fn identify(
    here: &Here<'_>,
    id: Option<String>,
    name: String,
    invocation: Option<String>,
) -> Result<(), End> {
    let placed = invocation.as_deref().and_then(|id| id.strip_prefix(START));
    let mut placed = placed.and_then(worker_id);
    // What it names of its own accord is no start of ours.
    if let Some(worker) = &placed
        && !is_placed(here, worker).await?
    {
        placed = None;
    }
    let node = here.link.node.clone();
    match identity::of_a_node(here.app, node, name, placed, invocation).await {
        Ok((agent, token)) => {
            // Its reader knows these keys and refuses any other.
            let data = json!({"agent_id": agent.id, "token": token.expose(), "name": agent.name});
            here.reply(id, data).await;
        }
        Err(problem) => {
            here.refuse(id, &problem.body.error, &problem.body.message)
                .await;
        }
    }
    Ok(())
}

/// The workers of an inventory that the plane minted for this node. All others are left out, and
/// named in one line: an id is nothing that a node chooses.
async fn minted(
    here: &Here<'_>,
    agents: Vec<InventoryAgent>,
    unread: usize,
) -> Result<Vec<WorkerReport>, End> {
    let (mut workers, mut strangers) = (Vec::new(), Vec::new());
    let mut others = unread;
    for agent in agents {
        if let Some(worker) = worker_id(&agent.agent_id)
            && is_minted(here, &worker).await?
        {
            workers.push(clean(report(agent), here.app.clock.now()));
        } else if strangers.len() < STRANGERS_NAMED {
            strangers.push(plain(&agent.agent_id, 64));
        } else {
            others += 1;
        }
    }
    if !strangers.is_empty() || others > 0 {
        tracing::warn!(
            node.id = %here.link.node, agents = ?strangers, more = others,
            "a broker's inventory names agents whose ids the plane did not mint for it; they are left out"
        );
    }
    Ok(workers)
}

/// An id of the form of a worker's.
fn worker_id(text: &str) -> Option<WorkerId> {
    let minted = text.strip_prefix("wrk_").or(text.strip_prefix("agent_"))?;
    let fine = minted.len() == 26 && minted.bytes().all(|b| b.is_ascii_alphanumeric());
    fine.then(|| WorkerId::parse(text).ok()).flatten()
}

/// Whether the plane minted this id for this node: it gave it to an agent of its broker, or
/// placed the worker there.
async fn is_minted(here: &Here<'_>, worker: &WorkerId) -> Result<bool, End> {
    let node = here.link.node.as_str();
    let registered = here.app.relay.look(|tables| {
        let agent = tables.by_id(worker.as_str())?;
        Some(agent.node.as_deref() == Some(node))
    });
    match registered {
        Some(own) => Ok(own),
        None => is_placed(here, worker).await,
    }
}

/// Whether the plane placed this worker at this node.
async fn is_placed(here: &Here<'_>, worker: &WorkerId) -> Result<bool, End> {
    let question = FleetQuestion::Worker(worker.as_str().into());
    match fleet::ask(here.app, question).await {
        Ok(FleetReply::Worker(view)) => {
            Ok(view.row.id == *worker && view.row.node.as_ref() == Some(&here.link.node))
        }
        Ok(_) => Ok(false),
        Err(problem) => Err(End::close(close_code::AGAIN, problem.body.message.clone())),
    }
}

/// A worker of an inventory.
fn report(agent: InventoryAgent) -> WorkerReport {
    WorkerReport {
        worker_id: agent.agent_id,
        name: agent.name,
        state: WorkerState::Running,
        pid: None,
        started_at: None,
        restarts: 0,
        next_start_at: None,
    }
}

fn not_reported(here: &Here<'_>) -> ExitReport {
    ExitReport {
        at: Some(here.app.clock.now()),
        reason: Some(NOT_REPORTED.into()),
        ..ExitReport::default()
    }
}

/// The names of live workers, where a beat tells them.
fn live_names(capabilities: &[Capability]) -> Option<Vec<Arc<str>>> {
    let live = capabilities.iter().find(|c| c.name == LIVE_AGENTS)?;
    let names = live.metadata.as_ref()?.get("names")?.as_array()?;
    let texts = names.iter().filter_map(Value::as_str);
    Some(texts.map(|name| plain(name, NAME_MAX)).collect())
}

#[cfg(test)]
mod tests {
    use muster_wire::fleet::WorkerIo;
    use muster_wire::fleet::frame::read_node_frame;

    use super::*;

    #[test]
    fn a_broker_of_12_proves_itself_and_one_of_11_does_not() {
        let register = |id: &str| {
            let text = format!(
                r#"{{"v":1,"type":"node.register",{id}"name":"b","node_id":"n","resume_cursor":null}}"#
            );
            Relay::new(&read_node_frame(&text).unwrap()).proves
        };
        assert!(register(r#""id":"node_register_1","#));
        assert!(!register(""));
    }

    #[test]
    fn any_command_becomes_a_harness_of_its_own() {
        let spec = WorkerSpec {
            command: "/bin/bash".into(),
            args: vec!["-c".into(), "exit 7".into()],
            cwd: Some("/tmp".into()),
            env: [("A".to_owned(), "b".to_owned())].into(),
            io: WorkerIo::Pty,
            size: (24, 80),
            restart: Default::default(),
            start_window_ms: None,
            stop_grace_ms: None,
        };
        let wanted = json!({"name": "seven", "cli": "/bin/bash", "harnessConfig": {
            "runtime": "pty", "command": "/bin/bash", "args": ["-c", "exit 7"],
            "env": {"A": "b"}, "cwd": "/tmp"}});
        assert_eq!(harness("seven", &spec), wanted);
        let without = WorkerSpec { cwd: None, ..spec };
        assert!(
            harness("seven", &without)["harnessConfig"]
                .get("cwd")
                .is_none()
        );
    }

    #[test]
    fn live_names_are_those_of_the_beat_and_none_are_not_no_names() {
        let read = |text: &str| live_names(&serde_json::from_str::<Vec<_>>(text).unwrap());
        let named = read(
            r#"[{"name":"release","kind":"capacity"},{"name":"relay:live-agents:v1","kind":"capacity","metadata":{"names":["a","b"]}}]"#,
        );
        assert_eq!(named.unwrap().len(), 2);
        let empty = read(r#"[{"name":"relay:live-agents:v1","metadata":{"names":[]}}]"#);
        assert_eq!(empty.unwrap().len(), 0);
        assert!(read(r#"[{"name":"release","kind":"capacity"}]"#).is_none());
    }

    #[test]
    fn only_what_has_the_form_of_a_minted_id_is_asked_for() {
        let minted = muster_wire::mint("wrk");
        assert!(worker_id(&minted).is_some());
        for none in ["", "coder-1", "wrk_1", "node_01KB6E7M9QX2T4V8N0R53QH8ZT"] {
            assert!(worker_id(none).is_none(), "{none}");
        }
    }
}
