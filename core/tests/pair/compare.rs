//! Where the shard and the model must agree.

use std::collections::BTreeMap;

use punctual_core::store::{Bodies, Key, Position, Table};
use punctual_core::view::{self, Listing, TaskView};
use punctual_core::{Answer, Event, Forward, Reply, TimeRange, Unit};

use super::{Pair, SHARD, translate};
use crate::model::Sent;

/// Tokens are the shard's own affair.
fn without_tokens(reply: Reply) -> Reply {
    reply.map(|answer| match answer {
        Answer::Reserved(mut deliveries) => {
            deliveries.iter_mut().for_each(|delivery| delivery.lease.token = 0);
            Answer::Reserved(deliveries)
        }
        other => other,
    })
}

fn without_number(mut view: TaskView) -> TaskView {
    view.position.seq = 0;
    view
}

impl Pair {
    pub fn compare_answers(&self, expected: BTreeMap<u64, Reply>, actual: BTreeMap<u64, Reply>) {
        let bare = |replies: BTreeMap<u64, Reply>| -> BTreeMap<u64, Reply> {
            replies.into_iter().map(|(number, reply)| (number, without_tokens(reply))).collect()
        };
        assert_eq!(bare(actual), bare(expected), "the shard's answers (left), the model's (right) at {}", self.now);
    }

    /// Dead letters go on under ids of the shard's making, but always under the same one.
    pub fn compare_forwards(&mut self, actual: Vec<Forward>) {
        let mut expected: Vec<Sent> = std::mem::take(&mut self.model.sent);
        for Forward { key, task, id } in actual {
            let number = self.model.find(&key).expect("the dead letter is there");
            let place = expected.iter().position(|sent| sent.number == number);
            let sent = expected.remove(place.expect("the dead letter was to be sent on now"));
            assert_eq!(task, sent.task, "the dead letter {key:?} as it is sent on");
            let row = self.model.rows.get_mut(&number).expect("it was just found");
            assert!(id.starts_with(&format!("{}~{}.", row.id, SHARD.0)), "{id} tells where it comes from");
            let known = row.sent_as.get_or_insert(id.clone());
            assert_eq!(*known, id, "a second try is not a second task");
        }
        assert!(expected.is_empty(), "these should have been sent on: {expected:?}");
    }

    /// What happened to each row is told in its order; the order among rows is the shard's own affair.
    pub fn compare_events(&mut self, actual: Vec<Event>) {
        let mut by_row: BTreeMap<Key, (Vec<_>, Vec<_>)> = BTreeMap::new();
        for Event { at, task, queue, what, .. } in actual {
            assert_eq!(at, self.now);
            by_row.entry(task).or_default().0.push((queue, what));
        }
        for (task, queue, what) in std::mem::take(&mut self.model.events) {
            by_row.entry(task).or_default().1.push((queue, what));
        }
        for (task, (actual, expected)) in by_row {
            assert_eq!(actual, expected, "what happened to {task:?} at {}", self.now);
        }
    }

    /// Compares all that can be looked at.
    pub fn look(&mut self) {
        self.commit_all();
        assert_eq!(self.shard.counts(), self.model.counts(), "counts at {}", self.now);
        let stored = view::settings_of(&*self.store, SHARD).expect("the memory store works");
        assert_eq!((stored.topics, stored.queues), (self.model.topics.clone(), self.model.queues.clone()));
        self.look_ahead();
        self.look_at_tasks();
        self.look_at_lists();
    }

    fn look_ahead(&mut self) {
        let units = [(Unit::Minute, 90), (Unit::Hour, 80), (Unit::Day, 50)];
        let commands = units.map(|(unit, slots)| punctual_core::Command::Forecast { unit, slots });
        self.jump(self.now, commands.map(|command| (command.clone(), command)).to_vec(), &[]);
        self.commit_all();
    }

    fn look_at_tasks(&self) {
        let get = |topic, id| view::get(&*self.store, SHARD, topic, id, self.now).expect("the memory store works");
        for (number, row) in self.model.rows.iter().filter(|(_, row)| row.part.is_none()) {
            let actual = get(&row.topic, &row.id).map(without_number);
            assert_eq!(actual, Some(self.model.view_with_parts(*number)), "{:?} at {}", row.key(), self.now);
        }
    }

    fn look_at_lists(&self) {
        let all = TimeRange::ALL;
        let listings = [
            (Listing::Live { topic: None, state: None, wakes: all }, Table::Live),
            (Listing::Dead { topic: None, queue: None, died: all }, Table::Dead),
            (Listing::History { topic: None, finished: all }, Table::History),
        ];
        for (listing, table) in listings {
            assert_eq!(self.pages(&listing, Bodies::Without), self.model.table(table), "{listing:?} at {}", self.now);
        }
        for key in (0..3).map(translate::key) {
            for table in [Table::Live, Table::Dead, Table::History] {
                let listing = Listing::Key { key: key.clone(), table };
                assert_eq!(self.pages(&listing, Bodies::With), self.model.of_key(&key, table), "{listing:?}");
            }
        }
    }

    fn pages(&self, listing: &Listing, bodies: Bodies) -> Vec<TaskView> {
        let mut tasks = Vec::new();
        let mut from = Some(Position::START);
        while let Some(position) = from {
            let page = view::list(&*self.store, SHARD, listing, position, 3, bodies, self.now);
            let page = page.expect("the memory store works");
            tasks.extend(page.tasks.into_iter().map(without_number));
            from = page.next;
        }
        tasks
    }
}
