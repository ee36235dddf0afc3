//! One connection to the plane, from the dial to its end: registers, hands over exits, tells the
//! inventory, beats, and carries out what it is told. Never waits for a read or a write: those
//! have tasks of their own, and the deadline is looked at here.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::StreamExt as _;
use muster_wire::WorkerId;
use muster_wire::fleet::frame::{
    Capability, InventoryAnswer, LINK_CAPABILITY, LinkOffer, NodeFrame, PlaneFrame, Provider,
    WorkerReport, roster_digest, write_frame,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tracing::{debug, info, warn};

use super::Feeds;
use super::asked::{Asked, Waiting};
use super::board::{LinkState, Why};
use super::sleep::SleepWatch;
use super::watchdog::{Finding, Watchdog};
use super::writer;
use crate::daemon::Node;
use crate::supervise::WorkerNews;

/// Where nodes connect.
const PATH: &str = "/v1/node/ws";
/// Frames that wait to be written. When it is full the plane does not read, and the link ends.
const QUEUE: usize = 256;
/// Room in that queue without which no more results are taken.
const ROOM: usize = 64;
/// Requests of a kind that may wait for their answers; exits beyond stay in the outbox, changes
/// of workers beyond are told by an inventory.
const IN_FLIGHT: usize = 64;
/// The largest frame that is taken. A spec has its environment and arguments in it.
const FRAME_MAX: usize = 8 << 20;
/// How long an exit or an inventory may wait before it is told again.
const AGAIN: Duration = Duration::from_secs(30);
/// How long the exits of the outbox may hold the first inventory up.
const EXITS_FIRST: Duration = Duration::from_secs(10);
/// How long a goodbye may wait for its answer.
const GOODBYE: Duration = Duration::from_secs(2);

/// Why a connection is over, or never was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// The daemon stops.
    Stopped,
    /// Somebody asked for a new connection.
    Forced,
    /// The plane closed it.
    Closed { code: u16, words: String },
    /// The connection broke, or could not be opened.
    Broken(String),
    /// A deadline passed over an open socket.
    Unhealthy { reason: String, evidence: String },
    /// This machine or this process stood still.
    StoodStill(Duration),
    /// The plane does not take this node.
    Refused { code: String, message: String },
}

/// One connection.
pub(crate) struct Session<'a> {
    node: &'a Node,
    out: mpsc::Sender<Message>,
    waiting: Waiting,
    watchdog: Watchdog,
    registered_at: Option<Instant>,
    /// When the next inventory is due; `None` until the exits are out.
    inventory_at: Option<Instant>,
    inventoried: bool,
    ready: bool,
    beat: Duration,
    beat_changed: bool,
    stopping: Option<Instant>,
}

/// Opens a connection and keeps it until it ends.
pub(crate) async fn run(node: &Node, feeds: &mut Feeds) -> End {
    let timing = &node.settings.timing;
    let config = WebSocketConfig::default()
        .read_buffer_size(16 << 10)
        .write_buffer_size(0)
        .max_message_size(Some(FRAME_MAX))
        .max_frame_size(Some(FRAME_MAX));
    let token = node.identity().token;
    let dialled = tokio::select! {
        dialled = tokio::time::timeout(timing.connect, node.dialer.socket(PATH, &token, &[], config)) => dialled,
        () = node.reconnect.notified() => return End::Forced,
        _ = feeds.stop.wait_for(Option::is_some) => return End::Stopped,
    };
    let socket = match dialled {
        Ok(Ok(socket)) => socket,
        Ok(Err(error)) if error.is_refusal() => {
            return End::Refused {
                code: "unauthorised".into(),
                message: error.to_string(),
            };
        }
        Ok(Err(error)) => return End::Broken(error.to_string()),
        Err(_) => {
            return End::Broken(format!("no connection within {:?}", timing.connect));
        }
    };
    let (sink, stream) = socket.split();
    let (out, queue) = mpsc::channel(QUEUE);
    let (frames, heard) = mpsc::channel(QUEUE);
    // Both end with the set: what is still in the socket when a session ends concerns nobody.
    let mut tasks = JoinSet::new();
    tasks.spawn(writer::write(sink, queue, timing.write));
    tasks.spawn(writer::read(stream, frames));
    let mut session = Session {
        node,
        out,
        waiting: Waiting::default(),
        watchdog: Watchdog::new(timing.beat, timing.ack_beats, Instant::now()),
        registered_at: None,
        inventory_at: None,
        inventoried: false,
        ready: false,
        beat: timing.beat,
        beat_changed: false,
        stopping: None,
    };
    let end = session.keep(feeds, heard, &mut tasks).await;
    let end = end.err().unwrap_or(End::Stopped);
    if end == End::Stopped || end == End::Forced {
        drop(session);
        // The writer says goodbye to the socket, within a second.
        let _ = tokio::time::timeout(Duration::from_secs(1), tasks.join_next()).await;
    }
    end
}

impl Session<'_> {
    async fn keep(
        &mut self,
        feeds: &mut Feeds,
        mut heard: mpsc::Receiver<PlaneFrame>,
        tasks: &mut JoinSet<End>,
    ) -> Result<(), End> {
        let board = &self.node.board;
        board.enter(
            LinkState::Connected,
            Why::new(
                "the socket is open",
                self.node.dialer.address().to_string(),
                "the node registers",
            ),
        );
        let opened = Instant::now();
        self.register()?;
        // News of a time without a link are old: the outbox and the inventory have them all.
        while feeds.news.try_recv().is_ok() {}
        let mut slept = SleepWatch::new();
        let mut looks = interval(self.watchdog.look_every());
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut beats = interval(self.beat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let registered = self.registered_at.is_some();
            tokio::select! {
                biased;
                _ = looks.tick() => {
                    if let Some(slept) = slept.look() {
                        return Err(End::StoodStill(slept));
                    }
                    self.look(opened)?;
                }
                Ok(bye) = feeds.stop.wait_for(Option::is_some), if self.stopping.is_none() => {
                    let bye = bye.clone().unwrap_or_default();
                    self.goodbye(&bye)?;
                }
                () = self.node.reconnect.notified() => return Err(End::Forced),
                // After the goodbye it claims nothing more.
                _ = beats.tick(), if registered && self.stopping.is_none() => self.beat()?,
                Some(ended) = tasks.join_next() => {
                    // What was read before the end still counts: it may say why.
                    while let Ok(frame) = heard.try_recv() {
                        self.hear(frame)?;
                    }
                    return Err(ended.unwrap_or_else(|error| End::Broken(error.to_string())));
                }
                Some(frame) = feeds.results.recv(), if registered && self.out.capacity() > ROOM => {
                    // An exit that led to the result is told before it.
                    self.send_exits()?;
                    self.send(&frame)?;
                }
                Some(news) = feeds.news.recv(), if registered => self.tell(news)?,
                Some(frame) = heard.recv() => {
                    self.hear(frame)?;
                    if std::mem::take(&mut self.beat_changed) {
                        beats = interval(self.beat);
                        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
                        looks = interval(self.watchdog.look_every());
                        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                    }
                }
            }
        }
    }

    /// Looks at every deadline.
    fn look(&mut self, opened: Instant) -> Result<(), End> {
        let now = Instant::now();
        let timing = &self.node.settings.timing;
        match self.watchdog.look(now) {
            Finding::Fine => {}
            Finding::StoodStill(span) => return Err(End::StoodStill(span)),
            Finding::Overdue { seq, waited } => {
                let last = self.node.board.acknowledged_ago().map_or_else(
                    || "nothing was ever acknowledged".to_owned(),
                    |ago| format!("last acknowledgement {:.1} s ago", ago.as_secs_f64()),
                );
                return Err(End::Unhealthy {
                    reason: "the plane does not acknowledge".into(),
                    evidence: format!(
                        "beat {seq} has waited {:.1} s of {:.1} s, {} beats wait, {last}; the socket is open",
                        waited.as_secs_f64(),
                        self.watchdog.deadline().as_secs_f64(),
                        self.watchdog.unanswered(),
                    ),
                });
            }
        }
        if self.stopping.is_some_and(|until| now >= until) {
            return Err(End::Stopped);
        }
        let Some(registered_at) = self.registered_at else {
            if now.saturating_duration_since(opened) < timing.register {
                return Ok(());
            }
            return Err(End::Unhealthy {
                reason: "the plane does not answer the registration".into(),
                evidence: format!("no answer within {:?}; the socket is open", timing.register),
            });
        };
        for id in self.waiting.exits_after(AGAIN, now) {
            self.waiting.answered(&id);
        }
        self.send_exits()?;
        if self.inventory_at.is_none() && registered_at + EXITS_FIRST <= now {
            self.inventory_at = Some(now);
        }
        if self.waiting.drop_inventory_after(AGAIN, now) {
            warn!("the plane did not answer an inventory within 30 s; it is told again");
            self.inventory_at = Some(now);
        }
        self.inventory_if_due(now)
    }

    fn register(&mut self) -> Result<(), End> {
        let identity = self.node.identity();
        let settings = &self.node.settings;
        let offer = LinkOffer {
            epoch: self.node.supervisor.state().epoch().to_owned(),
            beat_ms: u64::try_from(settings.timing.beat.as_millis()).unwrap_or(u64::MAX),
            pid: std::process::id(),
            host: crate::enroll::host_name(),
        };
        let action = |name: &str| Capability {
            name: name.into(),
            kind: "action".into(),
            metadata: None,
        };
        let id = self.waiting.mint("register");
        self.ask(
            id.clone(),
            Asked::Register,
            &NodeFrame::Register {
                id: Some(id),
                name: identity.name,
                node_id: identity.node_id,
                provider: Some(Provider {
                    name: "muster".into(),
                    instance_id: muster_wire::mint("link"),
                }),
                capabilities: vec![
                    Capability {
                        name: LINK_CAPABILITY.into(),
                        kind: "capacity".into(),
                        metadata: serde_json::to_value(offer).ok(),
                    },
                    action("spawn"),
                    action("release"),
                    action("restart"),
                ],
                max_agents: settings.supervision.workers_max,
                tags: settings.labels.clone(),
                version: concat!("muster/", env!("CARGO_PKG_VERSION")).into(),
            },
        )
    }

    fn hear(&mut self, frame: PlaneFrame) -> Result<(), End> {
        match frame {
            PlaneFrame::Reply { id, data, .. } => {
                let Some(asked) = self.waiting.answered(&id) else {
                    debug!(%id, "an answer to nothing that was asked");
                    return Ok(());
                };
                self.answered(&id, asked, &data)
            }
            PlaneFrame::Error {
                id, code, message, ..
            } => self.refused(&id, code, message),
            PlaneFrame::ActionInvoke {
                invocation_id,
                action,
                input,
                ..
            } => {
                self.node.actions.invoke(invocation_id, &action, input);
                Ok(())
            }
            PlaneFrame::Ask { id } => {
                self.send(&NodeFrame::Reply { id })?;
                // Who asks is unsure of us: it is told what runs here, too.
                if self.inventoried {
                    self.inventory_at = Some(Instant::now());
                    self.inventory_if_due(Instant::now())?;
                }
                Ok(())
            }
            PlaneFrame::TunnelOpen { tunnel_id, port } => {
                self.node.tunnels.open(self.node, tunnel_id, port);
                Ok(())
            }
            PlaneFrame::Other => Ok(()),
        }
    }

    fn answered(&mut self, id: &str, asked: Asked, data: &Value) -> Result<(), End> {
        let now = Instant::now();
        self.node.board.acknowledged();
        match asked {
            Asked::Register => {
                self.registered_at = Some(now);
                self.keep_as_told(data, now);
                self.beat()?;
                self.send_exits()
            }
            Asked::Beat(seq) => {
                self.watchdog.acknowledged(seq, now);
                self.waiting.drop_beats_to(seq);
                Ok(())
            }
            Asked::Inventory => {
                self.verdicts(data);
                self.be_ready();
                Ok(())
            }
            Asked::Exited => {
                self.node.supervisor.acknowledged(id);
                self.send_exits()
            }
            Asked::Worker => Ok(()),
            Asked::Goodbye => Err(End::Stopped),
        }
    }

    /// The plane may say how often it wants a beat, and how many may go unanswered.
    fn keep_as_told(&mut self, data: &Value, now: Instant) {
        let timing = &self.node.settings.timing;
        let number = |key: &str| data.get(key).and_then(Value::as_u64);
        if let Some(millis) = number("beat_ms").or_else(|| number("heartbeat_ms")) {
            self.beat = Duration::from_millis(millis.clamp(50, 60_000));
        }
        let beats = number("ack_beats").and_then(|beats| u32::try_from(beats).ok());
        let beats = beats.map_or(timing.ack_beats, |beats| beats.clamp(2, 100));
        self.watchdog = Watchdog::new(self.beat, beats, now);
        self.beat_changed = true;
    }

    fn refused(&mut self, id: &str, code: String, message: String) -> Result<(), End> {
        match self.waiting.answered(id) {
            Some(Asked::Register | Asked::Beat(_)) => Err(End::Refused { code, message }),
            Some(Asked::Goodbye) => Err(End::Stopped),
            Some(Asked::Inventory) => {
                warn!(%code, said = %message, "the plane refused the inventory; it is told again");
                self.inventory_at = Some(Instant::now() + AGAIN);
                Ok(())
            }
            Some(asked @ (Asked::Exited | Asked::Worker)) => {
                warn!(?asked, %id, %code, said = %message, "the plane refused what it was told");
                Ok(())
            }
            None => {
                warn!(%code, said = %message, "the plane says that something went wrong");
                Ok(())
            }
        }
    }

    fn be_ready(&mut self) {
        if std::mem::replace(&mut self.ready, true) {
            return;
        }
        let workers = self.node.supervisor.roster().len();
        self.node.board.enter(
            LinkState::Ready,
            Why::new(
                "the plane acknowledged the inventory",
                format!("it had {workers} workers then"),
                format!("it beats every {:.1} s", self.beat.as_secs_f64()),
            ),
        );
    }

    /// The plane's word on each worker: one that it does not want is released.
    fn verdicts(&self, data: &Value) {
        let Ok(answer) = serde_json::from_value::<InventoryAnswer>(data.clone()) else {
            return;
        };
        for item in answer
            .verdicts
            .iter()
            .filter(|item| item.verdict == "release")
        {
            if let Ok(worker) = WorkerId::parse(&item.worker_id) {
                info!(worker.id = %worker, "the plane does not want this worker any more");
                self.node.actions.release(worker);
            }
        }
    }

    fn tell(&mut self, news: WorkerNews) -> Result<(), End> {
        match news {
            // Its frame is in the outbox.
            WorkerNews::Exited(_) => self.send_exits(),
            WorkerNews::Changed(_) if !self.inventoried || self.stopping.is_some() => Ok(()),
            WorkerNews::Changed(_) if self.waiting.workers() >= IN_FLIGHT => {
                self.inventory_at = Some(Instant::now());
                Ok(())
            }
            WorkerNews::Changed(worker) => {
                let id = self.waiting.mint("worker");
                let frame = NodeFrame::Worker {
                    id: id.clone(),
                    worker,
                };
                self.ask(id, Asked::Worker, &frame)
            }
        }
    }

    /// Sends exits of the outbox, as many as may wait; then the first inventory may follow.
    fn send_exits(&mut self) -> Result<(), End> {
        if self.registered_at.is_none() {
            return Ok(());
        }
        let mut all_out = true;
        for frame in self.node.supervisor.outbox() {
            let NodeFrame::Exited { id, .. } = &frame else {
                continue;
            };
            if self.waiting.has(id) {
                continue;
            }
            if self.waiting.exits() >= IN_FLIGHT {
                all_out = false;
                break;
            }
            self.ask(id.clone(), Asked::Exited, &frame)?;
        }
        let now = Instant::now();
        if all_out && self.inventory_at.is_none() {
            self.inventory_at = Some(now);
        }
        self.inventory_if_due(now)
    }

    fn inventory_if_due(&mut self, now: Instant) -> Result<(), End> {
        if self.stopping.is_some() || self.inventory_at.is_none_or(|due| now < due) {
            return Ok(());
        }
        self.inventory_at = Some(now + self.node.settings.timing.inventory_every);
        self.inventoried = true;
        let id = self.waiting.mint("inventory");
        let frame = NodeFrame::Inventory {
            id: id.clone(),
            workers: self.node.supervisor.roster(),
        };
        self.ask(id, Asked::Inventory, &frame)
    }

    fn beat(&mut self) -> Result<(), End> {
        let now = Instant::now();
        let roster = self.node.supervisor.roster();
        let seq = self.watchdog.beat(now);
        let id = format!("beat_{seq}");
        let frame = NodeFrame::Beat {
            id: id.clone(),
            seq,
            count: u32::try_from(roster.len()).unwrap_or(u32::MAX),
            digest: digest(&roster),
            load: super::load::of_this_machine(),
        };
        self.ask(id, Asked::Beat(seq), &frame)
    }

    fn goodbye(&mut self, bye: &super::Goodbye) -> Result<(), End> {
        self.stopping = Some(Instant::now() + GOODBYE);
        if self.registered_at.is_none() {
            return Err(End::Stopped);
        }
        let id = self.waiting.mint("goodbye");
        let frame = NodeFrame::Goodbye {
            id: id.clone(),
            reason: bye.reason.clone(),
            workers_stay: bye.workers_stay,
        };
        self.ask(id, Asked::Goodbye, &frame)
    }

    fn ask(&mut self, id: String, asked: Asked, frame: &NodeFrame) -> Result<(), End> {
        self.send(frame)?;
        self.waiting.ask(id, asked, Instant::now());
        Ok(())
    }

    fn send(&self, frame: &NodeFrame) -> Result<(), End> {
        match self.out.try_send(Message::text(write_frame(frame))) {
            // A closed queue is a writer that has ended: its own end says why.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => Ok(()),
            Err(mpsc::error::TrySendError::Full(_)) => Err(End::Unhealthy {
                reason: "the plane accepts and does not read".into(),
                evidence: format!("{QUEUE} frames wait to be written"),
            }),
        }
    }
}

fn digest(roster: &[WorkerReport]) -> String {
    let ids: HashSet<&str> = roster
        .iter()
        .map(|worker| worker.worker_id.as_str())
        .collect();
    roster_digest(ids)
}
