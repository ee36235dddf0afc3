//! Scopes: what a key may do, as words in its record and as bits in memory; and what a route
//! needs. Knows no route and no key.

use std::fmt;
use std::sync::Arc;

use muster_wire::id::check_id;
use muster_wire::{AgentId, NodeId};

/// One scope as people write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything, keys and settings included.
    Admin,
    /// Hold, quarantine, and whatever else stands for a person's decision.
    Operate,
    /// See everything.
    Read,
    /// Call, see the results of its own calls, cancel.
    Call,
    /// Register, beat, call back, log, remember, call: as any agent.
    Agent,
    /// The same, as one agent only.
    AgentOnly(AgentId),
    /// The same, as the one agent this supervised process first registers as.
    Worker(Arc<str>),
    /// Hold the link of one node, and nothing else.
    Node(NodeId),
    /// Enrol one node of this name, once.
    Enroll(Arc<str>),
    /// The workspace key of a Relay broker: enrol and rotate its own node, and use the agent
    /// registry and the channel shim. Every worker of that broker can see it.
    Relay,
    /// The token of one agent under a Relay broker, by that agent's id.
    RelayAgent(Arc<str>),
    /// A browser that signed in with the key of this id; its other scopes say what it may.
    Session(Arc<str>),
}

/// A word is no scope. Which one is not repeated: it may be a secret in the wrong place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopeError;

impl fmt::Display for ScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a scope is one of admin, operate, read, call, agent, agent:ID, worker:ID, node:ID and relay",
        )
    }
}

impl std::error::Error for ScopeError {}

impl Scope {
    /// Reads a word.
    ///
    /// # Errors
    /// When this build knows no such scope, or the id behind the colon is no id.
    pub fn parse(word: &str) -> Result<Self, ScopeError> {
        let no = || ScopeError;
        Ok(match word.split_once(':') {
            None => match word {
                "admin" => Scope::Admin,
                "operate" => Scope::Operate,
                "read" => Scope::Read,
                "call" => Scope::Call,
                "agent" => Scope::Agent,
                "relay" => Scope::Relay,
                _ => return Err(no()),
            },
            Some(("agent", id)) => Scope::AgentOnly(AgentId::parse(id).map_err(|_| no())?),
            Some(("worker", id)) => {
                check_id(id).map_err(|_| no())?;
                Scope::Worker(id.into())
            }
            Some(("node", id)) => Scope::Node(NodeId::parse(id).map_err(|_| no())?),
            Some(("enroll", name)) => {
                check_id(name).map_err(|_| no())?;
                Scope::Enroll(name.into())
            }
            Some(("relay-agent", id)) => {
                check_id(id).map_err(|_| no())?;
                Scope::RelayAgent(id.into())
            }
            Some(("session", id)) => {
                check_id(id).map_err(|_| no())?;
                Scope::Session(id.into())
            }
            Some(_) => return Err(no()),
        })
    }

    /// The word in records.
    pub fn word(&self) -> String {
        match self {
            Scope::Admin => "admin".into(),
            Scope::Operate => "operate".into(),
            Scope::Read => "read".into(),
            Scope::Call => "call".into(),
            Scope::Agent => "agent".into(),
            Scope::AgentOnly(id) => format!("agent:{id}"),
            Scope::Worker(id) => format!("worker:{id}"),
            Scope::Node(id) => format!("node:{id}"),
            Scope::Enroll(name) => format!("enroll:{name}"),
            Scope::Relay => "relay".into(),
            Scope::RelayAgent(id) => format!("relay-agent:{id}"),
            Scope::Session(id) => format!("session:{id}"),
        }
    }

    /// Whether it is for one program alone, and no other scope goes beside it.
    pub fn stands_alone(&self) -> bool {
        match self {
            Scope::Node(_) | Scope::Enroll(_) | Scope::Relay | Scope::RelayAgent(_) => true,
            Scope::Admin
            | Scope::Operate
            | Scope::Read
            | Scope::Call
            | Scope::Agent
            | Scope::AgentOnly(_)
            | Scope::Worker(_)
            | Scope::Session(_) => false,
        }
    }
}

/// What a route needs of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nothing, from anywhere.
    Nothing,
    /// Any key, whatever it may do.
    AnyKey,
    /// To be an agent.
    Agent,
    /// To call.
    Call,
    /// To see what an agent or a caller must see to do its work.
    Results,
    /// To see everything.
    Read,
    /// To stop what runs.
    Cancel,
    /// To decide as a person: always needs a key, on loopback too.
    Operate,
    /// To change who may: always needs a key, on loopback too.
    Admin,
    /// To be a node: its own link. Not even an admin is one. Always needs a key.
    Node,
    /// To be a Relay broker: its workspace key. Always needs a key.
    Relay,
    /// To be a Relay broker, one of its nodes, or one of its agents. Always needs a key.
    RelayAny,
}

impl Need {
    /// Whether it needs a key even on loopback.
    pub fn always_needs_a_key(self) -> bool {
        matches!(
            self,
            Need::Operate | Need::Admin | Need::Node | Need::Relay | Need::RelayAny
        )
    }

    /// The scopes that would do, for the message of a refusal.
    pub fn scopes(self) -> &'static str {
        match self {
            Need::Nothing | Need::AnyKey => "any",
            Need::Agent => "agent",
            Need::Call => "call or agent",
            Need::Results => "read, call or agent",
            Need::Read => "read",
            Need::Cancel => "call, agent or operate",
            Need::Operate => "operate",
            Need::Admin => "admin",
            Need::Node => "node:ID",
            Need::Relay => "relay",
            Need::RelayAny => "relay, or the token of a node or an agent of a Relay broker",
        }
    }

    fn mask(self) -> u8 {
        match self {
            Need::Nothing | Need::AnyKey => 0,
            Need::Agent => AGENT,
            Need::Call => CALL | AGENT,
            Need::Results => READ | CALL | AGENT,
            Need::Read => READ,
            Need::Cancel => CALL | AGENT | OPERATE,
            Need::Operate => OPERATE,
            Need::Admin => ADMIN,
            Need::Node => NODE,
            Need::Relay => RELAY,
            Need::RelayAny => RELAY | NODE | RELAY_AGENT,
        }
    }
}

const ADMIN: u8 = 1;
const OPERATE: u8 = 2;
const READ: u8 = 4;
const CALL: u8 = 8;
const AGENT: u8 = 16;
const NODE: u8 = 32;
const RELAY: u8 = 64;
const RELAY_AGENT: u8 = 128;

/// The scopes of one key, ready to be asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    bits: u8,
    /// The agents it is bound to; empty is bound to none.
    only: Vec<AgentId>,
    worker: Option<Arc<str>>,
    node: Option<NodeId>,
    relay_agent: Option<Arc<str>>,
}

impl Grants {
    /// What a caller on loopback may do without a key.
    pub fn loopback() -> Self {
        Self {
            bits: READ | CALL | AGENT,
            ..Self::default()
        }
    }

    /// Compiles scopes.
    pub fn of(scopes: &[Scope]) -> Self {
        let mut grants = Self::default();
        let mut unbound = false;
        for scope in scopes {
            match scope {
                Scope::Admin => {
                    grants.bits = ADMIN | OPERATE | READ | CALL | AGENT | RELAY;
                    unbound = true;
                }
                Scope::Operate => grants.bits |= OPERATE,
                Scope::Read => grants.bits |= READ,
                Scope::Call => grants.bits |= CALL,
                Scope::Agent => {
                    grants.bits |= AGENT;
                    unbound = true;
                }
                Scope::AgentOnly(id) => {
                    grants.bits |= AGENT;
                    grants.only.push(id.clone());
                }
                Scope::Worker(id) => {
                    grants.bits |= AGENT;
                    grants.worker = Some(id.clone());
                }
                Scope::Node(id) => {
                    grants.bits |= NODE;
                    grants.node = Some(id.clone());
                }
                // Grants nothing by itself: enrolment looks the token up.
                Scope::Enroll(_) => {}
                // Says for whom it stands; what it may, its other scopes say.
                Scope::Session(_) => {}
                Scope::Relay => grants.bits |= RELAY,
                Scope::RelayAgent(id) => {
                    grants.bits |= RELAY_AGENT;
                    grants.relay_agent = Some(id.clone());
                }
            }
        }
        if unbound {
            grants.only.clear();
        }
        grants
    }

    /// Whether these scopes satisfy a need.
    pub fn satisfy(&self, need: Need) -> bool {
        matches!(need, Need::Nothing | Need::AnyKey) || self.bits & need.mask() != 0
    }

    /// Whether it may act as this agent. A worker's key that is not bound yet may act as any:
    /// its first registration binds it.
    pub fn act_as(&self, agent: &str) -> bool {
        self.bits & AGENT != 0
            && (self.only.is_empty() || self.only.iter().any(|a| a.as_str() == agent))
    }

    /// The one agent it is bound to.
    pub fn bound_agent(&self) -> Option<&AgentId> {
        match self.only.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }

    /// The supervised process whose key this is.
    pub fn worker(&self) -> Option<&Arc<str>> {
        self.worker.as_ref()
    }

    /// The node whose link it may hold.
    pub fn node(&self) -> Option<&NodeId> {
        self.node.as_ref()
    }

    /// The agent under a Relay broker whose token it is.
    pub fn relay_agent(&self) -> Option<&Arc<str>> {
        self.relay_agent.as_ref()
    }

    /// Whether it is a worker's key that no registration has bound yet.
    pub fn is_unbound_worker(&self) -> bool {
        self.worker.is_some() && self.only.is_empty()
    }

    /// Whether it sees only results of its own calls.
    pub fn only_own_results(&self) -> bool {
        self.bits & (READ | AGENT | ADMIN) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(words: &[&str]) -> Grants {
        let scopes: Vec<Scope> = words.iter().map(|w| Scope::parse(w).unwrap()).collect();
        Grants::of(&scopes)
    }

    #[test]
    fn words_read_back_as_themselves_and_others_are_refused() {
        for word in [
            "admin",
            "operate",
            "read",
            "call",
            "agent",
            "agent:a-1",
            "worker:wrk_1",
            "node:node_1",
            "enroll:box-1",
            "relay",
            "relay-agent:agt_1",
            "session:key_1",
        ] {
            assert_eq!(Scope::parse(word).unwrap().word(), word);
        }
        for word in [
            "",
            "root",
            "agent:",
            "agent:a b",
            "node:",
            "Admin",
            "agent:..",
            "admin:x",
            "relay:x",
            "enroll:",
            "enroll:a b",
            "node",
        ] {
            assert!(Scope::parse(word).is_err(), "{word:?}");
        }
    }

    #[test]
    fn each_scope_satisfies_exactly_its_needs() {
        use Need::{
            Admin, Agent, Call, Cancel, Node, Nothing, Operate, Read, Relay, RelayAny, Results,
        };
        let all = [
            Nothing, Agent, Call, Results, Read, Cancel, Operate, Admin, Relay, RelayAny, Node,
        ];
        for (word, may) in [
            ("admin", &all[..all.len() - 1]),
            ("operate", &[Nothing, Cancel, Operate]),
            ("read", &[Nothing, Results, Read]),
            ("call", &[Nothing, Call, Results, Cancel]),
            ("agent", &[Nothing, Agent, Call, Results, Cancel]),
            ("agent:a", &[Nothing, Agent, Call, Results, Cancel]),
            ("worker:w", &[Nothing, Agent, Call, Results, Cancel]),
            ("node:n", &[Nothing, Node, RelayAny]),
            ("enroll:n", &[Nothing]),
            ("relay", &[Nothing, Relay, RelayAny]),
            ("relay-agent:a", &[Nothing, RelayAny]),
        ] {
            for need in all {
                assert_eq!(
                    grants(&[word]).satisfy(need),
                    may.contains(&need),
                    "{word} {need:?}"
                );
            }
        }
    }

    #[test]
    fn a_bound_key_acts_only_as_its_agent() {
        let bound = grants(&["agent:a"]);
        assert!(bound.act_as("a") && !bound.act_as("b"));
        assert_eq!(bound.bound_agent().unwrap().as_str(), "a");
        assert!(grants(&["agent:a", "agent"]).act_as("b"));
        assert!(!grants(&["read"]).act_as("a"));
        let worker = grants(&["worker:w"]);
        assert!(worker.is_unbound_worker() && worker.act_as("b"));
        let worker = grants(&["worker:w", "agent:a"]);
        assert!(!worker.is_unbound_worker() && worker.act_as("a") && !worker.act_as("b"));
    }

    #[test]
    fn loopback_without_a_key_never_decides_for_a_person() {
        let free = Grants::loopback();
        for need in [
            Need::Agent,
            Need::Call,
            Need::Results,
            Need::Read,
            Need::Cancel,
        ] {
            assert!(free.satisfy(need));
            assert!(!need.always_needs_a_key());
        }
        for need in [
            Need::Operate,
            Need::Admin,
            Need::Node,
            Need::Relay,
            Need::RelayAny,
        ] {
            assert!(!free.satisfy(need));
            assert!(need.always_needs_a_key());
        }
    }
}
