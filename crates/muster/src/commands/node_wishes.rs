//! What operators want of machines: `muster nodes enroll`, `drain`, `cordon`, `activate`,
//! `retire`, `pin`, `unpin`, `lost` and `delete`. Says the consequence first where it is final.

use http::Method;
use muster_wire::Timestamp;
use serde_json::{Value, json};

use super::envelope::print_one;
use super::nodes::{NODES, name, texts};
use super::resolve::{self, Noun};
use super::{Asking, agent_history, consequence, item};
use crate::cli::{Enroll, NodesCommand, SureWish, Wish};
use crate::client::encode;
use crate::failure::Outcome;
use crate::out::{self, span};

/// How many names are said before the rest is counted.
const NAMES: usize = 12;

/// Does it.
pub(super) async fn run(asking: &Asking<'_>, command: &NodesCommand) -> Outcome<u8> {
    match command {
        // Shown by the list.
        NodesCommand::Show { .. } => Ok(0),
        NodesCommand::History(args) => agent_history::run(asking, Noun::Node, args).await,
        NodesCommand::Enroll(args) => enroll(asking, args).await,
        NodesCommand::Drain(wish) => {
            let node = wish_for(asking, wish, "drain").await?;
            done(
                asking,
                &node,
                "drains: it takes no new work, and its workers are released one after another",
                Some("activate"),
            )
        }
        NodesCommand::Cordon(wish) => {
            let node = wish_for(asking, wish, "cordon").await?;
            done(
                asking,
                &node,
                "is cordoned: it takes no new work, and what runs goes on",
                Some("activate"),
            )
        }
        NodesCommand::Activate(wish) => {
            let node = wish_for(asking, wish, "activate").await?;
            done(asking, &node, "takes work", None)
        }
        NodesCommand::Unpin(wish) => {
            let node = wish_for(asking, wish, "unpin").await?;
            done(asking, &node, "counts as what its facts say", None)
        }
        NodesCommand::Pin {
            node,
            state,
            reason,
        } => {
            let path = path_of(asking, node, false).await?;
            let body = json!({"state": state, "reason": reason});
            let node = asking.client.post(&format!("{path}/pin"), &body).await?;
            done(
                asking,
                &node.json()?,
                &format!("counts as {state} until it is unpinned"),
                Some("unpin"),
            )
        }
        NodesCommand::Retire(sure) => {
            if !sure_of(asking, sure, Method::POST, "/retire").await? {
                return Ok(0);
            }
            let node = wish_for(asking, &sure.wish, "retire").await?;
            done(asking, &node, "is retired", Some("delete"))
        }
        NodesCommand::Lost(sure) => {
            if !sure_of(asking, sure, Method::POST, "/lost").await? {
                return Ok(0);
            }
            let node = wish_for(asking, &sure.wish, "lost").await?;
            done(asking, &node, "is lost", Some("retire"))
        }
        NodesCommand::Delete(sure) => {
            if !sure_of(asking, sure, Method::DELETE, "").await? {
                return Ok(0);
            }
            let path = path_of(asking, &sure.wish.node, true).await?;
            let gone = asking.client.send(Method::DELETE, &path, None, &[]).await?;
            if asking.json {
                print_one("deleted", &gone.json().unwrap_or(Value::Null));
            } else {
                out::data(&format!("{} is deleted", out::clean(&sure.wish.node)));
            }
            Ok(0)
        }
    }
}

/// The path of the machine that was meant.
async fn path_of(asking: &Asking<'_>, typed: &str, for_good: bool) -> Outcome<String> {
    let id = match for_good {
        true => resolve::id_for_good(asking, Noun::Node, typed).await?,
        false => resolve::id(asking, Noun::Node, typed).await?,
    };
    Ok(format!("{NODES}/{}", encode(&id)))
}

async fn wish_for(asking: &Asking<'_>, wish: &Wish, verb: &str) -> Outcome<Value> {
    let path = path_of(asking, &wish.node, false).await?;
    let body = json!({"reason": wish.reason});
    asking
        .client
        .post(&format!("{path}/{verb}"), &body)
        .await?
        .json()
}

fn done(asking: &Asking<'_>, node: &Value, what: &str, next: Option<&str>) -> Outcome<u8> {
    if asking.json {
        print_one("node", node);
        return Ok(0);
    }
    let name = name(node);
    out::data(&format!("{name} {what}"));
    let names = texts(node, "worker_names");
    if !names.is_empty() {
        out::talk(&format!("its workers: {}", some_of(&names)));
    }
    if let Some(next) = next {
        out::talk(&format!("next, or back: muster nodes {next} {name}"));
    }
    Ok(0)
}

/// Says what it comes to and asks.
async fn sure_of(
    asking: &Asking<'_>,
    sure: &SureWish,
    method: Method,
    verb: &str,
) -> Outcome<bool> {
    let path = path_of(asking, &sure.wish.node, true).await? + verb;
    let body =
        (method == Method::POST).then(|| json!({"reason": sure.wish.reason}).to_string().into());
    let act = consequence::Act {
        method,
        path: &path,
        body,
        yes: sure.yes,
    };
    act.is_wanted(asking).await
}

fn some_of(names: &[String]) -> String {
    let mut text = names[..names.len().min(NAMES)].join(", ");
    if names.len() > NAMES {
        text += &format!(" and {} more", names.len() - NAMES);
    }
    text
}

async fn enroll(asking: &Asking<'_>, args: &Enroll) -> Outcome<u8> {
    let mut body = json!({"name": args.name, "labels": args.label});
    if let Some(most) = args.max_workers {
        body["max_workers"] = json!(most);
    }
    let made = asking
        .client
        .post("/api/v1/fleet/enrollments", &body)
        .await?
        .json()?;
    if asking.json {
        print_one("enrolment", &made);
        return Ok(0);
    }
    out::data(&command_for(&asking.client.address(), &made));
    let left = item::time(&made, &["expires_at"]).map_or_else(
        || "soon".to_owned(),
        |at| {
            format!(
                "within {}",
                span::age(item::between(Timestamp::wall_clock(), at))
            )
        },
    );
    out::talk(&format!(
        "run it on {} {left}: the token is good for one machine of that name, once, and is not shown again",
        out::clean(&args.name)
    ));
    if made.get("again").and_then(Value::as_bool) == Some(true) {
        out::talk(
            "a node of this name is known: it is enrolled again, and its former key ends with that",
        );
    }
    if asking.client.is_local() {
        out::talk(
            "from another machine: put the plane's address as it is seen there in place of this one",
        );
    }
    Ok(0)
}

/// What to run on the machine.
pub(super) fn command_for(plane: &str, made: &Value) -> String {
    let token = item::text(made, &["token"]).unwrap_or_default();
    format!("muster node enroll --plane {plane} --token {token} && muster node run")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_are_counted_after_a_dozen() {
        let names: Vec<String> = (0..15).map(|n| format!("w{n}")).collect();
        assert!(some_of(&names).ends_with("w11 and 3 more"));
        assert_eq!(some_of(&names[..2]), "w0, w1");
    }

    #[test]
    fn the_command_for_the_machine_has_the_plane_and_the_token() {
        assert_eq!(
            command_for("http://10.0.0.5:8080", &json!({"token": "met_x"})),
            "muster node enroll --plane http://10.0.0.5:8080 --token met_x && muster node run"
        );
    }
}
