//! Sweeps, from the wire to the core and back.

use std::collections::BTreeSet;

use punctual_core::{
    Among, Matching, Millis, Name, Scope, Select, Shift, Sweep, SweepAction, SweepEnd, TimeRange, Timestamp,
};
use punctual_node::SweepView;
use punctual_wire as wire;

use super::standing::{ending_from_wire, ending_to_wire};
use super::{millis, shift_of, time, timestamp};
use crate::fault::{Code, Fault};
use crate::input::{maybe_name, name};
use crate::routes::dead::reason;

/// How many ids can be named, and how many bytes they have together.
const MOST_IDS: (usize, usize) = (10_000, 512 << 10);

/// What is asked for, of these topics only, at this time.
pub(crate) fn new_sweep(asked: wire::NewSweep, within: &Scope, now: Timestamp) -> Result<Sweep, Fault> {
    let action = action(&asked, now)?;
    let select = select(asked.select, asked.act)?;
    let matching = Matching::Tasks(Box::new(select));
    let sweep = Sweep { matching, within: within.clone(), action, dry_run: false };
    sweep.check().map_err(|_| Fault::invalid("state", "this cannot be done to tasks in this state: see `do`"))?;
    Ok(sweep)
}

fn action(asked: &wire::NewSweep, now: Timestamp) -> Result<SweepAction, Fault> {
    let wire::NewSweep { act, at, delay, by, start, over, .. } = asked;
    let shift = shift_of(*at, *delay, *by)?;
    if shift.is_some() && *act != wire::SweepAct::Move {
        return Err(Fault::invalid("do", "`at`, `delay` and `by` are for `move`"));
    }
    if (start.is_some() || over.is_some()) && *act != wire::SweepAct::Spread {
        return Err(Fault::invalid("do", "`start` and `over` are for `spread`"));
    }
    Ok(match act {
        wire::SweepAct::Cancel => SweepAction::Cancel,
        wire::SweepAct::Replay => SweepAction::Replay,
        wire::SweepAct::Purge => SweepAction::Purge,
        wire::SweepAct::Hasten => SweepAction::Hasten,
        wire::SweepAct::Move => {
            let missing = || Fault::new(Code::Invalid, "say where to move the tasks: give `at`, `delay` or `by`");
            SweepAction::Shift(shift.ok_or_else(missing)?)
        }
        wire::SweepAct::Spread => {
            let over = over.ok_or_else(|| Fault::invalid("over", "say over how long to spread the tasks"))?;
            let from = start.map_or(now, timestamp).max(now);
            SweepAction::Spread(TimeRange { from, until: from.plus(millis(over)).min(Timestamp::LAST) })
        }
    })
}

fn select(asked: wire::SweepSelect, act: wire::SweepAct) -> Result<Select, Fault> {
    let has_filter = asked != wire::SweepSelect { state: asked.state, all: asked.all, ..wire::SweepSelect::default() };
    if !has_filter && !asked.all {
        let detail =
            "say which tasks: give `topic`, `key`, `queue`, `from`, `until` or another filter, or `\"all\": true`";
        return Err(Fault::new(Code::Invalid, detail));
    }
    let state = asked.state.unwrap_or(match act {
        wire::SweepAct::Cancel | wire::SweepAct::Move | wire::SweepAct::Spread => wire::SelectState::Live,
        wire::SweepAct::Hasten => wire::SelectState::Scheduled,
        wire::SweepAct::Replay | wire::SweepAct::Purge => wire::SelectState::Dead,
    });
    let is_of = |field: &str, is_given: bool, wanted: wire::SelectState, what: &str| match is_given && state != wanted {
        true => Err(Fault::invalid(field, format_args!("only {what} have one: select by `state`"))),
        false => Ok(()),
    };
    is_of("reason", asked.reason.is_some(), wire::SelectState::Dead, "dead letters")?;
    is_of("note", asked.note.is_some(), wire::SelectState::Dead, "dead letters")?;
    is_of("note_prefix", asked.note_prefix.is_some(), wire::SelectState::Dead, "dead letters")?;
    is_of("ending", asked.ending.is_some(), wire::SelectState::Finished, "finished tasks")?;
    let among = match state {
        wire::SelectState::Live => Among::Live,
        wire::SelectState::Scheduled => Among::Scheduled,
        wire::SelectState::Ready => Among::Ready,
        wire::SelectState::Dead => {
            let reason = asked.reason.as_deref().map(reason).transpose()?;
            Among::Dead { reason, note: asked.note, note_prefix: asked.note_prefix }
        }
        wire::SelectState::Finished => Among::History { ending: asked.ending.map(ending_from_wire) },
    };
    let topic = maybe_name("topic", asked.topic.as_deref())?;
    let ids = asked.ids.map(|ids| named(&ids, topic.is_some())).transpose()?;
    let from = asked.from.map_or(Timestamp::ZERO, timestamp);
    let until = asked.until.map_or(Timestamp::NEVER, timestamp);
    let (key, queue) = (maybe_name("key", asked.key.as_deref())?, maybe_name("queue", asked.queue.as_deref())?);
    Ok(Select { among, topic, key, queue, time: TimeRange { from, until }, ids })
}

/// The ids, each once.
fn named(ids: &[String], has_topic: bool) -> Result<Vec<Name>, Fault> {
    if !has_topic {
        return Err(Fault::invalid("ids", "ids are those of one topic: give `topic`, too"));
    }
    if ids.len() > MOST_IDS.0 || ids.iter().map(String::len).sum::<usize>() > MOST_IDS.1 {
        let why = format!("at most {} ids with {} bytes together: use several sweeps", MOST_IDS.0, MOST_IDS.1);
        return Err(Fault::invalid("ids", why));
    }
    let ids: Result<BTreeSet<Name>, Fault> = ids.iter().map(|id| name("ids", id)).collect();
    Ok(ids?.into_iter().collect())
}

/// A sweep as the wire shows it; `undo` says whether it can be undone.
pub(crate) fn sweep_info(view: SweepView, undo: wire::SweepUndo) -> wire::SweepInfo {
    let SweepView { record, swept, ended } = view;
    let state = match ended {
        Some(SweepEnd { is_stopped: false, .. }) => wire::SweepState::Done,
        Some(_) => wire::SweepState::Stopped,
        None if record.is_stopped => wire::SweepState::Stopping,
        None => wire::SweepState::Running,
    };
    let (mut at, mut by, mut start, mut over) = (None, None, None, None);
    let act = match record.sweep.action {
        SweepAction::Cancel | SweepAction::Undo => wire::SweepAct::Cancel,
        SweepAction::Replay => wire::SweepAct::Replay,
        SweepAction::Purge => wire::SweepAct::Purge,
        SweepAction::Hasten => wire::SweepAct::Hasten,
        SweepAction::Shift(shift) => {
            match shift {
                Shift::To(to) => at = Some(time(to)),
                Shift::By(millis) => by = Some(wire::Shift(millis)),
                Shift::In(Millis(millis)) => by = i64::try_from(millis).ok().map(wire::Shift),
            }
            wire::SweepAct::Move
        }
        SweepAction::Spread(range) => {
            start = Some(time(range.from));
            over = Some(wire::Span(range.until.since(range.from).0));
            wire::SweepAct::Spread
        }
    };
    let id = |number: u64| number.to_string();
    wire::SweepInfo {
        id: id(record.number),
        act,
        select: match &record.sweep.matching {
            Matching::Tasks(select) => select_to_wire(select),
            _ => wire::SweepSelect::default(),
        },
        ids: (record.ids > 0).then_some(record.ids),
        at,
        by,
        start,
        over,
        who: record.who,
        begun_at: time(record.begun_at),
        ended_at: ended.map(|ended| time(ended.at)),
        state,
        matched: swept.matched,
        changed: swept.changed,
        too_late: swept.too_late,
        no_room: swept.no_room,
        undoes: record.undoes.map(id),
        undone_by: record.undone_by.map(id),
        undo,
    }
}

fn select_to_wire(select: &Select) -> wire::SweepSelect {
    let word = |name: &Option<Name>| name.as_ref().map(ToString::to_string);
    let mut told = wire::SweepSelect {
        topic: word(&select.topic),
        queue: word(&select.queue),
        key: word(&select.key),
        from: (select.time.from > Timestamp::ZERO).then(|| time(select.time.from)),
        until: (select.time.until < Timestamp::NEVER).then(|| time(select.time.until)),
        ..wire::SweepSelect::default()
    };
    let state = match &select.among {
        Among::Live => wire::SelectState::Live,
        Among::Scheduled => wire::SelectState::Scheduled,
        Among::Ready => wire::SelectState::Ready,
        Among::Dead { reason, note, note_prefix } => {
            told.reason = reason.map(|reason| reason.as_str().to_owned());
            (told.note, told.note_prefix) = (note.clone(), note_prefix.clone());
            wire::SelectState::Dead
        }
        Among::History { ending } => {
            told.ending = ending.map(ending_to_wire);
            wire::SelectState::Finished
        }
    };
    told.state = Some(state);
    told.all = told == wire::SweepSelect { state: told.state, ..wire::SweepSelect::default() } && select.ids.is_none();
    told
}
