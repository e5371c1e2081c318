//! What is known of one link while it is up.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use punctual_center::{LinkId, Message};
use punctual_core::store::Incarnation;
use tokio::sync::Notify;

use crate::forms::Formed;
use crate::frame::LONGEST;
use crate::meter::{Meter, RoundTrip};
use crate::outbox::Outbox;
use crate::rebuff::Lost;
use crate::settings::{Pace, Settings};

/// One link: what its tasks and those who speak on it share.
pub(crate) struct Line {
    pub(crate) id: LinkId,
    /// Who is at the other end.
    pub(crate) peer: Incarnation,
    /// Whether this node dialled: then it also sends the pings.
    pub(crate) is_dialled: bool,
    pub(crate) outbox: Outbox,
    pub(crate) pace: Pace,
    pub(crate) meter: Arc<Meter>,
    /// Whatever is being written is not worth waiting for any more.
    pub(crate) gone: Notify,
    /// Why its end was decided here; nothing if it was wanted.
    ended: OnceLock<Option<Lost>>,
    pings: Mutex<Pings>,
}

#[derive(Default)]
struct Pings {
    number: u64,
    /// When the one of this number went out, until it is back.
    sent_at: Option<Instant>,
    round_trip: Option<RoundTrip>,
}

impl Line {
    pub(crate) fn new(id: LinkId, peer: Incarnation, is_dialled: bool, settings: &Settings, meter: Arc<Meter>) -> Line {
        let room = if is_dialled { settings.ask_room } else { settings.answer_room };
        Line {
            id,
            peer,
            is_dialled,
            outbox: Outbox::new(room),
            pace: settings.pace,
            meter,
            gone: Notify::new(),
            ended: OnceLock::new(),
            pings: Mutex::default(),
        }
    }

    /// Says something to whoever dialled. A link on which too much waits is closed: its reader does not read.
    pub(crate) fn answer(&self, message: Message) {
        let mut formed = Formed::of(&message);
        if formed.bytes() > LONGEST {
            formed = Formed::of(&shortened(message));
        }
        if self.outbox.put(&formed) == Err(punctual_center::Why::Full) {
            self.end(Some(Lost::Overfull));
        }
    }

    /// Ends the link once what waits is written.
    pub(crate) fn finish(&self) {
        _ = self.ended.set(None);
        self.outbox.finish();
    }

    /// Ends the link now, because it broke or because that is wanted.
    pub(crate) fn end(&self, lost: Option<Lost>) {
        _ = self.ended.set(lost);
        self.outbox.close();
        self.gone.notify_one();
    }

    /// Why the link ended, if nobody here wanted it.
    pub(crate) fn lost(&self) -> Option<&Lost> {
        self.ended.get().and_then(Option::as_ref)
    }

    fn pings(&self) -> MutexGuard<'_, Pings> {
        self.pings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of a ping that goes out now.
    pub(crate) fn ping(&self) -> [u8; 8] {
        let mut pings = self.pings();
        pings.number += 1;
        pings.sent_at = Some(Instant::now());
        pings.number.to_le_bytes()
    }

    /// A ping has come back.
    pub(crate) fn pong(&self, bytes: &[u8]) {
        let mut pings = self.pings();
        if *bytes == pings.number.to_le_bytes()
            && let Some(sent_at) = pings.sent_at.take()
        {
            pings.round_trip = Some(RoundTrip::after(pings.round_trip, sent_at.elapsed()));
        }
    }

    pub(crate) fn round_trip(&self) -> Option<RoundTrip> {
        self.pings().round_trip
    }
}

/// What is said instead of an answer that no frame can hold: as many deliveries as fit, since the others are handed out
/// again when their leases are over; of anything else that it is too large.
fn shortened(message: Message) -> Message {
    match message {
        Message::Served { id, mut deliveries, empty } => {
            let mut room = LONGEST / 2;
            let fitting = deliveries.iter().take_while(|delivery| {
                let headers = delivery.headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
                let bytes = delivery.body.len() + headers;
                room.checked_sub(bytes).map(|left| room = left).is_some()
            });
            let fitting = fitting.count();
            deliveries.truncate(fitting);
            Message::Served { id, deliveries, empty }
        }
        Message::Answered { id, .. } => {
            let error =
                punctual_center::Error::unknown_outcome("the answer is too large for the link between the nodes");
            Message::Answered { id, outcome: Err(error) }
        }
        // How many were told is not known, and who watches looks for itself.
        _ => Message::Missed(1),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use punctual_core::store::Key;
    use punctual_core::{Delivery, Form, Lease, Millis, Name, Timestamp};

    use super::*;

    fn delivery(body: Bytes) -> Delivery {
        let (name, at) = (Name::stored("a"), Timestamp::ZERO);
        Delivery {
            topic: name.clone(),
            id: name.clone(),
            queue: name.clone(),
            number: 1,
            body,
            form: Form::Bytes,
            headers: Vec::new(),
            routing_key: None,
            key: None,
            priority: 0,
            attempt: 1,
            scheduled_at: at,
            due: at,
            fired_at: at,
            lease: Lease { key: Key::task(&name, &name), token: 1 },
            until: at,
            lease_time: Millis(1),
        }
    }

    #[test]
    fn of_too_many_deliveries_those_that_fit_are_told() {
        let deliveries = vec![delivery(vec![0; 20 << 20].into()); 5];
        let Message::Served { id: 7, deliveries, empty } =
            shortened(Message::Served { id: 7, deliveries, empty: vec![Name::stored("q")] })
        else {
            panic!("a service stays one");
        };
        assert_eq!((deliveries.len(), empty.len()), (1, 1));
        let message = Message::Served { id: 7, deliveries, empty };
        assert!(Formed::of(&message).bytes() <= LONGEST);
    }
}
