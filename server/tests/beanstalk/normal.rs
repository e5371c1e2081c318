//! Makes two transcripts comparable: what two servers cannot have in common is replaced, and nothing else.
//!
//! - Ids become `$1`, `$2` … in the order in which they first appear: after a restart Punctual's have a gap, and
//!   beanstalkd's have one where a put was not taken. Those before are compared as they are.
//! - Lines that tell of the process, the machine or the binlog become `*`.
//! - Seconds that pass are marked: they may differ by as much as the conversations took.
//! - `list-tubes` is in the order of creation there, and by name after `default` here; so theirs is sorted.
//! - The length of a document becomes `*`, since the above changes it. That it was right is known before: it
//!   said where the next answer begins.

/// Lines of `stats` and `stats-job` that tell of the process, the machine or the binlog.
const OWN: &[&str] = &["pid", "rusage-utime", "rusage-stime", "uptime", "hostname", "os", "platform", "file"];
/// Lines that change by themselves.
const PASSING: &[&str] = &["age", "time-left", "pause-time-left"];

/// What stands before seconds that have passed, or are left.
pub const PASSED: &str = "about ";

/// The ids that answers had so far.
#[derive(Default)]
pub struct Ids {
    known: Vec<String>,
    /// How many of them came before a gap, if there was one.
    before: Option<usize>,
}

impl Ids {
    /// The n-th id that appeared; one that no job has if there is none.
    pub fn nth(&self, n: usize) -> String {
        self.known.get(n - 1).cloned().unwrap_or_else(|| "999999999".to_owned())
    }

    fn name(&mut self, id: &str) -> String {
        let known = self.known.iter().position(|known| known == id).unwrap_or_else(|| {
            self.known.push(id.to_owned());
            self.known.len() - 1
        });
        format!("${}", known + 1)
    }

    /// Here one of the two has a gap.
    pub fn skip(&mut self) {
        self.before.get_or_insert(self.known.len());
    }

    /// Those that both servers must have in common.
    pub fn in_common(&self) -> String {
        self.known[..self.before.unwrap_or(self.known.len())].join(" ")
    }
}

/// An answer as it is compared.
pub fn normal(answer: &[u8], ids: &mut Ids, sorts_tubes: bool) -> Vec<u8> {
    let Some(end) = answer.windows(2).position(|two| two == b"\r\n") else { return answer.to_vec() };
    let (line, body) = answer.split_at(end);
    let line = String::from_utf8_lossy(line);
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["EXPECTED_CRLF" | "DRAINING" | "JOB_TOO_BIG"] => {
            ids.skip();
            answer.to_vec()
        }
        ["OK", _] => [b"OK *".to_vec(), document(&String::from_utf8_lossy(body), ids, sorts_tubes).into()].concat(),
        [word @ ("INSERTED" | "BURIED"), id] => [format!("{word} {}", ids.name(id)).as_bytes(), body].concat(),
        [word @ ("RESERVED" | "FOUND"), id, length] => {
            [format!("{word} {} {length}", ids.name(id)).as_bytes(), body].concat()
        }
        _ => answer.to_vec(),
    }
}

fn document(text: &str, ids: &mut Ids, sorts_tubes: bool) -> String {
    let is_of_a_job = text.starts_with("\r\n---\nid: ");
    let mut lines: Vec<String> = text
        .split('\n')
        .map(|line| match line.split_once(": ") {
            Some(("id", id)) if is_of_a_job => format!("id: {}", ids.name(id)),
            Some((key, _)) if key == "id" || key.starts_with("binlog-") || OWN.contains(&key) => format!("{key}: *"),
            Some((key, seconds)) if PASSING.contains(&key) => format!("{key}: {PASSED}{seconds}"),
            _ => line.to_owned(),
        })
        .collect();
    if sorts_tubes {
        let end = lines.len() - 2;
        lines[2..end].sort_by_key(|line| (line != "- default", line.clone()));
    }
    lines.join("\n")
}
