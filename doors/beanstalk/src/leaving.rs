//! Clients that have left, and whose connections have not ended yet.
//!
//! Connections are served side by side, so one of them may read a command before another one notices that its client is
//! gone, although it went before. beanstalkd does one thing after the other, and there what a client held is ready to the
//! next command of anybody. So whoever has read commands asks the system first who has left by now, and lets those end.

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use tokio::sync::SetOnce;

/// How long somebody who leaves is waited for, once: it may have much to say before.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long if it does not read its answers.
const MOMENT: Duration = Duration::from_millis(50);

/// How many of those who have left are seen at once.
const TOGETHER: usize = 64;

/// Without waiting.
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Everybody who is here.
pub(crate) struct Leaving {
    /// Tells which connections have no client any more. It knows them by their numbers.
    hung_up: OwnedFd,
    next: AtomicU64,
    here: Mutex<BTreeMap<u64, Arc<Guest>>>,
}

/// What others need to know of a connection.
#[derive(Default)]
struct Guest {
    has_ended: SetOnce<()>,
    /// Its client has not read what was written to it, and there is more.
    is_behind: AtomicBool,
    /// It says nothing any more and only gives back what it held.
    is_ending: AtomicBool,
    /// It was waited for in vain.
    lingers: AtomicBool,
}

/// Counts a connection among those who are here until it is dropped, when all that it held is back.
pub(crate) struct Stay {
    leaving: Arc<Leaving>,
    number: u64,
    guest: Arc<Guest>,
}

impl Leaving {
    pub fn new() -> io::Result<Leaving> {
        let hung_up = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Leaving { hung_up, next: AtomicU64::new(0), here: Mutex::default() })
    }

    /// A connection has come.
    pub fn enter(self: &Arc<Leaving>, stream: &impl AsFd) -> Stay {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let guest = Arc::new(Guest::default());
        self.here().insert(number, Arc::clone(&guest));
        // That a client is gone is told without being asked for, too, but not that it only writes no more.
        let flags = epoll::EventFlags::RDHUP;
        if let Err(error) = epoll::add(&self.hung_up, stream, epoll::EventData::new_u64(number), flags) {
            tracing::debug!(%error, "it will take a little longer to notice when this client leaves");
        }
        Stay { leaving: Arc::clone(self), number, guest }
    }

    /// The numbers of those whose clients have left and who are here.
    fn left(&self) -> Vec<u64> {
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; TOGETHER];
        // An interrupted look has seen nobody; it is no promise to anybody.
        let seen = epoll::wait(&self.hung_up, &mut events, Some(&AT_ONCE)).map(|(seen, _)| seen);
        seen.into_iter().flatten().map(|event| event.data.u64()).collect()
    }

    fn here(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Guest>>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stay {
    /// Lets those end whose clients have left by now; `own` is this connection's stream.
    ///
    /// Who has left itself waits for nobody. So everybody waits for somebody who left earlier than it will, and
    /// never two for each other.
    pub async fn see_off(&self, own: &impl AsFd) {
        let left = self.leaving.left();
        if left.is_empty() || has_hung_up(own) {
            return;
        }
        let guests: Vec<Arc<Guest>> = {
            let here = self.leaving.here();
            left.iter().filter_map(|number| here.get(number).cloned()).collect()
        };
        for guest in guests.iter().filter(|guest| !guest.lingers.load(Ordering::Relaxed)) {
            guest.be_waited_for().await;
        }
    }

    /// Notes whether answers wait for their reader, which takes as long as the client likes.
    pub fn is_behind(&self, is_behind: bool) {
        self.guest.is_behind.store(is_behind, Ordering::Relaxed);
    }

    /// Notes that nothing is left but to give back what was held.
    pub fn is_ending(&self) {
        self.guest.is_ending.store(true, Ordering::Relaxed);
    }
}

/// Whether the client of this stream has left.
fn has_hung_up(stream: &impl AsFd) -> bool {
    let mut asked = [PollFd::new(stream, PollFlags::RDHUP)];
    poll(&mut asked, Some(&AT_ONCE)).is_ok() && !asked[0].revents().is_empty()
}

impl Guest {
    /// Waits until it has ended, or it is clear that this may take for ever.
    async fn be_waited_for(&self) {
        let until = Instant::now() + PATIENCE;
        while tokio::time::timeout(MOMENT, self.has_ended.wait()).await.is_err() {
            // Giving back takes as long as a commit: whoever waits for this one would wait for its own no less.
            let takes_long = Instant::now() >= until && !self.is_ending.load(Ordering::Relaxed);
            if self.is_behind.load(Ordering::Relaxed) || takes_long {
                return self.lingers.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.leaving.here().remove(&self.number);
        // Nobody else says so.
        _ = self.guest.has_ended.set(());
    }
}
