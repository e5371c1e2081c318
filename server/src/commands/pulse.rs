//! `pulse`: how the server is doing, a line every second.

use clap::Args;
use punctual_wire::{Happened, Pulse};

use super::Session;
use super::failure::{Failure, help};
use super::moment::micros;
use super::output::{Output, grouped, note};

/// Follow how the server is doing, one line per second, until Ctrl-C.
///
/// Each line says how many tasks were scheduled, done, failed and given up since the one before, how much there is, and how late
/// deliveries were in the last seconds. Named topics and queues get lines of their own.
#[derive(Args, Debug)]
#[command(after_help = help!("\
Examples:
  punctual pulse --topic order-unpaid --queue sms
  punctual pulse --limit 1 --json"))]
pub struct PulseArgs {
    /// With this topic; can be repeated.
    #[arg(long, value_name = "TOPIC")]
    topic: Vec<String>,
    /// With this queue; can be repeated.
    #[arg(long, value_name = "QUEUE")]
    queue: Vec<String>,
    /// Stop after N seconds.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

/// Prints until the reader has enough, or the server ends the stream.
pub async fn run(args: PulseArgs, mut session: Session) -> Result<(), Failure> {
    let mut pulses = session.client.pulse(&args.topic, &args.queue).await?;
    let (mut left, mut before) = (args.limit.unwrap_or(u64::MAX), None);
    while left > 0 {
        let Some(pulse) = pulses.next().await.transpose()? else {
            note("the server ended the stream: it is stopping, or the token was withdrawn");
            return Ok(());
        };
        show(&pulse, before.as_ref(), &mut session.output)?;
        // Whoever follows wants to see it now.
        session.output.flush()?;
        (before, left) = (Some(pulse), left - 1);
    }
    Ok(())
}

fn show(pulse: &Pulse, before: Option<&Pulse>, output: &mut Output) -> Result<(), Failure> {
    if output.json {
        return output.json(pulse);
    }
    let mut line = pulse.now.to_string();
    if let Some(happened) = &pulse.happened {
        line += &since(happened, before.and_then(|before| before.happened.as_ref()));
    }
    if let Some(total) = &pulse.total {
        let [waiting, ready, leased, dead] = [total.waiting, total.ready, total.leased, total.dead].map(grouped);
        line += &format!("  waiting {waiting}  ready {ready}  leased {leased}  dead {dead}");
    }
    if let Some(late) = pulse.lateness_micros.as_ref().filter(|late| late.count > 0) {
        line += &format!("  late p50 {} p99 {}", micros(late.p50), micros(late.p99));
    }
    if let Some(problem) = &pulse.problem {
        line += &format!("  {problem}");
    }
    output.line(line)?;
    for (name, topic) in &pulse.topics {
        let before = before.and_then(|before| before.topics.get(name)).map(|topic| &topic.happened);
        let [waiting, leased, dead] = [topic.waiting, topic.leased, topic.dead].map(grouped);
        let paused = if topic.paused { "  paused" } else { "" };
        let since = since(&topic.happened, before);
        output.line(format!("  topic {name}{since}  waiting {waiting}  leased {leased}  dead {dead}{paused}"))?;
    }
    for (name, queue) in &pulse.queues {
        let [ready, leased, dead] = [queue.ready, queue.leased, queue.dead].map(grouped);
        let paused = if queue.paused { "  paused" } else { "" };
        output.line(format!("  queue {name}  ready {ready}  leased {leased}  dead {dead}{paused}"))?;
    }
    Ok(())
}

/// How much happened since the pulse before; of the first one that is not known.
fn since(now: &Happened, before: Option<&Happened>) -> String {
    let Some(before) = before else { return String::new() };
    let gone = |now: u64, before: u64| grouped(now.saturating_sub(before));
    format!(
        "  in {}  done {}  failed {}  died {}",
        gone(now.scheduled, before.scheduled),
        gone(now.done, before.done),
        gone(now.failed, before.failed),
        gone(now.dead, before.dead)
    )
}
