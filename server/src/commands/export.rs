//! `export`: settings and tasks as lines of JSON, for another server or another version.
//!
//! It reads page by page while tasks go on living, so it is no snapshot: what changes meanwhile may be
//! there in its old or its new state.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use punctual_wire::{First, List, ListState, TaskInfo, Time};

use super::Session;
use super::failure::{Failure, help};
use super::line::is_part;
use super::look::{PAGE, Pages, Source};
use super::output::{counted, grouped, json_line, note};
use super::settings_line;

/// Export settings and tasks to a file, as JSON lines.
///
/// Writes the settings of topics and queues, then, by default, all tasks that are not finished. The server keeps working meanwhile, so
/// it is not a snapshot. Read it back with `punctual import`.
#[derive(Args, Debug)]
#[command(after_help = help!("\
Examples:
  punctual export tasks.jsonl
  punctual export --topic order-unpaid - | gzip > order-unpaid.jsonl.gz
  punctual export --state all everything.jsonl"))]
pub struct ExportArgs {
    /// The file to write; - is stdout.
    file: PathBuf,
    /// Only tasks of this topic.
    #[arg(long)]
    topic: Option<String>,
    /// Which tasks to export.
    #[arg(long, value_enum, default_value_t = Part::Live)]
    state: Part,
    /// Leave out the settings of topics and queues.
    #[arg(long)]
    no_settings: bool,
}

/// A part of all tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Tasks that are not finished.
    Live,
    /// Dead letters.
    Dead,
    /// Finished tasks that are still kept.
    Finished,
    /// All of them.
    All,
}

/// Writes the export.
pub async fn run(args: ExportArgs, session: Session) -> Result<(), Failure> {
    let to_stdout = args.file.as_os_str() == "-";
    let mut sheet = if to_stdout { Sheet::stdout() } else { Sheet::create(&args.file)? };
    if !args.no_settings {
        for line in settings_line::all(&session.client, args.topic.as_deref()).await? {
            sheet.to.write_all(&json_line(&line)?).map_err(|error| sheet.failure(error))?;
        }
    }
    let bar = progress(expected(&args, &session).await?, "exported");
    let mut export = Export { session: &session, topic: args.topic.clone(), seen: HashSet::new(), written: 0, bar };
    if matches!(args.state, Part::Live | Part::All) {
        export.spread(&mut sheet).await?;
        export.copy(Source::Tasks, &mut sheet).await?;
    }
    if matches!(args.state, Part::Dead | Part::All) {
        export.copy(Source::Dead, &mut sheet).await?;
    }
    if matches!(args.state, Part::Finished | Part::All) {
        export.copy(Source::History, &mut sheet).await?;
    }
    sheet.finish()?;
    export.bar.finish_and_clear();
    let to = if to_stdout { "stdout".into() } else { args.file.display().to_string() };
    note(format_args!("exported {} to {to}", counted(export.written, "task")));
    Ok(())
}

/// About how many there are, for the bar.
async fn expected(args: &ExportArgs, session: &Session) -> Result<u64, Failure> {
    let topics = session.client.topics().await?;
    let topics = topics.iter().filter(|topic| args.topic.as_ref().is_none_or(|name| *name == topic.name));
    Ok(topics
        .map(|topic| match args.state {
            Part::Live => topic.waiting + topic.leased,
            Part::Dead => topic.dead,
            Part::Finished => topic.history,
            Part::All => topic.waiting + topic.leased + topic.dead + topic.history,
        })
        .sum())
}

/// A bar on stderr; it stays away if that is no terminal.
pub fn progress(length: u64, what: &str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    let template = format!("{{bar:30}} {{human_pos}} of {{human_len}} {what}, {{rate}} a second, {{eta}} left");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        let rate = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            // What cannot be written is only not seen.
            let _ = text.write_str(&grouped(state.per_sec() as u64));
        };
        bar.set_style(style.with_key("rate", rate));
    }
    bar
}

/// An export on its way.
struct Export<'a> {
    session: &'a Session,
    topic: Option<String>,
    /// Tasks whose deliveries are listed as well, each without the body.
    seen: HashSet<(String, String)>,
    written: u64,
    bar: ProgressBar,
}

impl Export<'_> {
    fn list(&self) -> List {
        let topic = self.topic.clone();
        List { topic, bodies: Some(true), limit: Some(PAGE), ..List::default() }
    }

    /// First the tasks that were broadcast, so that their deliveries are known when they are met. They
    /// wait at the end of all times.
    async fn spread(&mut self, sheet: &mut Sheet) -> Result<(), Failure> {
        let list = List { state: Some(ListState::Spread), from: Some(Time::LAST), ..self.list() };
        let session = self.session;
        let mut pages = Pages::new(&session.client, Source::Tasks, list);
        while let Some(tasks) = pages.next().await? {
            for task in tasks {
                self.seen.insert((task.topic.clone(), task.id.clone()));
                self.write(&task, sheet)?;
            }
        }
        Ok(())
    }

    /// All tasks of a list, except those that were met before.
    async fn copy(&mut self, source: Source, sheet: &mut Sheet) -> Result<(), Failure> {
        let session = self.session;
        // What is added meanwhile comes at the end.
        let first = matches!(source, Source::Dead | Source::History).then_some(First::Earliest);
        let mut pages = Pages::new(&session.client, source, List { first, ..self.list() });
        while let Some(tasks) = pages.next().await? {
            for task in tasks {
                let name = (task.topic.clone(), task.id.clone());
                if self.seen.contains(&name) {
                    continue;
                }
                if is_part(&task) {
                    // Broadcast since the beginning, or indeed without a body: the task itself says which.
                    let whole = session.client.get(&task.topic, &task.id).await?;
                    self.seen.insert(name);
                    self.write(&whole.unwrap_or(task), sheet)?;
                } else {
                    self.write(&task, sheet)?;
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, task: &TaskInfo, sheet: &mut Sheet) -> Result<(), Failure> {
        sheet.to.write_all(&json_line(task)?).map_err(|error| sheet.failure(error))?;
        self.written += 1;
        self.bar.inc(1);
        Ok(())
    }
}

/// Where the lines go. A file appears under its name when it is whole, and not before.
struct Sheet {
    to: BufWriter<Box<dyn Write + Send>>,
    file: Option<(PathBuf, PathBuf)>,
}

impl Sheet {
    fn stdout() -> Sheet {
        Sheet { to: BufWriter::new(Box::new(io::stdout())), file: None }
    }

    fn create(path: &Path) -> Result<Sheet, Failure> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let file = File::create(&part)
            .map_err(|error| Failure::local(format_args!("{} cannot be written", part.display()), error))?;
        Ok(Sheet { to: BufWriter::with_capacity(1 << 16, Box::new(file)), file: Some((part, path.to_owned())) })
    }

    fn failure(&self, error: io::Error) -> Failure {
        match &self.file {
            Some((part, _)) => Failure::local(format_args!("{} cannot be written", part.display()), error),
            None => Failure::from(error),
        }
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.to.flush().map_err(|error| self.failure(error))?;
        if let Some((part, path)) = &self.file {
            std::fs::rename(part, path)
                .map_err(|error| Failure::local(format_args!("{} cannot be named", path.display()), error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_when_it_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tasks.jsonl");
        let mut sheet = Sheet::create(&path).unwrap();
        sheet.to.write_all(b"{}\n").unwrap();
        assert!(!path.exists());
        sheet.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"{}\n");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
