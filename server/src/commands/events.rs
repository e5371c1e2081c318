//! `events`: follows what happens, as it happens.

use std::time::Duration;

use clap::Args;
use punctual_client::{EventFilter, Events, Happening};
use punctual_wire::{Event, Time};

use super::Session;
use super::failure::{Failure, help};
use super::moment::hint;
use super::output::{Colour, Output, Painted, counted, note};

/// How long to wait before the server is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// Follow what happens to tasks, one line per event, until Ctrl-C.
///
/// The events are scheduled, replaced, rescheduled, fired, leased, extended, released, failed, done,
/// cancelled, died, forwarded, replayed and purged. A reader that is too slow misses some, and is told how many.
#[derive(Args, Debug)]
#[command(after_help = help!("\
Examples:
  punctual events --topic order-unpaid
  punctual events --what died --what failed
  punctual events --json | jq 'select(.what == \"done\")'"))]
pub struct EventsArgs {
    /// Only events of this topic.
    #[arg(long)]
    topic: Option<String>,
    /// Only events of the task with this id.
    #[arg(long)]
    id: Option<String>,
    /// Only events of this queue.
    #[arg(long)]
    queue: Option<String>,
    /// Only events of tasks with this key.
    #[arg(long)]
    key: Option<String>,
    /// Only this kind of event; can be repeated.
    #[arg(long, value_name = "EVENT")]
    what: Vec<String>,
    /// Stop after N events.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

/// Prints events until the reader has enough. A server that goes away is waited for: whoever follows
/// through a restart wants to see what comes after it.
pub async fn run(args: EventsArgs, mut session: Session) -> Result<(), Failure> {
    let EventsArgs { topic, id, queue, key, what, limit } = args;
    let mut filter = EventFilter { topic, id, queue, key, what, after: None };
    let mut left = limit.unwrap_or(u64::MAX);
    let mut events = session.client.events(filter.clone()).await?;
    loop {
        match follow(&mut events, &mut left, &mut session.output).await? {
            Ended::Enough => return Ok(()),
            Ended::Cut => note("the event stream ended: waiting for the server"),
        }
        filter.after = events.last_id().map(str::to_owned).or(filter.after);
        events = loop {
            tokio::time::sleep(AGAIN).await;
            match session.client.events(filter.clone()).await {
                Ok(events) => break events,
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error.into()),
            }
        };
        match filter.after {
            Some(_) => note("connected again"),
            None => note("connected again: events in between are missing"),
        }
    }
}

/// Why events are not followed any more.
enum Ended {
    /// So many were asked for.
    Enough,
    /// The connection ended.
    Cut,
}

async fn follow(events: &mut Events, left: &mut u64, output: &mut Output) -> Result<Ended, Failure> {
    while *left > 0 {
        match events.next().await {
            Some(Ok(Happening::Event(event))) => {
                *left -= 1;
                match output.json {
                    true => output.json(&event)?,
                    false => output.painted(&in_words(&event, Time::now()))?,
                }
                // Whoever follows wants to see it now.
                output.flush()?;
            }
            Some(Ok(Happening::Missed(number))) => {
                let rounds = counted(number, "round");
                note(format_args!(
                    "missed {rounds} of events at least: they came faster than they were read, or are not kept any more"
                ));
            }
            Some(Err(_)) | None => return Ok(Ended::Cut),
        }
    }
    Ok(Ended::Enough)
}

fn in_words(event: &Event, now: Time) -> Vec<Painted> {
    let colour = match event.what.as_str() {
        "done" => Colour::Green,
        "died" | "failed" | "purged" => Colour::Red,
        "leased" | "fired" | "extended" | "released" => Colour::Yellow,
        _ => Colour::Cyan,
    };
    let mut line = format!("  {} {}", event.topic, event.id);
    if let Some(queue) = event.queue.as_ref().filter(|queue| **queue != event.topic) {
        line.push_str(&format!("  queue {queue}"));
    }
    if let Some(key) = &event.key {
        line.push_str(&format!("  key {key}"));
    }
    if let Some(by) = event.holder.as_ref().or(event.by.as_ref()) {
        line.push_str(&format!("  by {by}"));
    }
    if let Some(attempt) = event.attempt.filter(|attempt| *attempt > 1) {
        line.push_str(&format!("  attempt {attempt}"));
    }
    if let Some(until) = event.until {
        let word = match event.what.as_str() {
            "leased" | "extended" => "until",
            "released" | "failed" => "again",
            _ => "due",
        };
        line.push_str(&format!("  {word} {until} ({})", hint(until, now)));
    }
    let what = (Some(colour), format!("{:<11}", event.what));
    let mut parts = vec![(None, format!("{}  ", event.at)), what, (None, line)];
    if let Some(reason) = &event.reason {
        parts.extend([(None, "  ".into()), (Some(Colour::Red), reason.clone())]);
    }
    parts
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line() {
        let event: Event = serde_json::from_str(
            r#"{"at":1000,"what":"leased","topic":"t","id":"i","queue":"q","key":"k","holder":"w","attempt":2,"until":31000}"#,
        )
        .unwrap();
        let line: String = in_words(&event, Time(1_000)).into_iter().map(|(_, text)| text).collect();
        let expected = "1970-01-01T00:00:01.000Z  leased       t i  queue q  key k  by w  attempt 2  until 1970-01-01T00:00:31.000Z (in 30s)";
        assert_eq!(line, expected);
    }
}
