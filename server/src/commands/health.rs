//! `health`: whether a server takes commands, by the exit code.

use clap::Args;
use serde::Serialize;

use super::failure::{Exit, Failure, help};
use super::{Connection, Session};

/// Check whether the server accepts commands.
///
/// Exit code 0 if it does, even if it refuses new tasks (it says why); 1 if it answers but is not ready; 5 if it does not
/// answer.
#[derive(Args, Debug)]
#[command(after_help = help!("Example:\n  punctual health && echo up"))]
pub struct HealthArgs {}

#[derive(Serialize)]
struct Health<'a> {
    url: &'a str,
    ready: bool,
    /// `ready`, or `degraded` with the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a str>,
}

/// Asks once: whoever wants to know about now does not want to wait.
pub async fn run(connection: &Connection) -> Result<(), Failure> {
    let url = connection.url.as_str();
    let Session { client, mut output } = connection.open(0)?;
    let state = match client.ready().await {
        Ok(state) => Ok(state),
        Err(error) => match error.problem() {
            Some(problem) => Err(problem.to_string()),
            None => return Err(error.into()),
        },
    };
    if output.json {
        output.json(&Health { url, ready: state.is_ok(), state: state.as_deref().ok() })?;
        output.flush()?;
    }
    match state {
        Ok(_) if output.json => Ok(()),
        Ok(state) => {
            output.line(format_args!("{url} is {state}"))?;
            output.flush()
        }
        Err(why) => Err(Failure::new(Exit::Failed, format!("{url} is not ready: {why}"))),
    }
}
