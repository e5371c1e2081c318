//! How `punctual store` prints what is in a store, whichever it is.

use std::fmt;
use std::io::{self, BufWriter, Write};

use punctual_core::Timestamp;
use punctual_core::store::{Row, ShardId, Table};
use punctual_wire::Time;
use serde_json::{Value, json};

use crate::commands::counted;
use crate::failure::Failure;

/// Writes to the standard output. A reader who has seen enough is no error.
pub fn say(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut to = BufWriter::new(io::stdout().lock());
    match write(&mut to).and_then(|()| to.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("cannot print: {error}")))
        }
        _ => Ok(()),
    }
}

/// A row as it is listed.
pub struct ShownRow<'a> {
    pub table: Table,
    pub shard: ShardId,
    /// Topic, id and queue.
    pub key: [&'a str; 3],
    pub at: Timestamp,
    pub seq: u64,
    pub group: Option<&'a str>,
    /// How many bytes it has.
    pub state: usize,
    /// How many bytes it has; none if it is lost.
    pub body: Option<usize>,
}

impl ShownRow<'_> {
    pub fn to_json(&self) -> Value {
        let [topic, id, queue] = self.key;
        json!({
            "table": table_word(self.table), "shard": self.shard.0, "topic": topic, "id": id, "queue": queue,
            "at": stored(self.at), "seq": self.seq, "group": self.group, "state_bytes": self.state,
            "body_bytes": self.body,
        })
    }
}

impl fmt::Display for ShownRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [topic, id, queue] = self.key;
        write!(f, "{:?} shard {}  {topic}/{id}", self.table, self.shard.0)?;
        if !queue.is_empty() {
            write!(f, "/{queue}")?;
        }
        write!(f, "  at {}  seq {}", instant(self.at), self.seq)?;
        if let Some(group) = self.group {
            write!(f, "  group {group}")?;
        }
        let bytes = |bytes: usize| counted(bytes as u64, "byte");
        match self.body {
            Some(body) => write!(f, "  state {} body {}", bytes(self.state), bytes(body)),
            None => write!(f, "  state {}, body LOST", bytes(self.state)),
        }
    }
}

/// A row of an open store as it is listed.
pub fn shown_row(shard: ShardId, row: &Row) -> ShownRow<'_> {
    ShownRow {
        table: row.table,
        shard,
        key: [row.key.topic(), row.key.id(), row.key.queue()],
        at: row.at,
        seq: row.seq,
        group: row.group.as_deref(),
        state: row.state.len(),
        body: Some(row.body.len()),
    }
}

/// A table as machines read it.
pub fn table_word(table: Table) -> String {
    format!("{table:?}").to_lowercase()
}

/// An instant in UTC, with the milliseconds since 1970 that are stored.
pub fn instant(at: Timestamp) -> String {
    if at == Timestamp::NEVER {
        return "never".to_owned();
    }
    format!("{} ({})", Time(at.as_millis()), at.as_millis())
}

/// Milliseconds since 1970; none for what has no time.
pub fn stored(at: Timestamp) -> Option<u64> {
    (at != Timestamp::NEVER).then(|| at.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_days_of_the_calendar() {
        let at = |millis| instant(Timestamp::from_millis(millis));
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z (0)");
        assert_eq!(at(951_782_400_000), "2000-02-29T00:00:00.000Z (951782400000)");
        assert_eq!(instant(Timestamp::NEVER), "never");
    }
}
