//! The ledger: every row of a shard as it must stand in the store, by the steps that took effect.

use std::collections::{BTreeMap, BTreeSet};

use punctual_core::store::{Change, Fence, Key, Place, Table};
use punctual_core::{
    Adjustment, Answer, Command, Matching, Name, Phase, QueueSettings, Shift, State, Subject, Sweep, SweepAction,
    Timestamp, TopicSettings,
};

use super::deletions::Deletion;
use super::guess::Shadow;
use crate::record::{StepRecord, Tag};

/// What one shard holds.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Its tasks, deliveries and dead letters.
    pub rows: BTreeMap<Key, Shadow>,
    /// The deliveries that tasks were spread to, by task.
    parts: BTreeMap<Key, BTreeSet<Key>>,
    pub(super) settings: Settings,
    /// Sweeps that have begun and were not answered.
    pub(super) sweeps: BTreeMap<Tag, Sweeping>,
    /// Deletions that have begun and are not over, whoever waits for them.
    pub(super) deletions: BTreeSet<Deletion>,
    pub(super) tokens: BTreeSet<u64>,
    /// The numbers of changes of settings that it has adopted.
    pub(super) adopted: BTreeSet<u64>,
    /// The last step that took effect.
    pub(super) last: Option<(Fence, u64)>,
}

/// A sweep that is under way.
#[derive(Clone, Debug)]
pub(super) struct Sweeping {
    pub sweep: Sweep,
    /// Tasks that it should cancel, that waited when it began, and to which nothing has happened since.
    pub unswept: BTreeSet<Key>,
}

/// The settings of topics and queues. While a step is looked at, those before it and those after
/// it are possible.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    topics: BTreeMap<Name, Vec<TopicSettings>>,
    queues: BTreeMap<Name, Vec<QueueSettings>>,
}

impl Settings {
    pub fn topic(&self, name: &str) -> Vec<TopicSettings> {
        self.topics.get(name).cloned().unwrap_or_else(|| vec![TopicSettings::default()])
    }

    /// Whether there is a queue of this name whose settings were put.
    pub fn has_queue(&self, name: &str) -> bool {
        self.queues.contains_key(name)
    }

    pub fn queue(&self, name: &str) -> Vec<QueueSettings> {
        self.queues.get(name).cloned().unwrap_or_else(|| vec![QueueSettings::default()])
    }

    /// Takes note of settings that a step put in force.
    pub fn learn(&mut self, record: &StepRecord) {
        for (tag, command) in &record.requests {
            let name = match command {
                Command::PutTopic { name, .. }
                | Command::PutQueue { name, .. }
                | Command::PauseTopic { name, .. }
                | Command::PauseQueue { name, .. }
                | Command::DeleteTopic { name, .. }
                | Command::DeleteQueue { name, .. } => name,
                _ => continue,
            };
            match record.answers.get(tag) {
                // What is put and deleted in one step leaves no change of it in the store.
                Some(Ok(Answer::Deleted(_))) => match command {
                    Command::DeleteTopic { .. } => {
                        self.topics.entry(name.clone()).or_default().push(TopicSettings::default())
                    }
                    _ => self.queues.entry(name.clone()).or_default().push(QueueSettings::default()),
                },
                Some(Ok(Answer::Topic(settings))) => {
                    self.topics
                        .entry(name.clone())
                        .or_insert_with(|| vec![TopicSettings::default()])
                        .push(settings.clone());
                }
                Some(Ok(Answer::Queue(settings))) => {
                    self.queues
                        .entry(name.clone())
                        .or_insert_with(|| vec![QueueSettings::default()])
                        .push(settings.clone());
                }
                _ => {}
            }
        }
    }

    /// Takes note of changes that a step adopted. What is being deleted keeps what it has until it is gone: what of it has
    /// yet to die goes by that.
    pub fn adopt(&mut self, adopted: &[(u64, Adjustment)], deletions: &BTreeSet<Deletion>) {
        let stays = |adjustment: &Adjustment| deletions.contains(&Deletion::about(adjustment.subject()));
        for (_, adjustment) in adopted.iter().filter(|(_, change)| !change.is_deletion() || !stays(change)) {
            let variant = match adjustment {
                Adjustment::PutTopic { settings, .. } => (Some((**settings).clone()), None),
                Adjustment::PutQueue { settings, .. } => (None, Some((**settings).clone())),
                // What is put and deleted in one step leaves no change of it in the store.
                Adjustment::Delete { subject: Subject::Topic(_), .. } => (Some(TopicSettings::default()), None),
                Adjustment::Delete { .. } => (None, Some(QueueSettings::default())),
            };
            let name = adjustment.subject().name().clone();
            if let Some(settings) = variant.0 {
                self.topics.entry(name.clone()).or_insert_with(|| vec![TopicSettings::default()]).push(settings);
            }
            if let Some(settings) = variant.1 {
                self.queues.entry(name).or_insert_with(|| vec![QueueSettings::default()]).push(settings);
            }
        }
    }

    /// What is deleted has no settings any more; if it comes to be again, it has the usual ones.
    pub fn forget(&mut self, deletion: &Deletion) {
        match deletion {
            Deletion::Topic(name) => _ = self.topics.remove(name),
            Deletion::Queue(name) => _ = self.queues.remove(name),
        }
    }

    /// Only the latest count from now on.
    pub fn settle(&mut self) {
        for variants in self.topics.values_mut() {
            variants.drain(..variants.len() - 1);
        }
        for variants in self.queues.values_mut() {
            variants.drain(..variants.len() - 1);
        }
    }
}

impl Ledger {
    /// How each row that a step changes looks afterwards, or why the changes cannot be.
    pub(super) fn after(&self, record: &StepRecord) -> Result<BTreeMap<Key, Option<Shadow>>, String> {
        let mut after = BTreeMap::new();
        for change in record.changes() {
            if is_settings(change) {
                continue;
            }
            let key = change.key();
            let shadow = match change {
                Change::Insert { row, replaces } => {
                    match replaces {
                        Some(place) => _ = self.standing_at(place)?,
                        None if self.rows.contains_key(key) => return Err(format!("{key:?} is inserted twice")),
                        None => {}
                    }
                    Some(Shadow::of(row))
                }
                Change::Update { place, table, at, state } => {
                    let before = self.standing_at(place)?;
                    Some(Shadow { table: *table, at: *at, state: State::decode(state), ..before.clone() })
                }
                Change::Remove { place } => {
                    self.standing_at(place)?;
                    None
                }
            };
            if after.insert(key.clone(), shadow).is_some() {
                return Err(format!("{key:?} changes twice in one batch"));
            }
        }
        Ok(after)
    }

    fn standing_at(&self, place: &Place) -> Result<&Shadow, String> {
        let row = self.rows.get(&place.key).ok_or_else(|| format!("{:?} is changed but is not there", place.key))?;
        let here = row.table == place.table && row.at == place.position.at && row.seq == place.position.seq;
        if here { Ok(row) } else { Err(format!("{:?} is not where it is changed: {place:?} but {row:?}", place.key)) }
    }

    /// Sweeps and deletions begin.
    pub(super) fn begin_jobs(&mut self, record: &StepRecord) {
        for (tag, command) in &record.requests {
            if let Command::Sweep(sweep) = command {
                let mut sweep = sweep.clone();
                // However many steps it takes, a delay counts from when it was asked for.
                if let SweepAction::Shift(shift @ Shift::In(_)) = &mut sweep.action {
                    *shift = Shift::To(shift.apply(Timestamp::ZERO, record.now, record.counts_from(*tag)));
                }
                self.begin_sweep(*tag, &sweep);
            }
        }
        self.begin_deletions(record);
    }

    /// A sweep begins.
    fn begin_sweep(&mut self, tag: Tag, sweep: &Sweep) {
        let mut unswept = BTreeSet::new();
        if let (Matching::Key { key, topic }, SweepAction::Cancel, false) =
            (&sweep.matching, sweep.action, sweep.dry_run)
        {
            let meant = self.rows.iter().filter(|(row_key, row)| {
                let of_topic = topic.as_ref().is_none_or(|topic| row_key.topic() == topic.as_str());
                row.is_waiting() && row.group.as_ref() == Some(key) && of_topic && row_key.queue().is_empty()
            });
            unswept.extend(meant.map(|(key, _)| key.clone()));
        }
        self.sweeps.insert(tag, Sweeping { sweep: sweep.clone(), unswept });
    }

    /// Makes the changes of a step.
    pub(super) fn apply(&mut self, after: BTreeMap<Key, Option<Shadow>>) {
        for (key, shadow) in after {
            self.sweeps.values_mut().for_each(|sweeping| _ = sweeping.unswept.remove(&key));
            if !key.queue().is_empty() {
                let parts = self.parts.entry(key.of_task()).or_default();
                if shadow.is_some() {
                    parts.insert(key.clone())
                } else {
                    parts.remove(&key)
                };
            }
            match shadow {
                Some(shadow) => _ = self.rows.insert(key, shadow),
                None => _ = self.rows.remove(&key),
            }
        }
    }

    /// What is wrong between a task that was broadcast and its deliveries.
    pub(super) fn family_trouble(&self, task: &Key) -> Option<String> {
        // It is cleared away row by row.
        if self.deletions.iter().any(|deletion| matches!(deletion, Deletion::Topic(name) if **name == *task.topic())) {
            return None;
        }
        let row = self.rows.get(task);
        let none = BTreeSet::new();
        let parts = self.parts.get(task).unwrap_or(&none);
        match row.map(|row| &row.state.phase) {
            Some(Phase::Spread(known)) => {
                for part in known {
                    let there = self.rows.contains_key(&task.in_queue(&part.queue));
                    if there == part.finished.is_some() {
                        return Some(format!("its delivery in {} is {part:?}, but its row there: {there}", part.queue));
                    }
                }
                (known.iter().filter(|part| part.finished.is_none()).count() != parts.len())
                    .then(|| format!("it knows of {known:?} but has {parts:?}"))
            }
            other => (!parts.is_empty()).then(|| format!("it is {other:?} but has deliveries {parts:?}")),
        }
    }
}

pub(super) fn is_settings(change: &Change) -> bool {
    match change {
        Change::Insert { row, .. } => row.table == Table::Settings,
        Change::Update { place, .. } | Change::Remove { place } => place.table == Table::Settings,
    }
}
