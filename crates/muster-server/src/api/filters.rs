//! What lists of executions and of runs may be narrowed to: read from a query, once for both.

use muster_store::Also;
use muster_wire::api::Word;
use muster_wire::{Category, Status};
use serde::Deserialize;

use super::executions::time;
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
        words("state", self.state.as_deref())
    }

    /// The category, by either of its names.
    pub(super) fn category(&self) -> Result<Option<Category>, Problem> {
        let word = self.category.as_deref().or(self.error_category.as_deref());
        let Some(word) = word.filter(|word| !word.is_empty()) else {
            return Ok(None);
        };
        match Category::from(word) {
            Category::Other(_) => Err(unknown(
                "category",
                Category::ALL.iter().map(Category::word),
            )),
            known => Ok(Some(known)),
        }
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
        let mut also = Also {
            reason: text("reason", &self.reason)?,
            origin: words("origin", self.origin.as_deref())?.pop(),
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

/// The words of a filter, between commas, out of a closed list.
///
/// # Errors
/// 400 that names those there are.
pub(crate) fn words<W: Word>(name: &str, text: Option<&str>) -> Result<Vec<W>, Problem> {
    let given = text.unwrap_or_default().split(',').map(str::trim);
    given
        .filter(|word| !word.is_empty())
        .map(|word| {
            let mut known = W::WORDS.iter().copied();
            known
                .find(|one| one.text() == word)
                .ok_or_else(|| unknown(name, W::WORDS.iter().map(|one| one.text())))
        })
        .collect()
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Problem {
    let known: Vec<&str> = known.collect();
    Problem::validation(format!("{name}: one of {}", known.join(", ")))
}
