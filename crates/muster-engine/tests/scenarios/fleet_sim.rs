//! A seeded world of many nodes: daemons that really run and kill workers, links that delay, cut
//! and swallow, planes and daemons that die and come back, machines that are started anew. Proves
//! that no live worker is ever shown dead, that none runs on two nodes, and that after the faults
//! every dead one is found in bounded time.
//!
//! A failing seed is named; `MUSTER_SEED=n` runs it alone. Time is virtual.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use muster_engine::Limits;
use muster_engine::event::Waiter;
use muster_engine::fleet::effect::*;
use muster_engine::fleet::event::*;
use muster_wire::fleet::frame::{SpawnOutput, WorkerReport, roster_digest};
use muster_wire::fleet::*;
use muster_wire::{NodeId, Timestamp, WorkerId};

use crate::machine::code;
use crate::world::World;

const STEP: Duration = Duration::from_millis(500);
const BEAT: Duration = Duration::from_secs(5);
const ACK_DEADLINE: Duration = Duration::from_secs(15);
const INVENTORY_EVERY: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(10);
/// How long the faults last.
const CHAOS: Duration = Duration::from_secs(420);
/// How long everything may take to be right again: a start without an answer, a grace, and three
/// inventories.
const HEALED_WITHIN: Duration = Duration::from_secs(240);

/// Random numbers that a seed fixes.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    fn millis(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.roll(most))
    }
}

/// What a node says.
enum Up {
    Hello,
    Beat { count: u32, digest: String },
    Inventory(Vec<WorkerReport>),
    Seen(WorkerReport),
    Exited(Told),
    Started(WorkerId, SpawnOutput),
    Released(WorkerId, Result<ExitReport, String>),
    Reply,
}

/// What the plane says.
enum Down {
    Acknowledged,
    Verdicts(Vec<String>),
    ExitTaken(WorkerId, u32),
    Start(WorkerId, RestartMode),
    Release(WorkerId),
    Ask,
}

#[derive(Clone)]
struct Told {
    worker: WorkerId,
    restarts: u32,
    exit: ExitReport,
    next_start_at: Option<Timestamp>,
}

/// A connection: in order, with delays, until it is cut or swallows everything.
struct Wire {
    node: usize,
    up: VecDeque<(Timestamp, Up)>,
    down: VecDeque<(Timestamp, Down)>,
    swallows: bool,
    node_open: bool,
    plane_open: bool,
    /// When each side sees that the other has closed it.
    plane_sees: Option<Timestamp>,
    node_sees: Option<Timestamp>,
}

#[derive(Clone)]
struct Process {
    restarts: u32,
    mode: RestartMode,
    /// It exited, and is started again then.
    again_at: Option<Timestamp>,
}

/// A machine, its daemon and what it runs.
struct Host {
    id: NodeId,
    name: String,
    epoch: u32,
    runs: BTreeMap<WorkerId, Process>,
    ended: BTreeMap<WorkerId, ExitReport>,
    outbox: Vec<Told>,
    up: bool,
    up_at: Timestamp,
    link: Option<LinkId>,
    /// Until when nothing gets through to it.
    cut_until: Timestamp,
    connect_at: Timestamp,
    acknowledged_at: Timestamp,
    beat_at: Timestamp,
    inventory_at: Timestamp,
    told_at: Timestamp,
}

struct Sim {
    seed: u64,
    dice: Dice,
    world: World,
    hosts: Vec<Host>,
    wires: BTreeMap<LinkId, Wire>,
    links: u64,
    waiting: BTreeSet<Waiter>,
    /// On which host each worker was started.
    started_on: BTreeMap<WorkerId, usize>,
    /// Workers that somebody wants ended.
    unwanted: BTreeSet<WorkerId>,
    calm: bool,
}

impl Sim {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9));
        let mut world = World::new(Limits::default());
        let count = 2 + dice.roll(9) as usize;
        let hosts = (0..count)
            .map(|n| {
                let machine = crate::machine::Machine::enrolled(&mut world, &format!("n{n}"));
                Host {
                    id: machine.id,
                    name: machine.name,
                    epoch: 1,
                    runs: BTreeMap::new(),
                    ended: BTreeMap::new(),
                    outbox: Vec::new(),
                    up: true,
                    up_at: world.now,
                    link: None,
                    cut_until: world.now,
                    connect_at: world.now + dice.millis(3000),
                    acknowledged_at: world.now,
                    beat_at: world.now,
                    inventory_at: world.now,
                    told_at: world.now,
                }
            })
            .collect();
        Self {
            seed,
            dice,
            world,
            hosts,
            wires: BTreeMap::new(),
            links: 0,
            waiting: BTreeSet::new(),
            started_on: BTreeMap::new(),
            unwanted: BTreeSet::new(),
            calm: false,
        }
    }

    fn now(&self) -> Timestamp {
        self.world.now
    }

    fn say(&mut self, host: usize, what: Up) {
        let delay = self.dice.millis(if self.calm { 50 } else { 1500 });
        let at = self.now() + delay;
        if let Some(wire) = self.hosts[host].link.and_then(|id| self.wires.get_mut(&id)) {
            let at = wire.up.back().map_or(at, |(last, _)| at.max(*last));
            wire.up.push_back((at, what));
        }
    }

    fn tell(&mut self, link: LinkId, what: Down) {
        let delay = self.dice.millis(if self.calm { 50 } else { 1500 });
        let at = self.now() + delay;
        if let Some(wire) = self.wires.get_mut(&link).filter(|wire| wire.plane_open) {
            let at = wire.down.back().map_or(at, |(last, _)| at.max(*last));
            wire.down.push_back((at, what));
        }
    }

    fn report(id: &WorkerId, process: &Process) -> WorkerReport {
        WorkerReport {
            worker_id: id.as_str().into(),
            name: id.as_str().into(),
            state: if process.again_at.is_some() {
                WorkerState::Restarting
            } else {
                WorkerState::Running
            },
            pid: process.again_at.is_none().then_some(100 + process.restarts),
            started_at: None,
            restarts: process.restarts,
            next_start_at: process.again_at,
        }
    }

    // ---- the node's side ----

    fn host_moves(&mut self, n: usize) {
        let now = self.now();
        if !self.hosts[n].up {
            if now >= self.hosts[n].up_at {
                self.hosts[n].up = true;
                self.hosts[n].connect_at = now + self.dice.millis(2000);
            }
            return;
        }
        let due: Vec<WorkerId> = self.hosts[n]
            .runs
            .iter()
            .filter(|(_, p)| p.again_at.is_some_and(|at| at <= now))
            .map(|(id, _)| id.clone())
            .collect();
        for id in due {
            let process = self.hosts[n].runs.get_mut(&id).expect("it is there");
            process.again_at = None;
            process.restarts += 1;
            let report = Self::report(&id, process);
            self.say(n, Up::Seen(report));
        }
        match self.hosts[n].link {
            None if now >= self.hosts[n].connect_at => self.host_connects(n),
            None => {}
            Some(_) if now.since(self.hosts[n].acknowledged_at) > ACK_DEADLINE => {
                self.host_hangs_up(n);
            }
            Some(_) => self.host_speaks(n),
        }
    }

    fn host_connects(&mut self, n: usize) {
        self.links += 1;
        let id = LinkId(self.links);
        let now = self.now();
        let cut = now < self.hosts[n].cut_until;
        let swallows = !self.calm && (cut || self.dice.one_in(12));
        self.wires.insert(
            id,
            Wire {
                node: n,
                up: VecDeque::new(),
                down: VecDeque::new(),
                swallows,
                node_open: true,
                plane_open: true,
                plane_sees: None,
                node_sees: None,
            },
        );
        let host = &mut self.hosts[n];
        host.link = Some(id);
        host.acknowledged_at = now;
        host.beat_at = now;
        host.inventory_at = now;
        host.told_at = now;
        self.say(n, Up::Hello);
    }

    fn host_hangs_up(&mut self, n: usize) {
        let now = self.now();
        let (seen, again) = (self.dice.millis(2000), self.dice.millis(9000));
        if let Some(id) = self.hosts[n].link.take()
            && let Some(wire) = self.wires.get_mut(&id)
        {
            wire.node_open = false;
            wire.down.clear();
            // What is swallowed is seen by a time-out alone.
            let late = if wire.swallows {
                Duration::from_secs(40)
            } else {
                seen
            };
            wire.plane_sees = Some(now + late);
        }
        self.hosts[n].connect_at = now + Duration::from_secs(1) + again;
    }

    fn host_speaks(&mut self, n: usize) {
        let now = self.now();
        if now >= self.hosts[n].told_at {
            self.hosts[n].told_at = now + AGAIN;
            for told in self.hosts[n].outbox.clone() {
                self.say(n, Up::Exited(told));
            }
        }
        if now >= self.hosts[n].inventory_at {
            self.hosts[n].inventory_at = now + INVENTORY_EVERY;
            let runs = self.hosts[n].runs.iter();
            let reports = runs.map(|(id, p)| Self::report(id, p)).collect();
            self.say(n, Up::Inventory(reports));
        }
        if now >= self.hosts[n].beat_at {
            self.hosts[n].beat_at = now + BEAT;
            let runs = &self.hosts[n].runs;
            let beat = Up::Beat {
                count: u32::try_from(runs.len()).expect("few"),
                digest: roster_digest(runs.keys().map(WorkerId::as_str)),
            };
            self.say(n, beat);
        }
    }

    fn host_hears(&mut self, n: usize, what: Down) {
        let now = self.now();
        match what {
            Down::Acknowledged => self.hosts[n].acknowledged_at = now,
            Down::ExitTaken(worker, restarts) => {
                let outbox = &mut self.hosts[n].outbox;
                outbox.retain(|told| told.worker != worker || told.restarts != restarts);
            }
            Down::Verdicts(unwanted) => {
                for id in unwanted {
                    self.host_kills(n, &WorkerId::trusted(id), 143, false);
                }
            }
            Down::Ask => {
                self.say(n, Up::Reply);
                let runs = self.hosts[n].runs.iter();
                let reports = runs.map(|(id, p)| Self::report(id, p)).collect();
                self.say(n, Up::Inventory(reports));
            }
            Down::Start(id, mode) => {
                let answer = self.host_starts(n, &id, mode);
                self.say(n, Up::Started(id, answer));
            }
            Down::Release(id) => {
                let outcome = if self.hosts[n].runs.contains_key(&id) {
                    self.host_kills(n, &id, 143, false);
                    Ok(code(143))
                } else {
                    match self.hosts[n].ended.get(&id) {
                        Some(exit) => Ok(exit.clone()),
                        None => Err("there is no such worker".to_owned()),
                    }
                };
                self.say(n, Up::Released(id, outcome));
            }
        }
    }

    fn host_starts(&mut self, n: usize, id: &WorkerId, mode: RestartMode) -> SpawnOutput {
        let pid = |process: &Process| SpawnOutput::Started {
            pid: Some(100 + process.restarts),
            started_at: None,
        };
        if let Some(process) = self.hosts[n].runs.get(id) {
            return pid(process);
        }
        if let Some(exit) = self.hosts[n].ended.get(id) {
            return SpawnOutput::Exited { exit: exit.clone() };
        }
        let before = self.started_on.insert(id.clone(), n);
        assert!(
            before.is_none_or(|before| before == n),
            "seed {}: {id} was started on two nodes",
            self.seed
        );
        if self.dice.one_in(10) {
            self.hosts[n].ended.insert(id.clone(), code(2));
            return SpawnOutput::Exited { exit: code(2) };
        }
        let process = Process {
            restarts: 0,
            mode,
            again_at: None,
        };
        let answer = pid(&process);
        self.hosts[n].runs.insert(id.clone(), process);
        answer
    }

    /// A process ends, and its holder writes that down.
    fn host_kills(&mut self, n: usize, id: &WorkerId, status: i32, restarts: bool) {
        let now = self.now();
        let Some(process) = self.hosts[n].runs.get_mut(id) else {
            return;
        };
        if process.again_at.is_some() && restarts {
            return;
        }
        let again =
            (restarts && process.mode != RestartMode::Never).then(|| now + Duration::from_secs(2));
        let told = Told {
            worker: id.clone(),
            restarts: process.restarts,
            exit: code(status),
            next_start_at: again,
        };
        process.again_at = again;
        if again.is_none() {
            self.hosts[n].runs.remove(id);
            self.hosts[n].ended.insert(id.clone(), code(status));
        }
        let outbox = &mut self.hosts[n].outbox;
        outbox.retain(|old| old.worker != told.worker || old.restarts != told.restarts);
        outbox.push(told.clone());
        if self.hosts[n].up {
            self.say(n, Up::Exited(told));
        }
    }

    // ---- the plane's side ----

    fn plane_hears(&mut self, link: LinkId, n: usize, what: Up) {
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

    fn event(&mut self, event: FleetEvent) {
        self.world.fleet(event);
        self.carry_out();
    }

    fn carry_out(&mut self) {
        for send in self.world.fleet_sends() {
            match send {
                FleetSend::Start { link, worker, .. } => {
                    self.tell(link, Down::Start(worker.id, worker.restart.mode));
                }
                FleetSend::Release { link, worker, .. } => self.tell(link, Down::Release(worker)),
                FleetSend::Ask { link, .. } => self.tell(link, Down::Ask),
                FleetSend::Close { link, .. } => self.plane_hangs_up(link),
                FleetSend::RevokeKey { .. } => {}
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

    /// Frames that are due arrive; ends that are due are seen.
    fn deliver(&mut self) {
        let now = self.now();
        let links: Vec<LinkId> = self.wires.keys().copied().collect();
        for link in links {
            while let Some(wire) = self.wires.get_mut(&link) {
                if wire.swallows {
                    wire.up.clear();
                    wire.down.clear();
                    break;
                }
                let (node, plane_open, node_open) = (wire.node, wire.plane_open, wire.node_open);
                if wire.up.front().is_some_and(|(at, _)| *at <= now) {
                    let (_, what) = wire.up.pop_front().expect("it is there");
                    if plane_open {
                        self.plane_hears(link, node, what);
                    }
                } else if wire.down.front().is_some_and(|(at, _)| *at <= now) {
                    let (_, what) = wire.down.pop_front().expect("it is there");
                    if node_open && self.hosts[node].up {
                        self.host_hears(node, what);
                    }
                } else {
                    break;
                }
            }
            let Some(wire) = self.wires.get_mut(&link) else {
                continue;
            };
            let node = wire.node;
            // A close comes behind what was sent before it.
            let plane_sees = wire.plane_sees.is_some_and(|at| at <= now) && wire.up.is_empty();
            let node_sees = wire.node_sees.is_some_and(|at| at <= now);
            if plane_sees && wire.plane_open {
                wire.plane_open = false;
                let event = FleetEvent::LinkClosed {
                    node: self.hosts[node].id.clone(),
                    link,
                    why: "closed by the peer".into(),
                };
                self.event(event);
            }
            if node_sees && self.hosts[node].link == Some(link) {
                self.host_hangs_up(node);
            }
            let over = |wire: &Wire| !wire.plane_open && !wire.node_open;
            if self.wires.get(&link).is_some_and(over) {
                self.wires.remove(&link);
            }
        }
    }

    // ---- what goes wrong, and what people want ----

    fn something_happens(&mut self) {
        let n = self.dice.roll(self.hosts.len() as u64) as usize;
        match self.dice.roll(100) {
            0..=29 => self.somebody_wants_a_worker(n),
            30..=39 => self.somebody_wants_one_ended(),
            40..=59 => {
                let ids: Vec<WorkerId> = self.hosts[n].runs.keys().cloned().collect();
                if !ids.is_empty() {
                    let id = &ids[self.dice.roll(ids.len() as u64) as usize];
                    self.host_kills(n, id, 1, true);
                }
            }
            60..=63 => {
                // It is gone, and nobody wrote it down.
                if let Some((id, _)) = self.hosts[n].runs.pop_first() {
                    self.hosts[n].ended.insert(id, ExitReport::default());
                }
            }
            64..=71 => {
                if self.hosts[n].link.is_some() {
                    self.host_hangs_up(n);
                }
            }
            72..=79 => {
                let wait = self.dice.millis(150_000);
                self.cut_off(n, wait);
            }
            80..=86 => {
                // The daemon is killed, or upgraded: what it runs goes on.
                self.host_hangs_up(n);
                self.hosts[n].up = false;
                self.hosts[n].up_at = self.now() + self.dice.millis(20_000);
            }
            87..=89 => {
                // The machine is started anew: everything on it is gone.
                self.host_hangs_up(n);
                let up_at = self.now() + self.dice.millis(60_000);
                let host = &mut self.hosts[n];
                host.runs.clear();
                host.ended.clear();
                host.outbox.clear();
                host.epoch += 1;
                host.up = false;
                host.up_at = up_at;
            }
            90..=93 => self.plane_dies(),
            94..=95 => {
                // Half of the fleet is cut off at once.
                let wait = self.dice.millis(100_000);
                for n in 0..self.hosts.len() / 2 + 1 {
                    self.cut_off(n, wait);
                }
            }
            96..=97 => {
                let by = self.dice.millis(20_000);
                self.world.now = self.world.now + by;
                self.event(FleetEvent::WasLate { by });
            }
            _ => {
                let wishes = [NodeWish::Active, NodeWish::Cordoned, NodeWish::Active];
                let wish = wishes[self.dice.roll(3) as usize];
                let name = self.hosts[n].name.clone();
                self.world.want(&name, wish);
                self.carry_out();
            }
        }
    }

    /// Nothing gets through to a host for a while: sockets stay open, and swallow.
    fn cut_off(&mut self, n: usize, wait: Duration) {
        self.hosts[n].cut_until = self.now() + wait;
        let link = self.hosts[n].link;
        if let Some(wire) = link.and_then(|id| self.wires.get_mut(&id)) {
            wire.swallows = true;
        }
    }

    fn plane_dies(&mut self) {
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

    fn somebody_wants_a_worker(&mut self, n: usize) {
        let name = self.hosts[n].name.clone();
        let (targeted, queued) = (self.dice.one_in(2), self.dice.one_in(3));
        let mode = [RestartMode::Never, RestartMode::OnFailure][self.dice.roll(2) as usize];
        let key = self.dice.roll(40);
        let (waiter, _) = self.world.spawn(|ask| {
            ask.target.node = targeted.then(|| name.as_str().into());
            ask.restart.mode = mode;
            ask.queue_for = queued.then_some(Duration::from_secs(60));
            ask.idempotency_key = (key < 10).then(|| format!("owner\0{key}").into());
        });
        self.waiting.insert(waiter);
        self.carry_out();
    }

    fn somebody_wants_one_ended(&mut self) {
        let living = self.world.rows.workers.values();
        let living: Vec<WorkerId> = living
            .filter(|row| row.ended.is_none())
            .map(|row| row.id.clone())
            .collect();
        if living.is_empty() {
            return;
        }
        let id = living[self.dice.roll(living.len() as u64) as usize].clone();
        let waiter = self.world.release(&id, false);
        self.waiting.insert(waiter);
        self.unwanted.insert(id);
        self.carry_out();
    }

    // ---- what must hold ----

    /// No live worker is shown dead, ever.
    fn nobody_alive_is_shown_dead(&mut self) {
        let alive: Vec<(usize, WorkerId)> = self
            .hosts
            .iter()
            .enumerate()
            .flat_map(|(n, host)| host.runs.keys().map(move |id| (n, id.clone())))
            .collect();
        for (n, id) in alive {
            let view = self.world.worker(&id);
            let dead = matches!(view.state, WorkerState::Exited | WorkerState::Lost);
            assert!(
                !dead,
                "seed {}: {id} runs on n{n} and is shown {}: {}",
                self.seed, view.state, view.evidence
            );
        }
    }

    fn step(&mut self) {
        self.world.pass(STEP);
        self.carry_out();
        self.deliver();
        for n in 0..self.hosts.len() {
            self.host_moves(n);
        }
        let answered: Vec<Waiter> = self
            .waiting
            .iter()
            .filter(|waiter| self.world.is_answered(**waiter))
            .copied()
            .collect();
        for waiter in answered {
            self.waiting.remove(&waiter);
            self.world.fleet_reply(waiter);
        }
        self.nobody_alive_is_shown_dead();
    }

    fn run(mut self) {
        let until = self.now() + CHAOS;
        while self.now() < until {
            self.step();
            if self.dice.one_in(3) {
                self.something_happens();
                self.nobody_alive_is_shown_dead();
            }
        }
        self.calm = true;
        for n in 0..self.hosts.len() {
            let name = self.hosts[n].name.clone();
            self.world.want(&name, NodeWish::Active);
            self.hosts[n].up_at = self.now();
            let link = self.hosts[n].link;
            if link.is_some_and(|id| self.wires.get(&id).is_some_and(|wire| wire.swallows)) {
                self.host_hangs_up(n);
            }
        }
        self.carry_out();
        let until = self.now() + HEALED_WITHIN;
        while self.now() < until {
            self.step();
        }
        self.everything_is_as_it_is_shown();
    }

    /// After the faults: every dead one was found, every unwanted one has ended, nobody waits.
    fn everything_is_as_it_is_shown(&mut self) {
        let seed = self.seed;
        for n in 0..self.hosts.len() {
            let view = self.world.node(&self.hosts[n].name.clone());
            assert_eq!(
                view.state,
                NodeState::Online,
                "seed {seed}: n{n}: {}",
                view.evidence
            );
            let runs = u32::try_from(self.hosts[n].runs.len()).expect("few");
            assert_eq!(view.workers.value, Some(runs), "seed {seed}: n{n}");
            assert!(
                !view.drift,
                "seed {seed}: n{n} drifts: {:?}",
                self.world.drifts()
            );
            assert!(
                self.hosts[n].outbox.is_empty(),
                "seed {seed}: n{n} has news left"
            );
        }
        let ids: Vec<WorkerId> = self.world.rows.workers.keys().cloned().collect();
        for id in ids {
            let runs = self.hosts.iter().any(|host| host.runs.contains_key(&id));
            let view = self.world.worker(&id);
            let shown = match view.state {
                WorkerState::Exited => false,
                WorkerState::Starting | WorkerState::Running | WorkerState::Restarting => true,
                WorkerState::Queued | WorkerState::Lost | WorkerState::Unknown => {
                    panic!("seed {seed}: {id} is {}: {}", view.state, view.evidence)
                }
            };
            assert_eq!(
                shown, runs,
                "seed {seed}: {id} is {}: {}",
                view.state, view.evidence
            );
            assert!(
                !(runs && self.unwanted.contains(&id)),
                "seed {seed}: {id} was to be ended and runs"
            );
            let stored = &self.world.rows.workers[&id];
            assert_eq!(
                stored.ended.is_none(),
                runs,
                "seed {seed}: {id} is stored otherwise"
            );
        }
        assert!(self.waiting.is_empty(), "seed {seed}: somebody still waits");
        assert_eq!(self.world.summary().doubt, None, "seed {seed}");
    }
}

#[test]
fn no_live_worker_is_shown_dead_and_every_dead_one_is_found() {
    let seeds = match std::env::var("MUSTER_SEED") {
        Ok(seed) => {
            let seed: u64 = seed.parse().expect("MUSTER_SEED is a number");
            seed..=seed
        }
        Err(_) => 1..=50,
    };
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| Sim::new(seed).run());
        if let Err(panic) = outcome {
            eprintln!("seed {seed} failed; MUSTER_SEED={seed} runs it alone");
            std::panic::resume_unwind(panic);
        }
    }
}
