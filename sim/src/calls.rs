//! Requests and answers on their way, some of which get lost.

use punctual_core::store::ShardId;
use punctual_core::{Answer, Command, Ending, Refused, Reply, Ruling, ScheduleOutcome};

use crate::auditor::Promise;
use crate::clock::Moment;
use crate::demand::{Demand, Purpose, What};
use crate::node::SimulatedNode;
use crate::record::Tag;
use crate::say;
use crate::world::{Event, SETTLES, World};

/// How long a client waits for an answer.
const PATIENCE: Moment = 30_000;

/// A request on its way.
pub(crate) struct Call {
    pub demand: Demand,
    node: usize,
    sent_at: Moment,
    /// For a node's own requests: the node, and the life in which it asked.
    from: Option<(usize, u64)>,
}

impl World {
    /// Sends a request to the node that seems to be the right one.
    pub(crate) fn send(&mut self, demand: Demand, from: Option<(usize, u64)>) {
        if self.draining && is_whim(&demand) {
            return;
        }
        let any = self.rng.index(self.nodes.len());
        let node = match &demand.what {
            // With links it does not matter whom one asks.
            _ if self.profile.linked => from.map_or(any, |(node, _)| node),
            What::Command(shard, _) if self.draining || self.rng.percent(90) => self.who_has(*shard).unwrap_or(any),
            _ => any,
        };
        let latency = if self.profile.exact { 0 } else { self.rng.below(30) };
        self.send_to(node, latency, demand, from);
    }

    /// Sends several requests at once to some node.
    pub(crate) fn send_together(&mut self, demands: Vec<Demand>) {
        if self.draining {
            return;
        }
        let (node, latency) = (self.rng.index(self.nodes.len()), self.rng.below(30));
        let tags: Vec<Tag> = demands.into_iter().map(|demand| self.send_to(node, latency, demand, None)).collect();
        self.auditor.together(&tags);
    }

    /// Sends a request to this node.
    fn send_to(&mut self, node: usize, latency: Moment, demand: Demand, from: Option<(usize, u64)>) -> Tag {
        self.next_tag += 1;
        let tag = self.next_tag;
        let wait = match &demand.what {
            What::Reserve(_, wait) => wait.0,
            What::Command(..) | What::Change(_) => 0,
        };
        say!(self.trace, "send {tag} to {node}: {:?}", demand.what);
        self.calls.insert(tag, Call { demand, node, sent_at: self.moment, from });
        self.after(latency, Event::Arrive(tag));
        if wait < u64::MAX {
            self.after(wait + PATIENCE, Event::Timeout(tag));
        }
        tag
    }

    /// Whoever asked has waited long enough.
    pub(crate) fn time_out(&mut self, tag: Tag) {
        let Some(call) = self.calls.get(&tag) else { return };
        self.census.count("answers never seen");
        let at_peace = self.draining && call.sent_at >= self.drains_since + SETTLES;
        if self.profile.linked && at_peace {
            let what = format!("request {tag} was never answered, though nothing goes wrong");
            self.auditor.accuse(Promise::KeepsWorking, "", what);
        }
        self.answer(tag, None);
    }

    /// A node that has a shard, as far as it knows; there may be others that think so.
    fn who_has(&mut self, shard: ShardId) -> Option<usize> {
        let has = |node: &SimulatedNode| node.seats().any(|(id, _)| *id == shard);
        let mut owners: Vec<usize> = self.nodes.iter().filter(|node| has(node)).map(|node| node.index).collect();
        match owners.len() {
            0 | 1 => owners.pop(),
            several => Some(owners[self.rng.index(several)]),
        }
    }

    pub(crate) fn arrive(&mut self, tag: Tag) {
        let Some(call) = self.calls.get(&tag) else { return };
        let node = &mut self.nodes[call.node];
        if !node.up {
            return self.after(10, Event::Answer(tag, None));
        }
        if !node.is_awake(self.moment) {
            let until = node.stalled_until;
            return self.after(until - self.moment, Event::Arrive(tag));
        }
        // It waited for a node that stood still, and would undo what was asked for since.
        if self.draining && is_whim(&call.demand) {
            return self.after(10, Event::Answer(tag, None));
        }
        match &call.demand.what {
            What::Command(shard, command) if self.profile.linked => {
                let (index, shard, command) = (call.node, *shard, (**command).clone());
                self.bring(index, shard, command, tag);
            }
            What::Command(shard, command) => {
                if !node.receive(*shard, (**command).clone(), tag, self.moment) {
                    self.census.count("requests to the wrong node");
                    self.after(10, Event::Answer(tag, None));
                }
            }
            What::Reserve(reserve, wait) => node.reserve(reserve.clone(), *wait, tag, self.moment),
            What::Change(wish) => {
                let (index, wish) = (call.node, wish.clone());
                self.change(index, wish, tag);
            }
        }
    }

    pub(crate) fn answer(&mut self, tag: Tag, reply: Option<Reply>) {
        let Some(call) = self.calls.remove(&tag) else { return };
        say!(self.trace, "answer {tag}: {:?} to {:?}", reply, call.demand.what);
        if call.from.is_some_and(|(node, life)| self.nodes[node].life != life) {
            return;
        }
        let command = match &call.demand.what {
            What::Command(_, command) => Some(&**command),
            What::Reserve(..) | What::Change(_) => None,
        };
        let is_change = matches!(call.demand.what, What::Change(_));
        if let Some(reply) = &reply {
            self.count_answer(reply);
            let waited_out = command.is_none() && matches!(reply, Ok(Answer::Reserved(none)) if none.is_empty());
            // What is said of a change was looked at when it was said.
            if !waited_out && !is_change {
                self.auditor.seen(tag, command, reply);
            }
        }
        if let (Purpose::Draw(queue), Some((index, _))) = (&call.demand.purpose, call.from) {
            self.drawn(index, queue, reply.as_ref());
        }
        if let (Purpose::Adopt(round), Some((index, _))) = (&call.demand.purpose, call.from) {
            return self.adopt_answered(index, *round, reply);
        }
        let demands = match &call.demand.purpose {
            Purpose::Insists | Purpose::Client => self.workload.answered(&call.demand, reply.as_ref()),
            Purpose::Consumer(index) => self.consumers.reserved(*index, reply.as_ref(), self.moment),
            Purpose::Work(_) if reply.is_none() => self.consumers.unheard(&call.demand),
            // Without word, and while the topic takes nothing for now, the dead letter is sent again.
            Purpose::Forward { .. } if !reply.as_ref().is_some_and(is_final) => Vec::new(),
            Purpose::Forward { origin, key, journey } => reply.map_or_else(Vec::new, |reply| {
                let refused = reply.err().map(|refused| refused.to_string());
                let noted = Command::Forwarded { key: key.clone(), journey: *journey, refused };
                vec![Demand::command(Purpose::Note, *origin, noted)]
            }),
            Purpose::Work(_) | Purpose::Note | Purpose::Draw(_) | Purpose::Adopt(_) => Vec::new(),
        };
        self.demand(demands);
    }

    fn count_answer(&mut self, reply: &Reply) {
        self.census.count(match reply {
            Ok(Answer::Scheduled(scheduled)) => match scheduled.outcome {
                ScheduleOutcome::Created { .. } => "created",
                ScheduleOutcome::Replaced { .. } => "replaced",
                ScheduleOutcome::Existed(_) => "existed",
            },
            Ok(Answer::Cancelled(Ruling::Done(()))) => "cancels done",
            Ok(Answer::Cancelled(Ruling::TooLate(_))) => "cancels too late",
            Ok(Answer::Rescheduled(Ruling::Done(_))) => "reschedules done",
            Ok(Answer::Rescheduled(Ruling::TooLate(_))) => "reschedules too late",
            Ok(Answer::Acknowledged) => "acknowledged",
            Ok(Answer::Removed(Ending::Done)) => "removed as done",
            Ok(Answer::Removed(Ending::Cancelled)) => "removed as cancelled",
            Ok(Answer::Removed(_)) => "removed as purged",
            Ok(Answer::Hastened(_)) => "hastened",
            Ok(Answer::Released(_)) => "released",
            Ok(Answer::Rejected) => "rejections",
            Ok(Answer::Extended(_)) => "extended",
            Ok(Answer::Deleted(_)) => "deletions",
            Ok(Answer::Swept(swept)) if swept.changed > 0 => "sweeps that changed something",
            Err(Refused::LeaseLost { .. }) => "leases lost",
            Err(Refused::TopicPaused(_)) => "refused by a paused topic",
            Err(Refused::BeingDeleted(_)) => "refused by what is being deleted",
            Err(Refused::QueueFull(_)) => "refused by a full queue",
            _ => return,
        });
    }

    /// An answer leaves for whoever asked, and may get lost.
    pub(crate) fn deliver(&mut self, tag: Tag, reply: Reply) {
        // An administrator hears what comes to its node: it need not ask again who was asked.
        let is_at_home = self.calls.get(&tag).is_some_and(|call| matches!(call.demand.purpose, Purpose::Adopt(_)));
        if !is_at_home && self.rng.percent(self.profile.lost_answers) {
            return self.census.count("answers lost");
        }
        let latency = if self.profile.exact { 0 } else { self.rng.below(30) };
        self.after(latency, Event::Answer(tag, Some(reply)));
    }

    /// These requests will never be answered by this node; whoever asked learns that, or not.
    pub(crate) fn lose(&mut self, index: usize, tags: Vec<Tag>) {
        for tag in tags {
            if self.lose_foreign(index, tag) || self.answer_guest(index, tag, Vec::new()) {
                continue;
            }
            self.census.count("unknown outcomes");
            if self.rng.percent(70) || self.draining {
                self.after(5, Event::Answer(tag, None));
            }
        }
    }
}

/// Whether a client pauses or changes something, which nobody does any more when a run comes to its end.
fn is_whim(demand: &Demand) -> bool {
    let schedules = matches!(&demand.what, What::Command(_, command) if matches!(**command, Command::Schedule(_)));
    demand.purpose == Purpose::Client && !schedules
}

/// Whether asking again would not change the answer.
fn is_final(reply: &Reply) -> bool {
    reply.as_ref().err().is_none_or(|refused| !refused.is_temporary())
}
