//! A node: its facts with their times, and the one place where they become a verdict. Decides
//! nothing about its workers; knows no socket.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use muster_wire::fleet::frame::roster_digest;
use muster_wire::fleet::{NodeKind, NodeState, NodeWish};
use muster_wire::{Timestamp, WorkerId, plain};

use super::adoptions::Adoptions;
use super::drift::Drift;
use super::event::LinkId;
use super::limits::FleetLimits;
use super::row::NodeRow;
use crate::liveness::seconds;

/// Beats after which a node that was doubted counts as online again.
const BEATS_TO_RECOVER: u32 = 2;

/// The connection that speaks for a node now.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) id: LinkId,
    pub(crate) opened_at: Timestamp,
    pub(crate) beat_interval: Duration,
    /// Its inventories prove an application behind the socket.
    pub(crate) proves: bool,
    /// Beats in a row, none late.
    pub(crate) beats: u32,
    /// So many make it online.
    pub(crate) needs: u32,
    pub(crate) beat_at: Option<Timestamp>,
    pub(crate) inventory_at: Option<Timestamp>,
    /// When it answered an application request of ours.
    pub(crate) exchange_at: Option<Timestamp>,
    /// When it last answered anything that it was asked for: a sign, a start, a release.
    pub(crate) answered_at: Option<Timestamp>,
    /// It was asked, and has not answered.
    pub(crate) asked: bool,
    /// It said goodbye over it: nothing is placed there any more.
    pub(crate) leaving: bool,
}

/// A node as the engine holds it.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) row: NodeRow,
    /// The verdict as of the last look, and since when it is the same.
    pub(crate) state: (NodeState, Timestamp),
    pub(crate) link: Option<Link>,
    /// Its workers that have not ended.
    pub(crate) workers: BTreeSet<WorkerId>,
    /// The plane itself was away: silence before this moment is forgiven.
    pub(crate) forgiven_until: Option<Timestamp>,
    /// Our own lateness within its present silence.
    pub(crate) excused: Duration,
    /// When it last came back to be online.
    pub(crate) returned_at: Option<Timestamp>,
    /// It changed its state too often: it is not online before this moment.
    pub(crate) flapping_until: Option<Timestamp>,
    /// When it fell silent, until it is online again or leaves.
    pub(crate) silent_at: Option<Timestamp>,
    /// Workers that were not confirmed since are unknown.
    pub(crate) unknown_from: Option<Timestamp>,
    /// When a beat last agreed with what is believed: then all its workers were confirmed.
    pub(crate) matched_at: Option<Timestamp>,
    /// Its load as it was last told, and when.
    pub(crate) load: Option<(f64, Timestamp)>,
    /// It refused a start for want of room, and has not beaten since: when, and its words.
    pub(crate) full: Option<(Timestamp, Arc<str>)>,
    pub(crate) late_frames: u64,
    /// What its last inventory named, and what it said of single workers since.
    pub(crate) named: BTreeMap<WorkerId, Arc<str>>,
    pub(crate) drift: Drift,
    pub(crate) adoptions: Adoptions,
    /// The digest of its workers' ids, until they change.
    pub(crate) digest: Option<Arc<str>>,
    pub(crate) armed: Option<Timestamp>,
}

/// What the facts of the connection amount to, before what was said earlier counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// It never connected.
    Never,
    /// It has no link, and the plane was away itself until a moment ago.
    Forgiven,
    /// It has no link.
    Away,
    /// It has a link, and a beat or an inventory is overdue.
    Overdue,
    /// It speaks, and not for long enough.
    Settling {
        /// A beat, an inventory or an answer came over this link.
        proof: bool,
    },
    /// It speaks.
    Healthy,
}

impl Node {
    /// Whether it said goodbye since its last link opened.
    pub(crate) fn said_goodbye(&self) -> bool {
        let goodbye = self.row.goodbye.as_ref();
        goodbye.is_some_and(|(at, _)| Some(*at) >= self.row.connected_at)
    }

    pub(crate) fn new(row: NodeRow, now: Timestamp) -> Self {
        Self {
            state: (row.told.0, row.told.1.min(now)),
            row,
            link: None,
            workers: BTreeSet::new(),
            forgiven_until: None,
            excused: Duration::ZERO,
            returned_at: None,
            flapping_until: None,
            silent_at: None,
            unknown_from: None,
            matched_at: None,
            load: None,
            full: None,
            late_frames: 0,
            named: BTreeMap::new(),
            drift: Drift::default(),
            adoptions: Adoptions::default(),
            digest: None,
            armed: None,
        }
    }

    /// Whether this frame came over the link that speaks for it.
    pub(crate) fn speaks(&self, link: LinkId) -> bool {
        self.link.as_ref().is_some_and(|held| held.id == link)
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.row.wish == NodeWish::Retired
    }

    /// The digest of what is believed.
    pub(crate) fn digest(&mut self) -> Arc<str> {
        let workers = &self.workers;
        self.digest
            .get_or_insert_with(|| roster_digest(workers.iter().map(WorkerId::as_str)).into())
            .clone()
    }

    pub(crate) fn has(&mut self, worker: WorkerId) {
        self.workers.insert(worker);
        self.digest = None;
    }

    pub(crate) fn has_not(&mut self, worker: &WorkerId) {
        self.workers.remove(worker);
        self.adoptions.living.remove(worker);
        self.digest = None;
    }

    /// It said that it has a worker: so its last inventory and its last beat need not be older
    /// than that.
    pub(crate) fn names_too(&mut self, worker: &WorkerId, name: &Arc<str>) {
        self.named.insert(worker.clone(), name.clone());
        if let Some(names) = &mut self.drift.names {
            names.insert(name.clone());
        }
    }

    /// It said that a worker ended.
    pub(crate) fn names_no_more(&mut self, worker: &WorkerId, name: &Arc<str>) {
        self.named.remove(worker);
        if let Some(names) = &mut self.drift.names {
            names.remove(name);
        }
    }

    /// Whether something can be sent to it now, whatever an operator pinned.
    pub(crate) fn is_here(&self) -> bool {
        self.state.0 == NodeState::Online && self.link.is_some()
    }

    /// Its load, while what it said of it is of its present link and not overdue.
    pub(crate) fn load_now(&self, now: Timestamp, limits: &FleetLimits) -> Option<f64> {
        let speaks = matches!(
            self.sign(now, limits),
            Sign::Healthy | Sign::Settling { .. }
        );
        let beat = self.link.as_ref().and_then(|link| link.beat_at);
        let (load, at) = self.load?;
        (speaks && beat.is_some_and(|beat| at >= beat)).then_some(load)
    }

    /// Places that are free; `None` is without bound.
    pub(crate) fn free(&self) -> Option<u32> {
        let used = u32::try_from(self.workers.len()).unwrap_or(u32::MAX);
        if self.full.is_some() {
            return Some(0);
        }
        (self.row.max_workers > 0).then(|| self.row.max_workers.saturating_sub(used))
    }

    /// When its silence becomes suspicious, while it has a link.
    pub(crate) fn overdue_at(&self, link: &Link, limits: &FleetLimits) -> Timestamp {
        let heard = link
            .opened_at
            .max(link.beat_at.unwrap_or(Timestamp::ZERO))
            .max(link.exchange_at.unwrap_or(Timestamp::ZERO));
        let beats = heard + link.beat_interval * limits.beats_missed_max;
        let due = if self.row.kind == NodeKind::Relay && link.proves {
            let told = link.inventory_at.unwrap_or(link.opened_at);
            beats.min(told + limits.relay_inventory)
        } else {
            beats
        };
        // A microsecond past the bound: what comes just in time is in time.
        due + self.excused + Duration::from_micros(1)
    }

    /// What the facts of its connection amount to.
    pub(crate) fn sign(&self, now: Timestamp, limits: &FleetLimits) -> Sign {
        let Some(link) = &self.link else {
            return match self.forgiven_until {
                _ if self.row.connected_at.is_none() => Sign::Never,
                Some(until) if now < until => Sign::Forgiven,
                _ => Sign::Away,
            };
        };
        if now >= self.overdue_at(link, limits) {
            return Sign::Overdue;
        }
        let damped = self.flapping_until.is_some_and(|until| now < until);
        if link.beats < link.needs || damped {
            let proof = link.beats > 0 || link.inventory_at.is_some() || link.exchange_at.is_some();
            return Sign::Settling { proof };
        }
        Sign::Healthy
    }

    /// When a suspect node becomes unreachable.
    pub(crate) fn unreachable_at(&self, limits: &FleetLimits) -> Timestamp {
        let answered = self.link.as_ref().and_then(|link| link.exchange_at);
        let since = self.state.1.max(answered.unwrap_or(Timestamp::ZERO));
        since + limits.node_grace + self.excused
    }

    /// When an unreachable node counts as lost by policy.
    pub(crate) fn lost_at(&self, limits: &FleetLimits) -> Option<Timestamp> {
        Some(self.state.1 + limits.node_lost_after? + self.excused)
    }

    /// The verdict: one table over what was said and what is seen. `acts` is false while we
    /// doubt ourselves: then nothing is lost.
    pub(crate) fn verdict(&self, now: Timestamp, limits: &FleetLimits, acts: bool) -> NodeState {
        if let Some(pin) = &self.row.pin {
            return pin.state;
        }
        match (self.state.0, self.sign(now, limits)) {
            (NodeState::Lost, Sign::Healthy) => NodeState::Online,
            (NodeState::Lost, Sign::Settling { proof: true }) => NodeState::Connecting,
            (NodeState::Lost, _) => NodeState::Lost,
            (_, Sign::Never) => NodeState::Connecting,
            (_, Sign::Healthy) => NodeState::Online,
            (NodeState::Unreachable, Sign::Settling { proof: true }) => NodeState::Connecting,
            (
                NodeState::Unreachable,
                Sign::Away | Sign::Overdue | Sign::Forgiven | Sign::Settling { proof: false },
            ) => match self.lost_at(limits) {
                Some(at) if acts && now >= at => NodeState::Lost,
                _ => NodeState::Unreachable,
            },
            (NodeState::Suspect, Sign::Away | Sign::Overdue)
                if now >= self.unreachable_at(limits) =>
            {
                NodeState::Unreachable
            }
            (_, Sign::Away | Sign::Overdue) => NodeState::Suspect,
            // A link that took the place of another one goes on where that one was.
            (NodeState::Online, Sign::Settling { .. }) => NodeState::Online,
            (NodeState::Suspect, Sign::Settling { .. }) => NodeState::Suspect,
            (NodeState::Connecting, Sign::Settling { .. }) | (_, Sign::Forgiven) => {
                NodeState::Connecting
            }
        }
    }

    /// The next moment at which its verdict can change by itself.
    pub(crate) fn next_look(&self, now: Timestamp, limits: &FleetLimits) -> Option<Timestamp> {
        if self.is_retired() {
            return None;
        }
        let sign = self.sign(now, limits);
        let own = match sign {
            Sign::Never => None,
            Sign::Forgiven => self.forgiven_until,
            Sign::Away | Sign::Overdue => None,
            Sign::Settling { .. } | Sign::Healthy => {
                let overdue = self.link.as_ref().map(|l| self.overdue_at(l, limits));
                let damped = self.flapping_until.filter(|until| *until > now);
                overdue.into_iter().chain(damped).min()
            }
        };
        let silent = matches!(sign, Sign::Away | Sign::Overdue);
        let worse = match self.state.0 {
            NodeState::Suspect if silent => Some(self.unreachable_at(limits)),
            NodeState::Unreachable => self.lost_at(limits),
            _ => None,
        };
        // What is past waits for something else: for the end of a doubt.
        own.into_iter().chain(worse).filter(|at| *at > now).min()
    }

    /// Why it is in this state, in a sentence.
    pub(crate) fn evidence(&self, now: Timestamp, limits: &FleetLimits) -> String {
        let age = |at: Timestamp| seconds(now.since(at));
        if let Some(pin) = &self.row.pin {
            let why = pin.wished.reason.as_deref().unwrap_or("no reason given");
            let (by, at) = (&pin.wished.by, age(pin.wished.at));
            return format!("pinned by {by} {at} ago: {why}; {}", self.seen(now, limits));
        }
        match self.state.0 {
            NodeState::Lost => match &self.row.lost {
                Some((at, why)) => format!("declared lost {} ago: {why}", age(*at)),
                None => format!("lost; {}", self.seen(now, limits)),
            },
            _ => self.seen(now, limits),
        }
    }

    fn seen(&self, now: Timestamp, limits: &FleetLimits) -> String {
        let mut seen = self.signs(now, limits);
        if self.link.as_ref().is_some_and(|link| link.leaving)
            && let Some((at, why)) = &self.row.goodbye
        {
            let age = seconds(now.since(*at));
            seen.push_str(&format!(
                "; it said goodbye {age} ago ({why}): nothing is placed there"
            ));
        }
        seen
    }

    fn signs(&self, now: Timestamp, limits: &FleetLimits) -> String {
        let age = |at: Timestamp| seconds(now.since(at));
        let heard = match self.row.heard_at {
            Some(at) => format!("last heard {} ago", age(at)),
            None => "never heard".into(),
        };
        let told = match self.row.inventory {
            Some((at, 1)) => format!("last inventory {} ago with 1 worker", age(at)),
            Some((at, count)) => format!(
                "last inventory {} ago with {}",
                age(at),
                plain::count(count.into(), "worker")
            ),
            None => "no inventory yet".into(),
        };
        let link = self.link.as_ref();
        match self.sign(now, limits) {
            Sign::Never => format!(
                "enrolled {} ago and never connected",
                age(self.row.enrolled_at)
            ),
            Sign::Forgiven => {
                format!(
                    "the plane was away itself and waits for it to connect again; {heard}, {told}"
                )
            }
            Sign::Away => {
                let (at, why) = match &self.row.disconnected {
                    Some((at, why)) => (Some(*at), &**why),
                    None => (None, "the plane was away itself"),
                };
                let closed = match at {
                    Some(at) => format!("its socket closed {} ago ({why})", age(at)),
                    None => format!("it has no connection ({why})"),
                };
                let goodbye = match &self.row.goodbye {
                    Some((at, why)) if Some(*at) >= self.row.connected_at => {
                        format!(", after it said goodbye ({why})")
                    }
                    _ => String::new(),
                };
                format!("{closed}{goodbye}; {heard}, {told}")
            }
            Sign::Overdue => {
                let last = link.and_then(|l| l.beat_at);
                let beats = match last {
                    Some(at) => format!("no beat for {}", age(at)),
                    None => "no beat since its link opened".into(),
                };
                let asked = match link {
                    Some(link) if link.asked => ", and it did not answer when asked",
                    _ => "",
                };
                format!("its socket is open, but {beats}{asked}; {heard}, {told}")
            }
            Sign::Settling { .. } => {
                let (beats, needs) = link.map_or((0, 0), |l| (l.beats, l.needs));
                match self.flapping_until.filter(|until| *until > now) {
                    Some(until) => format!(
                        "it speaks, but its state changes too often: it counts again in {}",
                        seconds(until.since(now))
                    ),
                    None => format!("it speaks again: {beats} of {needs} beats; {told}"),
                }
            }
            Sign::Healthy => match link.and_then(|l| l.beat_at) {
                Some(at) => {
                    let proof =
                        if link.is_some_and(|l| l.proves) || self.row.kind == NodeKind::Daemon {
                            ""
                        } else {
                            "; its frames prove no application behind the socket"
                        };
                    format!("last beat {} ago, {told}{proof}", age(at))
                }
                None => format!("{heard}, {told}"),
            },
        }
    }

    /// What happens next, and when.
    pub(crate) fn next(&self, now: Timestamp, limits: &FleetLimits) -> Option<(Timestamp, String)> {
        if self.is_retired() || self.row.pin.is_some() {
            return None;
        }
        match (self.state.0, self.sign(now, limits)) {
            (_, Sign::Forgiven) => self
                .forgiven_until
                .map(|at| (at, "suspect, unless it connects".into())),
            (NodeState::Suspect, Sign::Away | Sign::Overdue) => Some((
                self.unreachable_at(limits),
                "unreachable: its workers count as unknown, none is ended".into(),
            )),
            (NodeState::Unreachable, Sign::Away | Sign::Overdue) => self
                .lost_at(limits)
                .map(|at| (at, "lost: its workers count as lost".into())),
            (_, Sign::Settling { .. }) => self
                .flapping_until
                .filter(|until| *until > now)
                .map(|at| (at, "online, if it goes on to beat".into())),
            (_, Sign::Healthy) => self.link.as_ref().map(|link| {
                let at = self.overdue_at(link, limits);
                (at, "suspect, unless it beats".into())
            }),
            (
                NodeState::Connecting | NodeState::Online | NodeState::Lost,
                Sign::Never | Sign::Away | Sign::Overdue,
            )
            | (NodeState::Suspect | NodeState::Unreachable, Sign::Never) => None,
        }
    }

    /// Notes that it beat.
    pub(crate) fn beat(&mut self, now: Timestamp, limits: &FleetLimits) {
        let overdue = self.sign(now, limits) == Sign::Overdue;
        self.excused = Duration::ZERO;
        let Some(link) = &mut self.link else { return };
        if overdue {
            link.beats = 0;
            link.needs = BEATS_TO_RECOVER;
        }
        link.beats = link.beats.saturating_add(1);
        link.beat_at = link.beat_at.max(Some(now));
        link.asked = false;
    }

    /// How many beats of a new link it takes to be online.
    pub(crate) fn beats_needed(&self) -> u32 {
        match self.state.0 {
            NodeState::Connecting | NodeState::Online => 1,
            NodeState::Suspect | NodeState::Unreachable | NodeState::Lost => BEATS_TO_RECOVER,
        }
    }

    /// Beats that were missed.
    pub(crate) fn beats_missed(&self, now: Timestamp) -> u32 {
        let Some(link) = &self.link else { return 0 };
        let heard = link.beat_at.unwrap_or(link.opened_at).max(link.opened_at);
        let gap = now.since(heard).saturating_sub(self.excused);
        u32::try_from(gap.as_micros() / link.beat_interval.as_micros().max(1)).unwrap_or(u32::MAX)
    }
}
