//! What runs without a caller, and when it last ran. A duty without a caller is the classic
//! silent failure; a late one degrades the health report and takes nothing down.

use std::time::Duration;

use muster_wire::Timestamp;
use parking_lot::Mutex;

/// How long after three of its intervals a duty is late.
pub(crate) const LATE_AFTER: Duration = Duration::from_secs(5);

/// One duty as the health report shows it.
#[derive(Debug, Clone)]
pub struct DutyReport {
    /// Its name.
    pub name: &'static str,
    /// How often it should run.
    pub every: Duration,
    /// When it was registered.
    pub since: Timestamp,
    /// When it last ended, well or not.
    pub last_run: Option<Timestamp>,
    /// How long the last run took, where that is known.
    pub took: Option<Duration>,
    /// What it did, or what went wrong.
    pub said: String,
    /// Whether the last run failed.
    pub failed: bool,
    /// Whether it is over three of its intervals late.
    pub late: bool,
}

/// The registry of duties.
#[derive(Debug, Default)]
pub struct Duties(Mutex<Vec<DutyReport>>);

impl Duties {
    /// Announces a duty, so that one that never runs is seen too.
    pub fn register(&self, name: &'static str, every: Duration, now: Timestamp) {
        let mut duties = self.0.lock();
        if duties.iter().all(|duty| duty.name != name) {
            duties.push(DutyReport {
                name,
                every,
                since: now,
                last_run: None,
                took: None,
                said: String::new(),
                failed: false,
                late: false,
            });
        }
    }

    /// A run ended; `Err` carries what went wrong.
    pub fn ran(&self, name: &'static str, at: Timestamp, end: Result<String, String>) {
        let mut duties = self.0.lock();
        if let Some(duty) = duties.iter_mut().find(|duty| duty.name == name) {
            duty.last_run = Some(at);
            duty.failed = end.is_err();
            duty.said = end.unwrap_or_else(|error| error);
        }
    }

    /// How long the run took that ended just now.
    pub fn took(&self, name: &'static str, took: Duration) {
        let mut duties = self.0.lock();
        if let Some(duty) = duties.iter_mut().find(|duty| duty.name == name) {
            duty.took = Some(took);
        }
    }

    /// All duties, with lateness judged now.
    pub fn report(&self, now: Timestamp) -> Vec<DutyReport> {
        let mut duties = self.0.lock().clone();
        for duty in &mut duties {
            let last = duty.last_run.unwrap_or(duty.since);
            duty.late = now.since(last) > duty.every * 3 + LATE_AFTER;
        }
        duties
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duty_that_never_ran_becomes_late() {
        let duties = Duties::default();
        duties.register("sweep", Duration::from_secs(10), Timestamp(0));
        assert!(!duties.report(Timestamp(30_000_000))[0].late);
        assert!(duties.report(Timestamp(36_000_000))[0].late);
        duties.ran("sweep", Timestamp(36_000_000), Err("disk".into()));
        let report = duties.report(Timestamp(37_000_000)).remove(0);
        assert!(report.failed && !report.late);
    }
}
