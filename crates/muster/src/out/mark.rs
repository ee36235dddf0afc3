//! The mark and colour of each state. A state that this build does not know is shown as its own
//! word, neutral, with a question mark.

use super::style::{Colour, Style};

/// A state as it is drawn: a shape, a word that stands for it without UTF-8, a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// One column.
    pub(crate) shape: &'static str,
    /// Without UTF-8.
    pub(crate) word: &'static str,
    /// Of the mark and of the state's word.
    pub(crate) colour: Colour,
}

const fn mark(shape: &'static str, word: &'static str, colour: Colour) -> Mark {
    Mark {
        shape,
        word,
        colour,
    }
}

impl Mark {
    /// Something nobody knows.
    pub(crate) const UNKNOWN: Mark = mark("?", "?", Colour::Dim);
    /// A group of steps.
    pub(crate) const GROUP: Mark = mark("▸", "+", Colour::Cyan);
    /// A call that waits for its agent to come back.
    pub(crate) const ABSORBED: Mark = mark("↻", "again", Colour::Yellow);
    /// Something that needs a look.
    pub(crate) const WARN: Mark = mark("⚠", "warn", Colour::Yellow);

    /// The shape, or the word where shapes cannot be shown.
    pub(crate) fn text(&self, style: &Style) -> &'static str {
        if style.unicode { self.shape } else { self.word }
    }

    /// The same, coloured.
    pub(crate) fn painted(&self, style: &Style) -> String {
        style.paint(self.colour, self.text(style))
    }
}

/// The mark of an execution. `reason` tells an absorbed restart from running.
pub(crate) fn execution_mark(state: &str, reason: &str) -> Mark {
    match state {
        "running" if reason.starts_with("awaiting_agent_restart") => Mark::ABSORBED,
        "queued" => mark("○", "queue", Colour::Dim),
        "running" => mark("▶", "run", Colour::Cyan),
        "waiting" => mark("◑", "wait", Colour::Yellow),
        "paused" => mark("‖", "pause", Colour::Dim),
        "succeeded" => mark("✓", "ok", Colour::Green),
        "failed" => mark("✕", "fail", Colour::Red),
        "cancelled" => mark("⊘", "stop", Colour::Dim),
        "timeout" => mark("◷", "time", Colour::Magenta),
        _ => Mark::UNKNOWN,
    }
}

/// The mark of an agent or of one of its instances.
pub(crate) fn agent_mark(state: &str) -> Mark {
    match state {
        "active" | "ready" => mark("●", "up", Colour::Plain),
        "degraded" => mark("◐", "late", Colour::Yellow),
        "restarting" => Mark::ABSORBED,
        "starting" | "draining" => mark("◌", "wait", Colour::Dim),
        "held" | "hold" => mark("‖", "hold", Colour::Dim),
        "unreachable_callback" => Mark::WARN,
        "down" | "gone" => mark("✕", "down", Colour::Red),
        _ => Mark::UNKNOWN,
    }
}

/// The mark of a machine.
pub(crate) fn node_mark(state: &str, flapping: bool) -> Mark {
    match state {
        _ if flapping => mark("≋", "flap", Colour::Yellow),
        "online" => mark("●", "up", Colour::Plain),
        "suspect" => mark("◐", "late", Colour::Yellow),
        "connecting" => mark("◌", "wait", Colour::Dim),
        "lost" => mark("✕", "lost", Colour::Red),
        _ => Mark::UNKNOWN,
    }
}

/// The mark of a worker. `well` says whether one that exited did so with 0.
pub(crate) fn worker_mark(state: &str, well: bool) -> Mark {
    match state {
        "queued" => mark("○", "queue", Colour::Dim),
        "starting" => mark("◌", "wait", Colour::Dim),
        "running" => mark("●", "up", Colour::Plain),
        "restarting" => Mark::ABSORBED,
        "exited" if well => mark("✓", "ok", Colour::Green),
        "exited" => mark("✕", "fail", Colour::Red),
        "lost" => mark("✕", "lost", Colour::Red),
        _ => Mark::UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_wire::Status;

    #[test]
    fn every_status_has_a_mark_of_its_own_and_an_unknown_word_is_unknown() {
        let mut shapes: Vec<_> = Status::ALL
            .iter()
            .map(|status| execution_mark(status.word(), "").shape)
            .collect();
        assert!(!shapes.contains(&"?"));
        shapes.sort_unstable();
        shapes.dedup();
        assert_eq!(shapes.len(), Status::ALL.len());
        assert_eq!(execution_mark("levitating", ""), Mark::UNKNOWN);
        assert_eq!(agent_mark("levitating"), Mark::UNKNOWN);
        assert_eq!(node_mark("levitating", false), Mark::UNKNOWN);
        assert_eq!(worker_mark("levitating", true), Mark::UNKNOWN);
    }

    #[test]
    fn only_what_nobody_can_know_of_machines_and_workers_is_drawn_as_unknown() {
        use muster_wire::fleet::{NodeState, WorkerState};
        for state in NodeState::ALL {
            let unknown = *state == NodeState::Unreachable;
            assert_eq!(node_mark(state.word(), false) == Mark::UNKNOWN, unknown);
        }
        for state in WorkerState::ALL {
            let unknown = *state == WorkerState::Unknown;
            assert_eq!(worker_mark(state.word(), false) == Mark::UNKNOWN, unknown);
        }
    }
}
