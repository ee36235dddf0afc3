//! `muster cancel`: the record is final at once; the receipt says what became of the code.

use serde_json::{Value, json};

use super::list::print_one;
use super::resolve::{self, Noun};
use super::{Asking, item};
use crate::cli::Cancel;
use crate::client::encode;
use crate::failure::Outcome;
use crate::out;

/// Cancels one, or a tree.
pub(super) async fn run(asking: &Asking<'_>, args: &Cancel) -> Outcome<u8> {
    let body = match &args.reason {
        Some(reason) => json!({"reason": reason}),
        None => json!({}),
    };
    let path = if args.tree {
        let run = run_of(asking, &args.id).await?;
        format!("/api/v1/workflows/{}/cancel-tree", encode(&run))
    } else {
        let id = resolve::id(asking, Noun::Execution, &args.id).await?;
        format!("/api/v1/executions/{}/cancel", encode(&id))
    };
    let receipt = asking.client.post(&path, &body).await?.json()?;
    if asking.json {
        print_one("cancel_receipt", &receipt);
    } else {
        out::data(&sentence(&receipt, args.tree));
    }
    Ok(0)
}

/// A run, or the run of an execution.
async fn run_of(asking: &Asking<'_>, typed: &str) -> Outcome<String> {
    if typed.starts_with("exec_") {
        let (id, body) = resolve::get(asking, Noun::Execution, typed).await?;
        return Ok(item::raw(&body, &["run_id"]).unwrap_or(id));
    }
    resolve::id(asking, Noun::Run, typed).await
}

fn sentence(receipt: &Value, tree: bool) -> String {
    let ended = item::number(receipt, &["cancelled_count", "cancelled", "ended"]).or_else(|| {
        ["cancelled", "executions", "ended"]
            .iter()
            .find_map(|name| receipt.get(*name)?.as_array())
            .map(|all| all.len() as u64)
    });
    let mut said = match (tree, ended) {
        (true, Some(n)) => format!("cancelled: {n} ended in one commit, and the run takes no more"),
        (true, None) => "cancelled: the run takes no more".to_owned(),
        (false, _) => "cancelled".to_owned(),
    };
    let parts: Vec<String> = [
        ("told", "told"),
        ("stopped", "stopped"),
        ("not_active", "not running"),
        ("still_running", "still running"),
        ("not_told", "could not be told"),
    ]
    .iter()
    .filter_map(|(field, words)| Some(format!("{words} {}", item::number(receipt, &[field])?)))
    .collect();
    if parts.is_empty() {
        if let Some(text) = item::text(receipt, &["receipt", "message", "agent"]) {
            said += &format!("; {text}");
        } else {
            said += "; the agent is being told, `muster why` has its answer";
        }
    } else {
        said += &format!("; agents: {}", parts.join(", "));
    }
    said
}
