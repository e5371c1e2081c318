//! What lists leave out beside what they are lists of: filters that fit any of them, for which every row is looked at.

use crate::answer::Standing;
use crate::name::Name;
use crate::view::TaskView;

/// Which tasks of a list are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sieve {
    /// Only those that are with this consumer.
    pub holder: Option<Name>,
    /// Only those that were handed out so often, at least.
    pub attempts_min: Option<u32>,
    /// Only those with this text in their id, key or routing key, or in the note with which they died.
    pub contains: Option<String>,
}

impl Sieve {
    /// Nothing is left out.
    pub const ALL: Sieve = Sieve { holder: None, attempts_min: None, contains: None };

    /// Whether nothing is left out.
    pub fn is_all(&self) -> bool {
        *self == Sieve::ALL
    }

    /// Whether a task is meant.
    pub fn fits(&self, task: &TaskView) -> bool {
        let delivery = &task.delivery;
        let holder = match &delivery.standing {
            Standing::Leased { holder, .. } => Some(holder),
            _ => None,
        };
        let note = delivery.death.as_ref().and_then(|death| death.note.as_deref());
        let texts = [Some(&*task.id), task.key.as_deref(), task.routing_key.as_deref(), note];
        let is_in = |text: &String| texts.into_iter().flatten().any(|known| known.contains(text.as_str()));
        (self.holder.is_none() || self.holder.as_ref() == holder)
            && self.attempts_min.is_none_or(|least| delivery.attempts >= least)
            && self.contains.as_ref().is_none_or(is_in)
    }
}
