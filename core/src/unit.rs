//! The slots of a forecast: stretches of time of one unit, in UTC, numbered from the beginning of 1970 on.

use crate::time::Timestamp;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The length of a slot of the forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 60 seconds.
    Minute,
    /// 60 minutes.
    Hour,
    /// 24 hours, from midnight UTC.
    Day,
    /// 7 days, from Monday on.
    Week,
    /// A month of the calendar.
    Month,
}

impl Unit {
    /// The number of the slot that has this instant in it.
    pub fn slot(self, at: Timestamp) -> u64 {
        let millis = at.as_millis();
        match self {
            Unit::Minute => millis / MINUTE,
            Unit::Hour => millis / HOUR,
            Unit::Day => millis / DAY,
            // 1970 began on a Thursday: its first week has no more than its end.
            Unit::Week => (millis / DAY + 3) / 7,
            Unit::Month => month_of(millis / DAY),
        }
    }

    /// When a slot begins.
    pub fn beginning(self, slot: u64) -> Timestamp {
        Timestamp::from_millis(self.first_milli(slot))
    }

    /// The same in milliseconds, also of a slot that no instant is in.
    pub(crate) fn first_milli(self, slot: u64) -> u64 {
        match self {
            Unit::Minute => slot * MINUTE,
            Unit::Hour => slot * HOUR,
            Unit::Day => slot * DAY,
            Unit::Week => (slot * 7).saturating_sub(3) * DAY,
            Unit::Month => first_day_of(slot) * DAY,
        }
    }
}

/// How many days there are from March of the year 0 to the beginning of 1970, and how many months.
const DAYS: u64 = 719_468;
const MONTHS: u64 = 1_969 * 12 + 10;

/// How many days there are from March of the year 0 to March of another one. Years that begin in March have their leap day at
/// the end, so that their months begin on the same days each year.
fn days_to_march(year: u64) -> u64 {
    year * 365 + year / 4 - year / 100 + year / 400
}

/// The months from March on have 31, 30, 31, 30 and 31 days, and that again and again.
fn days_to_month(month: u64) -> u64 {
    (153 * month + 2) / 5
}

/// The month of a day, both counted from 1970 on.
fn month_of(day: u64) -> u64 {
    let day = day + DAYS;
    // 400 years have 146,097 days: this is the year, or one beside it.
    let mut year = day * 400 / 146_097;
    while days_to_march(year) > day {
        year -= 1;
    }
    while days_to_march(year + 1) <= day {
        year += 1;
    }
    let rest = day - days_to_march(year);
    year * 12 + (5 * rest + 2) / 153 - MONTHS
}

/// The first day of a month, both counted from 1970 on.
fn first_day_of(month: u64) -> u64 {
    let month = month + MONTHS;
    days_to_march(month / 12) + days_to_month(month % 12) - DAYS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_leap(year: u64) -> bool {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        let mut day = 0;
        for year in 1970..2_800 {
            let february = if is_leap(year) { 29 } else { 28 };
            let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            for (month, length) in (0..).zip(lengths) {
                let slot = (year - 1970) * 12 + month;
                assert_eq!(Unit::Month.beginning(slot).as_millis(), day * DAY, "{year}-{}", month + 1);
                for within in [day * DAY, (day + length) * DAY - 1] {
                    assert_eq!(Unit::Month.slot(Timestamp::from_millis(within)), slot, "{year}-{}", month + 1);
                }
                day += length;
            }
        }
    }

    #[test]
    fn weeks_begin_on_monday() {
        // The fifth of January 1970 was the first Monday.
        let slot = |day: u64| Unit::Week.slot(Timestamp::from_millis(day * DAY));
        assert_eq!([slot(0), slot(3), slot(4), slot(10), slot(11)], [0, 0, 1, 1, 2]);
        assert_eq!(Unit::Week.beginning(0), Timestamp::ZERO);
        assert_eq!(Unit::Week.beginning(1).as_millis(), 4 * DAY);
    }

    #[test]
    fn slots_follow_each_other_without_gaps_up_to_the_last_instant() {
        for unit in [Unit::Minute, Unit::Hour, Unit::Day, Unit::Week, Unit::Month] {
            let last = unit.slot(Timestamp::LAST);
            assert!(unit.first_milli(last + 1) > Timestamp::LAST.as_millis(), "{unit:?}");
            for slot in (1..3_000).chain(last - 100..=last) {
                let first = unit.beginning(slot);
                let before = Timestamp::from_millis(first.as_millis() - 1);
                assert_eq!((unit.slot(first), unit.slot(before)), (slot, slot - 1), "{unit:?}");
            }
        }
    }
}
