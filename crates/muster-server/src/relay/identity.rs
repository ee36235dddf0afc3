//! Which id and token an agent gets, and when they are taken back. An id is one life: the same
//! agent of the same broker keeps it, another process under the same name gets another one.

use muster_engine::fleet::{FleetQuestion, FleetReply};
use muster_wire::{Category, NodeId, Timestamp, WorkerId, mint};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::ask;
use super::envelope::refuse;
use super::record::{Agent, Presence};
use super::registry::{Change, Tables};
use crate::api::fleet;
use crate::api::problem::Problem;
use crate::app::App;
use crate::auth::{KeyText, Subject};

/// The type of an agent that is a worker.
pub(crate) const WORKER: &str = "agent";

/// The longest name that a broker may give an agent of its own.
const NAME_BYTES_MAX: usize = 128;

/// An agent as somebody wants it registered; checked for its form.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// Its name.
    pub(crate) name: String,
    /// Its type.
    pub(crate) kind: String,
    /// Whose key registers it.
    pub(crate) principal: String,
    /// The node that runs it, where that node itself asks.
    pub(crate) node: Option<NodeId>,
    /// The invocation that starts it.
    pub(crate) invocation: Option<String>,
    /// The id that it has already: its worker's.
    pub(crate) id: Option<String>,
    /// Whatever its broker keeps with it.
    pub(crate) metadata: Value,
}

/// Registers an agent and makes its token, which is shown this once.
///
/// # Errors
/// 409 when the name is another living agent's, or when the store cannot be written.
pub(crate) async fn register(app: &App, wanted: Wanted) -> Result<(Agent, KeyText), Problem> {
    free_of_the_ended(app, &wanted.name).await?;
    let (work, now) = (app.clone(), app.clock.now());
    app.blocking(move |stores| {
        let annex = &*stores.annex;
        work.relay.change(annex, now, |tables| {
            let before = tables.agent(&wanted.name);
            let mut agent = choose(before, wanted, now)?;
            let whose = Subject::RelayAgent(agent.id.as_str().into());
            let (token, _) = work.auth.issue(annex, &whose, &agent.principal, now)?;
            agent.token_sha256 = sha256(token.expose());
            let changes = tables.putting(agent.clone())?;
            let replaced = before.filter(|before| before.id != agent.id);
            for gone in replaced.into_iter().chain(dropped(tables, &changes)) {
                let whose = Subject::RelayAgent(gone.id.as_str().into());
                work.auth.withdraw(annex, &whose)?;
            }
            Ok(((agent, token), changes))
        })
    })
    .await
}

/// Frees a name whose worker has ended a moment ago: its record follows the decision.
async fn free_of_the_ended(app: &App, name: &str) -> Result<(), Problem> {
    let holder = app.relay.look(|tables| {
        let agent = tables.agent(name)?;
        (!agent.is_free() && agent.node.is_some()).then(|| agent.id.clone())
    });
    let Some(id) = holder else { return Ok(()) };
    let question = FleetQuestion::Worker(id.as_str().into());
    if let FleetReply::Worker(view) = fleet::ask(app, question).await?
        && view.row.ended.is_some()
    {
        leave(app, &id, Leaving::Offline).await?;
    }
    Ok(())
}

/// Registers an agent as its node asks for it; one that the plane placed under its worker's id.
///
/// # Errors
/// 400 when the name is none; otherwise as [`register`].
pub(crate) async fn of_a_node(
    app: &App,
    node: NodeId,
    name: String,
    worker: Option<WorkerId>,
    invocation: Option<String>,
) -> Result<(Agent, KeyText), Problem> {
    // A broker's own names are not ours to refuse for a blank in them.
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(char::is_control) {
        let message = format!("an agent's name has 1 to {NAME_BYTES_MAX} bytes");
        return Err(Problem::validation(message));
    }
    let view = ask::node(app, node.as_str()).await?;
    let wanted = Wanted {
        name,
        kind: WORKER.into(),
        principal: view.row.principal.to_string(),
        node: Some(node),
        invocation: invocation.filter(|id| id.len() <= 2 * NAME_BYTES_MAX),
        id: worker.map(|worker| worker.to_string()),
        metadata: Value::Null,
    };
    register(app, wanted).await
}

/// The agent that a wish becomes, beside the one that has the name now.
fn choose(before: Option<&Agent>, wanted: Wanted, now: Timestamp) -> Result<Agent, Problem> {
    let node = wanted.node.map(|node| node.to_string());
    let kept = before.filter(|before| match (&node, &wanted.id) {
        (Some(_), Some(id)) => before.id == *id,
        (Some(_), None) => {
            before.node == node && before.invocation == wanted.invocation && !before.is_free()
        }
        (None, _) => before.is_the_same(&wanted.principal, &wanted.metadata),
    });
    // A node knows whether one of its own names is free; of all others only its owner does.
    let own = |before: &Agent| node.is_some() && before.node == node;
    if let Some(before) = before
        && kept.is_none()
        && !before.is_free()
        && !own(before)
    {
        return Err(refuse(
            Category::Conflict,
            "agent_already_exists",
            "an agent of that name is registered and has not left; take another name, or delete it",
        ));
    }
    let noun = if wanted.kind == WORKER {
        "wrk"
    } else {
        "agent"
    };
    Ok(Agent {
        id: match (kept, wanted.id) {
            (Some(before), _) => before.id.clone(),
            (None, Some(id)) => id,
            (None, None) => mint(noun),
        },
        name: wanted.name,
        kind: wanted.kind,
        token_sha256: String::new(),
        principal: wanted.principal,
        node,
        invocation: wanted.invocation,
        presence: Presence::Online,
        channels: kept
            .map(|before| before.channels.clone())
            .unwrap_or_default(),
        metadata: wanted.metadata,
        created_at: kept.map_or(now, |before| before.created_at),
        changed_at: now,
    })
}

fn dropped<'a>(tables: &'a Tables, changes: &'a [Change]) -> impl Iterator<Item = &'a Agent> {
    changes.iter().filter_map(|change| match change {
        Change::Drop(name) => tables.agent(name),
        Change::Put(_) | Change::PutChannel(_) => None,
    })
}

/// What becomes of an agent that leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// Its record stays until the name is wanted again.
    Offline,
    /// Its record goes.
    Deleted,
}

/// Takes an agent and its token back; `false` when there is none of that id. Does nothing to the
/// process: that is its node's.
///
/// # Errors
/// When the store cannot be written.
pub(crate) async fn leave(app: &App, id: &str, leaving: Leaving) -> Result<bool, Problem> {
    if app.relay.look(|tables| tables.by_id(id).is_none()) {
        return Ok(false);
    }
    let (work, now, id) = (app.clone(), app.clock.now(), id.to_owned());
    app.blocking(move |stores| {
        let annex = &*stores.annex;
        let left = work.relay.change(annex, now, |tables| {
            let Some(agent) = tables.by_id(&id) else {
                return Ok((false, Vec::new()));
            };
            let change = match leaving {
                Leaving::Deleted => Change::Drop(agent.name.clone()),
                Leaving::Offline => {
                    let mut agent = agent.clone();
                    (agent.presence, agent.changed_at) = (Presence::Offline, now);
                    Change::Put(Box::new(agent))
                }
            };
            Ok((true, vec![change]))
        })?;
        work.auth.withdraw(annex, &Subject::RelayAgent(id.into()))?;
        Ok(left)
    })
    .await
}

/// Changes the record of an agent, found by its id.
///
/// # Errors
/// When there is none, what the change says, or when the store cannot be written.
pub(crate) async fn edit(
    app: &App,
    id: String,
    edit: impl FnOnce(&Tables, &mut Agent) -> Result<(), Problem> + Send + 'static,
) -> Result<Agent, Problem> {
    let (work, now) = (app.clone(), app.clock.now());
    app.blocking(move |stores| {
        work.relay.change(&*stores.annex, now, |tables| {
            let before = tables.by_id(&id).ok_or_else(not_found)?;
            let mut agent = before.clone();
            edit(tables, &mut agent)?;
            if agent == *before {
                return Ok((agent, Vec::new()));
            }
            agent.changed_at = now;
            let changes = tables.putting(agent.clone())?;
            Ok((agent, changes))
        })
    })
    .await
}

/// 404, in Relay's word.
pub(crate) fn not_found() -> Problem {
    refuse(
        Category::NotFound,
        "agent_not_found",
        "there is no agent of that name; see GET /v1/agents",
    )
}

/// SHA-256 in hexadecimal.
fn sha256(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(node: Option<&str>, invocation: Option<&str>, id: Option<&str>) -> Wanted {
        Wanted {
            name: "writer".into(),
            kind: WORKER.into(),
            principal: "ada".into(),
            node: node.map(NodeId::trusted),
            invocation: invocation.map(str::to_owned),
            id: id.map(str::to_owned),
            metadata: Value::Null,
        }
    }

    fn at(node: &str, invocation: Option<&str>, id: Option<&str>) -> Agent {
        choose(None, wanted(Some(node), invocation, id), Timestamp(1)).unwrap()
    }

    #[test]
    fn the_same_start_keeps_its_id_and_another_process_gets_another() {
        let first = at("node_1", None, None);
        assert!(first.id.starts_with("wrk_"), "{}", first.id);
        let again = choose(
            Some(&first),
            wanted(Some("node_1"), None, None),
            Timestamp(9),
        );
        assert_eq!(again.unwrap().id, first.id);

        let started = at("node_1", Some("start:wrk_7"), Some("wrk_7"));
        assert_eq!(started.id, "wrk_7");
        let again = wanted(Some("node_1"), Some("start:wrk_7"), Some("wrk_7"));
        let again = choose(Some(&started), again, Timestamp(9)).unwrap();
        assert_eq!(
            (again.id.as_str(), again.created_at),
            ("wrk_7", Timestamp(1))
        );
        let next = wanted(Some("node_1"), Some("start:wrk_8"), Some("wrk_8"));
        let next = choose(Some(&started), next, Timestamp(9)).unwrap();
        assert_eq!((next.id.as_str(), next.created_at), ("wrk_8", Timestamp(9)));
    }

    #[test]
    fn a_living_agent_of_another_node_keeps_its_name() {
        let first = at("node_1", None, None);
        for other in [wanted(Some("node_2"), None, None), wanted(None, None, None)] {
            let refused = choose(Some(&first), other, Timestamp(9)).unwrap_err();
            assert_eq!(refused.body.error, "agent_already_exists");
        }
        let gone = Agent {
            presence: Presence::Offline,
            ..first.clone()
        };
        let next = choose(
            Some(&gone),
            wanted(Some("node_2"), None, None),
            Timestamp(9),
        );
        assert_ne!(next.unwrap().id, first.id);
        // Its own process ended; the node starts another one under the name.
        let next = choose(
            Some(&gone),
            wanted(Some("node_1"), None, None),
            Timestamp(9),
        );
        assert_ne!(next.unwrap().id, first.id);
    }

    #[test]
    fn the_hash_is_the_one_that_brokers_name() {
        let hash = "a8ca8cb3c1fddb283a523796637ccbb465020a74ef7076d1743e47fde2b88012";
        assert_eq!(sha256("at_live_loc"), hash);
    }
}
