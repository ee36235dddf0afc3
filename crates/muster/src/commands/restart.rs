//! `muster restart`: a run again, or one execution alone. Says what was made and what is taken
//! over; waits when asked to.

use http::Method;
use muster_wire::Category;
use serde_json::{Value, json};

use super::call::{Follow, bound, raw, read_input, with_hint};
use super::resolve::{self, Noun};
use super::{Asking, item};
use crate::cli::Restart;
use crate::client::encode;
use crate::failure::{Failure, Outcome};
use crate::out::{self, clean};

/// Restarts.
pub(super) async fn run(asking: &Asking<'_>, args: &Restart) -> Outcome<u8> {
    let bound = bound(args.wait.as_ref())?;
    let id = match args.id.starts_with("run_") {
        true => root_of(asking, &args.id).await?,
        false => resolve::id_for_good(asking, Noun::Execution, &args.id).await?,
    };
    let headers: Vec<(&str, &str)> = args
        .key
        .iter()
        .map(|key| ("idempotency-key", key.as_str()))
        .collect();
    let path = format!("/api/v1/executions/{}/restart", encode(&id));
    let answer = asking
        .client
        .send(Method::POST, &path, Some(body(args)?.into()), &headers)
        .await
        .map_err(|failure| with_hint(failure, &id))?;
    let accepted = answer.json()?;
    let target = item::text(&accepted, &["target"]).unwrap_or_default();
    if !args.quiet && !asking.json {
        out::talk(&sentence(&accepted));
    }
    let follow = Follow {
        target: &target,
        asynchronous: args.wait.is_none(),
        bound,
        quiet: args.quiet,
    };
    follow.on(asking, &accepted).await
}

/// A run is done again from its root.
async fn root_of(asking: &Asking<'_>, typed: &str) -> Outcome<String> {
    let id = resolve::id_for_good(asking, Noun::Run, typed).await?;
    let (_, run) = resolve::get(asking, Noun::Run, &id).await?;
    let root = run.get("root").unwrap_or(&Value::Null);
    item::raw(root, &["execution_id", "id"]).ok_or_else(|| {
        Failure::new(Category::NotFound, format!("{id} has no root that is kept"))
            .hint(format!("its executions: muster runs show {id}"))
    })
}

/// The request's body. The input goes in as it was written.
fn body(args: &Restart) -> Outcome<String> {
    let mut body = json!({"scope": args.scope, "reuse": args.reuse, "fork": args.fork});
    if let Some(reason) = &args.reason {
        body["reason"] = json!(reason);
    }
    let mut text = body.to_string();
    if let Some(input) = &args.input {
        let input = read_input(input)?;
        text.truncate(text.len() - 1);
        text += &format!(",\"input\":{}}}", raw(&input)?.get());
    }
    Ok(text)
}

/// What was made of what, and what is taken over.
pub(super) fn sentence(accepted: &Value) -> String {
    let text = |name: &str| clean(&item::raw(accepted, &[name]).unwrap_or_default());
    let what = match text("kind").as_str() {
        "fork" => "a fork",
        _ => "a restart",
    };
    let whole = if text("scope") == "workflow" {
        format!("of the run {}", text("source_run_id"))
    } else {
        format!("of {} alone", text("restarted_execution_id"))
    };
    let before = text("replay_before_execution_id");
    let reuse = match (text("replay_mode").as_str(), before.is_empty()) {
        ("none", _) => "everything is called again".to_owned(),
        ("all-succeeded", true) | ("succeeded-before", true) => {
            "calls that had succeeded are taken over".to_owned()
        }
        ("all-succeeded", false) => {
            format!("all calls that succeeded are taken over, but {before}")
        }
        (_, _) => format!("calls that had succeeded before {before} are taken over"),
    };
    format!("{what} {whole}; {reuse}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_what_is_taken_over() {
        let all = json!({
            "kind": "restart", "scope": "workflow", "source_run_id": "run_1",
            "restarted_execution_id": "exec_1", "replay_mode": "succeeded-before",
            "replay_before_execution_id": "exec_3",
        });
        assert_eq!(
            sentence(&all),
            "a restart of the run run_1; calls that had succeeded before exec_3 are taken over"
        );
        let alone = json!({
            "kind": "fork", "scope": "execution", "restarted_execution_id": "exec_2",
            "replay_mode": "none",
        });
        assert_eq!(
            sentence(&alone),
            "a fork of exec_2 alone; everything is called again"
        );
    }

    #[test]
    fn the_input_goes_out_as_it_was_written() {
        let args = Restart {
            id: "exec_1".into(),
            scope: "execution".into(),
            reuse: "none".into(),
            fork: false,
            input: Some(r#"{"n": 1e400}"#.into()),
            reason: Some("why".into()),
            wait: None,
            key: None,
            quiet: false,
        };
        let text = body(&args).unwrap();
        assert!(text.ends_with(r#","input":{"n": 1e400}}"#), "{text}");
    }
}
