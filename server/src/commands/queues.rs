//! `queues`: looking at queues, and telling them what to do.

use clap::{Args, Subcommand, ValueEnum};
use punctual_wire::{Deleted, Order, Overflow, PauseQueue, QueueInfo, QueueSettings, Span, Time, Timing};

use super::Session;
use super::confirm::confirm;
use super::failure::{Failure, help};
use super::moment::{Moment, exact, micros, or_never, rough};
use super::output::{Columns, counted, grouped, note};
use super::patch::Patch;
use super::show::{Card, retry};
use super::topics::{RateLimit, rate};

/// Look at queues and change their settings.
#[derive(Args, Debug)]
#[command(after_help = help!("\
Examples:
  punctual queues
  punctual queues set order-unpaid --lease 2m --attempts 10 --backoff-first 5s --backoff-longest 10m
  punctual queues pause order-unpaid --for 15m
  punctual queues set order-unpaid --max-length 10000 --overflow drop-oldest --unset dead-letter"))]
pub struct QueuesArgs {
    #[command(subcommand)]
    command: Option<QueuesCommand>,
}

#[derive(Subcommand, Debug)]
enum QueuesCommand {
    /// List all queues; the same as no command.
    List,
    /// Show a queue and its settings.
    Show {
        /// Its name.
        name: String,
    },
    /// Change settings of a queue, or make it; what is not given stays.
    Set(SetQueue),
    /// Hand out nothing, until it is resumed or for a time.
    Pause {
        /// Its name.
        name: String,
        /// For so long.
        #[arg(long = "for", value_name = "SPAN", conflicts_with = "until")]
        length: Option<Span>,
        /// Until this time: RFC 3339, milliseconds since 1970, or +2h.
        #[arg(long, value_name = "TIME")]
        until: Option<Moment>,
    },
    /// Hand out again.
    Resume {
        /// Its name.
        name: String,
    },
    /// Delete a queue.
    Delete {
        /// Its name.
        name: String,
        /// Also if there are deliveries: they and its dead letters go with it.
        #[arg(long)]
        force: bool,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Args, Debug, Default)]
struct SetQueue {
    /// Its name.
    name: String,
    /// How long a consumer may work on a delivery if it does not say.
    #[arg(long, value_name = "SPAN")]
    lease: Option<Span>,
    /// How long a lease lasts at most, whoever asks for more; 12h unless set.
    #[arg(long, value_name = "SPAN")]
    max_lease: Option<Span>,
    /// How many attempts may fail before a delivery is a dead letter; 0 for any number.
    #[arg(long, value_name = "N")]
    attempts: Option<u32>,
    /// How long to wait after the first failure; twice as long after each further one.
    #[arg(long, value_name = "SPAN")]
    backoff_first: Option<Span>,
    /// The longest wait between attempts.
    #[arg(long, value_name = "SPAN")]
    backoff_longest: Option<Span>,
    /// By how much of itself, in percent, a wait may grow at random.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    jitter: Option<u8>,
    /// How many ready deliveries it holds.
    #[arg(long, value_name = "N")]
    max_length: Option<u64>,
    /// What gives way when it holds more.
    #[arg(long, value_name = "WHO")]
    overflow: Option<OverflowChoice>,
    /// Which of several deliveries of the same priority comes first.
    #[arg(long, value_name = "BY")]
    order: Option<OrderChoice>,
    /// The topic to which dead letters go on.
    #[arg(long, value_name = "TOPIC")]
    dead_letter: Option<String>,
    /// How long dead letters are kept.
    #[arg(long, value_name = "SPAN")]
    dead_retention: Option<Span>,
    /// How many deliveries it hands out in a second, and how many at once after a quiet time: 500 or 500:2000.
    #[arg(long, value_name = "N[:BURST]")]
    rate: Option<RateLimit>,
    /// Whether nothing is handed out.
    #[arg(long, value_name = "TRUE|FALSE")]
    paused: Option<bool>,
    /// Set back to the default; may be given several times.
    #[arg(long, value_name = "SETTING")]
    unset: Vec<QueueUnset>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OverflowChoice {
    /// The newcomer: refused if it is due at once, a dead letter if it comes due later.
    Refuse,
    /// The oldest of the least urgent, as a dead letter.
    DropOldest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OrderChoice {
    /// The one whose time came first.
    Due,
    /// The one that was taken in first, whenever its time came.
    Arrival,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum QueueUnset {
    MaxLength,
    DeadLetter,
    DeadRetention,
    Rate,
}

impl SetQueue {
    /// What was given as a merge patch, so that all else stays, whoever else changes something meanwhile.
    fn patch(&self) -> Patch {
        let mut patch = Patch::default();
        for unset in &self.unset {
            patch.unset(match unset {
                QueueUnset::MaxLength => "max_length",
                QueueUnset::DeadLetter => "dead_letter",
                QueueUnset::DeadRetention => "dead_retention",
                QueueUnset::Rate => "rate",
            });
        }
        patch.set("lease", self.lease);
        patch.set("max_lease", self.max_lease);
        patch.set("retry.attempts", self.attempts);
        patch.set("retry.backoff.first", self.backoff_first);
        patch.set("retry.backoff.longest", self.backoff_longest);
        patch.set("retry.jitter_percent", self.jitter);
        patch.set("max_length", self.max_length);
        let overflow = |choice| match choice {
            OverflowChoice::Refuse => Overflow::Refuse,
            OverflowChoice::DropOldest => Overflow::DropOldest,
        };
        patch.set("overflow", self.overflow.map(overflow));
        let order = |choice| match choice {
            OrderChoice::Due => Order::Due,
            OrderChoice::Arrival => Order::Arrival,
        };
        patch.set("order", self.order.map(order));
        patch.set("dead_letter", self.dead_letter.as_ref());
        patch.set("dead_retention", self.dead_retention);
        patch.set("rate", self.rate.map(RateLimit::patch));
        patch.set("paused", self.paused);
        if self.paused.is_some() {
            patch.unset("paused_until");
        }
        patch
    }
}

/// Does what was asked for.
pub async fn run(args: QueuesArgs, mut session: Session) -> Result<(), Failure> {
    match args.command.unwrap_or(QueuesCommand::List) {
        QueuesCommand::List => list(session).await,
        QueuesCommand::Show { name } => {
            let queue = session.client.queue(&name).await?.ok_or_else(|| missing(&name))?;
            session.output.either(&queue, || card(&queue, Time::now()))
        }
        QueuesCommand::Set(set) => {
            let patch = set.patch();
            let queue = match session.client.patch_queue(&set.name, &patch).await? {
                Some(queue) => queue,
                None => session.client.put_queue(&set.name, patch.applied(QueueSettings::default())?).await?,
            };
            session.output.either(&queue, || card(&queue, Time::now()))
        }
        QueuesCommand::Pause { name, length, until } => {
            let until = until.map(Moment::time);
            let queue = session.client.pause_queue(&name, PauseQueue { until, length }).await?;
            let end = match (length, until) {
                (Some(length), _) => format!("for {length}"),
                (_, Some(until)) => format!("until {}", exact(until, Time::now())),
                (None, None) => "until it is resumed".into(),
            };
            session.output.either(&queue, || format!("queue {name} is paused: it hands out nothing {end}"))
        }
        QueuesCommand::Resume { name } => {
            let queue = session.client.resume_queue(&name).await?;
            session.output.either(&queue, || format!("queue {name} is resumed: it hands out again"))
        }
        QueuesCommand::Delete { name, force, yes } => {
            if force {
                let queue = session.client.queue(&name).await?.ok_or_else(|| missing(&name))?;
                let held = queue.ready + queue.leased + queue.dead;
                let question = format!("Delete queue {name} and {} in it?", counted(held, "task"));
                confirm(&question, yes || held == 0)?;
            }
            let rows = session.client.delete_queue(&name, force).await?;
            let text = format!("deleted queue {name}, and {} with it", counted(rows, "row"));
            session.output.either(&Deleted { rows }, || text)
        }
    }
}

fn missing(name: &str) -> Failure {
    Failure::missing(format!("there is no queue {name}: see all with `punctual queues`"))
}

async fn list(mut session: Session) -> Result<(), Failure> {
    let queues = session.client.queues().await?;
    if session.output.json {
        return queues.iter().try_for_each(|queue| session.output.json(queue));
    }
    if queues.is_empty() {
        note("no queues: one comes to be when a task falls due for it");
        return Ok(());
    }
    let now = Time::now();
    let mut columns = Columns::new(&["QUEUE", "#READY", "#LEASED", "#DEAD", "#LEASE", "#RATE", "PAUSED"]);
    for queue in &queues {
        let settings = &queue.settings;
        columns.row(vec![
            queue.name.clone(),
            grouped(queue.ready),
            grouped(queue.leased),
            grouped(queue.dead),
            settings.lease.to_string(),
            settings.rate.map_or("-".into(), |rate| format!("{}/s", rate.per_second)),
            paused(settings, now).unwrap_or("-".into()),
        ]);
    }
    session.output.table(&columns)
}

/// Until when a queue is paused, if it is.
pub fn paused(settings: &QueueSettings, now: Time) -> Option<String> {
    match (settings.paused, settings.paused_until) {
        (_, Some(until)) if until > now => Some(format!("until {}", exact(until, now))),
        (true, None) => Some("until resumed".into()),
        _ => None,
    }
}

fn card(queue: &QueueInfo, now: Time) -> String {
    let settings = &queue.settings;
    let mut card = Card::default();
    card.fact("queue", &queue.name);
    let longest = settings.max_lease.map_or(String::new(), |longest| format!(", at most {longest}"));
    card.fact("lease", format!("{}{longest}", settings.lease));
    card.fact("retry", retry(&settings.retry));
    let overflow = match settings.overflow {
        Overflow::Refuse => "the newcomer gives way",
        Overflow::DropOldest => "the oldest gives way",
    };
    card.fact("room", settings.max_length.map_or("any number".into(), |max| format!("{}; {overflow}", grouped(max))));
    let order = match settings.order {
        Order::Due => "by due time: whose time came first",
        Order::Arrival => "by arrival: what was taken in first",
    };
    card.fact("order", order);
    card.fact("dead letters", settings.dead_letter.as_ref().map_or("stay".into(), |topic| format!("go to {topic}")));
    card.fact("kept for", or_never(settings.dead_retention, "ever"));
    card.fact("rate", rate(settings.rate));
    card.fact("paused", paused(settings, now).unwrap_or("no".into()));
    let (ready, leased, dead) = (grouped(queue.ready), grouped(queue.leased), grouped(queue.dead));
    card.fact("holds now", format!("{ready} ready, {leased} leased, {dead} dead"));
    if let Some(since) = queue.oldest_ready {
        card.fact("oldest ready", format!("for {}", rough(now.0.saturating_sub(since.0))));
    }
    if queue.taken_micros.count > 0 {
        card.fact("offered", waits(&queue.offered_micros, "after the due time"));
        card.fact("taken", waits(&queue.taken_micros, "after that"));
    }
    card.0
}

fn waits(timing: &Timing, after: &str) -> String {
    format!("{} {after} on average, 99 % within {}", micros(timing.mean), micros(timing.p99))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_given_changes() {
        let before = QueueSettings { max_length: Some(9), ..QueueSettings::default() };
        let set = SetQueue { attempts: Some(3), unset: vec![QueueUnset::MaxLength], ..SetQueue::default() };
        let after = set.patch().applied(before.clone()).unwrap();
        assert_eq!((after.retry.attempts, after.max_length), (3, None));
        assert_eq!(after.retry.backoff, before.retry.backoff);
        assert_eq!(after.lease, before.lease);
    }

    #[test]
    fn the_order_is_set_like_any_other_setting() {
        let set = SetQueue { order: Some(OrderChoice::Arrival), ..SetQueue::default() };
        assert_eq!(set.patch().applied(QueueSettings::default()).unwrap().order, Order::Arrival);
        let set = SetQueue { order: Some(OrderChoice::Due), ..SetQueue::default() };
        let before = QueueSettings { order: Order::Arrival, ..QueueSettings::default() };
        assert_eq!(set.patch().applied(before).unwrap().order, Order::Due);
    }

    #[test]
    fn a_queue_that_is_set_to_go_on_is_not_paused_until_later_either() {
        let before = QueueSettings { paused: true, paused_until: Some(Time(9)), ..QueueSettings::default() };
        let after = SetQueue { paused: Some(false), ..SetQueue::default() }.patch().applied(before).unwrap();
        assert_eq!((after.paused, after.paused_until), (false, None));
    }

    #[test]
    fn a_pause_that_is_over_is_none() {
        let settings = |paused, paused_until| QueueSettings { paused, paused_until, ..QueueSettings::default() };
        assert_eq!(paused(&settings(true, Some(Time(5))), Time(9)), None);
        assert!(paused(&settings(true, Some(Time(9_000))), Time(5)).is_some());
        assert_eq!(paused(&settings(true, None), Time(5)).as_deref(), Some("until resumed"));
        assert_eq!(paused(&settings(false, None), Time(5)), None);
    }
}
