//! What came in a conversation, and the comparison of two.

use std::fmt::Write;
use std::time::Instant;

use crate::normal::PASSED;

/// How much is shown of what came.
const SHOWN: usize = 90;
/// How many steps are shown before the one that differs.
const BEFORE: usize = 12;

pub struct Transcript {
    begun: Instant,
    steps: Vec<(String, Vec<u8>)>,
    /// Where it is not what the script itself says.
    unexpected: Vec<String>,
}

impl Default for Transcript {
    fn default() -> Transcript {
        Transcript { begun: Instant::now(), steps: Vec::new(), unexpected: Vec::new() }
    }
}

impl Transcript {
    pub fn note(&mut self, source: &str, came: Vec<u8>) {
        self.steps.push((source.to_owned(), came));
    }

    pub fn check(&mut self, source: &str, expected: &str, came: &str) {
        if expected != came {
            self.unexpected.push(format!("{source}\n    but it was {came:?}"));
        }
    }

    /// Fails unless it is what the script says and what the other one is.
    pub fn must_be(&self, theirs: &Transcript, manner: &str) {
        let took = self.begun.min(theirs.begun).elapsed().as_secs() + 1;
        let is_same = |at: usize| match (self.steps.get(at), theirs.steps.get(at)) {
            (Some((source, ours)), Some((other, theirs))) => source == other && are_alike(ours, theirs, took),
            _ => false,
        };
        let differs = (0..self.steps.len().max(theirs.steps.len())).find(|at| !is_same(*at));
        let mut text = String::new();
        if let Some(at) = differs {
            _ = write!(text, "{manner}: another answer than beanstalkd's\n{}", self.beside(theirs, at));
        }
        for (who, unexpected) in [("beanstalkd", &theirs.unexpected), ("Punctual", &self.unexpected)] {
            for line in unexpected {
                _ = writeln!(text, "{manner}: {who}: {line}");
            }
        }
        assert!(text.is_empty(), "{text}");
    }

    /// Both side by side up to the step that differs, with its first other byte marked.
    fn beside(&self, theirs: &Transcript, at: usize) -> String {
        let came = |transcript: &Transcript, at: usize| {
            transcript.steps.get(at).map_or(b"<the script ended before>".to_vec(), |(_, came)| came.clone())
        };
        let mut text = String::new();
        for step in at.saturating_sub(BEFORE)..at {
            _ = writeln!(text, "    {}\n      {}", shown(&self.steps[step].0, 0), shown_bytes(&came(self, step), 0));
        }
        let (ours, others) = (came(self, at), came(theirs, at));
        let other = ours.iter().zip(&others).take_while(|(one, other)| one == other).count();
        let source = self.steps.get(at).or(theirs.steps.get(at)).map_or("", |(source, _)| source);
        let from = other.saturating_sub(SHOWN / 2);
        let mark = " ".repeat(shown_bytes(&ours[from.min(ours.len())..other], 0).len());
        _ = writeln!(text, " >  {}   (from byte {from})", shown(source, 0));
        _ = writeln!(text, "      beanstalkd: {}", shown_bytes(&others, from));
        _ = writeln!(text, "      Punctual:   {}", shown_bytes(&ours, from));
        _ = writeln!(text, "                  {mark}^");
        text
    }
}

/// Whether both say the same, but for seconds that pass: these may differ by so many.
fn are_alike(one: &[u8], other: &[u8], seconds: u64) -> bool {
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    if same == one.len() && same == other.len() {
        return true;
    }
    let mark = one[..same].windows(PASSED.len()).rposition(|bytes| bytes == PASSED.as_bytes());
    let Some(begin) = mark.map(|at| at + PASSED.len()) else { return false };
    let (Some((one, rest)), Some((other, other_rest))) = (number(&one[begin..]), number(&other[begin..])) else {
        return false;
    };
    one.abs_diff(other) <= seconds && are_alike(rest, other_rest, seconds)
}

/// The number at the beginning, and what comes after it.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (digits, rest) = bytes.split_at(bytes.iter().take_while(|byte| byte.is_ascii_digit()).count());
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, rest))
}

#[test]
fn seconds_that_pass_may_differ_and_nothing_else() {
    let alike = |one: &str, other: &str| are_alike(one.as_bytes(), other.as_bytes(), 5);
    assert!(alike("age: about 9\ntime-left: about 100", "age: about 12\ntime-left: about 98"));
    for other in ["age: about 20\nttr: 1", "age: about 9\nttr: 2", "age: about 9", "age: 9\nttr: 1"] {
        assert!(!alike("age: about 9\nttr: 1", other), "{other}");
    }
}

fn shown(text: &str, from: usize) -> String {
    let shown: String = text.chars().skip(from).take(SHOWN).collect();
    if shown.len() < text.len() - from { shown + "…" } else { shown }
}

fn shown_bytes(bytes: &[u8], from: usize) -> String {
    let end = bytes.len().min(from + SHOWN);
    let text = bytes[from.min(end)..end].escape_ascii().to_string();
    if end < bytes.len() { text + "…" } else { text }
}

#[test]
fn another_answer_is_shown_beside_beanstalkds() {
    let transcript = |last: &str| {
        let mut transcript = Transcript::default();
        transcript.note("A: use t", b"USING t\r\n".to_vec());
        transcript.note("A: reserve", last.as_bytes().to_vec());
        transcript
    };
    transcript("TIMED_OUT\r\n").must_be(&transcript("TIMED_OUT\r\n"), "Plain");
    let shown = transcript("RESERVED $1 1\r\na\r\n").beside(&transcript("RESERVED $2 1\r\na\r\n"), 1);
    assert!(shown.contains("beanstalkd: RESERVED $2 1\\r\\na\\r\\n\n      Punctual:   RESERVED $1 1\\r"), "{shown}");
    assert_eq!(shown.lines().last().unwrap().find('^'), Some("      Punctual:   RESERVED $".len()), "{shown}");
}
