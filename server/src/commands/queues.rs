//! `queues`: looking at queues, and telling them what to do.

use clap::{Args, Subcommand};
use punctual_wire::{DeliveryState, List, Order, Overflow, PauseQueue, QueueInfo, QueueSettings, Span, Time, Timing};

use super::Session;
use super::confirm::confirm_deletion;
use super::failure::{Failure, help};
use super::look::{Amount, Source, print};
use super::moment::{Moment, exact, micros, or_never, rough};
use super::output::{Columns, grouped};
use super::patch::Patch;
use super::settings::{Set, rate_in_words, tell_others};
use super::show::{Card, retry};

/// List queues, and change their settings.
#[derive(Args, Debug)]
#[command(after_help = help!("\
Examples:
  punctual queues
  punctual queues set order-unpaid --lease 2m --attempts 10 --backoff-first 5s --backoff-longest 10m
  punctual queues pause order-unpaid --for 15m --reason 'the gateway is down'
  punctual queues set order-unpaid --max-length 10000 --overflow drop-oldest --unset dead-letter"))]
pub struct QueuesArgs {
    #[command(subcommand)]
    command: Option<QueuesCommand>,
}

#[derive(Subcommand, Debug)]
enum QueuesCommand {
    /// List all queues; the default.
    List,
    /// Show a queue and its settings.
    Show {
        /// Its name.
        name: String,
    },
    /// List what stands in a queue: what is ready, in the order in which it is handed out.
    Line {
        /// Its name.
        name: String,
        /// Instead, what is with a consumer, by the end of its lease.
        #[arg(long)]
        leased: bool,
        /// Show at most N.
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: u32,
        /// Show all of them.
        #[arg(long, conflicts_with = "limit")]
        all: bool,
    },
    /// Change the settings of a queue, or create it; settings not given stay as they are.
    Set(Set<QueueSettings>),
    /// Pause a queue, so that it hands out nothing until it is resumed, or for a while.
    Pause {
        /// Its name.
        name: String,
        /// For this long.
        #[arg(long = "for", value_name = "SPAN", conflicts_with = "until")]
        length: Option<Span>,
        /// Until this time: RFC 3339, milliseconds since 1970, or +2h.
        #[arg(long, value_name = "TIME")]
        until: Option<Moment>,
        /// Why: shown with the queue until it is resumed.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Resume a queue, so that it hands out deliveries again.
    Resume {
        /// Its name.
        name: String,
    },
    /// Delete a queue.
    Delete {
        /// Its name.
        name: String,
        /// Delete it even if it is not empty, with its deliveries and dead letters.
        #[arg(long)]
        force: bool,
        /// Do not ask for confirmation.
        #[arg(long, short)]
        yes: bool,
    },
}

/// A word on whether a queue is paused is the last one: the end of an earlier pause does not outlive it.
fn with_whole_pause(mut patch: Patch) -> Patch {
    if patch.names("paused") && !patch.names("paused_until") {
        patch.unset("paused_until");
    }
    patch
}

/// Does what was asked for.
pub async fn run(args: QueuesArgs, mut session: Session) -> Result<(), Failure> {
    match args.command.unwrap_or(QueuesCommand::List) {
        QueuesCommand::List => {
            let none = "no queues: one is created when a task for it becomes due";
            session.output.list(&session.client.queues().await?, none, table)
        }
        QueuesCommand::Show { name } => {
            let queue = session.client.queue(&name).await?.ok_or_else(|| Failure::no_such("queue", &name))?;
            session.output.either(&queue, || card(&queue, Time::now()))
        }
        QueuesCommand::Line { name, leased, limit, all } => {
            let state = if leased { DeliveryState::Leased } else { DeliveryState::Ready };
            let amount = Amount { limit, all, bodies: false };
            print(session, Source::Queue(name, state), List::default(), &amount, "nothing stands in this queue").await
        }
        QueuesCommand::Set(set) => {
            let (client, name, patch) = (&session.client, set.name, with_whole_pause(set.patch));
            let queue = match set.version {
                Some(version) => client.patch_queue_if(&name, &patch, &version).await?,
                None => match client.patch_queue(&name, &patch).await? {
                    None => Some(client.put_queue(&name, patch.applied(QueueSettings::default())?).await?),
                    patched => patched,
                },
            };
            let queue = queue.ok_or_else(|| Failure::no_such("queue", &name))?;
            session.output.either(&queue, || card(&queue, Time::now()))
        }
        QueuesCommand::Pause { name, length, until, reason } => {
            let until = until.map(Moment::time);
            let queue = session.client.pause_queue(&name, PauseQueue { until, length, reason }).await?;
            let end = match (length, until) {
                (Some(length), _) => format!("for {length}"),
                (_, Some(until)) => format!("until {}", exact(until, Time::now())),
                (None, None) => "until it is resumed".into(),
            };
            session.output.either(&queue, || format!("queue {name} is paused: it hands out nothing {end}"))
        }
        QueuesCommand::Resume { name } => {
            let queue = session.client.resume_queue(&name).await?;
            session.output.either(&queue, || format!("queue {name} is resumed: it hands out deliveries again"))
        }
        QueuesCommand::Delete { name, force, yes } => {
            if force {
                let queue = session.client.queue(&name).await?.ok_or_else(|| Failure::no_such("queue", &name))?;
                let held = queue.ready + queue.leased + queue.dead;
                confirm_deletion(&format!("queue {name}"), held, yes)?;
            }
            let rows = session.client.delete_queue(&name, force).await?;
            session.output.deleted(&format!("queue {name}"), rows)
        }
    }
}

fn table(queues: &[QueueInfo]) -> Columns {
    let now = Time::now();
    let mut columns = Columns::new(&["QUEUE", "#READY", "#LEASED", "#DEAD", "#LEASE", "#RATE", "PAUSED"]);
    for queue in queues {
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
    columns
}

/// Until when a queue is paused, if it is.
pub fn paused(settings: &QueueSettings, now: Time) -> Option<String> {
    match (settings.paused, settings.paused_until) {
        (_, Some(until)) if until > now => Some(format!("until {}", exact(until, now))),
        (true, None) => Some("until resumed".into()),
        _ => None,
    }
}

/// The settings that a card tells in words of its own.
const TOLD: [&str; 11] = [
    "lease",
    "max_lease",
    "retry",
    "max_length",
    "overflow",
    "order",
    "dead_letter",
    "dead_retention",
    "rate",
    "paused",
    "paused_until",
];

fn card(queue: &QueueInfo, now: Time) -> String {
    let settings = &queue.settings;
    let mut card = Card::default();
    card.fact("queue", &queue.name);
    let longest = settings.max_lease.map_or(String::new(), |longest| format!(", at most {longest}"));
    card.fact("lease", format!("{}{longest}", settings.lease));
    card.fact("retry", retry(&settings.retry));
    let overflow = match settings.overflow {
        Overflow::Refuse => "when full, the new delivery gives way",
        Overflow::DropOldest => "when full, the oldest delivery gives way",
    };
    card.fact("room", settings.max_length.map_or("any number".into(), |max| format!("{}; {overflow}", grouped(max))));
    let order = match settings.order {
        Order::Due => "by due time",
        Order::Arrival => "by arrival",
    };
    card.fact("order", order);
    card.fact("dead letters", settings.dead_letter.as_ref().map_or("stay".into(), |topic| format!("go to {topic}")));
    card.fact("kept for", or_never(settings.dead_retention, "ever"));
    card.fact("rate", rate_in_words(settings.rate));
    card.fact("paused", paused(settings, now).unwrap_or("no".into()));
    card.pause(queue.pause.as_ref(), now);
    tell_others(&mut card, settings, &TOLD);
    let (ready, leased, dead) = (grouped(queue.ready), grouped(queue.leased), grouped(queue.dead));
    card.fact("holds now", format!("{ready} ready, {leased} leased, {dead} dead"));
    if let Some(since) = queue.oldest_ready {
        card.fact("oldest ready", format!("for {}", rough(now.0.saturating_sub(since.0))));
    }
    if queue.taken_micros.count > 0 {
        card.fact("offered", waits(&queue.offered_micros, "after the due time"));
        card.fact("taken", waits(&queue.taken_micros, "after that"));
    }
    card.fact("version", &queue.version);
    card.0
}

fn waits(timing: &Timing, after: &str) -> String {
    format!("{} {after} on average, 99 % within {}", micros(timing.mean), micros(timing.p99))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use serde_json::json;

    use super::super::settings_tests::{every_setting_shows, set};
    use super::*;

    /// What a line makes of settings.
    fn after(line: &str, before: &QueueSettings) -> QueueSettings {
        let set: Set<QueueSettings> = set(line).unwrap();
        with_whole_pause(set.patch).applied(before.clone()).unwrap()
    }

    #[test]
    fn only_what_is_given_changes() {
        let before = QueueSettings { max_length: Some(9), ..QueueSettings::default() };
        let after = after("q --attempts 3 --unset max-length", &before);
        assert_eq!((after.retry.attempts, after.max_length), (3, None));
        assert_eq!(after.retry.backoff, before.retry.backoff);
        assert_eq!(after.lease, before.lease);
    }

    #[test]
    fn the_order_is_set_like_any_other_setting() {
        let by_arrival = after("q --order arrival", &QueueSettings::default());
        assert_eq!(by_arrival.order, Order::Arrival);
        assert_eq!(after("q --order due", &by_arrival).order, Order::Due);
        assert_eq!(after("q --unset order", &by_arrival).order, Order::Due);
    }

    #[test]
    fn a_queue_that_is_set_to_go_on_is_not_paused_until_later_either() {
        let before = QueueSettings { paused: true, paused_until: Some(Time(9)), ..QueueSettings::default() };
        let after = after("q --paused false", &before);
        assert_eq!((after.paused, after.paused_until), (false, None));
    }

    #[test]
    fn a_card_tells_every_setting() {
        every_setting_shows::<QueueSettings>(|settings| {
            let json = json!({ "name": "q", "settings": settings, "ready": 0, "leased": 0, "dead": 0 });
            card(&serde_json::from_value(json).unwrap(), Time(5))
        });
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
