//! What is to be done, by what the marks of both stores say.

use crate::error::MoveError;
use crate::marks::{Mark, Part};

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// To begin. If the target has leftovers, they are deleted first.
    Begin {
        /// Whether it has.
        empties: bool,
    },
    /// To go on with this move.
    Resume(String),
}

/// The two stores as people call them, and what is noted there.
pub(super) struct Standing<'a> {
    pub from: &'a str,
    pub source: Option<&'a Mark>,
    pub to: &'a str,
    pub target: Option<&'a Mark>,
}

impl Standing<'_> {
    /// What is to be done; leftovers in the target are deleted if it may begin afresh.
    pub fn course(&self, afresh: bool) -> Result<Course, MoveError> {
        let is_same = self.source.zip(self.target).is_some_and(|(source, target)| source.id == target.id);
        match (self.source.map(|mark| mark.part), self.target.map(|mark| mark.part)) {
            (Some(Part::Left), Some(Part::Emptying | Part::Arriving)) if is_same => self.resume(),
            (Some(Part::Left), Some(Part::Arrived)) if is_same => {
                Err(MoveError::Done { from: self.from.to_owned(), to: self.to.to_owned() })
            }
            (Some(Part::Left), _) => Err(self.not_whole("it was moved to", "already")),
            (Some(Part::Emptying | Part::Arriving), _) => {
                Err(self.not_whole("a move into it, from", ", is not finished"))
            }
            (Some(Part::Abandoned), _) => Err(self.not_whole("it is only a copy of", "")),
            (Some(Part::Crossing), _) => Err(self.not_whole("a server that is running moves it to", "")),
            (Some(Part::Receiving), _) => Err(self.not_whole("a server that is running moves into it what is in", "")),
            (Some(Part::Leaving), Some(Part::Emptying | Part::Arriving)) if is_same && !afresh => self.resume(),
            // The server that was to move it never came so far, so nothing of what is there counts.
            (Some(Part::Stayed), Some(Part::Receiving)) if is_same => self.begin(Some(Part::Abandoned), afresh),
            (Some(Part::Leaving | Part::Arrived | Part::Stayed) | None, target) => self.begin(target, afresh),
        }
    }

    fn resume(&self) -> Result<Course, MoveError> {
        let id = self.source.map(|mark| mark.id.clone());
        Ok(id.map_or(Course::Begin { empties: false }, Course::Resume))
    }

    fn begin(&self, target: Option<Part>, afresh: bool) -> Result<Course, MoveError> {
        let other = self.target.map_or("", |mark| &mark.other);
        let what = match target {
            // Whether it is empty is seen by looking.
            None | Some(Part::Arrived | Part::Leaving | Part::Stayed) => return Ok(Course::Begin { empties: false }),
            // A part of what counts is there.
            Some(Part::Crossing | Part::Receiving) => {
                let why = format!("a server that is running has shards in it and in {other}");
                return Err(MoveError::NotWhole { place: self.to.to_owned(), why });
            }
            Some(_) if afresh => return Ok(Course::Begin { empties: true }),
            Some(Part::Left) => format!("what was moved away from there to {other}"),
            Some(Part::Abandoned) => format!("a copy of {other}, from a move that was taken back or given up"),
            Some(Part::Emptying | Part::Arriving) => format!("a part of {other}, from a move that was not finished"),
        };
        Err(MoveError::Leftovers { place: self.to.to_owned(), what })
    }

    fn not_whole(&self, before: &str, after: &str) -> MoveError {
        let other = self.source.map_or("", |mark| &mark.other);
        MoveError::NotWhole { place: self.from.to_owned(), why: format!("{before} {other}{after}") }
    }
}
