//! What the threads and the handles of a node share.

use std::collections::BTreeSet;
use std::sync::Arc;

use punctual_center::Planner;
use punctual_core::store::{Hardship, Incarnation, Room, ShardId, Store, StoreError, Terms};
use punctual_core::{Answer, Back, Clock, Command, Lease, Name, Request};
use tokio::sync::SetOnce;

use crate::acts::NotedActs;
use crate::administrator::Administrator;
use crate::archive::Archiving;
use crate::beats::Closing;
use crate::board::SharedBoard;
use crate::caller::{Caller, Outcome};
use crate::changes::KnownChanges;
use crate::committer::Pipeline;
use crate::config::NodeConfig;
use crate::deletions::Deletions;
use crate::error::Error;
use crate::ids::Ids;
use crate::inbox::{Inbox, Next, Turned};
use crate::level::Level;
use crate::limits::Entrances;
use crate::outgoing::Outgoing;
use crate::ownership::Ownership;
use crate::pace::Pace;
use crate::peers::Peers;
use crate::places::SharedPlaces;
use crate::readers::Readers;
use crate::stats::Meter;
use crate::sweeps::SweepCare;
use crate::sync::RwLock;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::watch::Watchers;
use punctual_core::shard_of_key;

/// How many lanes there are at most: more are of no use to any store.
const MOST_LANES: usize = 4;

pub(crate) struct Shared {
    pub config: NodeConfig,
    /// This life of the node.
    pub who: Incarnation,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    /// By the shards' numbers.
    pub inboxes: Vec<Inbox>,
    /// Which of them are to be here.
    pub ownership: Ownership,
    /// Where the shards are.
    pub places: SharedPlaces,
    pub board: SharedBoard,
    /// The lanes on which commits are made: as many as any store likes, since it may become another one.
    pub lanes: Vec<Pipeline>,
    /// By the shards' numbers: the lane that a shard has.
    assigned: Vec<AtomicUsize>,
    pub entrances: Entrances,
    pub readers: Readers,
    pub ids: Ids,
    pub meter: Meter,
    /// How long it takes from a step to its answers.
    pub pace: Pace,
    /// How long it takes from a commit to the answers.
    pub leaving: Pace,
    pub closing: Closing,
    pub watchers: Watchers,
    pub archiving: Archiving,
    pub outgoing: Arc<Outgoing>,
    /// Rises whenever a topic is made, changed or deleted.
    pub topic_changes: AtomicU64,
    /// Queues that are known to be there, if they do not come to be by being used. Others may be there, too.
    pub known_queues: RwLock<BTreeSet<Name>>,
    pub administrator: Administrator,
    pub deletions: Deletions,
    /// What somebody did and is not in the store yet.
    pub acts: NotedActs,
    pub known_changes: KnownChanges,
    /// Who sees to the sweeps, and when.
    pub sweep_care: SweepCare,
    /// Other nodes.
    pub peers: Peers,
    /// The level of what is stored.
    pub level: Level,
    /// Why the node has stopped answering.
    poison: SetOnce<String>,
}

impl Shared {
    pub fn new(
        config: NodeConfig,
        who: Incarnation,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        inboxes: Vec<Inbox>,
        planner: Planner,
        level: Level,
    ) -> Shared {
        let (terms, shards) = (store.terms(), inboxes.len());
        let shared = Shared {
            ownership: Ownership::new(planner),
            watchers: Watchers::new(who.number),
            places: SharedPlaces::new(who.clone(), config.shards),
            who,
            store,
            board: SharedBoard::new(config.links.is_none()),
            lanes: (0..shards.min(MOST_LANES)).map(|_| Pipeline::default()).collect(),
            assigned: inboxes.iter().map(|_| AtomicUsize::new(0)).collect(),
            entrances: Entrances::new(),
            readers: Readers::new(config.reads),
            ids: Ids::new(),
            inboxes,
            meter: Meter::new(clock.now(), config.series),
            pace: Pace::with_margin(),
            leaving: Pace::default(),
            closing: Closing::default(),
            archiving: Archiving::default(),
            outgoing: Outgoing::new(config.answers_bytes),
            topic_changes: AtomicU64::new(0),
            known_queues: RwLock::default(),
            administrator: Administrator::default(),
            deletions: Deletions::default(),
            acts: NotedActs::default(),
            known_changes: KnownChanges::default(),
            sweep_care: SweepCare::default(),
            peers: Peers::new(config.links.clone()),
            level,
            poison: SetOnce::new(),
            clock,
            config,
        };
        shared.shards().for_each(|(shard, _)| shared.assign_lane(shard, &terms));
        shared
    }

    pub fn inbox(&self, shard: ShardId) -> &Inbox {
        &self.inboxes[usize::from(shard.0)]
    }

    /// The lane on which a shard's commits are made.
    pub fn lane(&self, shard: ShardId) -> &Pipeline {
        &self.lanes[self.assigned[usize::from(shard.0)].load(Ordering::Relaxed)]
    }

    /// Gives a shard its lane on these terms. If it had another one, what may still be there is of an older fence.
    pub fn assign_lane(&self, shard: ShardId, terms: &Terms) {
        let (number, lanes) = (usize::from(shard.0), terms.lanes.clamp(1, self.lanes.len()));
        self.assigned[number].store(number % lanes, Ordering::Relaxed);
    }

    /// The shards and their inboxes.
    pub fn shards(&self) -> impl Iterator<Item = (ShardId, &Inbox)> {
        (0..self.config.shards).map(ShardId).zip(&self.inboxes)
    }

    /// Why the node has stopped answering, if it has.
    pub fn poisoned(&self) -> Option<&str> {
        self.poison.get().map(String::as_str)
    }

    /// Waits until the node has stopped answering, and says why.
    pub async fn until_poisoned(&self) -> &str {
        self.poison.wait().await
    }

    /// Whether the node answers.
    pub fn check(&self) -> Result<(), Error> {
        self.poisoned().map_or(Ok(()), |why| Err(Error::nothing_done(why)))
    }

    /// Whether the store has room for what a caller wants to put there. What the shards insert by
    /// themselves does not ask: it comes of what was taken in before.
    pub fn check_room(&self) -> Result<(), Error> {
        match self.store.hardship() {
            None => Ok(()),
            Some(Hardship::NoRoom(why)) => {
                // The shards make room as they go on, and one that rests does not know.
                self.inboxes.iter().for_each(Inbox::wake_up);
                Err(Error::Full(why))
            }
            Some(Hardship::Failing(why)) => Err(Error::nothing_done(why)),
        }
    }

    /// Whether the store has room for rows that are there to become longer.
    pub fn check_growth(&self) -> Result<(), Error> {
        match self.store.room() {
            Room::Enough | Room::Little => Ok(()),
            // It may have come to be otherwise meanwhile.
            Room::None => self.check_room(),
        }
    }

    /// The node cannot vouch for its data any more: it stops answering.
    pub fn poison(&self, why: &str) {
        // The first reason counts.
        _ = self.poison.set(format!("the node has stopped answering and must be restarted: {why}"));
        let Some(why) = self.poisoned() else { return };
        for inbox in &self.inboxes {
            if let Some((fence, _)) = inbox.claim() {
                inbox.failed(fence, why);
            }
        }
        let error = Error::nothing_done(why);
        self.close_board(&error, || Err(error.clone()));
    }

    /// Stops answering if that is what the store's error asks for.
    pub fn heed(&self, error: &StoreError) {
        if let StoreError::Poisoned(why) = error {
            self.poison(why);
        }
    }

    /// What a caller hears whose request was lost on its way.
    pub fn lost(&self) -> Error {
        Error::unknown_outcome(self.poisoned().unwrap_or("the shard was lost while the request was under way"))
    }

    /// What a caller hears of a read that failed. Nothing changes by reading.
    pub fn read_failed(&self, error: &StoreError) -> Error {
        self.heed(error);
        Error::nothing_done(error.to_string())
    }

    /// A request that has been read just now.
    pub fn request(&self, command: Command, by: Option<Name>, reply: Caller) -> Request<Caller> {
        Request { command, by, reply, read_at: self.clock.ceiling() }
    }

    /// Brings a request to its shard, wherever that is.
    pub fn bring(&self, shard: ShardId, request: Request<Caller>) -> Result<Next, Error> {
        self.inbox(shard).push(request).or_else(|Turned { requests, why }| match why {
            Some(error) => Err(error),
            None => {
                self.pass_on(shard, requests);
                Ok(Next::Runner)
            }
        })
    }

    /// Brings requests to their shard, wherever that is; those that it has no room for hear so.
    pub fn bring_all(&self, shard: ShardId, requests: Vec<Request<Caller>>, is_bounded: bool) -> Next {
        self.inbox(shard).push_all(requests, is_bounded).unwrap_or_else(|Turned { requests, why }| {
            match why {
                Some(error) => requests.into_iter().for_each(|request| self.answer(request.reply, Err(error.clone()))),
                None => self.pass_on(shard, requests),
            }
            Next::Runner
        })
    }

    /// Tells a shard what the node itself has to tell.
    pub fn tell(&self, shard: ShardId, command: Command, caller: Caller) {
        if let Some(errand) = self.inbox(shard).tell(self.request(command, None, caller)) {
            self.pass_on(shard, vec![errand]);
        }
    }

    /// Gives a caller its answer.
    pub fn answer(&self, caller: Caller, outcome: Outcome) {
        match caller {
            // Who does not listen any more does not mind.
            Caller::One { sender, .. } => _ = sender.send(outcome),
            Caller::Share { share, .. } => share.answer(outcome),
            Caller::Consumer { sender, hold, .. } => {
                // Nothing is handed out for want of room: whoever waits is told so, and not that there is nothing.
                let is_nothing = matches!(&outcome, Ok(Answer::Reserved(deliveries)) if deliveries.is_empty());
                let outcome = if is_nothing { self.check_growth().and(outcome) } else { outcome };
                if let Err((unheard, _)) = sender.send((outcome, hold)) {
                    self.give_back(unheard);
                }
            }
            Caller::Forwarder(shard, key, journey) => {
                let refused = match outcome {
                    Ok(_) => None,
                    Err(Error::Refused(refused)) if !refused.is_temporary() => Some(refused.to_string()),
                    // It is not known, or may be otherwise later: the shard will send it again.
                    Err(_) => return,
                };
                self.tell(shard, Command::Forwarded { key, journey, refused }, Caller::Nobody);
            }
            // Whoever stops is about to give the shard away.
            Caller::Foreign(caller) if outcome == Err(Error::Stopping) => self.deny(caller.shard, vec![caller]),
            Caller::Foreign(caller) => caller.answer(outcome),
            Caller::Guest(guest) => guest.answer(outcome),
            Caller::Drawer(queue) => self.drawn(&queue, outcome),
            Caller::Nobody => {}
        }
    }

    /// Puts deliveries back that a consumer did not take, so that they do not hang until their leases end.
    pub fn give_back(&self, unheard: Outcome) {
        if let Ok(Answer::Reserved(deliveries)) = unheard {
            self.abandon(deliveries.into_iter().map(|delivery| delivery.lease));
        }
    }

    /// Puts deliveries back whose consumer is gone.
    pub fn abandon(&self, leases: impl IntoIterator<Item = Lease>) {
        for lease in leases {
            let (shard, release) = self.abandonment(lease);
            self.tell(shard, release, Caller::Nobody);
        }
    }

    /// What puts a delivery back whose consumer is gone, and where to send it.
    pub fn abandonment(&self, lease: Lease) -> (ShardId, Command) {
        let shard = shard_of_key(&lease.key, self.config.shards);
        (shard, Command::Release { lease, back: Back::Abandoned, priority: None, note: None })
    }

    /// A shard is not here any more: what waited for it was not looked at.
    pub fn refuse_all(&self, shard: ShardId, why: &str) {
        let error = Error::nothing_done(why);
        for request in self.inbox(shard).go_down(why) {
            self.answer(request.reply, Err(error.clone()));
        }
        self.forget_shard(shard);
    }
}
