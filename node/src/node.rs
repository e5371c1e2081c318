//! Starting and stopping a node.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use punctual_core::store::{Incarnation, ShardId, Store, Tenure};
use punctual_core::{Answer, Clock, Shard};

use crate::caller::Caller;
use crate::claims::{Arrival, give_up};
use crate::committer::Pipeline;
use crate::config::NodeConfig;
use crate::error::{Error, StartError};
use crate::handle::Handle;
use crate::inbox::Inbox;
use crate::shared::Shared;
use crate::sync::Instant;
use crate::sync::thread::{Builder, JoinHandle};
use crate::{archive, beats, board, committer, runner};

/// A running node: a delay center in this process.
///
/// It stops when it is dropped; [`stop`](Node::stop) says so plainly. Handles may outlive it and
/// hear [`Error::Stopping`] then.
#[derive(Debug)]
pub struct Node {
    handle: Handle,
    threads: Threads,
}

/// The node's threads, in the order in which they end.
#[derive(Debug, Default)]
struct Threads {
    runners: Vec<JoinHandle<()>>,
    committers: Vec<JoinHandle<()>>,
    others: Vec<JoinHandle<()>>,
}

impl Node {
    /// Claims and opens all shards, and begins to work. Blocks while the store is read.
    pub fn start(config: NodeConfig, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Result<Node, StartError> {
        config.check().map_err(StartError::Config)?;
        let number = getrandom::u64().map_err(|error| StartError::Chance(error.to_string()))?;
        let who = Incarnation { node: config.name.clone(), number };
        let claimed = Arrival { store: &*store, who: &who, config: &config }.claim_all()?;
        match open_all(&config, &*store, &*clock, &claimed) {
            Ok(shards) => {
                let inbox = |(tenure, at): &(Tenure, Instant)| Inbox::new(&config, *tenure, *at);
                let inboxes = claimed.iter().map(inbox).collect();
                let shared = Arc::new(Shared::new(config, who, store, clock, inboxes));
                shared.outgoing.belong_to(&shared);
                Node::run(shared, shards)
            }
            Err(error) => {
                give_up(&*store, &who, &claimed);
                Err(error)
            }
        }
    }

    fn run(shared: Arc<Shared>, shards: Vec<Shard<Caller>>) -> Result<Node, StartError> {
        for shard in &shards {
            shared.learn_queues(shard.id())?;
            shared.expect_shard(shard.id());
        }
        // From here on, what has been started is stopped if something goes wrong.
        let mut node = Node { handle: Handle::new(Arc::clone(&shared)), threads: Threads::default() };
        for lane in 0..shared.lanes.len() {
            let committer = move |shared: &Arc<Shared>| {
                guard(shared, "the committer", || committer::run(shared, &shared.lanes[lane]));
                shared.lanes[lane].discard();
            };
            node.threads.committers.push(spawn(&shared, &format!("commit-{lane}"), committer)?);
        }
        for reader in 0..shared.config.readers {
            let read = |shared: &Arc<Shared>| shared.readers.run(&*shared.store);
            node.threads.others.push(spawn(&shared, &format!("read-{reader}"), read)?);
        }
        let board = |shared: &Arc<Shared>| _ = guard(shared, "the board", || board::look_after(shared));
        node.threads.others.push(spawn(&shared, "board", board)?);
        let beat = |shared: &Arc<Shared>| _ = guard(shared, "the node's beat", || beats::run(shared));
        node.threads.others.push(spawn(&shared, "beat", beat)?);
        let administer = |shared: &Arc<Shared>| {
            guard(shared, "the administrator", || shared.administrator.run());
            // Nobody waits for one who is not there any more.
            shared.administrator.close();
            shared.deletions.abandon();
        };
        node.threads.others.push(spawn(&shared, "admin", administer)?);
        if let Some(archive) = shared.config.archive.clone() {
            let work =
                move |shared: &Arc<Shared>| _ = guard(shared, "the archiving", || archive::run(shared, &*archive));
            node.threads.others.push(spawn(&shared, "archive", work)?);
        }
        for shard in shards {
            let id = shard.id();
            let run = move |shared: &Arc<Shared>| {
                let what = format!("{id:?}");
                if !guard(shared, &what, || runner::run(shared, shard)) {
                    shared.refuse_all(id, shared.poisoned().unwrap_or_default());
                }
            };
            node.threads.runners.push(spawn(&shared, &format!("shard-{}", id.0), run)?);
        }
        Ok(node)
    }

    /// A handle to give commands with; cheap to clone.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Stops in order: new work is refused, waiting consumers are answered empty, everything that
    /// was taken in is finished, committed and answered, the shards are given back. Blocks until then.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let shared = self.handle.shared();
        shared.close_board(&Error::Stopping, || Ok(Answer::Reserved(Vec::new())));
        shared.inboxes.iter().for_each(Inbox::stop);
        join(&mut self.threads.runners);
        shared.lanes.iter().for_each(Pipeline::close);
        join(&mut self.threads.committers);
        shared.watchers.close();
        shared.readers.close();
        shared.closing.close();
        shared.administrator.close();
        join(&mut self.threads.others);
        shared.leave();
    }
}

fn spawn(
    shared: &Arc<Shared>,
    what: &str,
    work: impl FnOnce(&Arc<Shared>) + Send + 'static,
) -> Result<JoinHandle<()>, StartError> {
    let shared = Arc::clone(shared);
    let thread = Builder::new().name(format!("punctual-{what}")).spawn(move || work(&shared));
    thread.map_err(|error| StartError::Thread(error.to_string()))
}

fn join(threads: &mut Vec<JoinHandle<()>>) {
    for thread in threads.drain(..) {
        // A thread that panicked has said so, and has stopped the node from answering.
        _ = thread.join();
    }
}

/// Runs a part of the node; if it panics, the node stops answering. Says whether all went well.
fn guard(shared: &Arc<Shared>, what: &str, work: impl FnOnce()) -> bool {
    let result = catch_unwind(AssertUnwindSafe(work));
    if result.is_err() {
        shared.poison(&format!("{what} panicked because of a bug; see the log for its message"));
    }
    result.is_ok()
}

/// Opens the shards that were claimed. The first shard is opened first:
/// if the store has another number of shards, it says so before anything is written.
fn open_all(
    config: &NodeConfig,
    store: &dyn Store,
    clock: &dyn Clock,
    claimed: &[(Tenure, Instant)],
) -> Result<Vec<Shard<Caller>>, StartError> {
    let terms = store.terms();
    let open = |(shard, (tenure, _)): (ShardId, &(Tenure, Instant))| {
        let config = runner::shard_config(config, &terms, shard);
        Ok(Shard::open(shard, *tenure, config, clock.now(), store)?)
    };
    (0..config.shards).map(ShardId).zip(claimed).map(open).collect()
}
