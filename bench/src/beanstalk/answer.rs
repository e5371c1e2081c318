//! The answers of the beanstalk protocol that the load expects. Nothing is copied or allocated: there are a million of
//! them. Any other answer is an error that shows it.

use std::io;
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Inserted,
    /// The job, and where its body lies in the bytes.
    Reserved(u64, Range<usize>),
    Deleted,
    /// The place of a text about the server.
    Ok(Range<usize>),
}

/// The answer that the bytes begin with and how many of them it is; none if they do not hold all of it yet.
pub fn parse(bytes: &[u8]) -> io::Result<Option<(Answer, usize)>> {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
    let line = bytes[..end].strip_suffix(b"\r").ok_or_else(|| unexpected(&bytes[..end]))?;
    let mut words = line.split(|byte| *byte == b' ');
    let (word, first, second) = (words.next().unwrap_or_default(), words.next(), words.next());
    // A body is followed by CRLF, which its length leaves out.
    let body = |length: u64| end + 1..end + 1 + length as usize;
    let (answer, size) = match (word, first.and_then(number), second.and_then(number)) {
        (b"INSERTED", Some(_), None) => (Answer::Inserted, end + 1),
        (b"DELETED", None, None) => (Answer::Deleted, end + 1),
        (b"RESERVED", Some(job), Some(length)) => (Answer::Reserved(job, body(length)), body(length).end + 2),
        (b"OK", Some(length), None) => (Answer::Ok(body(length)), body(length).end + 2),
        _ => return Err(unexpected(line)),
    };
    match bytes.get(..size) {
        Some(whole) if size > end + 1 && !whole.ends_with(b"\r\n") => Err(unexpected(whole)),
        Some(_) => Ok(Some((answer, size))),
        None => Ok(None),
    }
}

pub fn unexpected(answer: &[u8]) -> io::Error {
    io::Error::other(format!("an answer that was not expected: {}", answer.escape_ascii()))
}

fn number(digits: &[u8]) -> Option<u64> {
    let next = |sum: u64, digit: &u8| match digit {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, next) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_not_all_there_is_awaited() {
        let whole = b"RESERVED 7 3\r\nabc\r\n";
        for cut in 0..whole.len() {
            assert_eq!(parse(&whole[..cut]).expect("no error"), None, "{cut}");
        }
        assert_eq!(parse(whole).expect("no error"), Some((Answer::Reserved(7, 14..17), whole.len())));
    }

    #[test]
    fn what_follows_an_answer_is_left() {
        assert_eq!(parse(b"INSERTED 12\r\nDELETED\r\n").expect("no error"), Some((Answer::Inserted, 13)));
        assert_eq!(parse(b"DELETED\r\nINS").expect("no error"), Some((Answer::Deleted, 9)));
    }

    #[test]
    fn any_other_answer_is_an_error() {
        for other in ["NOT_FOUND\r\n", "BURIED 4\r\n", "OUT_OF_MEMORY\r\n", "INSERTED\r\n", "RESERVED 1 1\r\nabc\r\n"] {
            assert!(parse(other.as_bytes()).is_err(), "{other}");
        }
    }
}
