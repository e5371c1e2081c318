//! Where shards are, as far as a node knows.

use punctual_core::store::{Fence, Incarnation, ShardId};

/// Where a shard is, seen from a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// At this node, or on its way to it.
    Here,
    /// At another one.
    At(Incarnation),
    /// Nobody has it, as far as this node knows.
    Nowhere,
}

/// What a node knows of where the shards are. Of two words about a shard the one with the higher fence is true: fences
/// rise with each change of an owner. Only a store that went back to an older state says less than it said before; then
/// what it says is true.
#[derive(Clone, Debug)]
pub struct Places {
    me: Incarnation,
    /// By the shards' numbers.
    known: Vec<Known>,
    /// How often the store was asked.
    asked: u64,
}

/// A question to the store about where the shards are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asking(u64);

#[derive(Clone, Debug, Default)]
struct Known {
    fence: Fence,
    owner: Option<Incarnation>,
    /// How often the store had been asked when this was heard.
    heard: u64,
}

impl Places {
    /// Knows nothing yet of so many shards.
    pub fn new(me: Incarnation, shards: u16) -> Places {
        Places { me, known: vec![Known::default(); usize::from(shards)], asked: 0 }
    }

    /// Where a shard is.
    pub fn place(&self, shard: ShardId) -> Place {
        match &self.known[usize::from(shard.0)].owner {
            None => Place::Nowhere,
            Some(owner) if *owner == self.me => Place::Here,
            Some(owner) => Place::At(owner.clone()),
        }
    }

    /// The latest fence of a shard, and who has the shard by it.
    pub fn known(&self, shard: ShardId) -> (Fence, Option<&Incarnation>) {
        let known = &self.known[usize::from(shard.0)];
        (known.fence, known.owner.as_ref())
    }

    /// Somebody says who has a shard by this fence. Says whether that was news.
    pub fn learn(&mut self, shard: ShardId, fence: Fence, owner: Option<&Incarnation>) -> bool {
        let is_news = self.known.get(usize::from(shard.0)).is_some_and(|known| known.fence < fence);
        if is_news {
            self.correct(shard, fence, owner);
        }
        is_news
    }

    /// The store is about to be asked where the shards are.
    pub fn ask(&mut self) -> Asking {
        self.asked += 1;
        Asking(self.asked)
    }

    /// The store has said who has a shard, and was asked so. Says whether that was news. A lower fence than one that was
    /// known before the question is news, too: the store has lost the moments in which that one was granted. One that was
    /// heard of since may have been granted after the answer.
    pub fn told(&mut self, asking: Asking, shard: ShardId, fence: Fence, owner: Option<&Incarnation>) -> bool {
        let has_gone_back = |known: &Known| fence < known.fence && known.heard < asking.0;
        let is_less = self.known.get(usize::from(shard.0)).is_some_and(has_gone_back);
        if is_less {
            self.correct(shard, fence, owner);
        }
        is_less || self.learn(shard, fence, owner)
    }

    /// Who has a shard is certain, whatever was known before: the store has just said so, and may be another one.
    pub fn correct(&mut self, shard: ShardId, fence: Fence, owner: Option<&Incarnation>) {
        self.known[usize::from(shard.0)] = Known { fence, owner: owner.cloned(), heard: self.asked };
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::Name;

    use super::*;

    fn life(node: &str, number: u64) -> Incarnation {
        Incarnation { node: Name::new(node).unwrap(), number }
    }

    #[test]
    fn the_higher_fence_is_believed_whenever_it_comes() {
        let (me, other) = (life("a", 1), life("b", 2));
        let mut places = Places::new(me.clone(), 1);
        assert_eq!(places.place(ShardId(0)), Place::Nowhere);
        assert!(places.learn(ShardId(0), Fence(7), Some(&other)));
        assert!(!places.learn(ShardId(0), Fence(6), Some(&me)), "that was before");
        assert_eq!(places.place(ShardId(0)), Place::At(other.clone()));
        assert!(places.learn(ShardId(0), Fence(8), Some(&me)));
        assert_eq!(places.place(ShardId(0)), Place::Here);
        assert!(!places.learn(ShardId(1), Fence(9), Some(&other)), "there is no such shard");
        places.correct(ShardId(0), Fence(2), None);
        assert_eq!(places.known(ShardId(0)), (Fence(2), None));
    }

    #[test]
    fn a_store_that_went_back_is_believed_and_an_answer_that_is_old_is_not() {
        let (me, other) = (life("a", 1), life("b", 2));
        let mut places = Places::new(me.clone(), 1);
        let before = places.ask();
        places.learn(ShardId(0), Fence(7), Some(&other));
        assert!(!places.told(before, ShardId(0), Fence(5), Some(&me)), "it moved while the answer was on its way");
        assert_eq!(places.known(ShardId(0)), (Fence(7), Some(&other)));
        let after = places.ask();
        assert!(places.told(after, ShardId(0), Fence(5), Some(&me)));
        assert_eq!(places.place(ShardId(0)), Place::Here);
        assert!(!places.told(after, ShardId(0), Fence(5), Some(&me)), "that is known by now");
        assert!(places.learn(ShardId(0), Fence(7), Some(&other)), "somebody may not have heard of it yet");
        assert!(!places.told(after, ShardId(0), Fence(5), Some(&me)));
        let again = places.ask();
        assert!(places.told(again, ShardId(0), Fence(5), Some(&me)));
        assert!(!places.told(again, ShardId(1), Fence(5), Some(&me)), "there is no such shard");
    }

    #[test]
    fn another_life_of_a_node_is_another_node() {
        let mut places = Places::new(life("a", 1), 1);
        places.learn(ShardId(0), Fence(1), Some(&life("a", 2)));
        assert_eq!(places.place(ShardId(0)), Place::At(life("a", 2)));
    }
}
