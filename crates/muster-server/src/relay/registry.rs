//! The registry of Relay brokers: all of it in memory, every change first in the store. Decides
//! nothing about nodes and workers: those are the engine's.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use muster_store::annex::RelayRow;
use muster_store::{Annex, StoreError, StoreResult};
use muster_wire::{Category, Timestamp, mint};
use parking_lot::{Mutex, RwLock};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::record::{Agent, Channel, Workspace};
use crate::api::problem::Problem;

/// Agents there may be. Beyond, the oldest of those that said goodbye is forgotten.
const AGENTS_MAX: usize = 20_000;
/// Channels there may be.
const CHANNELS_MAX: usize = 1_000;
/// Channels that one agent may be in.
const MEMBERSHIPS_MAX: usize = 64;
/// Records read at once.
const PAGE: usize = 1_000;
/// The name of the one workspace.
const WORKSPACE: &str = "default";

/// A change of one record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    /// A new or changed agent.
    Put(Box<Agent>),
    /// An agent goes, by its name.
    Drop(String),
    /// A new channel.
    PutChannel(Channel),
}

/// What there is.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    agents: BTreeMap<String, Agent>,
    names: HashMap<String, String>,
    channels: BTreeMap<String, Channel>,
    workspace: String,
}

impl Tables {
    /// An agent by its name.
    pub(crate) fn agent(&self, name: &str) -> Option<&Agent> {
        self.agents.get(name)
    }

    /// An agent by its id.
    pub(crate) fn by_id(&self, id: &str) -> Option<&Agent> {
        self.agents.get(self.names.get(id)?)
    }

    /// All agents by name.
    pub(crate) fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values()
    }

    /// A channel by its name.
    pub(crate) fn channel(&self, name: &str) -> Option<&Channel> {
        self.channels.get(name)
    }

    /// The workspace's id.
    pub(crate) fn workspace(&self) -> &str {
        &self.workspace
    }

    /// The changes that write this agent, and make room for it where there is none.
    ///
    /// # Errors
    /// When there is no room, and nobody who could be forgotten.
    pub(crate) fn putting(&self, agent: Agent) -> Result<Vec<Change>, Problem> {
        if agent.channels.len() > MEMBERSHIPS_MAX {
            return Err(Problem::validation(format!(
                "an agent is in at most {MEMBERSHIPS_MAX} channels"
            )));
        }
        let mut changes = Vec::new();
        if self.agents.len() >= AGENTS_MAX && !self.agents.contains_key(&agent.name) {
            let free = self.agents.values().filter(|agent| agent.is_free());
            let Some(oldest) = free.min_by_key(|agent| agent.changed_at) else {
                return Err(Problem::new(
                    Category::Overloaded,
                    format!("{AGENTS_MAX} agents are registered, and none of them has left"),
                )
                .retry_after(60));
            };
            changes.push(Change::Drop(oldest.name.clone()));
        }
        changes.push(Change::Put(Box::new(agent)));
        Ok(changes)
    }

    /// The change that makes this channel.
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn making(&self, channel: Channel) -> Result<Vec<Change>, Problem> {
        if self.channels.len() >= CHANNELS_MAX {
            let message = format!("there are {CHANNELS_MAX} channels, which is the most");
            return Err(Problem::new(Category::Conflict, message));
        }
        Ok(vec![Change::PutChannel(channel)])
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Put(agent) => {
                self.forget_id(&agent.name);
                self.names.insert(agent.id.clone(), agent.name.clone());
                self.agents.insert(agent.name.clone(), *agent);
            }
            Change::Drop(name) => {
                self.forget_id(&name);
                self.agents.remove(&name);
            }
            Change::PutChannel(channel) => {
                self.channels.insert(channel.name.clone(), channel);
            }
        }
    }

    fn forget_id(&mut self, name: &str) {
        if let Some(before) = self.agents.get(name) {
            self.names.remove(&before.id);
        }
    }
}

/// The registry.
#[derive(Debug)]
pub struct Registry {
    tables: RwLock<Tables>,
    /// Held over a change of the store and of the tables together.
    changes: Mutex<()>,
}

impl Registry {
    /// Reads everything, and makes the workspace on the first start. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub fn open(annex: &dyn Annex, now: Timestamp) -> StoreResult<Self> {
        let mut tables = Tables::default();
        for agent in read_all::<Agent>(annex, "agent")? {
            tables.apply(Change::Put(Box::new(agent)));
        }
        for channel in read_all::<Channel>(annex, "channel")? {
            tables.apply(Change::PutChannel(channel));
        }
        tables.workspace = workspace(annex, now)?.id;
        Ok(Self {
            tables: RwLock::new(tables),
            changes: Mutex::new(()),
        })
    }

    /// Looks something up.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Tables) -> T) -> T {
        look(&self.tables.read())
    }

    /// Decides on a change from what is there, writes it, and shows it. Blocks.
    ///
    /// # Errors
    /// What the decision says, or when the store cannot be written.
    pub(crate) fn change<T>(
        &self,
        annex: &dyn Annex,
        now: Timestamp,
        decide: impl FnOnce(&Tables) -> Result<(T, Vec<Change>), Problem>,
    ) -> Result<T, Problem> {
        let _changes = self.changes.lock();
        let (said, changes) = decide(&self.tables.read())?;
        for change in changes {
            write(annex, &change, now)?;
            self.tables.write().apply(change);
        }
        Ok(said)
    }
}

fn write(annex: &dyn Annex, change: &Change, now: Timestamp) -> StoreResult<()> {
    match change {
        Change::Put(agent) => annex.relay_put(&row(
            "agent",
            &agent.name,
            agent.node.clone(),
            &**agent,
            now,
        )?),
        Change::Drop(name) => annex.relay_delete("agent", name).map(|_| ()),
        Change::PutChannel(channel) => {
            annex.relay_put(&row("channel", &channel.name, None, channel, now)?)
        }
    }
}

fn row<T: Serialize>(
    kind: &str,
    name: &str,
    node: Option<String>,
    value: &T,
    now: Timestamp,
) -> StoreResult<RelayRow> {
    let value = serde_json::to_vec(value)
        .map_err(|error| StoreError::Unreadable(format!("relay {kind} {name}: {error}")))?;
    Ok(RelayRow {
        kind: kind.to_owned(),
        name: name.to_owned(),
        node,
        value: Bytes::from(value),
        updated_at: now,
    })
}

fn read<T: DeserializeOwned>(row: &RelayRow) -> Option<T> {
    let read = serde_json::from_slice(&row.value);
    if let Err(error) = &read {
        let (kind, name) = (&row.kind, &row.name);
        tracing::warn!(kind, name, error = %error, "a record of the Relay registry cannot be read and is left out");
    }
    read.ok()
}

fn read_all<T: DeserializeOwned>(annex: &dyn Annex, kind: &str) -> StoreResult<Vec<T>> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let page = annex.relay_list(kind, &after, PAGE)?;
        all.extend(page.iter().filter_map(read));
        match page.last() {
            Some(last) if page.len() == PAGE => after.clone_from(&last.name),
            _ => return Ok(all),
        }
    }
}

fn workspace(annex: &dyn Annex, now: Timestamp) -> StoreResult<Workspace> {
    let kept = annex.relay_get("workspace", WORKSPACE)?;
    if let Some(workspace) = kept.as_ref().and_then(read) {
        return Ok(workspace);
    }
    let made = Workspace {
        id: mint("ws"),
        created_at: now,
    };
    annex.relay_put(&row("workspace", WORKSPACE, None, &made, now)?)?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use muster_store::MemoryStore;
    use serde_json::Value;

    use super::*;
    use crate::relay::record::Presence;

    const NOW: Timestamp = Timestamp(1_000);

    fn agent(name: &str, id: &str) -> Agent {
        Agent {
            id: id.into(),
            name: name.into(),
            kind: "agent".into(),
            token_sha256: "00".into(),
            principal: "ada".into(),
            node: None,
            invocation: None,
            presence: Presence::Online,
            channels: Default::default(),
            metadata: Value::Null,
            created_at: NOW,
            changed_at: NOW,
        }
    }

    #[test]
    fn what_was_registered_is_there_after_a_start_with_the_same_ids() {
        let store = MemoryStore::new();
        let registry = Registry::open(&store, NOW).unwrap();
        let put = |name: &str, id: &str| {
            let agent = agent(name, id);
            registry.change(&store, NOW, |tables| Ok(((), tables.putting(agent)?)))
        };
        put("writer", "wrk_1").unwrap();
        put("reader", "wrk_2").unwrap();
        let drop = |_: &Tables| Ok(((), vec![Change::Drop("reader".into())]));
        registry.change(&store, NOW, drop).unwrap();
        let again = Registry::open(&store, NOW).unwrap();
        for registry in [&registry, &again] {
            registry.look(|tables| {
                assert_eq!(tables.agent("writer").unwrap().id, "wrk_1");
                assert_eq!(tables.by_id("wrk_1").unwrap().name, "writer");
                assert!(tables.agent("reader").is_none() && tables.by_id("wrk_2").is_none());
            });
        }
        let id = |registry: &Registry| registry.look(|tables| tables.workspace().to_owned());
        assert_eq!(id(&registry), id(&again));
    }

    #[test]
    fn a_name_that_is_given_to_another_is_no_longer_found_by_the_old_id() {
        let store = MemoryStore::new();
        let registry = Registry::open(&store, NOW).unwrap();
        for id in ["wrk_1", "wrk_2"] {
            let put = |tables: &Tables| Ok(((), tables.putting(agent("writer", id))?));
            registry.change(&store, NOW, put).unwrap();
        }
        registry.look(|tables| {
            assert!(tables.by_id("wrk_1").is_none());
            assert_eq!(tables.by_id("wrk_2").unwrap().name, "writer");
        });
    }

    #[test]
    fn when_it_is_full_the_oldest_that_left_is_forgotten_and_nobody_else() {
        let mut tables = Tables::default();
        for number in 0..AGENTS_MAX {
            let name = format!("a{number}");
            tables.apply(Change::Put(Box::new(agent(&name, &name))));
        }
        assert!(tables.putting(agent("new", "new")).is_err());
        assert_eq!(tables.putting(agent("a7", "b7")).unwrap().len(), 1);
        for (number, at) in [(7, 900), (9, 800), (11, 950)] {
            let name = format!("a{number}");
            let mut gone = agent(&name, &name);
            (gone.presence, gone.changed_at) = (Presence::Offline, Timestamp(at));
            tables.apply(Change::Put(Box::new(gone)));
        }
        let changes = tables.putting(agent("new", "new")).unwrap();
        assert_eq!(changes[0], Change::Drop("a9".into()));
        assert_eq!(changes.len(), 2);
    }

    #[test]
    fn a_broker_that_comes_back_is_known_by_its_own_key_and_only_under_its_principal() {
        let mut broker = agent("b1", "agent_1");
        broker.metadata = serde_json::json!({"identity_key": "k"});
        let same = serde_json::json!({"identity_key": "k", "more": 1});
        assert!(broker.is_the_same("ada", &same));
        assert!(!broker.is_the_same("bob", &same));
        assert!(!broker.is_the_same("ada", &Value::Null));
        assert!(!agent("x", "y").is_the_same("ada", &Value::Null));
    }
}
