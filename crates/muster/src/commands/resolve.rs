//! Finds the one thing that a typed id means. Several are listed and nothing is done.

use muster_wire::Category;
use serde_json::Value;

use super::list::Listed;
use super::{Asking, item};
use crate::client::encode;
use crate::failure::{Failure, Outcome};
use crate::out::id::Pattern;

/// How many of the newest are looked through.
const LOOKED_AT: usize = 500;
const SHOWN: usize = 10;
/// So many characters are meant.
const SURE: usize = 6;

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Noun {
    Execution,
    Run,
    Agent,
    Key,
    Node,
    Worker,
}

impl Noun {
    fn word(self) -> &'static str {
        match self {
            Noun::Execution => "execution",
            Noun::Run => "run",
            Noun::Agent => "agent",
            Noun::Key => "key",
            Noun::Node => "node",
            Noun::Worker => "worker",
        }
    }

    /// Where one is.
    pub(super) fn path(self, id: &str) -> String {
        let id = encode(id);
        match self {
            Noun::Execution => format!("/api/v1/executions/{id}"),
            Noun::Run => format!("/api/v1/runs/{id}"),
            Noun::Agent => format!("/api/v1/nodes/{id}"),
            Noun::Key => format!("/api/v1/keys/{id}"),
            Noun::Node => format!("/api/v1/fleet/nodes/{id}"),
            Noun::Worker => format!("/api/v1/fleet/workers/{id}"),
        }
    }

    fn list(self, part: Option<&str>) -> String {
        let part = part
            .map(|part| format!("&q={}", encode(part)))
            .unwrap_or_default();
        match self {
            Noun::Execution => format!("/api/v1/executions?limit={LOOKED_AT}{part}"),
            Noun::Run => format!("/api/v1/runs?limit={LOOKED_AT}{part}"),
            Noun::Agent => "/api/v1/nodes".to_owned(),
            Noun::Key => "/api/v1/keys".to_owned(),
            Noun::Node => "/api/v1/fleet/nodes?retired=true".to_owned(),
            Noun::Worker => format!("/api/v1/fleet/workers?ended=true&limit={LOOKED_AT}{part}"),
        }
    }
}

/// The whole id that was meant.
pub(super) async fn id(asking: &Asking<'_>, noun: Noun, typed: &str) -> Outcome<String> {
    find(asking, noun, typed, 1).await
}

/// The whole id that was meant, for what cannot be taken back: a few characters that happen to
/// fit one are too few.
pub(super) async fn id_for_good(asking: &Asking<'_>, noun: Noun, typed: &str) -> Outcome<String> {
    find(asking, noun, typed, SURE).await
}

/// Refuses an id of nothing: everything would begin with it.
pub(super) fn refuse_empty(typed: &str) -> Outcome<()> {
    if typed.trim().is_empty() || Pattern::read(typed).said() == 0 {
        return Err(Failure::new(Category::Validation, "the id is empty"));
    }
    Ok(())
}

async fn find(asking: &Asking<'_>, noun: Noun, typed: &str, least: usize) -> Outcome<String> {
    refuse_empty(typed)?;
    let pattern = Pattern::read(typed);
    if noun != Noun::Key
        && let Some(whole) = pattern.whole()
    {
        match asking.client.get(&noun.path(whole)).await {
            Ok(_) => return Ok(whole.to_owned()),
            Err(failure) if is_absent(&failure) => {}
            Err(failure) => return Err(failure),
        }
    }
    if matches!(noun, Noun::Node | Noun::Worker)
        && let Some(id) = named(asking, noun, typed).await?
    {
        return Ok(id);
    }
    if pattern.said() < least {
        return Err(Failure::new(
            Category::Validation,
            format!("{typed} is too short to be sure; nothing was done"),
        )
        .hint(format!(
            "type the whole id, or at least {least} characters beside the word it begins with"
        )));
    }
    let part = match &pattern {
        Pattern::Text(text) => text.clone(),
        Pattern::Short(_, tail) => tail.clone(),
    };
    let body = match asking.client.get_json(&noun.list(Some(&part))).await {
        // A plane that does not search by id: its newest are looked through here.
        Err(failure) if failure.body.error_category == Category::Validation => {
            asking.client.get_json(&noun.list(None)).await?
        }
        other => other?,
    };
    choose(noun, typed, &pattern, &Listed::of(body).items)
}

/// Machines and workers of the past go by their name too, where it is one's alone.
async fn named(asking: &Asking<'_>, noun: Noun, typed: &str) -> Outcome<Option<String>> {
    let body = asking.client.get_json(&noun.list(None)).await?;
    let mut ids: Vec<String> = Listed::of(body)
        .items
        .iter()
        .filter(|item| item::raw(item, &["name"]).as_deref() == Some(typed))
        .filter_map(|item| item::raw(item, &["id"]))
        .collect();
    Ok(ids.pop().filter(|_| ids.is_empty()))
}

/// The body of one thing, found by what was typed.
pub(super) async fn get(asking: &Asking<'_>, noun: Noun, typed: &str) -> Outcome<(String, Value)> {
    let id = id(asking, noun, typed).await?;
    let body = asking.client.get_json(&noun.path(&id)).await?;
    Ok((id, body))
}

fn is_absent(failure: &Failure) -> bool {
    matches!(
        failure.body.error_category,
        Category::NotFound | Category::TargetNotFound | Category::Validation
    )
}

fn choose(noun: Noun, typed: &str, pattern: &Pattern, items: &[Value]) -> Outcome<String> {
    let word = noun.word();
    let mut found: Vec<String> = items
        .iter()
        .filter_map(|item| {
            let id = match noun {
                Noun::Run => item::raw(item, &["run_id", "id"]),
                Noun::Worker => item::raw(item, &["worker_id", "id"]),
                _ => item::raw(item, &["id", "execution_id", "node_id"]),
            }?;
            // A key is known by the start of its text as well.
            let by_prefix =
                item::raw(item, &["prefix"]).is_some_and(|prefix| pattern.fits(&prefix));
            // So is a machine or a worker by its name.
            let by_name = matches!(noun, Noun::Node | Noun::Worker)
                && item::raw(item, &["name"]).is_some_and(|name| pattern.fits(&name));
            (by_prefix || by_name || pattern.fits(&id)).then_some(id)
        })
        .collect();
    found.sort();
    found.dedup();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(
            Failure::new(Category::NotFound, format!("no {word} {typed}")).hint(match noun {
                Noun::Execution => {
                    "see `muster executions`; finished ones go after their retention"
                }
                Noun::Run => "see `muster runs`; finished ones go after their retention",
                Noun::Agent => "see `muster agents`",
                Noun::Key => "see `muster keys list`",
                Noun::Node => "see `muster nodes`",
                Noun::Worker => "see `muster workers --ended`; old ones go after their retention",
            }),
        ),
        n => {
            let mut failure = Failure::new(
                Category::Conflict,
                format!("{typed} fits {n} {word}s; nothing was done"),
            );
            failure.evidence = found.into_iter().take(SHOWN).collect();
            Err(failure.hint("type more of it"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_id_of_nothing_is_refused() {
        for typed in ["", "  ", "…", "...", "exec_", "exec_…", "run_"] {
            assert_eq!(refuse_empty(typed).unwrap_err().exit_code(), 2, "{typed:?}");
        }
        for typed in ["e", "exec_0", "billing", "…T"] {
            refuse_empty(typed).unwrap();
        }
    }

    #[test]
    fn one_is_taken_none_and_several_are_errors() {
        let items = [
            json!({"id": "exec_01KB6E7M9QX2T4V8N0R53QH8ZT"}),
            json!({"id": "exec_01KB6E7M9QX2T4V8N0R53QH900"}),
        ];
        let choose = |typed: &str| choose(Noun::Execution, typed, &Pattern::read(typed), &items);
        assert_eq!(
            choose("exec_…3QH8ZT").unwrap(),
            "exec_01KB6E7M9QX2T4V8N0R53QH8ZT"
        );
        assert_eq!(choose("exec_9").unwrap_err().exit_code(), 66);
        let several = choose("exec_01KB").unwrap_err();
        assert_eq!(several.exit_code(), 65);
        assert_eq!(several.evidence.len(), 2);
    }
}
