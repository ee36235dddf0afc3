//! How a command ends when it does not succeed: the one error shape, with evidence and a hint
//! for people. The exit code comes from the category.

use muster_wire::{Category, ErrorBody};
use serde::Serialize;

use crate::out::{self, Colour, Style, clean};

/// What went wrong, for a person and for a program.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    /// What a program reads.
    pub(crate) body: Box<ErrorBody>,
    /// What was seen, a line each.
    pub(crate) evidence: Vec<String>,
    /// What to do.
    pub(crate) hint: Option<String>,
}

/// The same as a line for programs.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    body: &'a ErrorBody,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    seen: &'a [String],
    hint: String,
}

/// A command's result.
pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    /// A failure with a sentence.
    pub(crate) fn new(category: Category, message: impl Into<String>) -> Self {
        Self::from(ErrorBody::new(category, message))
    }

    /// Adds a line of evidence.
    pub(crate) fn seen(mut self, line: impl Into<String>) -> Self {
        self.evidence.push(line.into());
        self
    }

    /// Says what to do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The exit code of the command that ends with it.
    pub(crate) fn exit_code(&self) -> u8 {
        self.body.error_category.exit_code()
    }

    /// Writes it to stderr: a line of JSON, or sentences.
    pub(crate) fn print(&self, style: &Style, json: bool) {
        if json {
            out::talk(&self.line());
        } else {
            out::talk(self.text(style).trim_end());
        }
    }

    /// The line for programs: the error as the plane has it, what was seen, and the hint.
    pub(crate) fn line(&self) -> String {
        let line = Line {
            body: &self.body,
            seen: &self.evidence,
            hint: self.hint_or_usual(),
        };
        serde_json::to_string(&line).unwrap_or_default()
    }

    fn hint_or_usual(&self) -> String {
        let hint = self.hint.clone();
        hint.unwrap_or_else(|| usual_hint(&self.body))
    }

    /// The sentences.
    pub(crate) fn text(&self, style: &Style) -> String {
        let word = format!("error[{}]:", self.body.error_category.word());
        let said = format!(
            "{} {}",
            style.paint(Colour::Red, &word),
            style.words(&clean(&self.body.message))
        );
        let mut text = format!("{}\n", style.wrapped(2, &said));
        if let Some(id) = &self.body.execution_id {
            text += &format!("  execution {}\n", clean(id));
        }
        for line in &self.evidence {
            text += &format!("  {}\n", style.wrapped(4, &style.words(&clean(line))));
        }
        if let Some(seconds) = self.body.retry_after {
            text += &format!("  worth trying again in {seconds} s\n");
        }
        let hint = self.hint_or_usual();
        let hint = style.wrapped(6, &style.words(&clean(&hint)));
        text += &format!("{} {hint}\n", style.paint(Colour::Bold, "hint:"));
        text
    }
}

/// What to do about an error that says nothing better: a command to look with.
fn usual_hint(body: &ErrorBody) -> String {
    if let Some(id) = &body.execution_id {
        return format!("`muster why {id}` has the evidence");
    }
    let hint = match body.error_category {
        Category::Validation | Category::TooLarge => {
            "`muster help COMMAND` says what a command takes, with examples"
        }
        Category::NotSupported => "`muster openapi` has all that this plane does",
        Category::NotFound => "`muster search WORD` looks everywhere, by part of an id or a name",
        Category::TargetNotFound => "`muster agents` lists who can be called",
        Category::Unauthenticated => {
            "set MUSTER_API_KEY, or run this where the plane's data directory .muster is"
        }
        Category::PermissionDenied | Category::AgentIdTaken | Category::WrongAttempt => {
            "`muster keys` says what each key may do; MUSTER_API_KEY names the one to use"
        }
        Category::NodeUnavailable | Category::AgentUnreachable => {
            "`muster agents` says how each agent is, and `muster why AGENT` says why"
        }
        Category::AgentPendingApproval => {
            "`muster tags list` shows which tags wait, `muster tags approve AGENT` approves them"
        }
        Category::ConcurrencyLimit | Category::Overloaded | Category::RateLimited => {
            "`muster queues` shows who waits for what; try again later"
        }
        Category::NodeUnreachable
        | Category::NodeDraining
        | Category::NoEligibleNode
        | Category::UnsupportedByNode
        | Category::FleetCapacity
        | Category::PlacementExpired => {
            "`muster nodes` shows every machine, and `muster why NODE` says why"
        }
        Category::AgentError
        | Category::BadResponse
        | Category::OutcomeUnknown
        | Category::AgentRestartOrphaned
        | Category::AgentTimeout
        | Category::Cancelled
        | Category::RunCancelled
        | Category::StillRunning
        | Category::Conflict
        | Category::IdempotencyConflict => {
            "`muster executions` shows where it is, and `muster why ID` says why"
        }
        _ => "`muster doctor` looks at the plane and at this machine",
    };
    hint.to_owned()
}

impl From<ErrorBody> for Failure {
    fn from(body: ErrorBody) -> Self {
        Self {
            body: Box::new(body),
            evidence: Vec::new(),
            hint: None,
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(Category::InternalError, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_reads_as_error_evidence_hint_and_exits_by_its_category() {
        let failure = Failure::new(Category::NodeUnavailable, "billing is down")
            .seen("last dial 127.0.0.1:8004 refused")
            .hint("see `muster why billing`");
        assert_eq!(
            failure.text(&Style::plain()),
            "error[node_unavailable]: billing is down\n  last dial 127.0.0.1:8004 refused\nhint: see `muster why billing`\n"
        );
        assert_eq!(failure.exit_code(), 69);
    }

    #[test]
    fn a_line_for_programs_has_the_shape_of_the_api_and_what_people_are_told() {
        let mut body = ErrorBody::new(Category::Conflict, "it fits 2");
        body.details = Some(serde_json::json!({"a": [1]}));
        let failure = Failure::from(body).seen("exec_1").seen("exec_2");
        assert_eq!(
            failure.line(),
            "{\"error\":\"conflict\",\"error_category\":\"conflict\",\"message\":\"it fits 2\",\
             \"details\":{\"a\":[1]},\"seen\":[\"exec_1\",\"exec_2\"],\
             \"hint\":\"`muster executions` shows where it is, and `muster why ID` says why\"}"
        );
        let bare = Failure::new(Category::NotFound, "no").hint("look").line();
        assert!(
            bare.ends_with("\"message\":\"no\",\"hint\":\"look\"}"),
            "{bare}"
        );
    }

    #[test]
    fn control_characters_from_outside_do_not_reach_the_terminal() {
        let text =
            Failure::new(Category::AgentError, "\u{1b}[2Jgone\r\u{202e}").text(&Style::plain());
        assert!(!text.contains('\u{1b}') && !text.contains('\r') && !text.contains('\u{202e}'));
    }
}
