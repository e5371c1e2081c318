//! Reserving: waiting for a job, and what may end the waiting.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use punctual_core::store::Bodies;
use punctual_core::{Choice, Delivery, Millis, Name, Reserve, Take, Timestamp};
use punctual_node::{Error, Number};
use tracing::Instrument;

use crate::answer::Word;
use crate::connection::{Connection, read};
use crate::door::millis;
use crate::translate::word_for;
use crate::tubes::Tube;

/// So long before the end of a lease its holder is warned: a second, and what the end may have been rounded up by.
const MARGIN: Millis = Millis(1_001);

/// How many reserves in a row are one for the node: their bodies are in memory together.
const TOGETHER: usize = 64;

/// How many bytes of further commands are kept while a reserve waits.
const AHEAD: usize = 64 * 1024;

/// Counts a connection among those that wait for tubes, until it is dropped.
struct Waits(Vec<Arc<Tube>>);

impl Waits {
    fn new(tubes: Vec<Arc<Tube>>) -> Waits {
        tubes.iter().for_each(|tube| _ = tube.waiting.fetch_add(1, Ordering::Relaxed));
        Waits(tubes)
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.iter().for_each(|tube| _ = tube.waiting.fetch_sub(1, Ordering::Relaxed));
    }
}

/// How waiting ended.
enum Ended {
    Node(Result<Vec<Delivery>, Error>),
    /// The client says nothing more.
    ClientLeft,
    DoorCloses,
}

impl Connection<'_> {
    /// Waits for a job, and for as many as further commands ask for right behind; says whether the connection goes on.
    pub async fn reserve(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        self.presence.works();
        let mut timeouts = VecDeque::from([timeout]);
        while timeouts.len() < TOGETHER
            && let Some(timeout) = self.input.next_reserve()
        {
            timeouts.push_back(timeout);
        }
        while let Some(timeout) = timeouts.pop_front() {
            if self.is_closing() {
                return Ok(false);
            }
            let waits = timeout.is_none_or(|timeout| !timeout.is_zero());
            if !(waits && self.round.may_be_followed()) {
                self.finish_round().await;
            }
            let now = self.door.handle.now();
            let warning = self.held.soonest(now, &self.round.leaving());
            let warning = warning.map(|end| Timestamp::from_millis(end.as_millis().saturating_sub(MARGIN.0)));
            let timed_out = timeout.map_or(Timestamp::NEVER, |timeout| self.door.handle.after(millis(timeout)));
            let until = warning.map_or(timed_out, |warning| warning.min(timed_out)).max(now);
            match self.wait(1 + timeouts.len(), until).await? {
                Ended::Node(Ok(deliveries)) if deliveries.is_empty() => {
                    // Which of the two it was is not asked of the clock: it may be behind that by which was waited.
                    let is_warned = warning.is_some_and(|warning| warning <= timed_out);
                    self.output.word(if is_warned { Word::DeadlineSoon } else { Word::TimedOut });
                }
                Ended::Node(Ok(deliveries)) => {
                    deliveries.iter().for_each(|delivery| self.hand_over(delivery));
                    timeouts.drain(..deliveries.len() - 1);
                }
                Ended::Node(Err(Error::Stopping)) | Ended::DoorCloses => return Ok(false),
                Ended::Node(Err(error)) => self.output.word(word_for(&error)),
                Ended::ClientLeft => self.output.word(Word::TimedOut),
            }
        }
        Ok(true)
    }

    /// Waits for up to so many jobs until then, and carries out what is left in the round before.
    async fn wait(&mut self, max: usize, until: Timestamp) -> io::Result<Ended> {
        let queues: Vec<Name> = self.watched.iter().map(|watched| watched.tube.name.clone()).collect();
        let consumer = self.consumer.clone();
        let reserve = Reserve { queues, max, lease: None, until, consumer, choice: Choice::Foremost };
        let handle = self.door.handle.clone();
        let begun = if self.round.len() > 0 { Some(self.begin_round().await) } else { None };
        let mut waiting = pin!(handle.reserve(reserve).instrument(self.door.span("beanstalk reserve", max).0));
        // What is there at once goes out together with the answers before it.
        let at_once = poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context))).await;
        if let Some(begun) = begun {
            begun.finish(&handle, &mut self.held, &mut self.output).await;
        }
        if let Poll::Ready(outcome) = at_once {
            return Ok(Ended::Node(outcome));
        }
        // It may have come with what was carried out just now.
        if let Poll::Ready(outcome) = poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context))).await {
            return Ok(Ended::Node(outcome));
        }
        self.flush().await?;
        self.add_counts();
        let _waits = Waits::new(self.watched.iter().map(|watched| Arc::clone(&watched.tube)).collect());
        self.presence.waits(true);
        let ended = loop {
            let has_room = self.input.unread() < AHEAD;
            tokio::select! {
                biased;
                // What is on its way to it by then goes back.
                _ = self.stop.wait_for(|stop| *stop) => break Ended::DoorCloses,
                outcome = &mut waiting => break Ended::Node(outcome),
                read = read(&self.stream, &mut self.input), if has_room => {
                    if read? == 0 {
                        break Ended::ClientLeft;
                    }
                }
            }
        };
        self.presence.waits(false);
        Ok(ended)
    }

    /// Takes the job with this id, whatever it waits for.
    pub async fn reserve_job(&mut self, id: u64) -> Result<(), Error> {
        match self.take_job(id).await? {
            Some(delivery) => {
                self.presence.works();
                self.hand_over(&delivery);
            }
            None => self.output.word(Word::NotFound),
        }
        Ok(())
    }

    async fn take_job(&self, id: u64) -> Result<Option<Delivery>, Error> {
        let handle = &self.door.handle;
        let found = handle.numbered(vec![Number(id)], Bodies::Without).await?.pop().flatten();
        let Some(found) = found else { return Ok(None) };
        let take = Take { row: found.row, consumer: self.consumer.clone(), lease: None };
        handle.take(take).await.map(Some)
    }

    fn hand_over(&mut self, delivery: &Delivery) {
        let id = self.door.handle.number(&delivery.topic, &delivery.id, delivery.number).0;
        self.held.insert(id, delivery, self.door.handle.now());
        self.output.reserved(id, &delivery.body);
    }
}
