//! Numbers and facts of the fleet that may not be known. What nobody can know comes as null,
//! beside the reason and what was last known; it is drawn as `?`, never as zero.

use muster_wire::Timestamp;
use serde_json::Value;

use super::item;
use crate::out::{clean, span};

/// A number as the plane tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    /// The number; `None` when nobody can know it.
    pub(super) value: Option<u64>,
    /// Why not.
    pub(super) reason: Option<String>,
    /// What was last known, and when.
    pub(super) last: Option<(u64, Option<Timestamp>)>,
}

impl Known {
    /// Reads `name`, `name_reason` and `name_last`.
    pub(super) fn of(of: &Value, name: &str) -> Self {
        let last = of.get(format!("{name}_last")).and_then(|last| {
            let value = last
                .as_u64()
                .or_else(|| item::number(last, &["value", "count"]))?;
            Some((value, item::time(last, &["at", "as_of"])))
        });
        Self {
            value: item::number(of, &[name]),
            reason: item::text(of, &[&format!("{name}_reason")]),
            last,
        }
    }

    /// `8`, `? last known 5`, `?`.
    pub(super) fn text(&self) -> String {
        match (self.value, self.last) {
            (Some(value), _) => span::number(value),
            (None, Some((last, _))) => format!("? last known {}", span::number(last)),
            (None, None) => "?".to_owned(),
        }
    }

    /// The same with the reason and the age, for one thing shown whole.
    pub(super) fn whole(&self, now: Timestamp) -> String {
        let mut text = self.text();
        if let (None, Some((_, Some(at)))) = (self.value, self.last) {
            text += &format!(", {}", span::ago(item::between(at, now)));
        }
        if let (None, Some(reason)) = (self.value, &self.reason) {
            text += &format!(": {}", words(reason));
        }
        text
    }
}

/// A text field; where the plane says why it is not there, a dash and the reason.
pub(super) fn text_or_reason(of: &Value, name: &str) -> Option<String> {
    item::text(of, &[name]).or_else(|| {
        let reason = item::text(of, &[&format!("{name}_reason"), "unknown_because"])?;
        Some(format!("— {}", words(&reason)))
    })
}

/// `not_reported_by_node` reads `not reported by node`.
fn words(reason: &str) -> String {
    if reason.contains(' ') {
        return clean(reason);
    }
    clean(reason).replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_nobody_knows_is_a_question_mark_and_a_known_zero_is_zero() {
        let now = Timestamp::parse("2026-11-29T18:00:00.000Z").unwrap();
        let known = |value: Value| Known::of(&value, "workers");
        assert_eq!(known(json!({"workers": 0})).text(), "0");
        assert_eq!(known(json!({})).text(), "?");
        let unknown = known(json!({
            "workers": null,
            "workers_reason": "node_unreachable",
            "workers_last": {"value": 5, "at": "2026-11-29T15:39:00.000Z"},
        }));
        assert_eq!(unknown.text(), "? last known 5");
        assert_eq!(
            unknown.whole(now),
            "? last known 5, 2 h 21 m ago: node unreachable"
        );
        assert_eq!(
            text_or_reason(
                &json!({"pid": null, "unknown_because": "not_reported_by_node"}),
                "pid"
            )
            .as_deref(),
            Some("— not reported by node")
        );
        assert_eq!(text_or_reason(&json!({"pid": null}), "pid"), None);
    }
}
