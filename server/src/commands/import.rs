//! `import`: puts the settings of an export in place and schedules its tasks, with their ids, so that a second run
//! changes nothing.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use punctual_client::{Client, Error};
use punctual_wire::{NewTask, Problem, ScheduleOutcome};
use serde::Serialize;
use tokio::task::JoinSet;

use super::Session;
use super::failure::{Exit, Failure, help};
use super::line::{Kind, Line};
use super::output::{counted, grouped, note};
use super::settings_line::SettingsLine;

/// How many tasks are sent together.
const BATCH: usize = 500;

/// How many bytes of lines are sent together at most, well below what a server takes in one request.
const BATCH_BYTES: usize = 4 << 20;

/// How many batches are under way at once, so that neither side waits for the other.
const UNDER_WAY: usize = 4;

/// Whether it was told that the server slows the import down.
static SLOWED: Once = Once::new();

/// How many refusals are told one by one.
const TOLD: u64 = 10;

/// Import an export: schedule its tasks, and apply the settings of its topics and queues.
///
/// A topic or queue that already exists keeps its settings.
/// Tasks keep their ids, due times, headers, keys, routing keys, priorities, times to live, lease times and retry policies. A task
/// whose id already exists is left as it is, so an interrupted import can be run again. A task with a due time in the past is due at once.
#[derive(Args, Debug)]
#[command(after_help = help!("\
Examples:
  punctual import tasks.jsonl
  zcat order-unpaid.jsonl.gz | punctual import -
  punctual import everything.jsonl --state dead

A line needs topic, id and due; body, text or base64, headers, key, routing_key, priority, ttl, lease,
max_lease and retry are optional."))]
pub struct ImportArgs {
    /// The file to read; - is stdin.
    file: PathBuf,
    /// Which tasks to import. Dead letters and finished tasks would be handed out once more, so they must be asked for.
    #[arg(long, value_enum, default_value_t = Part::Live)]
    state: Part,
    /// Skip the settings of topics and queues.
    #[arg(long)]
    no_settings: bool,
}

/// Which lines of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Tasks that are not finished.
    Live,
    /// Dead letters.
    Dead,
    /// Finished tasks.
    Finished,
    /// All of them.
    All,
}

impl Part {
    fn takes(self, kind: Kind) -> bool {
        match self {
            Part::All => true,
            Part::Live => kind == Kind::Live,
            Part::Dead => kind == Kind::Dead,
            Part::Finished => kind == Kind::Finished,
        }
    }
}

/// What an import did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// New tasks.
    pub created: u64,
    /// Tasks that were there already.
    pub existed: u64,
    /// Topics and queues that got their settings.
    pub settings: u64,
    /// Lines that were not asked for.
    pub skipped: u64,
    /// Lines that cannot be used, and tasks that the server does not take.
    pub refused: u64,
}

/// Reads the file and schedules what is in it.
pub async fn run(args: ImportArgs, mut session: Session) -> Result<(), Failure> {
    let source = Lines::open(&args.file)?;
    let mut import = Import {
        client: session.client.clone(),
        so_far: Imported::default(),
        bar: source.bar.clone(),
        under_way: JoinSet::new(),
        takes_settings: !args.no_settings,
        settings: Vec::new(),
    };
    let result = import.read(source, args.state).await;
    import.bar.finish_and_clear();
    let done = import.so_far;
    session.output.either(&done, || in_words(&done))?;
    result?;
    if done.refused == 0 {
        return Ok(());
    }
    let message = format!("{} refused: correct them and import again", counted(done.refused, "line"));
    Err(Failure::new(Exit::Failed, message))
}

fn in_words(done: &Imported) -> String {
    let mut text = format!("imported {}, {} already existed", counted(done.created, "task"), grouped(done.existed));
    if done.settings > 0 {
        let named = if done.settings == 1 { "topic or queue" } else { "topics and queues" };
        text.push_str(&format!(", settings of {} {named}", grouped(done.settings)));
    }
    if done.skipped > 0 {
        text.push_str(&format!(", {} not asked for (see --state)", grouped(done.skipped)));
    }
    if done.refused > 0 {
        text.push_str(&format!(", {} refused", grouped(done.refused)));
    }
    text
}

/// An import on its way.
struct Import {
    client: Client,
    so_far: Imported,
    bar: ProgressBar,
    under_way: JoinSet<Result<Sent, Error>>,
    takes_settings: bool,
    /// Those that were put in place.
    settings: Vec<SettingsLine>,
}

/// Tasks to send together, each with the number of its line.
type Batch = Vec<(u64, NewTask)>;

/// What became of a batch.
#[derive(Default)]
struct Sent {
    created: u64,
    existed: u64,
    refused: Vec<(u64, Problem)>,
}

impl Import {
    async fn read(&mut self, mut source: Lines, part: Part) -> Result<(), Failure> {
        let mut batch = Batch::with_capacity(BATCH);
        let mut bytes = 0;
        while let Some(line) = source.next()? {
            if let Some(settings) = SettingsLine::read(&line) {
                match settings {
                    Ok(settings) => self.put(settings).await?,
                    Err(bad) => self.refuse(source.number, bad),
                }
                continue;
            }
            let task = match Line::read(&line) {
                Ok(line) if !part.takes(line.kind()) => {
                    self.so_far.skipped += 1;
                    continue;
                }
                Ok(line) => line.into_task(),
                Err(bad) => Err(bad),
            };
            match task {
                Ok(task) => batch.push((source.number, task)),
                Err(bad) => self.refuse(source.number, bad),
            }
            bytes += line.len();
            if batch.len() == BATCH || bytes >= BATCH_BYTES {
                self.send(std::mem::replace(&mut batch, Batch::with_capacity(BATCH))).await?;
                bytes = 0;
            }
        }
        self.send(batch).await?;
        while !self.under_way.is_empty() {
            self.hear().await?;
        }
        for settings in &self.settings {
            settings.pause(&self.client).await?;
        }
        Ok(())
    }

    async fn put(&mut self, settings: SettingsLine) -> Result<(), Failure> {
        if !self.takes_settings {
            self.so_far.skipped += 1;
        } else if settings.put(&self.client).await? {
            self.so_far.settings += 1;
            self.settings.push(settings);
        }
        Ok(())
    }

    /// Sends a batch as soon as there is room for it.
    async fn send(&mut self, batch: Batch) -> Result<(), Failure> {
        while self.under_way.len() >= UNDER_WAY {
            self.hear().await?;
        }
        self.under_way.spawn(schedule(self.client.clone(), batch, self.bar.clone()));
        Ok(())
    }

    /// Waits for what became of one batch.
    async fn hear(&mut self) -> Result<(), Failure> {
        let Some(sent) = self.under_way.join_next().await else { return Ok(()) };
        let Sent { created, existed, refused } =
            sent.map_err(|error| Failure::local("a part of the import crashed", error))??;
        self.so_far.created += created;
        self.so_far.existed += existed;
        for (number, problem) in refused {
            self.refuse(number, problem);
        }
        Ok(())
    }

    fn refuse(&mut self, number: u64, why: impl std::fmt::Display) {
        self.so_far.refused += 1;
        match self.so_far.refused {
            1..TOLD => self.bar.suspend(|| note(format_args!("line {number}: {why}"))),
            TOLD => self.bar.suspend(|| note(format_args!("line {number}: {why}; further errors are only counted"))),
            _ => {}
        }
    }
}

/// Schedules a batch. What the server only puts off is sent again until it is taken.
async fn schedule(client: Client, mut batch: Batch, bar: ProgressBar) -> Result<Sent, Error> {
    let mut sent = Sent::default();
    while !batch.is_empty() {
        let tasks = batch.iter().map(|(_, task)| task.clone()).collect();
        let answers = client.schedule_many(tasks).await?;
        let mut again = Batch::new();
        let mut wait = Duration::ZERO;
        for ((number, task), answer) in batch.into_iter().zip(answers) {
            match answer {
                Ok(scheduled) => match scheduled.outcome {
                    ScheduleOutcome::Created | ScheduleOutcome::Replaced => sent.created += 1,
                    ScheduleOutcome::Existed => sent.existed += 1,
                },
                Err(Problem { retry_after: Some(after), .. }) => {
                    wait = wait.max(after.as_duration());
                    again.push((number, task));
                }
                Err(problem) => sent.refused.push((number, problem)),
            }
        }
        if !again.is_empty() {
            // Once is enough: a topic with a limit asks for it again and again.
            SLOWED.call_once(|| bar.suspend(|| note("the server is busy; continuing at the pace it allows")));
            tokio::time::sleep(wait.max(Duration::from_millis(10))).await;
        }
        batch = again;
    }
    Ok(sent)
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// The lines of a file, and how far it was read.
struct Lines {
    from: Box<dyn BufRead + Send>,
    number: u64,
    bar: ProgressBar,
    name: String,
}

impl Lines {
    fn open(path: &Path) -> Result<Lines, Failure> {
        if path.as_os_str() == "-" {
            let bar = styled(ProgressBar::new_spinner(), "{bytes} imported, {bytes_per_sec}");
            return Ok(Lines { from: Box::new(BufReader::new(io::stdin())), number: 0, bar, name: "stdin".into() });
        }
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| Failure::local(format_args!("{name} cannot be read"), error))?;
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        let bar =
            styled(ProgressBar::new(length), "{bar:30} {bytes} of {total_bytes} imported, {bytes_per_sec}, {eta} left");
        Ok(Lines { from: Box::new(BufReader::with_capacity(1 << 16, file)), number: 0, bar, name })
    }

    /// The next line that is not empty.
    fn next(&mut self) -> Result<Option<String>, Failure> {
        loop {
            let mut line = String::new();
            let read = self.from.read_line(&mut line);
            let read = read.map_err(|error| Failure::local(format_args!("{} cannot be read", self.name), error))?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            self.bar.inc(read as u64);
            if !line.trim().is_empty() {
                return Ok(Some(line));
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    #[test]
    fn finished_tasks_are_imported_only_if_asked_for() {
        assert!(Part::Live.takes(Kind::Live));
        assert!(!Part::Live.takes(Kind::Finished) && !Part::Live.takes(Kind::Dead));
        assert!(Part::Dead.takes(Kind::Dead) && !Part::Dead.takes(Kind::Live));
        assert!(Part::All.takes(Kind::Finished));
    }

    #[test]
    fn empty_lines_are_counted_but_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lines");
        std::fs::write(&path, "a\n\n  \nb").unwrap();
        let mut lines = Lines::open(&path).unwrap();
        assert_eq!(lines.next().unwrap().as_deref(), Some("a\n"));
        assert_eq!(lines.next().unwrap().as_deref(), Some("b"));
        assert_eq!(lines.number, 4);
        assert_eq!(lines.next().unwrap(), None);
    }

    #[test]
    fn a_second_import_says_that_everything_existed() {
        let done = Imported { existed: 1_200, ..Imported::default() };
        assert_eq!(in_words(&done), "imported 0 tasks, 1,200 already existed");
    }
}
