//! Another node, of which there is nothing but what it says: its place on the roll, and the other end of a link. A scene
//! plays it, so that it says what a scene needs when it needs it.

use std::collections::VecDeque;
use std::sync::Arc;

use punctual_center::{Card, Ears, Greeting, LinkId, Links, Message, Peer, Unsent};
use punctual_core::Millis;
use punctual_core::store::{Beat, Incarnation, Roll, ShardId, Store};
use punctual_memory::MemoryStore;
use punctual_node::NodeConfig;
use shuttle::sync::{Condvar, Mutex, MutexGuard};
use shuttle::thread::{self, JoinHandle};

use crate::stage::name;

/// The one link, which the real node has dialled.
const LINK: LinkId = LinkId(1);

#[derive(Default)]
pub struct Other {
    heard: Mutex<Heard>,
    bell: Condvar,
    /// It does not hear what is asked of its shards.
    is_forgetful: bool,
}

#[derive(Default)]
struct Heard {
    ears: Option<Arc<dyn Ears>>,
    unread: VecDeque<Message>,
    /// All that was said to it.
    all: Vec<Message>,
    is_over: bool,
}

impl Other {
    pub fn new() -> Arc<Other> {
        Arc::default()
    }

    /// One whose link takes requests and loses them.
    pub fn forgetful() -> Arc<Other> {
        Arc::new(Other { is_forgetful: true, ..Other::default() })
    }

    /// How a node is set up that has a way to it. The center has two shards.
    pub fn beside(self: &Arc<Other>, config: NodeConfig) -> NodeConfig {
        let card = Card { link: Some("node".into()), ..Card::default() };
        NodeConfig { links: Some(Arc::new(Wire(Arc::clone(self)))), card, shards: 2, ..config }
    }

    fn who() -> Incarnation {
        Incarnation { node: name("other"), number: 1 }
    }

    /// Gets onto the roll, or off it.
    pub fn beat(&self, store: &MemoryStore, lease: Millis) -> Roll {
        let card = Card { link: Some("other".into()), ..Card::default() };
        store.beat(&Beat { who: Other::who(), address: card.to_string(), lease }).unwrap()
    }

    /// Gets onto the roll, and takes a shard that nobody has.
    pub fn claim(&self, store: &MemoryStore, shard: ShardId) {
        let roll = self.beat(store, Millis::from_hours(1));
        store.claim(&Other::who(), &[(shard, roll.fence(shard))]).unwrap();
    }

    /// The link comes up.
    pub fn link_up(&self) {
        let ears = self.heard().ears.clone().expect("the node has started");
        ears.linked(LINK, &Greeting { who: Other::who(), software: "scene".into(), levels: 1..=1 });
    }

    /// Answers what is said to it, until it is [ended](Other::end).
    pub fn play(
        self: &Arc<Other>,
        mut answer: impl FnMut(Message) -> Option<Message> + Send + 'static,
    ) -> JoinHandle<()> {
        let other = Arc::clone(self);
        thread::spawn(move || {
            while let Some((message, ears)) = other.next() {
                if let Some(said) = answer(message) {
                    ears.told(LINK, vec![said]);
                }
            }
        })
    }

    fn next(&self) -> Option<(Message, Arc<dyn Ears>)> {
        let mut heard = self.heard();
        loop {
            let ears = heard.ears.clone();
            match heard.unread.pop_front().zip(ears) {
                Some(next) => return Some(next),
                None if heard.is_over => return None,
                None => heard = self.bell.wait(heard).unwrap(),
            }
        }
    }

    /// It answers what was said to it, and nothing that comes later.
    pub fn end(&self, playing: JoinHandle<()>) {
        self.heard().is_over = true;
        self.bell.notify_all();
        playing.join().unwrap();
    }

    /// The shard that was handed to it, if it was told so.
    pub fn handed(&self) -> Option<ShardId> {
        self.heard().all.iter().find_map(|message| match message {
            Message::Handed { shard, .. } => Some(*shard),
            _ => None,
        })
    }

    /// How many requests were asked of it.
    pub fn asked(&self) -> usize {
        self.heard().all.iter().filter(|message| matches!(message, Message::Ask { .. })).count()
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap()
    }
}

/// The node's end of the link.
struct Wire(Arc<Other>);

impl Links for Wire {
    fn open(&self, _: &Incarnation, ears: Arc<dyn Ears>) {
        self.0.heard().ears = Some(ears);
    }

    fn keep(&self, _: &[Peer]) {}

    fn ask(&self, _: LinkId, message: Message) -> Result<(), Unsent> {
        let is_lost = self.0.is_forgetful && matches!(message, Message::Ask { .. });
        if !is_lost {
            let mut heard = self.0.heard();
            heard.all.push(message.clone());
            heard.unread.push_back(message);
            self.0.bell.notify_all();
        }
        Ok(())
    }

    fn answer(&self, _: LinkId, _: Message) {}

    fn is_congested(&self, _: LinkId) -> bool {
        false
    }

    fn close(&self) {
        self.0.heard().ears = None;
    }
}
