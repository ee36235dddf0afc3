//! The bounded queue of lines. When it is full the oldest debug line goes first, then the
//! oldest of all; each loss is counted for its execution.

use std::collections::VecDeque;

use muster_wire::ExecutionId;
use rustc_hash::FxHashMap;

use super::Line;

/// Lines that wait.
const LINES_MAX: usize = 20_000;
/// Bytes of lines that wait.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// Executions whose losses are counted apart between two writes.
const GAPS_MAX: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct Queue {
    debug: VecDeque<(u64, Line)>,
    rest: VecDeque<(u64, Line)>,
    next: u64,
    bytes: usize,
    gaps: FxHashMap<ExecutionId, u64>,
    dropped: u64,
    is_writing: bool,
}

/// What one write takes.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// In the order in which they came.
    pub(super) lines: Vec<Line>,
    /// How many lines of which execution were dropped.
    pub(super) gaps: Vec<(ExecutionId, u64)>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.gaps.is_empty()
    }
}

impl Queue {
    pub(super) fn push(&mut self, line: Line) {
        self.bytes += line.size();
        self.next += 1;
        let number = self.next;
        self.place_of(&line).push_back((number, line));
        self.bound();
    }

    /// Lines that a write could not place yet; they keep their place before newer ones.
    pub(super) fn put_back(&mut self, lines: Vec<Line>) {
        for line in lines.into_iter().rev() {
            self.bytes += line.size();
            // Number 0 sorts before everything that came since.
            self.place_of(&line).push_front((0, line));
        }
        self.bound();
    }

    fn place_of(&mut self, line: &Line) -> &mut VecDeque<(u64, Line)> {
        if line.is_debug() {
            &mut self.debug
        } else {
            &mut self.rest
        }
    }

    fn bound(&mut self) {
        while self.debug.len() + self.rest.len() > LINES_MAX || self.bytes > BYTES_MAX {
            let Some((_, line)) = self.debug.pop_front().or_else(|| self.rest.pop_front()) else {
                return;
            };
            self.bytes -= line.size();
            self.dropped += 1;
            let execution = &line.about.execution;
            if self.gaps.len() < GAPS_MAX || self.gaps.contains_key(execution) {
                *self.gaps.entry(execution.clone()).or_default() += 1;
            }
        }
    }

    /// How many lines were dropped since this was last asked.
    pub(super) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    pub(super) fn take(&mut self) -> Batch {
        let mut lines = Vec::with_capacity(self.debug.len() + self.rest.len());
        loop {
            let from = match (self.debug.front(), self.rest.front()) {
                (Some((a, _)), Some((b, _))) if a < b => &mut self.debug,
                (Some(_), None) => &mut self.debug,
                (_, Some(_)) => &mut self.rest,
                (None, None) => break,
            };
            lines.extend(from.pop_front().map(|(_, line)| line));
        }
        self.bytes = 0;
        Batch {
            lines,
            gaps: self.gaps.drain().collect(),
        }
    }

    /// Whether the caller has to start the writer.
    pub(super) fn begin_writing(&mut self) -> bool {
        !std::mem::replace(&mut self.is_writing, true)
    }

    /// Whether the writer may end: nothing waits.
    pub(super) fn end_writing(&mut self) -> bool {
        self.is_writing = !(self.debug.is_empty() && self.rest.is_empty());
        !self.is_writing
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use bytes::Bytes;
    use muster_store::annex::LogRow;
    use muster_wire::{AttemptRef, Timestamp};

    use super::*;
    use crate::api::caller::Caller;
    use crate::auth::Identity;
    use crate::logs::What;

    fn line(execution: &str, level: &str, message: &str) -> Line {
        let about = AttemptRef::parse(execution).unwrap();
        Line {
            parent: None,
            by: Caller::new(Identity::loopback()),
            what: What::Log(LogRow {
                seq: 0,
                execution: about.execution.clone(),
                at: Timestamp(0),
                level: level.into(),
                source: String::new(),
                event_type: String::new(),
                message: message.into(),
                attributes: Bytes::new(),
            }),
            about,
            since: Instant::now(),
        }
    }

    fn messages(batch: &Batch) -> Vec<&str> {
        batch.lines.iter().map(line_text).collect()
    }

    fn line_text(line: &Line) -> &str {
        match &line.what {
            What::Log(row) => &row.message,
            What::Note(row) => &row.message,
        }
    }

    #[test]
    fn lines_leave_in_the_order_in_which_they_came() {
        let mut queue = Queue::default();
        for (level, message) in [("info", "1"), ("debug", "2"), ("info", "3"), ("debug", "4")] {
            queue.push(line("e", level, message));
        }
        queue.put_back(vec![line("e", "info", "a"), line("e", "info", "b")]);
        assert_eq!(messages(&queue.take()), ["a", "b", "1", "2", "3", "4"]);
        assert!(queue.take().is_empty());
    }

    #[test]
    fn a_full_queue_drops_the_oldest_debug_lines_and_counts_them() {
        let mut queue = Queue::default();
        queue.push(line("first", "error", "the oldest"));
        for _ in 0..10 {
            queue.push(line("noisy", "debug", "d"));
        }
        for _ in 0..(LINES_MAX - 1) {
            queue.push(line("busy", "info", "i"));
        }
        assert_eq!(queue.take_dropped(), 10);
        queue.push(line("busy", "info", "one more"));
        assert_eq!(queue.take_dropped(), 1);
        let batch = queue.take();
        assert_eq!(batch.lines.len(), LINES_MAX);
        assert_eq!(messages(&batch)[0], "i");
        let mut gaps: Vec<_> = batch.gaps.iter().map(|(e, n)| (e.as_str(), *n)).collect();
        gaps.sort_unstable();
        assert_eq!(gaps, [("first", 1), ("noisy", 10)]);
    }

    #[test]
    fn large_lines_count_by_their_bytes() {
        let mut queue = Queue::default();
        let large = "x".repeat(1024 * 1024);
        for _ in 0..40 {
            queue.push(line("e", "info", &large));
        }
        assert!(queue.bytes <= BYTES_MAX);
        assert!(queue.take().lines.len() < 16);
    }

    #[test]
    fn one_writer_at_a_time() {
        let mut queue = Queue::default();
        queue.push(line("e", "info", "1"));
        assert!(queue.begin_writing());
        assert!(!queue.begin_writing());
        assert!(!queue.end_writing());
        queue.take();
        assert!(queue.end_writing());
        assert!(queue.begin_writing());
    }
}
