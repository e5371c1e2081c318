//! A node as the real one is built: shards that make steps, one board for waiting consumers, and
//! outputs that wait for the committer. It has no threads: the world calls it when something came.

mod administrator;
mod exchange;
mod lent;
mod membership;
mod step;
mod store_time;
mod version;

use std::collections::{BTreeMap, VecDeque};

use punctual_center::Planner;
use punctual_core::store::{Fence, Incarnation, ShardId, StoreError, Tenure};
use punctual_core::{Board, Command, Drawn, Forward, Millis, Name, Request, Reserve, Shard, Timestamp, Trust};

use crate::clock::{EPOCH, Moment, NodeClock, right_time};
use crate::record::{StepRecord, Tag};
pub use administrator::{Administrator, Cause, Doing, Work};
pub use exchange::{Exchange, Foreign};
pub use lent::Lent;
pub use membership::Membership;
pub use step::Reads;
use step::{Next, UnderWay};
pub use store_time::ByStore;
pub use version::Version;

/// How many steps a shard may make at one moment before that is taken for running in circles.
const CIRCLES: u32 = 20_000;

/// For how long a step of the clock forward is doubted.
pub const DOUBT: Moment = 30_000;

/// How often the clock is looked at, if nothing else happens.
const LOOK: Moment = 1_000;

/// One server process.
pub struct SimulatedNode {
    /// Its number.
    pub index: usize,
    /// Who it is among others.
    pub membership: Membership,
    /// What it has under way with others.
    pub exchange: Exchange,
    /// What it does about settings.
    pub administrator: Administrator,
    /// The levels that its version can read and write.
    pub version: Version,
    /// What it makes of the rolls.
    pub planner: Planner,
    /// Whether it is about to stop, and gives its shards to others.
    pub is_leaving: bool,
    /// Its clock, which belongs to the machine and outlives the process.
    pub clock: NodeClock,
    /// What it knows of the store's clock, if it goes by that.
    pub by_store: Option<ByStore>,
    /// Whether the process runs.
    pub up: bool,
    /// It does nothing before this moment.
    pub stalled_until: Moment,
    /// Rises with each start of the process.
    pub life: u64,
    /// Which time the process believes.
    trust: Trust,
    /// The time that it believed when it looked last, and when that was.
    believed: (Timestamp, Moment),
    /// From this moment on it must believe the right time.
    pub right_from: Moment,
    /// By how much the clock is wrong for a moment.
    pub blip: i64,
    /// For how long it doubts; not as long only to test the auditor.
    pub doubt: Moment,
    /// Whether the shards are never told that the clock went back; only to test the auditor.
    pub latched: bool,
    /// By how much the shards are told more than the clock shows; not zero only to test the auditor.
    pub early: Millis,
    /// How far the store's clock may be ahead of the time that shards are told.
    pub clock_width: Millis,
    /// By how much it wakes too late; not zero only to test the auditor.
    pub late: Moment,
    /// Whether shards hear of commits also in the middle of a step; only to test the auditor.
    pub interrupts: bool,
    /// Whether rates are those of all nodes together.
    pub shares_rates: bool,
    board: Board<Tag>,
    /// Its consumers that are lent to others, and those that come from them.
    pub lent: Lent,
    posted: BTreeMap<Tag, Name>,
    seats: BTreeMap<ShardId, Seat>,
    /// Outputs on their way to the committer.
    waiting: VecDeque<Item>,
    /// Whether a commit is under way.
    pub committing: bool,
    steps_at: (Moment, u32),
    /// When nobody waited for a queue that is to be exact, by the shards' time.
    starved_at: Timestamp,
}

/// A shard that the node owns.
pub struct Seat {
    /// The shard itself.
    pub shard: Shard<Tag>,
    /// The fence under which it is owned.
    pub fence: Fence,
    /// To whom it is about to be handed.
    pub handing: Option<Incarnation>,
    inbox: Vec<Request<Tag>>,
    wake: Timestamp,
    poked: bool,
    /// The step that waits for a read, and whether that has come to its end.
    step: Option<(UnderWay, Next)>,
    has_read: bool,
    /// Steps that are not durable yet.
    in_flight: usize,
    /// Steps that became durable and were handed over so late, of which the shard has not heard: while it is in the
    /// middle of a step nobody can tell it anything.
    news: Vec<(u64, Millis)>,
    /// How late deliveries were handed over since its last step.
    late: Vec<Millis>,
}

/// The output of a step, on its way to become durable.
#[derive(Debug)]
pub struct Item {
    /// What the step did.
    pub record: StepRecord,
    /// Dead letters to send on once it is durable.
    pub forwards: Vec<Forward>,
}

/// What came of letting a node work.
#[derive(Debug, Default)]
pub struct Worked {
    /// Requests whose outcome nobody will learn.
    pub lost: Vec<Tag>,
    /// Requests that no step has begun with, of shards that had to be dropped.
    pub turned_away: Vec<(ShardId, Vec<Request<Tag>>)>,
    /// Consumers whose time to wait was over.
    pub empty: Vec<Tag>,
    /// Reads that take so long, of which shard, held how.
    pub reads: Vec<(ShardId, Tenure, Moment)>,
    /// Shards that had to be dropped, how they were held, and why.
    pub dropped: Vec<(ShardId, Tenure, StoreError)>,
    /// A shard that makes step after step without time passing.
    pub circles: Option<ShardId>,
    /// The steps that were made.
    pub steps: u64,
}

impl SimulatedNode {
    /// A node that does not run yet.
    pub fn new(index: usize, name: Name) -> SimulatedNode {
        let membership = Membership::new(name);
        SimulatedNode {
            index,
            exchange: Exchange::new(membership.who.clone(), 0),
            administrator: Administrator::default(),
            version: Version::new(1),
            planner: Planner::new(membership.who.clone(), 0),
            is_leaving: false,
            membership,
            clock: NodeClock::new(),
            by_store: None,
            up: false,
            stalled_until: 0,
            life: 0,
            trust: Trust::new(0, 0, 0),
            believed: (Timestamp::ZERO, 0),
            right_from: 0,
            blip: 0,
            doubt: DOUBT,
            latched: false,
            early: Millis::ZERO,
            clock_width: Millis(1),
            late: 0,
            interrupts: false,
            shares_rates: false,
            board: Board::default(),
            lent: Lent::default(),
            posted: BTreeMap::new(),
            seats: BTreeMap::new(),
            waiting: VecDeque::new(),
            committing: false,
            steps_at: (0, 0),
            starved_at: Timestamp::ZERO,
        }
    }

    /// Starts the process, with nothing in memory. The number tells this life from others.
    pub fn start(&mut self, moment: Moment, number: u64, shards: u16) {
        self.up = true;
        self.life += 1;
        self.is_leaving = false;
        self.membership.begin(number);
        self.lent = Lent::default();
        self.version = Version::new(self.version.highest);
        if self.shares_rates {
            self.board.share_rates();
        }
        self.exchange = Exchange::new(self.membership.who.clone(), shards);
        self.planner = Planner::new(self.membership.who.clone(), shards);
        if let Some(by_store) = &mut self.by_store {
            by_store.start();
        }
        // Whatever the clock shows when the process starts is believed.
        let shown = self.clock.read(moment);
        self.trust = Trust::new(shown.as_millis() * 1_000, moment * 1_000, self.doubt * 1_000);
        self.believed = (shown, moment);
        self.starved_at = shown;
        if self.blip != 0 {
            self.right_from = Moment::MAX;
        }
    }

    /// The process dies; these requests will never be answered.
    pub fn crash(&mut self) -> Vec<Tag> {
        self.up = false;
        self.committing = false;
        let mut lost: Vec<Tag> = std::mem::take(&mut self.board).withdraw_all();
        lost.extend(std::mem::take(&mut self.waiting).into_iter().flat_map(|item| item.record.answers.into_keys()));
        for (_, seat) in std::mem::take(&mut self.seats) {
            lost.extend(seat.into_tags());
        }
        lost.extend(&self.exchange.own);
        lost.extend(self.administrator.die());
        self.posted.clear();
        lost
    }

    /// Whether it works at this moment.
    pub fn is_awake(&self, moment: Moment) -> bool {
        self.up && self.stalled_until <= moment
    }

    /// The node's time: the store's if it goes by that, or that of its clock, as far as it believes it.
    pub fn now(&mut self, moment: Moment) -> Timestamp {
        if let Some(now) = self.by_store.as_ref().and_then(|by_store| by_store.now(moment)) {
            self.believed = (now, moment);
            return now;
        }
        // Meanwhile it was looked at regularly; that is made up for where it matters.
        while self.believed.1 + LOOK < moment && (self.clock.is_drifting() || self.is_in_doubt()) {
            self.look_at_clock(self.believed.1 + LOOK);
        }
        self.look_at_clock(moment);
        self.believed.0
    }

    fn look_at_clock(&mut self, moment: Moment) {
        let wall = self.clock.read(moment).as_millis() * 1_000;
        let time = Timestamp::from_millis(self.trust.judge(wall, moment * 1_000).0 / 1_000);
        self.believed = (if self.latched { time.max(self.believed.0) } else { time }, moment);
    }

    /// Whether it does not believe its clock at present.
    pub fn is_in_doubt(&self) -> bool {
        self.trust.settled().is_none()
    }

    /// The time that it must believe, where that is known.
    pub fn truth(&self, moment: Moment) -> Option<Timestamp> {
        (moment >= self.right_from && self.by_store.is_none()).then(|| right_time(moment))
    }

    /// A shard that it owns.
    pub fn seat(&mut self, shard: ShardId) -> Option<&mut Seat> {
        self.seats.get_mut(&shard)
    }

    /// The shards that it owns.
    pub fn seats(&self) -> impl Iterator<Item = (&ShardId, &Seat)> {
        self.seats.iter()
    }

    /// Takes a shard into its care.
    pub fn take_seat(&mut self, shard: Shard<Tag>) {
        let id = shard.id();
        let seat = Seat {
            fence: shard.tenure().fence,
            shard,
            inbox: Vec::new(),
            wake: Timestamp::ZERO,
            handing: None,
            poked: true,
            step: None,
            has_read: false,
            in_flight: 0,
            news: Vec::new(),
            late: Vec::new(),
        };
        self.seats.insert(id, seat);
        self.board.expect(id);
    }

    /// Whether requests for a shard are carried out here.
    pub fn takes(&self, shard: ShardId) -> bool {
        self.seats.get(&shard).is_some_and(|seat| seat.handing.is_none())
    }

    /// Drops a shard's memory. The first of these requests will never be answered; with the others nothing was begun.
    pub fn drop_seat(&mut self, shard: ShardId) -> (Vec<Tag>, Vec<Request<Tag>>) {
        let Some(mut seat) = self.seats.remove(&shard) else { return Default::default() };
        self.board.forget_shard(shard);
        let unbegun = std::mem::take(&mut seat.inbox);
        let mut lost: Vec<Tag> = seat.into_tags().collect();
        let (gone, kept) = std::mem::take(&mut self.waiting).into_iter().partition(|item| item.record.shard == shard);
        self.waiting = kept;
        let gone: VecDeque<Item> = gone;
        lost.extend(gone.into_iter().flat_map(|item| item.record.answers.into_keys()));
        (lost, unbegun)
    }

    /// A request for one of its shards has come; says whether it is in the right place.
    pub fn receive(&mut self, shard: ShardId, command: Command, tag: Tag, moment: Moment) -> bool {
        let now = self.now(moment);
        let read_at = self.by_store.as_ref().and_then(|by_store| by_store.ceiling(moment)).unwrap_or(now);
        let Some(seat) = self.seats.get_mut(&shard) else { return false };
        seat.inbox.push(Request { by: None, command, reply: tag, read_at });
        true
    }

    /// A consumer has come and waits so long.
    pub fn reserve(&mut self, mut reserve: Reserve, wait: Millis, tag: Tag, moment: Moment) {
        // Waiting goes by a clock that nobody sets.
        reserve.until = right_time(moment).plus(wait);
        self.posted.insert(tag, reserve.consumer.clone());
        let posted = self.board.post(reserve, tag);
        for shard in posted.ask {
            if let Some(seat) = self.seats.get_mut(&shard) {
                seat.poked = true;
            }
        }
    }

    /// The queues for which tokens are to be drawn now, and how many.
    pub fn draws(&mut self, moment: Moment) -> Vec<(Name, u32)> {
        let now = self.now(moment);
        self.board.draws(now)
    }

    /// What came of a draw for a queue.
    pub fn granted(&mut self, queue: &Name, drawn: Drawn, moment: Moment) {
        let now = self.now(moment);
        for shard in self.board.granted(queue, drawn, now) {
            self.poke(shard);
        }
    }

    /// Makes all steps that can be made now, and begins those that have to wait for what they read.
    pub fn work(&mut self, moment: Moment, depth: usize, reads: &mut Reads<'_>, exact: &Name) -> Worked {
        let mut worked = Worked::default();
        let now = self.now(moment);
        let shards: Vec<ShardId> = self.seats.keys().copied().collect();
        let mut again = true;
        while again && worked.circles.is_none() {
            again = false;
            for shard in &shards {
                while self.seats.get(shard).is_some_and(|seat| seat.can_go_on(now, depth)) {
                    again = true;
                    self.note_starved(exact, now);
                    let seat = self.seats.get_mut(shard).expect("it was just there");
                    seat.has_read = false;
                    let step = seat.step.take().unwrap_or_else(|| self.begin_step(*shard, moment, reads.rng));
                    self.go_on(*shard, step, moment, reads, &mut worked);
                    self.count_step(moment, *shard, &mut worked);
                    self.note_starved(exact, now);
                    if worked.circles.is_some() {
                        return worked;
                    }
                }
            }
        }
        self.lent.rules.look(&mut self.board, right_time(moment));
        worked.empty = self.board.expire(right_time(moment));
        for tag in &worked.empty {
            self.posted.remove(tag);
        }
        self.note_starved(exact, now);
        worked
    }

    fn note_starved(&mut self, exact: &Name, now: Timestamp) {
        if self.board.waiting_for(exact) == 0 {
            self.starved_at = now;
        }
    }

    fn count_step(&mut self, moment: Moment, shard: ShardId, worked: &mut Worked) {
        if self.steps_at.0 != moment {
            self.steps_at = (moment, 0);
        }
        self.steps_at.1 += 1;
        if self.steps_at.1 > CIRCLES {
            worked.circles = Some(shard);
        }
    }

    /// Whether something of a shard waits for the committer.
    pub fn has_items(&self, shard: ShardId) -> bool {
        self.waiting.iter().any(|item| item.record.shard == shard)
    }

    /// What waits for the committer: all of it.
    pub fn take_items(&mut self) -> Vec<Item> {
        std::mem::take(&mut self.waiting).into()
    }

    /// A step of a shard is durable.
    pub fn committed(&mut self, record: &StepRecord, moment: Moment) {
        let late = if record.gives_leases() { self.now(moment).since(record.now) } else { Millis::ZERO };
        if let Some(seat) = self.seats.get_mut(&record.shard) {
            seat.in_flight -= 1;
            if let Some(batch) = &record.batch {
                self.membership.confirm(record.shard, batch.serial);
            }
            seat.poked |= late > Millis::ZERO;
            seat.news.push((record.step, late));
            if seat.step.is_none() || self.interrupts {
                seat.hear();
            }
        }
    }

    /// When it has to work again, if nothing comes before.
    pub fn wakes_at(&self, depth: usize, moment: Moment) -> Option<Moment> {
        if !self.up {
            return None;
        }
        let able = self.seats.values().filter(|seat| seat.may_begin(depth));
        // A consumer whose time is over and who is still there waits for a shard to look.
        let deadline = Some(self.board.next_deadline()).filter(|deadline| *deadline > right_time(moment));
        let deadline = deadline.into_iter().chain([self.lent.rules.wakes_at().max(right_time(moment))]).min();
        let deadline = deadline.filter(|deadline| *deadline < Timestamp::NEVER).map(|at| at.as_millis() - EPOCH);
        let wake = able.map(Seat::wakes).min().filter(|wake| *wake < Timestamp::NEVER).map(|wake| {
            let (believed, looked_at) = self.believed;
            let by_store = self.by_store.as_ref().and_then(|by_store| by_store.when(wake, moment));
            match self.is_in_doubt() {
                _ if wake <= believed => moment,
                _ if by_store.is_some() => by_store.unwrap_or(moment) + self.late,
                false => self.clock.when(wake, moment) + self.late,
                // While it doubts, its time runs on by itself, and it looks again and again.
                true => (looked_at + wake.since(believed).0 + self.late).min(looked_at + LOOK).max(moment),
            }
        });
        wake.into_iter().chain(deadline).min().map(|moment| moment.max(self.stalled_until))
    }
}

impl Seat {
    /// Tells the shard what has become durable.
    fn hear(&mut self) {
        for (step, late) in self.news.drain(..) {
            if late > Millis::ZERO {
                self.shard.handed_over(step, late);
                self.late.push(late);
            }
            self.shard.committed(step);
        }
    }

    /// The requests that are not answered.
    fn into_tags(self) -> impl Iterator<Item = Tag> {
        let begun = self.step.into_iter().flat_map(|(step, _)| step.told).map(|(tag, _)| tag);
        begun.chain(self.inbox.into_iter().map(|request| request.reply))
    }

    /// Whether its shard can begin a step, or go on with one.
    fn can_go_on(&self, now: Timestamp, depth: usize) -> bool {
        match self.step {
            Some(_) => self.has_read,
            None => self.is_due(now) && self.may_begin(depth),
        }
    }

    /// Whether another step may begin.
    fn may_begin(&self, depth: usize) -> bool {
        self.step.is_none() && self.in_flight < depth && self.handing.is_none()
    }

    /// How late deliveries were handed over, of which its shard has heard since this was asked last.
    pub fn take_late(&mut self) -> Vec<Millis> {
        std::mem::take(&mut self.late)
    }

    /// Whether everything it did is durable.
    pub fn is_settled(&self) -> bool {
        self.in_flight == 0 && self.step.is_none()
    }

    fn wakes(&self) -> Timestamp {
        if self.poked || !self.inbox.is_empty() { Timestamp::ZERO } else { self.wake }
    }

    fn is_due(&self, now: Timestamp) -> bool {
        self.wakes() <= now
    }
}
