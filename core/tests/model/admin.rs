//! Topics and queues, and changes to all that match.

use punctual_core::store::{Key, Table};
use punctual_core::{
    Adjustment, Adopt, Among, Answer, Ending, Matching, Name, Phase, Preview, QueueSettings, Refused, Reply, Select,
    Standing, Sweep, SweepAction, Swept, TimeRange, Timestamp, TopicSettings,
};

use super::{Model, Number, Row};

impl Model {
    /// Makes a change of settings that all shards make, unless it was made already.
    pub fn adopt(&mut self, Adopt { number, adjustment, .. }: Adopt) -> Reply {
        if number > self.adopted {
            match adjustment {
                Adjustment::PutTopic { name, settings } => _ = self.adjust_topic(&name, *settings)?,
                Adjustment::PutQueue { name, settings } => _ = self.adjust_queue(&name, *settings)?,
                Adjustment::Delete { .. } => unreachable!("deletions are asked for without a number here"),
            }
            self.adopted = number;
        }
        Ok(Answer::Noted)
    }

    pub fn put_topic(&mut self, name: &Name, settings: TopicSettings) -> Reply {
        settings.check()?;
        self.adjust_topic(name, settings)
    }

    fn adjust_topic(&mut self, name: &Name, settings: TopicSettings) -> Reply {
        if self.closing_topics.contains_key(name) {
            return Err(Refused::BeingDeleted(name.clone()));
        }
        let is_new = self.topics.insert(name.clone(), settings.clone()).is_none();
        let mut queues: Vec<Name> = settings.feeds.iter().flatten().map(|binding| binding.queue.clone()).collect();
        if is_new && settings.feeds.is_none() {
            queues.push(name.clone());
        }
        // What is being deleted comes to be again when it is used.
        queues.retain(|queue| !self.closing_queues.contains_key(queue));
        queues.iter().for_each(|queue| self.use_queue(queue));
        Ok(Answer::Topic(settings))
    }

    pub fn put_queue(&mut self, name: &Name, settings: QueueSettings) -> Reply {
        settings.check()?;
        self.adjust_queue(name, settings)
    }

    fn adjust_queue(&mut self, name: &Name, settings: QueueSettings) -> Reply {
        if self.closing_queues.contains_key(name) {
            return Err(Refused::BeingDeleted(name.clone()));
        }
        self.queues.insert(name.clone(), settings.clone());
        Ok(Answer::Queue(settings))
    }

    pub fn pause_topic(&mut self, name: &Name, paused: bool) -> Reply {
        if self.closing_topics.contains_key(name) {
            return Err(Refused::BeingDeleted(name.clone()));
        }
        let Some(settings) = self.topics.get(name) else { return Err(Refused::NoSuchTopic(name.clone())) };
        self.put_topic(name, TopicSettings { paused, ..settings.clone() })
    }

    pub fn pause_queue(&mut self, name: &Name, until: Option<Timestamp>) -> Reply {
        if self.closing_queues.contains_key(name) {
            return Err(Refused::BeingDeleted(name.clone()));
        }
        let Some(settings) = self.queues.get_mut(name) else { return Err(Refused::NoSuchQueue(name.clone())) };
        settings.paused_until = until;
        Ok(Answer::Queue(settings.clone()))
    }

    pub fn delete_topic(&mut self, name: &Name, force: bool) -> Reply {
        if let Some(rows) = self.closing_topics.get(name) {
            return Ok(Answer::Deleted(*rows));
        }
        if !self.topics.contains_key(name) {
            return Err(Refused::NoSuchTopic(name.clone()));
        }
        // A task that was broadcast counts once for each open delivery.
        let holds = |row: &Row| {
            row.topic == *name && row.table != Table::History && !matches!(row.state.phase, Phase::Spread(_))
        };
        let rows = self.those(holds).len() as u64;
        if rows > 0 && !force {
            return Err(Refused::NotEmpty { name: name.clone(), rows });
        }
        let tasks = self.those(|row| row.topic == *name && row.part.is_none()).len() as u64;
        self.rows.retain(|_, row| row.topic != *name);
        self.topics.remove(name);
        self.closing_topics.insert(name.clone(), tasks);
        Ok(Answer::Deleted(tasks))
    }

    pub fn delete_queue(&mut self, name: &Name, force: bool) -> Reply {
        if let Some(rows) = self.closing_queues.get(name) {
            return Ok(Answer::Deleted(*rows));
        }
        if !self.queues.contains_key(name) {
            return Err(Refused::NoSuchQueue(name.clone()));
        }
        let belonging = self.those(|row| row.belongs_to(name));
        if !force {
            // What waits for its next attempt is not in the queue: it goes where its topic leads then.
            let waits = |number: &&Number| self.rows[number].is_waiting() && self.rows[number].ready_in.is_none();
            let rows = belonging.iter().filter(|number| !waits(number)).count() as u64;
            if rows > 0 {
                return Err(Refused::NotEmpty { name: name.clone(), rows });
            }
            self.remove_queue(name, 0);
            return Ok(Answer::Deleted(0));
        }
        let rows = belonging.len() as u64;
        for number in belonging {
            match self.rows[&number].table {
                Table::Dead => self.purge(number),
                _ => self.end(number, Ending::Cancelled),
            }
        }
        self.remove_queue(name, rows);
        Ok(Answer::Deleted(rows))
    }

    fn remove_queue(&mut self, name: &Name, rows: u64) {
        self.queues.remove(name);
        self.closing_queues.insert(name.clone(), rows);
        self.served.remove(name);
    }

    pub fn sweep(&mut self, sweep: &Sweep) -> Reply {
        self.sweep_all(sweep).map(|(swept, _)| Answer::Swept(swept))
    }

    /// Counts what a sweep would change, and names the first few.
    pub fn preview(&mut self, sweep: &Sweep) -> Reply {
        let (swept, mut samples) = self.sweep_all(&Sweep { dry_run: true, ..sweep.clone() })?;
        samples.truncate(Preview::SAMPLES);
        Ok(Answer::Preview(Preview { swept, more: false, samples }))
    }

    /// What it comes to, and the rows that it changes.
    fn sweep_all(&mut self, sweep: &Sweep) -> Result<(Swept, Vec<Key>), Refused> {
        let now = self.now;
        let mut matching = self.those(|row| sweep.within.fits(&row.topic) && row.matches(&sweep.matching, now));
        let by_number = match &sweep.matching {
            Matching::Key { .. } => true,
            Matching::Tasks(select) => select.key.is_some(),
            _ => false,
        };
        if by_number {
            matching.sort_unstable();
        }
        let (mut swept, mut samples) = (Swept::default(), Vec::new());
        let mut promised: Vec<Name> = Vec::new();
        for number in matching {
            // One change may lead to another: a task that is moved can push another one out.
            if !self.rows.get(&number).is_some_and(|row| row.matches(&sweep.matching, now)) {
                continue;
            }
            swept.matched += 1;
            let key = self.rows[&number].key();
            match self.sweep_one(number, sweep, &mut promised) {
                Outcome::Changed => {
                    swept.changed += 1;
                    samples.push(key);
                }
                Outcome::TooLate => swept.too_late += 1,
                Outcome::NoRoom => swept.no_room += 1,
            }
        }
        Ok((swept, samples))
    }

    fn sweep_one(&mut self, number: Number, sweep: &Sweep, promised: &mut Vec<Name>) -> Outcome {
        let open = match sweep.matching {
            Matching::Key { .. } => self.open_rows(number),
            Matching::Tasks(ref select) if select.table() == Table::Live => self.open_rows(number),
            Matching::Dead { .. } | Matching::History { .. } | Matching::Tasks(_) => Ok(vec![number]),
            Matching::Changed { .. } => unreachable!("what a sweep takes back is shown by facts of its own"),
        };
        let Ok(open) = open else { return Outcome::TooLate };
        let room = match sweep.action {
            SweepAction::Shift(shift) => self.check_moved(&open, Some(shift)),
            SweepAction::Replay => self.check_return(number, promised),
            SweepAction::Cancel | SweepAction::Purge => Ok(()),
            SweepAction::Spread(_) | SweepAction::Hasten | SweepAction::Undo => unreachable!("nobody asks for it"),
        };
        if room.is_err() {
            return Outcome::NoRoom;
        }
        if sweep.dry_run && sweep.action == SweepAction::Replay {
            let places = self.places_of(number);
            let is_closing = places.iter().any(|queue| self.closing_queues.contains_key(queue));
            promised.extend(places.into_iter().filter(|_| !is_closing));
        }
        for number in open.into_iter().filter(|_| !sweep.dry_run) {
            match sweep.action {
                SweepAction::Cancel => self.end(number, Ending::Cancelled),
                SweepAction::Shift(shift) => _ = self.shift(number, Some(shift), None),
                SweepAction::Replay => match self.replay(number) {
                    Ok(Standing::Dead { .. }) => return Outcome::NoRoom,
                    replayed => _ = replayed.expect("there is room"),
                },
                SweepAction::Purge => self.purge(number),
                SweepAction::Spread(_) | SweepAction::Hasten | SweepAction::Undo => unreachable!("nobody asks for it"),
            }
        }
        Outcome::Changed
    }
}

enum Outcome {
    Changed,
    TooLate,
    NoRoom,
}

impl Row {
    /// Whether it belongs to a queue and is not finished.
    fn belongs_to(&self, queue: &Name) -> bool {
        let open = self.table != Table::History;
        open && (self.ready_in.as_ref() == Some(queue) || self.state.queue.as_ref() == Some(queue))
    }

    fn is_selected(&self, select: &Select, now: Timestamp) -> bool {
        let is = |wanted: &Option<Name>, given: Option<&Name>| wanted.is_none() || wanted.as_ref() == given;
        let (is_whole, is_due) = (self.part.is_none(), self.at <= now);
        let is_waiting = self.state.phase == Phase::Waiting;
        let among = match &select.among {
            Among::Live => is_whole,
            Among::Scheduled => is_whole && is_waiting && !is_due,
            Among::Ready => is_whole && is_waiting && is_due,
            Among::Dead { reason, .. } => match &self.state.phase {
                Phase::Dead(death) => reason.is_none_or(|reason| reason == death.reason),
                _ => false,
            },
            Among::History { ending } => ending.is_none_or(|ending| self.state.phase == Phase::Finished(ending)),
        };
        self.table == select.table()
            && among
            && select.time.has(self.at)
            && is(&select.topic, Some(&self.topic))
            && is(&select.key, self.group.as_ref())
            && is(&select.queue, self.ready_in.as_ref().or(self.state.queue.as_ref()))
    }

    fn matches(&self, matching: &Matching, now: Timestamp) -> bool {
        let within = |range: &TimeRange| range.from <= self.at && self.at < range.until;
        let of_topic = |topic: &Option<Name>| topic.as_ref().is_none_or(|topic| *topic == self.topic);
        match matching {
            Matching::Key { key, topic } => {
                self.table == Table::Live && self.part.is_none() && self.group.as_ref() == Some(key) && of_topic(topic)
            }
            Matching::Dead { topic, queue, died } => {
                let of_queue = queue.is_none() || *queue == self.state.queue;
                self.table == Table::Dead && of_topic(topic) && of_queue && within(died)
            }
            Matching::History { topic, finished, ending } => {
                let ended_so = match (ending, &self.state.phase) {
                    (None, _) => true,
                    (Some(ending), Phase::Finished(is)) => ending == is,
                    (Some(_), _) => false,
                };
                self.table == Table::History && self.topic == *topic && within(finished) && ended_so
            }
            Matching::Tasks(select) => self.is_selected(select, now),
            Matching::Changed { .. } => false,
        }
    }
}
