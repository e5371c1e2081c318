//! Other nodes: the links to them, and what comes over those.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use punctual_center::{Card, Ears, Greeting, LinkId, Links, Message, Order, Passing, Peer, Unsent, Why};
use punctual_core::store::{Fence, Incarnation, Present, Roll, ShardId};
use punctual_core::{Command, Name, Request};

use crate::caller::Caller;
use crate::error::{Error, Outcome};
use crate::inquiries::Inquiries;
use crate::shared::Shared;
use crate::sync::{Condvar, Mutex, MutexGuard, lock};

/// The links of a node, and what is under way on them.
pub(crate) struct Peers {
    links: Option<Arc<dyn Links>>,
    state: Mutex<Exchange>,
    /// Rung when something waits, and at the end.
    pub bell: Condvar,
    /// Rung when another node asks nothing more.
    pub parted: Condvar,
}

#[derive(Default)]
pub(crate) struct Exchange {
    pub passing: Passing<Caller>,
    pub inquiries: Inquiries,
    /// The links that this node has dialled.
    pub dialled: BTreeMap<LinkId, Incarnation>,
    /// The links that others have dialled.
    pub joined: BTreeMap<LinkId, Joined>,
    /// Who is there, as the links were told last.
    kept: Vec<Peer>,
    /// All who dial are told that this node is leaving.
    pub is_leaving: bool,
    pub is_closed: bool,
}

/// A link that another node has dialled.
#[derive(Default)]
pub(crate) struct Joined {
    /// By shard, the first round that was not told that the shard is not here.
    open: BTreeMap<ShardId, u32>,
    /// Nothing more is asked on it.
    pub has_parted: bool,
}

/// A caller at another node.
pub(crate) struct Foreign {
    links: Arc<dyn Links>,
    on: LinkId,
    id: u64,
    pub shard: ShardId,
    round: u32,
    is_answered: bool,
}

impl Foreign {
    /// Tells it what came of its request.
    pub fn answer(mut self, outcome: Outcome) {
        self.say(Message::Answered { id: self.id, outcome });
    }

    fn say(&mut self, message: Message) {
        self.is_answered = true;
        self.links.answer(self.on, message);
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        if !self.is_answered {
            let outcome = Err(Error::unknown_outcome("the shard was lost while the request was under way"));
            self.say(Message::Answered { id: self.id, outcome });
        }
    }
}

impl Peers {
    pub fn new(links: Option<Arc<dyn Links>>) -> Peers {
        Peers { links, state: Mutex::default(), bell: Condvar::new(), parted: Condvar::new() }
    }

    pub fn lock(&self) -> MutexGuard<'_, Exchange> {
        lock(&self.state)
    }

    /// Whether this node has a way to others.
    pub fn has_links(&self) -> bool {
        self.links.is_some()
    }

    /// Says something on a link that this node has dialled. If not, it was not said: the link is gone, or can take no more.
    pub fn say(&self, on: LinkId, message: Message) -> Result<(), Why> {
        let Some(links) = &self.links else { return Err(Why::Gone) };
        links.ask(on, message).map_err(|Unsent { why, .. }| why)
    }

    /// Says something on a link that another node has dialled.
    pub fn reply(&self, on: LinkId, message: Message) {
        if let Some(links) = &self.links {
            links.answer(on, message);
        }
    }

    /// Says something to all other nodes to which there is a link.
    pub fn say_to_all(&self, message: &Message) {
        let links: Vec<LinkId> = self.lock().dialled.keys().copied().collect();
        for on in links {
            _ = self.say(on, message.clone());
        }
    }

    /// Whether so much waits on a link that what can be left out should be.
    pub fn is_congested(&self, on: LinkId) -> bool {
        self.links.as_ref().is_some_and(|links| links.is_congested(on))
    }

    /// Nothing is passed on any more, and nobody is let in.
    pub fn close(&self) {
        let mut exchange = self.lock();
        exchange.is_closed = true;
        exchange.inquiries.close();
        drop(exchange);
        self.bell.notify_all();
        if let Some(links) = &self.links {
            links.close();
        }
    }

    /// Puts what is to be asked on its way; what is left is to be done when the lock is free.
    pub fn ask(&self, exchange: &mut Exchange, orders: Vec<Order<Caller>>) -> Vec<Order<Caller>> {
        let mut left = Vec::new();
        for order in orders {
            let (of, id, message) = match order {
                Order::Ask(of, message @ Message::Ask { id, .. }) => (of, id, message),
                other => {
                    left.push(other);
                    continue;
                }
            };
            match exchange.link_to(&of).map_or(Err(Why::Gone), |on| self.say(on, message)) {
                Ok(()) => {}
                // The end of the link is about to be told.
                Err(Why::Gone) => exchange.passing.unsent(&[id]),
                Err(Why::Full) => left.extend(exchange.passing.overloaded(id)),
            }
        }
        left
    }
}

impl Exchange {
    pub fn link_to(&self, who: &Incarnation) -> Option<LinkId> {
        self.dialled.iter().find(|(_, to)| *to == who).map(|(on, _)| *on)
    }

    /// Notes that a caller is told that the shard is not here, and so are all of its round.
    pub fn deny(&mut self, caller: &Foreign) {
        if let Some(joined) = self.joined.get_mut(&caller.on) {
            let first = joined.open.entry(caller.shard).or_default();
            *first = (*first).max(caller.round + 1);
        }
    }

    fn is_denied(&self, caller: &Foreign) -> bool {
        let first = self.joined.get(&caller.on).and_then(|joined| joined.open.get(&caller.shard));
        first.is_some_and(|first| caller.round < *first)
    }
}

impl Shared {
    /// Lets others in, and begins to hear them.
    pub fn open_links(self: &Arc<Shared>) {
        if let Some(links) = &self.peers.links {
            links.open(&self.who, Arc::new(Hearing(Arc::downgrade(self))));
        }
    }

    /// Keeps links to all others on the roll.
    pub fn keep_links(&self, roll: &Roll) {
        let Some(links) = &self.peers.links else { return };
        let peer =
            |present: &Present| Some(Peer { who: present.who.clone(), address: Card::read(&present.address).link? });
        let peers: Vec<Peer> = roll.there().filter(|present| present.who != self.who).filter_map(peer).collect();
        let mut exchange = self.peers.lock();
        if exchange.kept != peers {
            exchange.kept.clone_from(&peers);
            exchange.passing.are_there(peers.iter().map(|peer| &peer.who));
            drop(exchange);
            links.keep(&peers);
        }
    }

    /// Tells a node that a shard was released to it. If that is not heard, its next beat tells.
    pub fn say_handed(&self, to: &Incarnation, shard: ShardId, fence: Fence) {
        let on = self.peers.lock().link_to(to);
        if let Some(on) = on {
            _ = self.peers.say(on, Message::Handed { shard, fence });
        }
    }

    /// Tells callers at other nodes that a shard is not here, and where it is.
    pub fn deny(&self, shard: ShardId, callers: Vec<Foreign>) {
        if callers.is_empty() {
            return;
        }
        let (fence, owner) = self.known_place(shard);
        let mut exchange = self.peers.lock();
        for mut caller in callers {
            exchange.deny(&caller);
            caller.say(Message::NotHere { id: caller.id, shard, fence, owner: owner.clone() });
        }
    }

    /// What another node says to what was asked of it.
    fn told(&self, on: LinkId, message: Message) {
        match message {
            Message::Answered { id, outcome } => {
                self.pass(|exchange| exchange.passing.answered(id, outcome));
            }
            Message::NotHere { id, shard, fence, owner } => {
                self.learn_place(shard, fence, owner.as_ref());
                self.pass(|exchange| exchange.passing.not_here(id));
            }
            Message::Happened(_) | Message::Missed(_) => self.saw(message),
            Message::Accounted { id, account } => self.peers.lock().inquiries.told(on, id, account),
            Message::Stocked { .. } | Message::Served { .. } => self.told_of_lending(on, message),
            Message::Leaving => self.say_farewell(on),
            _ => {}
        }
    }

    /// What another node asks of this one. Requests for one shard that came together are brought to it together.
    fn asked(self: &Arc<Shared>, on: LinkId, messages: Vec<Message>) {
        let mut asks: BTreeMap<ShardId, Vec<Request<Caller>>> = BTreeMap::new();
        let mut has_parted = false;
        for message in messages {
            match message {
                Message::Ask { id, shard, round, command, by } => {
                    let Some(links) = self.peers.links.clone() else { continue };
                    let caller = Foreign { links, on, id, shard, round, is_answered: false };
                    if let Some(request) = self.take_in(caller, command, by) {
                        asks.entry(shard).or_default().push(request);
                    }
                }
                Message::Watch { is_on } => self.watch_for(on, is_on),
                Message::Inquire { id, inquiry } => {
                    let account = Some(self.account(&inquiry));
                    self.peers.reply(on, Message::Accounted { id, account });
                }
                Message::Handed { shard, fence } => self.handed_to_me(shard, fence),
                Message::Farewell => has_parted = true,
                Message::Want { .. } | Message::Unwant { .. } | Message::Lend { .. } | Message::Recall { .. } => {
                    self.asked_to_borrow(on, message);
                }
                _ => {}
            }
        }
        for (shard, requests) in asks {
            // What goes to all shards is not refused by some of them for want of room.
            let is_single = |request: &Request<Caller>| request.command.task().is_some();
            let (single, all): (Vec<_>, Vec<_>) = requests.into_iter().partition(is_single);
            for (requests, is_bounded) in
                [(single, true), (all, false)].into_iter().filter(|(some, _)| !some.is_empty())
            {
                _ = self.bring_all(shard, requests, is_bounded);
            }
        }
        // What came with this word, and before it, is with its shard or denied by now.
        if has_parted {
            self.parted(on);
        }
    }

    /// A request of another node, unless its round was told already that the shard is not here.
    fn take_in(&self, caller: Foreign, command: Command, by: Option<Name>) -> Option<Request<Caller>> {
        if caller.shard.0 >= self.config.shards || self.peers.lock().is_denied(&caller) {
            self.deny(caller.shard, vec![caller]);
            return None;
        }
        Some(self.request(command, by, Caller::Foreign(caller)))
    }
}

/// What the links tell. They may outlive the node for a moment.
struct Hearing(Weak<Shared>);

impl Hearing {
    fn with(&self, hear: impl FnOnce(&Arc<Shared>)) {
        if let Some(shared) = self.0.upgrade() {
            hear(&shared);
        }
    }
}

impl Ears for Hearing {
    fn linked(&self, on: LinkId, to: &Greeting) {
        self.with(|shared| {
            shared.pass(|exchange| {
                exchange.dialled.insert(on, to.who.clone());
                exchange.passing.linked(&to.who)
            });
            shared.lend(|lending, board, now| lending.linked(on, board, now));
            shared.watch_over(on);
        });
    }

    fn told(&self, on: LinkId, messages: Vec<Message>) {
        self.with(|shared| messages.into_iter().for_each(|message| shared.told(on, message)));
    }

    fn unlinked(&self, on: LinkId, unsent: Vec<Message>) {
        let id = |message: &Message| match message {
            Message::Ask { id, .. } => Some(*id),
            _ => None,
        };
        let unsent: Vec<u64> = unsent.iter().filter_map(id).collect();
        self.with(|shared| {
            shared.pass(|exchange| {
                let Some(who) = exchange.dialled.remove(&on) else { return Vec::new() };
                exchange.inquiries.unlinked(on);
                exchange.passing.unlinked(&who, &unsent)
            });
            shared.lend(|lending, board, now| lending.unlinked(on, board, now));
            shared.watch_lost();
        });
    }

    fn joined(&self, on: LinkId, _: &Greeting) {
        self.with(|shared| {
            let mut exchange = shared.peers.lock();
            exchange.joined.insert(on, Joined::default());
            let is_leaving = exchange.is_leaving;
            drop(exchange);
            if is_leaving {
                shared.peers.reply(on, Message::Leaving);
            }
        });
    }

    fn asked(&self, on: LinkId, messages: Vec<Message>) {
        self.with(|shared| shared.asked(on, messages));
    }

    fn left(&self, on: LinkId) {
        self.with(|shared| {
            shared.peers.lock().joined.remove(&on);
            shared.peers.parted.notify_all();
            shared.lend(|lending, board, _| lending.left(on, board));
            shared.watch_for(on, false);
        });
    }
}
