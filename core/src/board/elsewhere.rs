//! What the board has to do with those of other nodes: what is known of them, who is lent to them, and who comes from them.
//!
//! **Invariant**: a consumer that is lent stands in no line here, keeps its place, and has no deadline until it is back.
//! What is to be done about it all is decided by who calls this: here stands only what serving and giving up must heed.

use std::collections::{BTreeMap, BTreeSet};

use super::{Board, ByQueue, PATIENCE, Posted, Reserve, Stand, Ticket, shards};
use crate::name::Name;
use crate::store::ShardId;
use crate::time::Timestamp;

/// Another node, by the number of the link to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Elsewhere(pub u64);

/// What is known of a queue that other nodes were told to be wanted.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// By node: it has something, or has yet to say so. Who has nothing is not in here.
    words: BTreeMap<Elsewhere, Word>,
    /// Somebody has come to wait since this was last asked.
    is_used: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Awaited,
    Stocked,
}

impl Wanted {
    fn is_stocked(&self) -> bool {
        self.words.values().any(|word| *word == Word::Stocked)
    }
}

/// What happened on the board that concerns other nodes, as far as somebody listens.
#[derive(Debug, Default)]
pub(super) struct Abroad {
    is_listening: bool,
    /// Queues for which somebody waits that others have yet to hear of, or who may be lent.
    news: BTreeSet<Name>,
    /// Queues that were watched and have something to give.
    offers: BTreeSet<Name>,
}

impl Abroad {
    /// Whether somebody listens.
    pub fn is_any(&self) -> bool {
        self.is_listening
    }

    /// A consumer of this node's stands in line for a queue.
    pub fn came(&mut self, queue: &Name, known: &mut ByQueue) {
        if self.is_listening {
            if let Some(wanted) = &mut known.wanted {
                wanted.is_used = true;
            }
            self.is_free(queue, known);
        }
    }

    /// No shard here has yet to look for a consumer of this queue.
    pub fn is_free(&mut self, queue: &Name, known: &ByQueue) {
        if self.is_listening && known.wanted.as_ref().is_none_or(Wanted::is_stocked) {
            self.news.insert(queue.clone());
        }
    }
}

/// Who may be lent next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The consumer that has waited longest for a queue.
    pub ticket: Ticket,
    /// Shards here have something for it, and have yet to look.
    pub is_expected_here: bool,
}

/// For who lends consumers of this node to others.
impl<R> Board<R> {
    /// From now on there are other nodes, or none any more.
    pub fn listen(&mut self, is_on: bool) {
        self.abroad.is_listening = is_on;
        self.abroad.news.clear();
        if is_on {
            let waited_for = self.by_queue.iter().filter(|(_, known)| !known.waiting.is_empty());
            self.abroad.news.extend(waited_for.map(|(queue, _)| queue.clone()));
        }
    }

    /// The queues for which somebody has come to wait that others have yet to hear of, or for whom others have something.
    pub fn take_news(&mut self) -> BTreeSet<Name> {
        std::mem::take(&mut self.abroad.news)
    }

    /// Others hear that a queue is wanted, or that it is not any more: then nothing is known of them.
    pub fn want(&mut self, queue: &Name, is_wanted: bool) {
        if is_wanted {
            let known = self.by_queue.entry(queue.clone()).or_default();
            known.wanted.get_or_insert_default().is_used = true;
        } else if let Some(known) = self.by_queue.get_mut(queue) {
            known.wanted = None;
            self.tidy(queue);
        }
    }

    /// Whether others have heard that a queue is wanted.
    pub fn is_wanted(&self, queue: &str) -> bool {
        self.by_queue.get(queue).is_some_and(|known| known.wanted.is_some())
    }

    /// Whether somebody waits for a queue that is wanted, or has done so since this was last asked.
    pub fn is_still_wanted(&mut self, queue: &str) -> bool {
        let Some(known) = self.by_queue.get_mut(queue) else { return false };
        let was_used = known.wanted.as_mut().is_some_and(|wanted| std::mem::take(&mut wanted.is_used));
        was_used || !known.waiting.is_empty()
    }

    /// A node has yet to say whether it has something in a queue that is wanted.
    pub fn await_word(&mut self, of: Elsewhere, queue: &Name) {
        self.note(of, queue, Some(Word::Awaited));
    }

    /// A node has said whether it has something in a queue that is wanted, or is not there any more.
    pub fn hear(&mut self, of: Elsewhere, queue: &Name, is_stocked: bool) {
        self.note(of, queue, is_stocked.then_some(Word::Stocked));
    }

    /// A node does not say whether it has something, and is not waited for any longer. What it said before counts.
    pub fn stop_awaiting(&mut self, of: Elsewhere, queue: &str) {
        let wanted = self.by_queue.get_mut(queue).and_then(|known| known.wanted.as_mut());
        if let Some(wanted) = wanted.filter(|wanted| wanted.words.get(&of) == Some(&Word::Awaited)) {
            wanted.words.remove(&of);
        }
    }

    fn note(&mut self, of: Elsewhere, queue: &Name, word: Option<Word>) {
        let Some(known) = self.by_queue.get_mut(queue) else { return };
        let Some(wanted) = &mut known.wanted else { return };
        match word {
            Some(word) => _ = wanted.words.insert(of, word),
            None => _ = wanted.words.remove(&of),
        }
        if word == Some(Word::Stocked) && !known.waiting.is_empty() {
            self.abroad.news.insert(queue.clone());
        }
    }

    /// The nodes that have something in a queue.
    pub fn stocked_elsewhere(&self, queue: &str) -> impl Iterator<Item = Elsewhere> {
        let words = self.by_queue.get(queue).and_then(|known| known.wanted.as_ref()).map(|wanted| &wanted.words);
        words.into_iter().flatten().filter(|(_, word)| **word == Word::Stocked).map(|(of, _)| *of)
    }

    /// The consumer of this node that has waited longest for a queue.
    pub fn candidate(&self, queue: &str) -> Option<Candidate> {
        let own = |ticket: &&Ticket| self.waiting[ticket].stand == Stand::Here;
        let ticket = *self.by_queue.get(queue)?.waiting.iter().find(own)?;
        Some(Candidate { ticket, is_expected_here: self.waiting[&ticket].asked > 0 })
    }

    /// Lends a consumer that waits here: none of the shards here serves it until it is taken back. Says what it wants, and
    /// the count of hand-outs with this one.
    pub fn lend(&mut self, ticket: Ticket) -> (&Reserve, u64) {
        self.step_out(ticket);
        self.hand_outs += 1;
        let waiting = self.waiting.get_mut(&ticket).expect("it waits here");
        waiting.stand = Stand::Lent;
        (&waiting.reserve, self.hand_outs)
    }

    /// A consumer that was lent is back at its old place, if it has not left: these shards should look for it.
    pub fn take_back(&mut self, ticket: Ticket) -> Vec<ShardId> {
        match self.waiting.get_mut(&ticket) {
            Some(waiting) if waiting.stand == Stand::Lent => waiting.stand = Stand::Here,
            _ => return Vec::new(),
        }
        self.line_up(ticket)
    }

    /// Whether another node has, or may have, something for a consumer whose time is over, and there is hope to get it.
    pub(super) fn is_hoped_for(&self, reserve: &Reserve, now: Timestamp) -> bool {
        let is_open = |queue: &Name| {
            let wanted = self.by_queue.get(queue).and_then(|known| known.wanted.as_ref());
            wanted.is_some_and(|wanted| !wanted.words.is_empty())
        };
        self.abroad.is_listening && now < reserve.until.plus(PATIENCE) && reserve.queues.iter().any(is_open)
    }
}

/// For who takes in consumers of other nodes.
impl<R> Board<R> {
    /// Puts a consumer on the board that another node has lent to this one. It gets what is there, and does not wait.
    pub fn host(&mut self, reserve: Reserve, reply: R) -> Posted {
        self.put(reserve, reply, Stand::Guest)
    }

    /// Whether some shard here has something in a queue.
    pub fn is_stocked(&self, queue: &str) -> bool {
        self.by_queue.get(queue).is_some_and(|known| !known.stocked.is_empty())
    }

    /// Whether all shards that are here have said what they have.
    pub fn knows_its_stock(&self) -> bool {
        self.expected.is_empty()
    }

    /// Watches a queue until a shard has something to give that nobody here takes: then it is among the
    /// [offers](Board::take_offers), once. These shards should look whether they have.
    pub fn watch(&mut self, queue: &Name) -> Vec<ShardId> {
        let known = self.by_queue.entry(queue.clone()).or_default();
        if !known.concerns_somebody() {
            known.stocked.iter().for_each(|shard| shards::meet(&mut self.meetings, *shard, queue));
        }
        known.is_watched = true;
        known.stocked.iter().copied().collect()
    }

    /// Does not watch a queue any more.
    pub fn unwatch(&mut self, queue: &Name) {
        let Some(known) = self.by_queue.get_mut(queue) else { return };
        known.is_watched = false;
        if !known.concerns_somebody() {
            known.stocked.iter().for_each(|shard| shards::part(&mut self.meetings, *shard, queue));
        }
        self.tidy(queue);
    }

    /// The queues that were watched and in which there is something for others.
    pub fn take_offers(&mut self) -> BTreeSet<Name> {
        std::mem::take(&mut self.abroad.offers)
    }

    /// The queues that are watched, in which a shard has something and for which nobody waits here.
    pub(crate) fn watched(&self, shard: ShardId) -> impl Iterator<Item = &Name> {
        let is_left = |queue: &&Name| {
            let known = &self.by_queue[*queue];
            known.is_watched && known.waiting.is_empty()
        };
        self.meetings(shard).filter(is_left)
    }

    /// A queue that is watched has something to give.
    pub(crate) fn offer(&mut self, queue: &Name) {
        self.unwatch(queue);
        self.abroad.offers.insert(queue.clone());
    }
}
