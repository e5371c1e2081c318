//! Whether a sweep can be undone: by what it does, and by how long the topics it is about keep what it cancelled.
//!
//! A sweep that names no topic is about all that it may change, and these may keep a history or not: what is true of some of
//! them only is said with their names.

use std::collections::BTreeSet;

use punctual_core::{Millis, Name, Sweep, SweepAction, Timestamp, TopicView};
use punctual_node::SweepView;
use punctual_wire as wire;

use crate::app::App;
use crate::fault::Fault;
use crate::translate;

/// How many topics are looked at together.
const STRIDE: usize = 1_000;
/// How many topics are named whose tasks do not come back.
const NAMED: usize = 100;

/// Whether a sweep that would begin now could be undone. `topics` are those of all tasks that it would change, if they are known.
pub(crate) async fn of_preview(
    app: &App,
    sweep: &Sweep,
    topics: Option<BTreeSet<Name>>,
) -> Result<wire::SweepUndo, Fault> {
    if let Some(why) = lasting(sweep.action) {
        return Ok(impossible(why));
    }
    let mut keeping = [Keeping { topics, ..Keeping::of(sweep, app.handle.now()) }];
    look(app, &mut keeping).await?;
    let [keeping] = keeping;
    Ok(keeping.told(app.handle.now()))
}

/// Whether these sweeps can be undone now, in their order. The topics are looked at once for all of them.
pub(crate) async fn of_all(app: &App, views: &[SweepView]) -> Result<Vec<wire::SweepUndo>, Fault> {
    let checked = views.iter().map(|view| {
        let mut record = view.record.clone();
        record.over = view.ended.map(|ended| (ended, view.swept));
        record.check_undo().map_err(|why| impossible(why.to_string()))
    });
    let checked: Vec<Result<(), wire::SweepUndo>> = checked.collect();
    let undoable = views.iter().zip(&checked).filter(|(_, checked)| checked.is_ok());
    let mut keeping: Vec<Keeping<'_>> =
        undoable.map(|(view, _)| Keeping::of(&view.record.sweep, view.record.begun_at)).collect();
    look(app, &mut keeping).await?;
    let (now, mut keeping) = (app.handle.now(), keeping.into_iter());
    let told = |checked: Result<(), wire::SweepUndo>| match checked {
        Ok(()) => keeping.next().expect("each that passed is looked at").told(now),
        Err(impossible) => impossible,
    };
    Ok(checked.into_iter().map(told).collect())
}

/// The same for one of them.
pub(crate) async fn of(app: &App, view: &SweepView) -> Result<wire::SweepUndo, Fault> {
    let mut told = of_all(app, std::slice::from_ref(view)).await?;
    Ok(told.pop().expect("there is an answer for each"))
}

/// Why what was done cannot be taken back, if that is so by its nature.
fn lasting(action: SweepAction) -> Option<&'static str> {
    match action {
        SweepAction::Cancel | SweepAction::Shift(_) | SweepAction::Spread(_) => None,
        SweepAction::Purge => Some("what is purged is gone"),
        SweepAction::Replay | SweepAction::Hasten | SweepAction::Undo => Some("consumers get these tasks at once"),
    }
}

fn impossible(why: impl Into<String>) -> wire::SweepUndo {
    wire::SweepUndo { possible: false, until: None, why: Some(why.into()), except: Vec::new() }
}

/// For how long the topics that a sweep is about keep what it cancels.
struct Keeping<'a> {
    sweep: &'a Sweep,
    begun_at: Timestamp,
    /// Only of these topics, if they are known.
    topics: Option<BTreeSet<Name>>,
    /// The earliest time at which the history of a topic that still keeps these tasks does not any more.
    until: Option<Timestamp>,
    /// How many topics do not keep them, and the first of those by name.
    gone: u64,
    named: Vec<String>,
    /// Whether one of those has ever kept them.
    was_kept: bool,
}

impl<'a> Keeping<'a> {
    fn of(sweep: &'a Sweep, begun_at: Timestamp) -> Keeping<'a> {
        Keeping { sweep, begun_at, topics: None, until: None, gone: 0, named: Vec::new(), was_kept: false }
    }

    /// Whether the history matters: what was only moved is not in it.
    fn is_open(&self) -> bool {
        self.sweep.action == SweepAction::Cancel
    }

    fn is_about(&self, topic: &Name) -> bool {
        self.is_open()
            && self.sweep.within.fits(topic)
            && self.sweep.topic().is_none_or(|only| only == topic)
            && self.topics.as_ref().is_none_or(|topics| topics.contains(topic))
    }

    fn add(&mut self, topic: &TopicView, now: Timestamp) {
        let until = self.begun_at.plus(topic.settings.history);
        if topic.settings.history != Millis::ZERO && until > now {
            self.until = Some(self.until.map_or(until, |earliest| earliest.min(until)));
            return;
        }
        self.gone += 1;
        self.was_kept |= topic.settings.history != Millis::ZERO;
        if self.named.len() < NAMED {
            self.named.push(topic.counts.name.to_string());
        }
    }

    /// Cancelled tasks come back for as long as the history of their topic keeps them; moved ones until consumers get them.
    fn told(self, now: Timestamp) -> wire::SweepUndo {
        let until = self.until.filter(|until| *until > now).map(translate::time);
        match (self.gone, until, self.was_kept) {
            (0, until, _) => wire::SweepUndo { possible: true, until, why: None, except: Vec::new() },
            (1.., None, true) => impossible("the history does not keep these tasks any more"),
            (1, None, false) => impossible("the topic keeps no history, and so no cancelled tasks"),
            (2.., None, false) => impossible("the topics keep no history, and so no cancelled tasks"),
            (gone, until, _) => {
                let topics = if gone == 1 { "topic".into() } else { format!("{gone} topics") };
                let why = format!("tasks of the {topics} in `except` do not come back: the history does not keep them");
                wire::SweepUndo { possible: true, until, why: Some(why), except: self.named }
            }
        }
    }
}

/// Looks at the topics that these sweeps are about: at those that are named, or page by page at all that are meant.
async fn look(app: &App, keeping: &mut [Keeping<'_>]) -> Result<(), Fault> {
    let now = app.handle.now();
    let add = |topics: &[TopicView], keeping: &mut [Keeping<'_>]| {
        for topic in topics {
            let about = keeping.iter_mut().filter(|keeping| keeping.is_about(&topic.counts.name));
            about.for_each(|keeping| keeping.add(topic, now));
        }
    };
    let open = || keeping.iter().filter(|keeping| keeping.is_open());
    if open().all(|keeping| keeping.sweep.topic().is_some()) {
        let names: BTreeSet<Name> = open().filter_map(|keeping| keeping.sweep.topic().cloned()).collect();
        if !names.is_empty() {
            add(&app.handle.topics_named(names.into_iter().collect()).await?, keeping);
        }
        return Ok(());
    }
    let mut after = None;
    loop {
        let is_meant = |name: &Name| keeping.iter().any(|keeping| keeping.is_about(name));
        let page = app.handle.topics(after, STRIDE, is_meant).await?;
        add(&page.entries, keeping);
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}
