//! `topics`: looking at topics, and telling them what to do.

use clap::{Args, Subcommand};
use punctual_wire::{Binding, PauseTopic, Time, TopicInfo, TopicSettings};

use super::Session;
use super::confirm::confirm_deletion;
use super::failure::{Failure, help};
use super::moment::or_never;
use super::output::{Columns, grouped};
use super::settings::{Set, rate_in_words, tell_others};
use super::show::Card;

/// List topics, and change their settings.
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
    /// List all topics; the default.
    List,
    /// Show a topic and its settings.
    Show {
        /// Its name.
        name: String,
    },
    /// Change the settings of a topic, or create it; settings not given stay as they are.
    Set(Set<TopicSettings>),
    /// Pause a topic, so that it refuses new tasks; existing tasks are not affected.
    Pause {
        /// Its name.
        name: String,
        /// Why: shown with the topic until it is resumed.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Resume a topic, so that it accepts new tasks again.
    Resume {
        /// Its name.
        name: String,
    },
    /// Delete a topic.
    Delete {
        /// Its name.
        name: String,
        /// Delete it even if it is not empty, with its tasks, dead letters and history.
        #[arg(long)]
        force: bool,
        /// Do not ask for confirmation.
        #[arg(long, short)]
        yes: bool,
    },
}

/// Does what was asked for.
pub async fn run(args: TopicsArgs, mut session: Session) -> Result<(), Failure> {
    match args.command.unwrap_or(TopicsCommand::List) {
        TopicsCommand::List => {
            let none = "no topics: one is created when a task is scheduled in it";
            session.output.list(&session.client.topics().await?, none, table)
        }
        TopicsCommand::Show { name } => {
            let topic = session.client.topic(&name).await?.ok_or_else(|| Failure::no_such("topic", &name))?;
            session.output.either(&topic, || card(&topic))
        }
        TopicsCommand::Set(set) => {
            let (client, Set { name, patch, version, .. }) = (&session.client, set);
            let topic = match version {
                Some(version) => client.patch_topic_if(&name, &patch, &version).await?,
                None => match client.patch_topic(&name, &patch).await? {
                    None => Some(client.put_topic(&name, patch.applied(TopicSettings::default())?).await?),
                    patched => patched,
                },
            };
            let topic = topic.ok_or_else(|| Failure::no_such("topic", &name))?;
            session.output.either(&topic, || card(&topic))
        }
        TopicsCommand::Pause { name, reason } => {
            let topic = session.client.pause_topic(&name, PauseTopic { reason }).await?;
            let text = format!("topic {name} is paused: new tasks are refused until it is resumed");
            session.output.either(&topic, || text)
        }
        TopicsCommand::Resume { name } => {
            let topic = session.client.resume_topic(&name).await?;
            session.output.either(&topic, || format!("topic {name} is resumed: it accepts new tasks"))
        }
        TopicsCommand::Delete { name, force, yes } => {
            if force {
                let topic = session.client.topic(&name).await?.ok_or_else(|| Failure::no_such("topic", &name))?;
                let held = topic.waiting + topic.leased + topic.dead + topic.history;
                confirm_deletion(&format!("topic {name}"), held, yes)?;
            }
            let rows = session.client.delete_topic(&name, force).await?;
            session.output.deleted(&format!("topic {name}"), rows)
        }
    }
}

fn table(topics: &[TopicInfo]) -> Columns {
    let mut columns = Columns::new(&["TOPIC", "#WAITING", "#LEASED", "#DEAD", "#HISTORY", "FEEDS", "OWNER", "PAUSED"]);
    for topic in topics {
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
    columns
}

fn feeds(topic: &TopicInfo) -> String {
    let Some(bindings) = &topic.settings.feeds else { return topic.name.clone() };
    let binding = |binding: &Binding| match &binding.pattern {
        Some(pattern) => format!("{}={pattern}", binding.queue),
        None => binding.queue.clone(),
    };
    if bindings.is_empty() { "nothing".into() } else { bindings.iter().map(binding).collect::<Vec<_>>().join(", ") }
}

/// The settings that a card tells in words of its own.
const TOLD: [&str; 7] = ["owner", "feeds", "paused", "history", "rate", "priority", "ttl"];

fn card(topic: &TopicInfo) -> String {
    let settings = &topic.settings;
    let mut card = Card::default();
    card.fact("topic", &topic.name);
    card.fact("owner", settings.owner.as_deref().unwrap_or("-"));
    card.fact("feeds", feeds(topic));
    card.fact("paused", if settings.paused { "yes: new tasks are refused" } else { "no" });
    card.pause(topic.pause.as_ref(), Time::now());
    card.fact("history", format!("finished tasks are kept for {}", settings.history));
    card.fact("rate", rate_in_words(settings.rate));
    card.fact("priority", settings.priority);
    card.fact("time to live", or_never(settings.ttl, "none"));
    tell_others(&mut card, settings, &TOLD);
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
    card.fact("version", &topic.version);
    card.0
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use punctual_wire::{Happened, Rate, Span};
    use serde_json::json;

    use super::super::settings_tests::{every_setting_shows, set};
    use super::*;

    /// What a line makes of settings.
    fn after(line: &str, before: &TopicSettings) -> TopicSettings {
        let set: Set<TopicSettings> = set(line).unwrap();
        set.patch.applied(before.clone()).unwrap()
    }

    #[test]
    fn only_what_is_given_changes() {
        let before = TopicSettings { owner: Some("shop".into()), ttl: Some(Span(5)), ..TopicSettings::default() };
        assert_eq!(after("t --history 7ms", &before), TopicSettings { history: Span(7), ..before });
    }

    #[test]
    fn what_is_unset_is_gone_and_what_is_given_too_is_new() {
        let before = TopicSettings { owner: Some("shop".into()), ttl: Some(Span(5)), ..TopicSettings::default() };
        let after = after("t --unset owner --unset ttl --ttl 9ms", &before);
        assert_eq!((after.owner, after.ttl), (None, Some(Span(9))));
    }

    #[test]
    fn a_rate_without_a_burst_has_none_left_of_the_one_before() {
        let before = TopicSettings { rate: Some(Rate { per_second: 500, burst: Some(2_000) }), ..Default::default() };
        assert_eq!(after("t --rate 5", &before).rate, Some(Rate { per_second: 5, burst: None }));
    }

    #[test]
    fn rates_are_read_with_and_without_a_burst() {
        let read = |text: &str| after(&format!("t --rate {text}"), &TopicSettings::default()).rate;
        assert_eq!(read("500"), Some(Rate { per_second: 500, burst: None }));
        assert_eq!(read("500:2000"), Some(Rate { per_second: 500, burst: Some(2_000) }));
        for bad in ["", "0", "5:", ":5", "5:0", "many"] {
            assert!(set::<TopicSettings>(&format!("t --rate={bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_binding_may_have_a_pattern() {
        let line = "t --feeds audit --feeds billing=order.*.paid";
        let audit = Binding { queue: "audit".into(), pattern: None };
        let paid = Binding { queue: "billing".into(), pattern: Some("order.*.paid".into()) };
        assert_eq!(after(line, &TopicSettings::default()).feeds, Some(vec![audit, paid]));
        for bad in ["=x", "x=", ""] {
            assert!(set::<TopicSettings>(&format!("t --feeds={bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_card_tells_every_setting() {
        every_setting_shows::<TopicSettings>(|settings| {
            let mut json = json!({ "name": "t", "settings": settings, "waiting": 0, "leased": 0, "dead": 0 });
            (json["history"], json["happened"]) = (json!(0), json!(Happened::default()));
            card(&serde_json::from_value(json).unwrap())
        });
    }
}
