//! Texts of statements: names of tables, numbers and bytes, so that nothing in them can be taken for anything else.
//!
//! Bytes are written in hexadecimal, so that no character set, no mode of the server and no quote in a name matters, and
//! every text is ASCII.

use std::io::Write;

use punctual_database::{Config, OpenError};

/// A text of one or more statements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sql(Vec<u8>);

impl Sql {
    /// Adds text that is written in this crate.
    pub(crate) fn raw(&mut self, text: &str) -> &mut Sql {
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    pub(crate) fn number(&mut self, number: u64) -> &mut Sql {
        write!(self.0, "{number}").expect("memory takes everything");
        self
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Sql {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.0.reserve(2 * bytes.len() + 3);
        self.0.extend_from_slice(b"x'");
        for byte in bytes {
            self.0.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        self.0.push(b'\'');
        self
    }

    pub(crate) fn bytes_or_null(&mut self, bytes: Option<&[u8]>) -> &mut Sql {
        match bytes {
            Some(bytes) => self.bytes(bytes),
            None => self.raw("NULL"),
        }
    }

    /// Adds items with commas between them.
    pub(crate) fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        add: impl for<'s> Fn(&'s mut Sql, T) -> &'s mut Sql,
    ) -> &mut Sql {
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.raw(",");
            }
            add(self, item);
        }
        self
    }

    /// Adds a part that was made before.
    pub(crate) fn add(&mut self, part: &Sql) -> &mut Sql {
        self.0.extend_from_slice(&part.0);
        self
    }

    /// Adds another text as the next statement.
    pub(crate) fn then(&mut self, next: &Sql) -> &mut Sql {
        if !self.is_empty() && !next.is_empty() {
            self.raw(";");
        }
        self.add(next)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Into<String>> From<T> for Sql {
    /// A text that is written in this crate.
    fn from(text: T) -> Sql {
        Sql(text.into().into_bytes())
    }
}

/// The store's time in microseconds since 1970, whatever the time zone.
pub(crate) const NOW: &str = "TIMESTAMPDIFF(MICROSECOND,'1970-01-01',UTC_TIMESTAMP(6))";

/// The names of the tables, quoted.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    /// What all of their names begin with.
    pub(crate) prefix: String,
    pub(crate) layout: String,
    pub(crate) shards: String,
    pub(crate) nodes: String,
    pub(crate) cluster: String,
    pub(crate) names: String,
    pub(crate) members: String,
    pub(crate) rows: String,
    pub(crate) tallies: String,
    pub(crate) deltas: String,
}

impl Tables {
    /// Those that the settings mean.
    pub(crate) fn of(config: &Config) -> Result<Tables, OpenError> {
        let prefix = config.prefix.as_deref().unwrap_or("punctual_");
        let longest = 32;
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if prefix.len() > longest || !prefix.bytes().all(is_plain) {
            let what = "the prefix of the tables can have lower-case letters, digits and _, and at most";
            return Err(OpenError::Url(format!("{what} {longest} of them, not {prefix:?}")));
        }
        let table = |name: &str| format!("`{prefix}{name}`");
        Ok(Tables {
            prefix: prefix.to_owned(),
            layout: table("layout"),
            shards: table("shards"),
            nodes: table("nodes"),
            cluster: table("cluster"),
            names: table("names"),
            members: table("members"),
            rows: table("rows"),
            tallies: table("tallies"),
            deltas: table("deltas"),
        })
    }

    /// All of them.
    pub(crate) fn all(&self) -> [&str; 9] {
        [
            &self.layout,
            &self.shards,
            &self.nodes,
            &self.cluster,
            &self.names,
            &self.members,
            &self.rows,
            &self.tallies,
            &self.deltas,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_part_of_a_plain_name() {
        let tables = |prefix: &str| {
            Tables::of(&Config { prefix: Some(prefix.to_owned()), ..Config::new("mysql://me@host/mine") })
        };
        assert!(tables("").is_ok() && tables("a_1").is_ok());
        for prefix in ["A", "a-b", "a`b", "ä", &"a".repeat(33)] {
            assert!(matches!(tables(prefix), Err(OpenError::Url(_))), "{prefix}");
        }
    }

    #[test]
    fn no_byte_of_a_name_is_read_as_sql() {
        let mut sql = Sql::default();
        sql.raw("SELECT ").list(["'; DROP", "\\", "\u{df}", ""], |sql, name| sql.bytes(name.as_bytes()));
        assert_eq!(sql.as_bytes(), b"SELECT x'273b2044524f50',x'5c',x'c39f',x''");
        sql.raw(",").number(u64::MAX).raw(",").bytes_or_null(None);
        assert!(sql.as_bytes().ends_with(b"x'',18446744073709551615,NULL"));
    }
}
