//! `muster agents`.

use http::Method;
use muster_wire::Timestamp;
use serde_json::{Value, json};

use super::list::{List, Listed};
use super::resolve::{self, Noun};
use super::{Asking, agent_history, consequence, envelope, item, list};
use crate::cli::{Agents, AgentsCommand};
use crate::client::encode;
use crate::failure::Outcome;
use crate::out::table::{Cell, Column, Give, draw as draw_table};
use crate::out::{self, Colour, Style, agent_mark, span};

const COLUMNS: &[Column] = &[
    Column {
        title: "STATE",
        give: Give::Never,
    },
    Column {
        title: "AGENT",
        give: Give::Never,
    },
    Column {
        title: "INST",
        give: Give::Drop(0),
    },
    Column {
        title: "SLOTS",
        give: Give::Drop(2),
    },
    Column {
        title: "QUEUE",
        give: Give::Drop(1),
    },
    Column {
        title: "EVIDENCE",
        give: Give::Cut,
    },
];

/// Lists, shows one, its past, or takes it off the list.
pub(super) async fn run(asking: &Asking<'_>, args: &Agents) -> Outcome<u8> {
    match &args.command {
        Some(AgentsCommand::Show { id }) => return show(asking, id).await,
        Some(AgentsCommand::History(args)) => {
            return agent_history::run(asking, Noun::Agent, args).await;
        }
        Some(AgentsCommand::Retire { agent, yes }) => return retire(asking, agent, *yes).await,
        None => {}
    }
    let list = List {
        kind: "agents",
        path: "/api/v1/nodes",
        filter: Vec::new(),
        limit: Some(AGENTS_MAX),
        join: None,
        draw,
    };
    list::run(asking, &list, args.plain.watch).await
}

/// More agents are counted as "more".
const AGENTS_MAX: u32 = 10_000;

async fn retire(asking: &Asking<'_>, typed: &str, yes: bool) -> Outcome<u8> {
    let id = resolve::id_for_good(asking, Noun::Agent, typed).await?;
    let path = format!("/api/v1/nodes/{}/retire", encode(&id));
    let act = consequence::Act {
        method: Method::POST,
        path: &path,
        body: Some("{}".into()),
        yes,
    };
    if !act.is_wanted(asking).await? {
        return Ok(0);
    }
    let retired = asking.client.post(&path, &json!({})).await?.json()?;
    if asking.json {
        envelope::print_one("retired", &retired);
    } else {
        let stays = item::text(&retired, &["stays"]).unwrap_or_default();
        out::data(&format!("{} is off the list; {stays}", out::clean(&id)));
    }
    Ok(0)
}

/// The list for people.
pub(super) fn draw(style: &Style, listed: &Listed) -> String {
    if listed.items.is_empty() {
        return "no agent has registered; try: muster dev -- python agent.py\n".to_owned();
    }
    let rows: Vec<Vec<Cell>> = listed
        .items
        .iter()
        .map(|item| row(style, item, listed.as_of))
        .collect();
    draw_table(style, COLUMNS, &rows)
}

fn row(style: &Style, item: &Value, now: Timestamp) -> Vec<Cell> {
    vec![
        state_cell(style, item),
        Cell::new(item::id(item)),
        Cell::new(instances(item)),
        Cell::new(slots(item)),
        Cell::new(queue(item)),
        Cell::new(evidence(item, now)),
    ]
}

fn state_cell(style: &Style, item: &Value) -> Cell {
    let held = item.get("held") == Some(&Value::Bool(true))
        || item.get("hold").is_some_and(Value::is_object);
    let state = if held { "held".to_owned() } else { state(item) };
    let mark = agent_mark(&state);
    Cell::coloured(mark.colour, format!("{} {state}", mark.text(style)))
}

fn state(item: &Value) -> String {
    item::text(item, &["state", "health_status", "lifecycle_status"])
        .unwrap_or_else(|| "unknown".to_owned())
}

/// How many of its processes are well.
fn instances(item: &Value) -> String {
    let Some(all) = item.get("instances").and_then(Value::as_array) else {
        return item::text(item, &["instance_count"]).unwrap_or_default();
    };
    let here: Vec<_> = all
        .iter()
        .filter(|instance| state(instance) != "gone")
        .collect();
    let well = here
        .iter()
        .filter(|instance| state(instance) == "active")
        .count();
    match here.len() {
        n if n == well => n.to_string(),
        n => format!("{well} of {n}"),
    }
}

/// Held and cap; without a cap, how many.
fn slots(item: &Value) -> String {
    let slots = item.get("slots").unwrap_or(item);
    let held = item::number(slots, &["used", "held", "running", "slots_held"]);
    let cap = item::number(slots, &["cap", "max_concurrent"]).filter(|cap| *cap > 0);
    match (held, cap) {
        (Some(held), Some(cap)) => format!("{held}/{cap}"),
        (Some(held), None) => held.to_string(),
        (None, _) => String::new(),
    }
}

fn queue(item: &Value) -> String {
    let queue = item
        .get("queue")
        .filter(|queue| queue.is_object())
        .unwrap_or(item);
    item::number(queue, &["depth", "queued", "queue"]).map_or_else(String::new, span::number)
}

fn evidence(item: &Value, now: Timestamp) -> String {
    if let Some(said) = item::text(item, &["evidence", "why"]) {
        return said;
    }
    match item::time(item, &["last_heartbeat", "last_beat", "beat_at"]) {
        Some(at) => format!("beat {}", span::age(item::between(at, now))),
        None => "never heard".to_owned(),
    }
}

async fn show(asking: &Asking<'_>, typed: &str) -> Outcome<u8> {
    let (_, body) = resolve::get(asking, Noun::Agent, typed).await?;
    if asking.json {
        envelope::print_one("agent", &body);
        return Ok(0);
    }
    let now = item::time(&body, &["as_of"]).unwrap_or_else(Timestamp::wall_clock);
    out::data_raw(&text_of(&asking.look.data, &body, now));
    Ok(0)
}

/// One agent for people: its instances and its functions.
pub(super) fn text_of(style: &Style, agent: &Value, now: Timestamp) -> String {
    let state = state(agent);
    let mark = agent_mark(&state);
    let head = format!(
        "{} {}  {}  {}",
        mark.painted(style),
        style.paint(mark.colour, &state),
        style.paint(Colour::Bold, &item::id(agent)),
        evidence(agent, now),
    );
    let mut text = format!("{}\n", style.wrapped(2, &style.words(&head)));
    let line = |name: &str, said: String| {
        let said = style.wrapped(13, &style.words(&said));
        format!("  {name:10} {said}\n")
    };
    for (name, value) in [("slots", slots(agent)), ("queue", queue(agent))] {
        if !value.is_empty() {
            text += &line(name, value);
        }
    }

    let list = |name: &str| {
        agent
            .get(name)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    for instance in list("instances") {
        let state = self::state(&instance);
        let mark = agent_mark(&state);
        let worker = item::text(&instance, &["worker"])
            .map(|worker| format!("  worker {worker}"))
            .unwrap_or_default();
        let said = format!(
            "{} {state}  {}  {}  {}{worker}",
            mark.painted(style),
            item::text(&instance, &["version"]).unwrap_or_default(),
            item::text(&instance, &["base_url"]).unwrap_or_else(|| "no address".to_owned()),
            evidence(&instance, now),
        );
        text += &line("instance", said);
    }
    // The registration has the schemas; the list of functions has the names.
    let registered = agent
        .get("registration")
        .filter(|it| it.get("reasoners").is_some());
    let described = registered.unwrap_or(agent);
    for (kind, name) in [
        ("reasoner", "reasoners"),
        ("skill", "skills"),
        ("function", "functions"),
    ] {
        for function in described
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let id = item::text(function, &["id", "name"]).unwrap_or_default();
            let kind = item::text(function, &["kind", "type"]).unwrap_or_else(|| kind.to_owned());
            text += &line(&kind, format!("{id} {}", fields_of(function)));
        }
    }
    style.words(&text)
}

/// `{city* string, days integer}`; a star is required.
fn fields_of(function: &Value) -> String {
    let schema = function.get("input_schema").unwrap_or(&Value::Null);
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return String::new();
    };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|all| all.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let fields: Vec<String> = properties
        .iter()
        .map(|(name, of)| {
            let star = if required.contains(&name.as_str()) {
                "*"
            } else {
                ""
            };
            let kind = of.get("type").and_then(Value::as_str).unwrap_or("any");
            format!("{}{star} {}", out::clean(name), out::clean(kind))
        })
        .collect();
    format!("{{{}}}", fields.join(", "))
}
