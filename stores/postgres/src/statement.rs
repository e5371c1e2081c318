//! Everything that is ever said to the server after a connection is set up. Each statement is a file under `sql/`.

use tokio_postgres::types::ToSql;

use crate::layout::Layout;

/// A value for a statement.
pub(crate) type Value = Box<dyn ToSql + Send + Sync>;

/// A statement with its values, ready to be sent, and sent again.
pub(crate) struct Query {
    /// The number of the statement among all of them.
    pub(crate) number: usize,
    pub(crate) values: Vec<Value>,
}

impl Query {
    pub(crate) fn new(statement: Statement, values: Vec<Value>) -> Query {
        Query { number: statement as usize, values }
    }

    /// A commit that has such changes.
    pub(crate) fn commit(parts: Parts, values: Vec<Value>) -> Query {
        Query { number: Statement::TEXTS.len() + parts.number(), values }
    }
}

/// Which kinds of changes a commit has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) removals: bool,
    pub(crate) updates: bool,
    pub(crate) inserts: bool,
}

impl Parts {
    const COUNT: usize = 8;

    fn number(self) -> usize {
        usize::from(self.removals) | usize::from(self.updates) << 1 | usize::from(self.inserts) << 2
    }

    fn numbered(number: usize) -> Parts {
        Parts { removals: number & 1 != 0, updates: number & 2 != 0, inserts: number & 4 != 0 }
    }

    fn has(self, part: &str) -> bool {
        match part {
            "removals" => self.removals,
            "updates" => self.updates,
            "inserts" => self.inserts,
            other => panic!("commit.sql has no part {other}"),
        }
    }

    /// The statement of commits that have these parts and no others.
    fn text(self) -> String {
        let mut text = String::new();
        let mut within = Vec::new();
        for line in include_str!("../sql/commit.sql").lines() {
            match line.strip_prefix("-- if ") {
                Some(part) => within.push(self.has(part)),
                None if line == "-- end" => drop(within.pop()),
                None if within.iter().all(|is_there| *is_there) => text.extend([line, "\n"]),
                None => {}
            }
        }
        text
    }
}

/// A value, as statements take it.
pub(crate) fn value(value: impl ToSql + Send + Sync + 'static) -> Value {
    Box::new(value)
}

macro_rules! statements {
    ($($name:ident $file:literal,)*) => {
        /// What can be said.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Statement { $($name,)* }

        impl Statement {
            /// All statements, in the order of their numbers, with their texts.
            const TEXTS: &[&str] = &[$(include_str!(concat!("../sql/", $file, ".sql")),)*];
        }
    };
}

statements! {
    Standing "standing",
    Keys "keys",
    Positions "positions",
    Numbers "numbers",
    Scan "scan",
    ScanTopic "scan_topic",
    ScanBack "scan_back",
    ScanBackTopic "scan_back_topic",
    Find "find",
    FindBack "find_back",
    Tallies "tallies",
    Fold "fold",
    Beat "beat",
    Leave "leave",
    RollNodes "roll_nodes",
    RollShards "roll_shards",
    RollRevisions "roll_revisions",
    ClaimFirst "claim_first",
    Claim "claim",
    Release "release",
    ClusterGet "cluster_get",
    ClusterPut "cluster_put",
    Size "size",
    Littered "littered",
}

impl Statement {
    /// The texts of all statements for a layout, in the order of their numbers.
    pub(crate) fn texts(layout: &Layout) -> Vec<String> {
        Statement::TEXTS.iter().map(|text| layout.fill(text)).collect()
    }

    /// The texts of all commits, in the order of their numbers. They come after the others.
    pub(crate) fn commits(layout: &Layout) -> Vec<String> {
        (0..Parts::COUNT).map(|number| layout.fill(&Parts::numbered(number).text())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_has_the_parts_that_it_needs() {
        let has = |parts: Parts, text: &str| parts.text().contains(text);
        let inserts = Parts { inserts: true, ..Parts::default() };
        assert!(has(inserts, "INSERT INTO {rows}") && !has(inserts, "DELETE") && !has(inserts, "FROM removed"));
        let replaces = Parts { removals: true, ..inserts };
        assert!(
            has(replaces, "DELETE FROM {names}") && has(replaces, "FROM removed) >= 0") && !has(replaces, "updated")
        );
        let all = Parts { updates: true, ..replaces };
        assert!(
            has(all, "updated AS") && !all.text().lines().any(|line| line == "-- end" || line.starts_with("-- if "))
        );
        assert!((0..Parts::COUNT).all(|number| Parts::numbered(number).number() == number));
    }
}
