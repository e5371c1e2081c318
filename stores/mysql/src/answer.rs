//! What a server answers to a statement.

use std::vec;

use bytes::Bytes;
use mysql_async::Value;

/// What the server sent is not what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server's answer is not to what was asked")]
pub(crate) struct Garbled;

/// The answer to one statement.
#[derive(Debug)]
pub(crate) enum Answer {
    /// It is done, and so many rows were affected.
    Done(u64),
    /// What it found.
    Rows(Vec<Record>),
}

impl Answer {
    pub(crate) fn rows(self) -> Vec<Record> {
        match self {
            Answer::Rows(rows) => rows,
            Answer::Done(_) => Vec::new(),
        }
    }

    pub(crate) fn affected(&self) -> u64 {
        match self {
            Answer::Done(affected) => *affected,
            Answer::Rows(_) => 0,
        }
    }
}

/// One row of an answer: its columns as text, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Record(vec::IntoIter<Value>);

impl Record {
    pub(crate) fn new(columns: Vec<Value>) -> Record {
        Record(columns.into_iter())
    }

    /// Whether there is no other column.
    pub(crate) fn is_read(&self) -> bool {
        self.0.len() == 0
    }

    /// The next column.
    pub(crate) fn bytes(&mut self) -> Result<Option<Bytes>, Garbled> {
        match self.0.next() {
            Some(Value::Bytes(bytes)) => Ok(Some(bytes.into())),
            Some(Value::NULL) => Ok(None),
            // A text has no others.
            _ => Err(Garbled),
        }
    }

    /// The next column as a number that is not below zero.
    pub(crate) fn number(&mut self) -> Result<u64, Garbled> {
        let text = self.bytes()?.ok_or(Garbled)?;
        std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()).ok_or(Garbled)
    }

    /// The next column as text; NULL is empty.
    pub(crate) fn text(&mut self) -> Result<String, Garbled> {
        String::from_utf8(self.bytes()?.unwrap_or_default().to_vec()).map_err(|_| Garbled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_gives_its_columns_in_order() {
        let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        let mut record = Record::new(vec![text("42"), Value::NULL, text(""), text("abc"), text("-1")]);
        assert_eq!(record.number(), Ok(42));
        assert_eq!(record.bytes(), Ok(None));
        assert_eq!(record.text(), Ok(String::new()));
        assert_eq!(record.text(), Ok("abc".to_owned()));
        assert_eq!(record.number(), Err(Garbled));
        assert!(record.is_read());
        assert_eq!(record.bytes(), Err(Garbled));
    }
}
