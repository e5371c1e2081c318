//! The command line: all commands in one tree, and who carries each of them out.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::backup::{BackupArgs, RestoreArgs};
use crate::commands::{self, Connection, EXIT_CODES, Remote};
use crate::config::{self, Overrides, Sources};
use crate::failure::Failure;
use crate::serve;
use crate::shards::ShardsArgs;
use crate::store::StoreCommand;
use crate::token::TokenCommand;

/// Punctual, a durable delay queue: give it a task and a time; when the time comes, it delivers the task to your consumer.
#[derive(Debug, Parser)]
#[command(name = "punctual", version, arg_required_else_help = true, max_term_width = 110, after_help = EXIT_CODES)]
struct Line {
    #[command(flatten)]
    reach: Reach,
    #[command(subcommand)]
    command: Command,
}

/// How to reach a server.
#[derive(Args, Debug)]
#[command(next_help_heading = "Connection")]
struct Reach {
    /// The server's address; unix:PATH for a Unix socket. With commas between them, those of several nodes: the first that
    /// can be reached is asked.
    #[arg(long, global = true, env = "PUNCTUAL_URL", default_value = "http://127.0.0.1:7400", hide_env_values = true)]
    url: String,
    /// The access token.
    #[arg(long, global = true, env = "PUNCTUAL_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// A PEM file with a certificate to trust, in addition to those this machine trusts.
    #[arg(long, global = true, env = "PUNCTUAL_CA", value_name = "FILE", hide_env_values = true)]
    ca: Option<PathBuf>,
    /// Your name, under which the audit shows what you do, beside that of the token.
    #[arg(long, global = true, env = "PUNCTUAL_PERSON", value_name = "NAME", hide_env_values = true)]
    person: Option<String>,
    /// Print JSON, one object per line.
    #[arg(long, global = true, help_heading = "Output")]
    json: bool,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one of it, read once")]
enum Command {
    /// Run the server.
    Serve(ServeArgs),
    /// Show the settings in effect, and where each one comes from.
    Config(ConfigArgs),
    Backup(BackupArgs),
    Restore(RestoreArgs),
    /// Create, list and revoke tokens.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Check a store, show its contents, move it into another one, or bring its tables up to date.
    #[command(subcommand)]
    Store(StoreCommand),
    /// Print a shell completion script.
    Completions {
        /// The shell.
        shell: Shell,
    },
    Shards(ShardsArgs),
    #[command(flatten)]
    Remote(Remote),
}

/// What the server is told.
#[derive(Args, Debug)]
struct Told {
    /// A TOML file of settings; by default ./punctual.toml, if it exists.
    #[arg(long, env = "PUNCTUAL_CONFIG", value_name = "FILE", hide_env_values = true)]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Overrides,
}

#[derive(Args, Debug)]
struct ServeArgs {
    /// Open the store even if confirmed tasks are lost: part of its journal, or all of it. The log says what was
    /// lost; run `punctual store check` first.
    #[arg(long)]
    force_open: bool,
    #[command(flatten)]
    told: Told,
}

#[derive(Args, Debug)]
struct ConfigArgs {
    /// Only check whether the settings are valid: the exit code says so, and the errors say what is wrong.
    #[arg(long)]
    check: bool,
    /// Print the documentation of all settings.
    #[arg(long, hide = true)]
    markdown: bool,
    #[command(flatten)]
    told: Told,
}

/// Reads the command line and does what it says.
pub fn run() -> ExitCode {
    let Line { reach, command } = Line::parse();
    match command {
        Command::Serve(ServeArgs { told, force_open }) => match load(told) {
            Ok(effective) => serve::run(&effective, force_open),
            Err(failure) => failure.report(),
        },
        Command::Backup(args) => report(args.run(reach.json)),
        Command::Restore(args) => report(args.run(reach.json)),
        Command::Config(args) => report(show_config(args, reach.json)),
        Command::Token(command) => report(command.run(reach.json)),
        Command::Store(command) => command.run(&reach.connection()),
        Command::Shards(args) => args.run(&reach.connection()),
        Command::Completions { shell } => report(print_completions(shell)),
        Command::Remote(remote) => on_runtime(commands::run(remote, &reach.connection())),
    }
}

/// Carries out what talks to a server.
pub fn on_runtime(command: impl Future<Output = ExitCode>) -> ExitCode {
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(command),
        Err(error) => Failure::Failed(format!("cannot start threads: {error}")).report(),
    }
}

impl Reach {
    fn connection(self) -> Connection {
        let Reach { url, token, ca, person, json } = self;
        Connection { url, token, ca, person, json }
    }
}

fn report(outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn load(told: Told) -> Result<config::Effective, Failure> {
    config::load(&Sources::new(told.config, told.settings)).map_err(|problems| Failure::Usage(problems.to_string()))
}

fn show_config(args: ConfigArgs, json: bool) -> Result<(), Failure> {
    if args.markdown {
        return print(&config::markdown());
    }
    let effective = load(args.told)?;
    if args.check {
        return print(if json { "{\"usable\":true}\n" } else { "the configuration is valid\n" });
    }
    if json { print(&format!("{}\n", effective.to_json())) } else { print(&effective.to_toml()) }
}

/// The script is gathered first: what writes it would panic if nobody read to the end.
fn print_completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Line::command(), "punctual", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Prints, and does not mind if nobody reads to the end.
pub fn print(text: &str) -> Result<(), Failure> {
    use std::io::{ErrorKind, Write, stdout};
    match stdout().write_all(text.as_bytes()).and_then(|()| stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Failed(format!("cannot print: {error}"))),
        _ => Ok(()),
    }
}
