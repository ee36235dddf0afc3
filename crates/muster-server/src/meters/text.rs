//! A few lines of Prometheus' text for what is read when somebody scrapes. Keeps nothing, so
//! that an agent which is gone leaves no series behind.

use std::fmt::Write;

use super::names::{ALL, Kind};

/// Lines as they are built, family by family.
#[derive(Debug, Default)]
pub struct Text(String);

impl Text {
    /// One family of one label; nothing when it has no values.
    pub fn family<'a>(
        &mut self,
        name: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'a str, f64)>,
    ) {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return;
        }
        self.head(name);
        for (value, number) in values {
            let _ = writeln!(self.0, "{name}{{{label}=\"{}\"}} {number}", escape(value));
        }
    }

    /// One number without a label.
    pub fn number(&mut self, name: &str, number: f64) {
        self.head(name);
        let _ = writeln!(self.0, "{name} {number}");
    }

    /// All lines.
    pub fn finish(self) -> String {
        self.0
    }

    fn head(&mut self, name: &str) {
        let Some(metric) = ALL.iter().find(|metric| metric.name == name) else {
            return;
        };
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let _ = writeln!(
            self.0,
            "# HELP {name} {}\n# TYPE {name} {kind}",
            metric.help
        );
    }
}

fn escape(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meters::names;

    #[test]
    fn families_are_described_and_labels_are_escaped() {
        let mut text = Text::default();
        text.family(names::AGENT_RUNNING, "agent", [("a\"b", 2.0)]);
        text.family(names::AGENT_CAP, "agent", []);
        text.number(names::HELD, 0.0);
        let text = text.finish();
        assert!(text.contains(
            "# TYPE muster_agent_slots_held gauge\nmuster_agent_slots_held{agent=\"a\\\"b\"} 2\n"
        ));
        assert!(!text.contains(names::AGENT_CAP));
        assert!(text.ends_with("muster_held 0\n"));
    }
}
