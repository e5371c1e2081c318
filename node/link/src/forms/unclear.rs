//! What could not be understood of a message.

use std::fmt;

/// How much is told of what somebody else has written.
const SHOWN: usize = 200;

/// A part of a message cannot be understood: it was said by a newer version, or by nobody who speaks this language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unclear {
    /// Where it stands, from the inside out.
    path: Vec<&'static str>,
    why: String,
}

impl Unclear {
    /// Something is wrong with a value.
    pub(super) fn because(why: impl fmt::Display) -> Unclear {
        let mut why = why.to_string();
        why.truncate(why.floor_char_boundary(SHOWN));
        Unclear { path: Vec::new(), why }
    }

    /// A value must be there and is not, or is of a kind that this version does not know.
    pub(super) fn missing() -> Unclear {
        Unclear::because("missing, or not known to this version")
    }

    /// The same, seen from around it.
    pub(super) fn within(mut self, field: &'static str) -> Unclear {
        self.path.push(field);
        self
    }
}

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, field) in self.path.iter().rev().enumerate() {
            write!(f, "{}{field}", if depth == 0 { "" } else { "." })?;
        }
        write!(f, ": {}", self.why)
    }
}

impl std::error::Error for Unclear {}
