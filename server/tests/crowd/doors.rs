//! The servers that clients work with, as far as clients know them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::stage::Server;

/// The flags of a server that clients can work with through both doors.
pub const OPEN_BEANSTALK: [&str; 2] = ["--beanstalk-listen", "127.0.0.1:0"];

/// The servers that clients work with, one or several on one store.
pub trait Servers: Sync {
    /// How many there are.
    fn count(&self) -> usize;
    /// The ways into one of them, if it runs.
    fn doors(&self, number: usize) -> Option<Doors>;
}

/// The ways into a server.
pub struct Doors {
    pub http: String,
    pub beanstalk: String,
    pub life: Life,
}

impl Doors {
    /// Those of a server that runs and has both.
    pub fn of(server: &Server, life: &Life) -> Doors {
        Doors { http: server.address().to_owned(), beanstalk: server.beanstalk_address(), life: life.clone() }
    }
}

/// One life of a server. What is reserved by the beanstalk door is reserved no longer than that.
#[derive(Clone, Debug, Default)]
pub struct Life(Arc<AtomicBool>);

impl Life {
    /// It ends now, or somewhat later.
    pub fn end(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether it may have ended.
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
