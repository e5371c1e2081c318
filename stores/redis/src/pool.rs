//! The connections to each server: as many as are needed at once, up to a limit. One is only ever used by one call at a
//! time: WAIT is about what its own connection has written, and a long answer delays nobody else's.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

use punctual_database::Address;

use crate::trouble::Trouble;
use crate::wire::{Manner, Wire};

pub(crate) struct Pool {
    manner: Manner,
    limit: usize,
    shelves: Mutex<BTreeMap<Address, Shelf>>,
    returned: Condvar,
    /// How often somebody has connected.
    connected: AtomicU64,
}

#[derive(Default)]
struct Shelf {
    idle: Vec<Wire>,
    busy: usize,
}

/// A connection that somebody has borrowed. It is closed unless it is given back.
pub(crate) struct BorrowedWire<'a> {
    pool: &'a Pool,
    server: Address,
    wire: Option<Wire>,
}

impl Pool {
    pub(crate) fn new(manner: Manner, limit: usize) -> Pool {
        Pool {
            manner,
            limit: limit.max(1),
            shelves: Mutex::default(),
            returned: Condvar::new(),
            connected: AtomicU64::new(0),
        }
    }

    pub(crate) fn manner(&self) -> &Manner {
        &self.manner
    }

    /// A connection to a server. It may have been closed since it was last used.
    pub(crate) fn borrow(&self, server: &Address, by: Instant) -> Result<BorrowedWire<'_>, Trouble> {
        let mut shelves = self.shelves();
        loop {
            let shelf = shelves.entry(server.clone()).or_default();
            if let Some(wire) = shelf.idle.pop() {
                shelf.busy += 1;
                return Ok(BorrowedWire { pool: self, server: server.clone(), wire: Some(wire) });
            }
            if shelf.busy < self.limit {
                shelf.busy += 1;
                break;
            }
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Trouble::Away(format!("all {} connections are in use", self.limit)));
            }
            shelves = self.returned.wait_timeout(shelves, left).expect("nothing panics under it").0;
        }
        drop(shelves);
        // From here on the place is taken, and given back if the connection does not come about.
        let mut borrowed = BorrowedWire { pool: self, server: server.clone(), wire: None };
        self.connected.fetch_add(1, Ordering::Relaxed);
        borrowed.wire = Some(Wire::connect(server, &self.manner, by)?);
        Ok(borrowed)
    }

    /// Closes the connections to a server that nobody uses.
    pub(crate) fn clear(&self, server: &Address) {
        let closed = self.shelves().get_mut(server).map(|shelf| std::mem::take(&mut shelf.idle));
        drop(closed);
    }

    /// How many connections are open, and how many of them in use.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let shelves = self.shelves();
        let busy = shelves.values().map(|shelf| shelf.busy).sum();
        let idle: usize = shelves.values().map(|shelf| shelf.idle.len()).sum();
        (idle + busy, busy)
    }

    fn shelves(&self) -> MutexGuard<'_, BTreeMap<Address, Shelf>> {
        self.shelves.lock().expect("nothing panics under it")
    }
}

impl BorrowedWire<'_> {
    pub(crate) fn wire(&mut self) -> &mut Wire {
        self.wire.as_mut().expect("it has a connection until it is given back")
    }

    /// All that was asked on it was answered: others may use it.
    pub(crate) fn give_back(mut self) {
        let wire = self.wire.take();
        if let Some(shelf) = self.pool.shelves().get_mut(&self.server) {
            shelf.idle.extend(wire);
        }
    }
}

impl Drop for BorrowedWire<'_> {
    fn drop(&mut self) {
        if let Some(shelf) = self.pool.shelves().get_mut(&self.server) {
            shelf.busy -= 1;
        }
        self.pool.returned.notify_one();
    }
}
