//! What lists of executions and of runs may be narrowed to: read from a query, once for both.

use muster_store::Also;
use muster_wire::{Origin, Status};
use serde::Deserialize;

use super::executions::{statuses, time};
use super::problem::Problem;

/// The longest text that is looked for.
const TEXT_MAX: usize = 200;

/// What both lists understand.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    pub(super) status: Option<String>,
    pub(super) state: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) function: Option<String>,
    pub(super) run_id: Option<String>,
    pub(super) parent_execution_id: Option<String>,
    pub(super) category: Option<String>,
    pub(super) error_category: Option<String>,
    reason: Option<String>,
    label: Option<String>,
    origin: Option<String>,
    since: Option<String>,
    until: Option<String>,
    q: Option<String>,
    sort: Option<String>,
    pub(super) order: Option<String>,
    pub(super) limit: Option<usize>,
    pub(super) cursor: Option<String>,
}

impl Asked {
    /// The words of `state`.
    pub(super) fn states(&self) -> Result<Vec<Status>, Problem> {
        statuses(self.state.as_deref())
    }

    /// The category, by either of its names.
    pub(super) fn category(&self) -> Option<muster_wire::Category> {
        let word = self.category.as_deref().or(self.error_category.as_deref());
        word.filter(|word| !word.is_empty()).map(Into::into)
    }

    /// What is the same for both.
    pub(super) fn also(&self) -> Result<Also, Problem> {
        if !matches!(self.sort.as_deref(), None | Some("" | "started")) {
            return Err(Problem::validation("sort is started: the newest first"));
        }
        let text = |name: &str, given: &Option<String>| match given.as_deref() {
            Some(text) if text.len() > TEXT_MAX => Err(Problem::validation(format!(
                "{name} has more than {TEXT_MAX} bytes"
            ))),
            given => Ok(given.filter(|text| !text.is_empty()).map(str::to_owned)),
        };
        let origin = match self.origin.as_deref().filter(|word| !word.is_empty()) {
            None => None,
            Some(word) => Some(Origin::from_word(word).ok_or_else(|| {
                let all: Vec<&str> = Origin::ALL.iter().map(|origin| origin.word()).collect();
                Problem::validation(format!("origin: one of {}", all.join(", ")))
            })?),
        };
        let mut also = Also {
            reason: text("reason", &self.reason)?,
            origin,
            ended_since: time("since", self.since.as_deref())?,
            ended_until: time("until", self.until.as_deref())?,
            text: text("q", &self.q)?,
            ..Also::default()
        };
        if let Some(label) = text("label", &self.label)? {
            match label.split_once('=') {
                Some(("session", value)) => also.session = Some(value.to_owned()),
                Some(("actor", value)) => also.actor = Some(value.to_owned()),
                _ => {
                    return Err(Problem::validation(
                        "label is session=… or actor=…: an execution has no other labels",
                    ));
                }
            }
        }
        Ok(also)
    }
}
