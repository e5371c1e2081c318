//! `dead` and `history`: what was given up or finished, to look at, to replay and to purge.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use punctual_wire::{Ending, EndingChoice, First, List, Selection, Standing, Swept};

use super::change::swept_in_words;
use super::confirm::confirm;
use super::dead_groups::{self, GroupsArgs};
use super::failure::{Failure, help};
use super::look::{self, Amount, Range, Sift, Source};
use super::moment::Moment;
use super::output::counted;
use super::{Connection, Session, archive};

/// List dead letters, hand them out again, or remove them.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = help!("\
Examples:
  punctual dead --queue order-unpaid --reason out-of-attempts
  punctual dead groups --by reason,note
  punctual dead replay order-unpaid order-7
  punctual dead replay --queue order-unpaid --from -1h --dry-run
  punctual dead purge --topic order-unpaid --until -30d --yes")
)]
pub struct DeadArgs {
    #[command(subcommand)]
    command: Option<DeadCommand>,
    #[command(flatten)]
    list: DeadList,
}

#[derive(Subcommand, Debug)]
enum DeadCommand {
    /// List dead letters, latest first; the default.
    List(DeadList),
    /// Show what dead letters have in common, such as why they died, and how many of each there are.
    Groups(DeadGroupsLine),
    /// Hand out again: one dead letter (TOPIC ID), or all that match the filters.
    Replay(DeadWhich),
    /// Remove for good: one dead letter (TOPIC ID), or all that match the filters.
    Purge(DeadWhich),
}

#[derive(Args, Debug)]
struct DeadGroupsLine {
    #[command(flatten)]
    groups: GroupsArgs,
    /// Only those with this reason.
    #[arg(long, value_name = "REASON")]
    reason: Option<ReasonChoice>,
}

#[derive(Args, Debug)]
struct DeadList {
    #[command(flatten)]
    filters: Filters,
    /// Only those with this reason.
    #[arg(long, value_name = "REASON")]
    reason: Option<ReasonChoice>,
    /// Only those whose notes are like this, as `dead groups` tells it; '' for those without a note.
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    sift: Sift,
    #[command(flatten)]
    amount: Amount,
}

/// What dead letters and finished tasks are listed by.
#[derive(Args, Debug)]
pub struct Filters {
    /// Only those of this topic.
    #[arg(long)]
    pub topic: Option<String>,
    /// Only those of this queue.
    #[arg(long)]
    pub queue: Option<String>,
    /// Only those with this key; those scheduled last come first.
    #[arg(long)]
    pub key: Option<String>,
    #[command(flatten)]
    pub range: Range,
    /// Earliest first instead of latest first.
    #[arg(long)]
    pub earliest: bool,
}

impl Filters {
    fn list(self) -> List {
        List {
            topic: self.topic,
            queue: self.queue,
            key: self.key,
            from: self.range.from.map(Moment::time),
            until: self.range.until.map(Moment::time),
            first: Some(if self.earliest { First::Earliest } else { First::Latest }),
            ..List::default()
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReasonChoice {
    /// Its consumer rejected it.
    Rejected,
    /// Too many attempts failed.
    OutOfAttempts,
    /// Its time to live ended.
    Expired,
    /// Its queue was full.
    PushedOut,
    /// No queue takes it.
    Unrouted,
    /// The store no longer has its task.
    Lost,
}

impl ReasonChoice {
    pub fn word(self) -> &'static str {
        match self {
            ReasonChoice::Rejected => "rejected",
            ReasonChoice::OutOfAttempts => "out-of-attempts",
            ReasonChoice::Expired => "expired",
            ReasonChoice::PushedOut => "pushed-out",
            ReasonChoice::Unrouted => "unrouted",
            ReasonChoice::Lost => "lost",
        }
    }
}

#[derive(Args, Debug)]
struct DeadWhich {
    #[command(flatten)]
    which: Which,
    /// Only those of this queue; for a broadcast task, its dead letter in this queue.
    #[arg(long)]
    queue: Option<String>,
}

/// One task, or all that fit the filters.
#[derive(Args, Debug)]
struct Which {
    /// The topic of one task.
    #[arg(value_name = "TOPIC", requires = "id")]
    topic: Option<String>,
    /// The id of one task.
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Only those of this topic.
    #[arg(long = "topic", value_name = "TOPIC", conflicts_with = "id")]
    of_topic: Option<String>,
    /// Only those that died or finished from this time on: RFC 3339, milliseconds since 1970, or -1h.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with = "id")]
    from: Option<Moment>,
    /// Only those that died or finished before this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with = "id")]
    until: Option<Moment>,
    /// All of them, without any filter.
    #[arg(long, conflicts_with = "id")]
    all: bool,
    /// Only count, change nothing.
    #[arg(long, conflicts_with = "id")]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long, short)]
    yes: bool,
}

impl Which {
    /// The filters; refused if there are none and it was not said that all are meant.
    fn selection(&self, queue: Option<String>) -> Result<Selection, Failure> {
        let selection = Selection {
            topic: self.of_topic.clone(),
            queue,
            from: self.from.map(Moment::time),
            until: self.until.map(Moment::time),
            ending: None,
            all: self.all,
            dry_run: true,
        };
        let open = Selection { dry_run: true, ..Selection::default() };
        if selection == open {
            return Err(Failure::usage("name a task (TOPIC ID), give a filter, or use --all"));
        }
        Ok(selection)
    }

    fn one(&self) -> Option<(&str, &str)> {
        Some((self.topic.as_deref()?, self.id.as_deref()?))
    }
}

/// Filters that only dead letters or only finished tasks have.
struct Only {
    queue: Option<String>,
    ending: Option<EndingChoice>,
}

/// What a sweep does.
#[derive(Clone, Copy, Debug)]
enum Bulk {
    ReplayDead,
    PurgeDead,
    ReplayHistory,
}

impl Bulk {
    async fn send(self, session: &Session, selection: Selection) -> Result<Swept, Failure> {
        Ok(match self {
            Bulk::ReplayDead => session.client.replay_dead(selection).await?,
            Bulk::PurgeDead => session.client.purge_dead(selection).await?,
            Bulk::ReplayHistory => session.client.replay_history(selection).await?,
        })
    }

    fn one(self) -> &'static str {
        if matches!(self, Bulk::ReplayHistory) { "finished task" } else { "dead letter" }
    }

    fn verb(self) -> &'static str {
        if matches!(self, Bulk::PurgeDead) { "purge" } else { "replay" }
    }

    fn done(self) -> &'static str {
        if matches!(self, Bulk::PurgeDead) { "purged" } else { "replayed" }
    }

    /// Counts first, asks, then does it.
    async fn run(self, which: &Which, only: Only, mut session: Session) -> Result<(), Failure> {
        let Only { queue, ending } = only;
        if let Some((topic, id)) = which.one() {
            return self.run_one(topic, id, queue.as_deref(), session).await;
        }
        let mut selection = Selection { ending, ..which.selection(queue)? };
        if !which.dry_run {
            if !which.yes {
                let counted_first = self.send(&session, selection.clone()).await?;
                if counted_first.changed == 0 {
                    return session
                        .output
                        .either(&counted_first, || format!("no {} matches, nothing to do", self.one()));
                }
                let question = format!("{} {}?", capital(self.verb()), counted(counted_first.changed, self.one()));
                confirm(&question, false)?;
            }
            selection.dry_run = false;
        }
        let swept = self.send(&session, selection).await?;
        let done = if which.dry_run { format!("would be {}", self.done()) } else { self.done().into() };
        session.output.either(&swept, || swept_in_words(&swept, self.one(), &done))
    }

    async fn run_one(self, topic: &str, id: &str, queue: Option<&str>, mut session: Session) -> Result<(), Failure> {
        let standing = match self {
            Bulk::PurgeDead => session.client.purge(topic, id, queue).await.map(|()| None)?,
            Bulk::ReplayDead | Bulk::ReplayHistory => Some(session.client.replay(topic, id, queue).await?),
        };
        let is_dead = matches!(standing, Some(Standing::Dead { .. }));
        let swept = Swept { matched: 1, changed: u64::from(!is_dead), too_late: 0, no_room: u64::from(is_dead) };
        let pushed_out = if is_dead { ", and pushed out again: the queue is full" } else { "" };
        session.output.either(&swept, || format!("{} {topic} {id}{pushed_out}", self.done()))
    }
}

fn capital(word: &str) -> String {
    let mut word = word.to_owned();
    word[..1].make_ascii_uppercase();
    word
}

/// Does what was asked for with dead letters.
pub async fn dead(args: DeadArgs, session: Session) -> Result<(), Failure> {
    match args.command.unwrap_or(DeadCommand::List(args.list)) {
        DeadCommand::List(args) => {
            let reason = args.reason.map(|reason| reason.word().into());
            let list = List { reason, note: args.note, ..args.filters.list() };
            look::print(session, Source::Dead, args.sift.apply(list), &args.amount, "no dead letters").await
        }
        DeadCommand::Groups(DeadGroupsLine { groups, reason }) => {
            dead_groups::run(groups, reason.map(ReasonChoice::word), session).await
        }
        DeadCommand::Replay(DeadWhich { which, queue }) => {
            Bulk::ReplayDead.run(&which, Only { queue, ending: None }, session).await
        }
        DeadCommand::Purge(DeadWhich { which, queue }) => {
            Bulk::PurgeDead.run(&which, Only { queue, ending: None }, session).await
        }
    }
}

/// List finished tasks, or schedule them once more.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = help!("\
Examples:
  punctual history --topic order-unpaid --from -1h
  punctual history --key user-1 --ending cancelled
  punctual history replay order-unpaid order-7
  punctual history replay --topic order-unpaid --from 2026-07-01T08:00:00Z --until 2026-07-01T09:00:00Z
  punctual history --archive /var/lib/punctual/archive --topic order-unpaid --all")
)]
pub struct HistoryArgs {
    #[command(subcommand)]
    command: Option<HistoryCommand>,
    #[command(flatten)]
    list: HistoryList,
}

#[derive(Subcommand, Debug)]
enum HistoryCommand {
    /// List finished tasks, latest first; the default.
    List(HistoryList),
    /// Schedule once more, due at once: one task (TOPIC ID), or all tasks of a topic that match the filters.
    Replay(HistoryWhich),
}

#[derive(Args, Debug)]
struct HistoryWhich {
    #[command(flatten)]
    which: Which,
    /// Only tasks with this ending; by default only those that are done. Cancelled tasks stay cancelled unless asked for.
    #[arg(long, conflicts_with = "id")]
    ending: Option<EndingName>,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EndingName {
    /// A consumer acknowledged it.
    Done,
    /// It was cancelled.
    Cancelled,
    /// It was a dead letter and went on to another topic.
    Forwarded,
    /// It was a dead letter and was removed.
    Purged,
    /// Any ending.
    Any,
}

impl EndingName {
    /// The ending that lists are filtered by; `None` for any.
    pub fn one(self) -> Option<Ending> {
        match self {
            EndingName::Done => Some(Ending::Done),
            EndingName::Cancelled => Some(Ending::Cancelled),
            EndingName::Forwarded => Some(Ending::Forwarded),
            EndingName::Purged => Some(Ending::Purged),
            EndingName::Any => None,
        }
    }

    fn choice(self) -> EndingChoice {
        match self {
            EndingName::Done => EndingChoice::Done,
            EndingName::Cancelled => EndingChoice::Cancelled,
            EndingName::Forwarded => EndingChoice::Forwarded,
            EndingName::Purged => EndingChoice::Purged,
            EndingName::Any => EndingChoice::Any,
        }
    }
}

#[derive(Args, Debug)]
pub struct HistoryList {
    #[command(flatten)]
    pub filters: Filters,
    /// Only tasks with this ending.
    #[arg(long)]
    pub ending: Option<EndingName>,
    #[command(flatten)]
    pub sift: Sift,
    #[command(flatten)]
    pub amount: Amount,
    /// Read the archive files in this directory instead, in their order. Needs no server.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["earliest", "contains", "attempts_min", "count"])]
    pub archive: Option<PathBuf>,
    /// With --archive: only with this id.
    #[arg(long, requires = "archive")]
    pub id: Option<String>,
}

/// Does what was asked for with finished tasks.
pub async fn history(args: HistoryArgs, connection: &Connection) -> Result<(), Failure> {
    match args.command.unwrap_or(HistoryCommand::List(args.list)) {
        HistoryCommand::List(args) => {
            if let Some(directory) = &args.archive {
                return archive::print(directory, &args, connection.output());
            }
            let list = List { ending: args.ending.and_then(EndingName::one), ..args.filters.list() };
            let list = args.sift.apply(list);
            look::print(connection.session()?, Source::History, list, &args.amount, "no finished tasks").await
        }
        HistoryCommand::Replay(HistoryWhich { which, ending }) => {
            if which.all {
                return Err(Failure::usage(
                    "--all is for dead letters: for the history, give --topic and --ending any",
                ));
            }
            if which.one().is_none() && which.of_topic.is_none() {
                return Err(Failure::usage("name a task (TOPIC ID), or give a topic with --topic"));
            }
            let ending = ending.map(EndingName::choice);
            Bulk::ReplayHistory.run(&which, Only { queue: None, ending }, connection.session()?).await
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        which: DeadWhich,
    }

    fn which(line: &str) -> Result<DeadWhich, clap::Error> {
        Line::try_parse_from(["x"].into_iter().chain(line.split_whitespace())).map(|line| line.which)
    }

    #[test]
    fn everything_must_be_asked_for_in_so_many_words() {
        assert!(which("").unwrap().which.selection(None).is_err());
        assert!(which("--all").unwrap().which.selection(None).is_ok());
        assert!(which("--topic t").unwrap().which.selection(None).is_ok());
        assert!(which("").unwrap().which.selection(Some("q".into())).is_ok());
    }

    #[test]
    fn a_single_task_takes_no_filters_but_its_queue() {
        assert_eq!(which("t i").unwrap().which.one(), Some(("t", "i")));
        assert!(which("t i --queue q").is_ok());
        assert!(which("t i --from -1h").is_err());
        assert!(which("t i --all").is_err());
        assert!(which("t").is_err());
    }
}
