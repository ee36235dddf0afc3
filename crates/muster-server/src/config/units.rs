//! Durations and sizes as people write them: `15s`, `1h30m`, `32MiB`. Knows no key and no
//! section.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A length of time that is never negative: `0`, `250ms`, `15s`, `1h30m`, `7d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span(pub Duration);

/// A length of time, or `off`. A negative one is `off` too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpanOrOff(pub Option<Duration>);

/// A number of bytes: `512`, `64KiB`, `32MiB`, `1GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Size(pub u64);

/// Why a text is no duration or no size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Not of the form at all.
    #[error("{0:?} is not a duration; write it like 15s, 2m or 1h30m")]
    NotADuration(String),
    /// A negative length where there can be none.
    #[error("{0:?} is negative, and this duration cannot be")]
    Negative(String),
    /// Not of the form at all.
    #[error("{0:?} is not a size; write it like 512KiB, 32MiB or 1GiB")]
    NotASize(String),
}

impl Span {
    /// A span of whole seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// Reads `15s`, `2m`, `1h30m`, `1.5h`, `0`.
    ///
    /// # Errors
    /// When the text is something else, or negative.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        let text = text.trim();
        if let Some(rest) = text.strip_prefix('-') {
            return Err(match length(rest) {
                Some(_) => UnitError::Negative(text.to_owned()),
                None => UnitError::NotADuration(text.to_owned()),
            });
        }
        length(text)
            .map(Self)
            .ok_or_else(|| UnitError::NotADuration(text.to_owned()))
    }
}

impl SpanOrOff {
    /// Nothing.
    pub const OFF: Self = Self(None);

    /// A span of whole seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Some(Duration::from_secs(seconds)))
    }

    /// Reads what [`Span::parse`] reads, and `off`, `-1`, `-15s`, which are all `off`.
    ///
    /// # Errors
    /// When the text is something else.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        let text = text.trim();
        if text == "off" {
            return Ok(Self::OFF);
        }
        if let Some(rest) = text.strip_prefix('-') {
            let off = length(rest).is_some() || rest.parse::<u64>().is_ok();
            return off
                .then_some(Self::OFF)
                .ok_or_else(|| UnitError::NotADuration(text.to_owned()));
        }
        Span::parse(text).map(|span| Self(Some(span.0)))
    }
}

impl Size {
    /// A size of whole mebibytes.
    pub const fn mebibytes(n: u64) -> Self {
        Self(n << 20)
    }

    /// Reads `512`, `64KiB`, `32MiB`, `1GiB`, `2TiB`; `KB`, `MB`, `GB` are powers of ten.
    ///
    /// # Errors
    /// When the text is something else.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        let bad = || UnitError::NotASize(text.to_owned());
        let trimmed = text.trim();
        let end = trimmed
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(end);
        let factor: u64 = match unit.trim() {
            "" | "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            "TiB" => 1 << 40,
            "KB" | "kB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "TB" => 1_000_000_000_000,
            _ => return Err(bad()),
        };
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(factor).map(Self).ok_or_else(bad);
        }
        let fraction: f64 = number.parse().map_err(|_| bad())?;
        let bytes = fraction * factor as f64;
        // 2^53: beyond it a fraction of a byte would be rounded to something nobody wrote.
        if !(0.0..9_007_199_254_740_992.0).contains(&bytes) {
            return Err(bad());
        }
        Ok(Self(bytes as u64))
    }
}

/// Reads a run of `number unit` pairs, or a bare zero.
fn length(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number = &rest[..end];
        rest = &rest[end..];
        let end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let unit_ms: u64 = match &rest[..end] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        rest = &rest[end..];
        let part = match number.parse::<u64>() {
            Ok(whole) => Duration::from_millis(whole.checked_mul(unit_ms)?),
            Err(_) => {
                let fraction: f64 = number.parse().ok()?;
                Duration::try_from_secs_f64(fraction * unit_ms as f64 / 1_000.0).ok()?
            }
        };
        total = total.checked_add(part)?;
    }
    // A century: longer is a slip of the keyboard, and times are 64-bit microseconds.
    (total <= Duration::from_secs(100 * 366 * 86_400)).then_some(total)
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ms = self.0.as_millis();
        if ms == 0 {
            return f.write_str("0");
        }
        for (unit, size) in [
            ("d", 86_400_000),
            ("h", 3_600_000),
            ("m", 60_000),
            ("s", 1_000),
        ] {
            if ms >= size {
                write!(f, "{}{unit}", ms / size)?;
                ms %= size;
            }
        }
        if ms > 0 {
            write!(f, "{ms}ms")?;
        }
        Ok(())
    }
}

impl fmt::Display for SpanOrOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(span) => Span(span).fmt(f),
            None => f.write_str("off"),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
            if self.0 >= 1 << shift && self.0.is_multiple_of(1 << shift) {
                return write!(f, "{}{unit}", self.0 >> shift);
            }
        }
        write!(f, "{}", self.0)
    }
}

/// Takes a text or a number and hands the type's own reader a text.
struct Written<T>(&'static str, fn(&str) -> Result<T, UnitError>);

impl<T> Visitor<'_> for Written<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.1)(text).map_err(E::custom)
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        (self.1)(&number.to_string()).map_err(E::custom)
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        (self.1)(&number.to_string()).map_err(E::custom)
    }
    fn visit_bool<E: de::Error>(self, word: bool) -> Result<T, E> {
        (self.1)(if word { "on" } else { "off" }).map_err(E::custom)
    }
}

macro_rules! as_text {
    ($name:ident, $expected:literal) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_any(Written($expected, $name::parse))
            }
        }
    };
}
as_text!(Span, "a duration like 15s, 2m or 1h30m");
as_text!(SpanOrOff, "a duration like 15s, 2m or 1h30m, or off");
as_text!(Size, "a size like 512KiB, 32MiB or 1GiB");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_write_them() {
        for (text, ms) in [
            ("0", 0),
            ("250ms", 250),
            ("15s", 15_000),
            ("2m", 120_000),
            ("1h30m", 5_400_000),
            ("1.5h", 5_400_000),
            (" 7d ", 604_800_000),
            ("1m0.5s", 60_500),
        ] {
            assert_eq!(
                Span::parse(text),
                Ok(Span(Duration::from_millis(ms))),
                "{text}"
            );
        }
        for bad in [
            "",
            "15",
            "s",
            "15 s",
            "15x",
            "1h-5m",
            "..s",
            "1e9s",
            "99999999999d",
            "off",
        ] {
            assert!(
                matches!(Span::parse(bad), Err(UnitError::NotADuration(_))),
                "{bad:?}"
            );
        }
        assert_eq!(Span::parse("-15s"), Err(UnitError::Negative("-15s".into())));
    }

    #[test]
    fn a_negative_duration_is_off_where_off_is_allowed() {
        for text in ["off", "-1", "-15s", "-1h30m"] {
            assert_eq!(SpanOrOff::parse(text), Ok(SpanOrOff::OFF), "{text}");
        }
        assert_eq!(SpanOrOff::parse("15s"), Ok(SpanOrOff::seconds(15)));
        for bad in ["on", "", "-", "-x", "15"] {
            assert!(SpanOrOff::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn sizes_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("64KiB", 65_536),
            ("32MiB", 33_554_432),
            ("1.5GiB", 1_610_612_736),
            ("10MB", 10_000_000),
            ("1 GiB", 1_073_741_824),
        ] {
            assert_eq!(Size::parse(text), Ok(Size(bytes)), "{text}");
        }
        for bad in ["", "MiB", "-1", "1Mib", "1.2.3", "99999999999TiB"] {
            assert!(Size::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_is_printed_reads_back_as_the_same() {
        for text in ["0", "250ms", "15s", "1h30m", "1d12h", "3h"] {
            assert_eq!(Span::parse(text).unwrap().to_string(), text);
        }
        for text in ["0", "512", "64KiB", "32MiB", "3GiB"] {
            assert_eq!(Size::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(SpanOrOff::OFF.to_string(), "off");
    }
}
