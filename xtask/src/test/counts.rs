//! Reads how many tests passed and failed from the summary lines of nextest, `cargo test`, pytest
//! and vitest. Knows nothing of which runner is speaking.

/// Tests by how they ended.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    /// nextest speaks: it repeats what a failed test printed, with a summary of that one test.
    pub(super) nextest: bool,
}

impl Counts {
    /// Adds another runner's numbers.
    pub(crate) fn add(&mut self, other: &Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Adds the numbers of a summary line; any other line counts nothing.
    pub(crate) fn read(&mut self, line: &str) {
        let text = line.trim();
        self.nextest |= text.starts_with("Nextest run ID ");
        let summary = if let Some((_, rest)) = text.split_once("tests run:") {
            text.starts_with("Summary").then_some(rest)
        } else if let Some((_, rest)) = text.split_once("test run:") {
            text.starts_with("Summary").then_some(rest)
        } else if self.nextest {
            None
        } else if let Some(rest) = text.strip_prefix("test result:") {
            rest.split_once(". ").map(|(_, rest)| rest)
        } else if let Some(rest) = text.strip_prefix("Tests  ") {
            return self.read_vitest(rest);
        } else {
            pytest_summary(text)
        };
        let Some(summary) = summary else { return };
        for piece in summary.split([',', ';']) {
            let mut words = piece.split_whitespace();
            let (Some(number), Some(word)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match word {
                "passed" | "xfailed" => self.passed += number,
                "failed" | "error" | "errors" | "xpassed" | "timed" => self.failed += number,
                "skipped" | "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }
}

impl Counts {
    /// `1 failed | 3 passed | 1 skipped (5)`.
    fn read_vitest(&mut self, summary: &str) {
        let numbers = summary.split('(').next().unwrap_or_default();
        for piece in numbers.split('|') {
            let mut words = piece.split_whitespace();
            let number = words.next().and_then(|number| number.parse::<u64>().ok());
            match (number, words.next()) {
                (Some(number), Some("passed")) => self.passed += number,
                (Some(number), Some("failed")) => self.failed += number,
                (Some(number), Some("skipped" | "todo")) => self.skipped += number,
                _ => {}
            }
        }
    }
}

/// `==== 1 failed, 3 passed in 2.31s ====`, or the same without the frame.
fn pytest_summary(text: &str) -> Option<&str> {
    let bare = text.trim_matches('=').trim();
    let (numbers, time) = bare.rsplit_once(" in ")?;
    let seconds = time.split('s').next()?;
    seconds.trim().parse::<f64>().ok()?;
    numbers
        .split(',')
        .all(|piece| {
            let mut words = piece.split_whitespace();
            words.next().is_some_and(|n| n.parse::<u64>().is_ok())
                && words.next().is_some()
                && words.next().is_none()
        })
        .then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> (u64, u64, u64) {
        let mut counts = Counts::default();
        counts.read(line);
        (counts.passed, counts.failed, counts.skipped)
    }

    #[test]
    fn the_summary_of_each_runner_is_read() {
        assert_eq!(of("      Tests  12 passed (12)"), (12, 0, 0));
        assert_eq!(
            of("      Tests  1 failed | 3 passed | 2 skipped (6)"),
            (3, 1, 2)
        );
        assert_eq!(
            of("     Summary [   1.2s] 45 tests run: 44 passed, 1 failed, 2 skipped"),
            (44, 1, 2)
        );
        assert_eq!(
            of("     Summary [   0.1s] 1 test run: 1 passed, 0 skipped"),
            (1, 0, 0)
        );
        assert_eq!(
            of("     Summary [   9.0s] 3 tests run: 1 passed, 1 failed, 1 timed out, 0 skipped"),
            (1, 2, 0)
        );
        assert_eq!(
            of("test result: FAILED. 7 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out"),
            (7, 2, 1)
        );
        assert_eq!(
            of("=== 1 failed, 3 passed, 1 error in 2.31s ==="),
            (3, 2, 0)
        );
        assert_eq!(of("12 passed in 61.20s (0:01:01)"), (12, 0, 0));
    }

    #[test]
    fn what_a_failed_test_printed_is_not_counted_beside_the_summary() {
        let output = "
 Nextest run ID b4af9b36 with nextest profile: default
    Starting 9 tests across 1 binary (245 tests skipped)
        FAIL [   3.902s] (5/9) muster-server::api traces::one
  stdout ───

    running 1 test
    test traces::one ... FAILED

    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 253 filtered out

────────────
     Summary [   9.312s] 9 tests run: 8 passed, 1 failed, 245 skipped
        FAIL [   3.902s] (5/9) muster-server::api traces::one";
        let mut counts = Counts::default();
        output.lines().for_each(|line| counts.read(line));
        assert_eq!((counts.passed, counts.failed, counts.skipped), (8, 1, 245));
    }

    #[test]
    fn other_lines_count_nothing() {
        for line in [
            "",
            "test a::b ... ok",
            "3 passed through the gate in spring",
            "PASS [   0.004s] muster-wire 9 passed",
            "collected 3 items in 2s",
        ] {
            assert_eq!(of(line), (0, 0, 0), "{line}");
        }
    }
}
