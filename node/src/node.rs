//! Starting and stopping a node.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use punctual_center::{Asking, Planner};
use punctual_core::store::{Incarnation, Roll, ShardId, Store, Tenure};
use punctual_core::{Answer, Clock, Shard};

use crate::caller::Caller;
use crate::claims::{Arrival, Claimed, Tenures, give_up};
use crate::committer::Pipeline;
use crate::config::NodeConfig;
use crate::error::{Error, StartError};
use crate::handle::Handle;
use crate::inbox::Inbox;
use crate::level::{self, Level};
use crate::shared::Shared;
use crate::sync::Instant;
use crate::sync::thread::{Builder, JoinHandle};
use crate::{archive, beats, board, committer, passing, runner, shards};

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
    /// Claims and opens the node's part of the shards, all if it is alone, and begins to work. Blocks while the store is
    /// read.
    pub fn start(mut config: NodeConfig, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Result<Node, StartError> {
        config.check().map_err(StartError::Config)?;
        let number = getrandom::u64().map_err(|error| StartError::Chance(error.to_string()))?;
        let who = Incarnation { node: config.name.clone(), number };
        let level = Level::new(&config, level::check(&*store, &config)?);
        config.card.levels = Some(config.levels.clone());
        config.shard.eras = match config.links {
            Some(_) => shards::choose(&*store, config.shards)?,
            None => shards::check(&*store, config.shards)?,
        };
        let arrival = Arrival { store: &*store, who: &who, config: &config, clock: &*clock };
        let mut planner = Planner::new(who.clone(), config.shards);
        let Claimed { shards: claimed, roll } =
            if config.links.is_some() { arrival.claim_part(&mut planner)? } else { arrival.claim_all()? };
        // Once more: it may have risen before this node was on the roll.
        let is_readable = level::check(&*store, &config);
        match is_readable.and_then(|_| open_all(&config, &*store, &*clock, &claimed)) {
            Ok(shards) => {
                let inbox = |shard| Inbox::new(&config, claimed.get(&shard).copied());
                let inboxes = (0..config.shards).map(ShardId).map(inbox).collect();
                let shared = Arc::new(Shared::new(config, who, store, clock, inboxes, planner, level));
                shared.outgoing.belong_to(&shared);
                Node::run(shared, shards, roll)
            }
            Err(error) => {
                give_up(&*store, &who, &claimed);
                Err(error)
            }
        }
    }

    fn run(shared: Arc<Shared>, shards: Vec<Shard<Caller>>, roll: Roll) -> Result<Node, StartError> {
        for shard in &shards {
            shared.expect_shard(shard.id());
            shared.correct_place(shard.id(), shard.tenure().fence, Some(&shared.who));
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
        if shared.peers.has_links() {
            shared.open_links();
            let pass = |shared: &Arc<Shared>| _ = guard(shared, "passing on", || passing::look_after(shared));
            node.threads.others.push(spawn(&shared, "pass", pass)?);
        }
        shared.learn_roll(Asking::default(), Arc::new(roll));
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
        let mut shards: BTreeMap<ShardId, Shard<Caller>> =
            shards.into_iter().map(|shard| (shard.id(), shard)).collect();
        for id in (0..shared.config.shards).map(ShardId) {
            let shard = shards.remove(&id);
            let run = move |shared: &Arc<Shared>| {
                let what = format!("{id:?}");
                if !guard(shared, &what, || runner::run(shared, id, shard)) {
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

    /// Stops in order: the shards are handed over to other nodes, if there are any; new work is refused, waiting consumers are answered empty, everything that
    /// was taken in is finished, committed and answered, the shards are given back. Blocks until then.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let shared = self.handle.shared();
        if shared.peers.has_links() && shared.poisoned().is_none() {
            shared.hand_all_over();
            shared.take_leave();
        }
        shared.close_board(&Error::Stopping, || Ok(Answer::Reserved(Vec::new())));
        shared.inboxes.iter().for_each(Inbox::stop);
        join(&mut self.threads.runners);
        shared.lanes.iter().for_each(Pipeline::close);
        join(&mut self.threads.committers);
        shared.watchers.close();
        shared.readers.close();
        shared.closing.close();
        shared.administrator.close();
        shared.peers.close();
        join(&mut self.threads.others);
        if shared.poisoned().is_none() {
            shared.write_acts();
        }
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
    claimed: &Tenures,
) -> Result<Vec<Shard<Caller>>, StartError> {
    let terms = store.terms();
    let open = |(shard, (tenure, _)): (&ShardId, &(Tenure, Instant))| {
        let config = runner::shard_config(config, &terms, *shard);
        Ok(Shard::open(*shard, *tenure, config, clock.now(), store)?)
    };
    claimed.iter().map(open).collect()
}
