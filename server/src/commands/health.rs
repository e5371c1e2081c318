//! `health`: whether a server takes commands, by the exit code.

use clap::Args;
use serde::Serialize;

use super::failure::{Exit, Failure, help};
use super::output::note;
use super::{Connection, Session};

/// Check whether the server accepts commands.
///
/// Exit code 0 if it does, even if it refuses new tasks (it says why); 1 if it answers but is not ready; 5 if it does not
/// answer. Of several nodes each is asked, and one that is ready is enough.
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

/// Asks each address once: whoever wants to know about now does not want to wait.
pub async fn run(connection: &Connection) -> Result<(), Failure> {
    let mut answers = Vec::new();
    for url in connection.url.split(',') {
        answers.push(ask(&Connection { url: url.trim().into(), ..connection.clone() }).await);
    }
    let is_ready = answers.iter().any(Result::is_ok);
    let mut failures = answers.into_iter().filter_map(Result::err);
    // The first of them says how the command ends, unless one that is ready does.
    let ended = if is_ready { None } else { failures.next() };
    for failure in failures {
        if let Failure::Told { message, .. } = failure {
            note(message);
        }
    }
    ended.map_or(Ok(()), Err)
}

async fn ask(connection: &Connection) -> Result<(), Failure> {
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
