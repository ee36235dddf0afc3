//! `muster compare`: two runs side by side. Steps are paired as a restart would pair them: under
//! paired callers, what one took over from the other, and the rest by its place among calls of
//! the same function. Payloads are not read; their sizes tell when they differ.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::executions::shown_id;
use super::list::{Listed, pages};
use super::resolve::{self, Noun};
use super::{Asking, envelope, item};
use crate::cli::Compare;
use crate::client::encode;
use crate::failure::Outcome;
use crate::out::table::{Cell, Column, Give, draw as draw_table};
use crate::out::{self, Style, execution_mark, span};

const COLUMNS: &[Column] = &[
    Column {
        title: "STEP",
        give: Give::Never,
    },
    Column {
        title: "A",
        give: Give::Never,
    },
    Column {
        title: "B",
        give: Give::Never,
    },
    Column {
        title: "TOOK A",
        give: Give::Drop(1),
    },
    Column {
        title: "TOOK B",
        give: Give::Drop(0),
    },
    Column {
        title: "DIFFERS",
        give: Give::Cut,
    },
];

/// More steps of a run are not paired; said when there are.
const STEPS_MAX: u32 = 20_000;
/// Calls may nest 64 deep.
const DEPTH_MAX: usize = 80;

/// Two steps that are the same call, or one without a partner.
#[derive(Debug, Clone)]
struct Pair {
    depth: usize,
    name: String,
    a: Option<Value>,
    b: Option<Value>,
}

/// Compares.
pub(super) async fn run(asking: &Asking<'_>, args: &Compare) -> Outcome<u8> {
    let (a, b) = (
        resolve::id(asking, Noun::Run, &args.a).await?,
        resolve::id(asking, Noun::Run, &args.b).await?,
    );
    let (left, right) = (steps(asking, &a).await?, steps(asking, &b).await?);
    let listed = compared(&a, &b, &left, &right, args.all);
    if asking.json {
        out::data(&envelope::list("compare", &listed));
        return Ok(0);
    }
    out::data_raw(&draw(&asking.look.data, &listed));
    if !left.next_cursor.is_null() || !right.next_cursor.is_null() {
        out::talk("a run has more steps than are read here");
    }
    Ok(0)
}

async fn steps(asking: &Asking<'_>, run: &str) -> Outcome<Listed> {
    let path = format!("/api/v1/runs/{}/steps", encode(run));
    pages(asking, &path, &[], Some(STEPS_MAX)).await
}

/// The pairs as a list; without `all`, those that differ.
pub(super) fn compared(a: &str, b: &str, left: &Listed, right: &Listed, all: bool) -> Listed {
    let pairs = pair(&left.items, &right.items);
    let total = pairs.len();
    let mut same = 0usize;
    let lone = |side: fn(&Pair) -> bool| pairs.iter().filter(|pair| side(pair)).count();
    let (only_a, only_b) = (lone(|pair| pair.b.is_none()), lone(|pair| pair.a.is_none()));
    let mut items = Vec::new();
    for pair in &pairs {
        let differs = differences(pair);
        same += usize::from(differs.is_empty());
        if differs.is_empty() && !all {
            continue;
        }
        let side = |step: &Option<Value>| match step {
            Some(step) => envelope::normal("step", step.clone()),
            None => Value::Null,
        };
        items.push(json!({
            "target": pair.name, "depth": pair.depth, "differs": differs,
            "a": side(&pair.a), "b": side(&pair.b),
        }));
    }
    let mut listed = Listed::of(json!({"items": items}));
    listed.as_of = left.as_of.max(right.as_of);
    for (name, value) in [
        ("a", json!(a)),
        ("b", json!(b)),
        ("total", json!(total)),
        ("same", json!(same)),
        ("only_a", json!(only_a)),
        ("only_b", json!(only_b)),
    ] {
        listed.more.insert(name.to_owned(), value);
    }
    listed
}

type Children<'a> = HashMap<Option<&'a str>, Vec<&'a Value>>;

fn pair(left: &[Value], right: &[Value]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    visit(
        &children(left),
        &children(right),
        [None, None],
        0,
        &mut pairs,
    );
    pairs
}

/// Steps by the one that called them; one whose caller is not here is a root.
fn children(steps: &[Value]) -> Children<'_> {
    let known: Vec<&str> = steps.iter().filter_map(id).collect();
    let known: std::collections::HashSet<&str> = known.into_iter().collect();
    let mut children: Children<'_> = HashMap::new();
    for step in steps {
        let parent = step
            .get("parent_execution_id")
            .and_then(Value::as_str)
            .filter(|parent| known.contains(parent) && Some(*parent) != id(step));
        children.entry(parent).or_default().push(step);
    }
    children
}

fn id(step: &Value) -> Option<&str> {
    step.get("execution_id")
        .or_else(|| step.get("id"))
        .and_then(Value::as_str)
}

fn visit(
    a: &Children<'_>,
    b: &Children<'_>,
    of: [Option<&str>; 2],
    depth: usize,
    pairs: &mut Vec<Pair>,
) {
    // A root has no caller; a step without a partner has no one to pair its calls with.
    let below = |side: &Children<'_>, of: Option<&str>| -> Vec<Value> {
        match (of, depth) {
            (None, 1..) => Vec::new(),
            _ => side
                .get(&of)
                .into_iter()
                .flatten()
                .map(|step| (*step).clone())
                .collect(),
        }
    };
    let (ours, mut theirs) = (below(a, of[0]), below(b, of[1]));
    let mut level: Vec<(Option<Value>, Option<Value>)> = Vec::new();
    let is_twin = |x: &Value, y: &Value| {
        let of = |step: &Value| item::raw(step, &["replay_of"]);
        (of(y).is_some() && of(y).as_deref() == id(x))
            || (of(x).is_some() && of(x).as_deref() == id(y))
    };
    // What was taken over first, so that it is nobody else's partner.
    let mut partners: Vec<Option<Value>> = ours
        .iter()
        .map(|x| {
            theirs
                .iter()
                .position(|y| is_twin(x, y))
                .map(|at| theirs.remove(at))
        })
        .collect();
    for (x, partner) in ours.iter().zip(&mut partners) {
        if partner.is_none() {
            let at = theirs
                .iter()
                .position(|y| item::target(y) == item::target(x));
            *partner = at.map(|at| theirs.remove(at));
        }
    }
    level.extend(ours.into_iter().map(Some).zip(partners));
    level.extend(theirs.into_iter().map(|y| (None, Some(y))));
    for (x, y) in level {
        let name = x
            .as_ref()
            .or(y.as_ref())
            .map(item::target)
            .unwrap_or_default();
        let next = [
            x.as_ref().and_then(id).map(str::to_owned),
            y.as_ref().and_then(id).map(str::to_owned),
        ];
        pairs.push(Pair {
            depth,
            name,
            a: x,
            b: y,
        });
        if depth < DEPTH_MAX {
            visit(
                a,
                b,
                [next[0].as_deref(), next[1].as_deref()],
                depth + 1,
                pairs,
            );
        }
    }
}

/// In what two steps differ; the time they took is no difference.
fn differences(pair: &Pair) -> Vec<String> {
    let (a, b) = match (&pair.a, &pair.b) {
        (Some(a), Some(b)) => (a, b),
        (Some(_), None) => return vec!["only in A".to_owned()],
        (None, _) => return vec!["only in B".to_owned()],
    };
    let mut differs = Vec::new();
    if b.get("replay_hit") == Some(&json!(true)) || a.get("replay_hit") == Some(&json!(true)) {
        // Taken over: the same result by what it is.
        return differs;
    }
    let (state_a, state_b) = (item::state(a), item::state(b));
    if state_a != state_b {
        differs.push(format!("{state_a}, then {state_b}"));
    }
    for (name, words) in [
        ("error_category", "category"),
        ("error", "error"),
        ("attempt", "attempts"),
    ] {
        let (x, y) = (item::text(a, &[name]), item::text(b, &[name]));
        if x != y && (name != "error" || (x.is_some() && y.is_some())) {
            let word = |text: Option<String>| text.unwrap_or_else(|| "none".to_owned());
            differs.push(format!("{words} {}, then {}", word(x), word(y)));
        }
    }
    for (name, words) in [("input_size", "input"), ("result_size", "result")] {
        let (x, y) = (item::number(a, &[name]), item::number(b, &[name]));
        if x != y && x.is_some() && y.is_some() {
            let size = |n: Option<u64>| n.map_or_else(|| "none".to_owned(), span::bytes);
            differs.push(format!("{words} {}, then {}", size(x), size(y)));
        }
    }
    differs
}

/// The pairs for people.
pub(super) fn draw(style: &Style, listed: &Listed) -> String {
    let count = |name: &str| listed.more.get(name).and_then(Value::as_u64).unwrap_or(0);
    let run = |name: &str| {
        let id = listed
            .more
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default();
        shown_id(style, &out::clean(id))
    };
    let (total, same) = (count("total"), count("same"));
    let (only_a, only_b) = (count("only_a"), count("only_b"));
    let differ = total.saturating_sub(same + only_a + only_b);
    let mut said = vec![format!("{} the same", span::number(same))];
    for (n, words) in [
        (differ, if differ == 1 { "differs" } else { "differ" }),
        (only_a, "only in A"),
        (only_b, "only in B"),
    ] {
        if n > 0 {
            said.push(format!("{} {words}", span::number(n)));
        }
    }
    let steps = match total {
        1 => "1 step".to_owned(),
        n => format!("{} steps", span::number(n)),
    };
    let head = format!(
        "A {}  B {}: {steps}, {}",
        run("a"),
        run("b"),
        said.join(", ")
    );
    let mut text = style.wrapped(2, &style.words(&head)) + "\n";
    if listed.items.is_empty() {
        text += "no step differs in state, error, attempts or size\n";
        return text;
    }
    let rows: Vec<Vec<Cell>> = listed
        .items
        .iter()
        .map(|item| row(style, item, listed))
        .collect();
    text += &draw_table(style, COLUMNS, &rows);
    text
}

fn row(style: &Style, pair: &Value, listed: &Listed) -> Vec<Cell> {
    let depth = item::number(pair, &["depth"])
        .and_then(|n| usize::try_from(n).ok())
        .unwrap_or(0);
    let state = |side: &str| match pair.get(side).filter(|step| step.is_object()) {
        None => Cell::new(""),
        Some(step) => {
            let state = item::state(step);
            let reason = item::text(step, &["status_reason"]).unwrap_or_default();
            let mark = execution_mark(&state, &reason);
            Cell::coloured(mark.colour, format!("{} {state}", mark.text(style)))
        }
    };
    let took = |side: &str| {
        let took = pair
            .get(side)
            .filter(|step| step.is_object())
            .and_then(|step| item::took(step, listed.as_of));
        Cell::new(took.map_or_else(String::new, span::duration))
    };
    let differs: Vec<String> = pair
        .get("differs")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(out::clean)
        .collect();
    vec![
        Cell::new(format!(
            "{}{}",
            "  ".repeat(depth.min(10)),
            item::target(pair)
        )),
        state("a"),
        state("b"),
        took("a"),
        took("b"),
        Cell::new(differs.join("; ")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(id: &str, parent: Option<&str>, target: &str, more: Value) -> Value {
        let mut step = json!({"execution_id": id, "target": target, "state": "succeeded"});
        if let Some(parent) = parent {
            step["parent_execution_id"] = json!(parent);
        }
        for (key, value) in more.as_object().into_iter().flatten() {
            step[key] = value.clone();
        }
        step
    }

    #[test]
    fn equal_calls_are_paired_by_their_place_and_the_rest_stands_alone() {
        let a = [
            step("a1", None, "t.plan", json!({})),
            step("a2", Some("a1"), "w.get", json!({})),
            step(
                "a3",
                Some("a1"),
                "w.get",
                json!({"state": "failed", "error_category": "agent_error"}),
            ),
            step("a4", Some("a3"), "x.deep", json!({})),
        ];
        let b = [
            step("b1", None, "t.plan", json!({})),
            step("b2", Some("b1"), "w.get", json!({"replay_of": "a3"})),
            step("b3", Some("b1"), "w.get", json!({})),
            step("b4", Some("b1"), "y.new", json!({})),
        ];
        let pairs = pair(&a, &b);
        let of = |step: &Option<Value>| step.as_ref().and_then(id).map(str::to_owned);
        let shown: Vec<_> = pairs
            .iter()
            .map(|pair| (of(&pair.a), of(&pair.b)))
            .collect();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            shown,
            [
                (some("a1"), some("b1")),
                (some("a2"), some("b3")),
                (some("a3"), some("b2")),
                (some("a4"), None),
                (None, some("b4")),
            ]
        );
        assert_eq!(
            differences(&pairs[2]),
            ["failed, then succeeded", "category agent_error, then none"]
        );
        assert_eq!(differences(&pairs[3]), ["only in A"]);
        assert!(differences(&pairs[1]).is_empty());
    }
}
