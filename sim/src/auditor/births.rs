//! Deliveries come to be when their task is spread, whenever in the step that is: it may be gone again at its end, and
//! all of them with it. Those of an earlier spread may have gone before, in the same step: who cancels a task may schedule
//! it anew.

use std::collections::BTreeMap;

use punctual_core::store::Key;
use punctual_core::{Phase, State};

use super::guess::{Candidate, Guess, Shadow};
use super::rules::Context;

/// By task, in which ways it may have been spread in a step.
#[derive(Debug, Default)]
pub(super) struct Spreads(BTreeMap<Key, Vec<Candidate>>);

impl Spreads {
    /// Notes what a task may be at some time in the step. Tasks are followed before their deliveries.
    pub fn note(&mut self, key: &Key, guesses: &[Guess]) {
        for guess in guesses.iter().filter(|_| key.queue().is_empty()) {
            let Guess::Row(row) = guess else { continue };
            if matches!(row.state.phase, Phase::Spread(_)) {
                let ways = self.0.entry(key.clone()).or_default();
                if !ways.contains(row) {
                    ways.push((**row).clone());
                }
            }
        }
    }

    /// What a delivery may come to be where there is none. If its `task` is there and was spread, that tells.
    pub fn births(&self, context: &Context<'_>, task: Option<&Shadow>) -> Vec<Guess> {
        if context.key.queue().is_empty() {
            return Vec::new();
        }
        let is_new = |spread: &Candidate| context.task_before.is_none_or(|before| !is_still(spread, before));
        let told = task.filter(|task| matches!(task.state.phase, Phase::Spread(_))).map(Candidate::of);
        match told.filter(is_new) {
            Some(task) => vec![context.born(task)],
            None => {
                let ways = self.0.get(&context.key.of_task()).into_iter().flatten().filter(|task| is_new(task));
                ways.map(|task| context.born(task.clone())).collect()
            }
        }
    }
}

/// Whether a task is spread as it was before the step, so that nothing has come of it since but the ends of its deliveries.
fn is_still(spread: &Candidate, before: &Shadow) -> bool {
    let rest = |state: &State| State { phase: Phase::Waiting, ..state.clone() };
    let was_spread = matches!(before.state.phase, Phase::Spread(_));
    was_spread && spread.may_have(before.seq) && rest(&spread.state) == rest(&before.state)
}

#[cfg(test)]
mod tests {
    use punctual_core::store::Change;
    use punctual_core::{
        Answer, Binding, Command, Millis, Refused, ScheduleOutcome, Scheduled, Selected, Task, TopicSettings,
    };

    use crate::auditor::steps::{NOW, audit, name};
    use crate::auditor::{Promise, steps};
    use crate::record::StepRecord;

    /// Real steps of a shard whose topic `fan` feeds two queues.
    fn steps(mut commands: Vec<Vec<Command>>) -> Vec<StepRecord> {
        let feeds = ["a", "b"].map(|queue| Binding::all(name(queue)));
        let settings = TopicSettings { feeds: Some(feeds.into()), ..TopicSettings::default() };
        commands[0].insert(0, Command::PutTopic { name: name("fan"), settings: Box::new(settings) });
        steps::steps(commands.into_iter().map(|commands| (NOW, commands)).collect())
    }

    fn schedule(task: Task) -> Command {
        steps::schedule("x", task)
    }

    /// A task that is too old a millisecond after its time, the replay of one of its deliveries, and the end of all.
    fn whole_life(delay: Millis) -> StepRecord {
        let task = Task { ttl: Some(Millis(1)), ..Task::new(name("fan"), "body").after(delay) };
        let selected = Selected { topic: name("fan"), id: name("x"), queue: Some(name("a")) };
        let all =
            vec![schedule(task), Command::Replay(selected), Command::DeleteTopic { name: name("fan"), force: true }];
        steps(vec![all]).remove(0)
    }

    #[test]
    fn deliveries_may_come_and_go_with_their_task_in_one_step() {
        let record = whole_life(Millis(100));
        assert!(matches!(record.answers[&2], Ok(Answer::Replayed(_))), "{:?}", record.answers);
        assert_eq!(audit(&[record]), None);
    }

    #[test]
    fn a_delivery_of_a_task_that_was_not_due_has_never_been_there() {
        let mut record = whole_life(Millis(2_000));
        let replayed = whole_life(Millis(100)).answers.remove(&2).expect("it is answered");
        assert_eq!(record.answers.insert(2, replayed), Some(Err(Refused::NothingThere)));
        assert_eq!(audit(&[record]), Some(Promise::CertainAnswers));
    }

    /// A task that is spread in one step, and in the next one is cancelled and put in its own place, or only that.
    fn second_life(is_cancelled: bool) -> Vec<StepRecord> {
        let cancel = Command::Cancel { topic: name("fan"), id: name("x") };
        let again = schedule(Task { replace: true, ..Task::new(name("fan"), "again").after(Millis(200)) });
        let second = if is_cancelled { vec![cancel, again] } else { vec![again] };
        steps(vec![vec![schedule(Task::new(name("fan"), "body").after(Millis(100)))], second])
    }

    #[test]
    fn deliveries_may_go_with_their_task_and_come_with_the_next_one_in_one_step() {
        let records = second_life(true);
        assert!(matches!(records[1].answers[&3], Ok(Answer::Scheduled(_))), "{:?}", records[1].answers);
        assert_eq!(audit(&records), None);
    }

    #[test]
    fn deliveries_that_come_anew_though_they_have_not_gone_are_noticed() {
        let mut records = second_life(false);
        assert!(matches!(&records[1].answers[&2], Ok(Answer::Scheduled(scheduled)) if is_left_alone(scheduled)));
        let mut anew = second_life(true).remove(1).batch.expect("all is made anew");
        anew.changes.retain(is_of_queue);
        records[1].batch = Some(anew);
        assert_eq!(audit(&records), Some(Promise::CertainAnswers));
    }

    fn is_left_alone(scheduled: &Scheduled) -> bool {
        matches!(scheduled.outcome, ScheduleOutcome::Existed(_))
    }

    fn is_of_queue(change: &Change) -> bool {
        matches!(change, Change::Insert { row, .. } if !row.key.queue().is_empty())
    }
}
