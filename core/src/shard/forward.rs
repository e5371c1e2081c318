//! Dead letters that go on to another topic.
//!
//! The topic may be in another shard, so this is a journey: the dead letter stays here until it is
//! known to have arrived. It is sent again if no word comes, under the same id, so it arrives once.
//! No word comes either while the topic takes nothing for now: then it is sent less and less often.

use super::Shard;
use super::desk::Slot;
use crate::answer::{Answer, Refused, Reply};
use crate::attempt::NOTE_BYTES;
use crate::name::Name;
use crate::state::{Death, Ending, Phase};
use crate::store::{Key, ShardId};
use crate::task::{Content, Headers, Task, unpack};
use crate::time::{Millis, Timestamp};

/// How long to wait for word before sending again, at least and at most.
const PATIENCE: (Millis, Millis) = (Millis::from_secs(60), Millis::from_hours(6));

/// How many topics a dead letter may pass before it stays where it is: topics may feed each other in a circle.
const HOPS: u32 = 16;

/// A dead letter to be scheduled in another topic.
#[derive(Clone, Debug)]
pub struct Forward {
    /// The dead letter's row, to be told with [`Command::Forwarded`](crate::Command::Forwarded).
    pub key: Key,
    /// The number of its journey, to be told likewise.
    pub journey: u64,
    /// The task to schedule.
    pub task: Task,
    /// The id to schedule it under.
    pub id: Name,
}

/// What the headers begin with that Punctual sets.
pub(crate) const HEADER_PREFIX: &str = "punctual-";

/// What the headers of a forwarded dead letter begin with. Nobody else may set them.
pub(crate) const DEAD_PREFIX: &str = "punctual-dead-";

impl<R> Shard<R> {
    /// Sends a dead letter on, or lets it stay if it has come too far.
    pub(super) fn forward(&mut self, slot: Slot) {
        let row = &self.desk[slot];
        let Phase::Forwarding { to, number, death } = row.state.phase.clone() else { return };
        if !self.desk.has_body(slot) {
            return self.bury(slot, death.adding("its task no longer exists"));
        }
        let Content { form, mut headers, body } = unpack(self.desk[slot].body().expect("it was looked for"));
        let hops = headers.iter().find(|(name, _)| name == "punctual-dead-hops");
        let hops = hops.and_then(|(_, hops)| hops.parse().ok()).unwrap_or(0u32).saturating_add(1);
        if hops > HOPS {
            let why = format!("it has passed through {HOPS} topics: do their dead letters form a loop?");
            return self.bury(slot, death.adding(&why));
        }
        headers.retain(|(name, _)| !name.starts_with(DEAD_PREFIX));
        headers.extend(self.dead_headers(slot, &death, hops));
        let row = &self.desk[slot];
        let mut task = Task::new(to, body).form(form);
        task.headers = headers;
        task.routing_key = row.state.routing_key.clone();
        task.key = row.group().cloned();
        task.priority = Some(row.state.priority);
        // It may have been sent before its shard was divided, and has to arrive once.
        let born_in = self.config.eras.birthplace(self.id(), number, self.config.shards);
        let id = forward_id(row.key().id(), born_in, number);
        self.draft.forward(Forward { key: row.key().clone(), journey: number, task, id });
        self.hold_until(slot, self.now.plus(patience(death.at, self.now)));
    }

    fn dead_headers(&self, slot: Slot, death: &Death, hops: u32) -> Headers {
        let row = &self.desk[slot];
        let header = |name: &str, value: String| (format!("{DEAD_PREFIX}{name}"), value);
        let mut headers = vec![
            header("topic", row.key().topic().to_owned()),
            header("id", row.key().id().to_owned()),
            header("queue", row.state.queue.as_ref().map(Name::to_string).unwrap_or_default()),
            header("reason", death.reason.as_str().to_owned()),
            header("attempts", row.state.attempts.to_string()),
            header("at", death.at.as_millis().to_string()),
            header("hops", hops.to_string()),
        ];
        headers.extend(death.note.clone().map(|note| header("note", note)));
        headers
    }

    /// Word has come about a dead letter that was sent on.
    pub(super) fn forwarded(&mut self, key: &Key, journey: u64, refused: Option<String>) -> Reply {
        let Some(slot) = self.desk.by_key(key) else { return Err(Refused::NothingThere) };
        let (to, death) = match self.desk[slot].state.phase.clone() {
            Phase::Forwarding { to, number, death } if number == journey => (to, death),
            _ => return Err(Refused::NothingThere),
        };
        match refused {
            None => self.end(slot, Ending::Forwarded),
            Some(why) => self.bury(slot, death.adding(&format!("topic {to} did not accept it: {why}"))),
        }
        Ok(Answer::Noted)
    }
}

impl Death {
    /// The same death with what came of sending it on. What was said of the death itself comes first, and is cut if
    /// both together are longer than a note may be.
    fn adding(mut self, why: &str) -> Death {
        let mut note = self.note.take().unwrap_or_default();
        if !note.is_empty() {
            note.truncate(note.floor_char_boundary(NOTE_BYTES.saturating_sub(why.len() + 2)));
            note.push_str("; ");
        }
        note.push_str(why);
        note.truncate(note.floor_char_boundary(NOTE_BYTES));
        Death { note: Some(note), ..self }
    }
}

/// How long to wait for word of a dead letter: half as long as it has been dead, within bounds.
fn patience(died_at: Timestamp, now: Timestamp) -> Millis {
    Millis(now.since(died_at).0 / 2).clamp(PATIENCE.0, PATIENCE.1)
}

/// The original id, so that a person finds it, and what makes it this one death of many.
fn forward_id(id: &str, shard: ShardId, number: u64) -> Name {
    let suffix = format!("~{}.{number}", shard.0);
    let room = Name::MAX_BYTES - suffix.len();
    let end = (0..=room.min(id.len())).rev().find(|end| id.is_char_boundary(*end)).unwrap_or(0);
    Name::stored(&format!("{}{suffix}", &id[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_is_waited_for_longer_and_longer() {
        let waits = [0, 119_999, 121_000, 600_000, u64::MAX]
            .map(|dead_for| patience(Timestamp::ZERO, Timestamp::from_millis(dead_for)));
        assert_eq!(waits.map(|wait| wait.0), [60_000, 60_000, 60_500, 300_000, 21_600_000]);
        assert_eq!(patience(Timestamp::LAST, Timestamp::ZERO), PATIENCE.0, "the clock was set back");
    }

    #[test]
    fn a_note_that_is_added_to_stays_as_short_as_notes_are() {
        use crate::state::Reason;
        let noted = |note: Option<String>| {
            let death = Death { reason: Reason::Rejected, at: Timestamp::ZERO, note };
            death.adding("nobody took it").note.unwrap_or_default()
        };
        assert_eq!(noted(None), "nobody took it");
        assert_eq!(noted(Some("no".into())), "no; nobody took it");
        let long = noted(Some("é".repeat(NOTE_BYTES / 2)));
        assert!(long.len() <= NOTE_BYTES && long.starts_with("éé") && long.ends_with("é; nobody took it"), "{long}");
    }

    #[test]
    fn a_forwarded_id_keeps_the_original_and_fits() {
        assert_eq!(forward_id("order-7", ShardId(2), 99).as_str(), "order-7~2.99");
        let long = forward_id(&"é".repeat(127), ShardId(0), u64::MAX);
        assert!(long.len() <= Name::MAX_BYTES && long.starts_with('é'));
    }
}
