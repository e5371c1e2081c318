//! Sweeps over the tasks of a [`Center`], begun and followed to their end.
#![allow(dead_code, reason = "each file of tests uses its part")]

use punctual_core::{
    Among, Answer, Command, Matching, NumberedSweep, Preview, Scope, Select, Standing, Sweep, SweepAction,
    SweepProgress, Swept, TimeRange,
};

use crate::center::{Center, at, name, task};

pub const LIVE: Select =
    Select { among: Among::Live, topic: None, key: None, queue: None, time: TimeRange::ALL, ids: None };

pub fn of_t(among: Among) -> Select {
    Select { among, topic: Some(name("t")), ..LIVE }
}

pub fn dead() -> Among {
    Among::Dead { reason: None, note: None, note_prefix: None }
}

pub fn sweep(select: Select, action: SweepAction) -> Sweep {
    Sweep { matching: Matching::Tasks(Box::new(select)), within: Scope::ALL, action, dry_run: false }
}

pub fn begin(number: u64, sweep: Sweep) -> Command {
    Command::BeginSweep(Box::new(NumberedSweep { number, sweep }))
}

pub fn undo(number: u64, by: u64) -> Command {
    let matching = Matching::Changed { by };
    begin(number, Sweep { matching, within: Scope::ALL, action: SweepAction::Undo, dry_run: false })
}

pub fn counts(matched: u64, changed: u64, too_late: u64, no_room: u64) -> Swept {
    Swept { matched, changed, too_late, no_room }
}

pub trait Sweeping {
    fn progress(&mut self, number: u64) -> SweepProgress;
    fn swept(&mut self, command: Command) -> Swept;
    fn preview(&mut self, sweep: Sweep) -> Preview;
    fn due(&self, id: &str) -> Option<u64>;
}

impl Sweeping for Center {
    fn progress(&mut self, number: u64) -> SweepProgress {
        let Ok(Answer::Sweeps(sweeps)) = self.ask(Command::Sweeps) else { panic!("sweeps can be looked at") };
        sweeps.into_iter().find(|sweep| sweep.number == number).expect("it has begun")
    }

    /// Begins a sweep and waits for its end.
    fn swept(&mut self, command: Command) -> Swept {
        let Command::BeginSweep(numbered) = &command else { panic!("{command:?}") };
        let number = numbered.number;
        assert_eq!(self.ask(command), Ok(Answer::Noted));
        let progress = self.progress(number);
        assert!(progress.ended.is_some_and(|ended| !ended.is_stopped), "{progress:?}");
        progress.swept
    }

    fn preview(&mut self, sweep: Sweep) -> Preview {
        match self.ask(Command::Preview(Box::new(sweep))) {
            Ok(Answer::Preview(preview)) => preview,
            other => panic!("{other:?}"),
        }
    }

    /// When a waiting task comes due, counted from the start.
    fn due(&self, id: &str) -> Option<u64> {
        match self.standing(id)? {
            Standing::Scheduled { at: due } => Some(due.since(at(0)).0),
            Standing::Ready { .. } => Some(0),
            _ => None,
        }
    }
}

pub fn herd(center: &mut Center, tasks: u64) {
    for number in 0..tasks {
        center.schedule(task(&number.to_string(), 10_000 + number));
    }
}
