//! What the node says, in the words of the protocol.

use punctual_core::{Answer, Certainty, Name, Refused, Standing};
use punctual_node::{Error, Handle};

use crate::answer::{Output, Word};
use crate::held::Held;

/// Which command it was, for the translation of what came of it.
#[derive(Clone)]
pub(crate) enum Deed {
    Put(Name),
    Delete(u64),
    Release(u64),
    Bury(u64),
    Touch(u64),
    Kick(u64),
}

/// Writes what came of a command, and notes what it means for what is held.
pub(crate) fn tell(deed: Deed, outcome: Result<Answer, Error>, handle: &Handle, held: &mut Held, output: &mut Output) {
    match (&outcome, &deed) {
        (Ok(Answer::Extended(until)), Deed::Touch(id)) => held.extended(*id, *until, handle.now()),
        // Nothing was done: it is still held.
        (Err(error), _) if !matches!(error, Error::Refused(_)) && error.certainty() == Certainty::NothingDone => {}
        (_, Deed::Delete(id) | Deed::Release(id) | Deed::Bury(id) | Deed::Touch(id)) => held.remove(*id),
        (_, Deed::Put(_) | Deed::Kick(_)) => {}
    }
    match (outcome, deed) {
        (Ok(Answer::Scheduled(scheduled)), Deed::Put(tube)) => {
            output.inserted(handle.number(&tube, &scheduled.id, scheduled.number).0);
        }
        (Ok(Answer::Hastened(standing)), _) => {
            // A full queue may have pushed it out at once.
            output.word(if matches!(standing, Standing::Ready { .. }) { Word::Kicked } else { Word::NotFound });
        }
        (Ok(_), Deed::Put(_) | Deed::Kick(_)) => unreachable!("what is put is scheduled, what is kicked is hastened"),
        (Ok(_), Deed::Delete(_)) => output.word(Word::Deleted),
        (Ok(_), Deed::Release(_)) => output.word(Word::Released),
        (Ok(_), Deed::Bury(_)) => output.word(Word::Buried),
        (Ok(_), Deed::Touch(_)) => output.word(Word::Touched),
        (Err(error), _) => output.word(word_for(&error)),
    }
}

/// The word for what the node could not do.
pub(crate) fn word_for(error: &Error) -> Word {
    match error {
        Error::Refused(refused) => match refused {
            Refused::BodyTooLarge { .. } | Refused::HeadersTooLarge { .. } => Word::JobTooBig,
            Refused::TopicPaused(_) | Refused::BeingDeleted(_) => Word::Draining,
            Refused::RateLimited { .. } | Refused::QueueFull(_) => Word::OutOfMemory,
            Refused::LeaseLost { .. } | Refused::NothingThere => Word::NotFound,
            Refused::NoSuchTopic(_) | Refused::NoSuchQueue(_) => Word::NotFound,
            Refused::NotEmpty { .. } | Refused::Invalid { .. } | Refused::BadSettings(_) => Word::InternalError,
        },
        Error::Stopping => Word::Draining,
        // The protocol tells clients to try again later after the first of these, and not after the second.
        error if error.certainty() == Certainty::NothingDone => Word::OutOfMemory,
        Error::Overloaded | Error::Full(_) | Error::Unavailable { .. } => Word::InternalError,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_surely_not_done_is_to_be_tried_again_later() {
        for error in [Error::Overloaded, Error::Full("the disk".into()), Error::nothing_done("the shard is away")] {
            assert!(matches!(word_for(&error), Word::OutOfMemory), "{error}");
        }
        assert!(matches!(word_for(&Error::unknown_outcome("the commit failed")), Word::InternalError));
    }
}
