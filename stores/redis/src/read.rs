//! What is read, as the script is asked for it, and its answers. One call of the script gives only so much, so that Redis
//! does not stand still for others; whatever is missing is asked for in the next round.

use bytes::Bytes;
use punctual_core::Timestamp;
use punctual_core::store::{
    Bodies, Fence, Found, Page, Position, Row, ShardId, StoreError, Table, Tally, Tenure, Want,
};

use redis::Value;

use crate::commit::stands;
use crate::keys::Keys;
use crate::pack::Pack;
use crate::row;
use crate::scripts;
use crate::servers::Call;
use crate::tally;
use crate::value::{bytes, list, number, odd, pairs, text};

/// How many rows one call looks at, and how many bytes it gives, before it stops: some milliseconds of Redis's time.
const ROWS: u32 = 2_048;
const BYTES: u32 = 4 << 20;

/// What is wanted of one shard, and what has been found so far.
pub(crate) struct Reading<'a> {
    pub(crate) shard: ShardId,
    /// Under which tenure is read, or none.
    pub(crate) tenure: Option<Tenure>,
    /// Whether the tenure was looked at.
    is_admitted: bool,
    wanted: Vec<Wanted<'a>>,
}

struct Wanted<'a> {
    want: Want<'a>,
    /// Of [`Found::Each`], what was looked at so far.
    each: Vec<Option<Row>>,
    found: Option<Found>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(shard: ShardId, tenure: Option<Tenure>, wants: impl Iterator<Item = Want<'a>>) -> Reading<'a> {
        let wanted = wants.map(|want| Wanted { want, each: Vec::new(), found: at_once(&want) });
        Reading { shard, tenure, is_admitted: tenure.is_none(), wanted: wanted.collect() }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.is_admitted && self.wanted.iter().all(|wanted| wanted.found.is_some())
    }

    /// The next call.
    pub(crate) fn call(&self, keys: &Keys) -> Call {
        let fence = self.tenure.map_or(String::new(), |tenure| tenure.fence.0.to_string());
        let mut pack = Pack::default();
        let open = || self.wanted.iter().filter(|wanted| wanted.found.is_none());
        pack.list(open().count());
        open().for_each(|wanted| wanted.pack(&mut pack));
        let mut command = scripts::read().on(&keys.shard(self.shard));
        command.arg(fence).arg(ROWS).arg(BYTES).arg(pack.done());
        Call { slot: keys.slot(self.shard), command, may_repeat: true, writes: false }
    }

    /// Takes in what the script said.
    pub(crate) fn take(&mut self, answer: Value) -> Result<(), StoreError> {
        let strange = || odd("a read");
        let mut parts = list(answer).ok_or_else(strange)?.into_iter();
        let mut part = || parts.next().ok_or_else(strange);
        let current = Fence(number(&part()?).ok_or_else(strange)?);
        let serial: u64 = number(&part()?).ok_or_else(strange)?;
        if let Some(tenure) = self.tenure
            && (current != tenure.fence || current == Fence::default() || serial < tenure.serial)
        {
            return Err(stands(tenure.fence, current, tenure.serial, serial).into());
        }
        self.is_admitted = true;
        for wanted in self.wanted.iter_mut().filter(|wanted| wanted.found.is_none()) {
            wanted.take(part()?)?;
        }
        Ok(())
    }

    pub(crate) fn found(self) -> Vec<Found> {
        self.wanted.into_iter().filter_map(|wanted| wanted.found).collect()
    }
}

/// What needs no look.
fn at_once(want: &Want<'_>) -> Option<Found> {
    let each = |count: usize| (count == 0).then(|| Found::Each(Vec::new()));
    let stay =
        |limit: usize, at: Position| (limit == 0).then(|| Found::Span(Page { rows: Vec::new(), next: Some(at) }));
    let rest = |limit: usize, at: u64| (limit == 0).then(|| Found::Members(Page { rows: Vec::new(), next: Some(at) }));
    match want {
        Want::Keys(keys, _) => each(keys.len()),
        Want::Positions(positions, _) => each(positions.len()),
        Want::Numbers(numbers, _) => each(numbers.len()),
        Want::Scan(scan) => stay(scan.limit, scan.from),
        Want::ScanBack(back) => stay(back.limit, back.before),
        Want::Find(find) => rest(find.limit, find.from_seq),
        Want::FindBack(back) => rest(back.limit, back.before_seq),
        Want::Tallies => None,
    }
}

impl Wanted<'_> {
    fn bodies(&self) -> Bodies {
        match self.want {
            Want::Keys(_, bodies) | Want::Positions(_, bodies) | Want::Numbers(_, bodies) => bodies,
            Want::Scan(scan) => scan.bodies,
            Want::ScanBack(back) => back.bodies,
            Want::Find(find) => find.bodies,
            Want::FindBack(back) => back.bodies,
            Want::Tallies => Bodies::Without,
        }
    }

    fn pack(&self, pack: &mut Pack) {
        let with = u32::from(self.bodies() == Bodies::With);
        let done = self.each.len();
        match self.want {
            Want::Keys(keys, _) => {
                let names: Vec<_> = keys[done..].iter().map(|key| row::name(key, Table::Live)).collect();
                pack.list(3).bytes(b"keys").number(with).texts(&names);
            }
            Want::Positions(positions, _) => {
                let numbers: Vec<_> = positions[done..].iter().map(|position| row::number(position.seq)).collect();
                pack.list(3).bytes(b"numbers").number(with).texts(&numbers);
            }
            Want::Numbers(numbers, _) => {
                let numbers: Vec<_> = numbers[done..].iter().map(|seq| row::number(*seq)).collect();
                pack.list(3).bytes(b"numbers").number(with).texts(&numbers);
            }
            Want::Scan(scan) => {
                let topic = scan.topic.as_deref().unwrap_or_default();
                span(pack.list(8).bytes(b"scan").number(with), scan.table, scan.from, scan.until, topic, scan.limit);
            }
            Want::ScanBack(back) => {
                let topic = back.topic.as_deref().unwrap_or_default();
                let before = back.before.min(Position::start_of(Timestamp::NEVER));
                span(pack.list(8).bytes(b"back").number(with), back.table, before, back.from, topic, back.limit);
            }
            Want::Find(find) => {
                let from = [b"[", &row::in_group(find.table, &find.group)[..], &row::number(find.from_seq)].concat();
                let to = [b"(", &row::past_group(find.table, &find.group)[..]].concat();
                pack.list(5).bytes(b"find").number(with).bytes(&from).bytes(&to).number(limited(find.limit));
            }
            Want::FindBack(back) => {
                let group = row::in_group(back.table, &back.group);
                let before = [b"(", &group[..], &row::number(back.before_seq)].concat();
                let to = [b"[", &group[..]].concat();
                pack.list(5).bytes(b"find back").number(with).bytes(&before).bytes(&to).number(limited(back.limit));
            }
            Want::Tallies => {
                pack.list(2).bytes(b"tallies").number(with);
            }
        }
    }

    fn take(&mut self, answer: Value) -> Result<(), StoreError> {
        let with = self.bodies();
        match self.want {
            Want::Keys(keys, _) => self.take_each(answer, keys.len(), |_, row| row.table != Table::Settings),
            Want::Numbers(numbers, _) => self.take_each(answer, numbers.len(), |_, row| row.table != Table::Settings),
            Want::Positions(positions, _) => self.take_each(answer, positions.len(), |index, row| {
                row.table == Table::Live && row.at == positions[index].at
            }),
            Want::Scan(_) => {
                let page = page(answer, with)?;
                self.found = page.map(|page| Found::Span(go_on(page, Position::next)));
                Ok(())
            }
            Want::ScanBack(_) => {
                let page = page(answer, with)?;
                self.found = page.map(|page| Found::Span(go_on(page, |position| position)));
                Ok(())
            }
            Want::Find(_) => {
                self.found = members(answer, with)?.map(|page| Found::Members(go_on(page, |seq| seq + 1)));
                Ok(())
            }
            Want::FindBack(_) => {
                self.found = members(answer, with)?.map(Found::Members);
                Ok(())
            }
            Want::Tallies => {
                self.found = Some(Found::Tallies(tallies(answer)?));
                Ok(())
            }
        }
    }

    fn take_each(
        &mut self,
        answer: Value,
        wanted: usize,
        is_meant: impl Fn(usize, &Row) -> bool,
    ) -> Result<(), StoreError> {
        let strange = || odd("a read of rows");
        let mut parts = list(answer).ok_or_else(strange)?.into_iter();
        let looked: usize = parts.next().as_ref().and_then(number).ok_or_else(strange)?;
        let rows = rows(&mut parts, self.bodies())?;
        if rows.len() != looked || self.each.len() + looked > wanted {
            return Err(strange());
        }
        for row in rows {
            let index = self.each.len();
            self.each.push(row.filter(|row| is_meant(index, row)));
        }
        if self.each.len() == wanted {
            self.found = Some(Found::Each(std::mem::take(&mut self.each)));
        }
        Ok(())
    }
}

fn span(pack: &mut Pack, table: Table, from: Position, to: Timestamp, topic: &str, limit: usize) {
    pack.number(u32::from(table as u8))
        .bytes(from.at.as_millis().to_string().as_bytes())
        .bytes(&row::number(from.seq))
        .bytes(to.as_millis().to_string().as_bytes())
        .bytes(topic.as_bytes())
        .number(limited(limit));
}

/// No call gives more anyway.
fn limited(limit: usize) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX).min(ROWS)
}

/// The rows of the next three parts: numbers, rows, and the bodies that lie apart.
fn rows(parts: &mut impl Iterator<Item = Value>, with: Bodies) -> Result<Vec<Option<Row>>, StoreError> {
    let strange = || odd("a read of rows");
    let mut part = || parts.next().and_then(list).ok_or_else(strange);
    let (numbers, rows, bodies) = (part()?, part()?, part()?);
    let mut bodies = bodies.into_iter();
    let read = |(seq, value): (Value, Value)| {
        let Some(value) = bytes(value) else { return Ok(None) };
        let seq = bytes(seq).and_then(|seq| seq.try_into().ok()).map(u64::from_be_bytes).ok_or_else(strange)?;
        let mut read = row::decode(seq, value)?;
        match with {
            Bodies::Without => read.row.body = Bytes::new(),
            Bodies::With if read.is_apart => {
                let body = bodies.next().and_then(bytes).ok_or_else(|| row::damaged(seq, "its body is gone"))?;
                read.row.body = body.into();
            }
            Bodies::With => {}
        }
        Ok(Some(read.row))
    };
    numbers.into_iter().zip(rows).map(read).collect()
}

/// A part of an order, in which every number has a row; with what the script says of the last one if there are more.
struct Stretch {
    rows: Vec<Row>,
    last: Option<Value>,
}

/// Nothing if this has to wait for the next round.
fn stretch(answer: Value, with: Bodies) -> Result<Option<Stretch>, StoreError> {
    let parts = list(answer).ok_or_else(|| odd("a read of rows"))?;
    if parts.is_empty() {
        return Ok(None);
    }
    let mut parts = parts.into_iter();
    let rows: Option<Vec<Row>> = rows(&mut parts, with)?.into_iter().collect();
    let missing = || StoreError::damaged("an order in Redis", "a row that it names is nowhere else");
    let last = parts.next().filter(|last| *last != Value::Nil);
    Ok(Some(Stretch { rows: rows.ok_or_else(missing)?, last }))
}

fn page(answer: Value, with: Bodies) -> Result<Option<Page<Position>>, StoreError> {
    let Some(Stretch { rows, last }) = stretch(answer, with)? else { return Ok(None) };
    let strange = || odd("a scan");
    let next = last.map(|last| {
        let mut parts = list(last).ok_or_else(strange)?.into_iter().map_while(bytes);
        let (Some(seq), Some(at)) = (parts.next(), parts.next()) else { return Err(strange()) };
        row::position(&seq, &at).ok_or_else(strange)
    });
    Ok(Some(Page { rows, next: next.transpose()? }))
}

fn members(answer: Value, with: Bodies) -> Result<Option<Page<u64>>, StoreError> {
    let Some(Stretch { rows, last }) = stretch(answer, with)? else { return Ok(None) };
    let seq = |last: Value| bytes(last).and_then(|seq| seq.try_into().ok()).map(u64::from_be_bytes);
    let next = last.map(|last| seq(last).ok_or_else(|| odd("a find")));
    Ok(Some(Page { rows, next: next.transpose()? }))
}

fn go_on<C>(page: Page<C>, next: impl FnOnce(C) -> C) -> Page<C> {
    Page { rows: page.rows, next: page.next.map(next) }
}

fn tallies(answer: Value) -> Result<Vec<(Tally, i64)>, StoreError> {
    let strange = || StoreError::damaged("the hash of tallies in Redis", "a field of it is no tally, or no count");
    let read = |(name, count): (Value, Value)| {
        let tally = bytes(name).and_then(|name| tally::decode(&name)).ok_or_else(strange)?;
        Ok((tally, number(&count).ok_or_else(strange)?))
    };
    // The field without a name is there for another reason: see commit.lua.
    let fields = pairs(answer).ok_or_else(strange)?.into_iter().filter(|(name, _)| text(name) != Some(""));
    let mut tallies = fields.map(read).collect::<Result<Vec<_>, StoreError>>()?;
    tallies.sort();
    Ok(tallies)
}
