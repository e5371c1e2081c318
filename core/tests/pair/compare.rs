//! Where the shard and the model must agree.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use punctual_core::store::{Bodies, Key, Table};
use punctual_core::view::{self, Kept, Listing, TaskView, Wanted};
use punctual_core::{Answer, Event, Forward, InLine, Line, Name, Preview, Reply, Scope, Sieve, Stage, TimeRange, Unit};

use super::numbers::{bare_reply, bare_view};
use super::{Pair, SHARD, translate};
use crate::model::Sent;

impl Pair {
    pub fn compare_answers(&mut self, expected: BTreeMap<u64, Reply>, actual: BTreeMap<u64, Reply>) {
        // What is asked for together with a deletion may let something go before that comes to it.
        let bare_count = |reply: Reply| match reply {
            Ok(Answer::Deleted(_)) if expected.len() > 1 => Ok(Answer::Deleted(0)),
            // Which of many are shown, and in which order, is the shard's own affair.
            Ok(Answer::Preview(mut preview)) => {
                let is_whole = preview.swept.changed <= Preview::SAMPLES as u64;
                preview.samples.retain(|_| is_whole);
                preview.samples.sort_unstable();
                Ok(Answer::Preview(preview))
            }
            reply => reply,
        };
        let bare = |replies: &BTreeMap<u64, Reply>| -> BTreeMap<u64, Reply> {
            replies.iter().map(|(tag, reply)| (*tag, bare_count(bare_reply(reply.clone())))).collect()
        };
        assert_eq!(bare(&actual), bare(&expected), "the shard's answers (left), the model's (right) at {}", self.now);
        for (actual, expected) in actual.values().zip(expected.values()) {
            self.learn_from_answer(actual, expected);
        }
    }

    fn compare_views(&mut self, actual: &[TaskView], expected: &[TaskView], what: &dyn Debug) {
        let bare = |views: &[TaskView]| -> Vec<TaskView> { views.iter().map(bare_view).collect() };
        assert_eq!(bare(actual), bare(expected), "{what:?} at {}", self.now);
        for (actual, expected) in actual.iter().zip(expected) {
            self.learn_from_view(actual, expected);
        }
    }

    /// Dead letters go on under ids of the shard's making, but always under the same one.
    pub fn compare_forwards(&mut self, actual: Vec<Forward>) {
        let mut expected: Vec<Sent> = std::mem::take(&mut self.model.sent);
        for Forward { key, journey, task, id } in actual {
            let place = expected.iter().position(|sent| sent.key == key);
            let sent = expected.remove(place.expect("the dead letter was to be sent on now"));
            assert_eq!(task, sent.task, "the dead letter {key:?} as it is sent on");
            let known = *self.journeys.entry(journey).or_insert(sent.journey);
            assert_eq!(known, sent.journey, "a second try is not a second journey");
            // It may have been removed right after it was sent.
            let Some(row) = self.model.rows.get_mut(&sent.number) else { continue };
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
        self.look_at_queues();
        self.look_ahead();
        self.look_at_tasks();
        self.look_at_lists();
    }

    /// What stands in each queue, in its order, and who holds what. What was handed out before the shard was opened may not be
    /// known there yet; it is counted.
    fn look_at_queues(&mut self) {
        for queue in self.model.queues.keys() {
            let line = |stage| {
                let line = Line { queue: queue.clone(), stage, from: InLine::START, limit: usize::MAX };
                self.shard.line(&line)
            };
            let ready: Vec<_> =
                line(Stage::Ready).entries.iter().map(|entry| (entry.priority, entry.position.at)).collect();
            assert_eq!(ready, self.model.ready_line(queue), "ready in {queue} at {}", self.now);
            let (leased, mut expected) = (line(Stage::Leased), self.model.leased_line(queue));
            assert_eq!(leased.entries.len() as u64 + leased.unknown, expected.len() as u64, "leased from {queue}");
            let ends: Vec<_> = leased.entries.iter().map(|entry| entry.position.at).collect();
            assert!(ends.is_sorted(), "{ends:?}");
            for end in &ends {
                let place = expected.iter().position(|(known, _)| known == end);
                expected.remove(place.unwrap_or_else(|| panic!("nothing is leased from {queue} until {end}")));
            }
            let holders = self.shard.holders(Some(queue), &Scope::ALL);
            let held: u64 = holders.holders.iter().map(|holder| holder.leases).sum();
            assert_eq!((held, holders.unknown), (leased.entries.len() as u64, leased.unknown), "who holds {queue}");
            let first = holders.holders.iter().map(|holder| holder.next_end).min();
            assert_eq!(first, ends.first().copied(), "{holders:?}");
            let names: BTreeSet<Name> = self.model.leased_line(queue).into_iter().map(|(_, name)| name).collect();
            assert!(holders.holders.iter().all(|holder| names.contains(&holder.name)), "{holders:?} {names:?}");
        }
    }

    fn look_ahead(&mut self) {
        let units = [(Unit::Minute, 90), (Unit::Hour, 80), (Unit::Day, 50), (Unit::Week, 9), (Unit::Month, 4)];
        let commands = units.map(|(unit, slots)| punctual_core::Command::Forecast { unit, slots });
        self.jump(self.now, commands.map(|command| (command.clone(), command)).to_vec(), &[]);
        self.commit_all();
    }

    fn look_at_tasks(&mut self) {
        let tasks = self.model.rows.iter().filter(|(_, row)| row.part.is_none()).map(|(number, _)| *number);
        for number in tasks.collect::<Vec<_>>() {
            let row = &self.model.rows[&number];
            let actual = view::get(&*self.store, SHARD, &row.topic, &row.id, self.now);
            let actual = actual.expect("the memory store works").expect("the model has it too");
            let (key, expected) = (row.key(), self.model.view_with_parts(number));
            self.compare_views(&[actual], &[expected], &key);
        }
    }

    fn look_at_lists(&mut self) {
        let all = TimeRange::ALL;
        let listings = [
            (Listing::Live { topic: None, state: None, wakes: all, latest_first: false }, Table::Live),
            (Listing::Kept(Kept::dead()), Table::Dead),
            (Listing::Kept(Kept::history()), Table::History),
        ];
        for (listing, table) in listings {
            let actual = self.pages(&listing, &Scope::ALL, Bodies::Without);
            self.compare_views(&actual, &self.model.table(table), &listing);
            let within = translate::all_but(Some(1));
            let own = self.pages(&listing, &within, Bodies::Without);
            let expected: Vec<TaskView> = actual.into_iter().filter(|task| within.fits(&task.topic)).collect();
            assert_eq!(own, expected, "{listing:?} within {within:?}");
        }
        for kept in [Kept::dead(), Kept::history()] {
            let mut expected = self.model.table(kept.table);
            expected.reverse();
            let listing = Listing::Kept(Kept { latest_first: true, ..kept });
            let actual = self.pages(&listing, &Scope::ALL, Bodies::Without);
            self.compare_views(&actual, &expected, &listing);
        }
        for key in (0..3).map(translate::key) {
            for table in [Table::Live, Table::Dead, Table::History] {
                let listing = Listing::Key { key: key.clone(), table };
                let actual = self.pages(&listing, &Scope::ALL, Bodies::With);
                self.compare_views(&actual, &self.model.of_key(&key, table), &listing);
            }
        }
    }

    fn pages(&self, listing: &Listing, within: &Scope, bodies: Bodies) -> Vec<TaskView> {
        let mut tasks = Vec::new();
        let mut from = Some(listing.start());
        while let Some(position) = from {
            let page = view::list(
                &*self.store,
                SHARD,
                Wanted { listing, within, limit: 3, bodies, sieve: &Sieve::ALL },
                position,
                self.now,
            );
            let page = page.expect("the memory store works");
            tasks.extend(page.tasks);
            from = page.next;
        }
        tasks
    }
}
