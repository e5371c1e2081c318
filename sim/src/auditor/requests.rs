//! What must hold of requests wherever they go: each is carried out once at most, what is said to be undone is, what is
//! said to be in doubt was lost by somebody, and what was asked at once about one task happens in its order.

use std::collections::{BTreeMap, BTreeSet};

use super::{Auditor, Promise, Verdict};
use crate::record::{StepRecord, Tag};

/// What is known of requests.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// In a step that took effect.
    carried_out: BTreeSet<Tag>,
    /// Their link broke, their node died, or their shard was lost.
    in_doubt: BTreeSet<Tag>,
    /// Whoever asked was told that nothing was done.
    undone: BTreeSet<Tag>,
    /// Those that were asked at once, by the first of them.
    together: BTreeMap<Tag, Tag>,
    /// Consumers that were given something.
    given: BTreeSet<Tag>,
}

impl Requests {
    /// One that was asked at once with this one, after it, and is carried out already.
    fn overtook(&self, tag: Tag) -> Option<Tag> {
        let first = self.together.get(&tag)?;
        let after = self.together.range(tag + 1..).take_while(|(_, of)| *of == first).map(|(after, _)| *after);
        after.filter(|after| self.carried_out.contains(after)).last()
    }
}

impl Auditor {
    /// These were asked at once, in this order.
    pub fn together(&mut self, tags: &[Tag]) {
        if let Some(first) = tags.first() {
            self.requests.together.extend(tags.iter().map(|tag| (*tag, *first)));
        }
    }

    /// Nobody can know what becomes of a request.
    pub fn in_doubt(&mut self, tag: Tag) {
        self.requests.in_doubt.insert(tag);
    }

    /// Whoever asked was told that it may have been done or not.
    pub fn told_unknown(&mut self, tag: Tag) {
        if !self.requests.in_doubt.contains(&tag) {
            let what = format!("request {tag} is said to be in doubt, though nothing was lost");
            self.accuse(Promise::CertainAnswers, "", what);
        }
    }

    /// Whoever asked was told that nothing was done.
    pub fn told_nothing_done(&mut self, tag: Tag) {
        self.requests.undone.insert(tag);
        if self.requests.carried_out.contains(&tag) {
            let what = format!("of request {tag} nothing was done, it is said, but it took effect");
            self.accuse(Promise::CertainAnswers, "", what);
        }
    }

    /// A consumer gets what was handed out to another request, under which it was lent.
    pub fn lent(&mut self, guest: Tag, to: Tag) {
        if let Some(reply) = self.answered.remove(&guest) {
            self.answered.insert(to, reply);
        }
    }

    /// A consumer is given something.
    pub fn gave(&mut self, to: Tag) {
        if !self.requests.given.insert(to) {
            self.accuse(Promise::OneTicket, "", format!("the consumer of request {to} is served twice"));
        }
    }

    /// A step was lost: what it carried out was not, after all.
    pub(super) fn uncarry(&mut self, record: &StepRecord) {
        record.requests.iter().for_each(|(tag, _)| _ = self.requests.carried_out.remove(tag));
    }

    /// A step carries requests out.
    pub(super) fn carry_out(&mut self, record: &StepRecord) -> Verdict {
        let requests = &mut self.requests;
        for (tag, command) in &record.requests {
            let subject = command.row().map(|key| format!("{key:?}")).unwrap_or_default();
            if !requests.carried_out.insert(*tag) {
                return Err((Promise::OnlyOnce, subject, format!("request {tag} is carried out twice")));
            }
            if requests.undone.contains(tag) {
                let what = format!("request {tag} takes effect after it was said that nothing was done");
                return Err((Promise::CertainAnswers, subject, what));
            }
            // One whose link broke may be late, and whoever asked knows that.
            if let Some(later) = requests.overtook(*tag).filter(|_| !requests.in_doubt.contains(tag)) {
                let what = format!("request {tag} is carried out after {later}, which was asked after it");
                return Err((Promise::InOrder, subject, what));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::store::{Fence, ShardId};
    use punctual_core::{Command, Millis, Timestamp};

    use super::*;

    /// A step that carries these requests out.
    fn step(tags: &[Tag]) -> StepRecord {
        StepRecord {
            node: 0,
            shard: ShardId(0),
            fence: Fence::default(),
            step: 1,
            now: Timestamp::ZERO,
            clock: Timestamp::ZERO,
            clock_width: Millis(1),
            truth: None,
            requests: tags.iter().map(|tag| (*tag, Command::Total)).collect(),
            read_at: BTreeMap::new(),
            answers: BTreeMap::new(),
            holders: BTreeMap::new(),
            waited_since: Timestamp::ZERO,
            late: Vec::new(),
            batch: None,
        }
    }

    fn accused(verdict: Verdict) -> Option<Promise> {
        verdict.err().map(|(promise, _, _)| promise)
    }

    #[test]
    fn what_was_asked_at_once_is_carried_out_in_its_order() {
        let mut auditor = Auditor::default();
        auditor.together(&[1, 2, 3]);
        auditor.together(&[4, 5]);
        assert_eq!(accused(auditor.carry_out(&step(&[4, 1]))), None);
        assert_eq!(accused(auditor.carry_out(&step(&[3, 5]))), None);
        assert_eq!(accused(auditor.carry_out(&step(&[2]))), Some(Promise::InOrder));
    }

    #[test]
    fn a_step_that_was_lost_may_be_carried_out_once_more() {
        let mut auditor = Auditor::default();
        auditor.together(&[1, 2]);
        assert_eq!(accused(auditor.carry_out(&step(&[1, 2]))), None);
        auditor.uncarry(&step(&[1, 2]));
        assert_eq!(accused(auditor.carry_out(&step(&[1, 2]))), None);
        assert_eq!(accused(auditor.carry_out(&step(&[2]))), Some(Promise::OnlyOnce));
    }
}
