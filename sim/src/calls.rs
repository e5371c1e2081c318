//! Requests and answers on their way, some of which get lost.

use punctual_core::store::ShardId;
use punctual_core::{Answer, Command, Ending, Refused, Reply, Ruling, ScheduleOutcome};

use crate::clock::Moment;
use crate::demand::{Demand, Purpose, What};
use crate::node::SimulatedNode;
use crate::record::Tag;
use crate::say;
use crate::world::{Event, World};

/// How long a client waits for an answer.
const PATIENCE: Moment = 30_000;

/// A request on its way.
pub(crate) struct Call {
    pub demand: Demand,
    node: usize,
    /// For a node's own requests: the node, and the life in which it asked.
    from: Option<(usize, u64)>,
}

impl World {
    /// Sends a request to the node that seems to be the right one.
    pub(crate) fn send(&mut self, demand: Demand, from: Option<(usize, u64)>) {
        if self.draining && is_whim(&demand) {
            return;
        }
        self.next_tag += 1;
        let tag = self.next_tag;
        let any = self.rng.index(self.nodes.len());
        let node = match &demand.what {
            What::Command(shard, _) if self.draining || self.rng.percent(90) => self.who_has(*shard).unwrap_or(any),
            _ => any,
        };
        let wait = match &demand.what {
            What::Reserve(_, wait) => wait.0,
            What::Command(..) => 0,
        };
        say!(self.trace, "send {tag} to {node}: {:?}", demand.what);
        let latency = if self.profile.exact { 0 } else { self.rng.below(30) };
        self.calls.insert(tag, Call { demand, node, from });
        self.after(latency, Event::Arrive(tag));
        if wait < u64::MAX {
            self.after(wait + PATIENCE, Event::Timeout(tag));
        }
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
            What::Command(shard, command) => {
                if !node.receive(*shard, (**command).clone(), tag, self.moment) {
                    self.census.count("requests to the wrong node");
                    self.after(10, Event::Answer(tag, None));
                }
            }
            What::Reserve(reserve, wait) => node.reserve(reserve.clone(), *wait, tag, self.moment),
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
            What::Reserve(..) => None,
        };
        if let Some(reply) = &reply {
            self.count_answer(reply);
            let waited_out = command.is_none() && matches!(reply, Ok(Answer::Reserved(none)) if none.is_empty());
            if !waited_out {
                self.auditor.seen(tag, command, reply);
            }
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
            Purpose::Work(_) | Purpose::Note => Vec::new(),
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

    /// These requests will never be answered; whoever asked learns that, or not.
    pub(crate) fn lose(&mut self, tags: Vec<Tag>) {
        for tag in tags {
            self.census.count("unknown outcomes");
            if self.rng.percent(70) {
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
