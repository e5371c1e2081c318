//! `series`: what happened when, as a table.

use clap::{Args, ValueEnum};
use punctual_wire::{Metric, Series, SeriesQuery, SeriesStep, Time};

use super::Session;
use super::failure::{Failure, help};
use super::moment::{Moment, micros};
use super::output::{Columns, grouped, note};

/// Show what happened when, as far as the server remembers: up to 48 hours, and since it started.
#[derive(Args, Debug)]
#[command(after_help = help!("\
Examples:
  punctual series --metric scheduled --metric done --metric lateness_p99
  punctual series --topic order-unpaid --step 10m --from -6h"))]
pub struct SeriesArgs {
    /// Of this topic.
    #[arg(long, conflicts_with = "queue")]
    topic: Option<String>,
    /// Of this queue. With neither, of all together.
    #[arg(long)]
    queue: Option<String>,
    /// Only this metric, such as scheduled, fired, done, failed, dead, cancelled, lateness_p50, lateness_p99, waiting, ready,
    /// leased or dead_letters; can be repeated.
    #[arg(long, value_name = "METRIC")]
    metric: Vec<String>,
    /// The length of a slot.
    #[arg(long, value_enum, default_value_t = Width::Minute)]
    step: Width,
    /// From this time on; without, the last hour.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<Moment>,
    /// Up to this time; without, until now.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<Moment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Width {
    /// 10 seconds, up to an hour ago.
    #[value(name = "10s")]
    TenSeconds,
    /// A minute.
    #[value(name = "1m")]
    Minute,
    /// 10 minutes.
    #[value(name = "10m")]
    TenMinutes,
}

impl Width {
    fn millis(self) -> u64 {
        match self {
            Width::TenSeconds => 10_000,
            Width::Minute => 60_000,
            Width::TenMinutes => 600_000,
        }
    }
}

/// Asks, and prints a line for each slot.
pub async fn run(args: SeriesArgs, mut session: Session) -> Result<(), Failure> {
    let step = match args.step {
        Width::TenSeconds => SeriesStep::TenSeconds,
        Width::Minute => SeriesStep::Minute,
        Width::TenMinutes => SeriesStep::TenMinutes,
    };
    let query = SeriesQuery {
        topic: args.topic,
        queue: args.queue,
        metric: (!args.metric.is_empty()).then(|| args.metric.join(",")),
        step,
        from: args.from.map(Moment::time),
        until: args.until.map(Moment::time),
    };
    let series = session.client.series(&query).await?;
    if session.output.json {
        return session.output.json(&series);
    }
    session.output.table(&table(&series, args.step))?;
    match series.known_since {
        Some(since) => note(format_args!("known since {since}")),
        None => note("nothing is known: nothing has happened since the server started, or too many others have series"),
    }
    if !series.silent.is_empty() {
        note(format_args!("these nodes did not answer: {}", series.silent.join(", ")));
    }
    Ok(())
}

fn table(series: &Series, step: Width) -> Columns {
    let metrics: Vec<(&'static str, Metric)> =
        Metric::ALL.into_iter().filter(|(word, _)| series.series.contains_key(*word)).collect();
    let mut names = vec!["FROM"];
    names.extend(metrics.iter().map(|(_, metric)| heading(*metric)));
    let mut columns = Columns::new(&names);
    for slot in 0..series.slots {
        let mut cells = vec![Time(series.from.0 + slot * step.millis()).to_string()];
        for (word, metric) in &metrics {
            let value = series.series[*word].get(slot as usize).copied().flatten();
            let is_late = matches!(metric, Metric::LatenessP50 | Metric::LatenessP99);
            cells.push(value.map_or("-".into(), |value| if is_late { micros(value) } else { grouped(value) }));
        }
        columns.row(cells);
    }
    columns
}

/// What stands above a column of numbers.
fn heading(metric: Metric) -> &'static str {
    match metric {
        Metric::Scheduled => "#SCHEDULED",
        Metric::Fired => "#FIRED",
        Metric::Done => "#DONE",
        Metric::Failed => "#FAILED",
        Metric::Dead => "#DIED",
        Metric::Cancelled => "#CANCELLED",
        Metric::LatenessP50 => "#P50",
        Metric::LatenessP99 => "#P99",
        Metric::Waiting => "#WAITING",
        Metric::Ready => "#READY",
        Metric::Leased => "#LEASED",
        Metric::DeadLetters => "#DEAD",
    }
}
