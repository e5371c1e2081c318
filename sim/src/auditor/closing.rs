//! The end of a run: the ledger, the store, the tallies, the counts and the forecast must agree,
//! and nothing may be left lying about.

use std::collections::BTreeMap;

use punctual_core::store::{Bodies, Key, Look, Position, Row, Scan, ShardId, Store, Table, Tally, TallyKind};
use punctual_core::{Counts, Millis, Name, Phase, Timestamp, URGENT_PRIORITY};

use super::guess::Shadow;
use super::{Auditor, Ledger, Promise};

const MINUTE: u64 = 60_000;
const DAY: u64 = 24 * 60 * MINUTE;
/// By how much rows may be kept too long.
const GRACE: Millis = Millis::from_secs(10);

/// What an open shard says about itself at the end.
#[derive(Clone, Debug)]
pub struct Books {
    /// The shard's time.
    pub now: Timestamp,
    /// Its counts.
    pub counts: Counts,
    /// Its forecast, by day.
    pub days: Vec<(Timestamp, u64)>,
    /// Its forecast, by minute.
    pub minutes: Vec<(Timestamp, u64)>,
}

impl Auditor {
    /// Compares everything with everything. What was due before `drained` must have come to an end.
    pub fn close(&mut self, store: &dyn Store, books: &BTreeMap<ShardId, Books>, drained: Timestamp, shards: u16) {
        self.compare_changes(store, shards);
        for key in self.confirmed.difference(&self.ever).cloned().collect::<Vec<Key>>() {
            self.accuse(Promise::NothingIsLost, &format!("{key:?}"), "it was confirmed but never taken".into());
        }
        let ledgers = std::mem::take(&mut self.ledgers);
        for (shard, ledger) in &ledgers {
            let mut complain = |promise, subject: &Key, what: String| self.accuse(promise, &text(subject), what);
            compare_rows(store, *shard, ledger, &mut complain);
            for (key, row) in ledger.rows.iter().filter(|(_, row)| row.is_open() && row.at <= drained) {
                complain(Promise::NothingIsLost, key, format!("it never came to an end: {row:?}"));
            }
            let none = Key::new("", "", "");
            if let Some(trouble) = tally_trouble(store, *shard, ledger) {
                complain(Promise::BooksAgree, &none, format!("shard {}: {trouble}", shard.0));
            }
            if let Some((key, row)) = books.get(shard).and_then(|books| ledger.overdue(books.now)) {
                complain(Promise::Bounded, key, format!("it is kept longer than it should be: {row:?}"));
            }
            if let Some(trouble) = books.get(shard).and_then(|books| books.trouble(ledger)) {
                complain(Promise::BooksAgree, &none, format!("shard {}: {trouble}", shard.0));
            }
        }
        self.ledgers = ledgers;
    }
}

fn text(key: &Key) -> String {
    if key.topic().is_empty() { String::new() } else { format!("{key:?}") }
}

/// All rows of a table.
fn table(store: &dyn Store, shard: ShardId, table: Table) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut next = Some(Position::START);
    while let Some(from) = next {
        let scan = Scan { table, from, until: Timestamp::NEVER, topic: None, limit: 500, bodies: Bodies::With };
        let page = store.scan(shard, &scan).expect("the store is well at the end");
        rows.extend(page.rows);
        next = page.next;
    }
    rows
}

fn compare_rows(store: &dyn Store, shard: ShardId, ledger: &Ledger, complain: &mut impl FnMut(Promise, &Key, String)) {
    let mut stored: BTreeMap<Key, Shadow> = BTreeMap::new();
    for row in [Table::Live, Table::Dead, Table::History].into_iter().flat_map(|name| table(store, shard, name)) {
        stored.insert(row.key.clone(), Shadow::of(&row));
    }
    for (key, row) in &ledger.rows {
        match stored.remove(key) {
            None => complain(Promise::NothingIsLost, key, format!("the store has lost it: {row:?}")),
            Some(other) if other != *row => {
                let what = format!("the store has it as {other:?} but it should be {row:?}");
                complain(Promise::NothingIsLost, key, what);
            }
            Some(_) => {}
        }
    }
    for (key, row) in stored {
        complain(Promise::SameIdIsOneTask, &key, format!("nobody scheduled it: {row:?}"));
    }
}

/// What a row counts as: its kind by topic, its kind by queue, and the queue.
fn kinds(row: &Shadow) -> (Option<TallyKind>, Option<(TallyKind, &Name)>) {
    let queue = row.state.queue.as_ref();
    match (row.table, &row.state.phase) {
        (Table::Live, Phase::Waiting) => (Some(TallyKind::Waiting), None),
        (Table::Live, Phase::Leased { .. }) => {
            (Some(TallyKind::TopicLeased), queue.map(|queue| (TallyKind::QueueLeased, queue)))
        }
        (Table::Live, Phase::Forwarding { .. }) | (Table::Dead, _) => {
            (Some(TallyKind::TopicDead), queue.map(|queue| (TallyKind::QueueDead, queue)))
        }
        (Table::History, _) => (Some(TallyKind::History), None),
        _ => (None, None),
    }
}

/// The tallies by topic, queue and day, counted anew.
fn recount(ledger: &Ledger) -> BTreeMap<Tally, i64> {
    let mut tallies = BTreeMap::new();
    for (key, row) in &ledger.rows {
        let (of_topic, of_queue) = kinds(row);
        let topic = Name::new(key.topic()).expect("a topic has a name");
        let mut add = |tally| *tallies.entry(tally).or_insert(0) += 1;
        of_topic.into_iter().for_each(|kind| add(Tally::named(kind, &topic)));
        of_queue.into_iter().for_each(|(kind, queue)| add(Tally::named(kind, queue)));
        if row.is_waiting() {
            add(Tally::slot(TallyKind::DueDay, row.at.as_millis() / DAY));
            add(Tally::slot(TallyKind::DueMinute, row.at.as_millis() / MINUTE));
        }
    }
    tallies
}

fn tally_trouble(store: &dyn Store, shard: ShardId, ledger: &Ledger) -> Option<String> {
    let stored: BTreeMap<Tally, i64> =
        store.tallies(shard).expect("the store is well at the end").into_iter().collect();
    let counted = recount(ledger);
    let is_minute = |tally: &Tally| tally.kind == TallyKind::DueMinute;
    let exact = |tallies: &BTreeMap<Tally, i64>| -> BTreeMap<Tally, i64> {
        tallies.iter().filter(|(tally, _)| !is_minute(tally)).map(|(tally, count)| (tally.clone(), *count)).collect()
    };
    if exact(&stored) != exact(&counted) {
        return Some(format!("the store's tallies are {:?}, its rows {:?}", exact(&stored), exact(&counted)));
    }
    // Minutes are counted up to a horizon: right before it, zero after it, something between in it.
    let of = |tallies: &BTreeMap<Tally, i64>, minute: &Tally| tallies.get(minute).copied().unwrap_or(0);
    let minutes: Vec<&Tally> = stored.keys().chain(counted.keys()).filter(|tally| is_minute(tally)).collect();
    let last = minutes.iter().filter(|minute| of(&stored, minute) != 0).map(|minute| minute.slot).max().unwrap_or(0);
    let wrong = minutes.iter().find(|minute| {
        let (stored, counted) = (of(&stored, minute), of(&counted, minute));
        if minute.slot < last { stored != counted } else { stored > counted || stored < 0 }
    });
    wrong.map(|minute| format!("{minute:?} is {} in the store, its rows {}", of(&stored, minute), of(&counted, minute)))
}

impl Ledger {
    /// A finished task or dead letter that was kept long enough and is still there.
    fn overdue(&self, now: Timestamp) -> Option<(&Key, &Shadow)> {
        self.rows.iter().find(|(key, row)| {
            let kept_for = match (row.table, &row.state.queue) {
                (Table::History, _) => self.settings.topic(key.topic()).last().map(|topic| topic.history),
                (Table::Dead, Some(queue)) => self.settings.queue(queue).last().and_then(|queue| queue.dead_retention),
                _ => None,
            };
            kept_for.is_some_and(|period| row.at.plus(period).plus(GRACE) <= now)
        })
    }
}

impl Books {
    fn trouble(&self, ledger: &Ledger) -> Option<String> {
        let counted = recount(ledger);
        let of = |kind, name: &Name| counted.get(&Tally::named(kind, name)).copied().unwrap_or(0) as u64;
        for topic in &self.counts.topics {
            let said = [topic.waiting, topic.leased, topic.dead, topic.history];
            let kinds = [TallyKind::Waiting, TallyKind::TopicLeased, TallyKind::TopicDead, TallyKind::History];
            let right = kinds.map(|kind| of(kind, &topic.name));
            if said != right {
                return Some(format!("topic {} counts {said:?}, its rows are {right:?}", topic.name));
            }
        }
        for queue in &self.counts.queues {
            let said = [queue.leased, queue.dead];
            let right = [TallyKind::QueueLeased, TallyKind::QueueDead].map(|kind| of(kind, &queue.name));
            if said != right {
                return Some(format!("queue {} counts {said:?}, its rows are {right:?}", queue.name));
            }
        }
        let ready: u64 = self.counts.queues.iter().map(|queue| queue.ready).sum();
        let by_rows = || ledger.rows.values().filter(|row| row.is_waiting() && row.at <= self.now);
        let right = by_rows().count() as u64;
        if ready != right {
            return Some(format!("{ready} are ready by its counts, {right} by its rows"));
        }
        let urgent: u64 = self.counts.queues.iter().map(|queue| queue.urgent).sum();
        let right = by_rows().filter(|row| row.state.priority < URGENT_PRIORITY).count() as u64;
        if urgent != right {
            return Some(format!("{urgent} are urgent by its counts, {right} by its rows"));
        }
        let by_day = forecast_trouble(&self.days, DAY, ledger);
        by_day.or_else(|| forecast_trouble(&self.minutes, MINUTE, ledger))
    }
}

fn forecast_trouble(slots: &[(Timestamp, u64)], length: u64, ledger: &Ledger) -> Option<String> {
    for (start, said) in slots {
        let within = *start..start.plus(Millis(length));
        let right = ledger.rows.values().filter(|row| row.is_waiting() && within.contains(&row.at)).count() as u64;
        if *said != right {
            return Some(format!("the forecast from {start} is {said}, by its rows {right}"));
        }
    }
    None
}
