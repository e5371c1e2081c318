//! Links between nodes: each is dialled by one of two and carries what it is given in order. It may be slow, be held up one
//! way or both, and break; then a tail of what was on its way is lost, and each end hears of it in its own time.

use std::collections::{BTreeMap, VecDeque};

use punctual_center::{LinkId, Message};
use punctual_core::store::Incarnation;

use crate::Sabotage;
use crate::clock::Moment;
use crate::record::Tag;
use crate::say;
use crate::world::{Event, World};

/// How long it takes to dial again.
const REDIAL: (Moment, Moment) = (50, 1_000);
/// How long a way may be cut before links over it break.
const PATIENCE: Moment = 3_000;

/// The ends of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Who has dialled it.
    Asker,
    /// The other one.
    Asked,
}

/// A message, and the request that it is about, which only the simulation sees.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub message: Message,
    pub tag: Option<Tag>,
}

impl Frame {
    /// The id, if it asks for something.
    fn ask(&self) -> Option<u64> {
        match &self.message {
            Message::Ask { id, .. } => Some(*id),
            _ => None,
        }
    }
}

/// All links, and the ways that they take.
#[derive(Debug, Default)]
pub(crate) struct Network {
    ways: BTreeMap<(usize, usize), Way>,
    pub links: BTreeMap<LinkId, Link>,
    next: u64,
}

/// How it stands with the way from a node to another.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    cut_until: Moment,
    slowness: Moment,
}

#[derive(Debug)]
pub(crate) struct Link {
    asker: End,
    asked: End,
    /// Whom the asker meant.
    to: Incarnation,
    is_linked: bool,
    is_broken: bool,
    /// What could not be written yet.
    unwritten: Vec<Frame>,
    /// What was asked and not answered, by id.
    open: BTreeMap<u64, Tag>,
}

/// One end of a link.
#[derive(Debug)]
struct End {
    node: usize,
    life: u64,
    /// What is on its way to it, and when it arrives.
    inbound: VecDeque<(Moment, Frame)>,
    /// When it hears that the link has broken.
    ends_at: Option<Moment>,
    /// It has heard, or is not there any more.
    is_over: bool,
}

impl Network {
    fn way(&self, from: usize, to: usize) -> Way {
        self.ways.get(&(from, to)).copied().unwrap_or_default()
    }
}

impl Link {
    fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Asker => &mut self.asker,
            Side::Asked => &mut self.asked,
        }
    }

    fn is_over(&self) -> bool {
        self.asker.is_over && self.asked.is_over
    }
}

impl World {
    /// Keeps links to these nodes, and to no others.
    pub(crate) fn keep_links(&mut self, index: usize, peers: Vec<Incarnation>) {
        let node = &mut self.nodes[index];
        let life = node.life;
        let kept = std::mem::replace(&mut node.exchange.kept, peers.iter().cloned().collect());
        let gone: Vec<LinkId> =
            node.exchange.dialled.iter().filter(|(_, to)| !peers.contains(to)).map(|(on, _)| *on).collect();
        for on in gone {
            self.break_link(on, Some(Side::Asker));
        }
        for peer in peers.into_iter().filter(|peer| !kept.contains(peer)) {
            self.after(0, Event::Dial(index, life, peer));
        }
    }

    /// A node tries to reach another one.
    pub(crate) fn dial(&mut self, index: usize, life: u64, to: Incarnation) {
        let node = &self.nodes[index];
        let is_linked =
            self.network.links.values().any(|link| {
                link.asker.node == index && link.asker.life == life && link.to == to && !link.asker.is_over
            });
        if !node.up || node.life != life || !node.exchange.kept.contains(&to) || is_linked {
            return;
        }
        let other = self.nodes.iter().position(|other| other.is_awake(self.moment) && other.membership.who == to);
        let is_open = |other: &usize| {
            let (there, back) = (self.network.way(index, *other), self.network.way(*other, index));
            there.cut_until.max(back.cut_until) <= self.moment
        };
        let Some(other) = other.filter(is_open).filter(|_| node.is_awake(self.moment)) else {
            let pause = self.rng.between(REDIAL.0, REDIAL.1);
            return self.after(pause, Event::Dial(index, life, to));
        };
        self.network.next += 1;
        let on = LinkId(self.network.next);
        let end = |node: usize, life: u64| End { node, life, inbound: VecDeque::new(), ends_at: None, is_over: false };
        let link = Link {
            asker: end(index, life),
            asked: end(other, self.nodes[other].life),
            to,
            is_linked: false,
            is_broken: false,
            unwritten: Vec::new(),
            open: BTreeMap::new(),
        };
        say!(self.trace, "* link {} from node {index} to node {other}", on.0);
        self.census.count("links");
        self.network.links.insert(on, link);
        self.nodes[other].exchange.joined(on);
        let latency = self.latency(other, index);
        self.after(latency, Event::Hear(on, Side::Asker));
    }

    fn latency(&mut self, from: usize, to: usize) -> Moment {
        let slowness = self.network.way(from, to).slowness;
        self.rng.below(5 + slowness)
    }

    /// Puts a message on its way; says whether it was taken.
    pub(crate) fn put(&mut self, on: LinkId, by: Side, frame: Frame) -> bool {
        let Some(link) = self.network.links.get_mut(&on) else { return false };
        let (from, to, hearer) = match by {
            Side::Asker => (link.asker.node, link.asked.node, Side::Asked),
            Side::Asked => (link.asked.node, link.asker.node, Side::Asker),
        };
        if link.end(by).is_over || (link.is_broken && self.rng.percent(30)) {
            return false;
        }
        let way = self.network.ways.get(&(from, to)).copied().unwrap_or_default();
        let is_cut = way.cut_until > self.moment;
        if by == Side::Asker && ((is_cut || link.is_broken) && self.rng.percent(50) || !link.unwritten.is_empty()) {
            link.unwritten.push(frame);
            return true;
        }
        if let (Some(id), Some(tag)) = (frame.ask(), frame.tag) {
            link.open.insert(id, tag);
        }
        if link.is_broken {
            if let Some(tag) = frame.tag {
                self.auditor.in_doubt(tag);
            }
            return true;
        }
        let hiccup = if self.rng.percent(5) { 300 } else { 0 };
        let delay = self.rng.below(5 + hiccup + way.slowness);
        let link = self.network.links.get_mut(&on).expect("it was just there");
        let end = link.end(hearer);
        let earliest = end.inbound.back().map_or(0, |(at, _)| *at);
        let at = (self.moment.max(way.cut_until) + delay).max(earliest);
        end.inbound.push_back((at, frame));
        let delay = at - self.moment;
        self.after(delay, Event::Hear(on, hearer));
        true
    }

    /// What could not be written is, if the way is whole again.
    pub(crate) fn write_on(&mut self, from: usize, to: usize) {
        if self.network.way(from, to).cut_until > self.moment {
            return;
        }
        let held_up = |link: &Link| link.asker.node == from && link.asked.node == to && !link.is_broken;
        let links: Vec<LinkId> =
            self.network.links.iter().filter(|(_, link)| held_up(link)).map(|(on, _)| *on).collect();
        for on in links {
            let unwritten = self.network.links.get_mut(&on).map(|link| std::mem::take(&mut link.unwritten));
            for frame in unwritten.into_iter().flatten() {
                self.put(on, Side::Asker, frame);
            }
        }
    }

    /// Every way is whole and fast again.
    pub(crate) fn mend_ways(&mut self) {
        for (from, to) in std::mem::take(&mut self.network.ways).into_keys() {
            self.write_on(from, to);
        }
    }

    /// A link breaks: what is on its way is lost from somewhere on, and both ends hear of it, or one has closed it.
    pub(crate) fn break_link(&mut self, on: LinkId, by: Option<Side>) {
        let Some(link) = self.network.links.get_mut(&on).filter(|link| !link.is_broken) else { return };
        link.is_broken = true;
        say!(self.trace, "* link {} breaks", on.0);
        self.census.count("links that broke");
        for tag in link.open.values() {
            self.auditor.in_doubt(*tag);
        }
        let mut hear = Vec::new();
        for side in [Side::Asker, Side::Asked] {
            let notices = if self.rng.percent(20) { self.rng.magnitude(100, 10_000) } else { self.rng.below(50) };
            let notices = if by == Some(side) { 0 } else { notices };
            let end = link.end(side);
            let kept = self.rng.index(end.inbound.len() + 1);
            end.inbound.truncate(kept);
            end.ends_at = Some(self.moment + notices);
            hear.push((notices, side));
        }
        for (notices, side) in hear {
            self.after(notices, Event::Hear(on, side));
        }
    }

    /// Something has come on a link, or it is over.
    pub(crate) fn hear_link(&mut self, on: LinkId, side: Side) {
        let Some(link) = self.network.links.get_mut(&on) else { return };
        let end = link.end(side);
        if end.is_over {
            return;
        }
        let index = end.node;
        let node = &self.nodes[index];
        if node.up && node.life == end.life && !node.is_awake(self.moment) {
            let until = node.stalled_until;
            return self.after(until - self.moment, Event::Hear(on, side));
        }
        let is_there = node.up && node.life == end.life;
        let mut frames = Vec::new();
        while let Some((_, frame)) = end.inbound.pop_front_if(|(at, _)| *at <= self.moment) {
            frames.push(frame);
        }
        let has_ended = end.ends_at.is_some_and(|at| at <= self.moment) || !is_there;
        end.is_over = has_ended;
        let is_news = side == Side::Asker && !std::mem::replace(&mut link.is_linked, true);
        for frame in &frames {
            if let Message::Answered { id, .. } | Message::NotHere { id, .. } = &frame.message {
                link.open.remove(id);
            }
        }
        let mut unsent: Vec<u64> = link.unwritten.iter().filter_map(Frame::ask).collect();
        if self.sabotage == Some(Sabotage::BrokenIsUnsent) {
            unsent.extend(link.open.keys());
        }
        let to = link.to.clone();
        if link.is_over() {
            self.network.links.remove(&on);
        }
        if !is_there {
            return;
        }
        match side {
            Side::Asker => {
                if is_news {
                    self.linked(index, on, &to);
                }
                self.told(index, on, frames);
                if has_ended {
                    self.unlinked(index, on, &unsent);
                    let (life, pause) = (self.nodes[index].life, self.rng.between(REDIAL.0, REDIAL.1));
                    self.after(pause, Event::Dial(index, life, to));
                }
            }
            Side::Asked => {
                self.asked(index, on, frames);
                if has_ended {
                    self.nodes[index].exchange.left(on);
                    self.guests_leave(index, on);
                }
            }
        }
    }

    /// A node has died: nobody is at its ends of links any more, and the others will hear of that.
    pub(crate) fn end_links(&mut self, index: usize) {
        let is_meant = |link: &Link| link.asker.node == index || link.asked.node == index;
        let links: Vec<LinkId> =
            self.network.links.iter().filter(|(_, link)| is_meant(link)).map(|(on, _)| *on).collect();
        for on in links {
            self.break_link(on, None);
        }
    }

    /// Some link breaks.
    pub(crate) fn break_some_link(&mut self) {
        let links: Vec<LinkId> = self.network.links.keys().copied().collect();
        if !links.is_empty() {
            let on = *self.rng.pick(&links);
            self.break_link(on, None);
        }
    }

    /// Nothing gets from a node to another for a while, maybe also not back.
    pub(crate) fn cut_way(&mut self, from: usize, to: usize, is_one_way: bool) {
        let length = self.rng.magnitude(10, 120_000);
        say!(self.trace, "* nothing gets from node {from} to node {to} for {length} ms, one way: {is_one_way}");
        self.census.count(if is_one_way { "one-way cuts" } else { "cuts between nodes" });
        let mut ways = vec![(from, to)];
        if !is_one_way {
            ways.push((to, from));
        }
        for way in ways {
            self.network.ways.entry(way).or_default().cut_until = self.moment + length;
            self.after(length, Event::WriteOn(way.0, way.1));
        }
        let patience = self.rng.between(PATIENCE / 3, PATIENCE);
        if length > patience {
            self.after(patience, Event::GiveUpLinks(from, to));
        }
    }

    /// Links over a way that is still cut break.
    pub(crate) fn give_up_links(&mut self, from: usize, to: usize) {
        if self.network.way(from, to).cut_until <= self.moment {
            return;
        }
        let is_meant = |link: &Link| [(from, to), (to, from)].contains(&(link.asker.node, link.asked.node));
        let links: Vec<LinkId> =
            self.network.links.iter().filter(|(_, link)| is_meant(link)).map(|(on, _)| *on).collect();
        for on in links {
            self.break_link(on, None);
        }
    }

    /// What gets from a node to another takes up to so long from now on.
    pub(crate) fn slow_way(&mut self, from: usize, to: usize) {
        let slowness = self.rng.magnitude(5, 5_000);
        say!(self.trace, "* what goes from node {from} to node {to} takes up to {slowness} ms");
        self.census.count("slow links");
        self.network.ways.entry((from, to)).or_default().slowness = slowness;
        let length = self.rng.magnitude(1_000, 300_000);
        self.after(length, Event::SpeedUp(from, to));
    }

    /// It is as fast as before.
    pub(crate) fn speed_up(&mut self, from: usize, to: usize) {
        self.network.ways.entry((from, to)).or_default().slowness = 0;
    }
}
