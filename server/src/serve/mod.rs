//! `punctual serve`: starting in order, running, stopping in order.
//!
//! ```text
//! start:  settings ─ log ─ tokens, certificate ─ sockets ─ store ─ node ─ doors ─ "listening on …"
//! stop:   doors let nobody in ─ node finishes and commits all it took ─ connections end ─ store closes
//! ```
//! Sockets come before the store, so that a port that is taken is told before anything is opened; who connects
//! early waits in the socket's line. **Invariant**: the store closes last, when nobody can use it any more.

mod banner;
mod beanstalk;
mod data;
mod in_force;
mod open_files;
mod signals;
mod sockets;
mod supervisor;

use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use punctual_almanac::Almanac;
use punctual_beanstalk::Door;
use punctual_core::{Clock, ClockStep, ShardConfig, StepFate};
use punctual_http::{App, Hosts};
use punctual_node::{DoubtingClock, Node, NodeConfig};
use punctual_wire::Time;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::archive::Archivist;
use crate::config::{Config, Effective, LogFormat};
use crate::failure::Failure;
use crate::logs;
use crate::metrics::Metrics;
use crate::tls::Certificate;
use crate::trace::Export;
use data::DataDirectory;
use in_force::InForce;
use signals::Signals;
use sockets::Socket;
use supervisor::{BeanstalkDoor, Stop, Supervisor};

/// How long work that was left behind in the runtime may take to end.
const LEFTOVERS: Duration = Duration::from_secs(1);

/// Runs the server until it is told to stop. `force_open`: also on a store that has lost confirmed tasks.
pub fn run(effective: &Effective, force_open: bool) -> ExitCode {
    let config = &effective.config;
    let begun = Export::from(config).and_then(|traced| {
        let (export, spans) = traced.unzip();
        logs::start(config.log.format, &config.log.level, spans).map(|()| export)
    });
    let served = begun.map_err(Failure::Usage).and_then(|export| serve(effective, force_open, export));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if config.log.format == LogFormat::Json => failure.log(),
        Err(failure) => failure.report(),
    }
}

fn serve(effective: &Effective, force_open: bool, export: Option<Export>) -> Result<(), Failure> {
    let config = &effective.config;
    let runtime = runtime(config)?;
    open_files::allow(config);
    // A signal that comes while things are being opened counts as soon as they are.
    let signals = runtime.block_on(async { Signals::new() })?;

    let tokens = InForce::read(config)?;
    let access = Arc::clone(tokens.access());
    let certificate = Certificate::from(config)?;
    let sockets = sockets::bind(config, !access.is_open(), &runtime)?;
    let beanstalk = sockets::bind_beanstalk(config, !access.is_open(), &runtime)?;

    if let Some(export) = export {
        runtime.spawn(export.run());
    }
    let data = DataDirectory::open(&config.data)?;
    let clock = Arc::new(clock(config));
    let almanac = Arc::new(data.open_almanac(config, Arc::clone(&clock) as _, force_open)?);
    let node = start_node(config, &almanac, Arc::clone(&clock) as _)?;

    let beanstalk = match beanstalk {
        Some(socket) => Some((socket, Arc::new(beanstalk::door(config, node.handle())?))),
        None => None,
    };
    let door = beanstalk.as_ref().map(|(_, door)| Arc::clone(door));
    let counters = door.as_ref().map(|door| Arc::clone(door.counters()));
    let metrics = Metrics::new(node.handle(), clock, Arc::clone(&almanac), counters, config.metrics.topics);
    let app = App {
        handle: node.handle(),
        access,
        secret: data.secret()?,
        limits: limits(config),
        hosts: Hosts::new(config.http.hosts.iter().flatten().map(|host| host.0.clone())),
        version: env!("CARGO_PKG_VERSION"),
        metrics: metrics.into_source(),
        store_size: data::measure(&almanac),
    };
    let stop_beanstalk = watch::Sender::new(false);
    let beanstalk_door =
        door.map(|door| BeanstalkDoor { door, is_open_to_all: config.beanstalk.open, stop: stop_beanstalk.clone() });
    let mut supervisor =
        Supervisor { handle: node.handle(), tokens, certificate: certificate.clone(), beanstalk: beanstalk_door };
    // Opening a store may take long, and a token that is made meanwhile counts from the first request on.
    supervisor.look_at_tokens();
    let addresses: Vec<String> = sockets.iter().map(|socket| socket.endpoint.to_string()).collect();
    tracing::info!(version = app.version, addresses = addresses.join(","), store = %almanac, "started");
    banner::show(effective, &sockets, beanstalk.as_ref().map(|(socket, _)| socket), &almanac, &app.access);
    let doors = Doors { sockets, certificate, app, beanstalk, stop_beanstalk };
    runtime.block_on(live(doors, node, supervisor, signals))?;
    runtime.shutdown_timeout(LEFTOVERS);
    match Arc::into_inner(almanac) {
        Some(almanac) => drop(almanac),
        None => tracing::warn!("somebody still holds the store; it is left as after a crash, which loses nothing"),
    }
    tracing::info!("stopped: everything that was confirmed is on disk");
    Ok(())
}

/// All ways in.
struct Doors {
    sockets: Vec<Socket>,
    certificate: Option<Arc<Certificate>>,
    app: App,
    beanstalk: Option<(Socket, Arc<Door>)>,
    /// Closes the beanstalk door, which may be before all others.
    stop_beanstalk: watch::Sender<bool>,
}

/// Serves until there is a reason to stop, and stops in order.
async fn live(doors: Doors, node: Node, supervisor: Supervisor, mut signals: Signals) -> Result<(), Failure> {
    let Doors { sockets, certificate, app, beanstalk, stop_beanstalk } = doors;
    let tls = certificate.map(|certificate| certificate.server_config()).transpose()?;
    let (stop, stopped) = watch::channel(false);
    let mut doors = Vec::new();
    for socket in sockets {
        doors.push(punctual_http::serve(socket.listener, tls.clone(), app.clone(), stopped.clone()));
    }
    drop(app);
    let beanstalk =
        beanstalk.map(|(socket, door)| punctual_beanstalk::serve(socket.listener, door, stop_beanstalk.subscribe()));
    let reason = supervisor.until_stopped(&mut signals).await;
    match &reason {
        Stop::Signal(signal) => {
            tracing::info!(signal, "stopping: nobody is let in any more, waiting consumers are answered");
        }
        Stop::Broken(why) => tracing::error!(why, "stopping: what is not on disk yet cannot be vouched for"),
    }
    // Nobody may have to wait for what stopping waits for.
    tokio::spawn(async move {
        let signal = signals.next_stop().await;
        tracing::warn!(signal, "told to stop again: leaving at once; what was confirmed is on disk");
        std::process::exit(1);
    });
    // The doors' tasks hold receivers as long as they live.
    _ = stop.send(true);
    stop_beanstalk.send_replace(true);
    // What its connections hold goes back while the node still takes it.
    if let Some(door) = beanstalk
        && let Err(error) = door.await
    {
        tracing::error!(%error, "the beanstalk door did not close in order");
    }
    let stopping = tokio::task::spawn_blocking(move || node.stop());
    stopping.await.map_err(|error| Failure::Failed(format!("the node did not stop in order: {error}")))?;
    tracing::info!("all that was taken in is committed and answered; connections end");
    for door in doors {
        if let Err(error) = door.await {
            tracing::error!(%error, "a door did not close in order");
        }
    }
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
    runtime.map_err(|error| Failure::Failed(format!("the threads for connections could not be started: {error}")))
}

/// The machine's clock, which says in the log when it was set.
fn clock(config: &Config) -> DoubtingClock {
    let doubt = config.clock.doubt;
    DoubtingClock::new(doubt.as_duration(), move |step: ClockStep| match step.fate {
        StepFate::Followed => tracing::warn!(%step, "the clock was set back; what is not handed out waits for it"),
        StepFate::Doubted => tracing::warn!(
            %step, %doubt,
            "the clock was set forward, which the time since boot does not confirm: nothing fires by it until it has \
             stood there for as long as `clock.doubt` says"
        ),
        StepFate::Believed => {
            tracing::warn!(%step, "the clock still stands where it was set forward to: it is followed now")
        }
        StepFate::Unquestioned => {
            tracing::warn!(%step, "the clock was set forward: it is followed at once, as `clock.doubt` is zero")
        }
        StepFate::Withdrawn => {
            tracing::warn!(%step, "the clock was set forward for a while and is back: nothing has fired by it");
        }
    })
}

fn start_node(config: &Config, almanac: &Arc<Almanac>, clock: Arc<dyn Clock>) -> Result<Node, Failure> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed)
        .map_err(|error| Failure::Failed(format!("the system gives no random numbers: {error}")))?;
    let mut shard = ShardConfig { create_on_use: config.tasks.create_on_use, ..ShardConfig::default() };
    shard.seed = u64::from_le_bytes(seed);
    shard.limits.body_bytes = config.tasks.max_body.as_usize();
    let mut node = NodeConfig::new(config.node.name.clone()).shards(config.node.shards);
    node.inbox = config.node.inbox;
    node.answers_bytes = config.node.answers.as_usize() as u64;
    // One of the threads may wait for the disk then.
    node.callers_step = threads(config) > 1;
    if let Some(directory) = &config.archive.directory {
        node.archive = Some(Arc::new(Archivist::open(directory, Time::now()).map_err(Failure::Failed)?));
        node.archive_every = config.archive.every.as_duration();
    }
    node.shard = shard;
    Node::start(node, Arc::clone(almanac) as _, clock).map_err(Failure::failed)
}

fn limits(config: &Config) -> punctual_http::Limits {
    let http = &config.http;
    punctual_http::Limits {
        request_bytes: http.request_size.as_usize(),
        headers: http.headers,
        header_bytes: http.header_size.as_usize(),
        header_time: http.header_time.as_duration(),
        body_time: http.body_time.as_duration(),
        wait: http.wait.as_duration(),
        connections: http.connections,
        batch: http.batch,
    }
}
