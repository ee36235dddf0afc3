//! `muster agents`.

use muster_wire::Timestamp;
use serde_json::Value;

use super::list::{List, Listed};
use super::resolve::{self, Noun};
use super::{Asking, item, list};
use crate::cli::{Listing, NoFilter, Show};
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

/// Lists, or shows one.
pub(super) async fn run(asking: &Asking<'_>, args: &Listing<NoFilter>) -> Outcome<u8> {
    if let Some(Show::Show { id, .. }) = &args.show {
        return show(asking, id).await;
    }
    let list = List {
        kind: "agents",
        path: "/api/v1/nodes",
        filter: Vec::new(),
        limit: Some(AGENTS_MAX),
        join: Some(list::Join::queues(with_queues)),
        draw,
    };
    list::run(asking, &list, args.plain.watch).await
}

/// More agents are counted as "more".
const AGENTS_MAX: u32 = 10_000;

/// Slots and queue are the queues' to say.
fn with_queues(items: &mut [Value], queues: &[Value]) {
    for item in items {
        let id = item::raw(item, &["id", "node_id"]);
        let queue = queues
            .iter()
            .find(|queue| item::raw(queue, &["agent"]) == id);
        if let (Some(item), Some(queue)) = (item.as_object_mut(), queue) {
            for name in ["running", "cap", "queued", "waiting_callers", "held"] {
                if let Some(value) = queue.get(name) {
                    item.entry(name).or_insert_with(|| value.clone());
                }
            }
        }
    }
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
    let held = item.get("held").and_then(Value::as_bool).unwrap_or(false);
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
    let held = item::number(slots, &["held", "running", "slots_held"]);
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
    let mut bodies = [body];
    let queues = asking.client.get_json("/api/v1/queues").await?;
    with_queues(&mut bodies, &Listed::of(queues).items);
    let [body] = bodies;
    if asking.json {
        list::print_one("agent", &body);
        return Ok(0);
    }
    out::data_raw(&text_of(&asking.look.data, &body, Timestamp::wall_clock()));
    Ok(0)
}

/// One agent for people: its instances and its functions.
pub(super) fn text_of(style: &Style, agent: &Value, now: Timestamp) -> String {
    let state = state(agent);
    let mark = agent_mark(&state);
    let mut text = format!(
        "{} {}  {}  {}\n",
        mark.painted(style),
        style.paint(mark.colour, &state),
        style.paint(Colour::Bold, &item::id(agent)),
        evidence(agent, now),
    );
    for (name, value) in [("slots", slots(agent)), ("queue", queue(agent))] {
        if !value.is_empty() {
            text += &format!("  {name:10} {value}\n");
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
        text += &format!(
            "  {:10} {} {state}  {}  {}  {}{worker}\n",
            "instance",
            mark.painted(style),
            item::text(&instance, &["version"]).unwrap_or_default(),
            item::text(&instance, &["base_url"]).unwrap_or_else(|| "no address".to_owned()),
            evidence(&instance, now),
        );
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
            text += &format!("  {kind:10} {id} {}\n", fields_of(function));
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
