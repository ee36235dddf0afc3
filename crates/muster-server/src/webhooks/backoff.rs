//! How long to wait before something is sent again: doubling, with a little chance in it, so
//! that what failed together does not come back together.

use std::time::Duration;

use crate::config::WebhookRules;

/// The wait after so many failures in a row; 1 for the first.
pub(super) fn wait(rules: &WebhookRules, failures: u32) -> Duration {
    let doubled = 1u32
        .checked_shl(failures.saturating_sub(1))
        .unwrap_or(u32::MAX);
    let plain = rules
        .retry_first
        .0
        .saturating_mul(doubled)
        .min(rules.retry_max.0);
    plain.mul_f64(0.8 + 0.4 * chance())
}

/// A number from 0 to 1.
fn chance() -> f64 {
    let mut bytes = [0u8; 4];
    // Without chance the middle will do.
    match getrandom::fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 0.5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_from_a_second_to_an_hour() {
        let rules = WebhookRules::default();
        for (failures, seconds) in [
            (1, 1.0),
            (2, 2.0),
            (5, 16.0),
            (12, 2048.0),
            (13, 3600.0),
            (99, 3600.0),
        ] {
            let waited = wait(&rules, failures).as_secs_f64();
            assert!(
                waited >= seconds * 0.79 && waited <= seconds * 1.21,
                "{failures}: {waited}"
            );
        }
    }
}
