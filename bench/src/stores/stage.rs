//! One contestant on an empty database of its own, ready to be measured.

use std::io;
use std::time::{Duration, Instant};

use punctual_node::Node;
use tokio::runtime::Runtime;

use super::contestants::{Client, Contestant, Keeping, attend, start};
use super::engine::{Engine, Kind};
use super::measured::Measured;
use super::work::{BATCH, CALLERS, IN_FLIGHT, Until, Work};

/// Not counted: the first calls find cold caches and statements without a plan.
const WARMING: Duration = Duration::from_millis(500);

/// What is measured of everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    Lives,
    Batches,
    InFlight,
}

impl Line {
    /// Lives come first, so that they find nothing but themselves.
    pub fn of(contestant: Contestant) -> &'static [Line] {
        match contestant {
            Contestant::Raw => &[Line::Batches, Line::InFlight],
            Contestant::Script(_) => &[Line::Lives, Line::Batches],
            _ => &[Line::Lives, Line::Batches, Line::InFlight],
        }
    }

    pub fn label(self) -> String {
        match self {
            Line::Lives => format!("whole lives, batches of {BATCH}, {CALLERS} callers"),
            Line::Batches => format!("schedules, batches of {BATCH}, {CALLERS} callers"),
            Line::InFlight => format!("schedules one at a time, {IN_FLIGHT} callers"),
        }
    }

    pub fn work(self) -> (Work, usize) {
        match self {
            Line::Lives => (Work::Lives, CALLERS),
            Line::Batches => (Work::Schedules(BATCH), CALLERS),
            Line::InFlight => (Work::Schedules(1), IN_FLIGHT),
        }
    }
}

pub struct Stage {
    contestant: Contestant,
    /// There is one where Punctual is measured.
    node: Option<Node>,
    pub engine: Engine,
    pub runtime: Runtime,
}

impl Stage {
    pub fn set(kind: Kind, contestant: Contestant, keeping: Keeping) -> io::Result<Stage> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let engine = kind.start();
        // Who inserts without the store needs its tables: a node makes them, and goes.
        let node = match contestant {
            Contestant::Punctual | Contestant::Raw => Some(start(&engine, keeping)?),
            _ => None,
        };
        let mut stage = Stage { contestant, node, engine, runtime };
        if contestant == Contestant::Raw {
            stage.stop();
        }
        stage.runtime.block_on(contestant.furnish(&stage.engine))?;
        Ok(stage)
    }

    pub async fn connect(&self, count: usize) -> io::Result<Vec<Client>> {
        let mut clients = Vec::new();
        for _ in 0..count {
            clients.push(self.contestant.connect(&self.engine, self.node.as_ref()).await?);
        }
        Ok(clients)
    }

    pub fn measure(&self, line: Line, until: Until) -> io::Result<Measured> {
        let (work, callers) = line.work();
        self.runtime.block_on(async {
            let mover = tokio::spawn(attend(self.contestant, self.engine.port()));
            let warming = Until { time: WARMING.min(until.time), calls: until.calls.div_ceil(10) };
            work.run(self.connect(callers).await?, warming).await?;
            let clients = self.connect(callers).await?;
            let before = self.engine.used();
            let started = Instant::now();
            let done = work.run(clients, until).await?;
            let took = started.elapsed();
            let measured = Measured::of(&done, took, before, self.engine.used());
            mover.abort();
            Ok(measured)
        })
    }

    /// Stops the node, and tells how long it takes until another one has confirmed a task.
    pub fn restart(&mut self) -> io::Result<Duration> {
        self.stop();
        let started = Instant::now();
        self.node = Some(start(&self.engine, Keeping::History)?);
        let once = Until { time: Duration::MAX, calls: 1 };
        self.runtime.block_on(async { Work::Schedules(1).run(self.connect(1).await?, once).await })?;
        Ok(started.elapsed())
    }

    fn stop(&mut self) {
        if let Some(node) = self.node.take() {
            node.stop();
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop();
    }
}
