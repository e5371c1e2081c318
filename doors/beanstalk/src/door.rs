//! What all connections of the door share.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use punctual_core::{Headers, Millis, Name, Order, QueueSettings};
use punctual_node::{Handle, SPANS};
use tracing::Span;

use crate::counters::Counters;
use crate::leaving::Leaving;
use crate::tubes::{Tube, Tubes};

/// How much of the node's name is told to those who look who holds a task.
const NODE_NAME: usize = 64;

/// The longest time to run that the protocol can say. It needs no other bound: a reservation ends with its connection.
const LONGEST_TTR: Millis = Millis::from_secs(u32::MAX as u64);

/// What connections may do, and what one of them may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many connections there may be at once, for each address. Further ones wait.
    pub connections: usize,
    /// How many commands of a connection are carried out together.
    pub batch: usize,
    /// How long a body may be.
    pub max_job_size: u32,
    /// How long a client may leave an answer unread.
    pub unread_time: Duration,
    /// Whether tubes come to be by being used, as the node lets topics and queues come to be.
    pub creates_tubes: bool,
}

/// What `stats` says of the machine and the process.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The version of the server.
    pub version: &'static str,
    /// The machine's name.
    pub hostname: String,
    /// Its operating system.
    pub os: String,
    /// Its kind of processor.
    pub platform: String,
    /// Tells how long the processor has worked for the process, in it and in the system.
    pub times: fn() -> (Duration, Duration),
}

/// The door: what its connections share.
pub struct Door {
    pub(crate) handle: Handle,
    pub(crate) limits: Limits,
    pub(crate) machine: Machine,
    /// What the names begin with under which connections of this node hold jobs.
    house: String,
    /// Tells this run of the server from those before it.
    pub(crate) session: u64,
    pub(crate) started: Instant,
    pub(crate) counters: Arc<Counters>,
    pub(crate) tubes: Tubes,
    pub(crate) leaving: Arc<Leaving>,
    is_draining: AtomicBool,
    visits: AtomicU64,
}

impl Door {
    /// A door to a node of this name; `session` is random.
    pub fn new(handle: Handle, limits: Limits, machine: Machine, node: &Name, session: u64) -> io::Result<Door> {
        let node: String = node.chars().take(NODE_NAME).collect();
        Ok(Door {
            handle,
            limits,
            machine,
            house: format!("beanstalk/{node}/"),
            session,
            started: Instant::now(),
            counters: Arc::new(Counters::new()),
            tubes: Tubes::default(),
            leaving: Arc::new(Leaving::new()?),
            is_draining: AtomicBool::new(false),
            visits: AtomicU64::new(0),
        })
    }

    /// Takes no more jobs from now on; everything else goes on.
    pub fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    /// Whether no more jobs are taken.
    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// What the door has counted.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Makes the queue of a tube if there is none: jobs of equal priority come in the order of their ids, as there. A
    /// queue that exists keeps its settings.
    pub(crate) async fn know(&self, tube: &Tube) {
        let Ok(queue) = self.handle.queue(&tube.name).await else { return };
        if queue.is_none() {
            let settings = QueueSettings { order: Order::Arrival, max_lease: LONGEST_TTR, ..QueueSettings::default() };
            if !self.limits.creates_tubes || self.handle.make_queue(&tube.name, settings).await.is_err() {
                return;
            }
        }
        self.tubes.become_known(tube);
    }

    /// A span of commands that are carried out together, if somebody makes them, and the headers that carry it on. It
    /// bears the name of the first.
    pub(crate) fn span(&self, name: &'static str, commands: usize) -> (Span, Headers) {
        let Some(tracer) = self.handle.tracer() else { return (Span::none(), Headers::new()) };
        let span = tracing::info_span!(
            target: SPANS,
            "beanstalk",
            "otel.name" = name,
            "otel.kind" = "server",
            "beanstalk.commands" = commands,
        );
        let carried = tracer.adopt(&span, &Headers::new());
        (span, carried)
    }

    /// The name under which the next connection holds what it reserves.
    pub(crate) fn next_consumer(&self) -> Name {
        let number = self.visits.fetch_add(1, Ordering::Relaxed);
        Name::new(format!("{}{:016x}/{number}", self.house, self.session)).expect("all of it is visible")
    }

    /// Whether this is the name of a connection of this node before it was started.
    pub(crate) fn is_of_earlier_run(&self, holder: &Name) -> bool {
        let session = format!("{:016x}/", self.session);
        holder.strip_prefix(self.house.as_str()).is_some_and(|rest| !rest.starts_with(&session))
    }
}

/// A time of the protocol as one of the node's.
pub(crate) fn millis(time: Duration) -> Millis {
    Millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
