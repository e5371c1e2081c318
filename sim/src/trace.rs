//! What happened, line by line. Same seed, same bytes.
//!
//! Most runs keep no trace: a seed that breaks a promise is run once more to get one.

use std::fmt::{self, Write};

use crate::clock::Moment;

/// The lines of a run, if they are wanted.
#[derive(Debug, Default)]
pub struct Trace {
    text: Option<String>,
    moment: Moment,
}

impl Trace {
    /// Keeps lines if `wanted`.
    pub fn new(wanted: bool) -> Trace {
        Trace { text: wanted.then(String::new), moment: 0 }
    }

    /// Later lines happen at this moment.
    pub fn at(&mut self, moment: Moment) {
        self.moment = moment;
    }

    /// Adds a line. Use [`say!`](crate::say), which builds it only if it is wanted.
    pub fn line(&mut self, line: fmt::Arguments<'_>) {
        if let Some(text) = &mut self.text {
            writeln!(text, "{:>12} {line}", self.moment).expect("text can be lengthened");
        }
    }

    /// The whole text.
    pub fn into_text(self) -> String {
        self.text.unwrap_or_default()
    }
}

/// Adds a line to a trace.
#[macro_export]
macro_rules! say {
    ($trace:expr, $($words:tt)*) => { $trace.line(format_args!($($words)*)) };
}

/// The last lines that mention the subject, or that concern everybody (marked with `*`).
pub fn relevant(text: &str, subject: &str, count: usize) -> Vec<String> {
    let everybody = |line: &str| line.split_whitespace().nth(1) == Some("*");
    let mentions = |line: &&str| everybody(line) || (!subject.is_empty() && line.contains(subject));
    let mut lines: Vec<String> = text.lines().rev().filter(mentions).take(count).map(str::to_owned).collect();
    lines.reverse();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relevant_lines_are_those_of_the_subject_and_of_everybody() {
        let mut trace = Trace::new(true);
        say!(trace, "* crash of node {}", 1);
        trace.at(5);
        say!(trace, "cancel a/1/");
        say!(trace, "cancel b/2/");
        let text = trace.into_text();
        assert_eq!(relevant(&text, "b/2/", 50).len(), 2);
        assert_eq!(relevant(&text, "b/2/", 1), ["           5 cancel b/2/"]);
    }
}
