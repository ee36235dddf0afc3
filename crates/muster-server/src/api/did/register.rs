//! `POST /did/register`: gives an agent its identities. The same again gives the same; new
//! functions get new ones. Private keys go to whoever owns the agent's id, and to nobody else.

use axum::extract::State;
use axum::response::IntoResponse as _;
use muster_wire::{AgentId, Category, FunctionKind, FunctionName};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::path_of;
use crate::api::body::{RawBody, json as parse};
use crate::api::caller::Caller;
use crate::api::problem::{Answer, Problem};
use crate::app::App;
use crate::identity::{IdentityError, Owned, jwk};

/// Functions of one agent.
const FUNCTIONS_MAX: usize = 2_000;

/// Who registers.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct RegisterBody {
    /// The agent.
    agent_node_id: String,
    /// Its reasoners.
    reasoners: Option<Vec<Named>>,
    /// Its skills.
    skills: Option<Vec<Named>>,
}

/// A function. What else is said of it is not read.
#[derive(Debug, Deserialize, ToSchema)]
struct Named {
    /// Its name.
    id: String,
}

/// Gives a registered agent its identities, made at the first time.
#[utoipa::path(post, path = "/api/v1/did/register", tag = "identity", request_body = RegisterBody,
    responses((status = 200, description = "`success` and the `identity_package`, private keys included"),
              (status = 404, description = "No such agent: it registers first"),
              (status = 409, description = "The agent's id belongs to another principal")))]
pub(super) async fn register(
    State(app): State<App>,
    caller: Caller,
    RawBody(body): RawBody,
) -> Answer {
    let wish: RegisterBody = parse(&body, "{agent_node_id, reasoners?, skills?}")?;
    let agent = AgentId::parse(&wish.agent_node_id)
        .map_err(|error| Problem::validation(format!("agent_node_id: {error}")))?;
    caller.must_be(agent.as_str())?;
    let functions = functions(wish.reasoners, wish.skills)?;
    let (work, now) = (app.clone(), app.clock.now());
    let made = app
        .blocking(move |stores| {
            let owner = stores.decisions.agents(Some(&agent))?.pop();
            match owner {
                None => return Ok(Err(Refused::Unknown)),
                Some(owner) if *owner.row.principal != *caller.principal => {
                    return Ok(Err(Refused::Taken));
                }
                Some(_) => {}
            }
            let ready = work.identity.ready(&work.config, stores)?;
            let owned = work
                .identity
                .of_agent(&ready, stores, &agent, &functions, now)?;
            Ok::<_, IdentityError>(Ok((owned, ready.issuer_did.clone())))
        })
        .await?;
    let (owned, server) = made.map_err(|refused| match refused {
        Refused::Unknown => Problem::not_found("no such agent is registered; register it first"),
        Refused::Taken => Problem::new(
            Category::AgentIdTaken,
            "the agent's id belongs to another principal",
        ),
    })?;
    let answer = json!({ "success": true, "identity_package": package(&owned, &server) });
    Ok(axum::Json(answer).into_response())
}

enum Refused {
    Unknown,
    Taken,
}

fn functions(
    reasoners: Option<Vec<Named>>,
    skills: Option<Vec<Named>>,
) -> Result<Vec<(FunctionKind, FunctionName)>, Problem> {
    let of = |kind, named: Option<Vec<Named>>| {
        let named = named.unwrap_or_default().into_iter();
        named.map(move |named| (kind, named.id))
    };
    let named: Vec<_> = of(FunctionKind::Reasoner, reasoners)
        .chain(of(FunctionKind::Skill, skills))
        .collect();
    if named.len() > FUNCTIONS_MAX {
        return Err(Problem::validation(format!(
            "at most {FUNCTIONS_MAX} functions"
        )));
    }
    named
        .into_iter()
        .map(|(kind, name)| {
            let name = FunctionName::parse(&name)
                .map_err(|error| Problem::validation(format!("id of a {kind}: {error}")))?;
            Ok((kind, name))
        })
        .collect()
}

fn package(owned: &[Owned], server: &str) -> Value {
    let of = |component: &str| {
        let mut map = Map::new();
        for one in owned.iter().filter(|one| one.row.component == component) {
            map.insert(one.row.function.clone(), identity(one));
        }
        map
    };
    json!({
        "agent_did": of("agent").remove("").unwrap_or(Value::Null),
        "reasoner_dids": of("reasoner"),
        "skill_dids": of("skill"),
        "agentfield_server_id": server,
    })
}

fn identity(one: &Owned) -> Value {
    let mut shown = json!({
        "did": one.row.did,
        "private_key_jwk": jwk::private(&one.key).to_string(),
        "public_key_jwk": jwk::public(&one.key.verifying_key()).to_string(),
        "derivation_path": path_of(&one.row),
        "component_type": one.row.component,
    });
    if !one.row.function.is_empty() {
        shown["function_name"] = one.row.function.as_str().into();
    }
    shown
}
