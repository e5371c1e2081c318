//! `get` and `list`: looking at tasks, and going through lists page by page.

use clap::{Args, ValueEnum};
use punctual_client::{Client, Error};
use punctual_wire::{DeliveryState, First, List, ListDeliveries, ListState, Page, TaskInfo, Time};

use super::failure::{Failure, help};
use super::moment::Moment;
use super::output::{Output, grouped, note};
use super::{Session, show};

/// How many tasks are asked for at once when all are wanted; the server gives no more.
pub const PAGE: u32 = 1_000;

/// Show everything known about a task.
#[derive(Args, Debug)]
#[command(
    after_help = help!("Examples:\n  punctual get order-unpaid order-7\n  punctual get --number 4711"),
    override_usage = "punctual get <TOPIC> <ID>\n       punctual get --number <NUMBER>"
)]
pub struct GetArgs {
    /// The task's topic.
    #[arg(value_name = "TOPIC", requires = "id", required_unless_present = "number")]
    topic: Option<String>,
    /// The task's id.
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Instead, the task or delivery with this number, which is its job id at the beanstalk door.
    #[arg(long, conflicts_with_all = ["topic", "id"])]
    number: Option<u64>,
}

/// Looks at one task.
pub async fn get(args: GetArgs, mut session: Session) -> Result<(), Failure> {
    let (found, missing) = if let Some(number) = args.number {
        (session.client.numbered(number).await?, format!("there is no task or delivery with the number {number}"))
    } else {
        let (topic, id) = (args.topic.unwrap_or_default(), args.id.unwrap_or_default());
        let missing = format!("there is no task {id} in topic {topic}, nor in its history");
        (session.client.get(&topic, &id).await?, missing)
    };
    let task = found.ok_or_else(|| Failure::missing(missing))?;
    session.output.either(&task, || show::task_card(&task, Time::now()))
}

/// A state to list by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ByState {
    /// Waiting for their time.
    Scheduled,
    /// Waiting for a consumer.
    Ready,
    /// With a consumer.
    Leased,
    /// Broadcast to several queues.
    Spread,
    /// Dead letters.
    Dead,
    /// Finished.
    Finished,
}

impl From<ByState> for ListState {
    fn from(state: ByState) -> ListState {
        match state {
            ByState::Scheduled => ListState::Scheduled,
            ByState::Ready => ListState::Ready,
            ByState::Leased => ListState::Leased,
            ByState::Spread => ListState::Spread,
            ByState::Dead => ListState::Dead,
            ByState::Finished => ListState::Finished,
        }
    }
}

/// How much of a list is shown.
#[derive(Args, Clone, Debug, Default)]
pub struct Amount {
    /// Show at most N.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub limit: u32,
    /// Show all of them.
    #[arg(long, conflicts_with = "limit")]
    pub all: bool,
    /// Show bodies and headers, too.
    #[arg(long)]
    pub bodies: bool,
}

/// What is left out of a list; every task is looked at for it.
#[derive(Args, Clone, Debug, Default)]
pub struct Sift {
    /// Only those with this text in their id, key or routing key, or in the note of a dead letter.
    #[arg(long, value_name = "TEXT")]
    pub contains: Option<String>,
    /// Only those that were handed out at least N times.
    #[arg(long, value_name = "N")]
    pub attempts_min: Option<u32>,
    /// Count instead of listing, up to 10,000.
    #[arg(long, conflicts_with_all = ["limit", "all", "bodies"])]
    pub count: bool,
}

impl Sift {
    /// The list without what is left out.
    pub fn apply(self, list: List) -> List {
        let Sift { contains, attempts_min, count } = self;
        List { contains, attempts_min, count: count.then_some(true), ..list }
    }
}

/// A range of time.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Range {
    /// From this time on: RFC 3339, milliseconds since 1970, now, +2h or -15m.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<Moment>,
    /// Before this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub until: Option<Moment>,
}

const LIST_EXAMPLES: &str = help!(
    "\
Examples:
  punctual list --topic order-unpaid --until +1h
  punctual list --latest --limit 10
  punctual list --key user-1 --state finished
  punctual list --all --bodies --json | jq -r '.body.order'"
);

/// List tasks that are not finished, soonest first, or the tasks with a key.
#[derive(Args, Debug)]
#[command(after_help = LIST_EXAMPLES)]
pub struct ListArgs {
    /// Only tasks of this topic.
    #[arg(long)]
    topic: Option<String>,
    /// Only tasks in this state; dead and finished need --key (see also `punctual dead` and `punctual history`).
    #[arg(long)]
    state: Option<ByState>,
    /// Only tasks with this key, in the order in which they were scheduled.
    #[arg(long)]
    key: Option<String>,
    /// Only tasks that this consumer holds.
    #[arg(long, value_name = "CONSUMER")]
    holder: Option<String>,
    /// Latest first instead of soonest first.
    #[arg(long, conflicts_with = "key")]
    latest: bool,
    #[command(flatten)]
    sift: Sift,
    #[command(flatten)]
    range: Range,
    #[command(flatten)]
    amount: Amount,
}

/// Lists tasks.
pub async fn list(args: ListArgs, session: Session) -> Result<(), Failure> {
    let list = List {
        topic: args.topic,
        state: args.state.map(ListState::from),
        holder: args.holder,
        first: args.latest.then_some(First::Latest),
        from: args.range.from.map(Moment::time),
        until: args.range.until.map(Moment::time),
        ..List::default()
    };
    let source = args.key.map_or(Source::Tasks, Source::Key);
    print(session, source, args.sift.apply(list), &args.amount, "no tasks").await
}

/// Which list.
#[derive(Clone, Debug)]
pub enum Source {
    /// Tasks that are not finished.
    Tasks,
    /// Tasks of a key.
    Key(String),
    /// Dead letters.
    Dead,
    /// Finished tasks.
    History,
    /// What stands in a queue.
    Queue(String, DeliveryState),
}

/// A list that is read page by page.
pub struct Pages<'a> {
    client: &'a Client,
    source: Source,
    list: List,
    ended: bool,
}

impl<'a> Pages<'a> {
    /// From its beginning.
    pub fn new(client: &'a Client, source: Source, list: List) -> Pages<'a> {
        Pages { client, source, list, ended: false }
    }

    /// The next tasks, maybe none even if there are more; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<TaskInfo>>, Error> {
        if self.ended {
            return Ok(None);
        }
        let Page { tasks, next, .. } = self.ask().await?;
        self.ended = next.is_none();
        self.list.cursor = next;
        Ok(Some(tasks))
    }

    async fn ask(&self) -> Result<Page, Error> {
        match &self.source {
            Source::Tasks => self.client.list(&self.list).await,
            Source::Key(key) => self.client.list_key(key, &self.list).await,
            Source::Dead => self.client.dead(&self.list).await,
            Source::History => self.client.history(&self.list).await,
            Source::Queue(queue, state) => {
                let List { limit, cursor, .. } = self.list.clone();
                self.client.deliveries(queue, &ListDeliveries { state: *state, limit, cursor }).await
            }
        }
    }
}

/// Prints a list, page by page, so that a long one neither fills the memory nor keeps anybody waiting.
pub async fn print(
    mut session: Session,
    source: Source,
    mut list: List,
    amount: &Amount,
    none: &str,
) -> Result<(), Failure> {
    let mut left = if amount.all { u64::MAX } else { u64::from(amount.limit) };
    list.bodies = amount.bodies.then_some(true);
    list.limit = Some(PAGE.min(u32::try_from(left).unwrap_or(PAGE)).max(1));
    let mut printer = Printer::new(amount.bodies);
    let counts = list.count == Some(true);
    let mut pages = Pages::new(&session.client, source, list);
    if counts {
        let page = pages.ask().await?;
        return session.output.either(&page, || counted_in_words(&page));
    }
    while left > 0 {
        let Some(mut tasks) = pages.next().await? else { break };
        tasks.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        left -= tasks.len() as u64;
        printer.page(&tasks, &mut session.output)?;
    }
    if printer.printed == 0 && !session.output.json {
        note(none);
    } else if left == 0 && !pages.ended {
        note(format_args!("there may be more: use --all to see all of them, or --limit N to see more"));
    }
    Ok(())
}

/// How many there are, as far as they were counted.
fn counted_in_words(page: &Page) -> String {
    let count = grouped(page.count.unwrap_or_default());
    if page.more == Some(true) { format!("more than {count}") } else { count }
}

/// Prints tasks as lines of JSON, or as one table in several parts.
pub struct Printer {
    columns: super::output::Columns,
    bodies: bool,
    printed: u64,
}

impl Printer {
    /// With or without the bodies.
    pub fn new(bodies: bool) -> Printer {
        Printer { columns: show::task_table(bodies), bodies, printed: 0 }
    }

    /// Prints some more.
    pub fn page(&mut self, tasks: &[TaskInfo], output: &mut Output) -> Result<(), Failure> {
        self.printed += tasks.len() as u64;
        if output.json {
            tasks.iter().try_for_each(|task| output.json(task))?;
            return output.flush();
        }
        let now = Time::now();
        for task in tasks {
            self.columns.row(show::task_row(task, self.bodies, now));
        }
        if self.columns.is_empty() {
            return Ok(());
        }
        output.table(&self.columns)?;
        self.columns.next_page();
        output.flush()
    }
}
