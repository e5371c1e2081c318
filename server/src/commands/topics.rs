//! `topics`: looking at topics, and telling them what to do.

use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use punctual_wire::{Binding, Deleted, Rate, Span, TopicInfo, TopicSettings};
use serde_json::json;

use super::Session;
use super::confirm::confirm;
use super::failure::{Failure, help};
use super::moment::or_never;
use super::output::{Columns, counted, grouped, note};
use super::patch::Patch;
use super::show::Card;

/// Look at topics and change their settings.
#[derive(Args, Debug)]
#[command(after_help = help!("\
Examples:
  punctual topics
  punctual topics set order-unpaid --history 7d --rate 500 --owner shop@example.org
  punctual topics set orders --feeds billing=order.paid --feeds audit
  punctual topics delete order-unpaid --force"))]
pub struct TopicsArgs {
    #[command(subcommand)]
    command: Option<TopicsCommand>,
}

#[derive(Subcommand, Debug)]
enum TopicsCommand {
    /// List all topics; the same as no command.
    List,
    /// Show a topic and its settings.
    Show {
        /// Its name.
        name: String,
    },
    /// Change settings of a topic, or make it; what is not given stays.
    Set(SetTopic),
    /// Refuse new tasks; those that are there go on.
    Pause {
        /// Its name.
        name: String,
    },
    /// Take new tasks again.
    Resume {
        /// Its name.
        name: String,
    },
    /// Delete a topic.
    Delete {
        /// Its name.
        name: String,
        /// Also if there are tasks: they, their dead letters and their history go with it.
        #[arg(long)]
        force: bool,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Args, Debug, Default)]
struct SetTopic {
    /// Its name.
    name: String,
    /// Who to tell when something is wrong with its tasks.
    #[arg(long)]
    owner: Option<String>,
    /// A queue it feeds, with the routing keys that go there if not all: audit, or billing=order.*.paid.
    /// May be given several times; together they take the place of those before.
    #[arg(long, value_name = "QUEUE[=PATTERN]", value_parser = binding)]
    feeds: Vec<Binding>,
    /// How long finished tasks are kept; 0 keeps none.
    #[arg(long, value_name = "SPAN")]
    history: Option<Span>,
    /// How many tasks it takes in a second, and how many at once after a quiet time: 500 or 500:2000.
    #[arg(long, value_name = "N[:BURST]")]
    rate: Option<RateLimit>,
    /// The priority of tasks that name none; lower comes first.
    #[arg(long, value_name = "N")]
    priority: Option<u32>,
    /// The time to live of tasks that name none.
    #[arg(long, value_name = "SPAN")]
    ttl: Option<Span>,
    /// Whether new tasks are refused.
    #[arg(long, value_name = "TRUE|FALSE")]
    paused: Option<bool>,
    /// Set back to the default; may be given several times.
    #[arg(long, value_name = "SETTING")]
    unset: Vec<TopicUnset>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TopicUnset {
    Owner,
    Feeds,
    Rate,
    Ttl,
}

/// A limit as people write it: `500`, or `500:2000` with a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit(pub Rate);

impl RateLimit {
    /// It takes the place of the one before: a burst that is not given goes.
    pub fn patch(self) -> serde_json::Value {
        json!({ "per_second": self.0.per_second, "burst": self.0.burst })
    }
}

impl FromStr for RateLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<RateLimit, String> {
        let number = |text: &str| match text.parse::<u32>() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err("write how many a second, and maybe how many at once: 500 or 500:2000".to_owned()),
        };
        let (per_second, burst) = match text.split_once(':') {
            Some((per_second, burst)) => (number(per_second)?, Some(number(burst)?)),
            None => (number(text)?, None),
        };
        Ok(RateLimit(Rate { per_second, burst }))
    }
}

fn binding(text: &str) -> Result<Binding, String> {
    let (queue, pattern) = match text.split_once('=') {
        Some((queue, pattern)) => (queue, Some(pattern.to_owned())),
        None => (text, None),
    };
    let empty = queue.is_empty() || pattern.as_ref().is_some_and(String::is_empty);
    if empty { Err("write a queue, or queue=pattern".into()) } else { Ok(Binding { queue: queue.into(), pattern }) }
}

impl SetTopic {
    /// What was given as a merge patch, so that all else stays, whoever else changes something meanwhile.
    fn patch(&self) -> Patch {
        let mut patch = Patch::default();
        for unset in &self.unset {
            patch.unset(match unset {
                TopicUnset::Owner => "owner",
                TopicUnset::Feeds => "feeds",
                TopicUnset::Rate => "rate",
                TopicUnset::Ttl => "ttl",
            });
        }
        patch.set("owner", self.owner.as_ref());
        patch.set("feeds", Some(&self.feeds).filter(|feeds| !feeds.is_empty()));
        patch.set("history", self.history);
        patch.set("rate", self.rate.map(RateLimit::patch));
        patch.set("priority", self.priority);
        patch.set("ttl", self.ttl);
        patch.set("paused", self.paused);
        patch
    }
}

/// Does what was asked for.
pub async fn run(args: TopicsArgs, mut session: Session) -> Result<(), Failure> {
    match args.command.unwrap_or(TopicsCommand::List) {
        TopicsCommand::List => list(session).await,
        TopicsCommand::Show { name } => {
            let topic = session.client.topic(&name).await?.ok_or_else(|| missing(&name))?;
            session.output.either(&topic, || card(&topic))
        }
        TopicsCommand::Set(set) => {
            let patch = set.patch();
            let topic = match session.client.patch_topic(&set.name, &patch).await? {
                Some(topic) => topic,
                None => session.client.put_topic(&set.name, patch.applied(TopicSettings::default())?).await?,
            };
            session.output.either(&topic, || card(&topic))
        }
        TopicsCommand::Pause { name } => {
            let topic = session.client.pause_topic(&name).await?;
            let text = format!("topic {name} is paused: new tasks are refused until it is resumed");
            session.output.either(&topic, || text)
        }
        TopicsCommand::Resume { name } => {
            let topic = session.client.resume_topic(&name).await?;
            session.output.either(&topic, || format!("topic {name} is resumed: it takes new tasks"))
        }
        TopicsCommand::Delete { name, force, yes } => {
            if force {
                let topic = session.client.topic(&name).await?.ok_or_else(|| missing(&name))?;
                let held = topic.waiting + topic.leased + topic.dead + topic.history;
                confirm(&format!("Delete topic {name} and {} in it?", counted(held, "task")), yes || held == 0)?;
            }
            let rows = session.client.delete_topic(&name, force).await?;
            let text = format!("deleted topic {name}, and {} with it", counted(rows, "row"));
            session.output.either(&Deleted { rows }, || text)
        }
    }
}

fn missing(name: &str) -> Failure {
    Failure::missing(format!("there is no topic {name}: see all with `punctual topics`"))
}

async fn list(mut session: Session) -> Result<(), Failure> {
    let topics = session.client.topics().await?;
    if session.output.json {
        return topics.iter().try_for_each(|topic| session.output.json(topic));
    }
    if topics.is_empty() {
        note("no topics: one comes to be when a task is scheduled in it");
        return Ok(());
    }
    let mut columns = Columns::new(&["TOPIC", "#WAITING", "#LEASED", "#DEAD", "#HISTORY", "FEEDS", "OWNER", "PAUSED"]);
    for topic in &topics {
        columns.row(vec![
            topic.name.clone(),
            grouped(topic.waiting),
            grouped(topic.leased),
            grouped(topic.dead),
            grouped(topic.history),
            feeds(topic),
            topic.settings.owner.clone().unwrap_or("-".into()),
            if topic.settings.paused { "paused" } else { "-" }.into(),
        ]);
    }
    session.output.table(&columns)
}

fn feeds(topic: &TopicInfo) -> String {
    let Some(bindings) = &topic.settings.feeds else { return topic.name.clone() };
    let binding = |binding: &Binding| match &binding.pattern {
        Some(pattern) => format!("{}={pattern}", binding.queue),
        None => binding.queue.clone(),
    };
    if bindings.is_empty() { "nothing".into() } else { bindings.iter().map(binding).collect::<Vec<_>>().join(", ") }
}

/// A limit in words.
pub fn rate(rate: Option<Rate>) -> String {
    match rate {
        None => "none".into(),
        Some(Rate { per_second, burst: None }) => format!("{per_second} a second"),
        Some(Rate { per_second, burst: Some(burst) }) => format!("{per_second} a second, {burst} at once"),
    }
}

fn card(topic: &TopicInfo) -> String {
    let settings = &topic.settings;
    let mut card = Card::default();
    card.fact("topic", &topic.name);
    card.fact("owner", settings.owner.as_deref().unwrap_or("-"));
    card.fact("feeds", feeds(topic));
    card.fact("paused", if settings.paused { "yes: new tasks are refused" } else { "no" });
    card.fact("history", format!("finished tasks are kept for {}", settings.history));
    card.fact("rate", rate(settings.rate));
    card.fact("priority", settings.priority);
    card.fact("time to live", or_never(settings.ttl, "none"));
    card.fact(
        "holds",
        format!(
            "{} waiting, {} leased, {} dead, {} in the history",
            grouped(topic.waiting),
            grouped(topic.leased),
            grouped(topic.dead),
            grouped(topic.history)
        ),
    );
    card.0
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_given_changes() {
        let before = TopicSettings { owner: Some("shop".into()), ttl: Some(Span(5)), ..TopicSettings::default() };
        let set = SetTopic { name: "t".into(), history: Some(Span(7)), ..SetTopic::default() };
        assert_eq!(set.patch().applied(before.clone()).unwrap(), TopicSettings { history: Span(7), ..before });
    }

    #[test]
    fn what_is_unset_is_gone_and_what_is_given_too_is_new() {
        let before = TopicSettings { owner: Some("shop".into()), ttl: Some(Span(5)), ..TopicSettings::default() };
        let set =
            SetTopic { unset: vec![TopicUnset::Owner, TopicUnset::Ttl], ttl: Some(Span(9)), ..SetTopic::default() };
        let after = set.patch().applied(before).unwrap();
        assert_eq!((after.owner, after.ttl), (None, Some(Span(9))));
    }

    #[test]
    fn a_rate_without_a_burst_has_none_left_of_the_one_before() {
        let before = TopicSettings { rate: Some(Rate { per_second: 500, burst: Some(2_000) }), ..Default::default() };
        let set = SetTopic { rate: Some("5".parse().unwrap()), ..SetTopic::default() };
        assert_eq!(set.patch().applied(before).unwrap().rate, Some(Rate { per_second: 5, burst: None }));
    }

    #[test]
    fn rates_are_read_with_and_without_a_burst() {
        let read = |text: &str| text.parse::<RateLimit>().map(|limit| limit.0);
        assert_eq!(read("500"), Ok(Rate { per_second: 500, burst: None }));
        assert_eq!(read("500:2000"), Ok(Rate { per_second: 500, burst: Some(2_000) }));
        for bad in ["", "0", "5:", ":5", "5:0", "many"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_binding_may_have_a_pattern() {
        assert_eq!(binding("audit"), Ok(Binding { queue: "audit".into(), pattern: None }));
        let paid = Binding { queue: "billing".into(), pattern: Some("order.*.paid".into()) };
        assert_eq!(binding("billing=order.*.paid"), Ok(paid));
        assert!(binding("=x").is_err() && binding("x=").is_err() && binding("").is_err());
    }
}
