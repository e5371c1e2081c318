//! The protocol of Redis, as much as is needed: commands are lists of byte strings, replies are read in place.

use std::io;
use std::io::Write;
use std::ops::Range;

use crate::arena::wire::Wire;

pub enum Reply {
    /// Where in the answer it stands.
    Text(Range<usize>),
    Number,
    List(Vec<Reply>),
    Nil,
    Fault(Range<usize>),
}

/// Opens a command of so many words.
pub fn open(out: &mut Vec<u8>, words: usize) {
    write!(out, "*{words}\r\n").expect("memory takes it");
}

pub fn word(out: &mut Vec<u8>, word: &[u8]) {
    write!(out, "${}\r\n", word.len()).expect("memory takes it");
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

pub fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    open(out, words.len());
    words.iter().for_each(|each| word(out, each));
}

/// Sends what was written and reads so many replies; any fault among them is an error.
pub async fn ask(wire: &mut Wire, replies: usize) -> io::Result<Vec<Reply>> {
    wire.send().await?;
    let mut read = Vec::with_capacity(replies);
    let mut at = 0;
    while read.len() < replies {
        match parse(&wire.answer, at)? {
            Some((Reply::Fault(text), _)) => {
                return Err(io::Error::other(format!("Redis says {}", wire.answer[text].escape_ascii())));
            }
            Some((reply, end)) => {
                read.push(reply);
                at = end;
            }
            None => wire.read_more().await?,
        }
    }
    Ok(read)
}

/// Reads the reply that begins at a place, and says where it ends; nothing if it is not all there yet.
fn parse(bytes: &[u8], at: usize) -> io::Result<Option<(Reply, usize)>> {
    let Some(line_end) = bytes[at.min(bytes.len())..].windows(2).position(|pair| pair == b"\r\n") else {
        return Ok(None);
    };
    let (line, next) = (at + 1..at + line_end, at + line_end + 2);
    let strange = || io::Error::other(format!("not a reply: {}", bytes[at..next].escape_ascii()));
    let number = || str::from_utf8(&bytes[line.clone()]).ok().and_then(|text| text.parse::<i64>().ok());
    let reply = match bytes[at] {
        b'+' => (Reply::Text(line), next),
        b'-' => (Reply::Fault(line), next),
        b':' => (Reply::Number, next),
        b'$' => match usize::try_from(number().ok_or_else(strange)?) {
            Err(_) => (Reply::Nil, next),
            Ok(length) if next + length + 2 <= bytes.len() => (Reply::Text(next..next + length), next + length + 2),
            Ok(_) => return Ok(None),
        },
        b'*' => match usize::try_from(number().ok_or_else(strange)?) {
            Err(_) => (Reply::Nil, next),
            Ok(length) => {
                let mut list = Vec::with_capacity(length);
                let mut at = next;
                while list.len() < length {
                    let Some((reply, end)) = parse(bytes, at)? else { return Ok(None) };
                    list.push(reply);
                    at = end;
                }
                (Reply::List(list), at)
            }
        },
        _ => return Err(strange()),
    };
    Ok(Some(reply))
}
