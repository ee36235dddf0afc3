//! Latencies in buckets of at most 1.6 % width. Adds up across connections and rounds.

use serde::{Deserialize, Serialize};

const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;

/// How many exchanges took how long, in nanoseconds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

fn bucket(nanos: u64) -> usize {
    if nanos < SUB {
        return nanos as usize;
    }
    let power = nanos.ilog2() - SUB_BITS;
    (u64::from(power) * SUB + (nanos >> power)) as usize
}

/// The middle of a bucket.
fn middle(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 * SUB {
        return index;
    }
    let power = index / SUB - 1;
    let low = (index - power * SUB) << power;
    low + (1 << power) / 2
}

impl Histogram {
    /// Counts one.
    pub(crate) fn record(&mut self, nanos: u64) {
        let index = bucket(nanos);
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        self.total += 1;
    }

    /// Adds another's counts.
    pub(crate) fn add(&mut self, other: &Histogram) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
    }

    /// How many were counted.
    pub(crate) fn count(&self) -> u64 {
        self.total
    }

    /// The time within which this share of them stayed, in milliseconds.
    pub(crate) fn quantile_ms(&self, share: f64) -> f64 {
        let wanted = (share * self.total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return middle(index) as f64 / 1e6;
            }
        }
        f64::NAN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_within_two_percent_of_the_truth() {
        let mut histogram = Histogram::default();
        for micros in 1..=10_000_u64 {
            histogram.record(micros * 1_000);
        }
        for (share, truth) in [(0.5, 5.0), (0.99, 9.9), (0.001, 0.01)] {
            let found = histogram.quantile_ms(share);
            assert!((found - truth).abs() / truth < 0.02, "{share}: {found}");
        }
    }

    #[test]
    fn every_value_falls_into_a_bucket_that_holds_it() {
        for nanos in [
            0,
            1,
            63,
            64,
            65,
            127,
            128,
            129,
            1_000,
            123_456,
            9_876_543_210,
        ] {
            let back = middle(bucket(nanos));
            let error = back.abs_diff(nanos) as f64 / nanos.max(1) as f64;
            assert!(error < 0.016, "{nanos} came back as {back}");
        }
    }
}
