//! What the node says, in the words of the protocol.

use punctual_core::{Name, Refused, Standing};
use punctual_node::{Done, Error, Handle, Settled};

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
pub(crate) fn tell(deed: Deed, outcome: Result<Done, Error>, handle: &Handle, held: &mut Held, output: &mut Output) {
    match (&outcome, &deed) {
        (Ok(Done::Settled(Settled::Extended(until))), Deed::Touch(id)) => held.extended(*id, *until, handle.now()),
        // Nothing was done: it is still held.
        (Err(Error::Overloaded | Error::Stopping), _) => {}
        (_, Deed::Delete(id) | Deed::Release(id) | Deed::Bury(id) | Deed::Touch(id)) => held.remove(*id),
        (_, Deed::Put(_) | Deed::Kick(_)) => {}
    }
    match outcome {
        Ok(Done::Scheduled(scheduled)) => {
            let Deed::Put(tube) = deed else { unreachable!("only a put schedules") };
            output.inserted(handle.number(&tube, &scheduled.id, scheduled.number).0);
        }
        Ok(Done::Removed(_)) => output.word(Word::Deleted),
        Ok(Done::Hastened(Standing::Ready { .. })) => output.word(Word::Kicked),
        // A full queue has pushed it out at once.
        Ok(Done::Hastened(_)) => output.word(Word::NotFound),
        Ok(Done::Settled(Settled::Released(_))) => output.word(Word::Released),
        Ok(Done::Settled(Settled::Rejected)) => output.word(Word::Buried),
        Ok(Done::Settled(Settled::Extended(_))) => output.word(Word::Touched),
        Ok(Done::Settled(Settled::Acknowledged)) => output.word(Word::Deleted),
        Err(error) => output.word(word_for(&error)),
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
        Error::Overloaded | Error::Full(_) => Word::OutOfMemory,
        Error::Stopping => Word::Draining,
        Error::Unavailable(_) => Word::InternalError,
    }
}
