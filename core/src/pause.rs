//! Who paused a topic or queue, since when, and why: a note that stands with the settings.
//!
//! **Invariant**: only what is paused has a note. Nothing that happens to a task depends on it: a pause of which nobody
//! knows anything, because an older server made it, is a pause like any other.

use crate::answer::Refused;
use crate::settings::{QueueSettings, TopicSettings};
use crate::time::Timestamp;

/// The longest reason that may be given for a pause, in bytes.
pub const REASON_BYTES: usize = 1_024;

/// What is known of a pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseNote {
    /// Who paused it: the name of a token.
    pub by: String,
    /// Since when it is paused without a break.
    pub since: Timestamp,
    /// Why, if that was said.
    pub reason: Option<String>,
}

impl PauseNote {
    /// Whether it can be kept.
    pub fn check(&self) -> Result<(), Refused> {
        match &self.reason {
            Some(reason) if reason.len() > REASON_BYTES => {
                let why = format!("{} bytes, but at most {REASON_BYTES} are kept: make it shorter", reason.len());
                Err(Refused::Invalid { field: "reason", why })
            }
            _ => Ok(()),
        }
    }

    /// The same for a pause that takes the place of another one: it has been paused since that began.
    fn after(self, before: Option<&PauseNote>) -> PauseNote {
        let since = before.map_or(self.since, |before| before.since.min(self.since));
        PauseNote { since, ..self }
    }
}

impl TopicSettings {
    /// Paused, and by whom; also if it is already.
    #[must_use]
    pub fn paused_by(self, note: Option<PauseNote>) -> TopicSettings {
        let before = self.pause.as_ref().filter(|_| self.paused);
        let pause = note.map(|note| note.after(before));
        TopicSettings { paused: true, pause, ..self }
    }

    /// These settings in the place of others. A pause that goes on keeps its note; one that begins has the note that these
    /// bring along; without a pause there is none.
    #[must_use]
    pub fn in_place_of(mut self, present: Option<&TopicSettings>) -> TopicSettings {
        if let Some(present) = present.filter(|present| present.paused) {
            self.pause.clone_from(&present.pause);
        }
        self.pause.take_if(|_| !self.paused);
        self
    }
}

impl QueueSettings {
    /// Whether a pause is in force.
    pub fn is_paused(&self, now: Timestamp) -> bool {
        self.paused_until.is_some_and(|until| now < until)
    }

    /// Paused until then, and by whom; also if it is already.
    #[must_use]
    pub fn paused_by(self, until: Timestamp, note: Option<PauseNote>, now: Timestamp) -> QueueSettings {
        let before = self.pause.as_ref().filter(|_| self.is_paused(now));
        let pause = note.map(|note| note.after(before));
        QueueSettings { paused_until: Some(until), pause, ..self }
    }

    /// These settings in the place of others, likewise. A pause whose end is moved goes on.
    #[must_use]
    pub fn in_place_of(mut self, present: Option<&QueueSettings>, now: Timestamp) -> QueueSettings {
        if let Some(present) = present.filter(|present| present.is_paused(now)) {
            self.pause.clone_from(&present.pause);
        }
        self.pause.take_if(|_| self.paused_until.is_none());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(100);

    fn note(by: &str, since: u64, reason: Option<&str>) -> PauseNote {
        PauseNote { by: by.into(), since: Timestamp::from_millis(since), reason: reason.map(Into::into) }
    }

    fn paused(until: Timestamp, note: &PauseNote) -> QueueSettings {
        QueueSettings::default().paused_by(until, Some(note.clone()), note.since)
    }

    #[test]
    fn who_pauses_what_is_paused_takes_over_and_the_pause_is_as_old_as_it_was() {
        let (amy, bob) = (note("amy", 50, Some("gateway down")), note("bob", 100, None));
        let topic = TopicSettings::default().paused_by(Some(amy.clone())).paused_by(Some(bob.clone()));
        assert_eq!(topic.pause, Some(note("bob", 50, None)));
        let queue = paused(Timestamp::NEVER, &amy).paused_by(Timestamp::from_millis(200), Some(bob.clone()), NOW);
        assert_eq!(queue.pause, Some(note("bob", 50, None)));
        let over = paused(NOW, &amy).paused_by(Timestamp::NEVER, Some(bob.clone()), NOW);
        assert_eq!(over.pause, Some(bob), "a pause that was over is not gone on with");
    }

    #[test]
    fn other_settings_leave_the_note_of_a_pause_alone() {
        let (amy, bob) = (note("amy", 50, Some("gateway down")), note("bob", 100, None));
        let present = paused(Timestamp::NEVER, &amy);
        let longer = QueueSettings { pause: Some(bob.clone()), ..paused(Timestamp::from_millis(300), &bob) };
        assert_eq!(longer.in_place_of(Some(&present), NOW).pause, Some(amy.clone()));
        let topic = |note: &PauseNote| TopicSettings::default().paused_by(Some(note.clone()));
        assert_eq!(topic(&bob).in_place_of(Some(&topic(&amy))).pause, Some(amy.clone()));
        assert_eq!(topic(&bob).in_place_of(Some(&TopicSettings::default())).pause, Some(bob.clone()));
        assert_eq!(topic(&bob).in_place_of(None).pause, Some(bob));
    }

    #[test]
    fn what_is_not_paused_has_no_note() {
        let amy = note("amy", 50, None);
        let running = QueueSettings { pause: Some(amy.clone()), ..QueueSettings::default() };
        assert_eq!(running.in_place_of(Some(&paused(Timestamp::NEVER, &amy)), NOW).pause, None);
        let running = TopicSettings { pause: Some(amy), ..TopicSettings::default() };
        assert_eq!(running.clone().in_place_of(Some(&TopicSettings { paused: true, ..running })).pause, None);
    }

    #[test]
    fn a_reason_that_is_too_long_is_refused() {
        assert_eq!(note("amy", 1, Some(&"x".repeat(REASON_BYTES))).check(), Ok(()));
        let long = note("amy", 1, Some(&"x".repeat(REASON_BYTES + 1)));
        assert!(matches!(long.check(), Err(Refused::Invalid { field: "reason", .. })));
    }
}
