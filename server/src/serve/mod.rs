//! `punctual serve`: starting in order, running, stopping in order.
//!
//! ```text
//! start:  settings ─ log ─ tokens, certificate ─ sockets ─ store ─ node ─ doors ─ "listening on …"
//! stop:   doors let nobody in ─ node finishes and commits all it took ─ connections end ─ store closes
//! ```
//! Sockets come before the store, so that a port that is taken is told before anything is opened; who connects
//! early waits in the socket's line. A database that is not there yet is waited for (`opening.rs`). **Invariant**: the store closes last, when nobody can use it any more.

mod banner;
mod in_force;
mod opening;
mod signals;
mod supervisor;

use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use punctual_core::store::Store;
use punctual_core::view::noted_shards;
use punctual_core::{Clock, ClockStep, ShardConfig, StepFate};
use punctual_node::{DoubtingClock, Node, NodeConfig};
use punctual_wire::Time;
use tokio::runtime::{Builder, Runtime};

use crate::archive::Archivist;
use crate::config::{Config, Effective, LogFormat};
use crate::doors::{self, Ends, Inside, OpenDoors};
use crate::failure::Failure;
use crate::logs;
use crate::metrics::Metrics;
use crate::moving::{self, LiveMove};
use crate::stores::{self, OpenStore, Opened, Opening, Storage, Unopened};
use crate::tls::Certificate;
use crate::trace::Traces;
use in_force::InForce;
use signals::Signals;
use supervisor::{Stop, Supervisor};

/// How long work that was left behind in the runtime may take to end.
const LEFTOVERS: Duration = Duration::from_secs(1);

/// Runs the server until it is told to stop. `force_open`: also on a store that has lost confirmed tasks.
pub fn run(effective: &Effective, force_open: bool) -> ExitCode {
    let config = &effective.config;
    let begun = Traces::from(config).and_then(|traced| {
        let (traces, spans) = traced.unzip();
        logs::start(config.log.format, &config.log.level, spans).map(|()| traces)
    });
    let served = begun.map_err(Failure::Usage).and_then(|traces| {
        let served = serve(effective, force_open, traces.as_ref());
        traces.inspect(Traces::stop);
        served
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if config.log.format == LogFormat::Json => failure.log(),
        Err(failure) => failure.report(),
    }
}

fn serve(effective: &Effective, force_open: bool, traces: Option<&Traces>) -> Result<(), Failure> {
    let config = &effective.config;
    let runtime = runtime(config)?;
    let doorways = doors::all(config);
    doors::allow_open_files(&doorways);
    // A signal that comes while things are being opened counts as soon as they are.
    let mut signals = runtime.block_on(async { Signals::new() })?;

    let tokens = InForce::read(config)?;
    let access = Arc::clone(tokens.access());
    let certificate = Certificate::from(config)?;
    let bound = doors::bind(doorways, config, !access.is_open(), &runtime)?;

    let storage = stores::chosen(config)?;
    warn_of_passwords(effective);
    let clock = Arc::new(clock(config));
    let opening = Opening { config, clock: Arc::clone(&clock) as _, is_forced: force_open };
    let Some(opened) = opening::open(storage, &opening, &runtime, &mut signals)? else { return Ok(()) };
    let live = match &config.store.moving_to {
        Some(to) => {
            Some(LiveMove::prepare(config, to, &opened, Arc::clone(&clock) as _).map_err(Unopened::into_failure)?)
        }
        None => None,
    };
    let Opened { store: home, secret, data } = opened;
    // Of a store that is being moved under the server, a part may be elsewhere: both together are whole.
    let is_whole = live.as_ref().is_none_or(|live| !live.is_under_way());
    if is_whole {
        moving::check(&*home)?;
    }
    let store = live.as_ref().map_or(Arc::clone(&home), |live| Arc::clone(&live.store) as Arc<dyn OpenStore>);
    let (node, shards) = start_node(config, storage, Arc::clone(&store) as _, Arc::clone(&clock) as _, traces)?;
    if is_whole {
        moving::take_up(&*home)?;
    }
    drop(home);

    let inside = Inside {
        config,
        handle: node.handle(),
        access: Arc::clone(&access),
        secret,
        certificate: certificate.clone(),
        metrics: Metrics::new(node.handle(), clock, Arc::clone(&store), config.metrics.topics),
        store: Arc::clone(&store),
    };
    let doors = OpenDoors::open(bound, inside)?;
    let moving = live.map(|live| live.start(node.handle(), shards));
    let mut supervisor = Supervisor { handle: node.handle(), tokens, certificate, doors };
    // Opening a store may take long, and a token that is made meanwhile counts from the first request on.
    supervisor.look_at_tokens();
    let (version, addresses) = (env!("CARGO_PKG_VERSION"), supervisor.doors.addresses());
    tracing::info!(version, addresses, store = store.line(), "started");
    for warning in store.warnings() {
        tracing::warn!(warning, "the store promises less than it could");
    }
    banner::show(effective, &supervisor.doors, data.as_deref(), &store.line(), &access);
    let whereabouts = store.whereabouts();
    let lived = runtime.block_on(serve_until_stopped(node, supervisor, signals, whereabouts));
    if let Some(moving) = moving {
        moving.end();
    }
    lived?;
    runtime.shutdown_timeout(LEFTOVERS);
    if Arc::strong_count(&store) > 1 {
        tracing::warn!("the store is still in use and is left as after a crash; nothing is lost");
    }
    drop(store);
    tracing::info!("stopped: everything confirmed is {whereabouts}");
    Ok(())
}

/// Serves until there is a reason to stop, and stops in order.
async fn serve_until_stopped(
    node: Node,
    mut supervisor: Supervisor,
    mut signals: Signals,
    whereabouts: &'static str,
) -> Result<(), Failure> {
    supervisor.doors.serve();
    let reason = supervisor.until_stopped(&mut signals).await;
    let mut doors = supervisor.doors;
    match &reason {
        Stop::Signal(signal) => {
            tracing::info!(signal, "stopping: no new connections; waiting consumers are answered");
        }
        Stop::Broken(why) => tracing::error!(why, "stopping: whatever was not confirmed yet may be lost"),
    }
    // Nobody may have to wait for what stopping waits for.
    tokio::spawn(async move {
        let signal = signals.next_stop().await;
        tracing::warn!(signal, "told to stop again: exiting at once; everything confirmed is {whereabouts}");
        std::process::exit(1);
    });
    doors.close();
    doors.end(Ends::BeforeTheNode).await;
    let stopping = tokio::task::spawn_blocking(move || node.stop());
    stopping.await.map_err(|error| Failure::Failed(format!("the node did not stop cleanly: {error}")))?;
    tracing::info!("every accepted request is committed and answered; closing connections");
    doors.end(Ends::AfterTheNode).await;
    match reason {
        Stop::Signal(_) => Ok(()),
        Stop::Broken(why) => Err(Failure::Failed(why)),
    }
}

/// How many threads serve connections.
fn threads(config: &Config) -> usize {
    match config.runtime.threads {
        0 => thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    }
}

fn runtime(config: &Config) -> Result<Runtime, Failure> {
    let threads = threads(config);
    let runtime =
        Builder::new_multi_thread().worker_threads(threads).thread_name("punctual-serve").enable_all().build();
    runtime.map_err(|error| Failure::Failed(format!("cannot start the threads for connections: {error}")))
}

/// The machine's clock, which says in the log when it was set.
fn clock(config: &Config) -> DoubtingClock {
    let doubt = config.clock.doubt;
    DoubtingClock::new(doubt.as_duration(), move |step: ClockStep| match step.fate {
        StepFate::Followed => {
            tracing::warn!(%step, "the clock was set back; tasks not delivered yet wait until it catches up")
        }
        StepFate::Doubted => tracing::warn!(
            %step, %doubt,
            "the clock jumped forward, which the time since boot does not confirm: no task fires by it until it has \
             stayed there for the duration of `clock.doubt`"
        ),
        StepFate::Believed => {
            tracing::warn!(%step, "the clock has stayed where it jumped to: it is followed now")
        }
        StepFate::Unquestioned => {
            tracing::warn!(%step, "the clock jumped forward: it is followed at once, because `clock.doubt` is zero")
        }
        StepFate::Withdrawn => {
            tracing::warn!(%step, "the clock jumped forward and came back: no task fired by it");
        }
    })
}

/// Everybody on a machine sees its command lines.
fn warn_of_passwords(effective: &Effective) {
    if effective.is_by_flag("store.url") && effective.config.store.url.has_password() {
        tracing::warn!(
            "the password of the store is on the command line, where everyone on this machine can see it: use the variable \
             PUNCTUAL_STORE, or `store.password_file`"
        );
    }
}

fn start_node(
    config: &Config,
    storage: &dyn Storage,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    traces: Option<&Traces>,
) -> Result<(Node, u16), Failure> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed)
        .map_err(|error| Failure::Failed(format!("cannot get random numbers from the system: {error}")))?;
    let mut shard = ShardConfig { create_on_use: config.tasks.create_on_use, ..ShardConfig::default() };
    shard.seed = u64::from_le_bytes(seed);
    shard.limits.body_bytes = config.tasks.max_body.as_usize();
    let shards = match config.node.shards {
        Some(shards) => shards.get(),
        None => noted_shards(&*store).map_err(Failure::failed)?.unwrap_or(storage.first_shards()),
    };
    let mut node = NodeConfig::new(config.node.name.clone()).shards(shards);
    node.inbox = config.node.inbox.get();
    node.answers_bytes = config.node.answers.as_usize() as u64;
    // One of the threads may wait for the disk then, but not for a network.
    node.callers_step = threads(config) > 1 && !storage.is_remote();
    if let Some(directory) = &config.archive.directory {
        node.archive = Some(Arc::new(Archivist::open(directory, Time::now()).map_err(Failure::Failed)?));
        node.archive_every = config.archive.every.as_duration();
    }
    node.tracer = traces.map(Traces::tracer);
    node.shard = shard;
    Ok((Node::start(node, store, clock).map_err(Failure::failed)?, shards))
}
