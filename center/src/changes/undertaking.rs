//! What an administrator undertakes about the entry of changes, step by step: to make a change, to finish what others left,
//! to strike off what is over. It says what is to be done next and is told what came of it; who does it is the node, or the
//! simulation.
//!
//! What others have written down comes first, whoever they are and whether or not they still live: all shards adopt it
//! before anything else is written in its place.

use punctual_core::{Adjustment, Adopt, Answer, Certainty, Refused, Subject};

use super::{Changes, Seen};
use crate::error::{Error, Outcome};

/// How often something is decided anew because others were quicker.
const TRIES: usize = 64;

/// Something that an administrator does to its end before it does something else.
#[derive(Debug)]
pub struct Undertaking {
    goal: Goal,
    stage: Stage,
    tries: usize,
    /// A deletion that a shard has refused, and how: it ends so when what was there before is there again.
    kept: Option<(u64, Error)>,
}

#[derive(Debug)]
enum Goal {
    /// Change this topic or queue.
    Make(Subject),
    /// Finish what stands in the entry and nobody goes on with, and strike off what is done.
    Tidy,
    /// Strike off a deletion that is over.
    StrikeOff(u64),
    /// See what becomes of a deletion that a shard has refused.
    Settle(u64),
}

#[derive(Debug)]
enum Stage {
    Looking,
    Deciding(Seen),
    /// All shards are to adopt what is under way, which this undertaking has written itself or somebody else.
    Adopting {
        seen: Seen,
        is_own: bool,
    },
    Writing(Writing),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writing {
    /// The change that is to be made.
    Own,
    /// What makes all as it was, instead of a deletion.
    Kept,
    /// That nothing is under way, or less is.
    Less,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Look at the entry: what is known does, if nothing is left to be done about it. Then [`Undertaking::looked`].
    Look,
    /// Look at the entry as the store has it. Then [`Undertaking::looked`].
    Read,
    /// Decide what is to be changed, by what there is now. Then [`Undertaking::decided`], unless it is nothing.
    Decide,
    /// Have all shards adopt this, which stands in the entry at that revision. Then [`Undertaking::adopted`].
    Adopt(Adopt, u64),
    /// Write these changes in place of those that were seen. Then [`Undertaking::written`].
    Write(Seen, Changes),
    /// Nothing: the undertaking is over.
    Over(End),
}

/// How an undertaking ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The change is made, in all shards.
    Made,
    /// The topic or queue is being deleted, as was wanted or by somebody else.
    Deleting(Adopt),
    /// Nothing is left to be done about the entry at this revision but to wait for the end of these deletions.
    Tidied(u64, Vec<Adopt>),
    /// Something is, and is seen to later.
    Untidy,
    /// The deletion was under way until now, and is struck off.
    StruckOff,
    /// Whether the deletion is still under way.
    Listed(bool),
    /// It cannot be done.
    Failed(Error),
}

/// What all shards have said to a change that they were to adopt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All have adopted it.
    Adopted,
    /// One of them holds tasks of what was to be deleted.
    Kept(Error),
    /// Not all of them have: they are to be asked again.
    Again(Error),
}

impl Verdict {
    /// By what they said.
    pub fn of(outcomes: &[Outcome]) -> Verdict {
        if let Some(Err(kept)) = outcomes.iter().find(|outcome| is_kept(outcome)) {
            return Verdict::Kept(kept.clone());
        }
        trouble(outcomes.iter()).map_or(Verdict::Adopted, Verdict::Again)
    }
}

impl Undertaking {
    /// Changes a topic or queue, or deletes it.
    pub fn make(subject: Subject) -> (Undertaking, Next) {
        (Undertaking::to(Goal::Make(subject)), Next::Look)
    }

    /// Finishes what stands in the entry and nobody goes on with, and strikes off what is done.
    pub fn tidy() -> (Undertaking, Next) {
        (Undertaking::to(Goal::Tidy), Next::Read)
    }

    /// Strikes off a deletion that is over in all shards.
    pub fn strike_off(number: u64) -> (Undertaking, Next) {
        (Undertaking::to(Goal::StrikeOff(number)), Next::Read)
    }

    /// A shard has refused a deletion: all is made as it was, unless that shard has come to be empty meanwhile.
    pub fn settle(number: u64) -> (Undertaking, Next) {
        (Undertaking::to(Goal::Settle(number)), Next::Read)
    }

    fn to(goal: Goal) -> Undertaking {
        Undertaking { goal, stage: Stage::Looking, tries: 0, kept: None }
    }

    /// The entry was seen so.
    pub fn looked(&mut self, seen: Seen) -> Next {
        match &self.goal {
            Goal::Make(subject) => match seen.changes.deletion_of(subject) {
                Some(deletion) => Next::Over(End::Deleting(deletion)),
                None if !seen.is_adopted => self.finish(seen, false),
                None => {
                    self.stage = Stage::Deciding(seen);
                    Next::Decide
                }
            },
            Goal::Tidy if !seen.is_adopted => match self.tries {
                0 => self.finish(seen, false),
                // Somebody has written another one just now.
                _ => Next::Over(End::Untidy),
            },
            Goal::Tidy => {
                let is_done = |change: &super::WrittenChange| !change.adjustment.is_deletion();
                match seen.changes.under_way().is_some_and(is_done) {
                    true => {
                        let settled = seen.changes.settled();
                        self.write(Writing::Less, seen, settled)
                    }
                    false => Next::Over(tidied(&seen)),
                }
            }
            Goal::StrikeOff(number) => match seen.changes.over(*number) {
                Some(next) => self.write(Writing::Less, seen, next),
                None => Next::Over(End::Listed(false)),
            },
            Goal::Settle(number) => {
                let is_listed = seen.changes.deletions().any(|deletion| deletion.number == *number);
                match is_listed && !seen.is_adopted && self.tries == 0 {
                    true => self.finish(seen, false),
                    false => Next::Over(End::Listed(is_listed)),
                }
            }
        }
    }

    /// This is to be changed; `otherwise` is what is done if a shard refuses a deletion. The time is in microseconds.
    pub fn decided(&mut self, adjustment: Adjustment, otherwise: Option<Adjustment>, micros: u64) -> Next {
        let Stage::Deciding(seen) = std::mem::replace(&mut self.stage, Stage::Looking) else {
            unreachable!("it is decided when it is asked for")
        };
        match seen.changes.followed_by(adjustment, otherwise, micros) {
            Ok(next) => self.write(Writing::Own, seen, next),
            Err(_) => Next::Over(End::Failed(Error::Overloaded)),
        }
    }

    /// All shards have been asked. If they are to be asked again, that is up to whoever asks.
    pub fn adopted(&mut self, verdict: Verdict, micros: u64) -> Next {
        let Stage::Adopting { seen, is_own } = std::mem::replace(&mut self.stage, Stage::Looking) else {
            unreachable!("shards are asked when that is to be done")
        };
        match verdict {
            Verdict::Adopted if is_own => Next::Over(End::Made),
            Verdict::Adopted => self.again(),
            Verdict::Again(_) => self.finish(seen, is_own),
            Verdict::Kept(refused) => match seen.changes.kept(micros) {
                Some(next) => {
                    self.kept = seen.changes.under_way().map(|change| (change.number, refused));
                    self.write(Writing::Kept, seen, next)
                }
                None => Next::Over(End::Failed(Error::unknown_outcome("a shard refused what cannot be refused"))),
            },
        }
    }

    /// The changes were written, and are seen so; or somebody else was quicker.
    pub fn written(&mut self, seen: Option<Seen>) -> Next {
        let Stage::Writing(what) = std::mem::replace(&mut self.stage, Stage::Looking) else {
            unreachable!("changes are written when that is to be done")
        };
        match (what, seen, &self.goal) {
            (Writing::Own, Some(seen), Goal::Make(subject)) => match seen.changes.deletion_of(subject) {
                Some(deletion) => Next::Over(End::Deleting(deletion)),
                None => self.finish(seen, true),
            },
            (Writing::Kept, Some(seen), _) => self.finish(seen, false),
            (Writing::Kept, None, _) => {
                // Whoever was quicker sees to it.
                self.kept = None;
                self.again()
            }
            (Writing::Less, Some(seen), Goal::Tidy) => Next::Over(tidied(&seen)),
            (Writing::Less, None, Goal::Tidy) => Next::Over(End::Untidy),
            (Writing::Less, Some(_), _) => Next::Over(End::StruckOff),
            _ => self.again(),
        }
    }

    /// A deletion that has come to its end with this, since a shard refused it.
    pub fn refused_deletion(&mut self) -> Option<(u64, Error)> {
        match self.stage {
            Stage::Looking => self.kept.take(),
            _ => None,
        }
    }

    /// It cannot go on, for this reason: what whoever wanted it is told. What was written stays, and is finished later.
    pub fn failed(&self, error: Error) -> Error {
        let is_made = matches!(self.stage, Stage::Adopting { is_own: true, .. } | Stage::Writing(Writing::Own));
        match &self.goal {
            Goal::Make(_) if !is_made => {
                Error::nothing_done(format!("another change of settings cannot be finished: {error}"))
            }
            _ => Error::unknown_outcome(error.to_string()),
        }
    }

    /// Looks at the entry once more.
    fn again(&mut self) -> Next {
        self.tries += 1;
        match self.goal {
            _ if self.tries > TRIES => Next::Over(End::Failed(Error::Overloaded)),
            Goal::Make(_) => Next::Look,
            _ => Next::Read,
        }
    }

    fn finish(&mut self, seen: Seen, is_own: bool) -> Next {
        let Some(change) = seen.changes.under_way() else { return self.again() };
        let adopt = Adopt { number: change.number, adjustment: change.adjustment.clone(), to_its_end: false };
        let revision = seen.revision;
        self.stage = Stage::Adopting { seen, is_own };
        Next::Adopt(adopt, revision)
    }

    fn write(&mut self, what: Writing, seen: Seen, next: Changes) -> Next {
        self.stage = Stage::Writing(what);
        Next::Write(seen, next)
    }
}

fn tidied(seen: &Seen) -> End {
    End::Tidied(seen.revision, seen.changes.deletions().collect())
}

/// What came of a deletion, by what all shards have said: how many rows went with it in those that had it. `None` if one of
/// them has refused it.
pub fn rows_gone(outcomes: &[Outcome]) -> Option<Result<u64, Error>> {
    if outcomes.iter().any(is_kept) {
        return None;
    }
    let others: Vec<&Outcome> = outcomes.iter().filter(|outcome| !is_missing(outcome)).collect();
    let trouble = if others.is_empty() { trouble(outcomes.iter()) } else { trouble(others.iter().copied()) };
    let rows = |outcome: &Outcome| match outcome {
        Ok(Answer::Deleted(rows)) => *rows,
        _ => 0,
    };
    Some(trouble.map_or_else(|| Ok(outcomes.iter().map(rows).sum()), Err))
}

/// Whether what was to be deleted is nowhere any more.
pub fn is_gone(ended: &Result<u64, Error>) -> bool {
    matches!(ended, Ok(_) | Err(Error::Refused(Refused::NoSuchTopic(_) | Refused::NoSuchQueue(_))))
}

/// What those are told who wait for the end of a deletion that is nowhere any more, by how striking it off ended. One that was
/// asked for without force may have been taken back meanwhile, because something came in: then shards that have adopted what
/// makes all as it was say of the deletion that it is done. Only who struck it off knows that it was not.
pub fn told(deletion: &Adopt, gone: Result<u64, Error>, struck_off: &Result<End, Error>) -> Result<u64, Error> {
    let may_be_kept = matches!(deletion.adjustment, Adjustment::Delete { force: false, .. });
    match struck_off {
        Ok(End::StruckOff) => gone,
        _ if !may_be_kept => gone,
        _ => Err(Error::unknown_outcome("another node has seen to this deletion")),
    }
}

/// Why not all of them have done it. Unless none of them has, it may have been done.
fn trouble<'a>(outcomes: impl Iterator<Item = &'a Outcome> + Clone) -> Option<Error> {
    let is_undone =
        |outcome: &Outcome| outcome.as_ref().is_err_and(|error| error.certainty() == Certainty::NothingDone);
    let error = outcomes.clone().find_map(|outcome| outcome.as_ref().err())?.clone();
    Some(if outcomes.clone().all(is_undone) { error } else { error.of_a_part() })
}

fn is_missing(outcome: &Outcome) -> bool {
    matches!(outcome, Err(Error::Refused(Refused::NoSuchTopic(_) | Refused::NoSuchQueue(_))))
}

fn is_kept(outcome: &Outcome) -> bool {
    matches!(outcome, Err(Error::Refused(Refused::NotEmpty { .. })))
}

#[cfg(test)]
mod tests {
    use punctual_core::Name;

    use super::*;

    fn deletion(force: bool) -> Adopt {
        let subject = Subject::Queue(Name::new("a").unwrap());
        Adopt { number: 7, adjustment: Adjustment::Delete { subject, force }, to_its_end: true }
    }

    fn not_empty() -> Error {
        Refused::NotEmpty { name: Name::new("a").unwrap(), rows: 1 }.into()
    }

    #[test]
    fn a_deletion_that_may_have_been_taken_back_is_told_only_by_who_struck_it_off() {
        let listed = Ok(End::Listed(false));
        assert_eq!(told(&deletion(false), Ok(3), &Ok(End::StruckOff)), Ok(3));
        let unknown = told(&deletion(false), Ok(3), &listed).unwrap_err();
        assert_eq!(unknown.certainty(), Certainty::Unknown);
        assert!(told(&deletion(false), Ok(3), &Err(Error::Overloaded)).is_err());
        assert_eq!(told(&deletion(true), Ok(3), &listed), Ok(3), "what is forced is not taken back");
    }

    #[test]
    fn one_shard_that_keeps_something_decides_and_one_that_cannot_be_asked_is_asked_again() {
        let noted = || Ok(Answer::Noted);
        assert_eq!(Verdict::of(&[noted(), noted()]), Verdict::Adopted);
        let kept = Verdict::of(&[Err(Error::Overloaded), Err(not_empty())]);
        assert_eq!(kept, Verdict::Kept(not_empty()));
        let Verdict::Again(error) = Verdict::of(&[noted(), Err(Error::Overloaded)]) else { panic!("not all have it") };
        assert_eq!(error.certainty(), Certainty::Unknown, "another one has done it");
    }

    #[test]
    fn rows_are_counted_where_there_were_any() {
        let missing = || Err(Refused::NoSuchQueue(Name::new("a").unwrap()).into());
        assert_eq!(rows_gone(&[Ok(Answer::Deleted(2)), missing(), Ok(Answer::Deleted(3))]), Some(Ok(5)));
        assert!(is_gone(&rows_gone(&[missing(), missing()]).unwrap()), "it was nowhere");
        assert_eq!(rows_gone(&[Ok(Answer::Deleted(2)), Err(not_empty())]), None);
    }

    #[test]
    fn what_stands_in_the_way_of_others_is_no_doubt_about_the_own_change() {
        let (mut making, _) = Undertaking::make(deletion(false).adjustment.subject());
        let under_way = Changes::default().followed_by(deletion(true).adjustment, None, 1).unwrap();
        let other = Changes::default().followed_by(
            Adjustment::PutQueue { name: Name::new("b").unwrap(), settings: Box::default() },
            None,
            1,
        );
        let seen = Seen { revision: 1, changes: other.unwrap(), is_adopted: false };
        assert!(matches!(making.looked(seen), Next::Adopt(..)));
        assert_eq!(making.failed(Error::Overloaded).certainty(), Certainty::NothingDone);
        let (mut making, _) = Undertaking::make(deletion(false).adjustment.subject());
        let seen = Seen { revision: 1, changes: under_way, is_adopted: false };
        assert!(matches!(making.looked(seen), Next::Over(End::Deleting(_))), "it is joined");
    }
}
