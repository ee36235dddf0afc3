//! The plane of the simulation: what it hears, sends, and forgets when it dies.

use std::time::Duration;

use muster_engine::fleet::effect::*;
use muster_engine::fleet::event::*;
use muster_wire::fleet::*;

use super::{BEAT, Down, Sim, Up};

impl Sim {
    // ---- the plane's side ----

    pub(super) fn plane_hears(&mut self, link: LinkId, n: usize, what: Up) {
        let node = self.hosts[n].id.clone();
        match what {
            Up::Hello => {
                let waiter = self.world.waiter();
                let name = self.hosts[n].name.as_str().into();
                let epoch = Some(format!("e{}", self.hosts[n].epoch).into());
                self.event(FleetEvent::LinkOpened(Box::new(Hello {
                    waiter,
                    node,
                    link,
                    name,
                    kind: NodeKind::Daemon,
                    labels: Vec::new(),
                    max_workers: 6,
                    capabilities: Vec::new(),
                    version: "1".into(),
                    host: None,
                    epoch,
                    beat_interval: BEAT,
                    proves: true,
                })));
                match self.world.fleet_reply(waiter) {
                    FleetReply::LinkTaken => self.tell(link, Down::Acknowledged),
                    _ => self.plane_hangs_up(link),
                }
            }
            Up::Beat { count, digest } => {
                let at = self.now();
                self.event(FleetEvent::Beat(Box::new(Beat {
                    node,
                    link,
                    count,
                    names: None,
                    digest: Some(digest.into()),
                    load: None,
                    max_workers: None,
                    at,
                })));
                self.tell(link, Down::Acknowledged);
            }
            Up::Inventory(workers) => {
                let waiter = self.world.waiter();
                self.event(FleetEvent::Inventory(Box::new(Inventory {
                    node,
                    link,
                    workers,
                    waiter: Some(waiter),
                })));
                if let FleetReply::Inventory(answer) = self.world.fleet_reply(waiter) {
                    let out = answer.verdicts.into_iter();
                    let out = out.filter(|item| item.verdict == "release");
                    let out = out.map(|item| item.worker_id).collect();
                    self.tell(link, Down::Verdicts(out));
                }
            }
            Up::Seen(report) => self.event(FleetEvent::WorkerSeen {
                node,
                link,
                report: Box::new(report),
                waiter: None,
            }),
            Up::Exited(told) => {
                let waiter = self.world.waiter();
                let (worker, restarts) = (told.worker.clone(), told.restarts);
                self.event(FleetEvent::WorkerExited {
                    node,
                    link,
                    worker: told.worker,
                    restarts,
                    exit: Box::new(told.exit),
                    next_start_at: told.next_start_at,
                    waiter: Some(waiter),
                });
                if matches!(self.world.fleet_reply(waiter), FleetReply::Taken) {
                    self.tell(link, Down::ExitTaken(worker, restarts));
                }
            }
            Up::Started(worker, output) => self.event(FleetEvent::StartAnswered {
                node,
                worker,
                outcome: Ok(Box::new(output)),
            }),
            Up::Released(worker, outcome) => self.event(FleetEvent::ReleaseAnswered {
                node,
                worker,
                outcome: outcome.map(Box::new).map_err(Into::into),
            }),
            Up::Reply => self.event(FleetEvent::AskAnswered { node, link }),
        }
    }

    pub(super) fn event(&mut self, event: FleetEvent) {
        self.world.fleet(event);
        self.carry_out();
    }

    pub(super) fn carry_out(&mut self) {
        for send in self.world.fleet_sends() {
            match send {
                FleetSend::Start { link, worker, .. } => {
                    self.tell(link, Down::Start(worker.id, worker.restart.mode));
                }
                FleetSend::Release { link, worker, .. } => self.tell(link, Down::Release(worker)),
                FleetSend::Ask { link, .. } => self.tell(link, Down::Ask),
                FleetSend::Close { link, .. } => self.plane_hangs_up(link),
                // Nobody asks for one here.
                FleetSend::Restart { .. } | FleetSend::RevokeKey { .. } => {}
            }
        }
    }

    fn plane_hangs_up(&mut self, link: LinkId) {
        let seen = self.now() + self.dice.millis(1000);
        if let Some(wire) = self.wires.get_mut(&link) {
            wire.plane_open = false;
            wire.up.clear();
            if !wire.swallows {
                wire.node_sees = Some(seen);
            }
        }
    }

    pub(super) fn plane_dies(&mut self) {
        // What was committed last may not have left: its sends are lost.
        let away = self.dice.millis(15_000);
        self.world.sends.clear();
        for wire in self.wires.values_mut() {
            wire.plane_open = false;
            wire.up.clear();
            wire.down.clear();
            if !wire.swallows {
                wire.node_sees = Some(self.world.now + Duration::from_millis(100));
            }
        }
        self.waiting.clear();
        // A commit whose release never happened.
        if self.dice.one_in(2) {
            let (_, id) = self.world.spawn(|_| {});
            self.world.sends.clear();
            assert!(!self.started_on.contains_key(&id));
        }
        self.world.crash(away);
        self.carry_out();
    }
}
