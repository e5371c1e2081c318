//! A round: commands that are carried out together, and answered in their order.
//!
//! ```text
//! put, delete, touch, use …  ─►  slots in order ─► one call of the node ─► answers in order
//! ```
//! Commands that wait for something or look at what is durable are not in a round: they come after
//! the one before them is over.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use punctual_core::store::Bodies;
use punctual_core::{Back, Backoff, Command, Headers, Millis, Name, Retry, Task};
use punctual_node::{Awaited, Handle, Number};
use tracing::Span;

use crate::answer::{Output, Word};
use crate::door::{Door, millis};
use crate::held::{Held, HeldJob};
use crate::input::Put;
use crate::translate::{Deed, tell, word_for};
use crate::tubes::Tube;

/// A job that fails is ready again at once, as often as it takes.
const RETRY: Retry = Retry { attempts: 0, backoff: Backoff::Fixed(Millis::ZERO), jitter_percent: 0 };

/// How long a round waits for room, doubled each time, until it is hopeless and some of it is refused.
const FIRST_WAIT: Duration = Duration::from_millis(1);
const LAST_WAIT: Duration = Duration::from_secs(4);

#[derive(Default)]
pub(crate) struct Round {
    slots: Vec<Slot>,
    /// How many bytes of bodies wait in it.
    bytes: usize,
    /// The tubes of puts that may have to be made first.
    new_tubes: Vec<Arc<Tube>>,
}

/// The answer to a command, or what has to be done to know it.
enum Slot {
    Said(Said),
    Do(Deed, Command),
    /// A row that is not held has to be found first.
    Find(Deed),
}

/// An answer that is known without asking anybody.
enum Said {
    Word(Word),
    Using(Name),
    Watching(usize),
    Document(Bytes),
}

impl Said {
    fn write(&self, output: &mut Output) {
        match self {
            Said::Word(word) => output.word(*word),
            Said::Using(tube) => output.using(tube),
            Said::Watching(tubes) => output.watching(*tubes),
            Said::Document(document) => output.ok(document),
        }
    }
}

/// A round that is under way.
pub(crate) struct Begun {
    sayings: Vec<Saying>,
    awaited: Option<Awaited>,
    /// Ends with it.
    _span: Span,
}

/// What is to be answered to a command.
enum Saying {
    Known(Said),
    /// What comes of the next command that is under way.
    Of(Deed),
}

impl Begun {
    /// Waits until everything is done, and writes the answers.
    pub async fn finish(self, handle: &Handle, held: &mut Held, output: &mut Output) {
        let mut outcomes = match self.awaited {
            Some(awaited) => awaited.outcomes().await,
            None => Vec::new(),
        }
        .into_iter();
        for saying in self.sayings {
            match saying {
                Saying::Known(said) => said.write(output),
                Saying::Of(deed) => {
                    let outcome = outcomes.next().expect("every command has its outcome");
                    tell(deed, outcome, handle, held, output);
                }
            }
        }
    }
}

impl Slot {
    /// What its span is called, if it asks anything of the node.
    fn name(&self) -> Option<&'static str> {
        match self {
            Slot::Said(_) => None,
            Slot::Do(deed, _) | Slot::Find(deed) => Some(match deed {
                Deed::Put(_) => "beanstalk put",
                Deed::Delete(_) => "beanstalk delete",
                Deed::Release(_) => "beanstalk release",
                Deed::Bury(_) => "beanstalk bury",
                Deed::Touch(_) => "beanstalk touch",
                Deed::Kick(_) => "beanstalk kick-job",
            }),
        }
    }

    /// The job that is not held any more afterwards.
    fn leaves(&self) -> Option<u64> {
        match self {
            Slot::Do(Deed::Delete(id) | Deed::Release(id) | Deed::Bury(id), _) => Some(*id),
            _ => None,
        }
    }
}

impl Round {
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// How many bytes of bodies wait in it.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn say(&mut self, word: Word) {
        self.slots.push(Slot::Said(Said::Word(word)));
    }

    pub fn using(&mut self, tube: Name) {
        self.slots.push(Slot::Said(Said::Using(tube)));
    }

    pub fn watching(&mut self, tubes: usize) {
        self.slots.push(Slot::Said(Said::Watching(tubes)));
    }

    pub fn document(&mut self, document: Bytes) {
        self.slots.push(Slot::Said(Said::Document(document)));
    }

    pub fn put(&mut self, tube: &Arc<Tube>, put: Put, handle: &Handle) {
        self.bytes += put.body.len();
        if !tube.is_known() {
            self.new_tubes.push(Arc::clone(tube));
        }
        let tube = tube.name.clone();
        let mut task = Task::new(tube.clone(), put.body).after(millis(put.delay));
        task.priority = Some(put.pri);
        task.lease = Some(millis(put.ttr));
        task.retry = Some(RETRY);
        self.slots.push(Slot::Do(Deed::Put(tube), handle.scheduling(task)));
    }

    pub fn delete(&mut self, id: u64, held: Option<&HeldJob>) {
        self.slots.push(match held {
            Some(job) => {
                Slot::Do(Deed::Delete(id), Command::Remove { row: job.row.clone(), token: Some(job.lease.token) })
            }
            None => Slot::Find(Deed::Delete(id)),
        });
    }

    pub fn release(&mut self, id: u64, held: Option<&HeldJob>, pri: u32, delay: Millis) {
        let release = |job: &HeldJob| {
            let (lease, back) = (job.lease.clone(), Back::After(delay));
            Command::Release { lease, back, priority: Some(pri), note: None }
        };
        self.settle(Deed::Release(id), held.map(release));
    }

    pub fn bury(&mut self, id: u64, held: Option<&HeldJob>, pri: u32) {
        let reject = |job: &HeldJob| Command::Reject { lease: job.lease.clone(), note: None, priority: Some(pri) };
        self.settle(Deed::Bury(id), held.map(reject));
    }

    pub fn touch(&mut self, id: u64, held: Option<&HeldJob>) {
        let extend = |job: &HeldJob| Command::Extend { lease: job.lease.clone(), by: None };
        self.settle(Deed::Touch(id), held.map(extend));
    }

    pub fn kick(&mut self, id: u64) {
        self.slots.push(Slot::Find(Deed::Kick(id)));
    }

    fn settle(&mut self, deed: Deed, command: Option<Command>) {
        self.slots.push(command.map_or(Slot::Said(Said::Word(Word::NotFound)), |command| Slot::Do(deed, command)));
    }

    /// Whether a reserve that waits may begin before this is over: what it gets does not depend on what is found out
    /// here. Puts and releases happen before it all the same.
    pub fn may_be_followed(&self) -> bool {
        self.new_tubes.is_empty()
            && !self.slots.iter().any(|slot| matches!(slot, Slot::Find(_) | Slot::Do(Deed::Touch(_), _)))
    }

    /// The jobs that the connection will not hold any more, in order.
    pub fn leaving(&self) -> Vec<u64> {
        let mut leaving: Vec<u64> = self.slots.iter().filter_map(Slot::leaves).collect();
        leaving.sort_unstable();
        leaving
    }

    /// Begins to carry everything out.
    pub async fn begin(&mut self, door: &Door) -> Begun {
        self.bytes = 0;
        for tube in self.new_tubes.drain(..) {
            door.know(&tube).await;
        }
        let mut slots = std::mem::take(&mut self.slots);
        find_rows(&mut slots, &door.handle).await;
        let first = slots.iter().find_map(Slot::name);
        let mut commands = Vec::with_capacity(slots.len());
        let mut sayings = Vec::with_capacity(slots.len());
        for slot in slots {
            sayings.push(match slot {
                Slot::Do(deed, command) => {
                    commands.push(command);
                    Saying::Of(deed)
                }
                Slot::Said(said) => Saying::Known(said),
                Slot::Find(_) => unreachable!("all rows were found"),
            });
        }
        let Some(first) = first else {
            return Begun { sayings, awaited: None, _span: Span::none() };
        };
        until_there_is_room(&door.handle).await;
        let (span, carried) = door.span(first, commands.len());
        if !carried.is_empty() {
            carry(&carried, &mut commands);
        }
        let awaited = span.in_scope(|| door.handle.begin(commands));
        Begun { sayings, awaited: Some(awaited), _span: span }
    }
}

/// Lets new jobs carry on the trace in which they are put.
fn carry(carried: &Headers, commands: &mut [Command]) {
    for command in commands {
        if let Command::Schedule(schedule) = command {
            schedule.task.headers.clone_from(carried);
        }
    }
}

/// Waits while the node has too much to do. Meanwhile nothing is read: the client gets to know by that.
async fn until_there_is_room(handle: &Handle) {
    let mut wait = FIRST_WAIT;
    while !handle.has_room() && wait < LAST_WAIT {
        tokio::time::sleep(wait).await;
        wait *= 2;
    }
}

/// Finds the rows of commands that only name a number, all in one read.
async fn find_rows(slots: &mut [Slot], handle: &Handle) {
    let wanted: Vec<(usize, Deed)> = slots
        .iter()
        .enumerate()
        .filter_map(|(index, slot)| match slot {
            Slot::Find(deed) => Some((index, deed.clone())),
            _ => None,
        })
        .collect();
    if wanted.is_empty() {
        return;
    }
    let number = |deed: &Deed| match deed {
        Deed::Delete(id) | Deed::Kick(id) | Deed::Release(id) | Deed::Bury(id) | Deed::Touch(id) => Number(*id),
        Deed::Put(_) => unreachable!("a put names no job"),
    };
    let numbers = wanted.iter().map(|(_, deed)| number(deed)).collect();
    let found = match handle.numbered(numbers, Bodies::Without).await {
        Ok(found) => found,
        Err(error) => {
            for (index, _) in wanted {
                slots[index] = Slot::Said(Said::Word(word_for(&error)));
            }
            return;
        }
    };
    for ((index, deed), found) in wanted.into_iter().zip(found) {
        slots[index] = match found {
            None => Slot::Said(Said::Word(Word::NotFound)),
            Some(found) if matches!(deed, Deed::Kick(_)) => Slot::Do(deed, Command::Hasten { row: found.row }),
            Some(found) => Slot::Do(deed, Command::Remove { row: found.row, token: None }),
        };
    }
}
