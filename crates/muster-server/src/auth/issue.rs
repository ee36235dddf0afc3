//! Keys that the plane makes by itself, for nodes, workers and the agents of a Relay broker.
//! Nobody names them and nobody lists them by hand; they go with whom they were made for.
//! Everything here blocks.

use std::sync::Arc;

use muster_store::annex::KeyRecord;
use muster_store::{Annex, StoreResult};
use muster_wire::{NodeId, Timestamp, WorkerId};

use super::text::Form;
use super::{Auth, KeyText, Scope, mint_as, new_record};

/// Before the id of the key under which another was made, in its record.
const UNDER: &str = "under:";

/// For whom a key is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Our own daemon: a key of the common form.
    Node(NodeId),
    /// A node of a Relay broker: `nt_live_…`.
    RelayNode(NodeId),
    /// An agent under a Relay broker, by its id there: `at_live_…`.
    RelayAgent(Arc<str>),
    /// A supervised process: a key of the common form, with its placer's principal.
    Worker(WorkerId),
}

impl Subject {
    /// What such a key may do.
    pub fn scope(&self) -> Scope {
        match self {
            Subject::Node(id) | Subject::RelayNode(id) => Scope::Node(id.clone()),
            Subject::RelayAgent(id) => Scope::RelayAgent(id.clone()),
            Subject::Worker(id) => Scope::Worker(id.as_str().into()),
        }
    }

    fn form(&self) -> Form {
        match self {
            Subject::Node(_) | Subject::Worker(_) => Form::Key,
            Subject::RelayNode(_) => Form::RelayNode,
            Subject::RelayAgent(_) => Form::RelayAgent,
        }
    }

    fn key_name(&self) -> String {
        match self {
            Subject::Node(id) | Subject::RelayNode(id) => format!("node {id}"),
            Subject::RelayAgent(id) => format!("relay agent {id}"),
            Subject::Worker(id) => format!("worker {id}"),
        }
    }

    /// Whether a new key takes the place of the ones before. Not a worker's: a start that is
    /// repeated finds the process with the key of the first.
    fn has_one_key(&self) -> bool {
        match self {
            Subject::Node(_) | Subject::RelayNode(_) | Subject::RelayAgent(_) => true,
            Subject::Worker(_) => false,
        }
    }
}

impl Auth {
    /// Makes a key for a node, a worker or an agent of a broker. A node's and an agent's earlier
    /// keys are no longer taken; a worker's are, until [`Auth::withdraw`].
    ///
    /// # Errors
    /// When the store cannot be written, or the operating system has no randomness.
    pub fn issue(
        &self,
        annex: &dyn Annex,
        whose: &Subject,
        principal: &str,
        now: Timestamp,
    ) -> StoreResult<(KeyText, KeyRecord)> {
        self.issue_under(annex, whose, principal, None, now)
    }

    /// The same with the id of the key under which it was asked for, by which
    /// [`Auth::withdraw_under`] finds it.
    ///
    /// # Errors
    /// When the store cannot be written, or the operating system has no randomness.
    pub fn issue_under(
        &self,
        annex: &dyn Annex,
        whose: &Subject,
        principal: &str,
        under: Option<&str>,
        now: Timestamp,
    ) -> StoreResult<(KeyText, KeyRecord)> {
        let scope = whose.scope();
        let key = mint_as(whose.form())?;
        let words = vec![scope.word()];
        let mut record = new_record(&key, &whose.key_name(), words, principal, now, None);
        record.detail = under.map(|id| format!("{UNDER}{id}"));
        self.ring.add(annex, &record)?;
        if whose.has_one_key() {
            for earlier in self.ring.with_scope(&scope) {
                if earlier.id != record.id {
                    self.ring.remove(annex, &earlier.id)?;
                }
            }
        }
        Ok((key, record))
    }

    /// Removes the tokens of the nodes that were enrolled with a workspace key of Relay; how
    /// many there were. When no other workspace key of its principal is taken, those of all its
    /// nodes and agents go: of a token from before a rotation nobody else could answer for.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn withdraw_under(
        &self,
        annex: &dyn Annex,
        workspace: &KeyRecord,
        now: Timestamp,
    ) -> StoreResult<usize> {
        let tokens = self.tokens_under(workspace, now);
        for token in &tokens {
            self.ring.remove(annex, &token.id)?;
        }
        Ok(tokens.len())
    }

    /// The tokens that go with a workspace key.
    pub fn tokens_under(&self, workspace: &KeyRecord, now: Timestamp) -> Vec<KeyRecord> {
        let relay = Scope::Relay.word();
        if !workspace.scopes.contains(&relay) {
            return Vec::new();
        }
        let under = format!("{UNDER}{}", workspace.id);
        let others = self.ring.some(|key| {
            key.id != workspace.id
                && key.principal == workspace.principal
                && key.scopes.contains(&relay)
        });
        let another = others
            .iter()
            .any(|key| self.ring.good(&key.id, now).is_ok());
        self.ring.some(|key| {
            let is_token = [Form::RelayNode, Form::RelayAgent]
                .iter()
                .any(|form| key.prefix.starts_with(form.prefix()));
            let orphaned = !another && is_token && key.principal == workspace.principal;
            key.detail.as_ref() == Some(&under) || orphaned
        })
    }

    /// Removes every key that was made for one of them; how many there were.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn withdraw(&self, annex: &dyn Annex, whose: &Subject) -> StoreResult<usize> {
        let keys = self.ring.with_scope(&whose.scope());
        for key in &keys {
            self.ring.remove(annex, &key.id)?;
        }
        Ok(keys.len())
    }
}

#[cfg(test)]
mod tests {
    use muster_store::MemoryStore;

    use super::*;
    use crate::auth::{Need, Ring};

    const NOW: Timestamp = Timestamp(1_000);

    #[test]
    fn a_node_has_one_key_and_a_worker_keeps_the_ones_it_got() {
        let store = MemoryStore::new();
        let auth = Auth::for_tests(&store);
        let node = Subject::Node(NodeId::trusted("node_1"));
        let (first, _) = auth.issue(&store, &node, "ada", NOW).unwrap();
        let (second, _) = auth.issue(&store, &node, "ada", NOW).unwrap();
        assert!(auth.ring.find(first.expose(), NOW).is_err());
        let found = auth.ring.find(second.expose(), NOW).unwrap();
        assert_eq!(found.identity.node.as_ref().unwrap().as_str(), "node_1");
        assert!(found.identity.grants.satisfy(Need::Node));

        let worker = Subject::Worker(WorkerId::trusted("wrk_1"));
        let (one, _) = auth.issue(&store, &worker, "ada", NOW).unwrap();
        let (other, _) = auth.issue(&store, &worker, "ada", NOW).unwrap();
        for key in [&one, &other] {
            let found = auth.ring.find(key.expose(), NOW).unwrap();
            assert_eq!(found.identity.worker.as_deref(), Some("wrk_1"));
            assert_eq!(&*found.identity.principal, "ada");
        }
        assert_eq!(auth.withdraw(&store, &worker).unwrap(), 2);
        assert_eq!(auth.withdraw(&store, &worker).unwrap(), 0);
        assert!(auth.ring.find(one.expose(), NOW).is_err());
        assert!(auth.ring.find(other.expose(), NOW).is_err());
        assert!(auth.ring.find(second.expose(), NOW).is_ok());
        // What is here is what a start would read.
        let again = Ring::open(&store, Vec::new()).unwrap();
        assert_eq!((again.len(), auth.ring.len()), (1, 1));
    }

    #[test]
    fn a_bound_worker_s_key_is_withdrawn_like_any_other() {
        let store = MemoryStore::new();
        let auth = Auth::for_tests(&store);
        let worker = Subject::Worker(WorkerId::trusted("wrk_1"));
        let (key, record) = auth.issue(&store, &worker, "ada", NOW).unwrap();
        let agent = muster_wire::AgentId::trusted("writer");
        auth.bind(&store, &record.id, &agent).unwrap();
        assert_eq!(auth.withdraw(&store, &worker).unwrap(), 1);
        assert!(auth.ring.find(key.expose(), NOW).is_err());
    }

    #[test]
    fn tokens_of_relay_have_the_form_its_broker_expects() {
        let store = MemoryStore::new();
        let auth = Auth::for_tests(&store);
        let node = Subject::RelayNode(NodeId::trusted("node_1"));
        let (key, _) = auth.issue(&store, &node, "relay_1", NOW).unwrap();
        assert!(key.expose().starts_with("nt_live_"));
        let agent = Subject::RelayAgent("agent_1".into());
        let (key, _) = auth.issue(&store, &agent, "relay_1", NOW).unwrap();
        assert!(key.expose().starts_with("at_live_"));
        let found = auth.ring.find(key.expose(), NOW).unwrap();
        assert_eq!(
            found.identity.grants.relay_agent().map(|id| &**id),
            Some("agent_1")
        );
        assert!(!found.identity.grants.satisfy(Need::Relay));
    }
}
