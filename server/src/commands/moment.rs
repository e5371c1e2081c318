//! Instants as people give and read them: exact in UTC, with a hint how far away they are.

use std::str::FromStr;

use punctual_wire::{BadSpan, BadTime, Shift, Span, Time};

/// An instant that a person gave: exact, or by how far it is from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// RFC 3339, or milliseconds since 1970.
    At(Time),
    /// `now`, `+2h` or `-15m`, by this machine's clock.
    FromNow(Shift),
}

/// A text that is not a [`Moment`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMoment {
    /// It was to be exact.
    #[error("{0}; or now, +2h, -15m")]
    Time(BadTime),
    /// It was to be so far from now.
    #[error(transparent)]
    Shift(BadSpan),
}

impl Moment {
    /// The instant itself.
    pub fn time(self) -> Time {
        match self {
            Moment::At(time) => time,
            Moment::FromNow(shift) => Time(Time::now().0.saturating_add_signed(shift.0)).min(Time::LAST),
        }
    }
}

impl FromStr for Moment {
    type Err = BadMoment;

    fn from_str(text: &str) -> Result<Moment, BadMoment> {
        if text == "now" {
            return Ok(Moment::FromNow(Shift(0)));
        }
        if text.starts_with(['+', '-']) {
            return text.parse().map(Moment::FromNow).map_err(BadMoment::Shift);
        }
        text.parse().map(Moment::At).map_err(BadMoment::Time)
    }
}

/// `in 14m59s`, `3s ago` or `now`.
pub fn hint(time: Time, now: Time) -> String {
    match time.0.cmp(&now.0) {
        std::cmp::Ordering::Less => format!("{} ago", rough(now.0 - time.0)),
        std::cmp::Ordering::Equal => "now".into(),
        std::cmp::Ordering::Greater => format!("in {}", rough(time.0 - now.0)),
    }
}

/// `2026-12-24T18:00:00.000Z (in 14m59s)`.
pub fn exact(time: Time, now: Time) -> String {
    format!("{time} ({})", hint(time, now))
}

/// A length of time by its two greatest units, which is as exact as people want to know it.
pub fn rough(millis: u64) -> String {
    const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    // What was scheduled for 15 minutes from now a moment ago is still that.
    let millis = if millis < 10_000 { millis } else { millis.saturating_add(500) / 1_000 * 1_000 };
    let first = UNITS.iter().position(|(_, length)| millis >= *length).unwrap_or(UNITS.len() - 1);
    // Milliseconds matter below a second only.
    let last = (first + 1).min(UNITS.len() - 2).max(first);
    let mut text = String::new();
    let mut rest = millis;
    for (unit, length) in &UNITS[first..=last] {
        if rest >= *length || text.is_empty() {
            text.push_str(&format!("{}{unit}", rest / length));
        }
        rest %= length;
    }
    text
}

/// Microseconds as people read them: `870 µs`, `14.2 ms`, `3.1 s`.
pub fn micros(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..10_000 => format!("{:.2} ms", micros as f64 / 1e3),
        10_000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        1_000_000..60_000_000 => format!("{:.2} s", micros as f64 / 1e6),
        _ => rough(micros / 1_000),
    }
}

/// An optional length of time in words.
pub fn or_never(span: Option<Span>, never: &str) -> String {
    span.map_or(never.into(), |span| span.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_told_by_their_two_greatest_units() {
        assert_eq!(rough(0), "0ms");
        assert_eq!(rough(850), "850ms");
        assert_eq!(rough(1_999), "1s");
        assert_eq!(rough(u64::MAX), "213503982334d14h");
        assert_eq!(rough(899_400), "14m59s");
        assert_eq!(rough(899_950), "15m");
        assert_eq!(rough(900_000), "15m");
        assert_eq!(rough(7_200_000), "2h");
        assert_eq!(rough(7_261_000), "2h1m");
        assert_eq!(rough(90_000_000), "1d1h");
        assert_eq!(rough(86_400_000 * 400), "400d");
    }

    #[test]
    fn hints_say_in_which_direction() {
        assert_eq!(hint(Time(900_000), Time(1_000)), "in 14m59s");
        assert_eq!(hint(Time(1_000), Time(4_000)), "3s ago");
        assert_eq!(hint(Time(5), Time(5)), "now");
        assert_eq!(exact(Time(0), Time(1_000)), "1970-01-01T00:00:00.000Z (1s ago)");
    }

    #[test]
    fn a_moment_is_exact_or_relative() {
        assert_eq!("1970-01-01T00:00:01Z".parse(), Ok(Moment::At(Time(1_000))));
        assert_eq!("now".parse(), Ok(Moment::FromNow(Shift(0))));
        assert_eq!("-15m".parse(), Ok(Moment::FromNow(Shift(-900_000))));
        assert_eq!("+2h".parse(), Ok(Moment::FromNow(Shift(7_200_000))));
        let bad = "tomorrow".parse::<Moment>().unwrap_err().to_string();
        assert!(bad.contains("RFC 3339") && bad.contains("+2h"), "{bad}");
        let bad = "-15".parse::<Moment>().unwrap_err().to_string();
        assert!(bad.contains("no unit") && bad.contains("-15m"), "{bad}");
    }

    #[test]
    fn microseconds_are_told_in_a_fitting_unit() {
        assert_eq!(micros(870), "870 µs");
        assert_eq!(micros(1_234), "1.23 ms");
        assert_eq!(micros(14_210), "14.2 ms");
        assert_eq!(micros(3_100_000), "3.10 s");
    }
}
