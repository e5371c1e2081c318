//! Requests on their way to the shards of other nodes: sent, sent again, or given up.
//!
//! A request is asked of the node that has its shard. If that says that the shard is not there, nothing was done, and the
//! request waits until it is known where the shard is now; so do all that come after it, in their order. A request that
//! nobody could take for some seconds was not done; one whose link broke before it was answered may have been.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use foldhash::fast::FixedState;
use punctual_core::store::{Incarnation, ShardId};
use punctual_core::{Command, Name};

use crate::error::{Error, Outcome};
use crate::message::Message;

/// For how many microseconds a request waits for its shard to be found: longer than it takes until the shards of a node
/// that died are with others.
const PATIENCE: u64 = 5_000_000;

/// How many requests, and how many bytes of them, may be with other nodes or on their way there.
const MOST: usize = 1 << 16;
const MOST_BYTES: usize = 64 << 20;

/// Requests for the shards of other nodes, by those who wait for the answers. Times are in microseconds of a clock that
/// nobody sets.
#[derive(Debug)]
pub struct Passing<C> {
    next_id: u64,
    arrived: u64,
    lines: BTreeMap<ShardId, Line<C>>,
    /// Those that were asked, by their ids.
    asked: HashMap<u64, Asked<C>, FixedState>,
    linked: BTreeSet<Incarnation>,
    /// Those who have said that they leave: whoever they still let in is not to rely on it.
    leaving: BTreeSet<Incarnation>,
    count: usize,
    bytes: usize,
}

/// What is known of a shard that is, or was, with another node.
#[derive(Debug)]
struct Line<C> {
    /// It is here: who has been told that it is elsewhere comes too late.
    is_here: bool,
    /// Where else it is.
    at: Option<Incarnation>,
    /// That node said that it is not: it is not asked again before something else is heard.
    is_denied: bool,
    round: u32,
    waiting: VecDeque<Passed<C>>,
    /// Those that were asked where it is, and those that were asked elsewhere or before: their ids, as they arrived.
    asked: BTreeMap<u64, u64>,
    astray: BTreeMap<u64, u64>,
}

#[derive(Debug)]
struct Passed<C> {
    command: Command,
    by: Option<Name>,
    caller: C,
    /// Which one it was to arrive.
    arrival: u64,
    until: u64,
}

#[derive(Debug)]
struct Asked<C> {
    shard: ShardId,
    of: Incarnation,
    round: u32,
    passed: Passed<C>,
}

/// What is to be done.
#[derive(Debug)]
pub enum Order<C> {
    /// Ask another node.
    Ask(Incarnation, Message),
    /// Tell a caller what came of its request.
    Answer(C, Outcome),
    /// The shard has come here: carry it out, for whoever asked under this name.
    Here(ShardId, Command, Option<Name>, C),
}

impl<C> Default for Passing<C> {
    fn default() -> Passing<C> {
        Passing {
            next_id: 0,
            arrived: 0,
            lines: BTreeMap::new(),
            asked: HashMap::default(),
            linked: BTreeSet::new(),
            leaving: BTreeSet::new(),
            count: 0,
            bytes: 0,
        }
    }
}

impl<C> Default for Line<C> {
    fn default() -> Line<C> {
        Line {
            is_here: false,
            at: None,
            is_denied: false,
            round: 0,
            waiting: VecDeque::new(),
            asked: BTreeMap::new(),
            astray: BTreeMap::new(),
        }
    }
}

impl<C> Line<C> {
    /// Lets a request wait again, before what has come since.
    fn wait(&mut self, passed: Passed<C>) {
        let place = self.waiting.partition_point(|other| other.arrival < passed.arrival);
        self.waiting.insert(place, passed);
    }

    /// What is asked from now on is asked elsewhere, or in another round.
    fn turn(&mut self) {
        self.astray.append(&mut self.asked);
    }

    /// A request has come to its end where it was asked.
    fn end(&mut self, arrival: u64) {
        self.asked.remove(&arrival);
        self.astray.remove(&arrival);
    }
}

impl<C> Passing<C> {
    /// Passes a request on, after all that already wait for the same shard.
    pub fn pass(&mut self, shard: ShardId, command: Command, by: Option<Name>, caller: C, now: u64) -> Vec<Order<C>> {
        let bytes = command.bytes();
        if self.count >= MOST || self.bytes + bytes > MOST_BYTES.max(bytes) {
            return vec![Order::Answer(caller, Err(Error::Overloaded))];
        }
        self.count += 1;
        self.bytes += bytes;
        self.arrived += 1;
        let passed = Passed { command, by, caller, arrival: self.arrived, until: now + PATIENCE };
        self.lines.entry(shard).or_default().waiting.push_back(passed);
        self.go_on(shard)
    }

    /// A shard is with this node, or nobody knows where. If it was here, it is not any more.
    pub fn moved(&mut self, shard: ShardId, to: Option<&Incarnation>) -> Vec<Order<C>> {
        let line = self.lines.entry(shard).or_default();
        if line.is_here || line.at.as_ref() != to {
            line.turn();
        }
        line.is_here = false;
        line.is_denied &= line.at.as_ref() == to;
        line.at = to.cloned();
        self.go_on(shard)
    }

    /// Asks once more whoever is said to have a shard and denied it: it may be about to get it.
    pub fn try_again(&mut self) -> Vec<Order<C>> {
        let is_meant = |line: &Line<C>| line.is_denied && !line.waiting.is_empty();
        let denied: Vec<ShardId> =
            self.lines.iter().filter(|(_, line)| is_meant(line)).map(|(shard, _)| *shard).collect();
        for shard in &denied {
            self.lines.entry(*shard).or_default().is_denied = false;
        }
        denied.into_iter().flat_map(|shard| self.go_on(shard)).collect()
    }

    /// A shard has come here.
    pub fn came_here(&mut self, shard: ShardId) -> Vec<Order<C>> {
        let line = self.lines.entry(shard).or_default();
        line.turn();
        (line.is_here, line.at) = (true, None);
        self.go_on(shard)
    }

    /// There is a link to a node.
    pub fn linked(&mut self, to: &Incarnation) -> Vec<Order<C>> {
        if self.leaving.contains(to) {
            return Vec::new();
        }
        self.linked.insert(to.clone());
        let shards: Vec<ShardId> =
            self.lines.iter().filter(|(_, line)| line.at.as_ref() == Some(to)).map(|(shard, _)| *shard).collect();
        shards.into_iter().flat_map(|shard| self.go_on(shard)).collect()
    }

    /// The link to a node is gone. What was asked on it may have been done, unless it never left.
    pub fn unlinked(&mut self, to: &Incarnation, unsent: &[u64]) -> Vec<Order<C>> {
        self.linked.remove(to);
        let shards: BTreeSet<ShardId> =
            self.asked.values().filter(|asked| asked.of == *to).map(|asked| asked.shard).collect();
        self.unsent(unsent);
        let mut lost: Vec<u64> = self.asked.iter().filter(|(_, asked)| asked.of == *to).map(|(id, _)| *id).collect();
        lost.sort_unstable();
        let why = format!("the link to node {} broke while the request was under way", to.node);
        let answer = |id: u64| {
            let asked = self.take(id)?;
            Some(Order::Answer(asked.passed.caller, Err(Error::unknown_outcome(&*why))))
        };
        let mut orders: Vec<Order<C>> = lost.into_iter().filter_map(answer).collect();
        // Their shards may be elsewhere by now, and others may have waited for them.
        orders.extend(shards.into_iter().flat_map(|shard| self.go_on(shard)));
        orders
    }

    /// A node is about to hang up. What was asked of it is still answered; from now on nothing more is.
    pub fn leaving(&mut self, who: &Incarnation) {
        self.linked.remove(who);
        self.leaving.insert(who.clone());
    }

    /// These are there. Who has left does not come back: it would be somebody else of that name.
    pub fn are_there<'a>(&mut self, all: impl Iterator<Item = &'a Incarnation>) {
        let all: BTreeSet<&Incarnation> = all.collect();
        self.leaving.retain(|who| all.contains(who));
    }

    /// Requests that never left wait again.
    pub fn unsent(&mut self, ids: &[u64]) {
        for id in ids {
            if let Some(Asked { shard, passed, .. }) = self.asked.remove(id) {
                let line = self.lines.entry(shard).or_default();
                line.end(passed.arrival);
                line.wait(passed);
            }
        }
    }

    /// A request could not be put on its way, since too many are.
    pub fn overloaded(&mut self, id: u64) -> Option<Order<C>> {
        Some(Order::Answer(self.take(id)?.passed.caller, Err(Error::Overloaded)))
    }

    /// What came of a request.
    pub fn answered(&mut self, id: u64, outcome: Outcome) -> Vec<Order<C>> {
        // One that is not known was given up when its link broke.
        let Some(Asked { shard, of, passed, .. }) = self.take(id) else { return Vec::new() };
        let outcome = match outcome {
            Ok(answer) if !passed.command.is_answered_by(&answer) => {
                Err(Error::unknown_outcome(format!("node {} has answered something else than was asked", of.node)))
            }
            outcome => outcome,
        };
        let mut orders = vec![Order::Answer(passed.caller, outcome)];
        orders.extend(self.go_on(shard));
        orders
    }

    /// A node does not have the shard of a request. Nothing was done; it waits until something else is heard of the shard.
    pub fn not_here(&mut self, id: u64) -> Vec<Order<C>> {
        let Some(Asked { shard, of, round, passed }) = self.asked.remove(&id) else { return Vec::new() };
        let line = self.lines.entry(shard).or_default();
        line.end(passed.arrival);
        if line.at.as_ref() == Some(&of) && line.round == round {
            line.turn();
            line.is_denied = true;
            line.round += 1;
        }
        line.wait(passed);
        self.go_on(shard)
    }

    /// Gives up what nobody could take for too long.
    pub fn expire(&mut self, now: u64) -> Vec<Order<C>> {
        let mut orders = Vec::new();
        // What is to be done here only waits for its turn: it is done as soon as what is astray comes back.
        for (shard, line) in self.lines.iter_mut().filter(|(_, line)| !line.is_here) {
            while let Some(passed) = line.waiting.pop_front_if(|passed| passed.until <= now) {
                self.count -= 1;
                self.bytes -= passed.command.bytes();
                let why = match &line.at {
                    Some(node) => format!("node {} has {shard} and cannot be reached from here", node.node),
                    None => format!("no node has {shard} for now"),
                };
                orders.push(Order::Answer(passed.caller, Err(Error::nothing_done(why))));
            }
        }
        orders
    }

    /// Who waits for the answer to what was asked under this id.
    pub fn caller(&self, id: u64) -> Option<&C> {
        self.asked.get(&id).map(|asked| &asked.passed.caller)
    }

    /// Whether any of them waits to be asked.
    pub fn is_waiting(&self) -> bool {
        self.count > self.asked.len()
    }

    /// How many requests are with other nodes or on their way there.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Asks for what waits for a shard, if it is known whom to ask, or has it done here. What was asked later about a task
    /// than something that is still astray waits for that.
    fn go_on(&mut self, shard: ShardId) -> Vec<Order<C>> {
        let Some(line) = self.lines.get_mut(&shard).filter(|line| !line.waiting.is_empty()) else { return Vec::new() };
        let mut ready = std::mem::take(&mut line.waiting);
        if !line.astray.is_empty() {
            let is_free = |passed: &Passed<C>| {
                let mut before = line.astray.range(..passed.arrival).filter_map(|(_, id)| self.asked.get(id));
                let task = passed.command.task();
                task.is_none() || before.all(|astray| astray.passed.command.task() != task)
            };
            let (free, held): (VecDeque<Passed<C>>, VecDeque<Passed<C>>) = ready.into_iter().partition(is_free);
            (ready, line.waiting) = (free, held);
        }
        if line.is_here {
            let here = |passed: Passed<C>| {
                self.count -= 1;
                self.bytes -= passed.command.bytes();
                Order::Here(shard, passed.command, passed.by, passed.caller)
            };
            return ready.into_iter().map(here).collect();
        }
        let Some(at) = line.at.clone().filter(|at| !line.is_denied && self.linked.contains(at)) else {
            ready.into_iter().for_each(|passed| line.wait(passed));
            return Vec::new();
        };
        let ask = |passed: Passed<C>| {
            let (id, command, by) = (self.next_id, passed.command.clone(), passed.by.clone());
            self.next_id += 1;
            line.asked.insert(passed.arrival, id);
            self.asked.insert(id, Asked { shard, of: at.clone(), round: line.round, passed });
            Order::Ask(at.clone(), Message::Ask { id, shard, round: line.round, command, by })
        };
        ready.into_iter().map(ask).collect()
    }

    fn take(&mut self, id: u64) -> Option<Asked<C>> {
        let asked = self.asked.remove(&id)?;
        self.lines.entry(asked.shard).or_default().end(asked.passed.arrival);
        self.count -= 1;
        self.bytes -= asked.passed.command.bytes();
        Some(asked)
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::{Answer, Name, Ruling};

    use super::*;

    const SHARD: ShardId = ShardId(3);

    fn node(name: &str) -> Incarnation {
        Incarnation { node: Name::new(name).unwrap(), number: 1 }
    }

    fn cancelled() -> Outcome {
        Ok(Answer::Cancelled(Ruling::Done(())))
    }

    fn cancel(id: &str) -> Command {
        Command::Cancel { topic: Name::new("t").unwrap(), id: Name::new(id).unwrap() }
    }

    /// What is asked: of whom, under which id, in which round, about which task.
    fn asks(orders: Vec<Order<char>>) -> Vec<(String, u64, u32, String)> {
        let ask = |order| match order {
            Order::Ask(of, Message::Ask { id, round, command, .. }) => {
                (of.node.to_string(), id, round, command.task().unwrap().1.to_owned())
            }
            other => panic!("{other:?}"),
        };
        orders.into_iter().map(ask).collect()
    }

    fn errors(orders: Vec<Order<char>>) -> Vec<(char, Error)> {
        let error = |order| match order {
            Order::Answer(caller, Err(error)) => (caller, error),
            other => panic!("{other:?}"),
        };
        orders.into_iter().map(error).collect()
    }

    /// The shard is with node b, to which there is a link.
    fn to_b() -> Passing<char> {
        let mut passing = Passing::default();
        assert!(passing.linked(&node("b")).is_empty());
        assert!(passing.moved(SHARD, Some(&node("b"))).is_empty());
        passing
    }

    #[test]
    fn a_request_goes_to_who_has_its_shard_and_the_answer_to_its_caller() {
        let mut passing = to_b();
        assert_eq!(asks(passing.pass(SHARD, cancel("1"), None, 'x', 0)), [("b".into(), 0, 0, "1".into())]);
        let answered = passing.answered(0, cancelled());
        assert!(matches!(answered[..], [Order::Answer('x', Ok(Answer::Cancelled(_)))]));
        assert!(passing.is_empty() && passing.answered(0, cancelled()).is_empty(), "an answer is told once");
    }

    #[test]
    fn an_answer_to_something_else_leaves_in_doubt_what_was_done() {
        let mut passing = to_b();
        passing.pass(SHARD, cancel("1"), None, 'x', 0);
        let answered = errors(passing.answered(0, Ok(Answer::Acknowledged)));
        assert_eq!((answered[0].0, answered[0].1.code()), ('x', "outcome-unknown"));
    }

    #[test]
    fn what_has_no_place_waits_in_its_order_and_is_given_up_after_a_while() {
        let mut passing = Passing::default();
        for (time, caller) in [(0, 'x'), (10, 'y')] {
            assert!(passing.pass(SHARD, cancel("1"), None, caller, time).is_empty());
        }
        let over = errors(passing.expire(PATIENCE));
        assert_eq!(over, [('x', Error::nothing_done("no node has shard 3 for now"))]);
        assert!(passing.moved(SHARD, Some(&node("b"))).is_empty(), "there is no link yet");
        assert_eq!(asks(passing.linked(&node("b"))).len(), 1);
        assert_eq!(errors(passing.expire(u64::MAX)).len(), 0, "what was asked is not given up");
    }

    #[test]
    fn what_comes_too_late_for_a_shard_that_has_come_here_is_carried_out_here() {
        let mut passing = to_b();
        assert_eq!(asks(passing.pass(SHARD, cancel("1"), None, 'x', 0)).len(), 1);
        assert!(passing.came_here(SHARD).is_empty());
        assert!(matches!(passing.not_here(0)[..], [Order::Here(SHARD, _, _, 'x')]), "who denied it has given it to us");
        assert!(matches!(passing.pass(SHARD, cancel("2"), None, 'y', 0)[..], [Order::Here(SHARD, _, _, 'y')]));
        assert!(passing.moved(SHARD, None).is_empty() && passing.pass(SHARD, cancel("3"), None, 'z', 0).is_empty());
    }

    #[test]
    fn what_was_denied_is_asked_elsewhere_before_what_came_later() {
        let mut passing = to_b();
        for (id, time) in [("1", 0), ("2", 0), ("3", 7)] {
            assert_eq!(asks(passing.pass(SHARD, cancel(id), None, 'x', time)).len(), 1);
        }
        assert!(passing.not_here(0).is_empty());
        assert!(passing.pass(SHARD, cancel("4"), None, 'x', 7).is_empty(), "it waits behind the others");
        assert!(passing.not_here(1).is_empty() && passing.not_here(2).is_empty());
        assert!(passing.linked(&node("c")).is_empty());
        let again = asks(passing.moved(SHARD, Some(&node("c"))));
        let about: Vec<(&str, &str)> = again.iter().map(|(of, _, _, id)| (&**of, &**id)).collect();
        assert_eq!(about, [("c", "1"), ("c", "2"), ("c", "3"), ("c", "4")]);
    }

    #[test]
    fn whoever_denied_is_asked_again_in_another_round() {
        let mut passing = to_b();
        passing.pass(SHARD, cancel("1"), None, 'x', 0);
        passing.pass(SHARD, cancel("2"), None, 'x', 0);
        assert!(passing.not_here(0).is_empty());
        assert_eq!(asks(passing.try_again()), [("b".into(), 2, 1, "1".into())]);
        // What was on its way in the round before is denied as well, and comes after the other one.
        assert_eq!(asks(passing.not_here(1)), [("b".into(), 3, 1, "2".into())]);
        assert!(passing.try_again().is_empty(), "nothing waits");
    }

    #[test]
    fn a_link_that_breaks_leaves_in_doubt_what_had_left() {
        let mut passing = to_b();
        passing.pass(SHARD, cancel("1"), None, 'x', 0);
        passing.pass(SHARD, cancel("2"), None, 'y', 0);
        let lost = errors(passing.unlinked(&node("b"), &[1]));
        assert_eq!(lost.len(), 1);
        assert!(lost[0].0 == 'x' && lost[0].1.code() == "outcome-unknown", "{lost:?}");
        assert_eq!(asks(passing.linked(&node("b"))), [("b".into(), 2, 0, "2".into())]);
        assert_eq!(passing.len(), 1);
    }

    #[test]
    fn nothing_more_is_asked_of_who_is_leaving_and_what_was_is_answered() {
        let mut passing = to_b();
        passing.linked(&node("c"));
        passing.pass(SHARD, cancel("1"), None, 'x', 0);
        passing.leaving(&node("b"));
        assert!(passing.pass(SHARD, cancel("2"), None, 'y', 0).is_empty(), "it waits for the shard to be elsewhere");
        assert!(passing.not_here(0).is_empty());
        assert_eq!(asks(passing.moved(SHARD, Some(&node("c")))).len(), 2);
        assert!(passing.unlinked(&node("b"), &[]).is_empty(), "nobody is left in doubt");
        assert!(passing.linked(&node("b")).is_empty() && passing.moved(SHARD, Some(&node("b"))).is_empty());
        assert!(
            passing.pass(SHARD, cancel("3"), None, 'z', 0).is_empty(),
            "it is leaving, however often it lets somebody in"
        );
        passing.are_there([node("c")].iter());
        assert!(passing.leaving.is_empty(), "who has left is forgotten");
    }

    #[test]
    fn what_waits_for_a_shard_that_comes_here_is_done_here() {
        let mut passing = Passing::default();
        passing.pass(SHARD, cancel("1"), None, 'x', 0);
        passing.pass(SHARD, cancel("2"), None, 'y', 0);
        let here = passing.came_here(SHARD);
        assert!(matches!(&here[..], [Order::Here(SHARD, _, _, 'x'), Order::Here(SHARD, _, _, 'y')]), "{here:?}");
        assert!(passing.is_empty() && passing.expire(u64::MAX).is_empty());
    }

    #[test]
    fn what_was_asked_later_about_a_task_waits_for_what_is_astray() {
        let mut passing = to_b();
        for id in ["1", "1", "2"] {
            passing.pass(SHARD, cancel(id), None, 'x', 0);
        }
        assert!(passing.not_here(0).is_empty());
        assert_eq!(asks(passing.try_again()), [("b".into(), 3, 1, "1".into())]);
        passing.came_here(SHARD);
        assert!(passing.not_here(1).is_empty(), "the first one about the task is still with the other node");
        assert!(passing.expire(u64::MAX).is_empty(), "the shard is here, so nobody gives it up");
        assert_eq!(passing.not_here(2).len(), 1, "another task does not mind");
        assert_eq!(passing.not_here(3).len(), 2);
    }

    #[test]
    fn what_never_left_goes_to_who_has_its_shard_by_now() {
        let mut passing = to_b();
        passing.linked(&node("c"));
        passing.pass(SHARD, cancel("1"), None, 'x', 0);
        assert!(passing.moved(SHARD, Some(&node("c"))).is_empty(), "it may be on its way");
        assert_eq!(asks(passing.unlinked(&node("b"), &[0])), [("c".into(), 1, 0, "1".into())]);
    }

    #[test]
    fn no_more_are_taken_than_there_is_room_for() {
        let mut passing = to_b();
        for _ in 0..MOST {
            passing.pass(SHARD, cancel("1"), None, 'x', 0);
        }
        assert_eq!(errors(passing.pass(SHARD, cancel("1"), None, 'y', 0)), [('y', Error::Overloaded)]);
        assert!(!passing.answered(0, cancelled()).is_empty());
        assert_eq!(asks(passing.pass(SHARD, cancel("1"), None, 'y', 0)).len(), 1);
    }
}
