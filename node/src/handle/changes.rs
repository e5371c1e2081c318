//! How a change of settings is made: written down in the store, adopted by all shards, struck off. All of it is done by
//! the administrator, on its thread; what is to be done next is said by [`Undertaking`].

use std::sync::PoisonError;
use std::time::Duration;

use punctual_center::changes::{End, Next, Undertaking, Verdict, is_gone, rows_gone, told};
use punctual_core::{Adjustment, Adopt, Command, Name, Subject};
use tokio::sync::oneshot;

use super::Handle;
use super::admin::Settings;
use crate::block_on;
use crate::caller::{Concern, Outcome};
use crate::deletions::Ended;
use crate::error::Error;
use crate::sync::Instant;

/// For how long shards are asked again that cannot adopt a change.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a change waits to be begun for a shard that is down.
const BRIEFLY: Duration = Duration::from_secs(1);
/// How soon it is tried or looked again.
const PAUSE: Duration = Duration::from_millis(20);

/// What is to be changed, by what there is.
pub(super) enum Decision<T> {
    /// This, and then the caller hears that. `otherwise` is what is done if a shard refuses a deletion.
    Make { adjustment: Adjustment, otherwise: Option<Adjustment>, told: T },
    /// Nothing.
    Leave(T),
}

impl<T> Decision<T> {
    /// A topic or queue gets these settings.
    pub fn put(name: &Name, settings: impl Settings, told: T) -> Decision<T> {
        Decision::Make { adjustment: settings.put(name), otherwise: None, told }
    }
}

/// What came of it.
pub(super) enum Made<T> {
    /// It is made, in all shards.
    Done(T),
    /// The topic or queue is being deleted, as was asked for or by somebody else.
    Deleting(Adopt),
}

impl Handle {
    /// Makes a change. It is decided anew if somebody else changed something meanwhile.
    pub(super) fn make<T>(
        &self,
        subject: &Subject,
        mut decide: impl FnMut() -> Result<Decision<T>, Error>,
    ) -> Result<Made<T>, Error> {
        let (mut making, mut step) = Undertaking::make(subject.clone());
        let mut to_tell = None;
        loop {
            step = match step {
                Next::Decide => match decide()? {
                    Decision::Leave(told) => return Ok(Made::Done(told)),
                    Decision::Make { adjustment, otherwise, told } => {
                        to_tell = Some(told);
                        let step = making.decided(adjustment, otherwise, self.shared.clock.micros());
                        self.await_shards()?;
                        step
                    }
                },
                Next::Over(End::Deleting(deletion)) => return Ok(Made::Deleting(deletion)),
                Next::Over(End::Failed(error)) => return Err(error),
                Next::Over(_) => {
                    let told = to_tell.expect("what is made was decided before");
                    return Ok(Made::Done(told));
                }
                step => self.go_on(&mut making, step)?,
            }
        }
    }

    /// Does what an undertaking wants that decides nothing, to its end.
    fn undertake(&self, (mut undertaking, mut step): (Undertaking, Next)) -> Result<End, Error> {
        loop {
            step = match step {
                Next::Over(End::Failed(error)) => return Err(error),
                Next::Over(end) => return Ok(end),
                step => self.go_on(&mut undertaking, step)?,
            }
        }
    }

    /// Does what an undertaking wants next.
    fn go_on(&self, undertaking: &mut Undertaking, step: Next) -> Result<Next, Error> {
        match step {
            Next::Look => Ok(undertaking.looked(self.shared.seen_changes()?)),
            Next::Read => Ok(undertaking.looked(self.shared.read_changes()?)),
            Next::Adopt(adopt, revision) => self.have_adopted(undertaking, adopt, revision),
            Next::Write(seen, changes) => match self.shared.write_changes(&seen, changes) {
                Ok(written) => Ok(undertaking.written(written)),
                Err(error) => Err(undertaking.failed(error)),
            },
            Next::Decide | Next::Over(_) => unreachable!("whoever began it sees to that"),
        }
    }

    /// Waits a little until the shards of this node are up: nothing is to be begun that cannot be finished.
    fn await_shards(&self) -> Result<(), Error> {
        let begun_at = Instant::now();
        loop {
            match self.ready() {
                Err(Error::Unavailable { .. }) if begun_at.elapsed() < BRIEFLY && self.shared.closing.sleep(PAUSE) => {}
                ready => return ready,
            }
        }
    }

    /// Has all shards adopt what is under way. On an error it stays written down, and is finished later.
    fn have_adopted(&self, undertaking: &mut Undertaking, adopt: Adopt, revision: u64) -> Result<Next, Error> {
        let begun_at = Instant::now();
        let verdict = loop {
            let error = match Verdict::of(&block_on(self.ask_all(Command::Adopt(Box::new(adopt.clone()))))) {
                Verdict::Again(error) => error,
                verdict => break verdict,
            };
            let goes_on = error != Error::Stopping && begun_at.elapsed() < PATIENCE && self.shared.check().is_ok();
            if !goes_on || !self.shared.closing.sleep(PAUSE) {
                return Err(undertaking.failed(error));
            }
        };
        if verdict == Verdict::Adopted {
            self.shared.changes_adopted(revision);
            if let Subject::Queue(name) = adopt.adjustment.subject()
                && !adopt.adjustment.is_deletion()
            {
                self.shared.known_queues.write().unwrap_or_else(PoisonError::into_inner).insert(name);
            }
        }
        let step = undertaking.adopted(verdict, self.shared.clock.micros());
        if let Some((number, refused)) = undertaking.refused_deletion() {
            self.shared.deletions.end(number, &Err(refused));
        }
        Ok(step)
    }

    /// Waits for the end of a deletion, with those who do already.
    pub(super) fn follow(&self, deletion: Adopt) -> oneshot::Receiver<Ended> {
        let number = deletion.number;
        if let Some(ending) = self.shared.deletions.join(number) {
            return ending;
        }
        let ending = self.shared.deletions.begin(number);
        self.await_end(deletion);
        ending
    }

    /// Asks all shards for the end of a deletion. The turn is over then: it may take long, and other changes go on
    /// meanwhile.
    fn await_end(&self, deletion: Adopt) {
        let command = Command::Adopt(Box::new(deletion.clone()));
        let handle = self.clone();
        let concern: Concern = Box::new(move |outcomes| {
            let (following, outcomes) = (handle.clone(), handle.heard(outcomes.clone()));
            handle.shared.administrator.follow_up(move || following.end_deletion(deletion, &outcomes));
        });
        block_on(self.tell_all(command, concern));
    }

    /// All shards have answered, whoever still waits for it.
    fn end_deletion(&self, deletion: Adopt, outcomes: &[Outcome]) {
        let number = deletion.number;
        let ended = match rows_gone(outcomes) {
            Some(ended) => ended,
            None => match self.undertake(Undertaking::settle(number)) {
                // It has begun everywhere after all.
                Ok(End::Listed(true)) => return self.await_end(deletion),
                Ok(_) => Err(Error::unknown_outcome("another node has seen to this deletion")),
                Err(error) => Err(error),
            },
        };
        if is_gone(&ended) {
            if let Subject::Queue(name) = deletion.adjustment.subject() {
                self.shared.known_queues.write().unwrap_or_else(PoisonError::into_inner).remove(&name);
            }
            // Before anybody hears of it: whoever does may go on at another node. If it cannot be written down now, it
            // is found out again later.
            let struck_off = self.undertake(Undertaking::strike_off(number));
            return self.shared.deletions.end(number, &told(&deletion, ended, &struck_off));
        }
        self.shared.changes_tidied(None);
        self.shared.deletions.end(number, &ended);
    }

    /// Finishes what is written down and nobody goes on with, and strikes off what is done.
    pub(crate) fn tidy_changes(&self) {
        let Ok(End::Tidied(revision, deletions)) = self.undertake(Undertaking::tidy()) else {
            return self.shared.changes_tidied(None);
        };
        for deletion in deletions {
            if !self.shared.deletions.is_awaited(deletion.number) {
                drop(self.follow(deletion));
            }
        }
        self.shared.changes_tidied(Some(revision));
    }
}
