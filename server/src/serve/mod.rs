//! `punctual serve`: starting in order, running, stopping in order.
//!
//! ```text
//! start:  settings ─ log ─ tokens, certificate ─ sockets ─ store ─ tokens in it ─ links ─ node ─ doors ─ "listening on …"
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
use punctual_core::{Clock, ClockStep, Millis, ShardConfig, StepFate};
use punctual_link::TcpLinks;
use punctual_node::{Card, DoubtingClock, Node, NodeConfig, StartError, StoreClock, known_shards};
use punctual_wire::Time;
use tokio::runtime::{Builder, Runtime};

use crate::archive::Archivist;
use crate::config::{Config, Effective, LogFormat};
use crate::doors::{self, Ends, Inside, OpenDoors};
use crate::failure::Failure;
use crate::links;
use crate::logs;
use crate::metrics::Metrics;
use crate::moving::{self, Driven, LiveMover, Movable, Place};
use crate::stores::{self, OpenStore, Opened, Opening, Storage, Unopened};
use crate::tls::Certificate;
use crate::tokens;
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

    let of_file = if config.has_tokens_in_store() { None } else { Some(InForce::of_file(config)?) };
    let certificate = Certificate::from(config)?;
    let bound = doors::bind(doorways, config, &runtime)?;
    if let Some(tokens) = &of_file {
        doors::keep_strangers_out(&bound, config, !tokens.access().is_open())?;
    }
    let for_others = links::bind(config)?;

    let storage = stores::chosen(config)?;
    warn_of_passwords(effective);
    let clock = clock(config, storage);
    let opening = Opening { config, clock: Arc::clone(&clock), is_forced: force_open };
    let Some(opened) = opening::open(storage, &opening, &runtime, &mut signals)? else { return Ok(()) };
    let Opened { store: home, face, secret, data } = opened;
    tokens::bring_out(&home, config).map_err(Failure::failed)?;
    let store = Arc::new(Movable::new(home, face, &Place::of(config.clone()).name));
    let Some(resumed) = opening::resume(&store, &opening, &runtime, &mut signals)? else { return Ok(()) };
    // Of a store that is being moved under the server, a part may be elsewhere: both together are whole.
    if resumed.is_none() {
        moving::check(&*store.home)?;
    }
    let tokens = match of_file {
        Some(tokens) => tokens,
        None => InForce::of_store(config, Arc::clone(&store.transit) as _)?,
    };
    let access = Arc::clone(tokens.access());
    doors::keep_strangers_out(&bound, config, !access.is_open())?;
    let address = for_others.as_ref().map(|bound| bound.address.clone());
    let open = |bound| links::open(bound, config, &*store.transit, runtime.handle().clone());
    let links = for_others.map(open).transpose()?;
    let joining = Joining { links: links.clone(), address };
    let start = || start_node(config, storage, Arc::clone(&store.transit) as _, Arc::clone(&clock), traces, &joining);
    let Some((node, shards)) = opening::until_reached(config.store.wait, &runtime, &mut signals, start)? else {
        return Ok(());
    };
    if resumed.is_none() {
        moving::take_up(&*store.home)?;
    }
    let mover = Arc::new(LiveMover {
        config: config.clone(),
        store: Arc::clone(&store),
        clock: Arc::clone(&clock),
        handle: node.handle(),
        shards,
        secret,
        state: Driven::default(),
    });

    let inside = Inside {
        config,
        handle: node.handle(),
        access: Arc::clone(&access),
        secret,
        certificate: certificate.clone(),
        metrics: Metrics::new(
            node.handle(),
            clock,
            Arc::clone(&store) as _,
            links.clone().map(links::meter),
            config.metrics.topics,
        ),
        store: Arc::clone(&store) as _,
        mover: Arc::clone(&mover),
    };
    let doors = OpenDoors::open(bound, inside)?;
    if let Some(to) = resumed {
        mover.go_on(&to);
    }
    let mut supervisor = Supervisor::new(node.handle(), tokens, certificate, doors);
    // Opening a store may take long, and a token that is made meanwhile counts from the first request on.
    supervisor.look_at_tokens();
    let (version, addresses) = (env!("CARGO_PKG_VERSION"), supervisor.doors.addresses());
    tracing::info!(version, addresses, store = store.line(), "started");
    for warning in store.warnings() {
        tracing::warn!(warning, "the store promises less than it could");
    }
    banner::show(effective, &supervisor.doors, data.as_deref(), &store.line(), &access);
    let lived = runtime.block_on(serve_until_stopped(node, supervisor, signals, Arc::clone(&store) as _));
    if let Some(links) = links {
        runtime.block_on(links.closed());
    }
    mover.end();
    drop(mover);
    lived?;
    runtime.shutdown_timeout(LEFTOVERS);
    if Arc::strong_count(&store) > 1 || Arc::strong_count(&store.transit) > 1 {
        tracing::warn!("the store is still in use and is left as after a crash; nothing is lost");
    }
    let whereabouts = store.whereabouts();
    drop(store);
    tracing::info!("stopped: everything confirmed is {whereabouts}");
    Ok(())
}

/// Serves until there is a reason to stop, and stops in order.
async fn serve_until_stopped(
    node: Node,
    mut supervisor: Supervisor,
    mut signals: Signals,
    store: Arc<dyn OpenStore>,
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
        let whereabouts = store.whereabouts();
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

/// The clock of the node, which says in the log when it was set: the store's if several nodes may share it, else the
/// machine's.
fn clock(config: &Config, storage: &dyn Storage) -> Arc<dyn Clock> {
    let doubt = config.clock.doubt;
    let tell = move |step: ClockStep| match step.fate {
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
    };
    match storage.is_remote() {
        true => Arc::new(StoreClock::new(doubt.as_duration(), tell)),
        false => Arc::new(DoubtingClock::new(doubt.as_duration(), tell)),
    }
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

/// How the node joins others on the same store.
struct Joining {
    links: Option<Arc<TcpLinks>>,
    /// Where those reach it.
    address: Option<String>,
}

fn start_node(
    config: &Config,
    storage: &dyn Storage,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    traces: Option<&Traces>,
    joining: &Joining,
) -> Result<(Node, u16), Unopened> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed)
        .map_err(|error| Failure::Failed(format!("cannot get random numbers from the system: {error}")))?;
    let mut shard = ShardConfig { create_on_use: config.tasks.create_on_use, ..ShardConfig::default() };
    shard.seed = u64::from_le_bytes(seed);
    if storage.is_remote() {
        // The database's clock is known to as much as a beat takes, and no beat that takes longer counts.
        shard.clock_width = Millis(1_000);
    }
    shard.limits.body_bytes = config.tasks.max_body.as_usize();
    let shards = match config.node.shards {
        Some(shards) => shards.get(),
        None => known_shards(&*store)?.unwrap_or(storage.first_shards()),
    };
    let mut node = NodeConfig::new(config.node.name.clone()).shards(shards);
    node.card = Card {
        url: config.node.advertise.clone(),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        since: Some(clock.now()),
        ..Card::default()
    };
    node.inbox = config.node.inbox.get();
    node.answers_bytes = config.node.answers.as_usize() as u64;
    // One of the threads may wait for the disk then, but not for a network.
    node.callers_step = threads(config) > 1 && !storage.is_remote();
    if let Some(directory) = &config.archive.directory {
        node.archive = Some(Arc::new(Archivist::open(directory, Time::now()).map_err(Failure::Failed)?));
        node.archive_every = config.archive.every.as_duration();
    }
    // Each takes memory whether somebody looks or not: who wants fewer names told apart wants fewer of these, too.
    node.series = node.series.min(config.metrics.topics);
    node.tracer = traces.map(Traces::tracer);
    node.links = joining.links.clone().map(|links| links as _);
    node.card.link.clone_from(&joining.address);
    node.shard = shard;
    match Node::start(node, store, clock) {
        Ok(node) => Ok((node, shards)),
        Err(StartError::Store(error)) => Err(error.into()),
        Err(error) => Err(Failure::failed(error).into()),
    }
}
