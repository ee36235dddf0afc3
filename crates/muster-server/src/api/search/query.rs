//! Reads a search as people type it: `state:failed agent:weather 7K2F9Q`. Asks nothing.

use std::time::Duration;

use muster_store::{Also, ExecutionFilter, RunFilter};
use muster_wire::{AgentId, Category, FunctionName, Status, Timestamp};

use crate::api::filters;
use crate::api::problem::Problem;
use crate::config::Span;

/// The end of an id is at least so long: fewer characters would find anything.
const TAIL_MIN: usize = 4;

/// The filters, for people.
const FILTERS: &str = "state: agent: fn: category: reason: session: label:actor=… since:2h";

/// What somebody looks for.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Wanted {
    /// What was understood, in order.
    pub(super) terms: Vec<(&'static str, String)>,
    /// Words that are no filter, as one text.
    pub(super) text: Option<String>,
    statuses: Vec<Status>,
    agent: Option<AgentId>,
    function: Option<FunctionName>,
    category: Option<Category>,
    reason: Option<String>,
    since: Option<Timestamp>,
    session: Option<String>,
    actor: Option<String>,
    /// Words that look like a filter and are none.
    odd: Vec<String>,
}

impl Wanted {
    /// Reads it.
    ///
    /// # Errors
    /// 400 when a filter has no such word.
    pub(super) fn read(q: &str, now: Timestamp) -> Result<Self, Problem> {
        let mut wanted = Self::default();
        let mut words: Vec<String> = Vec::new();
        for word in q.split_whitespace() {
            let filter = word.split_once(':').filter(|(_, value)| !value.is_empty());
            let Some((key, value)) = filter else {
                words.push(word.to_owned());
                continue;
            };
            match key {
                "state" | "status" => {
                    wanted.statuses = filters::words("state", Some(value))?;
                    wanted.term("state", value);
                }
                "agent" => {
                    let id = AgentId::parse(value);
                    wanted.agent =
                        Some(id.map_err(|e| Problem::validation(format!("agent: {e}")))?);
                    wanted.term("agent", value);
                }
                "fn" | "function" => {
                    let name = FunctionName::parse(value);
                    wanted.function =
                        Some(name.map_err(|e| Problem::validation(format!("fn: {e}")))?);
                    wanted.term("fn", value);
                }
                "category" => {
                    wanted.category = Some(Category::from(value));
                    wanted.term("category", value);
                }
                "reason" => {
                    wanted.reason = Some(value.to_owned());
                    wanted.term("reason", value);
                }
                "since" => {
                    wanted.since = Some(since(value, now)?);
                    wanted.term("since", value);
                }
                "session" => {
                    wanted.session = Some(value.to_owned());
                    wanted.term("session", value);
                }
                "label" => {
                    match value.split_once('=').filter(|(_, value)| !value.is_empty()) {
                        Some(("session", value)) => wanted.session = Some(value.to_owned()),
                        Some(("actor", value)) => wanted.actor = Some(value.to_owned()),
                        _ => {
                            return Err(Problem::validation(
                                "label: session=… or actor=…; an execution has no other labels",
                            ));
                        }
                    }
                    wanted.term("label", value);
                }
                // Not a filter: names may have a colon.
                key => {
                    if key.chars().all(|letter| letter.is_ascii_alphabetic()) {
                        wanted.odd.push(key.to_owned());
                    }
                    words.push(word.to_owned());
                }
            }
        }
        if !words.is_empty() {
            let text = words.join(" ");
            let key = if is_id_like(&text) { "id" } else { "text" };
            wanted.terms.push((key, text.clone()));
            wanted.text = Some(text);
        }
        Ok(wanted)
    }

    fn term(&mut self, key: &'static str, value: &str) {
        self.terms.push((key, value.to_owned()));
    }

    /// Whether nothing was asked.
    pub(super) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether there is no filter, and so everything that has a name may be meant.
    pub(super) fn is_plain(&self) -> bool {
        self.terms.len() == 1 && self.text.is_some()
    }

    /// What a reader should know.
    pub(super) fn note(&self) -> String {
        let mut note = "payloads are not searched".to_owned();
        if self.is_empty() {
            note =
                format!("type a part of an id or a name, or {FILTERS}; payloads are not searched");
        }
        if !self.odd.is_empty() {
            let odd: Vec<String> = self.odd.iter().map(|key| format!("{key}:")).collect();
            note = format!(
                "{} is no filter and was looked for as text; filters are {FILTERS}; {note}",
                odd.join(", ")
            );
        }
        note
    }
}

/// Since a moment, or for so long.
fn since(value: &str, now: Timestamp) -> Result<Timestamp, Problem> {
    if let Some(at) = Timestamp::parse(value) {
        return Ok(at);
    }
    // A day is no unit of durations elsewhere, and is one people type.
    let days = value.strip_suffix('d').and_then(|n| n.parse::<u32>().ok());
    let span = match days {
        Some(days) => Duration::from_secs(86_400) * days,
        None => {
            let span = Span::parse(value);
            span.map_err(|_| {
                Problem::validation(
                    "since: a moment like 2026-01-31T12:00:00Z, or a time like 2h or 3d",
                )
            })?
            .0
        }
    };
    Ok(now - span)
}

/// The part of an id that a text is: a beginning, an end of at least four characters, or a short
/// form (`exec_…7K2F9Q`), of which the noun says what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IdPart {
    /// The noun of a short form.
    pub(super) noun: Option<String>,
    /// What ids begin or end with.
    pub(super) part: String,
}

/// Reads a part of an id; `None` when a text is none.
pub(super) fn id_part(text: &str) -> Option<IdPart> {
    let dots = ["…", "..."].iter().find(|dots| text.contains(**dots));
    let (noun, part) = match dots {
        Some(dots) => {
            let (head, tail) = text.split_once(*dots)?;
            let noun = head.strip_suffix('_').unwrap_or(head);
            ((!noun.is_empty()).then(|| noun.to_owned()), tail)
        }
        None => (None, text),
    };
    let fits = is_id_like(part) && part.len() >= TAIL_MIN;
    fits.then(|| IdPart {
        noun,
        part: part.to_owned(),
    })
}

fn is_id_like(text: &str) -> bool {
    muster_wire::id::check_id(text).is_ok()
}

/// Whether a name has a part, whatever the case.
pub(super) fn has(name: &str, part: &str) -> bool {
    name.to_lowercase().contains(&part.to_lowercase())
}

impl IdPart {
    /// Whether it may be an id of a noun.
    pub(super) fn may_be(&self, noun: &str) -> bool {
        self.noun.as_deref().is_none_or(|own| own == noun)
    }

    /// Whether an id begins or ends with it.
    pub(super) fn fits(&self, id: &str) -> bool {
        let (id, part) = (id.to_lowercase(), self.part.to_lowercase());
        id.ends_with(&part) || (self.noun.is_none() && id.starts_with(&part))
    }
}

impl Wanted {
    /// The part of an id that is looked for.
    pub(super) fn id(&self) -> Option<IdPart> {
        self.text.as_deref().and_then(id_part)
    }

    /// Whether something narrows executions beside a text.
    pub(super) fn has_filters(&self) -> bool {
        self.terms.len() > usize::from(self.text.is_some())
    }

    /// What narrows executions and runs in the same way.
    fn also(&self) -> Also {
        Also {
            ended_since: self.since,
            session: self.session.clone(),
            actor: self.actor.clone(),
            ..Also::default()
        }
    }

    /// The same for a list of executions.
    pub(super) fn executions(&self) -> ExecutionFilter {
        ExecutionFilter {
            statuses: self.statuses.clone(),
            agents: self.agent.iter().cloned().collect(),
            function: self.function.clone(),
            category: self.category.clone(),
            also: Also {
                reason: self.reason.clone(),
                ..self.also()
            },
            ..ExecutionFilter::default()
        }
    }

    /// The same for a list of runs; `None` when runs cannot be narrowed so.
    pub(super) fn runs(&self) -> Option<RunFilter> {
        let fits = self.function.is_none() && self.category.is_none() && self.reason.is_none();
        fits.then(|| RunFilter {
            statuses: self.statuses.clone(),
            agent: self.agent.clone(),
            also: self.also(),
            ..RunFilter::default()
        })
    }

    /// Whether a row that was found by its id fits the filters, too.
    pub(super) fn fits(&self, row: &muster_engine::row::ExecutionRow) -> bool {
        (self.statuses.is_empty() || self.statuses.contains(&row.status))
            && self.agent.as_ref().is_none_or(|id| *id == row.agent)
            && self
                .function
                .as_ref()
                .is_none_or(|name| *name == row.function)
            && (self.category.is_none() || self.category == row.error_category)
            && (self.session.is_none() || self.session.as_deref() == row.session.as_deref())
            && (self.actor.is_none() || self.actor.as_deref() == row.actor.as_deref())
            && (self.reason.is_none() || self.reason.as_deref() == row.status_reason.as_deref())
            && self
                .since
                .is_none_or(|at| row.ended_at.unwrap_or(Timestamp::NEVER) >= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(10_000_000_000_000);

    #[test]
    fn filters_are_understood_and_the_rest_is_text() {
        let wanted =
            Wanted::read("state:failed,timeout agent:weather since:2h 7K2F9Q", NOW).unwrap();
        assert_eq!(wanted.statuses, [Status::Failed, Status::Timeout]);
        assert_eq!(wanted.agent.as_ref().map(AgentId::as_str), Some("weather"));
        assert_eq!(wanted.since, Some(NOW - Duration::from_secs(7200)));
        assert_eq!(wanted.terms[3], ("id", "7K2F9Q".to_owned()));
        assert!(wanted.has_filters() && !wanted.is_plain());
        let days = Wanted::read("since:3d", NOW).unwrap();
        assert_eq!(days.since, Some(NOW - Duration::from_secs(3 * 86_400)));
        assert!(Wanted::read("two words", NOW).unwrap().is_plain());
        assert!(Wanted::read("", NOW).unwrap().is_empty());
        for bad in ["state:wrong", "since:soon", "agent:a/b"] {
            assert!(Wanted::read(bad, NOW).is_err(), "{bad}");
        }
        let colon = Wanted::read("url:8001", NOW).unwrap();
        assert_eq!(colon.text.as_deref(), Some("url:8001"));
    }

    #[test]
    fn the_short_form_on_screen_is_an_end_with_a_noun() {
        let short = id_part("exec_…7K2F9Q").unwrap();
        assert_eq!(short.noun.as_deref(), Some("exec"));
        assert!(short.may_be("exec") && !short.may_be("run"));
        assert!(short.fits("exec_01KB6E7M9QX2T4V8N07K2F9Q") && !short.fits("7K2F9Q_x"));
        let tail = id_part("7k2f9q").unwrap();
        assert!(tail.may_be("run") && tail.fits("run_017K2F9Q") && tail.fits("7K2F9Q_mine"));
        assert_eq!(id_part("abc"), None);
        assert_eq!(id_part("two words"), None);
    }
}
