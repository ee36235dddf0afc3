//! What must be reached, what is aimed for, and what was measured. Knows how to judge a number,
//! not how it came about.

use serde::Serialize;

/// One measured number with its gate.
#[derive(Debug, Serialize)]
pub(crate) struct Gate {
    pub(crate) what: String,
    /// `None` when it could not be measured: a miss.
    pub(crate) value: Option<f64>,
    pub(crate) unit: &'static str,
    pub(crate) gate: f64,
    pub(crate) aim: f64,
    /// The number must be at least the gate, instead of at most.
    pub(crate) at_least: bool,
    pub(crate) passed: bool,
}

/// All of them, in the order in which they were measured.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Gates {
    pub(crate) gates: Vec<Gate>,
    /// Parts that ended early, and why.
    pub(crate) broken: Vec<String>,
}

impl Gates {
    /// Must be at least so much.
    pub(crate) fn at_least(&mut self, what: &str, value: f64, gate: f64, aim: f64) {
        self.judge(what, value, "", gate, aim, true);
    }

    /// Must be at most so much.
    pub(crate) fn at_most(
        &mut self,
        what: &str,
        value: f64,
        unit: &'static str,
        gate: f64,
        aim: f64,
    ) {
        self.judge(what, value, unit, gate, aim, false);
    }

    fn judge(
        &mut self,
        what: &str,
        value: f64,
        unit: &'static str,
        gate: f64,
        aim: f64,
        at_least: bool,
    ) {
        let passed = value.is_finite()
            && if at_least {
                value >= gate
            } else {
                value <= gate
            };
        self.gates.push(Gate {
            what: what.to_owned(),
            value: value.is_finite().then_some(value),
            unit,
            gate,
            aim,
            at_least,
            passed,
        });
    }

    /// A part could not be measured to its end.
    pub(crate) fn could_not(&mut self, part: &str, why: &str) {
        self.broken.push(format!("{part}: {why}"));
    }

    /// Whether everything was measured and reached.
    pub(crate) fn all_passed(&self) -> bool {
        self.broken.is_empty() && self.gates.iter().all(|gate| gate.passed)
    }
}
