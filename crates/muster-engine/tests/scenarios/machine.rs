//! A machine of the stories about the fleet: enrolled, with a link that the test opens and
//! closes, and workers that run when the test says so. Decides nothing by itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use muster_engine::event::Question;
use muster_engine::event::Waiter;
use muster_engine::fleet::effect::*;
use muster_engine::fleet::event::*;
use muster_engine::fleet::row::Target;
use muster_engine::row::{EventKind, Payload};
use muster_engine::{Event, Reply, Send};
use muster_wire::fleet::frame::{InventoryAnswer, SpawnOutput, WorkerReport, roster_digest};
use muster_wire::fleet::*;
use muster_wire::{NodeId, WorkerId};

use crate::world::{SECOND, World};

pub(crate) const BEAT: Duration = Duration::from_secs(5);

/// A machine.
pub(crate) struct Machine {
    pub(crate) id: NodeId,
    pub(crate) name: String,
    pub(crate) kind: NodeKind,
    pub(crate) labels: Vec<Arc<str>>,
    /// What it says that it can do.
    pub(crate) offers: Vec<Arc<str>>,
    pub(crate) max_workers: u32,
    pub(crate) epoch: Option<Arc<str>>,
    pub(crate) proves: bool,
    pub(crate) load: Option<f64>,
    pub(crate) link: Option<LinkId>,
    pub(crate) runs: BTreeSet<WorkerId>,
}

impl Machine {
    /// Enrolled, and never heard.
    pub(crate) fn enrolled(world: &mut World, name: &str) -> Self {
        Self::enrolled_as(world, name, NodeKind::Daemon)
    }

    pub(crate) fn enrolled_as(world: &mut World, name: &str, kind: NodeKind) -> Self {
        let id = NodeId::trusted(format!("node_{name}"));
        let waiter = world.waiter();
        world.fleet(FleetEvent::Enrolled(Box::new(Enrolment {
            waiter,
            id: id.clone(),
            name: name.into(),
            kind,
            labels: Vec::new(),
            max_workers: 0,
            principal: "owner".into(),
        })));
        assert!(matches!(world.fleet_reply(waiter), FleetReply::Enrolled(_)));
        Self {
            id,
            name: name.into(),
            kind,
            labels: Vec::new(),
            offers: match kind {
                NodeKind::Daemon => vec!["spawn".into(), "release".into(), "restart".into()],
                NodeKind::Relay => Vec::new(),
            },
            max_workers: 0,
            epoch: (kind == NodeKind::Daemon).then(|| "e1".into()),
            proves: true,
            load: None,
            link: None,
            runs: BTreeSet::new(),
        }
    }

    /// Enrolled, connected and online.
    pub(crate) fn online(world: &mut World, name: &str) -> Self {
        Self::online_with(world, name, |_| {})
    }

    pub(crate) fn online_with(
        world: &mut World,
        name: &str,
        change: impl FnOnce(&mut Self),
    ) -> Self {
        let mut machine = Self::enrolled(world, name);
        change(&mut machine);
        machine.connect(world);
        machine.inventory(world);
        machine.beat(world);
        assert_eq!(world.node(name).state, NodeState::Online);
        machine
    }

    /// Enrolled, connected and online with so many workers that it had placed here.
    pub(crate) fn with_workers(world: &mut World, name: &str, count: usize) -> Self {
        let mut machine = Self::online(world, name);
        for _ in 0..count {
            machine.place(world);
        }
        machine.inventory(world);
        machine.beat(world);
        machine
    }

    /// Places a worker here and lets it start.
    pub(crate) fn place(&mut self, world: &mut World) -> WorkerId {
        let name = self.name.clone();
        let (waiter, id) = world.spawn(|ask| ask.target.node = Some(name.as_str().into()));
        self.start(world, &id);
        assert!(matches!(
            world.fleet_reply(waiter),
            FleetReply::Placed { .. }
        ));
        id
    }

    /// Starts a worker that it was told to start, and answers.
    pub(crate) fn start(&mut self, world: &mut World, id: &WorkerId) {
        self.runs.insert(id.clone());
        world.fleet(FleetEvent::StartAnswered {
            node: self.id.clone(),
            worker: id.clone(),
            outcome: Ok(Box::new(SpawnOutput::Started {
                pid: Some(4000),
                started_at: Some(world.now),
            })),
        });
    }

    pub(crate) fn beat_interval(&self) -> Duration {
        match self.kind {
            NodeKind::Daemon => BEAT,
            NodeKind::Relay => Duration::from_secs(12),
        }
    }

    /// Opens a link, newer than every other one, and says who it is.
    pub(crate) fn connect(&mut self, world: &mut World) -> FleetReply {
        world.names += 1;
        let link = LinkId(world.names);
        let waiter = world.waiter();
        world.fleet(FleetEvent::LinkOpened(Box::new(Hello {
            waiter,
            node: self.id.clone(),
            link,
            name: self.name.as_str().into(),
            kind: self.kind,
            labels: self.labels.clone(),
            max_workers: self.max_workers,
            capabilities: self.offers.clone(),
            version: "1".into(),
            host: None,
            epoch: self.epoch.clone(),
            beat_interval: self.beat_interval(),
            proves: self.proves,
        })));
        let reply = world.fleet_reply(waiter);
        if matches!(reply, FleetReply::LinkTaken) {
            self.link = Some(link);
        }
        reply
    }

    pub(crate) fn disconnect(&mut self, world: &mut World, why: &str) {
        if let Some(link) = self.link.take() {
            world.fleet(FleetEvent::LinkClosed {
                node: self.id.clone(),
                link,
                why: why.into(),
            });
        }
    }

    pub(crate) fn beat(&self, world: &mut World) {
        if let Some(link) = self.link {
            self.beat_over(world, link);
        }
    }

    pub(crate) fn beat_over(&self, world: &mut World, link: LinkId) {
        let ids = self.runs.iter().map(WorkerId::as_str);
        let daemon = self.kind == NodeKind::Daemon;
        let digest = daemon.then(|| roster_digest(ids.clone()).into());
        let names = (!daemon).then(|| ids.map(Into::into).collect());
        world.fleet(FleetEvent::Beat(Box::new(Beat {
            node: self.id.clone(),
            link,
            count: u32::try_from(self.runs.len()).expect("few"),
            names,
            digest,
            load: self.load,
            max_workers: None,
            at: world.now,
        })));
    }

    pub(crate) fn report(&self, id: &WorkerId) -> WorkerReport {
        let daemon = self.kind == NodeKind::Daemon;
        WorkerReport {
            worker_id: id.as_str().into(),
            name: id.as_str().into(),
            state: WorkerState::Running,
            pid: daemon.then_some(4000),
            started_at: None,
            restarts: 0,
            next_start_at: None,
        }
    }

    pub(crate) fn inventory(&self, world: &mut World) -> InventoryAnswer {
        let reports = self.runs.iter().map(|id| self.report(id)).collect();
        self.inventory_of(world, reports)
    }

    pub(crate) fn inventory_of(
        &self,
        world: &mut World,
        workers: Vec<WorkerReport>,
    ) -> InventoryAnswer {
        let waiter = world.waiter();
        world.fleet(FleetEvent::Inventory(Box::new(Inventory {
            node: self.id.clone(),
            link: self.link.expect("a link"),
            workers,
            waiter: Some(waiter),
        })));
        match world.fleet_reply(waiter) {
            FleetReply::Inventory(answer) => answer,
            other => panic!("no answer to an inventory: {other:?}"),
        }
    }

    /// A process of a worker exits, and the machine says so.
    pub(crate) fn exits(
        &mut self,
        world: &mut World,
        id: &WorkerId,
        restarts: u32,
        exit: ExitReport,
        again_in: Option<Duration>,
    ) -> FleetReply {
        let waiter = world.waiter();
        if again_in.is_none() {
            self.runs.remove(id);
        }
        world.fleet(FleetEvent::WorkerExited {
            node: self.id.clone(),
            link: self.link.expect("a link"),
            worker: id.clone(),
            restarts,
            exit: Box::new(exit),
            next_start_at: again_in.map(|wait| world.now + wait),
            waiter: Some(waiter),
        });
        world.fleet_reply(waiter)
    }
}

/// An id as the plane mints them.
pub(crate) fn minted(n: u64) -> WorkerId {
    WorkerId::trusted(format!("wrk_{n:026}"))
}

pub(crate) fn code(code: i32) -> ExitReport {
    ExitReport {
        code: Some(code),
        at: Some(muster_wire::Timestamp(1)),
        output: "the last line".into(),
        ..ExitReport::default()
    }
}

impl World {
    pub(crate) fn fleet(&mut self, event: FleetEvent) {
        self.step(Event::Fleet(Box::new(event)));
    }

    pub(crate) fn fleet_reply(&self, waiter: Waiter) -> FleetReply {
        match self.reply(waiter) {
            Reply::Fleet(reply) => *reply,
            other => panic!("not a reply of the fleet: {other:?}"),
        }
    }

    pub(crate) fn ask_fleet(&mut self, question: FleetQuestion) -> FleetReply {
        let waiter = self.waiter();
        self.step(Event::Asked {
            question: Question::Fleet(question),
            waiter,
        });
        self.fleet_reply(waiter)
    }

    pub(crate) fn node(&mut self, name: &str) -> NodeView {
        match self.ask_fleet(FleetQuestion::Node(name.into())) {
            FleetReply::Node(view) => *view,
            other => panic!("no node {name}: {other:?}"),
        }
    }

    pub(crate) fn worker(&mut self, id: &WorkerId) -> WorkerView {
        match self.ask_fleet(FleetQuestion::Worker(id.as_str().into())) {
            FleetReply::Worker(view) => *view,
            other => panic!("no worker {id}: {other:?}"),
        }
    }

    pub(crate) fn summary(&mut self) -> FleetSummary {
        match self.ask_fleet(FleetQuestion::Summary) {
            FleetReply::Summary(summary) => *summary,
            other => panic!("no summary: {other:?}"),
        }
    }

    pub(crate) fn drifts(&mut self) -> Vec<DriftView> {
        match self.ask_fleet(FleetQuestion::Drift) {
            FleetReply::Drift(drifts) => drifts,
            other => panic!("no drifts: {other:?}"),
        }
    }

    /// Asks for a worker and returns who is answered, and the id it gets.
    pub(crate) fn spawn(&mut self, change: impl FnOnce(&mut SpawnAsk)) -> (Waiter, WorkerId) {
        self.names += 1;
        let id = WorkerId::trusted(format!("wrk_{}", self.names));
        let waiter = self.waiter();
        let mut ask = SpawnAsk {
            waiter,
            worker: id.clone(),
            name: id.as_str().into(),
            target: Target::default(),
            spec: Payload(bytes::Bytes::from_static(b"sealed")),
            command: "sleep 100".into(),
            io: WorkerIo::Pty,
            restart: RestartPolicy::default(),
            labels: Vec::new(),
            principal: "owner".into(),
            idempotency_key: None,
            body_hash: [1; 16],
            queue_for: None,
        };
        change(&mut ask);
        self.fleet(FleetEvent::SpawnAsked(Box::new(ask)));
        (waiter, id)
    }

    pub(crate) fn spawn_refused(&mut self, change: impl FnOnce(&mut SpawnAsk)) -> FleetRefusal {
        let (waiter, id) = self.spawn(change);
        assert!(!self.rows.workers.contains_key(&id), "a refusal left a row");
        match self.fleet_reply(waiter) {
            FleetReply::Refused(refusal) => refusal,
            other => panic!("not refused: {other:?}"),
        }
    }

    pub(crate) fn release(&mut self, id: &WorkerId, force: bool) -> Waiter {
        let waiter = self.waiter();
        self.fleet(FleetEvent::ReleaseAsked {
            waiter,
            worker: id.clone(),
            grace: None,
            force,
            by: "ada".into(),
            reason: None,
            known: None,
        });
        waiter
    }

    pub(crate) fn want(&mut self, node: &str, wish: NodeWish) -> FleetReply {
        let waiter = self.waiter();
        self.fleet(FleetEvent::NodeWished {
            waiter,
            node: node.into(),
            wish,
            by: "ada".into(),
            reason: Some("new disk".into()),
        });
        self.fleet_reply(waiter)
    }

    pub(crate) fn declare_lost(&mut self, node: &str) -> FleetReply {
        let waiter = self.waiter();
        self.fleet(FleetEvent::NodeDeclaredLost {
            waiter,
            node: node.into(),
            by: "ada".into(),
            reason: Some("it burnt".into()),
        });
        self.fleet_reply(waiter)
    }

    /// What went out to nodes since the last look.
    pub(crate) fn fleet_sends(&mut self) -> Vec<FleetSend> {
        let sends = std::mem::take(&mut self.sends);
        let (fleet, rest): (Vec<Send>, Vec<Send>) = sends
            .into_iter()
            .partition(|send| matches!(send, Send::Fleet(_)));
        self.sends = rest;
        fleet
            .into_iter()
            .filter_map(|send| match send {
                Send::Fleet(send) => Some(*send),
                _ => None,
            })
            .collect()
    }

    /// Whether somebody is being asked for its health.
    pub(crate) fn probing(&self) -> bool {
        self.sends
            .iter()
            .any(|send| matches!(send, Send::Probe { .. }))
    }

    /// Answers every probe that is under way: nobody listens there.
    pub(crate) fn probe_refused(&mut self) {
        let sends = std::mem::take(&mut self.sends);
        for send in sends {
            match send {
                Send::Probe { key, .. } => self.step(Event::Probed {
                    key,
                    seen: muster_engine::event::Probe::Refused("connection refused".into()),
                }),
                other => self.sends.push(other),
            }
        }
    }

    /// Time passes while these machines beat, and tell their inventory each minute.
    pub(crate) fn pass_beating(&mut self, machines: &[&Machine], wait: Duration) {
        let until = self.now + wait;
        let mut seconds = 0u64;
        while self.now < until {
            self.pass(SECOND);
            seconds += 1;
            for machine in machines {
                if seconds.is_multiple_of(machine.beat_interval().as_secs()) {
                    machine.beat(self);
                }
                if seconds.is_multiple_of(60) && machine.link.is_some() {
                    machine.inventory(self);
                }
            }
        }
    }

    /// The texts of the events of a kind, in order.
    pub(crate) fn told(&self, kind: EventKind) -> Vec<String> {
        let lines = self.rows.events.iter().filter(|line| line.kind == kind);
        lines
            .filter_map(|line| line.text.as_deref().map(str::to_owned))
            .collect()
    }

    /// The states that a node was told to have, in order.
    pub(crate) fn node_states(&self, id: &NodeId) -> Vec<String> {
        let lines = self.rows.fleet_history.iter();
        lines
            .filter(|line| line.node.as_ref() == Some(id) && &*line.kind == "node.state")
            .filter_map(|line| line.to.as_deref().map(str::to_owned))
            .collect()
    }
}
