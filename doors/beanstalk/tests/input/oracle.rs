//! The rules of the protocol once more, in the plainest way: a byte at a time, on text, with wide numbers.
//!
//! It shares nothing with the door but the text in which both say what they understood.

use std::collections::BTreeMap;

const NAME: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()";

pub struct Oracle {
    max_job: u32,
    bytes: Vec<u8>,
    expects: Expects,
    pub said: Vec<String>,
    pub counted: BTreeMap<String, u64>,
    pub has_produced: bool,
}

enum Expects {
    Command,
    /// The end of a line that is too long.
    End,
    /// A body with its end of a line: the put as far as it is known, and its length.
    Body(String, usize),
    /// So many bytes that nobody wants.
    Waste(u64),
    Nothing,
}

/// What a line is, but for puts: how it is said, or BAD_FORMAT.
type Said = Option<String>;

impl Oracle {
    pub fn new(max_job: u32) -> Oracle {
        Oracle {
            max_job,
            bytes: Vec::new(),
            expects: Expects::Command,
            said: Vec::new(),
            counted: BTreeMap::new(),
            has_produced: false,
        }
    }

    pub fn hear(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.bytes.push(*byte);
            match &self.expects {
                Expects::Command | Expects::End => self.line_so_far(),
                Expects::Body(put, length) if self.bytes.len() == length + 2 => self.body(put.clone(), *length),
                Expects::Body(..) => {}
                Expects::Waste(1) => self.answer("JOB_TOO_BIG"),
                Expects::Waste(left) => self.expects = Expects::Waste(left - 1),
                Expects::Nothing => {}
            }
        }
    }

    /// Says it, and goes on with the next command.
    fn answer(&mut self, text: &str) {
        self.said.push(text.to_owned());
        self.bytes.clear();
        self.expects = Expects::Command;
    }

    fn count(&mut self, name: &str) {
        *self.counted.entry(name.to_owned()).or_default() += 1;
    }

    fn line_so_far(&mut self) {
        let length = self.bytes.len();
        let first_cr = self.bytes.iter().position(|byte| *byte == b'\r');
        let ends = length >= 2 && first_cr == Some(length - 2) && self.bytes[length - 1] == b'\n';
        if ends {
            let line: String = self.bytes[..length - 2].iter().copied().map(char::from).collect();
            match self.expects {
                Expects::End => self.answer("BAD_FORMAT"),
                _ => self.line(&line),
            }
        } else if length == 224 {
            self.bytes.clear();
            self.expects = Expects::End;
        }
    }

    fn body(&mut self, put: String, length: usize) {
        let (body, end) = self.bytes.split_at(length);
        let text = format!("{put} '{}'", body.escape_ascii());
        let is_good = end == b"\r\n";
        self.answer(if is_good { &text } else { "EXPECTED_CRLF" });
    }

    fn line(&mut self, line: &str) {
        if line.contains('\0') {
            return self.answer("BAD_FORMAT");
        }
        if let Some(rest) = line.strip_prefix("put ") {
            return self.put(rest);
        }
        if let Some(rest) = line.strip_prefix("pause-tube") {
            return self.pause_tube(rest);
        }
        if line.starts_with("quit") {
            self.answer("quit");
            self.expects = Expects::Nothing;
            return;
        }
        match other(line) {
            None => self.answer("UNKNOWN_COMMAND"),
            Some((_, None)) => self.answer("BAD_FORMAT"),
            Some((name, Some(arguments))) => {
                self.count(name);
                self.answer(format!("{name} {arguments}").trim_end());
            }
        }
    }

    fn put(&mut self, rest: &str) {
        let numbers = || {
            let (pri, rest) = number(rest, u32::MAX.into())?;
            let (delay, rest) = number(rest, u32::MAX.into())?;
            let (ttr, rest) = number(rest, u32::MAX.into())?;
            let (bytes, rest) = number(rest, u32::MAX.into())?;
            Some((pri, delay, ttr, bytes, rest))
        };
        let Some((pri, delay, ttr, bytes, rest)) = numbers() else { return self.answer("BAD_FORMAT") };
        self.count("put");
        if bytes > self.max_job.into() {
            self.bytes.clear();
            self.expects = Expects::Waste(u64::try_from(bytes).unwrap() + 2);
        } else if !rest.is_empty() {
            self.answer("BAD_FORMAT");
        } else {
            self.has_produced = true;
            self.bytes.clear();
            let ttr = if ttr == 0 { 1 } else { ttr };
            self.expects = Expects::Body(format!("put {pri} {delay} {ttr}"), usize::try_from(bytes).unwrap());
        }
    }

    fn pause_tube(&mut self, rest: &str) {
        let rest = rest.trim_start_matches(' ');
        let name: String = rest.chars().take_while(|character| NAME.contains(*character)).collect();
        let pause = number(&rest[name.len()..], u32::MAX.into()).filter(|(_, rest)| rest.is_empty());
        let Some((pause, _)) = pause.filter(|_| !name.is_empty()) else { return self.answer("BAD_FORMAT") };
        self.count("pause-tube");
        match tube(&name) {
            Some(name) => self.answer(&format!("pause-tube {name} {pause}")),
            None => self.answer("BAD_FORMAT"),
        }
    }
}

/// How a command's arguments are read.
type Reading = fn(&str) -> Said;

/// The other commands, in the order of the question, each with its way to read what follows.
fn other(line: &str) -> Option<(&str, Said)> {
    let commands: [(&str, Reading); 22] = [
        ("peek ", id),
        ("peek-ready", nothing),
        ("peek-delayed", nothing),
        ("peek-buried", nothing),
        ("reserve-with-timeout ", timeout),
        ("reserve-job ", id),
        ("reserve", nothing),
        ("delete ", id),
        ("release ", release),
        ("bury ", bury),
        ("kick ", kick),
        ("kick-job ", id),
        ("touch ", id),
        ("stats-job ", id),
        ("stats-tube ", tube),
        ("stats", nothing),
        ("use ", tube),
        ("watch ", tube),
        ("ignore ", tube),
        ("list-tubes-watched", nothing),
        ("list-tube-used", nothing),
        ("list-tubes", nothing),
    ];
    let (word, read) = commands.into_iter().find(|(word, _)| line.starts_with(word))?;
    Some((word.trim_end(), read(&line[word.len()..])))
}

fn nothing(rest: &str) -> Said {
    rest.is_empty().then(String::new)
}

fn id(rest: &str) -> Said {
    let (id, rest) = number(rest, u64::MAX.into())?;
    rest.is_empty().then(|| id.to_string())
}

fn release(rest: &str) -> Said {
    let (id, rest) = number(rest, u64::MAX.into())?;
    let (pri, rest) = number(rest, u32::MAX.into())?;
    let (delay, rest) = number(rest, u32::MAX.into())?;
    rest.is_empty().then(|| format!("{id} {pri} {delay}"))
}

fn bury(rest: &str) -> Said {
    let (id, rest) = number(rest, u64::MAX.into())?;
    let (pri, rest) = number(rest, u32::MAX.into())?;
    rest.is_empty().then(|| format!("{id} {pri}"))
}

fn tube(name: &str) -> Said {
    let is_step = name == "." || name == "..";
    let is_good = (1..=200).contains(&name.len()) && name.chars().all(|character| NAME.contains(character)) && !is_step;
    (is_good && !name.starts_with('-')).then(|| name.to_owned())
}

/// A number in the strict way, and what is left of the text.
fn number(text: &str, most: i128) -> Option<(i128, &str)> {
    let text = text.trim_start_matches(' ');
    let rest = text.trim_start_matches(|character: char| character.is_ascii_digit());
    let value = value(&text[..text.len() - rest.len()])?;
    (value <= most).then_some((value, rest))
}

/// The value of digits, of which there is at least one. What is too long for any use is one that is too great.
fn value(digits: &str) -> Option<i128> {
    if digits.is_empty() {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    match digits.len() {
        0 => Some(0),
        1..=30 => digits.parse().ok(),
        _ => Some(i128::MAX),
    }
}

/// A number in C's way: how far below or above zero.
fn c_number(text: &str) -> Option<i128> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}']);
    let (sign, text) = match text.chars().next() {
        Some('-') => (-1, &text[1..]),
        Some('+') => (1, &text[1..]),
        _ => (1, text),
    };
    let rest = text.trim_start_matches(|character: char| character.is_ascii_digit());
    value(&text[..text.len() - rest.len()]).map(|value| sign * value)
}

fn kick(rest: &str) -> Said {
    let count = c_number(rest)?;
    let is_good = count.abs() <= u64::MAX.into();
    is_good.then(|| count.rem_euclid(1 << 32).to_string())
}

fn timeout(rest: &str) -> Said {
    let seconds = c_number(rest).unwrap_or(0);
    if seconds < i64::MIN.into() || seconds > i64::MAX.into() {
        return None;
    }
    let seconds = seconds.rem_euclid(1 << 32);
    Some(if seconds < 1 << 31 { seconds.to_string() } else { "for ever".to_owned() })
}
