//! `discover_agents` and `get_reasoner_schema`: which functions there are and what they take,
//! from the same look at the directory and the registrations as discovery over the API.

use muster_engine::Refusal;
use muster_wire::{FunctionKind, Target};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::answer::{Found, put, put_if};
use super::argument::{Argument, Arguments, Kind, optional, required};
use super::output;
use crate::api::discovery::{self, Capability, Function, Wanted};
use crate::api::problem::Problem;
use crate::app::App;

/// The SDK's words for how an agent is.
const HEALTH: &[&str] = &["active", "degraded", "inactive", "unknown"];
/// Agents of one page when nobody says how many.
const LIMIT: usize = 50;
/// `agent.function`, the longest.
pub(super) const TARGET_MAX: usize = 300;

/// What `discover_agents` takes.
pub(super) const FIND: &[Argument] = &[
    optional("agent", Kind::Text(128), "Only this agent."),
    optional(
        "function",
        Kind::Text(128),
        "Only functions whose names fit; * stands for any characters, ? for one.",
    ),
    optional(
        "tags",
        Kind::Texts(32),
        "Only functions with one of these tags, or of an agent with one; the same wildcards.",
    ),
    optional(
        "health_status",
        Kind::Word(HEALTH),
        "Only agents that are so.",
    ),
    optional(
        "limit",
        Kind::Whole(1, 100),
        "Agents of one page; 50 when absent.",
    ),
    optional(
        "offset",
        Kind::Whole(0, 1_000_000),
        "Agents to pass over: next_offset of the page before.",
    ),
];

/// What `get_reasoner_schema` takes.
pub(super) const SCHEMA: &[Argument] = &[required(
    "target",
    Kind::Text(TARGET_MAX),
    "agent.function, as discover_agents gives it.",
)];

/// Which agents are wanted.
pub(super) struct Find(Wanted);

impl Find {
    pub(super) fn read(given: &Arguments<'_>) -> Self {
        let function = given.text("function");
        let tags = given.texts("tags");
        Self(Wanted {
            agent: given.text("agent"),
            reasoner: function.clone(),
            skill: function,
            tags: (!tags.is_empty()).then(|| tags.join(",")),
            health_status: given.text("health_status"),
            limit: Some(count(given, "limit").unwrap_or(LIMIT)),
            offset: count(given, "offset"),
            ..Wanted::default()
        })
    }
}

/// A number that fits, because its row bounds it.
fn count(given: &Arguments<'_>, name: &str) -> Option<usize> {
    given.count(name).and_then(|n| usize::try_from(n).ok())
}

/// Lists agents and their functions.
pub(super) async fn find(app: &App, find: &Find) -> Result<Found, Problem> {
    let looked = discovery::look(app, &find.0).await?;
    let page = &looked.pagination;
    let next = page.offset + looked.capabilities.len();
    let mut found = Map::new();
    put(&mut found, "total_agents", looked.total_agents);
    put(&mut found, "has_more", page.has_more);
    put_if(&mut found, "next_offset", page.has_more.then_some(next));
    let agents: Vec<Value> = looked.capabilities.into_iter().map(agent).collect();
    put(&mut found, "agents", agents);
    Ok(found)
}

fn agent(capability: Capability) -> Value {
    let mut found = Map::new();
    let id = capability.agent_id;
    let of = |kind: FunctionKind, functions: Vec<Function>| {
        let shown = functions.into_iter().map(|function| {
            let mut found = Map::new();
            put(&mut found, "target", format!("{id}.{}", function.id));
            put(&mut found, "type", kind.word());
            put(&mut found, "tags", function.tags);
            put_if(&mut found, "description", function.description);
            Value::Object(found)
        });
        shown.collect::<Vec<_>>()
    };
    let mut functions = of(FunctionKind::Reasoner, capability.reasoners);
    functions.extend(of(FunctionKind::Skill, capability.skills));
    put(&mut found, "agent_id", id.as_str());
    put(&mut found, "state", capability.state);
    put(&mut found, "health_status", capability.health_status);
    put(&mut found, "functions", functions);
    put_if(&mut found, "version", capability.version);
    put_if(&mut found, "last_heartbeat", capability.last_heartbeat);
    found.into()
}

/// Which function is asked about.
pub(super) struct About(Target);

impl About {
    pub(super) fn read(given: &Arguments<'_>) -> Result<Self, Problem> {
        let target = given.text("target").unwrap_or_default();
        Target::parse(&target)
            .map(Self)
            .map_err(Problem::validation)
    }
}

/// Shows what a function takes and gives.
pub(super) async fn about(app: &App, About(target): &About) -> Result<Found, Problem> {
    let Some(entry) = app.directory.agent(target.agent.as_str()) else {
        let agent = target.agent.clone();
        return Err(Refusal::NoAgent { agent }.into());
    };
    let Some(function) = entry.function(&target.function) else {
        return Err(Refusal::NoFunction {
            agent: target.agent.clone(),
            function: target.function.clone(),
            has: entry.functions().iter().map(|f| f.name.clone()).collect(),
        }
        .into());
    };
    let name = Some(target.function.to_string());
    let (reasoner, skill) = match function.kind {
        FunctionKind::Reasoner => (name, None),
        FunctionKind::Skill => (None, name),
    };
    let wanted = Wanted {
        agent: Some(target.agent.to_string()),
        reasoner,
        skill,
        include_input_schema: Some(true),
        include_output_schema: Some(true),
        include_examples: Some(true),
        ..Wanted::default()
    };
    let looked = discovery::look(app, &wanted).await?;
    let capability = looked.capabilities.into_iter().next();
    let (state, health, offer) = capability.map_or(("down", "inactive", None), |agent| {
        let offer = agent.reasoners.into_iter().chain(agent.skills).next();
        (agent.state, agent.health_status, offer)
    });
    let mut found = Map::new();
    put(
        &mut found,
        "target",
        format!("{}.{}", target.agent, target.function),
    );
    put(&mut found, "type", function.kind.word());
    put(&mut found, "state", state);
    put(&mut found, "health_status", health);
    let tags = offer.as_ref().map(|offer| offer.tags.clone());
    put(&mut found, "tags", tags.unwrap_or_default());
    let part = |of: fn(&Function) -> Option<&RawValue>| {
        let raw = offer.as_ref().and_then(of)?;
        serde_json::from_str::<Value>(raw.get()).ok()
    };
    let input = part(|offer| offer.input_schema.as_deref());
    put(&mut found, "input_schema", input.unwrap_or_default());
    let output = part(|offer| offer.output_schema.as_deref());
    put(&mut found, "output_schema", output.unwrap_or_default());
    put_if(
        &mut found,
        "examples",
        part(|offer| offer.examples.as_deref()),
    );
    put_if(
        &mut found,
        "description",
        offer.and_then(|offer| offer.description),
    );
    Ok(found)
}

/// What `discover_agents` gives.
pub(super) fn found_schema() -> Value {
    let function = output::object(
        3,
        vec![
            ("target", output::text("What execute_reasoner takes.")),
            ("type", kind_schema()),
            ("tags", tags_schema()),
            ("description", output::text("What it says of itself.")),
        ],
    );
    let agent = output::object(
        4,
        vec![
            ("agent_id", output::text("Its id.")),
            ("state", output::text("How its best process is.")),
            (
                "health_status",
                output::word(HEALTH, "The same in fewer words."),
            ),
            ("functions", output::list(function, "What can be called.")),
            ("version", output::text("Its version.")),
            ("last_heartbeat", output::text("When it was last heard.")),
        ],
    );
    output::object(
        3,
        vec![
            ("total_agents", output::whole("How many fit in all.")),
            ("has_more", output::flag("Whether there is another page.")),
            ("agents", output::list(agent, "By id.")),
            ("next_offset", output::whole("Where the next page begins.")),
        ],
    )
}

/// What `get_reasoner_schema` gives.
pub(super) fn schema_schema() -> Value {
    output::object(
        7,
        vec![
            ("target", output::text("The function.")),
            ("type", kind_schema()),
            ("state", output::text("How its agent's best process is.")),
            (
                "health_status",
                output::word(HEALTH, "The same in fewer words."),
            ),
            ("tags", tags_schema()),
            (
                "input_schema",
                output::any("The schema of input; null when the agent gave none."),
            ),
            (
                "output_schema",
                output::any("The schema of the result; null when the agent gave none."),
            ),
            ("examples", output::any("Examples, as the agent gave them.")),
            ("description", output::text("What it says of itself.")),
        ],
    )
}

fn kind_schema() -> Value {
    let kinds: Vec<&str> = FunctionKind::ALL.iter().map(|kind| kind.word()).collect();
    output::word(&kinds, "What the function is.")
}

fn tags_schema() -> Value {
    output::list(serde_json::json!({"type": "string"}), "Its tags.")
}
