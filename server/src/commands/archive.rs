//! `history --archive`: reads the archive files of a server, without the server.

use std::path::Path;

use punctual_wire::TaskInfo;

use super::failure::{Exit, Failure};
use super::letters::{EndingName, HistoryList};
use super::look::{PAGE, Printer};
use super::moment::Moment;
use super::output::{Output, counted, note};
use crate::archive::{Filter, read};

/// Prints what the archive holds. What is damaged is told and passed over, and the exit code says so.
pub fn print(directory: &Path, wanted: &HistoryList, mut output: Output) -> Result<(), Failure> {
    let filters = &wanted.filters;
    let filter = Filter {
        topic: filters.topic.clone(),
        key: filters.key.clone(),
        id: wanted.id.clone(),
        ending: wanted.ending.and_then(EndingName::one),
        from: filters.range.from.map(Moment::time),
        until: filters.range.until.map(Moment::time),
    };
    let limit = if wanted.amount.all { u64::MAX } else { u64::from(wanted.amount.limit) };
    let tasks = read(directory, filter).map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    let mut printer = Printer::new(wanted.amount.bodies);
    let mut page = Vec::new();
    let (mut printed, mut damaged) = (0, 0);
    for task in tasks {
        match task {
            Ok(task) if filters.queue.is_some() && task.queue != filters.queue => continue,
            Ok(task) if printed < limit => page.push(trim(task, wanted.amount.bodies)),
            Ok(_) => {
                note("there are more: use --all to see all of them, or --limit N to see more");
                break;
            }
            Err(error) => {
                damaged += 1;
                note(error);
                continue;
            }
        }
        printed += 1;
        if page.len() == PAGE as usize {
            printer.page(&page, &mut output)?;
            page.clear();
        }
    }
    printer.page(&page, &mut output)?;
    if printed == 0 && !output.json {
        note("no finished tasks");
    }
    match damaged {
        0 => Ok(()),
        _ => Err(Failure::new(Exit::Failed, format!("{} of the archive cannot be read", counted(damaged, "part")))),
    }
}

/// A task as a list shows it: bodies and headers only if they were asked for.
fn trim(mut task: TaskInfo, bodies: bool) -> TaskInfo {
    if !bodies {
        (task.body, task.text, task.base64) = (None, None, None);
        task.headers.clear();
    }
    task
}
