//! Durations, ages, numbers and sizes as people read them, in the sentences of the plane and in
//! what the command prints. Knows nothing of what they are about.

use std::time::Duration;

/// `<1 ms`, `840 ms`, `1.24 s`, `12.4 s`, `3 m 07 s`, `2 h 21 m`, `3 d 4 h`.
pub fn duration(ms: i64) -> String {
    let ms = ms.max(0);
    match ms {
        0 => "<1 ms".to_owned(),
        1..1_000 => format!("{ms} ms"),
        // Cut, not rounded: 14.96 s must not read as 15.0 s.
        1_000..10_000 => format!("{}.{:02} s", ms / 1_000, ms % 1_000 / 10),
        10_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} m {:02} s", ms / 60_000, ms % 60_000 / 1_000),
        3_600_000..86_400_000 => {
            format!("{} h {:02} m", ms / 3_600_000, ms % 3_600_000 / 60_000)
        }
        _ => whole(ms / 86_400_000, "d", ms % 86_400_000 / 3_600_000, "h"),
    }
}

/// Two units; the smaller one where there is something of it.
fn whole(large: i64, unit: &str, small: i64, small_unit: &str) -> String {
    match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {small_unit}"),
    }
}

/// The same without decimals, `now` under a second.
pub fn age(ms: i64) -> String {
    match ms {
        ..1_000 => "now".to_owned(),
        1_000..60_000 => format!("{} s", ms / 1_000),
        60_000..3_600_000 => format!("{} m", ms / 60_000),
        3_600_000..86_400_000 => whole(ms / 3_600_000, "h", ms % 3_600_000 / 60_000, "m"),
        _ => whole(ms / 86_400_000, "d", ms % 86_400_000 / 3_600_000, "h"),
    }
}

/// An age in a sentence: `4 m ago`, `just now`.
pub fn ago(ms: i64) -> String {
    match ms {
        ..1_000 => "just now".to_owned(),
        _ => format!("{} ago", age(ms)),
    }
}

/// [`duration`] of a time that was measured.
pub fn lasted(time: Duration) -> String {
    duration(i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
}

/// `1 worker`, `12 workers`, `1,204 workers`.
pub fn count(n: u64, noun: &str) -> String {
    let end = if n == 1 { "" } else { "s" };
    format!("{} {noun}{end}", number(n))
}

/// `1 waits`, `2 wait`: what so many do.
pub fn they(n: u64, one: &str, many: &str) -> String {
    let does = if n == 1 { one } else { many };
    format!("{} {does}", number(n))
}

/// `1,204`.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, c) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `512 B`, `64 KiB`, `3.1 GiB`.
pub fn bytes(n: u64) -> String {
    for (unit, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if n >= 1 << shift {
            let tenths = (u128::from(n) * 10) >> shift;
            return match tenths {
                0..100 if !tenths.is_multiple_of(10) => {
                    format!("{}.{} {unit}", tenths / 10, tenths % 10)
                }
                _ => format!("{} {unit}", tenths / 10),
            };
        }
    }
    format!("{n} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_ages_numbers_and_sizes_read_as_the_design_says() {
        for (ms, want) in [
            (0, "<1 ms"),
            (840, "840 ms"),
            (1_240, "1.24 s"),
            (12_400, "12.4 s"),
            (14_960, "14.9 s"),
            (187_000, "3 m 07 s"),
            (8_460_000, "2 h 21 m"),
            (273_600_000, "3 d 4 h"),
        ] {
            assert_eq!(duration(ms), want);
        }
        for (ms, want) in [
            (999, "now"),
            (1_500, "1 s"),
            (240_000, "4 m"),
            (8_460_000, "2 h 21 m"),
            (7_200_000, "2 h"),
            (86_400_000, "1 d"),
            (97_200_000, "1 d 3 h"),
        ] {
            assert_eq!(age(ms), want);
        }
        assert_eq!(
            (ago(999), ago(240_000)),
            ("just now".to_owned(), "4 m ago".to_owned())
        );
        assert_eq!(lasted(Duration::from_millis(605_418)), "10 m 05 s");
        assert_eq!(count(1, "worker"), "1 worker");
        assert_eq!(count(0, "worker"), "0 workers");
        assert_eq!(count(1_204, "call"), "1,204 calls");
        assert_eq!(they(1, "waits", "wait"), "1 waits");
        assert_eq!(they(2, "waits", "wait"), "2 wait");
        assert_eq!(number(1_204), "1,204");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_000_000), "1,000,000");
        for (n, want) in [
            (512, "512 B"),
            (65_536, "64 KiB"),
            (3_328_599_655, "3.1 GiB"),
            (1 << 30, "1 GiB"),
        ] {
            assert_eq!(bytes(n), want);
        }
    }
}
