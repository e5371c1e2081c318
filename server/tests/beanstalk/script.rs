//! A script: what connections say to a server, and when they listen. `scripts/*.talk` are written in it.
//!
//! ```text
//! # a remark
//! pipelined                   a mark: all that A says may also be said in one write
//! whole                       a mark: not to be sent byte by byte, since it is too long for that
//! durable                     a mark: what it puts must outlive the server
//!
//! A: put 5 0 10 3 | abc       A sends this and awaits an answer; CR LF stand for ` | ` and at the end
//! A. reserve                  the same, but nothing is awaited
//! A~ put 5 0 10 3\r\na        A sends these bytes and no others, and nothing is awaited
//! A<                          A awaits an answer (`A< 7`: seven of them)
//! A= INSERTED $1              that was A's last answer; ` | ` is CR LF here too
//! A?                          nothing comes for a moment
//! A closes, A half-closes     the connection, or the half that A speaks on
//! A is closed                 by the server, after what it has to say
//! sleep 1100ms
//! drain                       tells the server to take no more jobs: SIGUSR1
//! restart, kill               stops it, or kills it with -9, and starts it on the same data; all connections are gone
//! ```
//! A connection is opened when it is first spoken of. `$1` is the first job id that an answer had, `$2` the second.
//! `\r \n \t \0 \\ \s \xFF` are bytes (`\s` a blank, for the end of a line), and `\{ab*3}` is `ababab`.

use std::time::Duration;

pub struct Script {
    pub is_pipelined: bool,
    pub is_whole: bool,
    pub is_durable: bool,
    pub steps: Vec<Step>,
}

pub struct Step {
    /// The line as it stands in the file.
    pub source: String,
    pub act: Act,
}

pub enum Act {
    Say { who: char, text: String, answers: usize },
    Await { who: char, answers: usize },
    Was { who: char, text: String },
    Silence { who: char },
    Close { who: char },
    HalfClose { who: char },
    IsClosed { who: char },
    Sleep(Duration),
    Drain,
    Restart,
    Kill,
}

impl Script {
    pub fn parse(text: &str) -> Script {
        let mut script = Script { is_pipelined: false, is_whole: false, is_durable: false, steps: Vec::new() };
        for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line {
                "pipelined" => script.is_pipelined = true,
                "whole" => script.is_whole = true,
                "durable" => script.is_durable = true,
                _ => {
                    let act = act(line).unwrap_or_else(|| panic!("no line of a script: {line}"));
                    script.steps.push(Step { source: line.to_owned(), act });
                }
            }
        }
        script
    }
}

fn act(line: &str) -> Option<Act> {
    match line {
        "drain" => return Some(Act::Drain),
        "restart" => return Some(Act::Restart),
        "kill" => return Some(Act::Kill),
        _ => {}
    }
    if let Some(time) = line.strip_prefix("sleep ") {
        return Some(Act::Sleep(Duration::from_millis(time.strip_suffix("ms")?.parse().ok()?)));
    }
    let who = line.chars().next().filter(char::is_ascii_uppercase)?;
    let (kind, rest) = (line.chars().nth(1)?, line.get(2..)?);
    let text = rest.strip_prefix(' ').unwrap_or(rest);
    Some(match (kind, text) {
        (':', text) => Act::Say { who, text: with_line_ends(text) + "\\r\\n", answers: 1 },
        ('.', text) => Act::Say { who, text: with_line_ends(text) + "\\r\\n", answers: 0 },
        ('~', text) => Act::Say { who, text: text.to_owned(), answers: 0 },
        ('<', "") => Act::Await { who, answers: 1 },
        ('<', count) => Act::Await { who, answers: count.parse().ok()? },
        ('=', text) => Act::Was { who, text: with_line_ends(text) + "\\r\\n" },
        ('?', "") => Act::Silence { who },
        (' ', "closes") => Act::Close { who },
        (' ', "half-closes") => Act::HalfClose { who },
        (' ', "is closed") => Act::IsClosed { who },
        _ => return None,
    })
}

fn with_line_ends(text: &str) -> String {
    let text = text.replace(" | ", "\\r\\n");
    match text.strip_suffix(" |") {
        Some(before) => before.to_owned() + "\\r\\n",
        None => text,
    }
}

/// The bytes that a text stands for; `id` knows the ids.
pub fn bytes_of(text: &str, id: &dyn Fn(usize) -> String) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        let digits = rest.len() - rest.trim_start_matches(|next: char| next.is_ascii_digit()).len();
        match first {
            '\\' => rest = escaped(rest, id, &mut bytes),
            '$' if digits > 0 => {
                bytes.extend(id(rest[..digits].parse().unwrap()).into_bytes());
                rest = &rest[digits..];
            }
            _ => bytes.extend(first.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    bytes
}

/// Reads what follows a backslash, and gives what follows that.
fn escaped<'a>(text: &'a str, id: &dyn Fn(usize) -> String, bytes: &mut Vec<u8>) -> &'a str {
    let (kind, rest) = text.split_at(1);
    match kind {
        "r" => bytes.push(b'\r'),
        "n" => bytes.push(b'\n'),
        "t" => bytes.push(b'\t'),
        "s" => bytes.push(b' '),
        "0" => bytes.push(0),
        "\\" => bytes.push(b'\\'),
        "x" => {
            bytes.push(u8::from_str_radix(&rest[..2], 16).unwrap());
            return &rest[2..];
        }
        "{" => {
            let (inside, after) = rest.split_once('}').expect("`\\{` has its `}`");
            let (what, count) = inside.rsplit_once('*').expect("`\\{what*count}`");
            bytes.extend(bytes_of(what, id).repeat(count.parse().unwrap()));
            return after;
        }
        other => panic!("no escape: \\{other}"),
    }
    rest
}
