//! The kinds of calls, and errors that tests can order for them.

use std::io;

/// A kind of call to a disk or to one of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// [`Disk::list`](punctual_disk::Disk::list)
    List,
    /// [`Disk::open`](punctual_disk::Disk::open)
    Open,
    /// [`Disk::create`](punctual_disk::Disk::create)
    Create,
    /// [`Disk::rename`](punctual_disk::Disk::rename)
    Rename,
    /// [`Disk::remove`](punctual_disk::Disk::remove)
    Remove,
    /// [`Disk::sync`](punctual_disk::Disk::sync)
    SyncDirectory,
    /// [`Disk::lock`](punctual_disk::Disk::lock)
    Lock,
    /// [`File::len`](punctual_disk::File::len)
    Length,
    /// [`File::read_at`](punctual_disk::File::read_at)
    Read,
    /// [`File::write_at`](punctual_disk::File::write_at)
    Write,
    /// [`File::allocate`](punctual_disk::File::allocate)
    Allocate,
    /// [`File::punch`](punctual_disk::File::punch)
    Punch,
    /// [`File::sync`](punctual_disk::File::sync)
    Sync,
}

/// An error that a disk is told to give.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// For calls of this kind,
    pub call: Call,
    /// on files whose name contains this. A rename goes by `from -> to`, what concerns the whole
    /// directory by the empty name, and an open file by the name that it has at that moment.
    pub name_contains: &'static str,
    /// So many of these calls still go well.
    pub after: usize,
    /// What the next one gives.
    pub kind: io::ErrorKind,
    /// Whether all later ones give it as well.
    pub lasting: bool,
}

/// The faults that were ordered, and how often each could have struck.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    ordered: Vec<(Fault, usize)>,
    struck: usize,
}

impl Faults {
    pub(crate) fn order(&mut self, fault: Fault) {
        self.ordered.push((fault, 0));
    }

    pub(crate) fn heal(&mut self) {
        self.ordered.clear();
    }

    /// How many calls failed.
    pub(crate) fn struck(&self) -> usize {
        self.struck
    }

    /// The error that this call gives, if it is to fail. Each fault counts the calls for itself,
    /// so the order in which they were asked for only decides which of two at once is seen.
    pub(crate) fn meet(&mut self, call: Call, name: &str) -> Option<io::ErrorKind> {
        let mut struck = None;
        for (fault, seen) in &mut self.ordered {
            if fault.call != call || !name.contains(fault.name_contains) {
                continue;
            }
            let strikes = *seen == fault.after || (fault.lasting && *seen > fault.after);
            *seen += 1;
            if strikes {
                struck = struck.or(Some(fault.kind));
            }
        }
        self.struck += usize::from(struck.is_some());
        struck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_WRITE: Fault =
        Fault { call: Call::Write, name_contains: "journal", after: 1, kind: io::ErrorKind::Other, lasting: false };

    fn outcomes(fault: Fault) -> Vec<bool> {
        let mut faults = Faults::default();
        faults.order(fault);
        assert_eq!(faults.meet(Call::Read, "journal-1"), None);
        assert_eq!(faults.meet(Call::Write, "run-1"), None);
        (0..4).map(|_| faults.meet(Call::Write, "journal-1").is_some()).collect()
    }

    #[test]
    fn a_passing_fault_strikes_once() {
        assert_eq!(outcomes(SECOND_WRITE), [false, true, false, false]);
    }

    #[test]
    fn a_lasting_fault_strikes_from_then_on() {
        assert_eq!(outcomes(Fault { lasting: true, ..SECOND_WRITE }), [false, true, true, true]);
    }
}
