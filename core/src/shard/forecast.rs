//! How many deliveries come due when, always at hand.
//!
//! Days are counted for everything that waits. Minutes are counted up to a horizon two months
//! ahead, as far as the longest forecast by hours reaches, so that their number is bounded; what lies beyond is counted by minute when the horizon
//! reaches it, in slices, long before anybody looks.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use foldhash::fast::FixedState;

use super::Shard;
use super::mend::Mended;
use super::stretch::{Reading, Stretch};
use crate::state::{Phase, State};
use crate::store::{Bodies, Position, Scan, Table, Tally, TallyKind};
use crate::time::{Millis, Timestamp};
use crate::unit::Unit;

const MINUTE: u64 = 60_000;
const DAY: u64 = 24 * 60 * MINUTE;
/// How far ahead minutes are counted.
const REACH: Millis = Millis(62 * DAY);
/// How many rows are read in one step to move the horizon.
const SLICE: usize = 1_024;

/// Where a delivery counts that waits for this position, if those before the horizon are counted by minute.
pub(super) fn slots(position: Position, horizon: Position) -> impl Iterator<Item = (TallyKind, u64)> {
    let at = position.at.as_millis();
    let minute = (position < horizon).then_some((TallyKind::DueMinute, at / MINUTE));
    [(TallyKind::DueDay, at / DAY)].into_iter().chain(minute)
}

#[derive(Debug, Default)]
pub(super) struct Forecast {
    days: BTreeMap<u64, i64>,
    minutes: HashMap<u64, i64, FixedState>,
    /// What the store has yet to add, in no order.
    unstored: Vec<(TallyKind, u64, i64)>,
    /// Deliveries at positions before this one are counted by minute.
    horizon: Position,
}

impl Forecast {
    pub fn horizon(&self) -> Position {
        self.horizon
    }

    pub fn set_horizon(&mut self, horizon: Position) {
        self.horizon = horizon;
    }

    /// Counts a delivery that waits for this position, or takes it off the count.
    pub fn count(&mut self, position: Position, by: i64) {
        slots(position, self.horizon).for_each(|(kind, slot)| self.add(kind, slot, by));
    }

    /// Counts by minute a delivery that the horizon has reached.
    pub fn count_minute(&mut self, at: Timestamp) {
        self.add(TallyKind::DueMinute, at.as_millis() / MINUTE, 1);
    }

    fn add(&mut self, kind: TallyKind, slot: u64, by: i64) {
        self.unstored.push((kind, slot, by));
        match kind {
            TallyKind::DueDay => {
                let count = self.days.entry(slot).or_default();
                *count += by;
                if *count == 0 {
                    self.days.remove(&slot);
                }
            }
            _ => {
                let count = self.minutes.entry(slot).or_default();
                *count += by;
                if *count == 0 {
                    self.minutes.remove(&slot);
                }
            }
        }
    }

    /// Takes over a count from the store.
    pub fn restore(&mut self, tally: &Tally, count: i64) -> bool {
        match tally.kind {
            TallyKind::DueDay => _ = self.days.insert(tally.slot, count),
            _ => _ = self.minutes.insert(tally.slot, count),
        }
        true
    }

    /// Puts the counts right, given all that waits; says which were wrong.
    pub fn recount(&mut self, waiting: &[Position]) -> Vec<Mended> {
        let mut fresh = Forecast { horizon: self.horizon, ..Forecast::default() };
        waiting.iter().for_each(|position| fresh.count(*position, 1));
        let (days, minutes) =
            (self.days.keys().chain(fresh.days.keys()), self.minutes.keys().chain(fresh.minutes.keys()));
        let slots: BTreeSet<(TallyKind, u64)> = days
            .map(|day| (TallyKind::DueDay, *day))
            .chain(minutes.map(|minute| (TallyKind::DueMinute, *minute)))
            .collect();
        let mut mended = Vec::new();
        for (kind, slot) in slots {
            let (stored, right) = (self.count_of(kind, slot), fresh.count_of(kind, slot));
            if stored != right {
                self.add(kind, slot, right - stored);
                mended.push(Mended { tally: Tally::slot(kind, slot), stored, right });
            }
        }
        mended
    }

    fn count_of(&self, kind: TallyKind, slot: u64) -> i64 {
        let count = if kind == TallyKind::DueDay { self.days.get(&slot) } else { self.minutes.get(&slot) };
        count.copied().unwrap_or(0)
    }

    pub fn take_tallies(&mut self, tallies: &mut Vec<(Tally, i64)>) {
        self.unstored.sort_unstable();
        for slots in self.unstored.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let by = slots.iter().map(|(_, _, by)| by).sum();
            if by != 0 {
                tallies.push((Tally::slot(slots[0].0, slots[0].1), by));
            }
        }
        self.unstored.clear();
    }

    /// Whether not all is counted by minute that should be: much time has passed since the last step.
    pub fn is_behind(&self, now: Timestamp) -> bool {
        self.horizon.at.as_millis() < target(now)
    }

    /// The clock went back, maybe while nobody looked: minutes that are too far ahead are not counted any more, so that
    /// their number stays bounded.
    pub fn go_back(&mut self, now: Timestamp) {
        let target = target(now);
        if self.horizon.at.as_millis() <= target {
            return;
        }
        // Days tell where minutes are, so that only those on which something is due are gone through.
        let days: Vec<u64> = self.days.range(target / DAY..).map(|(day, _)| *day).collect();
        for minute in days.into_iter().flat_map(|day| day * DAY / MINUTE..(day + 1) * DAY / MINUTE) {
            if let Some(count) = self.minutes.remove(&minute) {
                self.unstored.push((TallyKind::DueMinute, minute, -count));
            }
        }
        self.horizon = Position::start_of(Timestamp::from_millis(target));
    }

    /// What to read so that the horizon can move on, or `None` if it is far enough.
    pub fn next_slice(&mut self, now: Timestamp) -> Option<Scan> {
        if !self.is_behind(now) {
            return None;
        }
        let target = target(now);
        let at = self.horizon.at.as_millis();
        // Days on which nothing is due need not be read.
        let busy = self.days.range(at / DAY..).next().map_or(target, |(day, _)| (day * DAY).min(target));
        if busy > at {
            self.horizon = Position::start_of(Timestamp::from_millis(busy));
            if busy >= target {
                return None;
            }
        }
        let end = (self.horizon.at.as_millis() / DAY + 1) * DAY;
        Some(Scan {
            table: Table::Live,
            from: self.horizon,
            until: Timestamp::from_millis(end),
            topic: None,
            limit: SLICE,
            bodies: Bodies::Without,
        })
    }

    /// How many deliveries come due in each of the next slots. The first slot is the one that is
    /// running; what came due in it and still waits for a consumer is included.
    pub fn view(&self, now: Timestamp, unit: Unit, slots: usize) -> Vec<(Timestamp, u64)> {
        let count = |slot: u64| -> i64 {
            let (from, until) = (unit.first_milli(slot), unit.first_milli(slot + 1));
            match unit {
                Unit::Minute | Unit::Hour => {
                    (from / MINUTE..until / MINUTE).filter_map(|minute| self.minutes.get(&minute)).sum()
                }
                Unit::Day | Unit::Week | Unit::Month => {
                    self.days.range(from / DAY..until / DAY).map(|(_, count)| count).sum()
                }
            }
        };
        let first = unit.slot(now);
        let last = unit.slot(Timestamp::LAST);
        let slots = (0..slots as u64).map(|slot| first + slot).take_while(|slot| *slot <= last);
        slots.map(|slot| (unit.beginning(slot), count(slot).max(0) as u64)).collect()
    }
}

/// The beginning of the day up to which minutes should be counted.
fn target(now: Timestamp) -> u64 {
    now.plus(REACH).as_millis() / DAY * DAY
}

impl<R> Shard<R> {
    /// Counts by minute what the forecast's horizon has reached.
    pub(super) fn count_minutes(&mut self, stretch: Stretch) {
        let Reading::Scan(scan) = &stretch.reading else { unreachable!("minutes are read in time order") };
        let end = stretch.next.unwrap_or(Position::start_of(scan.until));
        // What changed since the store was asked is counted as it is here, what did not as the stretch shows it.
        let range = self.forecast.horizon()..end;
        let changed = self.desk.dirty().filter(|slot| self.desk[*slot].is_waiting());
        let mut reached: Vec<Position> = changed.map(|slot| self.desk[slot].position()).collect();
        for row in stretch.rows.iter().filter(|row| !self.desk.is_dirty(&row.key)) {
            let state = State::decode(&row.state);
            if state.phase == Phase::Waiting {
                reached.push(row.position());
            }
        }
        for position in reached.into_iter().filter(|position| range.contains(position)) {
            self.forecast.count_minute(position.at);
        }
        self.forecast.set_horizon(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Position {
        Position { at: Timestamp::from_millis(millis), seq: 1 }
    }

    #[test]
    fn minutes_add_up_to_hours_and_days() {
        let mut forecast = Forecast::default();
        forecast.set_horizon(at(100 * DAY));
        for millis in [0, MINUTE - 1, MINUTE, 61 * MINUTE, DAY] {
            forecast.count(at(millis), 1);
        }
        let counts = |unit, slots| -> Vec<u64> {
            forecast.view(Timestamp::ZERO, unit, slots).into_iter().map(|(_, count)| count).collect()
        };
        assert_eq!(counts(Unit::Minute, 3), [2, 1, 0]);
        assert_eq!(counts(Unit::Hour, 2), [3, 1]);
        assert_eq!(counts(Unit::Day, 2), [4, 1]);
        assert_eq!((counts(Unit::Week, 2), counts(Unit::Month, 2)), (vec![5, 0], vec![5, 0]));
    }

    #[test]
    fn the_horizon_jumps_over_days_without_deliveries() {
        let mut forecast = Forecast::default();
        assert!(forecast.next_slice(Timestamp::ZERO).is_none());
        assert_eq!(forecast.horizon().at, Timestamp::ZERO.plus(REACH));
        let later = Timestamp::from_millis(3_000 * DAY);
        forecast.count(at(2_000 * DAY + 7), 1);
        let scan = forecast.next_slice(later).expect("a day with a delivery is read");
        assert_eq!(scan.from.at, Timestamp::from_millis(2_000 * DAY));
        assert_eq!(scan.until, Timestamp::from_millis(2_001 * DAY));
    }

    #[test]
    fn what_lies_beyond_the_horizon_costs_a_day_slot_only() {
        let mut forecast = Forecast::default();
        forecast.set_horizon(at(DAY));
        forecast.count(at(2 * DAY), 1);
        assert!(forecast.minutes.is_empty());
        forecast.count(at(2 * DAY), -1);
        assert!(forecast.days.is_empty());
    }
}
