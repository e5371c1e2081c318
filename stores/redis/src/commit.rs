//! A batch, as the script that carries it out is told it, and what the script says.

use std::collections::BTreeMap;

use punctual_core::store::{Batch, Change, Fence, Place, Refusal, Row, StoreError, Tally};

use crate::keys::{Keys, Of, order_of};
use crate::pack::Pack;
use crate::row;
use crate::scripts;
use crate::servers::{Answer, Call};
use crate::tally;
use crate::value::{list, number, odd, text};

/// How many arguments a command is given at most: Lua passes some 8,000. Even, since some come in pairs.
const MOST: usize = 4_000;

/// The call that carries out a batch.
pub(crate) fn call(batch: &Batch, keys: &Keys, waits: bool) -> Call {
    let grows = batch.changes.iter().any(|change| matches!(change, Change::Insert { .. }));
    let script = if grows { scripts::grow() } else { scripts::change() };
    let mut command = script.on(&keys.shard(batch.shard));
    command.arg(batch.fence.0).arg(batch.serial).arg(u8::from(waits));
    if !batch.is_empty() {
        command.arg(Plan::of(&batch.changes).packed(&batch.tallies));
    }
    Call { slot: keys.slot(batch.shard), command, may_repeat: true, writes: !batch.is_empty() }
}

/// What the script has to look at, and then to do.
#[derive(Default)]
struct Plan<'a> {
    /// Rows that have to stand somewhere; those that are updated first.
    standing: Vec<&'a Place>,
    updates: Vec<(&'a Change, [u8; 9])>,
    inserts: Vec<(&'a Row, Option<&'a Place>)>,
    writes: BTreeMap<Write, Vec<Vec<u8>>>,
}

/// A command and the place of its key. What goes, goes first: what comes may take its place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Write {
    Unfield(u8),
    Unrank(u8),
    Field(u8),
    Rank(u8),
}

impl Write {
    fn command(self) -> (&'static str, u8) {
        match self {
            Write::Unfield(key) => ("HDEL", key),
            Write::Unrank(key) => ("ZREM", key),
            Write::Field(key) => ("HSET", key),
            Write::Rank(key) => ("ZADD", key),
        }
    }
}

impl<'a> Plan<'a> {
    fn of(changes: &'a [Change]) -> Plan<'a> {
        let mut plan = Plan::default();
        for change in changes {
            if let Change::Update { place, table, at, .. } = change {
                plan.standing.push(place);
                plan.updates.push((change, row::head(*table, *at)));
                plan.update(change);
            }
        }
        for change in changes {
            match change {
                Change::Update { .. } => {}
                Change::Remove { place } => {
                    plan.remove(place);
                    plan.note(Write::Unfield(Of::Names as u8), [row::name(&place.key, place.table)]);
                }
                Change::Insert { row, replaces } => {
                    if let Some(place) = replaces {
                        plan.remove(place);
                    }
                    plan.insert(row);
                    plan.inserts.push((row, replaces.as_ref()));
                }
            }
        }
        plan
    }

    fn update(&mut self, change: &Change) {
        let Change::Update { place, table, at, .. } = change else { return };
        let number = row::number(place.position.seq);
        if place.table != *table {
            self.note(Write::Unrank(order_of(place.table)), [number.to_vec()]);
            if let Some(group) = &place.group {
                let member = |table| [row::in_group(table, group), number.to_vec()].concat();
                self.note(Write::Unrank(Of::Groups as u8), [member(place.table)]);
                self.note(Write::Rank(Of::Groups as u8), [b"0".to_vec(), member(*table)]);
            }
        }
        if place.table != *table || place.position.at != *at {
            self.note(Write::Rank(order_of(*table)), [at.as_millis().to_string().into_bytes(), number.to_vec()]);
        }
    }

    /// The row goes, but for its name, which another may take over. Where its body lies, only the row says.
    fn remove(&mut self, place: &'a Place) {
        let number = row::number(place.position.seq).to_vec();
        self.standing.push(place);
        if let Some(group) = &place.group {
            let member = [row::in_group(place.table, group), number.clone()].concat();
            self.note(Write::Unrank(Of::Groups as u8), [member]);
        }
        self.note(Write::Unrank(order_of(place.table)), [number.clone()]);
        self.note(Write::Unfield(Of::Rows as u8), [number]);
    }

    fn insert(&mut self, row: &Row) {
        let number = row::number(row.seq).to_vec();
        self.note(Write::Field(Of::Names as u8), [row::name(&row.key, row.table), number.clone()]);
        self.note(Write::Field(Of::Rows as u8), [number.clone(), row::encode(row)]);
        if row::lies_apart(&row.body) {
            self.note(Write::Field(Of::Bodies as u8), [number.clone(), row.body.to_vec()]);
        }
        if let Some(group) = &row.group {
            let member = [row::in_group(row.table, group), number.clone()].concat();
            self.note(Write::Rank(Of::Groups as u8), [b"0".to_vec(), member]);
        }
        self.note(Write::Rank(order_of(row.table)), [row.at.as_millis().to_string().into_bytes(), number]);
    }

    fn note<const N: usize>(&mut self, write: Write, arguments: [Vec<u8>; N]) {
        self.writes.entry(write).or_default().extend(arguments);
    }

    /// What the script is told, in the order in which it takes it.
    fn packed(&self, tallies: &[(Tally, i64)]) -> Vec<u8> {
        let mut pack = Pack::default();
        pack.list(11);
        pack.texts(&self.standing.iter().map(|place| row::number(place.position.seq)).collect::<Vec<_>>());
        pack.texts(&self.standing.iter().map(|place| row::head(place.table, place.position.at)).collect::<Vec<_>>());
        pack.texts(&self.standing.iter().map(|place| row::label_of(place)).collect::<Vec<_>>());
        pack.list(self.updates.len());
        for (_, head) in &self.updates {
            pack.bytes(head);
        }
        pack.list(self.updates.len());
        for (change, _) in &self.updates {
            let Change::Update { state, .. } = change else { continue };
            pack.bytes(state);
        }
        // A row may come under the number of the one that it replaces.
        let is_fresh = |(row, old): &&(&Row, Option<&Place>)| old.is_none_or(|old| old.position.seq != row.seq);
        let fresh: Vec<_> = self.inserts.iter().filter(is_fresh).map(|(row, _)| row::number(row.seq)).collect();
        pack.texts(&fresh);
        pack.texts(&self.inserts.iter().map(|(row, _)| row::name(&row.key, row.table)).collect::<Vec<_>>());
        pack.list(self.inserts.len());
        for (_, old) in &self.inserts {
            match old {
                Some(old) => pack.bytes(&row::number(old.position.seq)),
                None => pack.bytes(b""),
            };
        }
        self.pack_writes(&mut pack);
        pack.texts(&tallies.iter().map(|(tally, _)| tally::encode(tally)).collect::<Vec<_>>());
        pack.texts(&tallies.iter().map(|(_, delta)| delta.to_string()).collect::<Vec<_>>());
        pack.done()
    }

    fn pack_writes(&self, pack: &mut Pack) {
        pack.list(self.writes.values().map(|arguments| arguments.len().div_ceil(MOST)).sum());
        for (write, arguments) in &self.writes {
            let (command, key) = write.command();
            for arguments in arguments.chunks(MOST) {
                pack.list(2 + arguments.len()).bytes(command.as_bytes()).number(u32::from(key));
                arguments.iter().for_each(|argument| {
                    pack.bytes(argument);
                });
            }
        }
    }
}

/// What the script said to a batch.
pub(crate) fn outcome(batch: &Batch, answer: Answer) -> Result<Result<(), Refusal>, StoreError> {
    let strange = || odd("a commit");
    let parts = list(answer.value).ok_or_else(strange)?;
    match parts.first().and_then(text).ok_or_else(strange)? {
        "done" => Ok(Ok(())),
        "stands" => {
            let fence = parts.get(1).and_then(number).map(Fence).ok_or_else(strange)?;
            let found = parts.get(2).and_then(number).ok_or_else(strange)?;
            let expected = if batch.is_empty() { batch.serial } else { batch.serial.saturating_sub(1) };
            // Somebody else has claimed the shard since an attempt whose answer was lost: it may be the one that is there.
            if answer.is_repeated && fence != batch.fence && found >= batch.serial {
                let why = "the shard has another owner by now, and the answer to the first attempt was lost";
                return Err(StoreError::Unavailable(why.to_owned()));
            }
            Ok(Err(stands(batch.fence, fence, expected, found)))
        }
        "astray" => {
            let what = parts.get(1).and_then(text).ok_or_else(strange)?;
            let which = parts.get(2).and_then(number::<usize>).ok_or_else(strange)?;
            Ok(Err(Refusal::Astray(astray(batch, what, which.saturating_sub(1)))))
        }
        _ => Err(strange()),
    }
}

/// Why a writer under one fence is refused where another fence, or another serial, stands. Under the writer's own fence it
/// is the serial. Fences only rise: under a lower one Redis went back, and has lost the writer's commits if it had any.
pub(crate) fn stands(writer: Fence, current: Fence, expected: u64, found: u64) -> Refusal {
    if current <= writer && found < expected && writer != Fence::default() {
        Refusal::Lost { expected, found }
    } else {
        Refusal::Fenced { current }
    }
}

fn astray(batch: &Batch, what: &str, which: usize) -> String {
    let plan = Plan::of(&batch.changes);
    match what {
        "number" => format!("nothing has the number of {:?}", plan.standing.get(which)),
        "place" => format!("another row, or another place, than {:?}", plan.standing.get(which)),
        "key" => format!("the key of {:?} is another row's", plan.inserts.get(which).map(|(row, _)| row.place())),
        _ => "a new row has a number that is taken".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::store::ShardId;
    use redis::Value;

    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    /// What becomes of a batch of serial 5 under fence 70, if another fence and serial stand there.
    fn meets(fence: &str, serial: &str, is_repeated: bool) -> Result<Result<(), Refusal>, StoreError> {
        let tallies = vec![(Tally::slot(punctual_core::store::TallyKind::DueDay, 1), 1)];
        let batch = Batch { shard: ShardId(1), fence: Fence(70), serial: 5, changes: Vec::new(), tallies };
        let value = Value::Array(vec![text("stands"), text(fence), text(serial)]);
        outcome(&batch, Answer { value, is_repeated })
    }

    #[test]
    fn a_lower_serial_is_a_loss_unless_somebody_else_is_the_owner() {
        let lost = |found| Ok(Err(Refusal::Lost { expected: 4, found }));
        let fenced = |current| Ok(Err(Refusal::Fenced { current: Fence(current) }));
        assert_eq!(meets("70", "3", false), lost(3), "under our own fence");
        assert_eq!(meets("60", "3", false), lost(3), "our claim is lost, too");
        assert_eq!(meets("0", "0", false), lost(0), "all is lost");
        assert_eq!(meets("60", "4", false), fenced(60), "nothing of ours is lost but the claim");
        assert_eq!(meets("80", "3", false), fenced(80));
        assert_eq!(meets("80", "9", false), fenced(80));
    }

    #[test]
    fn who_cannot_know_whether_the_first_attempt_happened_says_so() {
        assert!(matches!(meets("80", "5", true), Err(StoreError::Unavailable(_))), "it may be the one that is there");
        assert!(matches!(meets("80", "4", true), Ok(Err(Refusal::Fenced { .. }))), "it is not there");
    }
}
