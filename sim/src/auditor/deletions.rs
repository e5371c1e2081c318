//! Deletions: when they begin, when they are over, and who may be told so.

use punctual_core::store::{Change, Key, Table};
use punctual_core::{Command, Name, Subject};

use super::Ledger;
use super::guess::Shadow;
use super::ledger::is_settings;
use crate::record::StepRecord;

/// A deletion that is under way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deletion {
    Topic(Name),
    Queue(Name),
}

impl Deletion {
    pub fn about(subject: Subject) -> Deletion {
        match subject {
            Subject::Topic(name) => Deletion::Topic(name),
            Subject::Queue(name) => Deletion::Queue(name),
        }
    }

    /// The deletion that a change says has begun.
    fn noted(change: &Change) -> Option<Deletion> {
        match change {
            Change::Insert { row, .. } if is_settings(change) && row.key.id() == "closing" => {
                Some(Deletion::of(&row.key))
            }
            _ => None,
        }
    }

    /// The deletion that is over with a change.
    fn ended(change: &Change) -> Option<Deletion> {
        match change {
            Change::Remove { place } if is_settings(change) && place.key.id().is_empty() => {
                Some(Deletion::of(&place.key))
            }
            _ => None,
        }
    }

    fn of(key: &Key) -> Deletion {
        let name = |text: &str| Name::new(text).expect("it was stored as a name");
        if key.topic().is_empty() { Deletion::Queue(name(key.queue())) } else { Deletion::Topic(name(key.topic())) }
    }

    /// The deletion that a command asks for.
    fn asked(command: &Command) -> Option<Deletion> {
        match command {
            Command::DeleteTopic { name, .. } => Some(Deletion::Topic(name.clone())),
            Command::DeleteQueue { name, .. } => Some(Deletion::Queue(name.clone())),
            Command::Adopt(adopt) if adopt.adjustment.is_deletion() => {
                Some(Deletion::about(adopt.adjustment.subject()))
            }
            _ => None,
        }
    }

    /// The same, if the answer to it is to say that it is over.
    fn awaited(command: &Command) -> Option<Deletion> {
        Deletion::asked(command).filter(|_| !matches!(command, Command::Adopt(adopt) if !adopt.to_its_end))
    }
}

impl Ledger {
    /// A deletion is noted when it begins; one that has nothing to clear away is over at once.
    pub(super) fn begin_deletions(&mut self, record: &StepRecord) {
        let begun = |change: &Change| Deletion::noted(change).or_else(|| Deletion::ended(change));
        self.deletions.extend(record.changes().iter().filter_map(begun));
    }

    /// Deletions that are over with this step: nothing of theirs may be there any more. And none that somebody was
    /// told of goes on.
    pub(super) fn end_deletions(&mut self, record: &StepRecord) -> Option<String> {
        for deletion in record.changes().iter().filter_map(Deletion::ended) {
            self.deletions.remove(&deletion);
            self.settings.forget(&deletion);
            let left = match &deletion {
                Deletion::Topic(name) => self.rows.keys().find(|key| key.topic() == name.as_str()),
                Deletion::Queue(name) => {
                    let here = |row: &Shadow| row.table != Table::History && row.state.queue.as_ref() == Some(name);
                    let waits_again = |row: &Shadow| row.is_waiting();
                    self.rows.iter().find(|(_, row)| here(row) && !waits_again(row)).map(|(key, _)| key)
                }
            };
            if let Some(key) = left {
                return Some(format!("{deletion:?} is over, but {key:?} is still there"));
            }
        }
        let told = record.requests.iter().enumerate();
        let told = told.filter(|(_, (tag, _))| matches!(record.answers.get(tag), Some(Ok(_))));
        let mut told = told.filter_map(|(place, (_, command))| Some((place, Deletion::awaited(command)?)));
        let goes_on = told.find(|(place, deletion)| {
            self.deletions.contains(deletion) && !may_have_begun_after(record, *place, deletion)
        });
        goes_on.map(|(_, deletion)| format!("{deletion:?} was answered, but goes on"))
    }
}

/// Whether a deletion may have begun in this step, and after the answer to the request at this place. Who comes late with
/// a change that was made long ago is told that it is over, whatever has come to be under that name since and is deleted by
/// another change.
fn may_have_begun_after(record: &StepRecord, place: usize, deletion: &Deletion) -> bool {
    let Command::Adopt(early) = &record.requests[place].1 else { return false };
    let is_new = record.changes().iter().any(|change| Deletion::noted(change).as_ref() == Some(deletion));
    let mut later = record.requests[place + 1..].iter().filter(|(tag, command)| {
        let is_another = !matches!(command, Command::Adopt(late) if late.number <= early.number);
        let is_refused = matches!(record.answers.get(tag), Some(Err(_)));
        is_another && !is_refused && Deletion::asked(command).as_ref() == Some(deletion)
    });
    is_new && later.next().is_some()
}

#[cfg(test)]
mod tests {
    use punctual_core::store::Change;
    use punctual_core::{
        Adjustment, Adopt, Answer, Command, Millis, Phase, QueueSettings, State, Subject, Task, TopicSettings,
    };

    use crate::auditor::Promise;
    use crate::auditor::steps::{NOW, audit, name, schedule, steps};
    use crate::record::StepRecord;

    fn delete(number: u64, subject: Subject) -> Command {
        let adjustment = Adjustment::Delete { subject, force: true };
        Command::Adopt(Box::new(Adopt { number, adjustment, to_its_end: true }))
    }

    /// A topic is deleted as change 5 and comes to be anew. Then these changes delete it, step by step: they are the requests
    /// from 3 on.
    fn deleted_again(changes: &[&[u64]]) -> Vec<StepRecord> {
        let topic = || name("t");
        let put = Command::PutTopic { name: topic(), settings: Box::new(TopicSettings::default()) };
        let delete = |number: &u64| delete(*number, Subject::Topic(topic()));
        let mut all = vec![vec![put, delete(&5)]];
        // It is cleared away table by table.
        all.extend([const { Vec::new() }; 3]);
        all.push(vec![schedule("x", Task::new(topic(), "body"))]);
        all.extend(changes.iter().map(|numbers| numbers.iter().map(delete).collect()));
        let records = steps(all.into_iter().map(|commands| (NOW, commands)).collect());
        assert_eq!(records[3].answers.get(&1), Some(&Ok(Answer::Deleted(0))), "it is over");
        assert!(matches!(records[4].answers.get(&2), Some(Ok(Answer::Scheduled(_)))), "it is there again");
        records
    }

    #[test]
    fn who_comes_late_with_a_deletion_is_told_so_before_the_next_one_begins() {
        let records = deleted_again(&[&[5, 6]]);
        assert_eq!(records[5].answers.get(&3), Some(&Ok(Answer::Deleted(0))), "it was over before");
        assert_eq!(records[5].answers.get(&4), None, "the next one goes on");
        assert_eq!(audit(&records), None);
    }

    #[test]
    fn who_comes_late_with_a_deletion_and_is_told_so_while_the_next_one_goes_on_is_noticed() {
        for (changes, step) in [(&[&[6, 5][..]][..], 5), (&[&[6], &[5]], 6), (&[&[6], &[5, 7]], 6)] {
            let mut records = deleted_again(changes);
            assert_eq!(records[step].answers.get(&4), None, "it waits for what goes on: {changes:?}");
            assert_eq!(audit(&records), None, "{changes:?}");
            records[step].answers.insert(4, Ok(Answer::Deleted(0)));
            assert_eq!(audit(&records), Some(Promise::CertainAnswers), "{changes:?}");
        }
    }

    /// A task becomes too old in a queue that is being deleted, before the deletion comes to it: others stand before it.
    fn too_old_meanwhile(dead_letter: Option<&str>) -> Vec<StepRecord> {
        let settings = QueueSettings { dead_letter: dead_letter.map(name), ..QueueSettings::default() };
        let mut first = vec![Command::PutQueue { name: name("t"), settings: Box::new(settings) }];
        first.extend((0..300).map(|id| schedule(&format!("{id}"), Task::new(name("other"), "body").after(Millis(1)))));
        let mortal = Task { ttl: Some(Millis(2_000)), ..Task::new(name("t"), "body").after(Millis(100)) };
        first.push(schedule("x", mortal));
        let later = NOW.plus(Millis(5_000));
        let deletion = delete(1, Subject::Queue(name("t")));
        let rest = (0..9).map(|_| (later, Vec::new()));
        steps([(NOW, first), (NOW, vec![deletion])].into_iter().chain(rest).collect())
    }

    fn is_on_its_way(change: &Change) -> bool {
        matches!(change, Change::Update { state, .. } if matches!(State::decode(state).phase, Phase::Forwarding { .. }))
    }

    #[test]
    fn what_dies_in_a_queue_that_is_being_deleted_goes_by_its_settings() {
        let records = too_old_meanwhile(Some("graves"));
        assert!(records[2].changes().iter().any(is_on_its_way), "{:?}", records[2].batch);
        let is_told = |record: &StepRecord| record.answers.contains_key(&302);
        assert!(records.iter().any(is_told), "the deletion comes to its end");
        assert_eq!(audit(&records), None);
    }

    #[test]
    fn what_dies_in_a_queue_that_is_being_deleted_and_goes_elsewhere_is_noticed() {
        let mut records = too_old_meanwhile(None);
        assert_eq!(audit(&records), None);
        records[2] = too_old_meanwhile(Some("graves")).remove(2);
        assert_eq!(audit(&records), Some(Promise::CertainAnswers));
    }
}
