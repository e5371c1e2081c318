//! RFC 3339, the profile of ISO 8601 for the internet, from the year 1970 to the last millisecond of 9999.

use jiff::civil::DateTime;

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// The milliseconds since 1970 of a text such as `2026-12-24T18:00:00.5+01:00`, rounded up so that nothing is early; what
/// lies before 1970 is long past either way. A leap second is the second after it, as it is on clocks that have none.
pub(crate) fn read(text: &str) -> Option<u64> {
    let (date, rest) = text.split_at_checked(10)?;
    let (separator, rest) = rest.split_at_checked(1)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    if !matches!(separator, "T" | "t" | " ") {
        return None;
    }
    let (time, rest) = rest.split_at_checked(8)?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let (nanos, rest) = fraction(rest)?;
    let offset = offset_minutes(rest)?;
    if second > 60 {
        return None;
    }
    let is_leap = second == 60;
    let [month, day, hour, minute] = [month, day, hour, minute].map(|number| number as i8);
    let local = DateTime::new(year as i16, month, day, hour, minute, second.min(59) as i8, 0).ok()?;
    let seconds = local.duration_since(EPOCH).as_secs() - i64::from(offset) * 60;
    // Leap seconds end a day in UTC.
    if is_leap && seconds.rem_euclid(86_400) != 86_399 {
        return None;
    }
    let millis = (seconds + i64::from(is_leap)) * 1_000 + i64::from(nanos.div_ceil(1_000_000));
    Some(u64::try_from(millis).unwrap_or(0))
}

/// The text of so many milliseconds since 1970, in UTC; none beyond the year 9999, where RFC 3339 ends.
pub(crate) fn write(millis: u64) -> Option<String> {
    let since = jiff::SignedDuration::from_millis(i64::try_from(millis).ok()?);
    let time = EPOCH.checked_add(since).ok()?;
    Some(format!("{time:.3}Z"))
}

/// Three numbers of so many digits each.
fn numbers(text: &str, separator: char, digits: [usize; 3]) -> Option<[u16; 3]> {
    let mut parts = text.split(separator);
    let mut found = [0; 3];
    for (number, digits) in found.iter_mut().zip(digits) {
        let part =
            parts.next().filter(|part| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit()))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
}

/// The nanoseconds of a fraction, if there is one, rounded up; and what follows.
fn fraction(text: &str) -> Option<(u32, &str)> {
    let Some(rest) = text.strip_prefix('.') else { return Some((0, text)) };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (fraction, rest) = rest.split_at(digits);
    let (near, far) = fraction.split_at(digits.min(9));
    let nanos: u32 = format!("{near:0<9}").parse().ok().filter(|_| digits > 0)?;
    let more = far.bytes().any(|digit| digit != b'0');
    Some((nanos + u32::from(more), rest))
}

/// `Z`, or hours and minutes east of Greenwich.
fn offset_minutes(text: &str) -> Option<i32> {
    if matches!(text, "Z" | "z") {
        return Some(0);
    }
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let [hours, minutes, _] = numbers(&format!("{rest}:00"), ':', [2, 2, 2])?;
    (hours < 24 && minutes < 60).then(|| sign * (i32::from(hours) * 60 + i32::from(minutes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_to_the_end_of_the_year_9999() {
        assert_eq!(read("1970-01-01T00:00:01.5Z"), Some(1_500));
        assert_eq!(read("1970-01-01t02:00:00+02:00"), Some(0));
        assert_eq!(read("2026-12-24 18:00:00.000-01:30"), Some(1_798_140_600_000));
        assert_eq!(read("9999-12-30T22:00:01Z"), Some(253_402_207_201_000));
        assert_eq!(read("9999-12-31T23:59:59.999Z"), Some(253_402_300_799_999));
        assert_eq!(read("1969-12-31T23:59:59Z"), Some(0));
        assert_eq!(read("0001-01-01T00:00:00Z"), Some(0));
    }

    #[test]
    fn a_fraction_of_a_millisecond_is_rounded_up() {
        assert_eq!(read("1970-01-01T00:00:00.000000001Z"), Some(1));
        assert_eq!(read("1970-01-01T00:00:00.0010000000000001Z"), Some(2));
        assert_eq!(read("1970-01-01T00:00:00.9999999999Z"), Some(1_000));
    }

    #[test]
    fn a_leap_second_is_the_second_after_it() {
        assert_eq!(read("2016-12-31T23:59:60Z"), read("2017-01-01T00:00:00Z"));
        assert_eq!(read("2017-01-01T00:59:60.25+01:00"), read("2017-01-01T00:00:00.25Z"));
        assert_eq!(read("2016-12-31T23:58:60Z"), None);
        assert_eq!(read("2016-12-31T23:59:61Z"), None);
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for text in [
            "",
            "2026",
            "2026-12-24",
            "2026-12-24T18:00:00",
            "2026-13-01T00:00:00Z",
            "2026-02-30T00:00:00Z",
            "2026-12-24T24:00:00Z",
            "2026-12-24T18:00:61Z",
            "2026-12-24T18:00:99Z",
            "2026-12-24T18:00:00.Z",
            "2026-12-24T18:00:00+24:00",
            "2026-12-24T18:00:00+1:00",
            "2026-12-24T18:00:00ZZ",
            "+026-12-24T18:00:00Z",
            "2026-12-24T18:00:0éZ",
            "2026-12-2éT18:00:00Z",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn instants_are_written_to_the_end_of_the_year_9999() {
        assert_eq!(write(1_500).as_deref(), Some("1970-01-01T00:00:01.500Z"));
        assert_eq!(write(253_402_300_799_999).as_deref(), Some("9999-12-31T23:59:59.999Z"));
        assert_eq!(write(253_402_300_800_000), None);
        assert_eq!(write(u64::MAX), None);
    }
}
