//! The tables, and how a contestant's process tells its results to the one that prints them: a line for each row
//! of a table, with tabs between the cells.

use std::io::{self, Write};

use crate::table::Table;

pub use crate::table::{decimals, grouped};

struct Form {
    name: &'static str,
    headings: &'static [&'static str],
}

const INSERTS: [&str; 6] = ["rows/s", "cores", "p50 ms", "p99 ms", "p99.9 ms", "max ms"];

const FORMS: &[Form] = &[
    Form { name: "empty", headings: &inserts("inserts into an empty store, synced") },
    Form { name: "pending", headings: &inserts("inserts with all rows pending, synced") },
    Form {
        name: "fill",
        headings: &[
            "filling, 1,000 a commit",
            "rows/s",
            "last quarter",
            "cores",
            "p99.9 ms",
            "max ms",
            "settled after s",
            "CPU µs/row",
            "write amplification",
            "disk/rows",
            "RSS MiB",
            "peak MiB",
        ],
    },
    Form {
        name: "reads",
        headings: &["with all rows pending, a second", "due in order", "get", "get absent", "remove by key"],
    },
    Form {
        name: "lives",
        headings: &["whole lives, 1,000 a commit", "lives/s", "cores", "p99.9 ms", "max ms", "disk/rows afterwards"],
    },
    Form { name: "node", headings: &["through a node", "a second", "cores"] },
    Form {
        name: "backlog",
        headings: &[
            "overdue tasks that nobody takes",
            "scheduled/s",
            "RSS MiB",
            "peak MiB",
            "bytes each beyond 256 MiB",
            "other queue late p50 ms",
            "p99 ms",
            "max ms",
        ],
    },
    Form {
        name: "open",
        headings: &["opening after kill -9, page cache warm", "best ms", "worst ms", "worst, with first reads ms"],
    },
];

const fn inserts(title: &'static str) -> [&'static str; 7] {
    let [rate, cores, p50, p99, p999, max] = INSERTS;
    [title, rate, cores, p50, p99, p999, max]
}

/// One row of a table. Rows of a lower group stand first, whoever came first within one.
struct Line {
    table: String,
    group: usize,
    cells: Vec<String>,
}

#[derive(Default)]
pub struct Report {
    lines: Vec<Line>,
}

impl Report {
    /// Takes a line as [`tell`] writes it; false if it is not one.
    pub fn take(&mut self, line: &str) -> bool {
        let mut parts = line.split('\t').map(str::to_owned);
        let (Some(table), Some(group)) = (parts.next(), parts.next()) else { return false };
        let Ok(group) = group.parse() else { return false };
        self.lines.push(Line { table, group, cells: parts.collect() });
        true
    }

    pub fn add(&mut self, table: &str, label: &str, cells: impl IntoIterator<Item = String>) {
        let cells = [label.to_owned()].into_iter().chain(cells).collect();
        self.lines.push(Line { table: table.to_owned(), group: 0, cells });
    }

    pub fn print(mut self) {
        self.lines.sort_by_key(|line| line.group);
        for form in FORMS {
            let mut lines = self.lines.iter().filter(|line| line.table == form.name).peekable();
            if lines.peek().is_some() {
                let mut table = Table::new(form.headings);
                lines.for_each(|line| table.row(line.cells.clone()));
                table.print();
            }
        }
    }
}

/// Tells one row of a table to the process that prints them.
pub fn tell(table: &str, group: usize, label: &str, cells: impl IntoIterator<Item = String>) {
    let cells: Vec<String> = cells.into_iter().collect();
    say(&format!("{table}\t{group}\t{label}\t{}", cells.join("\t")));
}

/// A line to the process that started this one, at once.
pub fn say(line: &str) {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the other process listens");
}

pub fn mebibytes(bytes: u64) -> String {
    grouped(bytes >> 20)
}
