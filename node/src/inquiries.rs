//! How the work of all nodes goes: each is asked for its part, and whoever does not say it soon is left out.

use std::collections::BTreeMap;

use punctual_center::{Account, Consumer, Consumers, Inquiry, LinkId, Message};
use punctual_core::{Name, Scope};
use tokio::sync::oneshot::{self, Receiver, Sender};

use crate::shared::Shared;

/// How long another node may take, in microseconds. Somebody looks at a screen meanwhile.
const PATIENCE: u64 = 1_000_000;

/// How many slots of a series are told at once, whoever asks: more than are kept are of no use.
const MOST_SLOTS: usize = 2_880;

/// What this node wants to know of others, until they say it.
#[derive(Default)]
pub(crate) struct Inquiries {
    last: u64,
    open: BTreeMap<u64, Open>,
}

struct Open {
    on: LinkId,
    since: u64,
    to: Sender<Account>,
}

impl Inquiries {
    fn begin(&mut self, on: LinkId, now: u64) -> (u64, Receiver<Account>) {
        let (to, heard) = oneshot::channel();
        self.last += 1;
        self.open.insert(self.last, Open { on, since: now, to });
        (self.last, heard)
    }

    /// Another node says how its work goes, or that it did not understand.
    pub fn told(&mut self, on: LinkId, id: u64, account: Option<Account>) {
        if self.open.get(&id).is_none_or(|open| open.on != on) {
            return;
        }
        if let (Some(open), Some(account)) = (self.open.remove(&id), account) {
            // Who asked may have gone.
            _ = open.to.send(account);
        }
    }

    /// Nothing more comes on a link.
    pub fn unlinked(&mut self, on: LinkId) {
        self.open.retain(|_, open| open.on != on);
    }

    /// Leaves out who has taken too long, and forgets for whom nobody waits.
    pub fn expire(&mut self, now: u64) {
        self.open.retain(|_, open| now < open.since + PATIENCE && !open.to.is_closed());
    }

    /// Nobody says anything any more.
    pub fn close(&mut self) {
        self.open.clear();
    }

    /// Whether somebody's time is running.
    pub fn is_waiting(&self) -> bool {
        !self.open.is_empty()
    }
}

impl Shared {
    /// What the nodes say, this one first, and who of them says nothing; of only one of them if that is wanted.
    pub async fn inquire(&self, inquiry: Inquiry, of: Option<&Name>) -> (Vec<Account>, Vec<Name>) {
        let is_meant = |node: &Name| of.is_none_or(|of| of == node);
        let (mut heard, mut silent) = (Vec::new(), Vec::new());
        for present in self.roll().there().filter(|present| present.who != self.who && is_meant(&present.who.node)) {
            let mut exchange = self.peers.lock();
            let now = self.clock.steady_micros();
            let on = exchange.link_to(&present.who);
            let begun = on.map(|on| (on, exchange.inquiries.begin(on, now)));
            drop(exchange);
            let said = begun.map(|(on, (id, account))| {
                (self.peers.say(on, Message::Inquire { id, inquiry: inquiry.clone() }), account)
            });
            match said {
                Some((Ok(()), account)) => heard.push((present.who.node.clone(), account)),
                _ => silent.push(present.who.node.clone()),
            }
        }
        self.peers.bell.notify_one();
        let mut accounts = if is_meant(&self.who.node) { vec![self.account(&inquiry)] } else { Vec::new() };
        for (node, account) in heard {
            match account.await {
                Ok(account) => accounts.push(account),
                Err(_) => silent.push(node),
            }
        }
        (accounts, silent)
    }

    /// What this node says.
    pub fn account(&self, inquiry: &Inquiry) -> Account {
        match inquiry {
            Inquiry::Work { within, most } => {
                let consumers = self.board.lock().waiting.len();
                let requests = self.inboxes.iter().map(|inbox| inbox.len()).sum();
                Account::Work(Box::new(self.meter.work(within, *most, consumers, requests)))
            }
            Inquiry::Topics(topics) => Account::Topics(self.meter.happened(topics)),
            Inquiry::Queues(queues) => Account::Queues(self.meter.timings(queues)),
            Inquiry::Consumers { queue, within, most } => {
                Account::Consumers(self.consumers(queue.as_ref(), within, *most))
            }
            Inquiry::Pulse { topics } => Account::Pulse(Box::new(self.meter.pulse(topics, self.clock.now()))),
            Inquiry::Series { of, grain, from, slots } => {
                let slots = (*slots).min(MOST_SLOTS);
                Account::Series(self.meter.series(of.as_ref(), *grain, *from, slots, self.clock.now()))
            }
        }
    }

    /// Who waits at this node for a queue, or for any in a scope.
    fn consumers(&self, queue: Option<&Name>, within: &Scope, most: usize) -> Consumers {
        let (mut longest, mut count) = (Vec::new(), 0);
        let board = self.board.lock();
        for reserve in board.waiting.own() {
            let queues = || reserve.queues.iter().filter(|queue| within.fits(queue));
            if !queues().any(|waited_for| queue.is_none_or(|queue| queue == waited_for)) {
                continue;
            }
            count += 1;
            if longest.len() < most {
                let (name, queues) = (reserve.consumer.clone(), queues().cloned().collect());
                longest.push(Consumer { name, queues, max: reserve.max as u64 });
            }
        }
        Consumers { node: self.who.node.clone(), longest, count }
    }
}
