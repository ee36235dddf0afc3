//! The tools, one entry each: what a client is shown of it, what it needs of a key, and what
//! runs it.

use std::sync::Arc;

use muster_wire::Category;
use rmcp::model::{CallToolResult, Tool as Shown, ToolAnnotations};
use serde_json::{Map, Value};

use super::answer::{self, End};
use super::argument::{self, Argument, Arguments};
use super::door::{Asking, Carried};
use super::progress::Progress;
use super::{cancel, discover, execute, runs, wait, why};
use crate::api::problem::Problem;
use crate::auth::Need;
use crate::bodies::Held;

/// One tool.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its name.
    pub(super) name: &'static str,
    title: &'static str,
    /// What it is for, and what to use next: read by a model.
    about: &'static str,
    /// What it takes.
    pub(super) arguments: &'static [Argument],
    /// The schema of what it gives.
    output: fn() -> Value,
    /// What a key must be allowed.
    need: Need,
    effect: Effect,
    tool: Tool,
}

/// What a tool does to the world, as hints for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Nothing.
    Reads,
    /// It has an agent do something.
    Calls,
    /// It ends something, once.
    Ends,
}

/// Which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Discover,
    Schema,
    Execute,
    Wait,
    Get,
    List,
    Cancel,
    Why,
}

/// All of them, in the order in which one needs them.
pub(super) static ALL: &[Entry] = &[
    Entry {
        name: "discover_agents",
        title: "Find agents and their functions",
        about: "Lists the agents of this plane and the functions that can be called, with their state. Start here when you do not know a target; then read get_reasoner_schema for the one you want.",
        arguments: discover::FIND,
        output: discover::found_schema,
        need: Need::Results,
        effect: Effect::Reads,
        tool: Tool::Discover,
    },
    Entry {
        name: "get_reasoner_schema",
        title: "Read what a function takes and gives",
        about: "Gives the JSON schemas of one function's input and output, its description and whether its agent can be called now. Use it before execute_reasoner to build a right input.",
        arguments: discover::SCHEMA,
        output: discover::schema_schema,
        need: Need::Results,
        effect: Effect::Reads,
        tool: Tool::Schema,
    },
    Entry {
        name: "execute_reasoner",
        title: "Call a function",
        about: "Calls an agent's function. Answers at once with execution_id and run_id, or with the result when wait_seconds is given and it ends in time; otherwise go on with wait_run, whose id takes either. An error means that nothing was started, unless it names an execution_id. Give an idempotency_key if you may have to repeat the call.",
        arguments: execute::ARGUMENTS,
        output: execute::schema,
        need: Need::Call,
        effect: Effect::Calls,
        tool: Tool::Execute,
    },
    Entry {
        name: "wait_run",
        title: "Wait for an end",
        about: "Waits until a run with everything in it (id is its run_id), or one execution (id is its execution_id), has ended, and gives its result. When done is false it still goes on: call it again, or ask why. With a progress token it tells progress meanwhile.",
        arguments: wait::ARGUMENTS,
        output: wait::schema,
        need: Need::Results,
        effect: Effect::Reads,
        tool: Tool::Wait,
    },
    Entry {
        name: "get_run",
        title: "Look at a run",
        about: "Shows a run as it is now: its status, the result of what was called, and its steps, oldest first, one page at a time. Does not wait; use wait_run for that.",
        arguments: runs::GET,
        output: runs::get_schema,
        need: Need::Results,
        effect: Effect::Reads,
        tool: Tool::Get,
    },
    Entry {
        name: "list_runs",
        title: "Find runs",
        about: "Lists runs, newest first, by status, agent, time or part of an id. Use get_run for the steps of one.",
        arguments: runs::LIST,
        output: runs::list_schema,
        need: Need::Read,
        effect: Effect::Reads,
        tool: Tool::List,
    },
    Entry {
        name: "cancel_run",
        title: "Stop a run or an execution",
        about: "Cancels a whole run when id is a run_id, or one execution when id is an execution_id. Final at once in the record; the agents are told to stop. Cannot be undone.",
        arguments: cancel::ARGUMENTS,
        output: cancel::schema,
        need: Need::Cancel,
        effect: Effect::Ends,
        tool: Tool::Cancel,
    },
    Entry {
        name: "why",
        title: "Explain where something stands",
        about: "Says in one sentence why a run, an execution or an agent is where it is, by which rule, what happens next and what would change it, with the evidence. Use it when something waits, was refused or failed.",
        arguments: why::ARGUMENTS,
        output: why::schema,
        need: Need::Results,
        effect: Effect::Reads,
        tool: Tool::Why,
    },
];

/// The tool of a name.
pub(super) fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name)
}

impl Entry {
    /// The tool as clients see it.
    pub(super) fn tool(&self) -> Shown {
        let reads = self.effect == Effect::Reads;
        let hints = ToolAnnotations::with_title(self.title)
            .read_only(reads)
            .destructive(!reads)
            .idempotent(self.effect != Effect::Calls)
            .open_world(self.effect == Effect::Calls);
        let input: Map<String, Value> = argument::schema(self.arguments);
        let output = super::output::result((self.output)());
        Shown::new(self.name, self.about, Arc::new(input))
            .with_title(self.title)
            .with_raw_output_schema(Arc::new(output))
            .with_annotations(hints)
    }
}

/// What is wanted of a tool, read and checked.
enum Wish {
    Find(discover::Find),
    Schema(discover::About),
    Execute(Box<execute::Order>, Held),
    Wait(wait::Wait),
    Get(runs::Get),
    List(runs::List),
    Cancel(cancel::Cancel),
    Why(why::Why),
}

/// Runs a tool. What it is asked for is read first, so that nothing of a large request is kept
/// while it waits.
pub(super) async fn run(
    entry: &Entry,
    asking: Asking,
    trace: Option<Arc<str>>,
    mut progress: Progress,
) -> CallToolResult {
    let end = match read(entry, &asking, trace) {
        Ok(wish) => perform(wish, &asking, &mut progress).await,
        Err(problem) => Err(problem),
    };
    answer::result(end)
}

fn read(entry: &Entry, asking: &Asking, trace: Option<Arc<str>>) -> Result<Wish, Problem> {
    let caller = asking.caller();
    if !caller.may(entry.need) {
        let (name, scopes) = (entry.name, entry.need.scopes());
        let message = format!("{name} needs a key with the scope {scopes}");
        asking.app().meters.denied(&Category::PermissionDenied);
        return Err(Problem::new(Category::PermissionDenied, message));
    }
    let Carried {
        arguments: raw,
        held,
    } = asking.take();
    let given = Arguments::read(entry.name, entry.arguments, raw.as_deref())?;
    Ok(match entry.tool {
        Tool::Discover => Wish::Find(discover::Find::read(&given)),
        Tool::Schema => Wish::Schema(discover::About::read(&given)?),
        Tool::Execute => {
            let now = asking.app().clock.now();
            let body = raw.clone().unwrap_or_default();
            let order = execute::Order::read(&given, &body, caller, trace, now)?;
            Wish::Execute(Box::new(order), held)
        }
        Tool::Wait => Wish::Wait(wait::Wait::read(&given)),
        Tool::Get => Wish::Get(runs::Get::read(&given)?),
        Tool::List => Wish::List(runs::List::read(&given)?),
        Tool::Cancel => Wish::Cancel(cancel::Cancel::read(&given)),
        Tool::Why => Wish::Why(why::Why::read(&given)),
    })
}

async fn perform(wish: Wish, asking: &Asking, progress: &mut Progress) -> Result<End, Problem> {
    let (app, caller) = (asking.app(), asking.caller());
    let found = match wish {
        Wish::Execute(order, held) => return execute::run(app, *order, held, progress).await,
        Wish::Find(find) => discover::find(app, &find).await?,
        Wish::Schema(about) => discover::about(app, &about).await?,
        Wish::Wait(wait) => wait::run(app, caller, &wait, progress).await?,
        Wish::Get(get) => runs::get(app, caller, get).await?,
        Wish::List(list) => runs::list(app, list).await?,
        Wish::Cancel(cancel) => cancel::run(app, caller, cancel).await?,
        Wish::Why(why) => why::run(app, caller, &why).await?,
    };
    Ok(End::Done(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_there_once_and_hints_agree() {
        for (index, entry) in ALL.iter().enumerate() {
            assert!(
                ALL[index + 1..]
                    .iter()
                    .all(|other| other.name != entry.name)
            );
            let tool = entry.tool();
            let hints = tool.annotations.unwrap();
            let reads = hints.read_only_hint.unwrap();
            assert_eq!(hints.destructive_hint, Some(!reads), "{}", entry.name);
            assert_eq!(reads, matches!(entry.need, Need::Results | Need::Read));
            assert!(tool.description.unwrap().len() <= 400, "{}", entry.name);
        }
    }

    #[test]
    fn every_schema_compiles_and_takes_an_error() {
        let error = serde_json::json!({
            "error": "validation", "error_category": "validation", "message": "no",
            "retry_after": 1, "execution_id": "e", "details": {"any": [1]},
        });
        for entry in ALL {
            let tool = entry.tool();
            let input = Value::Object((*tool.input_schema).clone());
            assert!(jsonschema::validator_for(&input).is_ok(), "{}", entry.name);
            let output = Value::Object((*tool.output_schema.unwrap()).clone());
            let output = jsonschema::validator_for(&output).unwrap();
            assert!(output.is_valid(&error), "{}", entry.name);
            assert!(!output.is_valid(&serde_json::json!({})), "{}", entry.name);
        }
    }
}
