//! One request for many callers: what is handed in while a request is under way goes into the next one.
//!
//! There is no timer. A lone caller is sent at once; under load the batches grow by themselves, because more
//! arrives while the server is busy.

use std::sync::Arc;

use punctual_wire::{NewTask, Problem, Scheduled};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::client::Client;
use crate::error::Error;
use crate::tasks::{Item, Written};

/// So many bytes of tasks may wait; further callers wait for room before theirs is taken.
const WAITING_BYTES: usize = 64 << 20;

/// What a waiting task takes besides its JSON, about.
const ENTRY_BYTES: usize = 256;

type Answer = Result<Scheduled, Error>;

/// Schedules tasks of many concurrent callers in few requests. Cheap to clone: the clones share their requests.
///
/// Each call is answered by itself and keeps all promises of [`Client::schedule`]: when it returns, the task is
/// on disk.
#[derive(Clone, Debug)]
pub struct Batcher {
    client: Client,
    entries: mpsc::UnboundedSender<Entry>,
    room: Arc<Semaphore>,
}

#[derive(Debug)]
struct Entry {
    item: Item,
    answer: oneshot::Sender<Answer>,
    /// Given back when the answer is there.
    _room: OwnedSemaphorePermit,
}

impl Client {
    /// A batcher for this server. It works on the tokio runtime this is called in, until the last clone is dropped.
    pub fn batcher(&self) -> Batcher {
        let (entries, waiting) = mpsc::unbounded_channel();
        tokio::spawn(carry(self.clone(), waiting));
        Batcher { client: self.clone(), entries, room: Arc::new(Semaphore::new(WAITING_BYTES)) }
    }
}

impl Batcher {
    /// Schedules a task, together with others if there are any: see [`Client::schedule`].
    ///
    /// Whoever drops this future before the task was sent has not scheduled it.
    pub async fn schedule(&self, task: impl Into<NewTask>) -> Answer {
        let item = Item::new(task.into())?;
        let mut waits = self.client.transport.waits();
        let mut left = self.client.transport.retries();
        loop {
            let answer = self.hand_in(item.clone()).await?;
            // A replacement that was carried out would be so once more.
            let is_spent = item.replaces() && answer.as_ref().is_err_and(Error::may_have_happened);
            match answer {
                // The request was repeated if it failed as a whole; here the server had no room for this one task.
                Err(Error::Problem(problem)) if left > 0 && !is_spent && problem.is_passing() => {
                    left -= 1;
                    tokio::time::sleep(waits.next(problem.retry_after.map(|after| after.as_duration()))).await;
                }
                answer => return answer,
            }
        }
    }

    async fn hand_in(&self, item: Item) -> Result<Answer, Error> {
        let bytes = (item.len() + ENTRY_BYTES).min(WAITING_BYTES);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(bytes).await.map_err(|_| stopped())?;
        let (answer, answered) = oneshot::channel();
        self.entries.send(Entry { item, answer, _room: room }).map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())
    }
}

fn stopped() -> Error {
    Error::BadUse { reason: "the runtime of this batcher has stopped: the task may not have been scheduled".into() }
}

/// Sends what waits, one request after the other.
async fn carry(client: Client, mut waiting: mpsc::UnboundedReceiver<Entry>) {
    let mut next = None;
    loop {
        let first = match next.take() {
            Some(entry) => entry,
            None => match waiting.recv().await {
                Some(entry) => entry,
                None => return,
            },
        };
        let mut batch = Written::default();
        let mut entries = Vec::new();
        let mut taken = Some(first);
        while let Some(entry) = taken {
            if !batch.has_room(&entry.item) {
                next = Some(entry);
                break;
            }
            // Whoever does not wait any more has not scheduled anything.
            if !entry.answer.is_closed() {
                batch.push(entry.item.clone());
                entries.push(entry);
            }
            taken = waiting.try_recv().ok();
        }
        if !entries.is_empty() {
            send(&client, batch, entries).await;
        }
    }
}

/// Sends a batch and tells each caller. A batch that is refused as a whole is sent in halves, so that a task that
/// cannot be read spoils it for nobody else.
async fn send(client: &Client, batch: Written, entries: Vec<Entry>) {
    let mut parts = vec![(batch, entries)];
    while let Some((batch, mut entries)) = parts.pop() {
        match client.schedule_written(batch).await {
            Ok(results) => {
                for (entry, result) in entries.into_iter().zip(results) {
                    // A caller that has gone away does not care.
                    let _ = entry.answer.send(result.map_err(Error::from));
                }
            }
            Err(Error::Problem(problem)) if entries.len() > 1 && is_about_a_part(&problem) => {
                let second = entries.split_off(entries.len() / 2);
                parts.push((rewrite(&second), second));
                parts.push((rewrite(&entries), entries));
            }
            Err(error) => {
                for entry in entries {
                    let _ = entry.answer.send(Err(error.clone()));
                }
            }
        }
    }
}

/// Whether the request may be refused because of one of its tasks, or because they are too many.
fn is_about_a_part(problem: &Problem) -> bool {
    matches!(problem.status, 400 | 413 | 422)
}

fn rewrite(entries: &[Entry]) -> Written {
    let mut batch = Written::default();
    for entry in entries {
        batch.push(entry.item.clone());
    }
    batch
}
