//! One-use codes that sign a browser in with the rights of a key, so that no key is typed into
//! one. Kept in memory, by their hash: a plane that starts anew knows none of them.

use std::collections::HashMap;
use std::time::Duration;

use muster_wire::Timestamp;
use parking_lot::Mutex;

use super::text;

/// How long a code is good.
pub(crate) const GOOD_FOR: Duration = Duration::from_secs(600);
/// Codes that may be open at once; more are refused.
const OPEN_MAX: usize = 256;
/// Digits that are not mistaken for each other.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// So many of them: 60 bits, which nobody guesses in the life of a code.
const LENGTH: usize = 12;

/// What a code signs in with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The hash of the key that made it: it is good only while that is taken.
    pub key: [u8; 32],
    /// The scopes of its session.
    pub scopes: Vec<String>,
    until: Timestamp,
}

/// All open codes.
#[derive(Debug, Default)]
pub struct Codes(Mutex<HashMap<[u8; 32], Code>>);

impl Codes {
    /// A code, as people type it; `None` when too many are open, or the operating system has no
    /// randomness.
    pub fn issue(
        &self,
        key: [u8; 32],
        scopes: Vec<String>,
        until: Timestamp,
        now: Timestamp,
    ) -> Option<String> {
        let mut secret = [0u8; LENGTH];
        getrandom::fill(&mut secret).ok()?;
        let plain: String = secret
            .iter()
            .map(|byte| char::from(DIGITS[usize::from(byte % 32)]))
            .collect();
        let mut open = self.0.lock();
        open.retain(|_, code| code.until > now);
        if open.len() >= OPEN_MAX {
            return None;
        }
        open.insert(text::hash(&plain), Code { key, scopes, until });
        Some([&plain[..4], &plain[4..8], &plain[8..]].join("-"))
    }

    /// Uses a code up, however it was typed.
    pub fn redeem(&self, typed: &str, now: Timestamp) -> Option<Code> {
        let plain: String = typed
            .chars()
            .filter(|c| !matches!(c, '-' | ' '))
            .map(|c| match c.to_ascii_uppercase() {
                'O' => '0',
                'I' | 'L' => '1',
                other => other,
            })
            .collect();
        let code = self.0.lock().remove(&text::hash(&plain))?;
        (code.until > now).then_some(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_good_once_for_its_time_and_however_it_is_typed() {
        let codes = Codes::default();
        let (now, until) = (Timestamp(0), Timestamp(0) + GOOD_FOR);
        let issue = || {
            codes
                .issue([7; 32], vec!["read".into()], until, now)
                .unwrap()
        };
        let text = issue();
        assert_eq!((text.len(), text.matches('-').count()), (14, 2), "{text}");
        let typed = format!(
            " {} ",
            text.to_lowercase().replace('-', " ").replace('0', "o")
        );
        let code = codes.redeem(&typed, now).unwrap();
        assert_eq!((code.key, code.scopes), ([7; 32], vec!["read".to_owned()]));
        assert_eq!(codes.redeem(&text, now), None, "once");
        assert_eq!(codes.redeem(&issue(), until), None, "too late");
        assert_eq!(codes.redeem("", now), None);
    }

    #[test]
    fn open_codes_are_bounded_and_old_ones_make_room() {
        let codes = Codes::default();
        let until = Timestamp(10);
        for _ in 0..OPEN_MAX {
            codes
                .issue([0; 32], Vec::new(), until, Timestamp(0))
                .unwrap();
        }
        assert_eq!(codes.issue([0; 32], Vec::new(), until, Timestamp(0)), None);
        let later = Timestamp(10) + GOOD_FOR;
        assert!(
            codes
                .issue([0; 32], Vec::new(), later, Timestamp(10))
                .is_some()
        );
    }
}
