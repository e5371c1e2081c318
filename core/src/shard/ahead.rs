//! Reading ahead: rows come into memory shortly before their time, in slices, in time order.
//!
//! A slice ends where the window does, or with the last row that was read. What it does not bring is what changed since
//! the store was asked: those rows are on the desk, and are looked through for each slice.

use super::Shard;
use super::stretch::{Reading, Stretch};
use crate::store::{Bodies, Position, Scan, Table};
use crate::time::{Millis, Timestamp};

impl<R> Shard<R> {
    /// When rows have to be read ahead.
    pub(super) fn slice_wake(&self) -> Timestamp {
        let horizon = self.timers.horizon().at;
        let crowded = horizon > self.now && self.timers.len() >= self.config.timers;
        // Firing makes room, and then a step looks again.
        if crowded || self.timers.next_far() == Timestamp::NEVER {
            return Timestamp::NEVER;
        }
        self.timers.next_far().max(horizon).minus(self.lead())
    }

    /// How long before their time rows are read at the latest.
    fn lead(&self) -> Millis {
        Millis(self.config.window.0 / 2)
    }

    /// What to read ahead, if it is time to.
    pub(super) fn next_slice(&self) -> Option<Scan> {
        if self.slice_wake() > self.now {
            return None;
        }
        // What comes due is likely to be handed out soon. Without room, bodies are read when somebody waits for them.
        let (bodies, most) = match self.desk.has_room() {
            true => (Bodies::With, self.desk.rows_within(self.config.read_bytes)),
            false => (Bodies::Without, usize::MAX),
        };
        Some(Scan {
            table: Table::Live,
            from: self.timers.horizon(),
            until: Timestamp::NEVER,
            topic: None,
            limit: self.config.slice.min(most),
            bodies,
        })
    }

    /// Takes the rows into memory that come due within the window, and moves the horizon.
    pub(super) fn take_slice(&mut self, stretch: Stretch) {
        let Reading::Scan(scan) = &stretch.reading else { unreachable!("rows are read ahead in time order") };
        let with_bodies = scan.bodies == Bodies::With;
        let window_end = self.now.plus(self.config.window);
        // Rows beyond the window stay in the store, however many of them came along.
        let within = stretch.rows.iter().take_while(|row| row.at < window_end).count();
        // If the stretch ended before the window did, there may be more rows right behind the last one.
        let end = match stretch.next {
            Some(next) if within == stretch.rows.len() && next.at < window_end => next,
            _ => Position::start_of(window_end).max(scan.from),
        };
        // A guess that is too early costs a read for nothing, one that is too late a task that is late.
        let next_far = match stretch.rows.get(within) {
            Some(row) => row.at,
            None => stretch.next.map_or(Timestamp::NEVER, |next| next.at),
        };
        // Rows that changed since are better known here than in the store: what the stretch says of them is passed over.
        // Those that are not durable yet may not have come with it, so that they count for what is far, too.
        let range = self.timers.horizon()..end;
        let changed: Vec<_> = self.desk.dirty().filter(|slot| range.contains(&self.desk[*slot].position())).collect();
        let far = self.desk.dirty().map(|slot| self.desk[slot].position()).filter(|position| *position >= end);
        let next_far = far.map(|position| position.at).fold(next_far, Timestamp::min);
        self.timers.reach(end, next_far);
        for slot in changed {
            if !self.desk[slot].has_timer() {
                self.set_timer(slot);
            }
        }
        for row in stretch.rows {
            let position = row.position();
            if position >= end || self.desk.is_dirty(&row.key) {
                continue;
            }
            self.take_in(row, with_bodies);
            // What is due already fires in the next step: in the order of its time, together with what
            // changed since, and after what it needs was read.
            if let Some(slot) = self.desk.at(position)
                && !self.desk[slot].has_timer()
            {
                self.set_timer(slot);
            }
        }
    }
}
