//! `muster cancel`: the record is final at once; the receipt says what became of the code.

use http::Method;
use muster_wire::{Category, Status};
use serde_json::{Value, json};

use super::envelope::print_one;
use super::resolve::{self, Noun};
use super::{Asking, consequence, item};
use crate::cli::Cancel;
use crate::client::encode;
use crate::failure::{Failure, Outcome};
use crate::out::{self, clean};

/// Cancels one, or a tree.
pub(super) async fn run(asking: &Asking<'_>, args: &Cancel) -> Outcome<u8> {
    let body = match &args.reason {
        Some(reason) => json!({"reason": reason}),
        None => json!({}),
    };
    let (id, path) = if args.tree {
        let run = run_of(asking, &args.id).await?;
        let path = format!("/api/v1/workflows/{}/cancel-tree", encode(&run));
        (run, path)
    } else if args.id.starts_with("run_") {
        return Err(Failure::new(
            Category::Validation,
            format!("{} is a run, and this cancels one execution", args.id),
        )
        .hint(format!("the whole run: muster cancel {} --tree", args.id)));
    } else {
        let id = resolve::id_for_good(asking, Noun::Execution, &args.id).await?;
        let path = format!("/api/v1/executions/{}/cancel", encode(&id));
        (id, path)
    };
    if args.tree && !args.yes && open_in(asking, &id).await > OPEN_UNASKED {
        let act = consequence::Act {
            method: Method::POST,
            path: &path,
            body: Some(body.to_string().into()),
            yes: args.yes,
        };
        if !act.is_wanted(asking).await? {
            return Ok(0);
        }
    }
    let receipt = asking.client.post(&path, &body).await?.json()?;
    if asking.json {
        print_one("cancel_receipt", &receipt);
    } else {
        out::data(&sentence(&receipt, args.tree, &clean(&id)));
    }
    Ok(0)
}

/// So many open executions of a run are cancelled without a question.
const OPEN_UNASKED: u64 = 20;

/// How many of a run are open; nobody is asked about a run that cannot be read.
async fn open_in(asking: &Asking<'_>, run: &str) -> u64 {
    let Ok(run) = asking.client.get_json(&Noun::Run.path(run)).await else {
        return 0;
    };
    let counts = run.get("counts").and_then(Value::as_object);
    let open = |state: &str| Status::from_word(state).is_some_and(|status| !status.is_terminal());
    counts
        .into_iter()
        .flatten()
        .filter(|(state, _)| open(state))
        .filter_map(|(_, n)| n.as_u64())
        .sum()
}

/// A run, or the run of an execution.
pub(super) async fn run_of(asking: &Asking<'_>, typed: &str) -> Outcome<String> {
    if typed.starts_with("exec_") {
        let id = resolve::id_for_good(asking, Noun::Execution, typed).await?;
        let (id, body) = resolve::get(asking, Noun::Execution, &id).await?;
        return Ok(item::raw(&body, &["run_id"]).unwrap_or(id));
    }
    resolve::id_for_good(asking, Noun::Run, typed).await
}

/// The answer comes before any agent was told: it says how many are to be.
pub(super) fn sentence(receipt: &Value, tree: bool, id: &str) -> String {
    let ended = receipt
        .get("cancelled")
        .and_then(Value::as_array)
        .map(Vec::len);
    let mut said = match (tree, ended) {
        (true, Some(n)) => format!("cancelled: {n} ended in one commit, and the run takes no more"),
        (true, None) => "cancelled: the run takes no more".to_owned(),
        (false, _) => "cancelled".to_owned(),
    };
    match item::number(receipt, &["told"]) {
        Some(0) => said += "; no agent had it",
        Some(n) => said += &format!("; {n} to be told, the receipt: muster why {id}"),
        None => said += &format!("; what its agent says: muster why {id}"),
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_said_to_have_been_told_before_it_was() {
        let one = json!({"status": "cancelled", "cancelled": ["exec_1"], "told": 1});
        assert_eq!(
            sentence(&one, false, "exec_1"),
            "cancelled; 1 to be told, the receipt: muster why exec_1"
        );
        let none = json!({"status": "cancelled", "cancelled": ["exec_1", "exec_2"], "told": 0});
        assert_eq!(
            sentence(&none, true, "run_1"),
            "cancelled: 2 ended in one commit, and the run takes no more; no agent had it"
        );
    }
}
