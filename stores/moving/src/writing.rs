//! Writing into a shard of the target, so that nothing is written twice although answers get lost.
//!
//! A commit without an answer may have happened, and may still happen until the store has answered a claim. So the
//! shard is claimed anew, and then it is looked at what is there.

use punctual_core::Timestamp;
use punctual_core::shard::Note;
use punctual_core::store::{
    Batch, Bodies, Change, Position, Refusal, Row, Scan, ScanBack, StoreError, Table, Tally, Tenure, Terms, Want,
};

use crate::error::MoveError;
use crate::patience::Patience;
use crate::presence::Guest;
use crate::reading::{Held, Reading};
use crate::sum::weight;

/// How many bytes and changes a commit has at most, if the store would take more: beyond that it gets no faster, and
/// memory is worth something.
const COMMIT: (usize, usize) = (4 << 20, 4_096);

/// A shard of the target that is written.
pub(crate) struct Writing<'a> {
    guest: &'a Guest<'a>,
    pub held: Held<'a>,
    rows: Vec<Row>,
    bytes: usize,
    most_bytes: usize,
    most_changes: usize,
}

impl<'a> Writing<'a> {
    pub fn new(guest: &'a Guest<'a>, held: Held<'a>) -> Writing<'a> {
        let Terms { batch_bytes, batch_changes, .. } = held.store.terms();
        let (most_bytes, most_changes) = (batch_bytes.min(COMMIT.0), batch_changes.clamp(1, COMMIT.1));
        Writing { guest, held, rows: Vec::new(), bytes: 0, most_bytes, most_changes }
    }

    /// How the shard is held now. It is claimed anew when an answer was lost.
    pub fn tenure(&self) -> Tenure {
        self.held.tenure.expect("what is written is held")
    }

    /// The last position of each table: what is before it is there, if rows come in their order.
    pub fn arrived(&self) -> Result<Vec<Option<Position>>, StoreError> {
        Table::ALL.into_iter().map(|table| self.last(table)).collect()
    }

    fn last(&self, table: Table) -> Result<Option<Position>, StoreError> {
        let before = Position::start_of(Timestamp::NEVER);
        let mut back =
            ScanBack { table, before, from: Timestamp::ZERO, topic: None, limit: 1, bodies: Bodies::Without };
        loop {
            let page = self.guest.patience.retry(|| self.held.read(Want::ScanBack(&back)))?.span();
            match (page.rows.first(), page.next) {
                (None, Some(next)) => back.before = next,
                (last, _) => return Ok(last.map(Row::position)),
            }
        }
    }

    /// Takes a row that is not there, and writes when enough have come.
    pub fn push(&mut self, row: Row) -> Result<(), MoveError> {
        self.bytes += weight(&row);
        self.rows.push(row);
        if self.bytes >= self.most_bytes || self.rows.len() >= self.most_changes { self.flush() } else { Ok(()) }
    }

    /// Writes what has come.
    pub fn flush(&mut self) -> Result<(), MoveError> {
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let Some(last) = rows.last() else { return Ok(()) };
        let changes = || rows.iter().cloned().map(|row| Change::Insert { row, replaces: None }).collect();
        self.commit(changes, Vec::new, |held| has(held, last))
    }

    /// Deletes rows that are there.
    pub fn remove(&mut self, rows: &[Row]) -> Result<(), MoveError> {
        for rows in rows.chunks(self.most_changes) {
            let changes = || rows.iter().map(|row| Change::Remove { place: row.place() }).collect();
            self.commit(changes, Vec::new, |held| Ok(!has(held, &rows[0])?))?;
        }
        Ok(())
    }

    /// Deletes all rows, and takes back all counts. Says how the shard is held then.
    pub fn clear(&mut self) -> Result<Tenure, MoveError> {
        for table in Table::ALL {
            self.clear_table(table)?;
        }
        self.count(&[])?;
        Ok(self.tenure())
    }

    /// The same, and the shard's note stays.
    pub fn clear_but_note(&mut self) -> Result<(), MoveError> {
        for table in Table::ALL {
            self.clear_of(table, |row| Note::read(row).is_none())?;
        }
        self.count(&[])
    }

    /// Deletes all rows of a table.
    pub fn clear_table(&mut self, table: Table) -> Result<(), MoveError> {
        self.clear_of(table, |_| true)
    }

    fn clear_of(&mut self, table: Table, is_meant: impl Fn(&Row) -> bool) -> Result<(), MoveError> {
        let mut scan = first(table, Position::START, self.most_changes);
        loop {
            let page = self.guest.patience.retry(|| self.held.read(Want::Scan(&scan)));
            let mut page = page.map_err(MoveError::of(self.guest.side.name))?.span();
            page.rows.retain(&is_meant);
            self.remove(&page.rows)?;
            match page.next {
                Some(next) => scan.from = next,
                None => return Ok(()),
            }
        }
    }

    /// The shard's note, if it was ever opened.
    pub fn note(&self) -> Result<Option<Row>, MoveError> {
        let found = self.guest.patience.retry(|| note_of(self.held, self.guest.patience));
        found.map_err(MoveError::of(self.guest.side.name))
    }

    /// Lets the shard have this note.
    pub fn put_note(&mut self, note: Note) -> Result<(), MoveError> {
        let (there, row) = (self.note()?, note.row());
        if there.as_ref() == Some(&row) {
            return Ok(());
        }
        // In old stores it may have had another number.
        let replaces = there.map(|there| there.place());
        let change = || vec![Change::Insert { row: row.clone(), replaces: replaces.clone() }];
        let patience = self.guest.patience;
        self.commit(change, Vec::new, |held| Ok(note_of(held, patience)?.as_ref() == Some(&row)))
    }

    /// Makes the counts what they should be.
    pub fn count(&mut self, wanted: &[(Tally, i64)]) -> Result<(), MoveError> {
        let there = self.guest.patience.retry(|| self.held.read(Want::Tallies));
        let there = there.map_err(MoveError::of(self.guest.side.name))?.tallies();
        self.recount(&there, wanted)
    }

    /// The same if it is known what they are.
    pub fn recount(&mut self, there: &[(Tally, i64)], wanted: &[(Tally, i64)]) -> Result<(), MoveError> {
        for some in difference(wanted, there).chunks(self.most_changes) {
            let is_there = |held: Held<'_>| {
                let now = held.read(Want::Tallies)?.tallies();
                Ok(some.iter().all(|(tally, _)| count_of(&now, tally) == count_of(wanted, tally)))
            };
            self.commit(Vec::new, || some.to_vec(), is_there)?;
        }
        Ok(())
    }

    /// Commits, again and again until it is there.
    fn commit(
        &mut self,
        changes: impl Fn() -> Vec<Change>,
        tallies: impl Fn() -> Vec<(Tally, i64)>,
        is_there: impl Fn(Held<'_>) -> Result<bool, StoreError>,
    ) -> Result<(), MoveError> {
        let (guest, place) = (self.guest, self.guest.side.name);
        let mut waiting = guest.patience.begin();
        loop {
            let Held { store, shard, .. } = self.held;
            let Tenure { fence, serial } = self.tenure();
            let batch = Batch { shard, fence, serial: serial + 1, changes: changes(), tallies: tallies() };
            match store.commit(vec![batch]).map(|mut answers| answers.pop()) {
                Ok(Some(Ok(()))) => {
                    self.held.tenure = Some(Tenure { fence, serial: serial + 1 });
                    return Ok(());
                }
                Ok(Some(Err(refusal @ Refusal::Lost { .. }))) => {
                    let error = StoreError::Unavailable(refusal.to_string());
                    return Err(MoveError::Store { place: place.to_owned(), error });
                }
                Ok(_) => return Err(MoveError::Overtaken { place: place.to_owned() }),
                Err(error) => waiting.bear(error).map_err(MoveError::of(place))?,
            }
            self.held.tenure = Some(guest.claim(&[shard])?[0]);
            if guest.patience.retry(|| is_there(self.held)).map_err(MoveError::of(place))? {
                return Ok(());
            }
        }
    }
}

/// The first rows of a table from a position on.
fn first(table: Table, from: Position, limit: usize) -> Scan {
    Scan { table, from, until: Timestamp::NEVER, topic: None, limit, bodies: Bodies::Without }
}

/// Whether a row stands where it should.
fn has(held: Held<'_>, row: &Row) -> Result<bool, StoreError> {
    let mut scan = first(row.table, row.position(), 1);
    loop {
        let page = held.read(Want::Scan(&scan))?.span();
        match (page.rows.first(), page.next) {
            (None, Some(next)) => scan.from = next,
            (there, _) => return Ok(there.is_some_and(|there| there.position() == row.position())),
        }
    }
}

/// A shard's note, wherever it stands among the settings.
fn note_of(held: Held<'_>, patience: Patience) -> Result<Option<Row>, StoreError> {
    for page in Reading::new(held, patience, &[Table::Settings]).without_bodies() {
        if let Some(note) = page?.into_iter().find(|row| Note::read(row).is_some()) {
            return Ok(Some(note));
        }
    }
    Ok(None)
}

/// What has to be added to one for it to become the other. Both are in order.
fn difference(wanted: &[(Tally, i64)], there: &[(Tally, i64)]) -> Vec<(Tally, i64)> {
    let missing = wanted.iter().map(|(tally, count)| (tally.clone(), count - count_of(there, tally)));
    let surplus = there.iter().filter(|(tally, _)| count_of(wanted, tally) == 0);
    let surplus = surplus.map(|(tally, count)| (tally.clone(), -count));
    missing.chain(surplus).filter(|(_, count)| *count != 0).collect()
}

/// A count among those that are not zero, in order.
fn count_of(counts: &[(Tally, i64)], tally: &Tally) -> i64 {
    counts.binary_search_by(|(other, _)| other.cmp(tally)).map_or(0, |found| counts[found].1)
}
