//! Instants and lengths of time as people write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::{Serialize, Serializer};

use crate::rfc3339;

/// An instant: milliseconds since 1970.
///
/// Accepted as RFC 3339 (`"2026-12-24T18:00:00Z"`) or as a number of milliseconds; written as RFC
/// 3339, or as a number beyond the year 9999, where RFC 3339 ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// Something that is not a [`Time`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTime {
    /// A text that says no time.
    #[error("{0:?} is not a time: write 2026-12-24T18:00:00Z (RFC 3339) or milliseconds since 1970")]
    Unreadable(String),
    /// A number that can only be meant as seconds: as milliseconds it would be an instant in the years from 1970 to
    /// 1973, long past, and a task would be due at once.
    #[error("{0} can only be seconds since 1970: write {0}000 (milliseconds) or {in_words}", in_words = Time(.0.saturating_mul(1_000)))]
    Seconds(u64),
}

/// Numbers from here on were, as milliseconds, at the second day of 1970.
const FIRST_SECONDS: u64 = 100_000_000;
/// Numbers up to here are, as milliseconds, at the beginning of 1973, and as seconds in the year 5138.
const LAST_SECONDS: u64 = 100_000_000_000;

impl Time {
    /// The last instant that can be named, in the year 287396.
    pub const LAST: Time = Time((1 << 53) - 2);

    /// A number as somebody wrote it.
    fn of_number(millis: u64) -> Result<Time, BadTime> {
        match millis {
            FIRST_SECONDS..LAST_SECONDS => Err(BadTime::Seconds(millis)),
            _ if millis > Time::LAST.0 => Err(BadTime::Unreadable(millis.to_string())),
            _ => Ok(Time(millis)),
        }
    }

    /// The time by this machine's clock.
    pub fn now() -> Time {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Time(since.map_or(0, |since| since.as_millis() as u64))
    }
}

impl FromStr for Time {
    type Err = BadTime;

    fn from_str(text: &str) -> Result<Time, BadTime> {
        if let Ok(millis) = text.parse::<u64>() {
            return Time::of_number(millis);
        }
        if let Some(millis) = rfc3339::read(text) {
            return Ok(Time(millis));
        }
        // What is not quite RFC 3339 but leaves no doubt, as without seconds, is taken too.
        let instant = text.parse().ok().filter(|_| !text.contains(":60"));
        let instant: jiff::Timestamp = instant.ok_or_else(|| BadTime::Unreadable(text.into()))?;
        // Rounded up, so that nothing is early; what lies before 1970 is long past either way.
        let micros = instant.as_microsecond().max(0) as u64;
        let more = u64::from(instant.subsec_nanosecond() % 1_000 > 0);
        Ok(Time((micros + more).div_ceil(1_000)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match rfc3339::write(self.0) {
            Some(text) => f.write_str(&text),
            None => write!(f, "{}", self.0),
        }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match rfc3339::write(self.0) {
            Some(text) => serializer.serialize_str(&text),
            None => serializer.serialize_u64(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        struct Times;
        impl Visitor<'_> for Times {
            type Value = Time;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time as RFC 3339 text or as milliseconds since 1970")
            }
            fn visit_u64<E: Error>(self, millis: u64) -> Result<Time, E> {
                Time::of_number(millis).map_err(E::custom)
            }
            fn visit_i64<E: Error>(self, millis: i64) -> Result<Time, E> {
                Err(E::invalid_value(Unexpected::Signed(millis), &self))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Times)
    }
}

/// A duration in milliseconds.
///
/// Accepted as `"15m"`, `"1h30m"`, or `"250ms"`, or as a number of milliseconds; written as text. A text without a unit
/// is refused: `"15"` rarely means milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

/// A text that is not a [`Span`] or a [`Shift`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSpan {
    /// It says no length of time.
    #[error("{0:?} is not a duration: write 15m, 1h30m or 250ms (w, d, h, m, s, ms)")]
    Unreadable(String),
    /// A number without a unit.
    #[error("{0:?} has no unit: write {0}s, {0}m or {0}ms (w, d, h, m, s, ms)")]
    NoUnit(String),
}

/// The units of a length of time, longest first, in milliseconds. Months and years are left out: they differ in length.
const UNITS: [(&str, u64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl Span {
    /// The longest: as long as all of time.
    pub const LONGEST: Span = Span(Time::LAST.0);

    fn checked(millis: u64) -> Option<Span> {
        (millis <= Span::LONGEST.0).then_some(Span(millis))
    }

    /// So many seconds.
    pub const fn from_secs(seconds: u64) -> Span {
        Span(seconds.saturating_mul(1_000))
    }

    /// The same for the standard library.
    pub const fn as_duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl From<Duration> for Span {
    /// Rounds up, so that what waits for it is never early.
    fn from(duration: Duration) -> Span {
        Span(u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }
}

impl FromStr for Span {
    type Err = BadSpan;

    fn from_str(text: &str) -> Result<Span, BadSpan> {
        let bad = || BadSpan::Unreadable(text.into());
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let is_zero = text.bytes().all(|byte| byte == b'0');
            return if is_zero { Ok(Span(0)) } else { Err(BadSpan::NoUnit(text.into())) };
        }
        let mut sum: u64 = 0;
        let mut longer = u64::MAX;
        let mut rest = text;
        while !rest.is_empty() {
            let digits = rest.find(|character: char| !character.is_ascii_digit()).ok_or_else(bad)?;
            let number: u64 = rest[..digits].parse().map_err(|_| bad())?;
            rest = &rest[digits..];
            let letters = rest.find(|character: char| character.is_ascii_digit()).unwrap_or(rest.len());
            let unit = UNITS.iter().find(|(unit, _)| *unit == &rest[..letters]).ok_or_else(bad)?.1;
            // From the longest to the shortest, each once: "30m1h" is rather a mistake than an hour and a half.
            if unit >= longer {
                return Err(bad());
            }
            longer = unit;
            sum = number.checked_mul(unit).and_then(|part| sum.checked_add(part)).ok_or_else(bad)?;
            rest = &rest[letters..];
        }
        if text.is_empty() { Err(bad()) } else { Span::checked(sum).ok_or_else(bad) }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (unit, millis) in UNITS {
            if rest >= millis {
                write!(f, "{}{unit}", rest / millis)?;
                rest %= millis;
            }
        }
        Ok(())
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        struct Spans;
        impl Visitor<'_> for Spans {
            type Value = Span;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as \"15m\", \"1h30m\" or \"250ms\", or a number of milliseconds")
            }
            fn visit_u64<E: Error>(self, millis: u64) -> Result<Span, E> {
                Span::checked(millis).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(millis), &self))
            }
            fn visit_i64<E: Error>(self, millis: i64) -> Result<Span, E> {
                Err(E::invalid_value(Unexpected::Signed(millis), &self))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Spans)
    }
}

/// A duration in either direction: `"-2h"`, `"15m"`, or a number of milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shift(pub i64);

impl FromStr for Shift {
    type Err = BadSpan;

    fn from_str(text: &str) -> Result<Shift, BadSpan> {
        let (sign, span) = match text.strip_prefix('-') {
            Some(span) => (-1, span),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let span: Span = span.parse().map_err(|bad| match bad {
            BadSpan::NoUnit(_) => BadSpan::NoUnit(text.into()),
            BadSpan::Unreadable(_) => BadSpan::Unreadable(text.into()),
        })?;
        i64::try_from(span.0).map(|millis| Shift(sign * millis)).map_err(|_| BadSpan::Unreadable(text.into()))
    }
}

impl fmt::Display for Shift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 < 0 { "-" } else { "" })?;
        Span(self.0.unsigned_abs()).fmt(f)
    }
}

impl Serialize for Shift {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Shift {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Shift, D::Error> {
        struct Shifts;
        impl Visitor<'_> for Shifts {
            type Value = Shift;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration in either direction such as \"-2h\", or a number of milliseconds")
            }
            fn visit_u64<E: Error>(self, millis: u64) -> Result<Shift, E> {
                let span =
                    Span::checked(millis).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(millis), &self))?;
                Ok(Shift(span.0 as i64))
            }
            fn visit_i64<E: Error>(self, millis: i64) -> Result<Shift, E> {
                let is_short = Span::checked(millis.unsigned_abs()).is_some();
                if is_short { Ok(Shift(millis)) } else { Err(E::invalid_value(Unexpected::Signed(millis), &self)) }
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Shift, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Shifts)
    }
}

#[cfg(feature = "openapi")]
mod schemas {
    //! Each is a text or a number. The patterns refuse nothing that is taken.

    use utoipa::openapi::RefOr;
    use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type};
    use utoipa::{PartialSchema, ToSchema};

    use super::{Shift, Span, Time};

    fn either(text: ObjectBuilder, least: i64, about: &str) -> RefOr<Schema> {
        let text = text.schema_type(SchemaType::Type(Type::String));
        let number = ObjectBuilder::new().schema_type(SchemaType::Type(Type::Integer));
        let number = number.minimum(Some(least)).maximum(Some(Time::LAST.0 as i64));
        OneOfBuilder::new().item(text).item(number).description(Some(about)).into()
    }

    impl PartialSchema for Time {
        fn schema() -> RefOr<Schema> {
            let about = "An instant: RFC 3339, or milliseconds since 1970. Answers use RFC 3339 up to the year 9999, and \
                         a number beyond.";
            either(ObjectBuilder::new(), 0, about)
        }
    }
    impl ToSchema for Time {}

    const SPAN: &str = "(0|([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)$";

    impl PartialSchema for Span {
        fn schema() -> RefOr<Schema> {
            let text = ObjectBuilder::new().pattern(Some(format!("^{SPAN}")));
            let about = "A duration such as 15m, 1h30m or 250ms (w, d, h, m, s, ms), or a number of milliseconds.";
            either(text, 0, about)
        }
    }
    impl ToSchema for Span {}

    impl PartialSchema for Shift {
        fn schema() -> RefOr<Schema> {
            let text = ObjectBuilder::new().pattern(Some(format!("^[+-]?{SPAN}")));
            let about = "A duration in either direction such as -2h or 15m, or a number of milliseconds.";
            either(text, -(Time::LAST.0 as i64), about)
        }
    }
    impl ToSchema for Shift {}
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Span>().map(|span| span.0);
        assert_eq!(read("15m"), Ok(900_000));
        assert_eq!(read("1h30m"), Ok(5_400_000));
        assert_eq!(read("250ms"), Ok(250));
        assert_eq!(read("1w2d3h4m5s6ms"), Ok(788_645_006));
        assert_eq!(read("0"), Ok(0));
        assert_eq!(serde_json::from_str::<Span>("1500").unwrap(), Span(1_500));
        for bad in ["", "1500", "m", "15 m", "15M", "1y", "30m1h", "1h1h", "-1h", "1.5h", "99999999999999999999w", "é"]
        {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn spans_come_back_from_their_text() {
        for millis in [0, 1, 999, 1_000, 90_000, 5_400_000, 86_400_000, Span::LONGEST.0] {
            assert_eq!(Span(millis).to_string().parse(), Ok(Span(millis)));
        }
        assert_eq!(Span(5_400_000).to_string(), "1h30m");
    }

    #[test]
    fn shifts_go_both_ways() {
        assert_eq!("-2h".parse(), Ok(Shift(-7_200_000)));
        assert_eq!("+1s".parse(), Ok(Shift(1_000)));
        assert_eq!(serde_json::from_str::<Shift>("-5").unwrap(), Shift(-5));
        assert!("--2h".parse::<Shift>().is_err());
        assert_eq!(Shift(-7_200_000).to_string(), "-2h");
    }

    #[test]
    fn times_are_read_as_rfc_3339_or_milliseconds() {
        assert_eq!("1970-01-01T00:00:01.5Z".parse(), Ok(Time(1_500)));
        assert_eq!("1970-01-01T02:00:00+02:00".parse(), Ok(Time(0)));
        assert_eq!(serde_json::from_str::<Time>("1500").unwrap(), Time(1_500));
        assert!("yesterday".parse::<Time>().is_err());
        assert!(serde_json::from_str::<Time>("9007199254740991").is_err());
        assert!("2026-13-01T00:00:00Z".parse::<Time>().is_err());
        assert_eq!("2026-12-24T18:00Z".parse::<Time>(), "2026-12-24T18:00:00Z".parse());
        assert_eq!("9999-12-31T23:59:59.999Z".parse(), Ok(Time(253_402_300_799_999)));
        assert_eq!(Time(253_402_300_799_999).to_string(), "9999-12-31T23:59:59.999Z");
        assert!("2026-12-24T18:00:60Z".parse::<Time>().is_err(), "leap seconds end a day");
    }

    #[test]
    fn a_number_that_can_only_be_seconds_is_refused_with_a_hint() {
        let refused = serde_json::from_str::<Time>("1794842836").unwrap_err().to_string();
        assert!(refused.contains("1794842836000") && refused.contains("2026-11-16T"), "{refused}");
        assert_eq!("1794842836".parse::<Time>(), Err(BadTime::Seconds(1_794_842_836)));
        assert_eq!("1794842836000".parse(), Ok(Time(1_794_842_836_000)));
        assert_eq!(serde_json::from_str::<Time>("99999999").unwrap(), Time(99_999_999), "who counts from 1970 may");
    }

    #[test]
    fn a_text_without_a_unit_is_refused_with_a_hint() {
        let refused = "15".parse::<Span>().unwrap_err().to_string();
        assert!(refused.contains("15s") && refused.contains("15ms"), "{refused}");
        assert_eq!("-15".parse::<Shift>(), Err(BadSpan::NoUnit("-15".into())));
        assert!(serde_json::from_str::<Span>("\"15\"").is_err());
    }

    #[test]
    fn a_fraction_of_a_millisecond_is_rounded_up() {
        assert_eq!("1970-01-01T00:00:00.000000001Z".parse(), Ok(Time(1)));
        assert_eq!("1970-01-01T00:00:00.001000Z".parse(), Ok(Time(1)));
    }

    #[test]
    fn times_go_out_as_text_as_long_as_there_is_one() {
        assert_eq!(serde_json::to_string(&Time(1_500)).unwrap(), "\"1970-01-01T00:00:01.500Z\"");
        assert_eq!(serde_json::to_string(&Time::LAST).unwrap(), Time::LAST.0.to_string());
        assert_eq!(Time(0).to_string(), "1970-01-01T00:00:00.000Z");
    }
}
