//! What a reader of the event stream asked to be told: which events, and which changes once a
//! second. Looks at rows; reads nothing.

use muster_engine::row::{EventKind, EventRow};
use muster_wire::api::events::ChangedTopic;
use muster_wire::{AgentId, AttemptRef, ExecutionId, NodeId, RunId, WorkerId};

use super::Wanted;
use crate::api::problem::Problem;

/// Topics of one stream, at most: more than a screen can show.
const TOPICS_MAX: usize = 256;

/// A set of kinds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Kinds(u128);

const _: () = assert!(EventKind::ALL.len() <= 128, "one bit for each kind");

impl Kinds {
    fn where_topic(fits: impl Fn(&str) -> bool) -> Self {
        let mut kinds = Self::default();
        for kind in EventKind::ALL {
            if fits(kind.topic()) {
                kinds.add(*kind);
            }
        }
        kinds
    }

    fn add(&mut self, kind: EventKind) {
        self.0 |= 1 << kind as u32;
    }

    fn has(self, kind: EventKind) -> bool {
        self.0 & (1 << kind as u32) != 0
    }
}

/// One thing of which all events are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
enum About {
    Run(RunId),
    Agent(AgentId),
    Node(NodeId),
    Worker(WorkerId),
    Execution(ExecutionId),
}

impl About {
    fn parse(noun: &str, id: &str) -> Option<Result<Self, String>> {
        fn made<T, E: ToString>(
            parsed: Result<T, E>,
            make: impl FnOnce(T) -> About,
        ) -> Result<About, String> {
            parsed.map(make).map_err(|error| error.to_string())
        }
        Some(match noun {
            "run" => made(RunId::parse(id), About::Run),
            "agent" => made(AgentId::parse(id), About::Agent),
            "node" => made(NodeId::parse(id), About::Node),
            "worker" => made(WorkerId::parse(id), About::Worker),
            "execution" => made(AttemptRef::parse(id), |found| {
                About::Execution(found.execution)
            }),
            _ => return None,
        })
    }

    fn fits(&self, row: &EventRow) -> bool {
        match self {
            About::Run(run) => row.run.as_ref() == Some(run),
            About::Agent(agent) => row.agent.as_ref() == Some(agent),
            About::Node(node) => row.node.as_ref() == Some(node),
            About::Worker(worker) => row.worker.as_ref() == Some(worker),
            About::Execution(execution) => row.execution.as_ref() == Some(execution),
        }
    }
}

/// Which first words of kinds a wider topic stands for; a first word stands for itself.
fn words_of(topic: &str) -> &[&str] {
    match topic {
        "runs" => &["execution", "approval", "run"],
        "agents" => &["instance", "agent", "llm", "hold"],
        "fleet" => &["node", "worker", "fleet"],
        _ => &[],
    }
}

/// Whether a kind with this first word can change what a coalesced topic shows.
fn moves(topic: ChangedTopic, word: &str) -> bool {
    match topic {
        ChangedTopic::Summary => true,
        // Nodes and workers hold up no call by themselves: an instance of theirs does.
        ChangedTopic::Queues => !words_of("fleet").contains(&word),
    }
}

/// The first words of all kinds.
fn all_words() -> Vec<&'static str> {
    let mut words: Vec<&str> = Vec::new();
    for kind in EventKind::ALL {
        if !words.contains(&kind.topic()) {
            words.push(kind.topic());
        }
    }
    words
}

/// Which events fit.
#[derive(Debug, Clone, Default)]
pub(super) struct Filter {
    /// Whether nothing was named: then all fit.
    all: bool,
    kinds: Kinds,
    about: Vec<About>,
    changed: Vec<(ChangedTopic, Kinds)>,
    execution: Option<ExecutionId>,
    run: Option<RunId>,
    agent: Option<AgentId>,
    node: Option<NodeId>,
    worker: Option<WorkerId>,
}

impl Filter {
    pub(super) fn of(wanted: &Wanted) -> Result<Self, Problem> {
        let wrong =
            |what: &'static str| move |error| Problem::validation(format!("{what}: {error}"));
        let mut filter = Self {
            all: true,
            execution: wanted
                .execution
                .as_deref()
                .map(|text| AttemptRef::parse(text).map(|found| found.execution))
                .transpose()
                .map_err(wrong("execution"))?,
            run: wanted
                .run
                .as_deref()
                .map(RunId::parse)
                .transpose()
                .map_err(wrong("run"))?,
            agent: wanted
                .agent
                .as_deref()
                .map(AgentId::parse)
                .transpose()
                .map_err(wrong("agent"))?,
            node: wanted
                .node
                .as_deref()
                .map(NodeId::parse)
                .transpose()
                .map_err(wrong("node"))?,
            worker: wanted
                .worker
                .as_deref()
                .map(WorkerId::parse)
                .transpose()
                .map_err(wrong("worker"))?,
            ..Self::default()
        };
        for (index, topic) in words(wanted.topics.as_deref()).enumerate() {
            if index == TOPICS_MAX {
                return Err(Problem::validation(format!(
                    "more than {TOPICS_MAX} topics; `runs`, `agents` and `fleet` have everything of their kind"
                )));
            }
            filter.add_topic(topic)?;
        }
        for word in words(wanted.kind.as_deref()) {
            filter.all = false;
            filter.kinds.add(EventKind::from_word(word).ok_or_else(|| {
                let known: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.word()).collect();
                Problem::validation(format!("kind must be of {}", known.join(", ")))
            })?);
        }
        Ok(filter)
    }

    fn add_topic(&mut self, topic: &str) -> Result<(), Problem> {
        self.all = false;
        if let Some(changed) = ChangedTopic::from_word(topic) {
            if self.changed.iter().all(|(known, _)| *known != changed) {
                let kinds = Kinds::where_topic(|word| moves(changed, word));
                self.changed.push((changed, kinds));
            }
            return Ok(());
        }
        if let Some((noun, id)) = topic.split_once(':')
            && let Some(about) = About::parse(noun, id)
        {
            let about =
                about.map_err(|error| Problem::validation(format!("topics: {noun}: {error}")))?;
            if !self.about.contains(&about) {
                self.about.push(about);
            }
            return Ok(());
        }
        let wide = words_of(topic);
        let kinds = Kinds::where_topic(|word| word == topic || wide.contains(&word));
        if kinds == Kinds::default() {
            return Err(Problem::validation(format!(
                "topics are {}, runs, agents, summary, queues, and run:ID, agent:ID, node:ID, worker:ID, execution:ID",
                all_words().join(", ")
            )));
        }
        self.kinds.0 |= kinds.0;
        Ok(())
    }

    /// The topics of which a reader is told that something changed.
    pub(super) fn changed(&self) -> impl Iterator<Item = ChangedTopic> + '_ {
        self.changed.iter().map(|(topic, _)| *topic)
    }

    /// Of those, by their place, the ones that an event of this kind moves.
    pub(super) fn moved_by(&self, kind: EventKind) -> impl Iterator<Item = usize> + '_ {
        let moved =
            move |(place, (_, kinds)): (usize, &(_, Kinds))| kinds.has(kind).then_some(place);
        self.changed.iter().enumerate().filter_map(moved)
    }

    /// Whether the event itself is wanted.
    pub(super) fn fits(&self, row: &EventRow) -> bool {
        fn same<T: PartialEq>(wanted: &Option<T>, has: &Option<T>) -> bool {
            wanted.is_none() || wanted == has
        }
        (self.all || self.kinds.has(row.kind) || self.about.iter().any(|about| about.fits(row)))
            && same(&self.execution, &row.execution)
            && same(&self.run, &row.run)
            && same(&self.agent, &row.agent)
            && same(&self.node, &row.node)
            && same(&self.worker, &row.worker)
    }
}

/// Words between commas.
fn words(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.unwrap_or("")
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_names_every_kind_and_every_topic() {
        let document = crate::api::document();
        let kinds = document["components"]["schemas"]["EventKind"].to_string();
        for kind in EventKind::ALL {
            assert!(kinds.contains(&format!("\"{}\"", kind.word())), "{kind}");
        }
        let parameters = document["paths"]["/api/v1/events"]["get"]["parameters"].to_string();
        let wider = ["runs", "agents", "fleet", "summary", "queues", "run:ID"];
        for topic in all_words().into_iter().chain(wider) {
            assert!(parameters.contains(&format!("`{topic}`")), "{topic}");
        }
    }

    #[test]
    fn each_kind_has_its_own_bit_and_queues_leave_the_fleet_out() {
        for kind in EventKind::ALL {
            let mut one = Kinds::default();
            one.add(*kind);
            let of_it = EventKind::ALL.iter().filter(|other| one.has(**other));
            assert_eq!(of_it.collect::<Vec<_>>(), [kind]);
        }
        let queues = Kinds::where_topic(|word| moves(ChangedTopic::Queues, word));
        assert!(queues.has(EventKind::ExecutionQueued) && queues.has(EventKind::HoldChanged));
        assert!(queues.has(EventKind::InstanceActive) && !queues.has(EventKind::WorkerRunning));
    }
}
