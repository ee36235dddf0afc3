//! `muster workers restart`: another process for the same worker.

use http::Method;
use serde_json::{Value, json};

use super::resolve::{self, Noun};
use super::spawn::duration;
use super::workers::{exit_word, node_of};
use super::{Asking, consequence, envelope, item};
use crate::cli::WorkersRestart;
use crate::failure::Outcome;
use crate::out;

/// Asks, and restarts. One whose new process ended at once is a failure of it.
pub(super) async fn run(asking: &Asking<'_>, args: &WorkersRestart) -> Outcome<u8> {
    let id = resolve::id_for_good(asking, Noun::Worker, &args.worker).await?;
    let mut body = json!({"reason": args.reason});
    if let Some(grace) = &args.grace {
        body["grace"] = json!(duration("--grace", grace)?);
    }
    let path = format!("{}/restart", Noun::Worker.path(&id));
    let act = consequence::Act {
        method: Method::POST,
        path: &path,
        body: Some(body.to_string().into()),
        yes: args.yes,
    };
    if !act.is_wanted(asking).await? {
        return Ok(0);
    }
    let answer = asking.client.post(&path, &body).await?.json()?;
    let (text, code) = said(&answer);
    if asking.json {
        envelope::print_one("worker_restart", &answer);
    } else {
        out::data(&text);
    }
    Ok(code)
}

pub(super) fn said(answer: &Value) -> (String, u8) {
    let worker = answer.get("worker").unwrap_or(answer);
    let name = item::text(worker, &["name"]).unwrap_or_default();
    if answer.get("started") == Some(&Value::Bool(true)) {
        let pid = item::text(worker, &["pid"]).map(|pid| format!(", as process {pid}"));
        return (format!("{name} runs again{}", pid.unwrap_or_default()), 0);
    }
    if answer.get("under_way") == Some(&Value::Bool(true)) {
        let text = format!(
            "{name} is {} on {}: its machine was asked and has not answered yet",
            item::state(worker),
            node_of(worker)
        );
        return (text, 0);
    }
    let exit = worker.get("exit").filter(|exit| exit.is_object());
    let exit = exit.map_or_else(|| "how is not known".to_owned(), exit_word);
    let then = match item::state(worker).as_str() {
        "exited" => "",
        _ => "; its policy starts it again",
    };
    (
        format!("{name} was started again and ended at once ({exit}){then}"),
        1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_what_became_of_it_and_a_death_is_no_success() {
        let exit = json!({"code": 4});
        for (answer, says, code) in [
            (
                json!({"started": true, "worker": {"name": "a", "state": "running", "pid": 7}}),
                "a runs again, as process 7",
                0,
            ),
            (
                json!({"started": false, "worker": {"name": "a", "state": "exited", "exit": exit}}),
                "a was started again and ended at once (exit 4)",
                1,
            ),
            (
                json!({"started": false, "worker": {"name": "a", "state": "restarting", "exit": exit}}),
                "a was started again and ended at once (exit 4); its policy starts it again",
                1,
            ),
            (
                json!({"started": false, "under_way": true,
                       "worker": {"name": "a", "state": "running", "node_name": "edge-1"}}),
                "a is running on edge-1: its machine was asked and has not answered yet",
                0,
            ),
        ] {
            assert_eq!(said(&answer), (says.to_owned(), code));
        }
    }
}
