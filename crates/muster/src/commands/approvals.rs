//! `muster approvals`, `muster approve` and `muster reject`: what waits for a person, and the
//! person's word.

use muster_wire::Timestamp;
use serde_json::{Value, json};

use super::envelope::print_one;
use super::list::{List, Listed};
use super::resolve::{self, Noun};
use super::{Asking, item, list};
use crate::cli::{Approvals, Decide};
use crate::client::encode;
use crate::failure::Outcome;
use crate::out::table::{Cell, Column, Give, draw as draw_table};
use crate::out::{self, Style, clean, span};

const COLUMNS: &[Column] = &[
    Column {
        title: "STATUS",
        give: Give::Never,
    },
    Column {
        title: "REQUEST",
        give: Give::Cut,
    },
    Column {
        title: "AGENT",
        give: Give::Drop(1),
    },
    Column {
        title: "WHEN",
        give: Give::Never,
    },
    Column {
        title: "BY",
        give: Give::Drop(0),
    },
    Column {
        title: "EXECUTION",
        give: Give::Never,
    },
];

/// Lists approvals: pending ones first.
pub(super) async fn run(asking: &Asking<'_>, args: &Approvals) -> Outcome<u8> {
    let list = List {
        kind: "approvals",
        path: "/api/v1/approvals",
        filter: vec![
            ("status", args.status.clone()),
            ("agent", args.agent.clone()),
        ],
        limit: Some(args.most.limit),
        join: None,
        draw,
    };
    list::run(asking, &list, args.plain.watch).await
}

/// The list for people.
pub(super) fn draw(style: &Style, listed: &Listed) -> String {
    if listed.items.is_empty() {
        return "nothing waits for a person\n".to_owned();
    }
    let rows: Vec<Vec<Cell>> = listed
        .items
        .iter()
        .map(|item| row(style, item, listed.as_of))
        .collect();
    draw_table(style, COLUMNS, &rows)
}

fn row(style: &Style, item: &Value, now: Timestamp) -> Vec<Cell> {
    let text = |names: &[&str]| item::text(item, names).unwrap_or_default();
    let status = text(&["status"]);
    let when = if status == "pending" {
        let left = item::time(item, &["expires_at"]);
        left.map_or_else(String::new, |at| {
            format!("{} left", span::age(item::between(now, at)))
        })
    } else {
        let since = item::time(item, &["responded_at"]);
        since.map_or_else(String::new, |at| span::ago(item::between(at, now)))
    };
    let execution = item::raw(item, &["execution_id"]).unwrap_or_default();
    vec![
        Cell::new(status),
        Cell::new(text(&["approval_request_id"])),
        Cell::new(text(&["agent"])),
        Cell::new(when),
        Cell::new(text(&["decided_by"])),
        Cell::new(crate::out::id::short(&execution, style.ellipsis())),
    ]
}

/// Says a person's word.
pub(super) async fn decide(asking: &Asking<'_>, args: &Decide, decision: &str) -> Outcome<u8> {
    let id = resolve::id_for_good(asking, Noun::Execution, &args.id).await?;
    let mut body = json!({"decision": decision});
    if let Some(request) = &args.request {
        body["approval_request_id"] = json!(request);
    }
    if let Some(feedback) = &args.feedback {
        body["feedback"] = json!(feedback);
    }
    let path = format!("/api/v1/executions/{}/approval-response", encode(&id));
    let answer = asking.client.post(&path, &body).await?.json()?;
    if asking.json {
        print_one("decision", &answer);
    } else {
        out::data(&sentence(&answer, decision, &clean(&id)));
    }
    Ok(0)
}

pub(super) fn sentence(answer: &Value, decision: &str, id: &str) -> String {
    let request = item::text(answer, &["approval_request_id"]).unwrap_or_default();
    if answer.get("repeated").and_then(Value::as_bool) == Some(true) {
        return format!("{request} was {decision} before");
    }
    let now = item::text(answer, &["new_state", "new_status"]).unwrap_or_default();
    if now == "paused" {
        return format!(
            "{request} is {decision}; the execution is paused, and its agent is told when it is resumed: muster why {id}"
        );
    }
    format!(
        "{request} is {decision}; the execution is {now}, and its agent is being told: muster why {id}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_says_what_comes_of_it() {
        let taken =
            json!({"approval_request_id": "req-1", "new_status": "running", "repeated": false});
        assert_eq!(
            sentence(&taken, "approved", "exec_1"),
            "req-1 is approved; the execution is running, and its agent is being told: muster why exec_1"
        );
        let paused = json!({
            "approval_request_id": "req-1", "new_status": "waiting", "new_state": "paused",
            "repeated": false,
        });
        assert_eq!(
            sentence(&paused, "rejected", "exec_1"),
            "req-1 is rejected; the execution is paused, and its agent is told when it is resumed: muster why exec_1"
        );
        let again = json!({"approval_request_id": "req-1", "repeated": true});
        assert_eq!(
            sentence(&again, "rejected", "exec_1"),
            "req-1 was rejected before"
        );
    }
}
