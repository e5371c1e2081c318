//! `health`: whether a server takes commands, by the exit code.

use clap::Args;
use serde::Serialize;

use super::failure::{Exit, Failure, help};
use super::{Connection, Session};

/// Ask whether the server takes commands.
///
/// Exit code 0 if so, 1 if it answers but is not ready, 5 if it does not answer.
#[derive(Args, Debug)]
#[command(after_help = help!("Example:\n  punctual health && echo up"))]
pub struct HealthArgs {}

#[derive(Serialize)]
struct Health<'a> {
    url: &'a str,
    ready: bool,
}

/// Asks once: whoever wants to know about now does not want to wait.
pub async fn run(connection: &Connection) -> Result<(), Failure> {
    let url = connection.url.as_str();
    let Session { client, mut output } = connection.open(0)?;
    let not_ready = match client.ready().await {
        Ok(()) => None,
        Err(error) => match error.problem() {
            Some(problem) => Some(problem.to_string()),
            None => return Err(error.into()),
        },
    };
    if output.json {
        output.json(&Health { url, ready: not_ready.is_none() })?;
        output.flush()?;
    }
    match not_ready {
        None if output.json => Ok(()),
        None => {
            output.line(format_args!("{url} is ready"))?;
            output.flush()
        }
        Some(why) => Err(Failure::new(Exit::Failed, format!("{url} is not ready: {why}"))),
    }
}
