//! The commands that talk to a server: each parses its arguments, calls the client, and prints.
//!
//! What was asked for goes to stdout, as tables for people or as JSON for programs; all else goes to
//! stderr. No command knows a rule of the server: it passes on what the server says.

mod archive;
mod audit;
mod bench;
mod body;
mod change;
mod confirm;
mod consumers;
mod dead_groups;
mod events;
mod export;
mod failure;
mod find;
mod forecast;
mod hasten;
mod health;
mod import;
mod letters;
mod line;
mod look;
mod me;
mod moment;
mod moving;
mod nodes;
mod output;
mod patch;
mod plain;
mod pulse;
mod queues;
mod revoke;
mod schedule;
mod series;
mod settings;
mod settings_line;
#[cfg(test)]
mod settings_tests;
mod show;
mod sweep;
mod sweeps;
#[cfg(test)]
mod tests;
mod timeline;
mod top;
mod topics;
mod uncancel;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use punctual_client::Client;

use self::failure::Failure;
use self::output::Output;

pub use self::failure::EXIT_CODES;
pub use self::moving::MoveRequest;
pub use self::nodes::ShardsCommand;
pub use self::output::{counted, note};

/// How often a request is repeated before a person is told that nobody answers: within half a second.
const RETRIES: u32 = 3;

/// How to reach a server, and how to answer.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Where the server is; of several nodes, their addresses with commas between them.
    pub url: String,
    /// Who is asking.
    pub token: Option<String>,
    /// A PEM file with a certificate to trust.
    pub ca: Option<PathBuf>,
    /// The person who is asking.
    pub person: Option<String>,
    /// Whether answers are JSON.
    pub json: bool,
}

/// A client, and where its answers go.
pub struct Session {
    client: Client,
    output: Output,
}

impl Connection {
    fn output(&self) -> Output {
        Output::stdout(self.json)
    }

    /// For a command that a person waits for.
    fn session(&self) -> Result<Session, Failure> {
        self.open(RETRIES)
    }

    /// For a command that goes on for long and should live through a restart of the server.
    fn patient_session(&self) -> Result<Session, Failure> {
        self.open(30)
    }

    fn open(&self, retries: u32) -> Result<Session, Failure> {
        let mut builder = Client::builder(&self.url).retries(retries).timeout(Duration::from_secs(60));
        if let Some(token) = &self.token {
            builder = builder.token(token);
        }
        if let Some(person) = &self.person {
            builder = builder.person(person);
        }
        if let Some(file) = &self.ca {
            let unread = |error| Failure::usage(format!("--ca {} cannot be read: {error}", file.display()));
            builder = builder.ca_certificate_pem(std::fs::read(file).map_err(unread)?);
        }
        Ok(Session { client: builder.build()?, output: self.output() })
    }
}

/// The commands that talk to a server.
#[derive(Debug, Subcommand)]
pub enum Remote {
    Schedule(schedule::ScheduleArgs),
    Cancel(change::CancelArgs),
    Uncancel(uncancel::UncancelArgs),
    Reschedule(change::RescheduleArgs),
    Get(look::GetArgs),
    List(look::ListArgs),
    Timeline(timeline::TimelineArgs),
    Find(find::FindArgs),
    Work(work::WorkArgs),
    Revoke(revoke::RevokeArgs),
    Hasten(hasten::HastenArgs),
    Topics(topics::TopicsArgs),
    Queues(queues::QueuesArgs),
    Consumers(consumers::ConsumersArgs),
    Dead(letters::DeadArgs),
    History(letters::HistoryArgs),
    Sweep(sweep::SweepArgs),
    Sweeps(sweeps::SweepsArgs),
    Forecast(forecast::ForecastArgs),
    Top(top::TopArgs),
    Pulse(pulse::PulseArgs),
    Series(series::SeriesArgs),
    Events(events::EventsArgs),
    Audit(audit::AuditArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
    Bench(bench::BenchArgs),
    Health(health::HealthArgs),
    Nodes(nodes::NodesArgs),
    Me(me::MeArgs),
}

/// Carries out a command, and says by the exit code how it ended.
pub async fn run(remote: Remote, connection: &Connection) -> ExitCode {
    match carry_out(remote, connection).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// The same for the part of `punctual store move` that talks to a server.
pub async fn move_store(request: MoveRequest, connection: &Connection) -> ExitCode {
    let moved = match connection.patient_session() {
        Ok(session) => moving::run(request, session).await,
        Err(failure) => Err(failure),
    };
    moved.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}

/// The same for the part of `punctual shards` that does.
pub async fn shards(command: ShardsCommand, connection: &Connection) -> ExitCode {
    let done = match connection.session() {
        Ok(session) => nodes::shards(command, session).await,
        Err(failure) => Err(failure),
    };
    done.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}

async fn carry_out(remote: Remote, connection: &Connection) -> Result<(), Failure> {
    match remote {
        Remote::Schedule(args) => schedule::run(args, connection.session()?).await,
        Remote::Cancel(args) => change::cancel(args, connection.session()?).await,
        Remote::Uncancel(args) => uncancel::run(args, connection.session()?).await,
        Remote::Reschedule(args) => change::reschedule(args, connection.session()?).await,
        Remote::Get(args) => look::get(args, connection.session()?).await,
        Remote::List(args) => look::list(args, connection.session()?).await,
        Remote::Timeline(args) => timeline::run(args, connection.session()?).await,
        Remote::Find(args) => find::run(args, connection.session()?).await,
        Remote::Work(args) => work::run(args, connection.session()?).await,
        Remote::Revoke(args) => revoke::run(args, connection.session()?).await,
        Remote::Hasten(args) => hasten::run(args, connection.session()?).await,
        Remote::Topics(args) => topics::run(args, connection.session()?).await,
        Remote::Queues(args) => queues::run(args, connection.session()?).await,
        Remote::Consumers(args) => consumers::run(args, connection.session()?).await,
        Remote::Dead(args) => letters::dead(args, connection.session()?).await,
        Remote::History(args) => letters::history(args, connection).await,
        Remote::Sweep(args) => sweep::run(args, connection.session()?).await,
        Remote::Sweeps(args) => sweeps::run(args, connection.session()?).await,
        Remote::Forecast(args) => forecast::run(args, connection.session()?).await,
        Remote::Top(args) => top::run(args, &connection.url, connection.session()?).await,
        Remote::Pulse(args) => pulse::run(args, connection.session()?).await,
        Remote::Series(args) => series::run(args, connection.session()?).await,
        Remote::Events(args) => events::run(args, connection.session()?).await,
        Remote::Audit(args) => audit::run(args, connection.session()?).await,
        Remote::Export(args) => export::run(args, connection.patient_session()?).await,
        Remote::Import(args) => import::run(args, connection.patient_session()?).await,
        Remote::Bench(args) => bench::run(args, connection.session()?).await,
        Remote::Health(_) => health::run(connection).await,
        Remote::Nodes(args) => nodes::run(args, connection.session()?).await,
        Remote::Me(_) => me::run(connection.session()?).await,
    }
}
