//! What came in a conversation, and the comparison of two.

use std::fmt::Write;

/// How much is shown of what came.
const SHOWN: usize = 90;
/// How many steps are shown before the one that differs.
const BEFORE: usize = 12;

#[derive(Default)]
pub struct Transcript {
    steps: Vec<(String, Vec<u8>)>,
    /// Where it is not what the script itself says.
    unexpected: Vec<String>,
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
        let differs =
            (0..self.steps.len().max(theirs.steps.len())).find(|at| self.steps.get(*at) != theirs.steps.get(*at));
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
