//! `health`: whether a server takes commands, by the exit code.

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Connection;
use super::failure::{Exit, Failure, help};

/// How long a server may take to say that it is ready.
const PATIENCE: Duration = Duration::from_secs(5);

/// More than the answer ever is.
const ANSWER: u64 = 16 << 10;

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

/// Asks.
pub async fn run(connection: &Connection) -> Result<(), Failure> {
    let asked = tokio::time::timeout(PATIENCE, ask(connection)).await;
    let ready = asked.unwrap_or_else(|_| Err(unreachable(connection, "no answer within 5 s")))?;
    let url = connection.url.as_str();
    let mut output = connection.output();
    if output.json {
        output.json(&Health { url, ready: ready.is_ok() })?;
        output.flush()?;
    }
    match ready {
        Ok(()) if output.json => Ok(()),
        Ok(()) => {
            output.line(format_args!("{url} is ready"))?;
            output.flush()
        }
        Err(why) => Err(Failure::new(Exit::Failed, format!("{url} is not ready: {why}"))),
    }
}

/// The server's word, which needs no token. Over TLS it is asked for something that does not exist: whoever can
/// say so, or refuse to, is there.
async fn ask(connection: &Connection) -> Result<Result<(), String>, Failure> {
    if let Some(authority) = plain_authority(&connection.url) {
        let answer = get(&authority).await.map_err(|error| unreachable(connection, error))?;
        return parse(&answer).ok_or_else(|| {
            let message = format!("{} answers, but not as Punctual does: is this the right address?", connection.url);
            Failure::new(Exit::Failed, message)
        });
    }
    match connection.session()?.client.get("punctual", "health").await {
        Ok(_) => Ok(Ok(())),
        Err(error) => match error.problem() {
            Some(problem) if problem.status < 500 => Ok(Ok(())),
            Some(problem) => Ok(Err(problem.to_string())),
            None => Err(error.into()),
        },
    }
}

fn unreachable(connection: &Connection, why: impl std::fmt::Display) -> Failure {
    let message = format!("{} cannot be reached: {why}; is the server running there?", connection.url);
    Failure::new(Exit::Unreachable, message)
}

/// Host and port of an address without TLS.
fn plain_authority(url: &str) -> Option<String> {
    let authority = url.strip_prefix("http://")?.split('/').next()?;
    let port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Some(if port { authority.into() } else { format!("{authority}:80") })
}

async fn get(authority: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(authority).await?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(ANSWER).read_to_end(&mut answer).await?;
    Ok(answer)
}

/// Whether it is ready, or why not; `None` if this is no answer of a Punctual server.
fn parse(answer: &[u8]) -> Option<Result<(), String>> {
    let text = std::str::from_utf8(answer).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?;
    match status {
        "200" if body.contains("ready") => Some(Ok(())),
        "503" => {
            let from = body.find('{').unwrap_or(0);
            let until = body.rfind('}').map_or(body.len(), |end| end + 1);
            let problem = serde_json::from_str::<punctual_wire::Problem>(body.get(from..until)?);
            Some(Err(problem.map_or(body.trim().to_owned(), |problem| problem.to_string())))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_port_has_the_usual_one() {
        assert_eq!(plain_authority("http://127.0.0.1:7400/").as_deref(), Some("127.0.0.1:7400"));
        assert_eq!(plain_authority("http://[::1]:7400").as_deref(), Some("[::1]:7400"));
        assert_eq!(plain_authority("http://example.org").as_deref(), Some("example.org:80"));
        assert_eq!(plain_authority("https://example.org"), None);
    }

    #[test]
    fn the_answer_is_ready_or_says_why_not() {
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\n\r\nready\n"), Some(Ok(())));
        let stopping = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\r\n\
            {\"type\":\"urn:punctual:problem:stopping\",\"title\":\"Stopping\",\"status\":503,\"code\":\"stopping\",\
            \"detail\":\"the server is stopping\"}";
        assert_eq!(parse(stopping.as_bytes()), Some(Err("the server is stopping (stopping)".into())));
        assert_eq!(parse(b"HTTP/1.1 404 Not Found\r\n\r\n"), None);
        assert_eq!(parse(b"SSH-2.0"), None);
    }
}
