//! What kind of server it is, whether it will do, and what its word is worth.

use std::fmt;
use std::time::Instant;

use punctual_database::OpenError;

use crate::pool::Line;
use crate::sql::Sql;

/// The two families of servers; the statements differ in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    MariaDb,
    MySql,
}

/// A server, as it was found when the store was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) product: Product,
    version: (u32, u32),
    text: String,
    /// The longest text that it takes, and the longest row that it gives, in bytes.
    pub(crate) packet: usize,
    /// 1: the log is synced with every commit.
    flush: u32,
    /// Whether there is a binary log, and after how many commits it is synced.
    binlog: Option<u32>,
    binlog_format: String,
    has_doublewrite: bool,
}

/// Below this a task with a body of 1 MiB, in hexadecimal, would hardly fit.
const LEAST_PACKET: usize = 4 << 20;

impl Server {
    pub(crate) fn learn(line: &mut Line<'_>, deadline: Instant) -> Result<Server, OpenError> {
        let wanted = Sql::from(
            "SHOW VARIABLES WHERE Variable_name IN ('version','max_allowed_packet','innodb_flush_log_at_trx_commit',\
             'log_bin','sync_binlog','binlog_format','innodb_doublewrite')",
        );
        let answers = line.ask(&wanted, deadline).map_err(|stopped| stopped.why)?;
        let mut server = Server {
            product: Product::MySql,
            version: (0, 0),
            text: String::new(),
            packet: 0,
            flush: 1,
            binlog: None,
            binlog_format: String::new(),
            has_doublewrite: true,
        };
        let (mut has_binlog, mut sync_binlog) = (false, 0);
        for mut record in answers.into_iter().flat_map(|answer| answer.rows()) {
            let garbled = |error| OpenError::Refused(format!("the server's settings cannot be read: {error}"));
            let name = record.text().map_err(garbled)?;
            let value = record.text().map_err(garbled)?;
            match name.as_str() {
                "version" => server.call(&value),
                "max_allowed_packet" => server.packet = value.parse().unwrap_or(0),
                "innodb_flush_log_at_trx_commit" => server.flush = value.parse().unwrap_or(0),
                "log_bin" => has_binlog = value == "ON",
                "sync_binlog" => sync_binlog = value.parse().unwrap_or(0),
                "binlog_format" => server.binlog_format = value,
                _ => server.has_doublewrite = value != "OFF",
            }
        }
        server.binlog = has_binlog.then_some(sync_binlog);
        server.judge()?;
        Ok(server)
    }

    fn call(&mut self, version: &str) {
        self.product = if version.contains("MariaDB") { Product::MariaDb } else { Product::MySql };
        let plain = version.split('-').next().unwrap_or_default();
        let mut numbers = plain.split('.').map(|number| number.parse().unwrap_or(0));
        self.version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        self.text = plain.to_owned();
    }

    /// Whether it will do.
    fn judge(&self) -> Result<(), OpenError> {
        let least = match self.product {
            Product::MariaDb => (10, 6),
            Product::MySql => (8, 0),
        };
        let refused = |why: String| Err(OpenError::Refused(why));
        if self.version < least {
            return refused(format!("{self} is too old: MariaDB 10.6 or MySQL 8.0 is needed"));
        }
        if self.packet < LEAST_PACKET {
            return refused(format!(
                "the server takes statements of at most {} bytes: set max_allowed_packet to 16M or more, \
                 and to at least three times the largest body of a task",
                self.packet
            ));
        }
        if self.binlog.is_some() && self.binlog_format == "STATEMENT" {
            return refused("the binary log has the format STATEMENT: set binlog_format to ROW".to_owned());
        }
        Ok(())
    }

    /// What a confirmation is worth.
    pub(crate) fn durability(&self) -> &'static str {
        if self.flush == 1 { "commits are synced" } else { "commits are NOT synced" }
    }

    /// What makes confirmations worth less than they should be, and what to do about it.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.flush != 1 {
            warnings.push(format!(
                "innodb_flush_log_at_trx_commit is {}: a crash of the database server can lose what was confirmed; set it to 1",
                self.flush
            ));
        }
        if let Some(every) = self.binlog.filter(|every| *every != 1) {
            warnings.push(format!(
                "sync_binlog is {every}: after a crash of the database server its replicas can differ from it; set it to 1"
            ));
        }
        if !self.has_doublewrite {
            warnings.push(
                "innodb_doublewrite is off: a loss of power can tear pages, unless the disk writes 16 KB as one"
                    .to_owned(),
            );
        }
        warnings
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let product = match self.product {
            Product::MariaDb => "MariaDB",
            Product::MySql => "MySQL",
        };
        write!(f, "{product} {}", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(version: &str) -> Server {
        let mut server = Server {
            product: Product::MySql,
            version: (0, 0),
            text: String::new(),
            packet: 16 << 20,
            flush: 1,
            binlog: Some(1),
            binlog_format: "ROW".to_owned(),
            has_doublewrite: true,
        };
        server.call(version);
        server
    }

    #[test]
    fn versions_are_told_apart() {
        assert_eq!(server("10.11.19-MariaDB-0+deb12u1").to_string(), "MariaDB 10.11.19");
        assert_eq!(server("9.7.4-2").to_string(), "MySQL 9.7.4");
        for will_do in ["10.6.0-MariaDB", "11.4.2-MariaDB-log", "8.0.36", "8.0.mysql_aurora.3.05.2", "9.1.0"] {
            assert_eq!(server(will_do).judge(), Ok(()), "{will_do}");
        }
        for too_old in ["10.5.23-MariaDB", "5.7.44-log"] {
            assert!(matches!(server(too_old).judge(), Err(OpenError::Refused(_))), "{too_old}");
        }
    }

    #[test]
    fn a_server_that_cannot_work_is_refused_with_what_to_do() {
        let small = Server { packet: 1 << 20, ..server("8.0.36") };
        assert!(matches!(small.judge(), Err(OpenError::Refused(why)) if why.contains("max_allowed_packet")));
        let statement = Server { binlog_format: "STATEMENT".to_owned(), ..server("8.0.36") };
        assert!(matches!(statement.judge(), Err(OpenError::Refused(why)) if why.contains("binlog_format")));
        assert_eq!(Server { binlog: None, ..statement }.judge(), Ok(()), "there is none");
    }

    #[test]
    fn what_is_less_than_durable_is_told() {
        assert_eq!(server("8.0.36").warnings(), Vec::<String>::new());
        let weak = Server { flush: 2, binlog: Some(0), has_doublewrite: false, ..server("8.0.36") };
        assert_eq!(weak.warnings().len(), 3);
        assert_ne!(weak.durability(), server("8.0.36").durability());
    }
}
