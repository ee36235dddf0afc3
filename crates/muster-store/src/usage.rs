//! What agents report as usage, as numbers that can be summed: read once, when an execution ends.
//! Adds nothing that was not reported: no prices, no guesses. What cannot be read is counted.

use std::collections::BTreeMap;

use muster_wire::{AgentId, FunctionName, RunId, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A longer report is kept as it came and not read: the commit that ends an execution reads it.
pub const REPORT_MAX: usize = 64 << 10;

/// Tokens of one report, at most; more is not believed.
const COUNT_MAX: u64 = 1_000_000_000_000;

/// Dollars of one report, at most; more is not believed.
const COST_MAX: i64 = 1_000_000;

/// Billionths.
pub const NANO: i64 = 1_000_000_000;

/// The numbers of one report. What it does not say is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// A value of a known key could not be read: it counts as not said.
    pub unreadable: bool,
    /// It has keys that are not known; they are kept in the report and not summed.
    pub other: bool,
    /// Tokens that went in.
    pub input: Option<u64>,
    /// Tokens that came out.
    pub output: Option<u64>,
    /// All tokens, as reported.
    pub total: Option<u64>,
    /// Of those that went in, read from a cache.
    pub cache_read: Option<u64>,
    /// Of those that went in, written to a cache.
    pub cache_written: Option<u64>,
    /// Calls of a model.
    pub models: Option<u64>,
    /// Billionths of a US dollar.
    pub cost: Option<u64>,
}

const UNREADABLE: i64 = 1;
const OTHER: i64 = 2;

impl Report {
    /// Reads what an agent sent.
    pub fn read(text: &[u8]) -> Self {
        let mut report = Self::default();
        if text.len() > REPORT_MAX {
            report.unreadable = true;
            return report;
        }
        let Ok(said) = serde_json::from_slice::<BTreeMap<String, &RawValue>>(text) else {
            report.unreadable = true;
            return report;
        };
        for (key, value) in said {
            let value = value.get();
            match key.as_str() {
                "total_input_tokens" => report.input = report.count(value),
                "total_output_tokens" => report.output = report.count(value),
                "total_tokens" => report.total = report.count(value),
                "total_cost_usd" => report.cost = report.price(value),
                "entries" => report.entries(value),
                _ => report.other = true,
            }
        }
        report
    }

    fn count(&mut self, text: &str) -> Option<u64> {
        if text == "null" {
            return None;
        }
        let read = text.parse().ok().filter(|count| *count <= COUNT_MAX);
        self.unreadable |= read.is_none();
        read
    }

    fn price(&mut self, text: &str) -> Option<u64> {
        if text == "null" {
            return None;
        }
        let read = billionths(text);
        self.unreadable |= read.is_none();
        read
    }

    /// One entry for each call of a model.
    fn entries(&mut self, text: &str) {
        #[derive(Deserialize)]
        struct Entry<'a> {
            #[serde(borrow)]
            cache_read_tokens: Option<&'a RawValue>,
            #[serde(borrow)]
            cache_creation_tokens: Option<&'a RawValue>,
        }
        if text == "null" {
            return;
        }
        let Ok(entries) = serde_json::from_str::<Vec<Entry<'_>>>(text) else {
            self.unreadable = true;
            return;
        };
        self.models = Some(entries.len() as u64);
        for entry in entries {
            let read = entry.cache_read_tokens.map(RawValue::get);
            let written = entry.cache_creation_tokens.map(RawValue::get);
            let read = read.and_then(|text| self.count(text));
            let written = written.and_then(|text| self.count(text));
            add(&mut self.cache_read, read);
            add(&mut self.cache_written, written);
        }
        // Few enough that no sum of them is out of bounds.
        let within = |sum: &mut Option<u64>| {
            let is_within = sum.is_none_or(|sum| sum <= COUNT_MAX);
            *sum = sum.filter(|_| is_within);
            is_within
        };
        let all = [
            within(&mut self.cache_read),
            within(&mut self.cache_written),
        ];
        self.unreadable |= all != [true, true];
    }

    /// What is kept of how it was read.
    pub(crate) fn seen(&self) -> i64 {
        i64::from(self.unreadable) * UNREADABLE + i64::from(self.other) * OTHER
    }

    /// With what was kept.
    pub(crate) fn seen_as(mut self, seen: i64) -> Self {
        self.unreadable = seen & UNREADABLE != 0;
        self.other = seen & OTHER != 0;
        self
    }
}

/// A JSON number as billionths, to the nearest, exactly: nothing goes through a float.
fn billionths(text: &str) -> Option<u64> {
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let all = all.trim_start_matches('0');
    if all.is_empty() {
        return Some(0);
    }
    // The value is 0.all times ten to the power of `point`; in billionths, nine more.
    let zeros = (whole.len() + fraction.len()) as i64 - all.len() as i64;
    let point = whole.len() as i64 - zeros + i64::from(exponent) + 9;
    if point < 0 {
        return Some(0);
    }
    let most = (COST_MAX * NANO).to_string().len() as i64;
    if point > most {
        return None;
    }
    let point = point as usize;
    let kept = all.get(..point).unwrap_or(all);
    let mut value: u64 = if kept.is_empty() {
        0
    } else {
        kept.parse().ok()?
    };
    if all.len() < point {
        value = value.checked_mul(10_u64.checked_pow((point - all.len()) as u32)?)?;
    }
    if all
        .as_bytes()
        .get(point)
        .is_some_and(|digit| *digit >= b'5')
    {
        value += 1;
    }
    (value <= (COST_MAX * NANO) as u64).then_some(value)
}

fn add(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        // Bounded by how much one report may say, and by how many there can be.
        *sum = Some(sum.unwrap_or(0).saturating_add(more));
    }
}

/// Sums over executions that ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Executions that ended.
    pub ended: u64,
    /// Of them, those without a report.
    pub unreported: u64,
    /// Of the reports, those with a value that could not be read.
    pub unreadable: u64,
    /// Of the reports, those with keys that are not summed.
    pub other: u64,
    /// Of the reports, those that name a cost.
    pub priced: u64,
    /// Tokens that went in.
    pub input: Option<u64>,
    /// Tokens that came out.
    pub output: Option<u64>,
    /// All tokens.
    pub total: Option<u64>,
    /// Read from a cache.
    pub cache_read: Option<u64>,
    /// Written to a cache.
    pub cache_written: Option<u64>,
    /// Calls of a model.
    pub models: Option<u64>,
    /// Billionths of a US dollar.
    pub cost: Option<u64>,
}

impl Sums {
    /// One more that ended, with its report if there is one.
    pub fn count(&mut self, report: Option<&Report>) {
        self.ended += 1;
        let Some(report) = report else {
            self.unreported += 1;
            return;
        };
        self.unreadable += u64::from(report.unreadable);
        self.other += u64::from(report.other);
        self.priced += u64::from(report.cost.is_some());
        add(&mut self.input, report.input);
        add(&mut self.output, report.output);
        add(&mut self.total, report.total);
        add(&mut self.cache_read, report.cache_read);
        add(&mut self.cache_written, report.cache_written);
        add(&mut self.models, report.models);
        add(&mut self.cost, report.cost);
    }
}

/// What sums are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageBy {
    /// The run.
    Run,
    /// The agent.
    Agent,
    /// The agent and the function.
    Function,
    /// The day of the end, in UTC.
    Day,
}

/// Sums of what ended in a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageQuestion {
    /// Grouped by this.
    pub by: UsageBy,
    /// Ended at this moment or later.
    pub from: Timestamp,
    /// Ended before this moment.
    pub to: Timestamp,
    /// Groups to leave out at the start.
    pub skip: usize,
    /// Groups to return.
    pub limit: usize,
}

/// What a group is of.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UsageKey {
    /// A run.
    Run(RunId),
    /// An agent.
    Agent(AgentId),
    /// A function of an agent.
    Function(AgentId, FunctionName),
    /// A day: how many whole ones after the first of 1970, in UTC.
    Day(i64),
}

/// Groups, and the sum of all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageAnswer {
    /// The wanted ones, in order: days newest first; else what cost most first, then what used
    /// most tokens.
    pub groups: Vec<(UsageKey, Sums)>,
    /// How many groups there are.
    pub groups_total: usize,
    /// Over all groups.
    pub total: Sums,
}

/// Microseconds of a day.
pub(crate) const DAY: i64 = 86_400_000_000;

impl UsageAnswer {
    /// Orders all groups and cuts the wanted ones out.
    pub(crate) fn of(
        groups: impl IntoIterator<Item = (UsageKey, Sums)>,
        total: Sums,
        question: &UsageQuestion,
    ) -> Self {
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_unstable_by(|(a, of_a), (b, of_b)| match (a, b) {
            (UsageKey::Day(a), UsageKey::Day(b)) => b.cmp(a),
            (a, b) => {
                let size = |sums: &Sums| (sums.cost, sums.total, sums.ended);
                size(of_b).cmp(&size(of_a)).then_with(|| a.cmp(b))
            }
        });
        let groups_total = groups.len();
        let wanted = groups.into_iter().skip(question.skip).take(question.limit);
        Self {
            groups: wanted.collect(),
            groups_total,
            total,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_read_to_the_billionth_without_a_float() {
        for (text, read) in [
            ("0", Some(0)),
            ("0.0", Some(0)),
            ("1", Some(NANO as u64)),
            ("0.012345", Some(12_345_000)),
            ("1e-06", Some(1_000)),
            ("1.5E2", Some(150 * NANO as u64)),
            ("12.5e-3", Some(12_500_000)),
            ("0.30000000000000004", Some(300_000_000)),
            ("0.0000000005", Some(1)),
            ("0.00000000049", Some(0)),
            ("900719925474099e-9", Some(900_719_925_474_099)),
            ("1000000", Some(1_000_000 * NANO as u64)),
            ("1000000.000000001", None),
            ("1e300", None),
            ("1e-300", Some(0)),
            ("1e99999999999", None),
            ("-1", None),
            ("-0.0", None),
            ("\"1\"", None),
            ("true", None),
            ("[]", None),
        ] {
            assert_eq!(billionths(text), read, "{text}");
        }
    }

    #[test]
    fn a_report_of_the_sdk_is_read_and_what_is_hostile_is_counted() {
        let report = Report::read(
            br#"{"total_cost_usd":0.25,"total_input_tokens":10,"total_output_tokens":5,"total_tokens":15,
                "entries":[{"model":"m","cache_read_tokens":3,"cache_creation_tokens":0,"cost_usd":0.25},
                           {"model":"n","cache_read_tokens":4}]}"#,
        );
        let expected = Report {
            input: Some(10),
            output: Some(5),
            total: Some(15),
            cache_read: Some(7),
            cache_written: Some(0),
            models: Some(2),
            cost: Some(250_000_000),
            ..Report::default()
        };
        assert_eq!(report, expected);
        let nothing = Report::read(br#"{"total_cost_usd":null,"entries":[]}"#);
        assert_eq!(
            (nothing.cost, nothing.unreadable, nothing.models),
            (None, false, Some(0))
        );
        for bad in [
            &br#"{"total_tokens":-1}"#[..],
            br#"{"total_tokens":"12"}"#,
            br#"{"total_tokens":1.5}"#,
            br#"{"total_tokens":1e400}"#,
            br#"{"total_tokens":1000000000001}"#,
            br#"{"total_tokens":99999999999999999999999999}"#,
            br#"{"total_cost_usd":-0.1}"#,
            br#"{"total_cost_usd":NaN}"#,
            br#"{"entries":7}"#,
            br#"{"entries":[{"cache_read_tokens":{}}]}"#,
            br#"[]"#,
            br#"17"#,
            br#"null"#,
            b"",
            &[0xFF],
        ] {
            let read = Report::read(bad);
            let text = String::from_utf8_lossy(bad);
            assert!(read.unreadable, "{text}");
            assert_eq!((read.total, read.cost), (None, None), "{text}");
        }
        let mut long = b"{\"total_tokens\":1,\"x\":\"".to_vec();
        long.resize(REPORT_MAX, b'x');
        long.extend_from_slice(b"\"}");
        assert!(Report::read(&long).unreadable);
        let other = Report::read(br#"{"total_tokens":3,"images":2}"#);
        assert_eq!(
            (other.other, other.unreadable, other.total),
            (true, false, Some(3))
        );
        assert!(Report::default().seen_as(other.seen()).other);
    }
}
