//! The administrator: one thread that changes settings, one change after the other and each to its end, whether or not
//! its caller still waits. So none is left half done because somebody hung up. It may wait for the store and for shards.

use tokio::sync::oneshot;

use crate::errands::Errands;
use crate::error::Error;

/// How many changes wait at most. Callers who leave do not take theirs along, so something has to bound them.
const MOST: usize = 1_024;

type Work = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(crate) struct Administrator {
    works: Errands<Work>,
}

impl Administrator {
    /// Has something done in its turn, and waits for what comes of it.
    pub async fn turn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (begin, begun) = oneshot::channel();
        let (sender, receiver) = oneshot::channel();
        let work = move || {
            // Who has left does not hear of it.
            _ = begin.send(());
            _ = sender.send(work());
        };
        self.works.push(Box::new(work), MOST)?;
        match (begun.await, receiver.await) {
            (_, Ok(done)) => done,
            (Err(_), Err(_)) => Err(Error::Stopping),
            // The administrator came to grief in the midst of it.
            (Ok(()), Err(_)) => Err(Error::unknown_outcome("a change of settings was interrupted")),
        }
    }

    /// Has something done that belongs to what was done before, however much waits.
    pub fn follow_up(&self, work: impl FnOnce() + Send + 'static) {
        // A node that stops leaves it to others, or to the next start.
        _ = self.works.push(Box::new(work), usize::MAX);
    }

    /// The administrator's life, until it is closed.
    pub fn run(&self) {
        while let Some(work) = self.works.next() {
            work();
        }
    }

    /// Nothing is taken any more. Who waits hears that the node stops.
    pub fn close(&self) {
        self.works.abandon();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::task::{Context, Waker};
    use std::thread;

    use punctual_core::Certainty;

    use super::*;
    use crate::block_on;

    #[test]
    fn what_was_begun_is_done_although_its_caller_has_left() {
        let administrator = Arc::new(Administrator::default());
        let (sender, done) = std::sync::mpsc::channel();
        let mut turn = Box::pin(administrator.turn(move || {
            sender.send("done").unwrap();
            Ok(())
        }));
        assert!(turn.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(turn);
        let works = Arc::clone(&administrator);
        let thread = thread::spawn(move || works.run());
        assert_eq!(done.recv().unwrap(), "done");
        administrator.close();
        thread.join().unwrap();
        assert_eq!(block_on(administrator.turn(|| Ok(()))), Err(Error::Stopping));
    }

    #[test]
    fn a_change_that_broke_off_may_have_been_made_and_one_that_was_not_begun_was_not() {
        let administrator = Administrator::default();
        let mut context = Context::from_waker(Waker::noop());
        let mut broken = Box::pin(administrator.turn::<()>(|| panic!("the test wants this")));
        let mut next = Box::pin(administrator.turn(|| Ok(())));
        assert!(broken.as_mut().poll(&mut context).is_pending() && next.as_mut().poll(&mut context).is_pending());
        assert!(catch_unwind(AssertUnwindSafe(|| administrator.run())).is_err());
        administrator.close();
        assert_eq!(block_on(broken).unwrap_err().certainty(), Certainty::Unknown);
        assert_eq!(block_on(next), Err(Error::Stopping));
    }

    #[test]
    fn changes_that_wait_are_bounded_and_hear_of_the_end() {
        let administrator = Administrator::default();
        let mut context = Context::from_waker(Waker::noop());
        let mut first = Box::pin(administrator.turn(|| Ok(())));
        assert!(first.as_mut().poll(&mut context).is_pending());
        for _ in 1..MOST {
            assert!(Box::pin(administrator.turn(|| Ok(()))).as_mut().poll(&mut context).is_pending());
        }
        assert_eq!(block_on(administrator.turn(|| Ok(()))), Err(Error::Overloaded));
        administrator.close();
        assert_eq!(block_on(first), Err(Error::Stopping));
    }
}
