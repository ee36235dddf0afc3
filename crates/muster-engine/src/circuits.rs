//! The circuits of LLM endpoints: closed while checks go well, open after some failed in a row,
//! half open when it is time to try again. Decides when to check and what is refused; the
//! checks themselves are the shell's.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::Timestamp;

use crate::admission::Pause;
use crate::effect::{CircuitState, Effects, Send};
use crate::engine::Engine;
use crate::event::Submission;
use crate::limits::LlmLimits;
use crate::refusal::Refusal;
use crate::row::{EventKind, EventRow};
use crate::timers::TimerKey;

/// A check whose end never came is made again after this.
const CHECK_LOST: Duration = Duration::from_secs(120);

/// Where a circuit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Calls pass.
    Closed {
        /// Failed checks in a row.
        failures: u32,
    },
    /// Calls are refused.
    Open {
        /// Since when.
        since: Timestamp,
        /// When the next check goes out.
        until: Timestamp,
    },
    /// Calls pass, and a few checks decide.
    HalfOpen {
        /// Since when it had been open.
        since: Timestamp,
        /// Good checks in a row.
        good: u32,
    },
}

impl At {
    fn word(self) -> &'static str {
        match self {
            At::Closed { .. } => "closed",
            At::Open { .. } => "open",
            At::HalfOpen { .. } => "half_open",
        }
    }

    /// What a check makes of it.
    fn after(self, good: bool, now: Timestamp, limits: &LlmLimits) -> At {
        let open = || At::Open {
            since: now,
            until: now + limits.recovery_timeout,
        };
        match (self, good) {
            (At::Closed { .. }, true) => At::Closed { failures: 0 },
            (At::Closed { failures }, false) if failures + 1 < limits.failure_threshold => {
                At::Closed {
                    failures: failures + 1,
                }
            }
            (At::Closed { .. } | At::HalfOpen { .. }, false) => open(),
            (At::HalfOpen { good, .. }, true) if good + 1 >= limits.half_open_probes => {
                At::Closed { failures: 0 }
            }
            (At::HalfOpen { since, good }, true) => At::HalfOpen {
                since,
                good: good + 1,
            },
            // A check that was under way when it opened says nothing new.
            (At::Open { .. }, _) => self,
        }
    }
}

/// One endpoint.
#[derive(Debug)]
pub(crate) struct Circuit {
    name: Arc<str>,
    at: At,
    checking: bool,
    last: Option<(Timestamp, Option<Arc<str>>)>,
    pub(crate) armed: Option<Timestamp>,
}

impl Circuit {
    /// Unknown counts as closed.
    fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            at: At::Closed { failures: 0 },
            checking: false,
            last: None,
            armed: None,
        }
    }

    fn state(&self) -> CircuitState {
        CircuitState {
            endpoint: self.name.clone(),
            state: self.at.word(),
            failures: match self.at {
                At::Closed { failures } => failures,
                At::Open { .. } | At::HalfOpen { .. } => 0,
            },
            last: self.last.clone(),
            opened_at: match self.at {
                At::Open { since, .. } | At::HalfOpen { since, .. } => Some(since),
                At::Closed { .. } => None,
            },
            next_check: self.armed.filter(|_| !self.checking),
        }
    }
}

impl Engine {
    /// A start: every circuit is closed, and the first checks go out at once.
    pub(crate) fn start_circuits(&mut self, now: Timestamp) {
        self.circuits = self
            .limits
            .llm
            .endpoints
            .iter()
            .map(|name| Circuit::new(name))
            .collect();
        for index in 0..self.circuits.len() {
            self.arm_circuit(index, now);
        }
    }

    fn arm_circuit(&mut self, index: usize, at: Timestamp) {
        if let Some(circuit) = self.circuits.get_mut(index) {
            self.timers
                .arm(&mut circuit.armed, Some(at), || TimerKey::Circuit(index));
        }
    }

    /// Time for a check.
    pub(crate) fn circuit_due(&mut self, now: Timestamp, index: usize, out: &mut Effects) {
        let Some(circuit) = self.circuits.get_mut(index) else {
            return;
        };
        circuit.armed = None;
        circuit.checking = true;
        let endpoint = circuit.name.clone();
        let before = circuit.at;
        if let At::Open { since, .. } = before {
            circuit.at = At::HalfOpen { since, good: 0 };
        }
        let after = circuit.at;
        self.tell_circuit(now, &endpoint, before, after, None, out);
        out.sends.push(Send::CheckLlm { endpoint });
        self.arm_circuit(index, now + CHECK_LOST);
    }

    /// A check ended.
    pub(crate) fn llm_checked(
        &mut self,
        now: Timestamp,
        endpoint: &str,
        error: Option<Arc<str>>,
        out: &mut Effects,
    ) {
        let found = self.circuits.iter().position(|c| *c.name == *endpoint);
        let Some(index) = found else { return };
        let limits = &self.limits.llm;
        let interval = limits.check_interval;
        let circuit = &mut self.circuits[index];
        let before = circuit.at;
        circuit.at = before.after(error.is_none(), now, limits);
        circuit.checking = false;
        circuit.last = Some((now, error.clone()));
        let (after, name) = (circuit.at, circuit.name.clone());
        self.tell_circuit(now, &name, before, after, error.as_deref(), out);
        let next = match after {
            At::Open { until, .. } => until.max(now),
            At::Closed { .. } | At::HalfOpen { .. } => now + interval,
        };
        self.arm_circuit(index, next);
    }

    fn tell_circuit(
        &mut self,
        now: Timestamp,
        endpoint: &str,
        before: At,
        after: At,
        error: Option<&str>,
        out: &mut Effects,
    ) {
        if before.word() == after.word() {
            return;
        }
        let mut line = EventRow::line(EventKind::LlmCircuitChanged, now);
        line.reason = Some(after.word().into());
        line.text = Some(match error {
            Some(error) => format!("{endpoint}: {error}").into(),
            None => endpoint.into(),
        });
        self.tell(line, out);
    }

    /// Row 11: the circuit of the endpoint that the call names is not open.
    pub(crate) fn llm_available(
        &self,
        now: Timestamp,
        submission: &Submission,
    ) -> Result<(), Pause> {
        let Some(endpoint) = &submission.llm_endpoint else {
            return Ok(());
        };
        let circuit = self.circuits.iter().find(|c| c.name == *endpoint);
        let Some(At::Open { until, .. }) = circuit.map(|circuit| circuit.at) else {
            return Ok(());
        };
        let left = until.since(now).as_millis().div_ceil(1_000);
        Err(Pause::Refuse(Refusal::LlmUnavailable {
            endpoint: endpoint.to_string(),
            retry_after: u32::try_from(left).unwrap_or(u32::MAX).max(1),
        }))
    }

    /// All of them.
    pub(crate) fn circuit_states(&self) -> Vec<CircuitState> {
        self.circuits.iter().map(Circuit::state).collect()
    }

    pub(crate) fn check_circuits(&self) -> Result<(), String> {
        for circuit in &self.circuits {
            if circuit.armed.is_none() {
                return Err(format!("nothing will check {} again", circuit.name));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transitions_are_these() {
        let limits = LlmLimits {
            failure_threshold: 2,
            half_open_probes: 2,
            ..LlmLimits::default()
        };
        let now = Timestamp(1_000);
        let since = Timestamp(1);
        let closed = |failures| At::Closed { failures };
        let half = |good| At::HalfOpen { since, good };
        let open = At::Open {
            since: now,
            until: now + limits.recovery_timeout,
        };
        for (before, good, after) in [
            (closed(0), true, closed(0)),
            (closed(1), true, closed(0)),
            (closed(0), false, closed(1)),
            (closed(1), false, open),
            (half(0), true, half(1)),
            (half(1), true, closed(0)),
            (half(0), false, open),
            (half(1), false, open),
            (open, true, open),
            (open, false, open),
        ] {
            assert_eq!(before.after(good, now, &limits), after, "{before:?} {good}");
        }
    }
}
