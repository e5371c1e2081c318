//! Everything that is ever said to the server after a connection is set up. Each statement is a file under `sql/`.

use tokio_postgres::types::ToSql;

use crate::layout::Layout;

/// A value for a statement.
pub(crate) type Value = Box<dyn ToSql + Send + Sync>;

/// A statement with its values, ready to be sent, and sent again.
pub(crate) struct Query {
    pub(crate) statement: Statement,
    pub(crate) values: Vec<Value>,
}

impl Query {
    pub(crate) fn new(statement: Statement, values: Vec<Value>) -> Query {
        Query { statement, values }
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
    Commit "commit",
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
}

impl Statement {
    /// The texts of all statements for a layout, in the order of their numbers.
    pub(crate) fn texts(layout: &Layout) -> Vec<String> {
        Statement::TEXTS.iter().map(|text| layout.fill(text)).collect()
    }
}
