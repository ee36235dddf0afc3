//! `muster pause` and `muster resume`: one execution, or with --tree its whole run.

use serde_json::{Value, json};

use super::Asking;
use super::cancel::run_of;
use super::envelope::print_one;
use super::resolve::{self, Noun};
use crate::cli::Pause;
use crate::client::encode;
use crate::failure::{Failure, Outcome};
use crate::out::{self, clean};

/// Pauses, or resumes.
pub(super) async fn run(asking: &Asking<'_>, args: &Pause, on: bool) -> Outcome<u8> {
    let verb = if on { "pause" } else { "resume" };
    let body = match &args.reason {
        Some(reason) => json!({"reason": reason}),
        None => json!({}),
    };
    let (id, path) = if args.tree {
        let run = run_of(asking, &args.id).await?;
        let path = format!("/api/v1/workflows/{}/{verb}-tree", encode(&run));
        (run, path)
    } else if args.id.starts_with("run_") {
        return Err(Failure::new(
            muster_wire::Category::Validation,
            format!("{} is a run, and this is about one execution", args.id),
        )
        .hint(format!("the whole run: muster {verb} {} --tree", args.id)));
    } else {
        let id = resolve::id_for_good(asking, Noun::Execution, &args.id).await?;
        let path = format!("/api/v1/executions/{}/{verb}", encode(&id));
        (id, path)
    };
    let receipt = asking.client.post(&path, &body).await?.json()?;
    if asking.json {
        print_one("pause_receipt", &receipt);
    } else {
        out::data(&sentence(&receipt, args.tree, on, &clean(&id)));
    }
    Ok(0)
}

pub(super) fn sentence(receipt: &Value, tree: bool, on: bool, id: &str) -> String {
    let word = if on { "paused" } else { "resumed" };
    let moved = receipt
        .get(word)
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    match (tree, on) {
        (false, true) if moved == 0 => format!("it was paused already; muster resume {id}"),
        (false, true) => format!("paused; what its agent has may still end. muster resume {id}"),
        (false, false) => {
            let state = receipt.get("state").and_then(Value::as_str);
            format!("resumed: it is {} again", state.unwrap_or("running"))
        }
        (true, true) => format!(
            "paused: {moved} of its executions, and whatever joins the run. muster resume {id} --tree"
        ),
        (true, false) => format!("resumed: {moved} of its executions go on"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_said_with_the_way_back() {
        let one = json!({"paused": ["exec_1"], "state": "paused"});
        assert_eq!(
            sentence(&one, false, true, "exec_1"),
            "paused; what its agent has may still end. muster resume exec_1"
        );
        let none = json!({"paused": [], "state": "paused"});
        assert_eq!(
            sentence(&none, false, true, "exec_1"),
            "it was paused already; muster resume exec_1"
        );
        let tree = json!({"resumed": ["a", "b"], "state": "running"});
        assert_eq!(
            sentence(&tree, true, false, "run_1"),
            "resumed: 2 of its executions go on"
        );
        let back = json!({"resumed": ["a"], "state": "waiting"});
        assert_eq!(
            sentence(&back, false, false, "a"),
            "resumed: it is waiting again"
        );
    }
}
