//! Which agents and functions a question is about. Pure: takes names and tags, reads nothing.

use muster_store::glob;
use muster_wire::{AgentId, FunctionKind};

use super::offer::{Function, Registration};
use super::{Problem, Wanted};
use crate::directory::AgentEntry;

/// Parts of one comma-separated list.
const PARTS_MAX: usize = 256;

/// A question, checked.
#[derive(Debug)]
pub(super) struct Selection {
    /// Empty is any.
    agents: Vec<String>,
    reasoner: Option<String>,
    skill: Option<String>,
    /// Empty is any.
    tags: Vec<String>,
    health: Option<&'static str>,
    input_schema: bool,
    output_schema: bool,
    descriptions: bool,
    examples: bool,
}

impl Selection {
    pub(super) fn of(wanted: &Wanted) -> Result<Self, Problem> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let mut agents = list(wanted.agent_ids.as_deref())?;
        agents.extend(list(wanted.node_ids.as_deref())?);
        agents.extend(given(&wanted.agent));
        agents.extend(given(&wanted.node_id));
        let health = match wanted.health_status.as_deref() {
            None | Some("") => None,
            Some(word) => Some(
                ["active", "degraded", "inactive", "unknown"]
                    .into_iter()
                    .find(|known| known.eq_ignore_ascii_case(word))
                    .ok_or_else(|| {
                        Problem::validation(
                            "health_status is one of active, degraded, inactive and unknown",
                        )
                    })?,
            ),
        };
        Ok(Self {
            agents,
            reasoner: given(&wanted.reasoner),
            skill: given(&wanted.skill),
            tags: list(wanted.tags.as_deref())?,
            health,
            input_schema: wanted.include_input_schema.unwrap_or(false),
            output_schema: wanted.include_output_schema.unwrap_or(false),
            descriptions: wanted.include_descriptions.unwrap_or(true),
            examples: wanted.include_examples.unwrap_or(false),
        })
    }

    pub(super) fn wants_agent(&self, id: &str) -> bool {
        self.agents.is_empty() || self.agents.iter().any(|agent| agent == id)
    }

    /// The agent that is asked for, when it is exactly one.
    pub(super) fn only_agent(&self) -> Option<AgentId> {
        match self.agents.as_slice() {
            [only] => AgentId::parse(only).ok(),
            _ => None,
        }
    }

    pub(super) fn wants_health(&self, health: &str) -> bool {
        self.health.is_none_or(|wanted| wanted == health)
    }

    /// Whether names alone do not decide.
    pub(super) fn needs_registration(&self) -> bool {
        !self.tags.is_empty()
    }

    /// Whether an agent with so many reasoners and skills that fit is an answer.
    pub(super) fn is_met_by(&self, (reasoners, skills): (usize, usize)) -> bool {
        let asks_for_functions =
            self.reasoner.is_some() || self.skill.is_some() || !self.tags.is_empty();
        !asks_for_functions || reasoners + skills > 0
    }

    /// How many reasoners and skills of an agent fit by their names.
    pub(super) fn count(&self, agent: &AgentEntry) -> (usize, usize) {
        let functions = agent.functions();
        let of = |kind| {
            functions
                .iter()
                .filter(|function| function.kind == kind)
                .filter(|function| self.wants_name(kind, function.name.as_str()))
                .count()
        };
        (of(FunctionKind::Reasoner), of(FunctionKind::Skill))
    }

    /// The reasoners and skills of an agent that fit.
    pub(super) fn functions(
        &self,
        agent: &AgentEntry,
        registration: &Registration,
    ) -> (Vec<Function>, Vec<Function>) {
        let (mut reasoners, mut skills) = (Vec::new(), Vec::new());
        for function in agent.functions().iter() {
            let (kind, name) = (function.kind, function.name.as_str());
            if !self.wants_name(kind, name) {
                continue;
            }
            let offer = registration.offer(kind, name);
            let tags = offer.all_tags();
            if !self.wants_tags(&tags) && !self.wants_tags(&registration.tags) {
                continue;
            }
            let (list, target) = match kind {
                FunctionKind::Reasoner => (&mut reasoners, format!("{}:{name}", agent.id)),
                FunctionKind::Skill => (&mut skills, format!("{}:skill:{name}", agent.id)),
            };
            list.push(Function {
                id: name.to_owned(),
                description: offer.description.filter(|_| self.descriptions),
                tags,
                input_schema: offer.input_schema.filter(|_| self.input_schema),
                output_schema: offer.output_schema.filter(|_| self.output_schema),
                examples: offer.examples.filter(|_| self.examples),
                invocation_target: target,
            });
        }
        (reasoners, skills)
    }

    fn wants_name(&self, kind: FunctionKind, name: &str) -> bool {
        let (wanted, other) = match kind {
            FunctionKind::Reasoner => (&self.reasoner, &self.skill),
            FunctionKind::Skill => (&self.skill, &self.reasoner),
        };
        match wanted {
            Some(pattern) => glob::fits(pattern, name),
            None => other.is_none(),
        }
    }

    fn wants_tags(&self, tags: &[String]) -> bool {
        self.tags.is_empty() || tags.iter().any(|tag| glob::fits_any(&self.tags, tag))
    }
}

fn list(text: Option<&str>) -> Result<Vec<String>, Problem> {
    let parts: Vec<String> = text
        .unwrap_or("")
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect();
    if parts.len() > PARTS_MAX {
        return Err(Problem::validation(format!(
            "a list has at most {PARTS_MAX} parts"
        )));
    }
    Ok(parts)
}
