//! What a simulated disk holds, and what its calls do to it.
//!
//! Each file has two images: what the process sees, and what is durable. Between them stands the
//! list of unsynced changes; names have the same pair, and a list that a journal keeps in order.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use punctual_chance::Chance;

use crate::change::{Change, Survival};
use crate::fault::{Call, Faults};
use crate::image::Image;

/// No file grows longer, so that a wrong offset gives an error and does not eat the memory.
const LONGEST: u64 = 1 << 36;

/// A file by whatever name.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The name that it has, or had last.
    pub(crate) name: Arc<str>,
    pub(crate) visible: Image,
    pub(crate) durable: Image,
    /// What happened since the last sync, and when.
    pub(crate) unsynced: Vec<(u64, Change)>,
    /// How many have it open.
    pub(crate) open: usize,
    /// Whether it has a name, as the process sees it.
    pub(crate) named: bool,
}

/// Something that happened to names.
#[derive(Clone, Debug)]
enum Naming {
    Create { name: Arc<str>, node: u64 },
    Rename { from: Arc<str>, to: Arc<str> },
    Remove { name: Arc<str> },
}

type Names = BTreeMap<Arc<str>, u64>;

impl Naming {
    /// Gives the node that has no name any more.
    fn apply(&self, names: &mut Names) -> Option<u64> {
        match self {
            Naming::Create { name, node } => names.insert(Arc::clone(name), *node),
            Naming::Rename { from, to } => {
                let node = names.remove(from)?;
                names.insert(Arc::clone(to), node).filter(|replaced| *replaced != node)
            }
            Naming::Remove { name } => names.remove(name),
        }
    }
}

/// Why a call does not do what it was asked for.
pub(crate) enum Stop {
    /// The power goes at this very call.
    PowerGoes,
    /// It went before.
    PowerIsGone,
    /// A test wants it so.
    Fault(io::ErrorKind),
}

impl From<Stop> for io::Error {
    fn from(stop: Stop) -> io::Error {
        match stop {
            Stop::PowerGoes | Stop::PowerIsGone => io::Error::other("the power is gone"),
            Stop::Fault(kind) => io::Error::new(kind, "the disk was told to fail"),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Medium {
    pub(crate) nodes: BTreeMap<u64, Node>,
    next_node: u64,
    pub(crate) names: Names,
    durable_names: Names,
    unsynced_names: Vec<Naming>,
    pub(crate) locks: BTreeSet<String>,
    pub(crate) faults: Faults,
    pub(crate) limit: u64,
    /// Counts what happens to files, so that it has an order over all of them.
    moment: u64,
    pub(crate) calls: u64,
    pub(crate) power_until: u64,
    pub(crate) power_gone: bool,
    /// The call at which the power went, and the name that it was about.
    pub(crate) last_call: Option<(Call, String)>,
    pub(crate) chance: Chance,
}

impl Medium {
    pub(crate) fn new(seed: u64) -> Medium {
        Medium {
            nodes: BTreeMap::new(),
            next_node: 0,
            names: Names::new(),
            durable_names: Names::new(),
            unsynced_names: Vec::new(),
            locks: BTreeSet::new(),
            faults: Faults::default(),
            limit: u64::MAX,
            moment: 0,
            calls: 0,
            power_until: u64::MAX,
            power_gone: false,
            last_call: None,
            chance: Chance::new(seed),
        }
    }

    /// Every call starts here: counts it, and says if it is to go wrong.
    pub(crate) fn enter(&mut self, call: Call, name: &str) -> Result<(), Stop> {
        if self.power_gone {
            return Err(Stop::PowerIsGone);
        }
        self.calls += 1;
        if self.calls >= self.power_until {
            self.power_gone = true;
            self.last_call = Some((call, name.to_owned()));
            return Err(Stop::PowerGoes);
        }
        self.faults.meet(call, name).map_or(Ok(()), |kind| Err(Stop::Fault(kind)))
    }

    /// A call that changes something. What it does may still survive if the power goes meanwhile.
    pub(crate) fn perform<T>(
        &mut self,
        call: Call,
        name: &str,
        act: impl FnOnce(&mut Medium) -> io::Result<T>,
    ) -> io::Result<T> {
        match self.enter(call, name) {
            Ok(()) => act(self),
            Err(stop) => {
                if matches!(stop, Stop::PowerGoes) {
                    // Nobody is left to hear how it went.
                    let _ = act(self);
                }
                Err(stop.into())
            }
        }
    }

    pub(crate) fn node(&mut self, node: u64) -> &mut Node {
        self.nodes.get_mut(&node).expect("a node stays while a name or an open file has it")
    }

    pub(crate) fn find(&self, name: &str) -> io::Result<u64> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("there is no file {name}"));
        self.names.get(name).copied().ok_or_else(missing)
    }

    /// An empty file of this name.
    pub(crate) fn create(&mut self, name: &str) -> u64 {
        if let Some(node) = self.names.get(name).copied() {
            self.happen(node, Change::Empty);
            return node;
        }
        let name: Arc<str> = name.into();
        let node = self.add(Node::new(Arc::clone(&name), Image::default()));
        self.happen_to_names(Naming::Create { name, node });
        node
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let node = self.find(from)?;
        let to: Arc<str> = to.into();
        self.node(node).name = Arc::clone(&to);
        self.happen_to_names(Naming::Rename { from: from.into(), to });
        Ok(())
    }

    pub(crate) fn remove(&mut self, name: &str) -> io::Result<()> {
        self.find(name)?;
        self.happen_to_names(Naming::Remove { name: name.into() });
        Ok(())
    }

    pub(crate) fn sync_names(&mut self) {
        for naming in std::mem::take(&mut self.unsynced_names) {
            naming.apply(&mut self.durable_names);
        }
        self.forget_nodes();
    }

    /// Writes if there is room. If not, what was written first is there, as on a real disk.
    pub(crate) fn write(&mut self, node: u64, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let outcome = self.make_room(node, offset, bytes.len() as u64);
        let mut fitting = bytes;
        if let Err(error) = &outcome {
            if error.kind() != io::ErrorKind::StorageFull {
                return outcome;
            }
            fitting = self.some_first(bytes);
            while !fitting.is_empty() && self.make_room(node, offset, fitting.len() as u64).is_err() {
                fitting = &fitting[..fitting.len() / 2];
            }
        }
        if !fitting.is_empty() {
            self.happen(node, Change::Write { offset, bytes: fitting.to_vec() });
        }
        outcome
    }

    pub(crate) fn allocate(&mut self, node: u64, length: u64) -> io::Result<()> {
        self.make_room(node, 0, length)?;
        self.happen(node, Change::Allocate { length });
        Ok(())
    }

    pub(crate) fn punch(&mut self, node: u64, offset: u64, length: u64) {
        // Behind the end there is nothing to punch, now or when a crash has left a longer file.
        let end = offset.saturating_add(length).min(self.node(node).visible.length());
        if offset < end {
            self.happen(node, Change::Punch { offset, length: end - offset });
        }
    }

    pub(crate) fn sync(&mut self, node: u64) {
        let node = self.node(node);
        for (_, change) in std::mem::take(&mut node.unsynced) {
            change.apply(&mut node.durable);
        }
    }

    /// After a failed write-back the system takes its pages for clean: what was lost is seen until
    /// the machine goes down, but no later sync writes it.
    pub(crate) fn fail_sync(&mut self, node: u64) {
        let mut chance = self.chance.clone();
        self.node(node).unsynced.retain(|_| chance.happens(1, 2));
        self.chance = chance;
    }

    /// A piece of the beginning, of any length.
    pub(crate) fn some_first<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[..self.chance.below(bytes.len() as u64 + 1) as usize]
    }

    pub(crate) fn used(&self) -> u64 {
        self.nodes.values().filter(|node| node.named || node.open > 0).map(|node| node.visible.room()).sum()
    }

    /// An open file is closed.
    pub(crate) fn close(&mut self, node: u64) {
        let node = self.node(node);
        node.open -= 1;
        if node.open == 0 && !node.named {
            self.forget_nodes();
        }
    }

    /// Puts a file there with these bytes, as if it had always been.
    pub(crate) fn place(&mut self, name: &str, bytes: &[u8]) {
        let image = Image::of(bytes);
        let node = match self.names.get(name) {
            Some(node) => *node,
            None => {
                let name: Arc<str> = name.into();
                let node = self.add(Node::new(Arc::clone(&name), Image::default()));
                // With all that is pending before it, or a pending removal would still take it.
                self.happen_to_names(Naming::Create { name, node });
                self.sync_names();
                node
            }
        };
        let node = self.node(node);
        node.visible = image.clone();
        node.durable = image;
        node.unsynced.clear();
    }

    /// All that the system knows, without the process: nothing is open or locked.
    pub(crate) fn without_process(&self) -> Medium {
        let mut copy = Medium::new(0);
        copy.limit = self.limit;
        copy.next_node = self.next_node;
        copy.moment = self.moment;
        copy.nodes = self.nodes.clone();
        copy.nodes.values_mut().for_each(|node| node.open = 0);
        copy.names = self.names.clone();
        copy.durable_names = self.durable_names.clone();
        copy.unsynced_names = self.unsynced_names.clone();
        copy.chance = self.chance.clone();
        copy.forget_nodes();
        copy
    }

    /// What is there when the power comes back.
    pub(crate) fn after_power_loss(&self, seed: u64) -> Medium {
        let mut after = Medium::new(seed);
        after.limit = self.limit;
        let mut chance = Chance::new(seed);
        let mut names = self.durable_names.clone();
        let pending = self.unsynced_names.len() as u64;
        let kept = match chance.below(4) {
            0 => 0,
            1 => pending,
            _ => chance.below(pending + 1),
        };
        for naming in &self.unsynced_names[..kept as usize] {
            naming.apply(&mut names);
        }
        let survivors = || names.values().filter_map(|node| self.nodes.get(node));
        let mut moments: Vec<u64> =
            survivors().flat_map(|node| node.unsynced.iter().map(|(moment, _)| *moment)).collect();
        moments.sort_unstable();
        let survival = Survival::draw(&moments, &mut chance);
        for (name, node) in &names {
            let node = &self.nodes[node];
            let mut image = node.durable.clone();
            for (moment, change) in &node.unsynced {
                survival.apply(change, *moment, &mut image, &mut chance);
            }
            let number = after.add(Node::new(Arc::clone(name), image));
            after.names.insert(Arc::clone(name), number);
        }
        after.durable_names = after.names.clone();
        after.chance = chance;
        after
    }

    fn add(&mut self, node: Node) -> u64 {
        let number = self.next_node;
        self.next_node += 1;
        self.nodes.insert(number, node);
        number
    }

    fn happen(&mut self, node: u64, change: Change) {
        self.moment += 1;
        let moment = self.moment;
        let node = self.node(node);
        change.apply(&mut node.visible);
        node.unsynced.push((moment, change));
    }

    fn happen_to_names(&mut self, naming: Naming) {
        if let Some(nameless) = naming.apply(&mut self.names) {
            self.node(nameless).named = false;
        }
        self.unsynced_names.push(naming);
    }

    fn make_room(&mut self, node: u64, offset: u64, length: u64) -> io::Result<()> {
        if offset.checked_add(length).is_none_or(|end| end > LONGEST) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let lacking = self.node(node).visible.lacking(offset, length);
        if self.limit < u64::MAX && lacking > 0 && self.used() + lacking > self.limit {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    /// Forgets files that no name leads to, now or after a crash, and that nobody has open.
    fn forget_nodes(&mut self) {
        let created = self.unsynced_names.iter().filter_map(|naming| match naming {
            Naming::Create { node, .. } => Some(*node),
            Naming::Rename { .. } | Naming::Remove { .. } => None,
        });
        let reachable: BTreeSet<u64> =
            self.names.values().chain(self.durable_names.values()).copied().chain(created).collect();
        self.nodes.retain(|number, node| node.open > 0 || reachable.contains(number));
    }
}

impl Node {
    fn new(name: Arc<str>, image: Image) -> Node {
        Node { name, visible: image.clone(), durable: image, unsynced: Vec::new(), open: 0, named: true }
    }

    /// Flips a bit wherever the byte is, or the next sync would bring it back unharmed.
    pub(crate) fn flip(&mut self, at: u64, bit: u8) {
        self.visible.flip(at, bit);
        self.durable.flip(at, bit);
        for (_, change) in &mut self.unsynced {
            if let Change::Write { offset, bytes } = change
                && let Some(byte) = at.checked_sub(*offset).and_then(|index| bytes.get_mut(index as usize))
            {
                *byte ^= 1 << bit;
            }
        }
    }
}
