//! Any order of what can happen in a fleet, true or false, on time or late: every invariant holds
//! after each step, a worker dies only on evidence, what is sent was stored before, and everybody
//! who waits is answered once.

mod act;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use muster_engine::Limits;
use muster_engine::event::Waiter;
use muster_engine::fleet::FleetLimits;
use muster_engine::fleet::event::*;
use muster_wire::fleet::frame::{RestartOutput, SpawnOutput, WorkerReport};
use muster_wire::fleet::*;
use muster_wire::{NodeId, WorkerId};
use proptest::prelude::*;

use crate::machine::{code, minted};
use crate::world::{SECOND, World};

use self::act::{Act, act};

const NODES: usize = 3;

struct Play {
    world: World,
    links: u64,
    current: [Option<LinkId>; NODES],
    workers: Vec<WorkerId>,
    waiting: BTreeSet<Waiter>,
}

fn id(node: u8) -> NodeId {
    NodeId::trusted(format!("node_{node}"))
}

impl Play {
    fn new() -> Self {
        let limits = Limits {
            fleet: FleetLimits {
                node_lost_after: Some(SECOND * 120),
                binding_ttl: SECOND * 600,
                queue_capacity: 3,
                workers_max: 8,
                nodes_max: NODES as u32,
                doubt_least: 2,
                doubt_max: SECOND * 100,
                ..FleetLimits::default()
            },
            ..Limits::default()
        };
        Self {
            world: World::new(limits),
            links: 0,
            current: [None; NODES],
            workers: Vec::new(),
            waiting: BTreeSet::new(),
        }
    }

    fn waiter(&mut self) -> Waiter {
        let waiter = self.world.waiter();
        self.waiting.insert(waiter);
        waiter
    }

    fn pick(&self, of: u8) -> WorkerId {
        match self.workers.len() {
            0 => WorkerId::trusted("wrk_nobody"),
            len => self.workers[of as usize % len].clone(),
        }
    }

    fn link(&self, node: u8) -> LinkId {
        self.current[node as usize].unwrap_or(LinkId(0))
    }

    fn report(&self, worker: &WorkerId, state: u8, restarts: u8) -> WorkerReport {
        WorkerReport {
            worker_id: worker.as_str().into(),
            name: worker.as_str().into(),
            state: WorkerState::ALL[state as usize % WorkerState::ALL.len()],
            pid: Some(7),
            started_at: None,
            restarts: u32::from(restarts),
            next_start_at: None,
        }
    }

    /// What happened, as an event.
    fn event(&mut self, act: &Act) -> Option<FleetEvent> {
        Some(match *act {
            Act::Enrol { node, name } => FleetEvent::Enrolled(Box::new(Enrolment {
                waiter: self.waiter(),
                id: id(node),
                name: format!("n{name}").into(),
                kind: if node == 2 {
                    NodeKind::Relay
                } else {
                    NodeKind::Daemon
                },
                labels: Vec::new(),
                max_workers: 2,
                principal: "owner".into(),
            })),
            Act::Hello { node, older, epoch } => {
                self.links += 1;
                let link = if older {
                    LinkId(1)
                } else {
                    LinkId(self.links + 1)
                };
                FleetEvent::LinkOpened(Box::new(Hello {
                    waiter: self.waiter(),
                    node: id(node),
                    link,
                    name: format!("n{node}").into(),
                    kind: if node == 2 {
                        NodeKind::Relay
                    } else {
                        NodeKind::Daemon
                    },
                    labels: Vec::new(),
                    max_workers: u32::from(epoch) * 3,
                    capabilities: vec!["restart".into()],
                    version: "1".into(),
                    host: None,
                    epoch: (node != 2).then(|| format!("e{epoch}").into()),
                    beat_interval: SECOND * 5,
                    proves: true,
                }))
            }
            Act::Close { node, current } => FleetEvent::LinkClosed {
                node: id(node),
                link: if current { self.link(node) } else { LinkId(1) },
                why: "reset".into(),
            },
            Act::Beat { node, count, names } => FleetEvent::Beat(Box::new(Beat {
                node: id(node),
                link: self.link(node),
                count: u32::from(count),
                names: (node == 2 && names).then(|| vec![self.pick(count).as_str().into()]),
                digest: (node != 2).then(|| "nonsense".into()),
                load: Some(f64::NAN),
                max_workers: None,
                at: self.world.now,
            })),
            Act::AskAnswered { node } => FleetEvent::AskAnswered {
                node: id(node),
                link: self.link(node),
            },
            Act::Inventory {
                node,
                have,
                state,
                restarts,
            } => {
                let of = self.workers.iter().enumerate();
                let of = of.filter(|(n, _)| have & (1 << (n % 16)) != 0);
                let mut workers: Vec<WorkerReport> = of
                    .map(|(_, worker)| self.report(worker, state, restarts))
                    .collect();
                if have.is_multiple_of(7) {
                    let theirs = minted(900 + u64::from(have % 3));
                    workers.push(self.report(&theirs, state, restarts));
                }
                FleetEvent::Inventory(Box::new(Inventory {
                    node: id(node),
                    link: self.link(node),
                    workers,
                    waiter: Some(self.waiter()),
                }))
            }
            Act::Seen {
                node,
                of,
                state,
                restarts,
            } => FleetEvent::WorkerSeen {
                node: id(node),
                link: self.link(node),
                report: Box::new(self.report(&self.pick(of), state, restarts)),
                waiter: Some(self.waiter()),
            },
            Act::Exited {
                node,
                of,
                restarts,
                again,
            } => FleetEvent::WorkerExited {
                node: id(node),
                link: self.link(node),
                worker: self.pick(of),
                restarts: u32::from(restarts),
                exit: Box::new(code(1)),
                next_start_at: again.then_some(self.world.now + SECOND),
                waiter: Some(self.waiter()),
            },
            Act::Goodbye { node } => FleetEvent::Goodbye {
                node: id(node),
                link: self.link(node),
                reason: "SIGTERM".into(),
                workers_stay: true,
            },
            Act::Started { node, of, how } => FleetEvent::StartAnswered {
                node: id(node),
                worker: self.pick(of),
                outcome: match how {
                    0 => Ok(Box::new(SpawnOutput::Exited { exit: code(1) })),
                    1 => Ok(Box::new(SpawnOutput::Refused {
                        message: "full".into(),
                        full: true,
                    })),
                    2 => Err("nonsense".into()),
                    _ => Ok(Box::new(SpawnOutput::Started {
                        pid: Some(1),
                        started_at: None,
                    })),
                },
            },
            Act::Released { node, of, ok } => FleetEvent::ReleaseAnswered {
                node: id(node),
                worker: self.pick(of),
                outcome: if ok {
                    Ok(Box::new(code(0)))
                } else {
                    Err("it does not die".into())
                },
            },
            Act::Restarted { node, of, how } => FleetEvent::RestartAnswered {
                node: id(node),
                worker: self.pick(of),
                outcome: match how {
                    0 => Err("busy: later".into()),
                    1 => Ok(Box::new(RestartOutput {
                        restarts: 1,
                        output: SpawnOutput::Exited { exit: code(1) },
                    })),
                    how => Ok(Box::new(RestartOutput {
                        restarts: u32::from(how) - 1,
                        output: SpawnOutput::Started {
                            pid: Some(7),
                            started_at: None,
                        },
                    })),
                },
            },
            Act::Restart { of } => FleetEvent::RestartAsked(Box::new(RestartAsk {
                waiter: self.waiter(),
                worker: self.pick(of),
                grace: None,
                by: "ada".into(),
                reason: None,
            })),
            Act::Release { of, force } => FleetEvent::ReleaseAsked {
                waiter: self.waiter(),
                worker: self.pick(of),
                grace: None,
                force,
                by: "ada".into(),
                reason: None,
                known: None,
            },
            Act::Wish { node, wish } => FleetEvent::NodeWished {
                waiter: self.waiter(),
                node: id(node).as_str().into(),
                wish: NodeWish::ALL[wish as usize % NodeWish::ALL.len()],
                by: "ada".into(),
                reason: None,
            },
            Act::Pin { node, state } => FleetEvent::NodePinned {
                waiter: self.waiter(),
                node: id(node).as_str().into(),
                state: NodeState::ALL.get(state as usize).copied(),
                by: "ada".into(),
                reason: None,
            },
            Act::DeclareLost { node } => FleetEvent::NodeDeclaredLost {
                waiter: self.waiter(),
                node: id(node).as_str().into(),
                by: "ada".into(),
                reason: None,
            },
            Act::Delete { node } => FleetEvent::NodeDeleted {
                waiter: self.waiter(),
                node: id(node).as_str().into(),
                by: "ada".into(),
            },
            Act::EndDoubt => FleetEvent::DoubtEnded {
                waiter: self.waiter(),
                by: "ada".into(),
            },
            Act::WasLate { seconds } => FleetEvent::WasLate {
                by: SECOND * u32::from(seconds),
            },
            Act::Spawn { .. } | Act::Register { .. } | Act::Pass { .. } | Act::Crash { .. } => {
                return None;
            }
        })
    }

    fn act(&mut self, act: &Act) {
        let before: BTreeMap<WorkerId, bool> = self
            .world
            .rows
            .workers
            .iter()
            .map(|(id, row)| (id.clone(), row.ended.is_some()))
            .collect();
        match *act {
            Act::Spawn {
                target,
                key,
                queue,
                restarts,
            } => {
                let (waiter, worker) = self.world.spawn(|ask| {
                    ask.target.node = (target < 4).then(|| format!("n{target}").into());
                    ask.idempotency_key = key.map(|key| format!("owner\0{key}").into());
                    ask.queue_for = queue.then_some(SECOND * 90);
                    ask.body_hash = [u8::from(restarts); 16];
                    if restarts {
                        ask.restart.mode = RestartMode::Always;
                    }
                });
                self.waiting.insert(waiter);
                if self.world.rows.workers.contains_key(&worker) {
                    self.workers.push(worker);
                }
            }
            Act::Register { of } => {
                let worker = self.pick(of);
                self.world.register_as("a", "i", "http://h:1", |r| {
                    r.worker = Some(worker.as_str().into());
                });
            }
            Act::Pass { seconds } => self.world.pass(SECOND * u32::from(seconds)),
            Act::Crash { seconds } => {
                self.waiting.clear();
                self.current = [None; NODES];
                self.world.crash(SECOND * u32::from(seconds));
            }
            _ => {
                if let Some(event) = self.event(act) {
                    let opened = match &event {
                        FleetEvent::LinkOpened(hello) => Some((hello.waiter, hello.link)),
                        _ => None,
                    };
                    self.world.fleet(event);
                    self.note_link(act, opened);
                }
            }
        }
        self.stored_before_sent();
        self.dead_only_on_evidence(act, &before);
        self.answered_once();
    }

    fn note_link(&mut self, act: &Act, opened: Option<(Waiter, LinkId)>) {
        use muster_engine::fleet::FleetReply;
        if let (Act::Hello { node, .. }, Some((waiter, link))) = (act, opened)
            && matches!(self.world.fleet_reply(waiter), FleetReply::LinkTaken)
        {
            self.current[*node as usize] = Some(link);
        }
        if let Act::Close {
            node,
            current: true,
        } = act
        {
            self.current[*node as usize] = None;
        }
    }

    fn stored_before_sent(&mut self) {
        use muster_engine::fleet::FleetSend;
        for send in self.world.fleet_sends() {
            if let FleetSend::Start { node, worker, .. } = send {
                let row = &self.world.rows.workers[&worker.id];
                assert_eq!(row.node.as_ref(), Some(&node), "sent elsewhere than stored");
            }
        }
    }

    fn dead_only_on_evidence(&self, act: &Act, before: &BTreeMap<WorkerId, bool>) {
        for (worker, row) in &self.world.rows.workers {
            let Some((_, how)) = row.ended else { continue };
            if before.get(worker) == Some(&true) {
                continue;
            }
            let fits = match how {
                ExitHow::Reported => matches!(act, Act::Exited { .. }),
                ExitHow::Unobserved => matches!(act, Act::Inventory { .. }),
                ExitHow::StartFailed => matches!(act, Act::Started { .. }),
                ExitHow::Released => matches!(
                    act,
                    Act::Released { .. } | Act::Exited { .. } | Act::Inventory { .. }
                ),
                ExitHow::Cancelled => matches!(act, Act::Release { .. }),
                // By an operator, or by a policy when its time has come.
                ExitHow::Declared | ExitHow::PlacementExpired | ExitHow::BindingExpired => true,
            };
            assert!(fits, "{worker} ended as {how} by {act:?}");
        }
    }

    fn answered_once(&mut self) {
        let answered: Vec<Waiter> = self
            .waiting
            .iter()
            .filter(|waiter| self.world.is_answered(**waiter))
            .copied()
            .collect();
        for waiter in answered {
            // It panics when there is more than one.
            self.world.reply(waiter);
            self.waiting.remove(&waiter);
        }
    }

    fn end(mut self) {
        // No answer comes any more: the clocks answer whoever is left.
        self.world.pass(Duration::from_secs(200));
        self.answered_once();
        assert!(self.waiting.is_empty(), "somebody waits for ever");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96,
        max_shrink_iters: 2_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_order_of_events_keeps_the_fleet_consistent(
        acts in proptest::collection::vec(act(), 1..160)
    ) {
        let mut play = Play::new();
        for node in 0..NODES as u8 {
            play.act(&Act::Enrol { node, name: node });
            play.act(&Act::Hello { node, older: false, epoch: 1 });
            play.act(&Act::Beat { node, count: 0, names: false });
        }
        for act in &acts {
            play.act(act);
        }
        play.end();
    }
}
