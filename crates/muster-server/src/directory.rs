//! What is published of agents: their functions, the facts of their instances, and the receipts
//! of their beats. Receipts are taken here without a lock on anything the engine uses; the
//! verdicts are the engine's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use dashmap::DashMap;
use muster_engine::Limits;
use muster_engine::event::InstanceKey;
use muster_engine::liveness::{InstanceFacts, InstanceState, LivenessLimits, Verdict};
use muster_engine::row::Function;
use muster_wire::{AgentId, FunctionName, InstanceId, Timestamp};

/// What the verdict on an agent's instances depends on.
pub fn liveness_of(limits: &Limits, agent: &AgentId) -> LivenessLimits {
    let own = limits.agents.get(agent).and_then(|own| own.restart_grace);
    LivenessLimits {
        restart_grace: own.or(limits.restart_grace).unwrap_or_default(),
    }
}

/// Gaps between beats that are remembered: the longest of them is the interval.
const GAPS: usize = 8;

/// Every agent that was ever registered here.
#[derive(Debug, Default)]
pub struct Directory {
    agents: DashMap<AgentId, Arc<AgentEntry>>,
}

/// One agent.
#[derive(Debug)]
pub struct AgentEntry {
    /// Its id.
    pub id: AgentId,
    functions: ArcSwap<Vec<Function>>,
    unapproved: ArcSwap<Vec<Box<str>>>,
    instances: ArcSwap<Vec<Arc<InstanceEntry>>>,
}

/// One instance of an agent.
#[derive(Debug)]
pub struct InstanceEntry {
    /// The process.
    pub id: InstanceId,
    facts: ArcSwapOption<InstanceFacts>,
    /// Microseconds of the newest beat; 0 when there was none.
    beat_at: AtomicI64,
    gaps_ms: [AtomicU32; GAPS],
    gap_next: AtomicUsize,
    watched: AtomicBool,
}

/// What became of a beat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BeatTaken {
    /// Noted; nobody needs to know.
    Noted,
    /// Noted, and the engine watches this instance: tell it.
    Watched(InstanceKey, Option<Duration>),
    /// No such agent, or no such instance of it.
    Unknown,
}

impl Directory {
    /// One agent.
    pub fn agent(&self, id: &str) -> Option<Arc<AgentEntry>> {
        self.agents.get(id).map(|entry| entry.value().clone())
    }

    /// Every agent, in no order.
    pub fn agents(&self) -> Vec<Arc<AgentEntry>> {
        self.agents
            .iter()
            .map(|entry| entry.value().clone())
            .collect()
    }

    /// How many agents there are.
    pub fn len(&self) -> usize {
        self.agents.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.agents.is_empty()
    }

    /// Takes a beat. Without an instance id it counts for the instance that registered last.
    pub fn beat(&self, agent: &str, instance: Option<&str>, at: Timestamp) -> BeatTaken {
        let Some(agent) = self.agents.get(agent) else {
            return BeatTaken::Unknown;
        };
        let instances = agent.instances.load();
        let found = match instance {
            Some(id) => instances.iter().find(|entry| entry.id.as_str() == id),
            None => instances.last(),
        };
        let Some(entry) = found else {
            return BeatTaken::Unknown;
        };
        entry.beat(at);
        if entry.watched.load(Ordering::Acquire) {
            BeatTaken::Watched(
                InstanceKey {
                    agent: agent.id.clone(),
                    instance: entry.id.clone(),
                },
                entry.interval(),
            )
        } else {
            BeatTaken::Noted
        }
    }

    /// The newest receipt of an instance.
    pub fn receipt(&self, key: &InstanceKey) -> Option<(Timestamp, Option<Duration>)> {
        let agent = self.agents.get(key.agent.as_str())?;
        let instances = agent.instances.load();
        let entry = instances.iter().find(|entry| entry.id == key.instance)?;
        Some((entry.beat_at()?, entry.interval()))
    }

    pub(crate) fn put_functions(&self, agent: &AgentId, functions: Arc<Vec<Function>>) {
        self.entry(agent).functions.store(functions);
    }

    /// It is not on the list any more.
    pub(crate) fn forget(&self, agent: &AgentId) {
        self.agents.remove(agent.as_str());
    }

    pub(crate) fn put_unapproved(&self, agent: &AgentId, tags: Arc<Vec<Box<str>>>) {
        self.entry(agent).unapproved.store(tags);
    }

    pub(crate) fn put_facts(&self, facts: Arc<InstanceFacts>) {
        let agent = self.entry(&facts.key.agent);
        let instances = agent.instances.load();
        if let Some(entry) = instances.iter().find(|e| e.id == facts.key.instance) {
            entry.facts.store(Some(facts));
            return;
        }
        let mut next: Vec<_> = instances
            .iter()
            .filter(|entry| entry.facts().is_none_or(|old| old.gone.is_none()))
            .cloned()
            .collect();
        next.push(Arc::new(InstanceEntry::new(facts)));
        agent.instances.store(Arc::new(next));
    }

    pub(crate) fn watch(&self, key: &InstanceKey, on: bool) {
        if let Some(agent) = self.agents.get(key.agent.as_str())
            && let Some(entry) = agent.instances.load().iter().find(|e| e.id == key.instance)
        {
            entry.watched.store(on, Ordering::Release);
        }
    }

    fn entry(&self, agent: &AgentId) -> Arc<AgentEntry> {
        self.agents
            .entry(agent.clone())
            .or_insert_with(|| {
                Arc::new(AgentEntry {
                    id: agent.clone(),
                    functions: ArcSwap::default(),
                    unapproved: ArcSwap::default(),
                    instances: ArcSwap::default(),
                })
            })
            .value()
            .clone()
    }
}

impl AgentEntry {
    /// Tags it asks for that are not approved: while there are any it is not called.
    pub fn unapproved(&self) -> Arc<Vec<Box<str>>> {
        self.unapproved.load_full()
    }

    /// The functions of the instance that registered last.
    pub fn functions(&self) -> Arc<Vec<Function>> {
        self.functions.load_full()
    }

    /// One function.
    pub fn function(&self, name: &FunctionName) -> Option<Function> {
        self.functions
            .load()
            .iter()
            .find(|f| f.name == *name)
            .cloned()
    }

    /// The verdict on its best instance; `None` when it has none.
    pub fn verdict(&self, now: Timestamp, limits: &Limits) -> Option<Verdict> {
        let liveness = liveness_of(limits, &self.id);
        self.instances
            .load()
            .iter()
            .filter_map(|instance| Some(instance.facts_now()?.verdict(now, liveness)))
            .min_by_key(|verdict| verdict.state)
    }

    /// The evidence that every instance is down; `None` when some is not.
    pub fn down(&self, now: Timestamp, limits: &Limits) -> Option<String> {
        let verdict = self.verdict(now, limits)?;
        (verdict.state == InstanceState::Down).then_some(verdict.evidence)
    }

    /// Its instances, latest registered last.
    pub fn instances(&self) -> Arc<Vec<Arc<InstanceEntry>>> {
        self.instances.load_full()
    }
}

impl InstanceEntry {
    fn new(facts: Arc<InstanceFacts>) -> Self {
        Self {
            id: facts.key.instance.clone(),
            facts: ArcSwapOption::from(Some(facts)),
            beat_at: AtomicI64::new(0),
            gaps_ms: std::array::from_fn(|_| AtomicU32::new(0)),
            gap_next: AtomicUsize::new(0),
            watched: AtomicBool::new(false),
        }
    }

    /// The facts as the engine last told them.
    pub fn facts(&self) -> Option<Arc<InstanceFacts>> {
        self.facts.load_full()
    }

    /// The facts with the newest receipt in them.
    pub fn facts_now(&self) -> Option<InstanceFacts> {
        let mut facts = InstanceFacts::clone(&*self.facts()?);
        facts.beat_at = facts.beat_at.max(self.beat_at());
        Some(facts)
    }

    /// The newest beat received here.
    pub fn beat_at(&self) -> Option<Timestamp> {
        match self.beat_at.load(Ordering::Acquire) {
            0 => None,
            at => Some(Timestamp(at)),
        }
    }

    fn beat(&self, at: Timestamp) {
        let before = self.beat_at.swap(at.0, Ordering::AcqRel);
        let gap_ms = at.since(Timestamp(before)).as_millis();
        // Beats that come together (a health check beside the loop) say nothing of the rhythm.
        if before > 0 && gap_ms >= 500 {
            let slot = self.gap_next.fetch_add(1, Ordering::Relaxed) % GAPS;
            let gap = u32::try_from(gap_ms).unwrap_or(u32::MAX);
            self.gaps_ms[slot].store(gap, Ordering::Relaxed);
        }
    }

    /// The longest of the last gaps, between 2 and 60 seconds; `None` before the second beat.
    fn interval(&self) -> Option<Duration> {
        let longest = self
            .gaps_ms
            .iter()
            .map(|gap| gap.load(Ordering::Relaxed))
            .max()?;
        (longest > 0).then(|| Duration::from_millis(u64::from(longest.clamp(2_000, 60_000))))
    }
}
