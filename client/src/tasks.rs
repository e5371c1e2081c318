//! Scheduling tasks, looking at them, and changing what was scheduled.

use bytes::{BufMut, Bytes, BytesMut};
use http::Method;
use punctual_wire::{
    Answer, BatchResults, CancelOutcome, Cancelled, Found, Hastened, List, NewTask, Page, Problem, Replayed,
    Reschedule, Rescheduled, Restored, Revoke, Revoked, ScheduleOutcome, Scheduled, ShiftKey, Standing, Swept,
    TaskInfo, Time, Timeline,
};
use ulid::Ulid;

use crate::address::Path;
use crate::client::{Client, found, parse, write};
use crate::error::Error;
use crate::transport::Repeat;

/// At most so many tasks go into one request: the server's limit.
pub(crate) const BATCH_ITEMS: usize = 10_000;

/// At most so many bytes go into one request: a little below the server's limit of 16 MiB.
pub(crate) const BATCH_BYTES: usize = 15 << 20;

/// The answer to a change that races with the task's time: exactly one of these is true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling<T> {
    /// It was done.
    Done(T),
    /// It was not done, because the task was handed out or is finished: this is where it stands.
    TooLate(Standing),
    /// There is no such task.
    Unknown,
}

impl<T> Ruling<T> {
    /// What was done, if it was.
    pub fn done(self) -> Option<T> {
        match self {
            Ruling::Done(done) => Some(done),
            Ruling::TooLate(_) | Ruling::Unknown => None,
        }
    }
}

impl Client {
    /// Schedules a task. Once this returns, the task is on disk and will be delivered.
    ///
    /// A task without an id gets one here (a ULID), so that a repetition after a lost answer creates nothing twice.
    /// One that takes the place of another (`replace`) is not repeated once it may have been carried out: if it has
    /// finished meanwhile, it would run once more. Ask where it stands before you do it again.
    pub async fn schedule(&self, task: impl Into<NewTask>) -> Result<Scheduled, Error> {
        let (task, named) = name(task.into());
        let scheduled = self.tell(Method::POST, Path::new("tasks"), &task, repeat(task.replace)).await?;
        Ok(settle_name(scheduled, named))
    }

    /// Schedules tasks, many in one request; each is answered by itself, in their order.
    ///
    /// More than 10,000 tasks, or more than 15 MiB, go in several requests. If one of these fails, what was
    /// scheduled before stays so: tasks with ids of their own can then simply be handed in again. A request is not
    /// repeated, once it may have been carried out, if one of its tasks takes the place of another (`replace`).
    pub async fn schedule_many(&self, tasks: Vec<NewTask>) -> Result<Vec<Result<Scheduled, Problem>>, Error> {
        let mut results = Vec::with_capacity(tasks.len());
        let mut batch = Written::default();
        for task in tasks {
            let item = Item::new(task)?;
            if !batch.has_room(&item) {
                results.extend(self.schedule_written(std::mem::take(&mut batch)).await?);
            }
            batch.push(item);
        }
        if !batch.is_empty() {
            results.extend(self.schedule_written(batch).await?);
        }
        Ok(results)
    }

    /// Schedules what is written already, in one request.
    pub(crate) async fn schedule_written(&self, batch: Written) -> Result<Vec<Result<Scheduled, Problem>>, Error> {
        let named = batch.named.clone();
        let path = Path::new("tasks").verb("batch");
        let repeat = repeat(batch.replaces);
        let answer = self.send(Method::POST, path, batch.into_json(), repeat).await?;
        let results = parse::<BatchResults>(&answer)?.results;
        if results.len() != named.len() {
            let reason = format!("{} answers to {} tasks", results.len(), named.len());
            return Err(Error::BadAnswer { status: answer.status.as_u16(), reason });
        }
        let results = results.into_iter().zip(named).map(|(answer, named)| match answer {
            Answer::Done(scheduled) => Answer::Done(settle_name(scheduled, named)),
            refused => refused,
        });
        Ok(results.map(Answer::into_result).collect())
    }

    /// All that is known of a task; `None` if there is no such task, nor in the history.
    pub async fn get(&self, topic: &str, id: &str) -> Result<Option<TaskInfo>, Error> {
        found(self.read(task_path(topic, id)).await, "no-such-task")
    }

    /// What has happened to a task, what is to come, and why it is still where it is; `None` if there is no such task.
    pub async fn timeline(&self, topic: &str, id: &str) -> Result<Option<Timeline>, Error> {
        found(self.read(task_path(topic, id).verb("timeline")).await, "no-such-task")
    }

    /// The same as [`get`](Client::get) of the task with this number, or of the delivery of one that was broadcast; `None` if there is none.
    pub async fn numbered(&self, number: u64) -> Result<Option<TaskInfo>, Error> {
        found(self.read(Path::new("numbers").name(&number.to_string())).await, "no-such-task")
    }

    /// What a text leads to: tasks by their ids or numbers, keys, topics and queues.
    pub async fn find(&self, text: &str) -> Result<Found, Error> {
        self.read(Path::new("find").query(&[("q", text)])?).await
    }

    /// Cancels a task: it is certain afterwards whether it will ever be handed over.
    pub async fn cancel(&self, topic: &str, id: &str) -> Result<Ruling<CancelOutcome>, Error> {
        let answer = self.ask::<Cancelled>(Method::DELETE, task_path(topic, id), Repeat::Safe).await;
        rule(answer).map(|ruling| match ruling {
            Ruling::Done(cancelled) => Ruling::Done(cancelled.outcome),
            Ruling::TooLate(standing) => Ruling::TooLate(standing),
            Ruling::Unknown => Ruling::Unknown,
        })
    }

    /// Changes when a task is due, its priority or its body; answers when it is due now.
    ///
    /// Moving it `by` a length of time is not repeated once it may have been carried out.
    pub async fn reschedule(&self, topic: &str, id: &str, change: Reschedule) -> Result<Ruling<Time>, Error> {
        let repeat = if change.by.is_some() { Repeat::Undone } else { Repeat::Safe };
        let answer = self.tell::<Rescheduled>(Method::PATCH, task_path(topic, id), &change, repeat).await;
        rule(answer).map(|ruling| match ruling {
            Ruling::Done(moved) => Ruling::Done(moved.due),
            Ruling::TooLate(standing) => Ruling::TooLate(standing),
            Ruling::Unknown => Ruling::Unknown,
        })
    }

    /// Tasks that are not finished, by the time they come due.
    pub async fn list(&self, list: &List) -> Result<Page, Error> {
        self.read(Path::new("tasks").query(list)?).await
    }

    /// Tasks of a key, by the time they come due.
    pub async fn list_key(&self, key: &str, list: &List) -> Result<Page, Error> {
        self.read(Path::new("keys").name(key).query(list)?).await
    }

    /// Cancels all tasks of a key, or those in one topic; or only counts them.
    pub async fn cancel_key(&self, key: &str, topic: Option<&str>, dry_run: bool) -> Result<Swept, Error> {
        let query: Vec<(&str, &str)> =
            topic.map(|topic| ("topic", topic)).into_iter().chain(dry_run.then_some(("dry_run", "true"))).collect();
        // Twice cancels no more than once, but the second answer would count nothing.
        let repeat = if dry_run { Repeat::Safe } else { Repeat::Undone };
        self.ask(Method::DELETE, Path::new("keys").name(key).query(&query)?, repeat).await
    }

    /// Moves all tasks of a key, or those in one topic; or only counts them.
    pub async fn shift_key(&self, key: &str, shift: ShiftKey) -> Result<Swept, Error> {
        let repeat = if shift.by.is_some() && !shift.dry_run { Repeat::Undone } else { Repeat::Safe };
        self.tell(Method::PATCH, Path::new("keys").name(key), &shift, repeat).await
    }

    /// Hands out a dead letter or a finished task again, and says where it stands then. A dead letter of a broadcast
    /// task is one of a queue.
    pub async fn replay(&self, topic: &str, id: &str, queue: Option<&str>) -> Result<Standing, Error> {
        let replayed: Replayed =
            self.ask(Method::POST, verb_on_task(topic, id, "replay", queue)?, Repeat::Undone).await?;
        Ok(replayed.standing)
    }

    /// Removes a dead letter.
    pub async fn purge(&self, topic: &str, id: &str, queue: Option<&str>) -> Result<(), Error> {
        let path = verb_on_task(topic, id, "purge", queue)?;
        self.send(Method::POST, path, Bytes::new(), Repeat::Undone).await.map(|_| ())
    }

    /// Makes a task that waits for its time or its next attempt, or a dead letter, available now; answers where it stands
    /// then.
    pub async fn hasten(&self, topic: &str, id: &str, queue: Option<&str>) -> Result<Ruling<Standing>, Error> {
        // A second attempt might meet a dead letter that came of the first one.
        let path = verb_on_task(topic, id, "hasten", queue)?;
        let answer = self.ask::<Hastened>(Method::POST, path, Repeat::Undone).await;
        rule(answer).map(|ruling| match ruling {
            Ruling::Done(hastened) => Ruling::Done(hastened.standing),
            Ruling::TooLate(standing) => Ruling::TooLate(standing),
            Ruling::Unknown => Ruling::Unknown,
        })
    }

    /// Takes back the cancellation of a task, for as long as the history keeps it: it waits for its old due time again. What
    /// waits already stays as it is.
    pub async fn restore(&self, topic: &str, id: &str) -> Result<Ruling<Standing>, Error> {
        // A second attempt might take back a cancellation that came after the first one.
        let answer = self.ask::<Restored>(Method::POST, task_path(topic, id).verb("restore"), Repeat::Undone).await;
        rule(answer).map(|ruling| match ruling {
            Ruling::Done(restored) => Ruling::Done(restored.standing),
            Ruling::TooLate(standing) => Ruling::TooLate(standing),
            Ruling::Unknown => Ruling::Unknown,
        })
    }

    /// Ends the lease on a delivery, whoever holds it; answers where it stands now. That nobody holds it is a problem
    /// with the code `lease-lost`.
    pub async fn revoke(&self, topic: &str, id: &str, queue: Option<&str>, revoke: Revoke) -> Result<Standing, Error> {
        let path = verb_on_task(topic, id, "revoke", queue)?;
        // A second attempt might meet the consumer that has it next.
        let revoked: Revoked = self.tell(Method::POST, path, &revoke, Repeat::Undone).await?;
        Ok(revoked.standing)
    }
}

fn verb_on_task(topic: &str, id: &str, verb: &str, queue: Option<&str>) -> Result<Path, Error> {
    let query: Vec<(&str, &str)> = queue.map(|queue| ("queue", queue)).into_iter().collect();
    task_path(topic, id).verb(verb).query(&query)
}

fn task_path(topic: &str, id: &str) -> Path {
    Path::new("tasks").name(topic).name(id)
}

fn rule<T>(answer: Result<T, Error>) -> Result<Ruling<T>, Error> {
    match answer {
        Ok(done) => Ok(Ruling::Done(done)),
        Err(Error::Problem(problem)) => match (problem.code.as_str(), &problem.standing) {
            ("too-late", Some(standing)) => Ok(Ruling::TooLate(standing.clone())),
            ("no-such-task", _) => Ok(Ruling::Unknown),
            _ => Err(Error::Problem(problem)),
        },
        Err(error) => Err(error),
    }
}

/// A task comes twice under the same id and is there once. One that replaces arms it again if it has finished meanwhile.
fn repeat(replaces: bool) -> Repeat {
    if replaces { Repeat::Undone } else { Repeat::Safe }
}

/// The task with an id, and whether that was made here.
fn name(mut task: NewTask) -> (NewTask, bool) {
    let named = task.id.is_none();
    task.id.get_or_insert_with(|| Ulid::generate().to_string());
    (task, named)
}

/// An id that was made here is nobody else's: if the server knows it already, an earlier attempt brought it.
fn settle_name(mut scheduled: Scheduled, named: bool) -> Scheduled {
    if named && scheduled.outcome == ScheduleOutcome::Existed {
        scheduled.outcome = ScheduleOutcome::Created;
        scheduled.hint = None;
        if let Some(Standing::Scheduled { at }) = scheduled.standing.take() {
            scheduled.due = Some(at);
        }
    }
    scheduled
}

/// A task as JSON, with an id.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    json: Bytes,
    named: bool,
    replaces: bool,
}

impl Item {
    pub fn new(task: NewTask) -> Result<Item, Error> {
        let (task, named) = name(task);
        Ok(Item { json: write(&task)?, named, replaces: task.replace })
    }

    /// Whether it takes the place of another.
    pub fn replaces(&self) -> bool {
        self.replaces
    }

    /// How many bytes it takes.
    pub fn len(&self) -> usize {
        self.json.len()
    }
}

/// Tasks as JSON, as many as one request may hold.
#[derive(Debug, Default)]
pub(crate) struct Written {
    json: BytesMut,
    named: Vec<bool>,
    /// Whether one of them takes the place of another.
    replaces: bool,
}

impl Written {
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// Whether one more fits. The first always does: whether it is too large is for the server to say.
    pub fn has_room(&self, item: &Item) -> bool {
        self.is_empty() || (self.named.len() < BATCH_ITEMS && self.json.len() + item.json.len() < BATCH_BYTES)
    }

    pub fn push(&mut self, item: Item) {
        self.json.put_slice(if self.is_empty() { b"{\"tasks\":[" } else { b"," });
        self.json.put_slice(&item.json);
        self.named.push(item.named);
        self.replaces |= item.replaces;
    }

    fn into_json(mut self) -> Bytes {
        self.json.put_slice(b"]}");
        self.json.freeze()
    }
}

#[cfg(test)]
mod tests {
    use punctual_wire::Batch;

    use super::*;

    #[test]
    fn a_task_without_an_id_gets_one_before_it_is_sent() {
        let (task, named) = name(NewTask { topic: "orders".into(), ..NewTask::default() });
        assert!(named && task.id.is_some_and(|id| id.len() == 26));
        let (task, named) = name(NewTask { topic: "orders".into(), id: Some("7".into()), ..NewTask::default() });
        assert!(!named && task.id.as_deref() == Some("7"));
    }

    #[test]
    fn a_made_up_id_that_exists_was_created_by_an_earlier_attempt() {
        let existed = Scheduled {
            topic: "orders".into(),
            id: "made-up".into(),
            outcome: ScheduleOutcome::Existed,
            due: None,
            standing: Some(Standing::Scheduled { at: Time(7) }),
            hint: Some("use another id".into()),
        };
        let settled = settle_name(existed.clone(), true);
        assert_eq!((settled.outcome, settled.due, settled.standing), (ScheduleOutcome::Created, Some(Time(7)), None));
        assert_eq!(settle_name(existed.clone(), false), existed);
    }

    #[test]
    fn a_written_batch_reads_back_as_one() {
        let mut written = Written::default();
        for id in ["1", "2"] {
            let task = NewTask { topic: "orders".into(), id: Some(id.into()), ..NewTask::default() };
            let item = Item::new(task).unwrap();
            assert!(written.has_room(&item));
            written.push(item);
        }
        let batch: Batch = serde_json::from_slice(&written.into_json()).unwrap();
        let ids: Vec<Option<&str>> = batch.tasks.iter().map(|task| task.id.as_deref()).collect();
        assert_eq!(ids, [Some("1"), Some("2")]);
    }

    #[test]
    fn a_batch_stays_below_the_limits_of_a_request() {
        let large = Item { json: Bytes::from(vec![b' '; BATCH_BYTES + 1]), named: true, replaces: false };
        let small = Item { json: Bytes::from_static(b"{}"), named: true, replaces: false };
        let mut written = Written::default();
        assert!(written.has_room(&large));
        written.push(large);
        assert!(!written.has_room(&small));
        let mut written = Written::default();
        for _ in 0..BATCH_ITEMS {
            assert!(written.has_room(&small));
            written.push(small.clone());
        }
        assert!(!written.has_room(&small));
    }
}
