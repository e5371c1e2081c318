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
pub(crate) struct Inode {
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
    Create { name: Arc<str>, inode: u64 },
    Rename { from: Arc<str>, to: Arc<str> },
    Remove { name: Arc<str> },
}

type Names = BTreeMap<Arc<str>, u64>;

impl Naming {
    /// Gives the inode that has no name any more.
    fn apply(&self, names: &mut Names) -> Option<u64> {
        match self {
            Naming::Create { name, inode } => names.insert(Arc::clone(name), *inode),
            Naming::Rename { from, to } => {
                let inode = names.remove(from)?;
                names.insert(Arc::clone(to), inode).filter(|replaced| *replaced != inode)
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
    pub(crate) inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
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
            inodes: BTreeMap::new(),
            next_inode: 0,
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

    pub(crate) fn inode(&mut self, inode: u64) -> &mut Inode {
        self.inodes.get_mut(&inode).expect("a inode stays while a name or an open file has it")
    }

    pub(crate) fn find(&self, name: &str) -> io::Result<u64> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("there is no file {name}"));
        self.names.get(name).copied().ok_or_else(missing)
    }

    /// An empty file of this name.
    pub(crate) fn create(&mut self, name: &str) -> u64 {
        if let Some(inode) = self.names.get(name).copied() {
            self.happen(inode, Change::Empty);
            return inode;
        }
        let name: Arc<str> = name.into();
        let inode = self.add(Inode::new(Arc::clone(&name), Image::default()));
        self.happen_to_names(Naming::Create { name, inode });
        inode
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let inode = self.find(from)?;
        let to: Arc<str> = to.into();
        self.inode(inode).name = Arc::clone(&to);
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
        self.forget_inodes();
    }

    /// Writes if there is room. If not, what was written first is there, as on a real disk.
    pub(crate) fn write(&mut self, inode: u64, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let outcome = self.make_room(inode, offset, bytes.len() as u64);
        let mut fitting = bytes;
        if let Err(error) = &outcome {
            if error.kind() != io::ErrorKind::StorageFull {
                return outcome;
            }
            fitting = self.some_first(bytes);
            while !fitting.is_empty() && self.make_room(inode, offset, fitting.len() as u64).is_err() {
                fitting = &fitting[..fitting.len() / 2];
            }
        }
        if !fitting.is_empty() {
            self.happen(inode, Change::Write { offset, bytes: fitting.to_vec() });
        }
        outcome
    }

    pub(crate) fn allocate(&mut self, inode: u64, length: u64) -> io::Result<()> {
        self.make_room(inode, 0, length)?;
        self.happen(inode, Change::Allocate { length });
        Ok(())
    }

    pub(crate) fn punch(&mut self, inode: u64, offset: u64, length: u64) {
        // Behind the end there is nothing to punch, now or when a crash has left a longer file.
        let end = offset.saturating_add(length).min(self.inode(inode).visible.length());
        if offset < end {
            self.happen(inode, Change::Punch { offset, length: end - offset });
        }
    }

    pub(crate) fn sync(&mut self, inode: u64) {
        let inode = self.inode(inode);
        for (_, change) in std::mem::take(&mut inode.unsynced) {
            change.apply(&mut inode.durable);
        }
    }

    /// After a failed write-back the system takes its pages for clean: what was lost is seen until
    /// the machine goes down, but no later sync writes it.
    pub(crate) fn fail_sync(&mut self, inode: u64) {
        let mut chance = self.chance.clone();
        self.inode(inode).unsynced.retain(|_| chance.happens(1, 2));
        self.chance = chance;
    }

    /// A piece of the beginning, of any length.
    pub(crate) fn some_first<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[..self.chance.below(bytes.len() as u64 + 1) as usize]
    }

    pub(crate) fn used(&self) -> u64 {
        self.inodes.values().filter(|inode| inode.named || inode.open > 0).map(|inode| inode.visible.room()).sum()
    }

    /// An open file is closed.
    pub(crate) fn close(&mut self, inode: u64) {
        let inode = self.inode(inode);
        inode.open -= 1;
        if inode.open == 0 && !inode.named {
            self.forget_inodes();
        }
    }

    /// Puts a file there with these bytes, as if it had always been.
    pub(crate) fn place(&mut self, name: &str, bytes: &[u8]) {
        let image = Image::of(bytes);
        let inode = match self.names.get(name) {
            Some(inode) => *inode,
            None => {
                let name: Arc<str> = name.into();
                let inode = self.add(Inode::new(Arc::clone(&name), Image::default()));
                // With all that is pending before it, or a pending removal would still take it.
                self.happen_to_names(Naming::Create { name, inode });
                self.sync_names();
                inode
            }
        };
        let inode = self.inode(inode);
        inode.visible = image.clone();
        inode.durable = image;
        inode.unsynced.clear();
    }

    /// All that the system knows, without the process: nothing is open or locked.
    pub(crate) fn without_process(&self) -> Medium {
        let mut copy = Medium::new(0);
        copy.limit = self.limit;
        copy.next_inode = self.next_inode;
        copy.moment = self.moment;
        copy.inodes = self.inodes.clone();
        copy.inodes.values_mut().for_each(|inode| inode.open = 0);
        copy.names = self.names.clone();
        copy.durable_names = self.durable_names.clone();
        copy.unsynced_names = self.unsynced_names.clone();
        copy.chance = self.chance.clone();
        copy.forget_inodes();
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
        let survivors = || names.values().filter_map(|inode| self.inodes.get(inode));
        let mut moments: Vec<u64> =
            survivors().flat_map(|inode| inode.unsynced.iter().map(|(moment, _)| *moment)).collect();
        moments.sort_unstable();
        let survival = Survival::draw(&moments, &mut chance);
        for (name, inode) in &names {
            let inode = &self.inodes[inode];
            let mut image = inode.durable.clone();
            for (moment, change) in &inode.unsynced {
                survival.apply(change, *moment, &mut image, &mut chance);
            }
            let number = after.add(Inode::new(Arc::clone(name), image));
            after.names.insert(Arc::clone(name), number);
        }
        after.durable_names = after.names.clone();
        after.chance = chance;
        after
    }

    fn add(&mut self, inode: Inode) -> u64 {
        let number = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(number, inode);
        number
    }

    fn happen(&mut self, inode: u64, change: Change) {
        self.moment += 1;
        let moment = self.moment;
        let inode = self.inode(inode);
        change.apply(&mut inode.visible);
        inode.unsynced.push((moment, change));
    }

    fn happen_to_names(&mut self, naming: Naming) {
        if let Some(nameless) = naming.apply(&mut self.names) {
            self.inode(nameless).named = false;
        }
        self.unsynced_names.push(naming);
    }

    fn make_room(&mut self, inode: u64, offset: u64, length: u64) -> io::Result<()> {
        if offset.checked_add(length).is_none_or(|end| end > LONGEST) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let lacking = self.inode(inode).visible.lacking(offset, length);
        if self.limit < u64::MAX && lacking > 0 && self.used() + lacking > self.limit {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    /// Forgets files that no name leads to, now or after a crash, and that nobody has open.
    fn forget_inodes(&mut self) {
        let created = self.unsynced_names.iter().filter_map(|naming| match naming {
            Naming::Create { inode, .. } => Some(*inode),
            Naming::Rename { .. } | Naming::Remove { .. } => None,
        });
        let reachable: BTreeSet<u64> =
            self.names.values().chain(self.durable_names.values()).copied().chain(created).collect();
        self.inodes.retain(|number, inode| inode.open > 0 || reachable.contains(number));
    }
}

impl Inode {
    fn new(name: Arc<str>, image: Image) -> Inode {
        Inode { name, visible: image.clone(), durable: image, unsynced: Vec::new(), open: 0, named: true }
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
