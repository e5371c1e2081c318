//! What a record of the journal says: the changes of a commit, that shards were claimed, or what the cluster shares.
//!
//! ```text
//! payload:  entry …
//! entry:    u8 1  u16 shard  u32 changes  u32 tallies  change …  tally …      a batch
//!           u8 2  u16 shard  u64 fence                                        a claim
//!           u8 3  u64 sequence                                                a retelling
//!           u8 4  u32 length of the key  u32 length of the value
//!                 u64 revision  key  value                                    an entry of the cluster
//!           nothing at all: a mark, which says only that all before it was synced
//! change:   u8 1  row                                insert
//!           u8 2  place  row                         insert, in the place of another
//!           u8 3  u8 table  u64 at  row without body update; where it stood before
//!           u8 4  place                              remove
//! tally:    u8 kind  u8 length of the name  u64 slot  i64 delta  name
//! ```
//! A payload that begins with a retelling says again what the journal said up to that sequence; it counts
//! only for a manifest of exactly that sequence.
//!
//! A row is laid out as in `row.rs`; a place is a row with neither state nor body.

use bytes::Buf;
use punctual_core::Name;
use punctual_core::store::{Batch, Change, Fence, Place, Position, ShardId, Table, Tally, TallyKind};

use crate::row::{Parts, StoredRow, instant, table};

const BATCH: u8 = 1;
const CLAIM: u8 = 2;
const RETELLING: u8 = 3;
const ENTRY: u8 = 4;

const INSERT: u8 = 1;
const REPLACE: u8 = 2;
const UPDATE: u8 = 3;
const REMOVE: u8 = 4;

/// Appends a batch.
pub(crate) fn write_batch(batch: &Batch, to: &mut Vec<u8>) {
    to.push(BATCH);
    to.extend_from_slice(&batch.shard.0.to_le_bytes());
    to.extend_from_slice(&(batch.changes.len() as u32).to_le_bytes());
    to.extend_from_slice(&(batch.tallies.len() as u32).to_le_bytes());
    batch.changes.iter().for_each(|change| write_change(change, to));
    batch.tallies.iter().for_each(|(tally, delta)| write_tally(tally, *delta, to));
}

/// Appends that a shard was claimed.
pub(crate) fn write_claim(shard: ShardId, fence: Fence, to: &mut Vec<u8>) {
    to.push(CLAIM);
    to.extend_from_slice(&shard.0.to_le_bytes());
    to.extend_from_slice(&fence.0.to_le_bytes());
}

/// Appends that an entry of the cluster was written.
pub(crate) fn write_entry(key: &str, revision: u64, value: &[u8], to: &mut Vec<u8>) {
    to.push(ENTRY);
    write_entry_itself(key, revision, value, to);
}

/// Appends an entry of the cluster.
pub(crate) fn write_entry_itself(key: &str, revision: u64, value: &[u8], to: &mut Vec<u8>) {
    for length in [key.len(), value.len()] {
        to.extend_from_slice(&(length as u32).to_le_bytes());
    }
    to.extend_from_slice(&revision.to_le_bytes());
    to.extend_from_slice(key.as_bytes());
    to.extend_from_slice(value);
}

/// How long an entry of the cluster is in a record.
pub(crate) fn entry_length(key: &str, value: &[u8]) -> u64 {
    (1 + 4 + 4 + 8 + key.len() + value.len()) as u64
}

/// Appends that what follows says again what the journal said up to a sequence.
pub(crate) fn write_retelling(sequence: u64, to: &mut Vec<u8>) {
    to.push(RETELLING);
    to.extend_from_slice(&sequence.to_le_bytes());
}

/// Appends so many changes of a shard, which were put together before.
pub(crate) fn write_changes(shard: ShardId, count: u32, changes: &[u8], to: &mut Vec<u8>) {
    to.push(BATCH);
    to.extend_from_slice(&shard.0.to_le_bytes());
    to.extend_from_slice(&count.to_le_bytes());
    to.extend_from_slice(&0_u32.to_le_bytes());
    to.extend_from_slice(changes);
}

/// Appends that a row is inserted as it is.
pub(crate) fn write_insert(row: StoredRow<'_>, to: &mut Vec<u8>) {
    to.push(INSERT);
    to.extend_from_slice(row.bytes());
}

/// Appends that a row, given without its body, has changed since it stood at this place.
pub(crate) fn write_update(row: StoredRow<'_>, before: (Table, Position), to: &mut Vec<u8>) {
    to.extend_from_slice(&[UPDATE, before.0 as u8]);
    to.extend_from_slice(&before.1.at.as_millis().to_le_bytes());
    to.extend_from_slice(row.bytes());
}

/// Whether a payload counts where the journal goes on after this sequence: a retelling does so only if it is the
/// one that belongs there.
pub(crate) fn counts_after(mut payload: &[u8], sequence: u64) -> bool {
    match payload.try_get_u8() {
        Ok(RETELLING) => payload.try_get_u64_le().is_ok_and(|told| told == sequence),
        _ => true,
    }
}

fn write_change(change: &Change, to: &mut Vec<u8>) {
    match change {
        Change::Insert { row, replaces } => {
            to.push(if replaces.is_some() { REPLACE } else { INSERT });
            replaces.iter().for_each(|place| write_place(place, to));
            let (key, position, group) = (&row.key, row.position(), row.group.as_ref());
            Parts { table: row.table, key, position, group, state: &row.state, body: &row.body }.write(to);
        }
        Change::Update { place, table, at, state } => {
            to.extend_from_slice(&[UPDATE, place.table as u8]);
            to.extend_from_slice(&place.position.at.as_millis().to_le_bytes());
            let position = Position { at: *at, seq: place.position.seq };
            let group = place.group.as_ref();
            Parts { table: *table, key: &place.key, position, group, state, body: &[] }.write(to);
        }
        Change::Remove { place } => {
            to.push(REMOVE);
            write_place(place, to);
        }
    }
}

fn write_place(Place { table, key, position, group }: &Place, to: &mut Vec<u8>) {
    Parts { table: *table, key, position: *position, group: group.as_ref(), state: &[], body: &[] }.write(to);
}

/// What a tally has beside its name.
pub(crate) const TALLY_HEAD: u64 = 18;
/// What a batch has beside its changes and tallies.
pub(crate) const BATCH_HEAD: u64 = 11;

/// Appends a tally with what is added to it.
pub(crate) fn write_tally(tally: &Tally, delta: i64, to: &mut Vec<u8>) {
    let name = tally.name.as_ref().map_or("", Name::as_str);
    to.extend_from_slice(&[tally.kind as u8, name.len() as u8]);
    to.extend_from_slice(&tally.slot.to_le_bytes());
    to.extend_from_slice(&delta.to_le_bytes());
    to.extend_from_slice(name.as_bytes());
}

/// The payload cannot be understood, although its checksum is right.
#[derive(Debug)]
pub(crate) struct Malformed;

/// What an entry says, one thing after the other.
pub(crate) enum Statement<'a> {
    Claim(ShardId, Fence),
    /// An entry of the cluster: its key, its revision, and what it says.
    Entry(&'a str, u64, &'a [u8]),
    Insert(ShardId, StoredRow<'a>),
    /// A row that goes, and the one that comes in its place.
    Replace(ShardId, StoredRow<'a>, StoredRow<'a>),
    /// The row as it is to be, without its body, and where it stood.
    Update(ShardId, StoredRow<'a>, Table, Position),
    Remove(ShardId, StoredRow<'a>),
    Tally(ShardId, Tally, i64),
}

/// Reads a payload and passes on what it says, in order.
pub(crate) fn read<'a, E: From<Malformed>>(
    mut payload: &'a [u8],
    mut each: impl FnMut(Statement<'a>) -> Result<(), E>,
) -> Result<(), E> {
    while let Ok(kind) = payload.try_get_u8() {
        if kind == RETELLING {
            payload.try_get_u64_le().map_err(|_| Malformed)?;
            continue;
        }
        if kind == ENTRY {
            let (key, revision, value) = read_entry(&mut payload).ok_or(Malformed)?;
            each(Statement::Entry(key, revision, value))?;
            continue;
        }
        let shard = ShardId(payload.try_get_u16_le().map_err(|_| Malformed)?);
        match kind {
            CLAIM => each(Statement::Claim(shard, Fence(read_counter(&mut payload).ok_or(Malformed)?)))?,
            BATCH => {
                let changes = payload.try_get_u32_le().map_err(|_| Malformed)?;
                let tallies = payload.try_get_u32_le().map_err(|_| Malformed)?;
                for _ in 0..changes {
                    each(read_change(shard, &mut payload).ok_or(Malformed)?)?;
                }
                for _ in 0..tallies {
                    let (tally, delta) = read_tally(&mut payload).ok_or(Malformed)?;
                    each(Statement::Tally(shard, tally, delta))?;
                }
            }
            _ => return Err(Malformed.into()),
        }
    }
    Ok(())
}

fn read_change<'a>(shard: ShardId, from: &mut &'a [u8]) -> Option<Statement<'a>> {
    Some(match from.try_get_u8().ok()? {
        INSERT => Statement::Insert(shard, read_row(from)?),
        REPLACE => {
            let place = read_row(from)?;
            Statement::Replace(shard, place, read_row(from)?)
        }
        UPDATE => {
            let before = table(from.try_get_u8().ok()?)?;
            let at = instant(from.try_get_u64_le().ok()?);
            let row = read_row(from)?;
            Statement::Update(shard, row, before, Position { at, seq: row.position().seq })
        }
        REMOVE => Statement::Remove(shard, read_row(from)?),
        _ => return None,
    })
}

fn read_row<'a>(from: &mut &'a [u8]) -> Option<StoredRow<'a>> {
    let row = StoredRow::first(from)?;
    *from = &from[row.bytes().len()..];
    Some(row)
}

/// Takes a number that only rises, by one at a time or with the clock. None ever comes near the end of 64 bits, so what
/// does was not written by us, and adding to a counter that was read cannot overflow.
pub(crate) fn read_counter(from: &mut &[u8]) -> Option<u64> {
    from.try_get_u64_le().ok().filter(|number| *number < 1 << 63)
}

/// Takes an entry of the cluster: its key, its revision, and what it says.
pub(crate) fn read_entry<'a>(from: &mut &'a [u8]) -> Option<(&'a str, u64, &'a [u8])> {
    let (key, value) = (from.try_get_u32_le().ok()? as usize, from.try_get_u32_le().ok()? as usize);
    let revision = read_counter(from)?;
    let (text, rest) = from.split_at_checked(key)?;
    let (value, rest) = rest.split_at_checked(value)?;
    *from = rest;
    Some((std::str::from_utf8(text).ok()?, revision, value))
}

/// Takes a tally with its number.
pub(crate) fn read_tally(from: &mut &[u8]) -> Option<(Tally, i64)> {
    let kind = TallyKind::from_number(from.try_get_u8().ok()?)?;
    let length = usize::from(from.try_get_u8().ok()?);
    let slot = from.try_get_u64_le().ok()?;
    let delta = from.try_get_i64_le().ok()?;
    let text = std::str::from_utf8(from.get(..length)?).ok()?;
    let name = if text.is_empty() { None } else { Some(Name::read_back(text).ok()?) };
    *from = &from[length..];
    Some((Tally { kind, name, slot }, delta))
}
