//! `work`: runs a command for each delivery, and tells the server what became of it by the exit code.
//!
//! The worker of the client crate takes the deliveries, extends the leases and settles; here are only
//! the child processes ([`child`]) and when to stop ([`stop`]).

mod child;
mod stop;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use punctual_client::{Client, Failure as Undone, Job, Summary, Worker};
use punctual_wire::Span;
use serde::Serialize;
use tokio::sync::mpsc;
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use self::child::{Child, Ended, Orders};
use self::stop::Stop;
use super::Session;
use super::failure::{Exit, Failure, help};
use super::moment::rough;
use super::output::{Output, note};

const HELP: &str = help!(
    "\
The command gets the body on stdin and the rest in its environment:
  PUNCTUAL_TOPIC, PUNCTUAL_ID, PUNCTUAL_QUEUE, PUNCTUAL_ATTEMPT, PUNCTUAL_DUE, PUNCTUAL_KEY and
  PUNCTUAL_ROUTING_KEY if there is one, PUNCTUAL_HEADER_<NAME> for each header (in upper case, with _ for
  anything but letters and digits), and TRACEPARENT and TRACESTATE from the headers of these names.

Its exit code decides what happens to the delivery:
  0    done: it is acknowledged
  65   cannot be done (EX_DATAERR): it is rejected and becomes a dead letter, with the last line of stderr as its note
  75   not now (EX_TEMPFAIL): it is retried according to the queue's retry policy
  any other code, or killed by a signal: it failed, and is retried in the same way
The last line of stderr is kept with the task, so that a dead letter says why it is one.

If the command does not exist, the worker stops with exit code 1 before it takes anything. Exit code 126 or 127,
by which a shell says the same, also stops it, unless a command has run before; the delivery is given back.

The lease is extended while the command runs. If it is lost, because the server could not be reached for too
long, the command gets SIGTERM, since another consumer may get the delivery. SIGTERM or Ctrl-C stops the worker:
it passes SIGTERM on to its commands and waits for them; a second signal kills them.

Examples:
  punctual work order-unpaid -- ./close-order
  punctual work mails --concurrency 16 -- sh -c 'mail -s \"$PUNCTUAL_HEADER_SUBJECT\" \"$PUNCTUAL_KEY\"'
  punctual work order-unpaid --drain -- cat"
);

/// The worker itself never cuts a command short: after a signal, [`stop`] kills what takes too long, and
/// without one, as with `--limit`, nothing is in a hurry.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);

/// Run a command for each delivery of one or more queues.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct WorkArgs {
    /// The queues to work on.
    #[arg(required = true, value_name = "QUEUE")]
    queues: Vec<String>,
    /// How many commands may run at the same time.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    concurrency: u32,
    /// How soon another consumer takes over if this process dies; by default as the task or its queue says.
    #[arg(long, value_name = "SPAN")]
    lease: Option<Span>,
    /// Stop after N deliveries.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Stop when nothing is ready.
    #[arg(long, alias = "once")]
    drain: bool,
    /// Another exit code that rejects the delivery; can be repeated.
    #[arg(long, value_name = "CODE")]
    reject_code: Vec<u8>,
    /// How long to wait for commands after a signal before they are killed.
    #[arg(long, value_name = "SPAN", default_value = "30s")]
    grace: Span,
    /// The consumer name; by default the machine's name and the process id.
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,
    /// Print nothing about deliveries that succeeded.
    #[arg(long, short)]
    quiet: bool,
    /// The command and its arguments, after --.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// What became of one delivery, as a line of JSON.
#[derive(Debug, Serialize)]
struct Line {
    queue: String,
    topic: String,
    id: String,
    attempt: u32,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    millis: u64,
}

/// Works until it is told to stop.
pub async fn run(args: WorkArgs, session: Session) -> Result<(), Failure> {
    let Session { client, output } = session;
    let orders = Arc::new(Orders::new(&args.command, output.json, args.reject_code.clone()));
    let cannot_be_run = |why: &str| Failure::new(Exit::Failed, format!("{} cannot be run: {why}", args.command[0]));
    orders.look_for_program().map_err(|error| cannot_be_run(&format!("{error}; nothing was taken")))?;
    tell_missing(&client, &args.queues).await;
    let stop = Arc::new(Stop::new(args.limit));
    let (sender, lines) = mpsc::unbounded_channel();
    let concurrency =
        args.limit.map_or(args.concurrency, |limit| args.concurrency.min(u32::try_from(limit).unwrap_or(u32::MAX)));
    let mut worker =
        Worker::builder(client.clone()).concurrency(usize::try_from(concurrency).unwrap_or(usize::MAX)).grace(FOR_EVER);
    if let Some(lease) = args.lease {
        worker = worker.lease(lease.as_duration());
    }
    if args.limit.is_some() {
        // What is fetched ahead would only be given back.
        worker = worker.prefetch(0);
    }
    if let Some(consumer) = &args.consumer {
        worker = worker.consumer(consumer);
    }
    for queue in &args.queues {
        let (orders, stop, sender) = (Arc::clone(&orders), Arc::clone(&stop), sender.clone());
        worker = worker.handle(queue, move |job| handle(job, Arc::clone(&orders), Arc::clone(&stop), sender.clone()));
    }
    let worker = worker.build()?;
    drop(sender);
    tell_trouble();
    let printer = tokio::spawn(print(lines, output, args.quiet, Arc::clone(&stop)));
    stop.listen(args.grace.as_duration()).map_err(|error| Failure::local("cannot listen for signals", error))?;
    if args.drain {
        tokio::spawn(Arc::clone(&stop).when_empty(client, args.queues.clone()));
    }
    let given_back = Arc::clone(&orders.given_back);
    let summary = worker.run(Arc::clone(&stop).asked()).await;
    let printed = printer.await.unwrap_or(Ok(()));
    let summary = summary?;
    if !args.quiet {
        note(sum(&summary, given_back.load(Ordering::Relaxed)));
    }
    match stop.hopeless() {
        Some(error) => Err(cannot_be_run(&format!("{error}; the delivery was given back"))),
        None => printed,
    }
}

/// A queue that is not there yet may come to be, so it is waited for; but it may as well be a slip of the pen.
async fn tell_missing(client: &Client, queues: &[String]) {
    for queue in queues {
        // If the server cannot be asked, the worker will say so.
        if let Ok(None) = client.queue(queue).await {
            note(format_args!("there is no queue {queue} yet: waiting for it; `punctual queues` lists the queues"));
        }
    }
}

/// What was done in all. To the worker, what is given back because the worker stops has failed like any other.
fn sum(summary: &Summary, given_back: u64) -> String {
    let Summary { done, rejected, lost, left, .. } = summary;
    let failed = summary.failed.saturating_sub(given_back);
    let given_back = summary.given_back + given_back;
    let mut text = format!("done {done}, failed {failed}, rejected {rejected}");
    for (number, name) in [(*lost, "lost"), (given_back, "given back"), (*left, "left to their leases")] {
        if number > 0 {
            text.push_str(&format!(", {name} {number}"));
        }
    }
    text
}

/// Runs the command for one delivery.
async fn handle(
    job: Job,
    orders: Arc<Orders>,
    stop: Arc<Stop>,
    lines: mpsc::UnboundedSender<Line>,
) -> Result<(), Undone> {
    let begun = std::time::Instant::now();
    if !stop.begin() {
        orders.given_back.fetch_add(1, Ordering::Relaxed);
        return Err(Undone::retry_after(Duration::ZERO).because("left to other workers"));
    }
    let ended = match Child::start(&job, &orders) {
        Ok(child) => child.wait(&job, &stop).await,
        Err(error) if child::is_hopeless(&error) => {
            stop.give_up(error.to_string());
            orders.given_back.fetch_add(1, Ordering::Relaxed);
            return Err(Undone::retry_after(Duration::ZERO).because("the command cannot be run"));
        }
        Err(error) => Ended { code: None, signal: None, note: Some(error.to_string()) },
    };
    stop.end();
    if let Some(why) = orders.hopeless(&ended) {
        stop.give_up(why);
        orders.given_back.fetch_add(1, Ordering::Relaxed);
        return Err(Undone::retry_after(Duration::ZERO).because("the command cannot be run"));
    }
    let (outcome, result) = orders.judge(&ended, stop.is_signalled());
    let Ended { code, signal, note } = ended;
    // If nobody prints any more, the work still counts.
    let _ = lines.send(Line {
        queue: job.queue.clone(),
        topic: job.topic.clone(),
        id: job.id.clone(),
        attempt: job.attempt,
        outcome,
        exit_code: code,
        signal,
        note,
        millis: begun.elapsed().as_millis() as u64,
    });
    result
}

/// Prints what became of deliveries, until there are no more. If nobody reads any more, the worker stops.
async fn print(
    mut lines: mpsc::UnboundedReceiver<Line>,
    mut output: Output,
    quiet: bool,
    stop: Arc<Stop>,
) -> Result<(), Failure> {
    while let Some(line) = lines.recv().await {
        if output.json {
            let printed = output.json(&line).and_then(|()| output.flush());
            if printed.is_err() {
                stop.now();
                return printed;
            }
        } else if !quiet || line.outcome != "done" {
            note(in_words(&line));
        }
    }
    Ok(())
}

fn in_words(line: &Line) -> String {
    let Line { topic, id, attempt, outcome, .. } = line;
    let why = match (line.exit_code, line.signal) {
        (Some(0), _) => String::new(),
        (Some(code), _) => format!(", exit code {code}"),
        (_, Some(signal)) => format!(", killed by signal {signal}"),
        (None, None) => String::new(),
    };
    let note = line.note.as_ref().map_or(String::new(), |note| format!(": {note}"));
    let again = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
    let outcome = outcome.replace('_', " ");
    format!("{outcome} {topic} {id} in {}{again}{why}{note}", rough(line.millis))
}

/// Lets the worker say on stderr what goes wrong between it and the server. What became of deliveries
/// is told here already, so its own word about that is left out.
fn tell_trouble() {
    let filter = FilterFn::new(|metadata| {
        let is_trouble = *metadata.level() <= tracing::Level::WARN && metadata.target().starts_with("punctual");
        metadata.is_span() || (is_trouble && metadata.fields().field("rejected").is_none())
    });
    let layer = fmt::layer().with_writer(std::io::stderr).with_target(false).with_ansi(false).with_filter(filter);
    // Somebody may be listening already, who then tells it.
    let _ = tracing_subscriber::registry().with(layer).try_init();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(outcome: &'static str, exit_code: Option<i32>, signal: Option<i32>) -> Line {
        let (queue, topic, id) = ("q".into(), "t".into(), "i".into());
        Line { queue, topic, id, attempt: 1, outcome, exit_code, signal, note: None, millis: 120 }
    }

    #[test]
    fn what_became_of_a_delivery_is_one_line() {
        assert_eq!(in_words(&line("done", Some(0), None)), "done t i in 120ms");
        assert_eq!(in_words(&line("failed", None, Some(9))), "failed t i in 120ms, killed by signal 9");
        let mut rejected = line("rejected", Some(65), None);
        rejected.note = Some("no such order".into());
        rejected.attempt = 2;
        assert_eq!(in_words(&rejected), "rejected t i in 120ms, attempt 2, exit code 65: no such order");
    }
}
