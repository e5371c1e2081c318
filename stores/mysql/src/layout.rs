//! The tables, made and brought up to date by whoever comes first. Versions only go forward.
//!
//! ```text
//! shards   who owns a shard, under which fence, and its latest commit
//! nodes    who is there        cluster  what all nodes share
//! names    what never changes of a row: key, group and body      members  the rows of a group
//! rows     what changes of it: table, time, state, and the commit that wrote it last
//! tallies  all counts of a shard as of a commit                  deltas   what later commits add to them
//! layout   the version of all this
//! ```
//! `names` and `rows` are apart because a row changes twice or more in its life, and its body and its long key need not be
//! written again then. `rows` has no unique key but its first: what updates it relies on that.

use std::time::Instant;

use punctual_database::{Migrated, OpenError};

use crate::answer::Answer;
use crate::name;
use crate::pool::{Line, Pool};
use crate::sql::{Sql, Tables};
use crate::trouble::{Trouble, code};

/// The version that this code reads and writes.
pub(crate) const VERSION: u32 = 1;

/// Makes the tables, or brings them up to date.
pub(crate) fn migrate(pool: &Pool, tables: &Tables) -> Result<Migrated, OpenError> {
    let deadline = pool.deadline();
    let mut line = pool.take(deadline)?;
    let found = version(&mut line, tables, deadline)?;
    if found == Some(VERSION) {
        return Ok(Migrated { from: found, to: VERSION });
    }
    // The lock has the name of the database and of the tables, in the length that every server takes.
    let lock = format!("LEFT(SHA2(CONCAT(DATABASE(),'.{}'),256),60)", tables.layout);
    let answers = ask(&mut line, format!("SELECT GET_LOCK({lock},1)"), deadline)?;
    if first_number(answers) != Some(1) {
        return Err(OpenError::Away("another server is just making the tables".to_owned()));
    }
    let migrated = migrate_alone(&mut line, tables, deadline);
    let _ = ask(&mut line, format!("DO RELEASE_LOCK({lock})"), deadline);
    migrated
}

/// Whether the tables are there and as they should be.
pub(crate) fn verify(pool: &Pool, tables: &Tables) -> Result<(), OpenError> {
    let deadline = pool.deadline();
    match version(&mut pool.take(deadline)?, tables, deadline)? {
        Some(VERSION) => Ok(()),
        Some(older) => Err(OpenError::Refused(format!(
            "the tables are of version {older}, and this is version {VERSION}: run `punctual store migrate`"
        ))),
        None => Err(OpenError::Refused(format!("there is no store here: there is no table {}", tables.layout))),
    }
}

/// The version that is there; refused if it is newer than this code.
fn version(line: &mut Line<'_>, tables: &Tables, deadline: Instant) -> Result<Option<u32>, OpenError> {
    let found = match ask(line, format!("SELECT version FROM {}", tables.layout), deadline) {
        Ok(answers) => first_number(answers).and_then(|version| u32::try_from(version).ok()),
        Err(trouble) if trouble.code() == Some(code::NO_SUCH_TABLE) => {
            line.roll_back_and_ask(&Sql::default(), deadline)?;
            None
        }
        Err(trouble) => return Err(trouble.into()),
    };
    match found {
        Some(newer) if newer > VERSION => Err(OpenError::Refused(format!(
            "the tables are of version {newer}, and this is version {VERSION} of the store: they were made by a newer \
             Punctual, and only that one or a later one can use them"
        ))),
        found => Ok(found),
    }
}

/// Goes from the version that is there to ours. Nothing here happens in a transaction, since the server ends one with
/// every table that it makes, so every step can be done again, and the version is written last.
fn migrate_alone(line: &mut Line<'_>, tables: &Tables, deadline: Instant) -> Result<Migrated, OpenError> {
    let from = version(line, tables, deadline)?;
    if from != Some(VERSION) {
        for statement in first_version(tables) {
            ask(line, statement, deadline)?;
        }
        let noted = format!(
            "INSERT INTO {} (one,version) VALUES (1,{VERSION}) ON DUPLICATE KEY UPDATE version={VERSION}",
            tables.layout
        );
        ask(line, noted, deadline)?;
    }
    Ok(Migrated { from, to: VERSION })
}

fn ask(line: &mut Line<'_>, statement: String, deadline: Instant) -> Result<Vec<Answer>, Trouble> {
    line.ask(&Sql::from(statement), deadline).map_err(|stopped| stopped.why)
}

fn first_number(answers: Vec<Answer>) -> Option<u64> {
    answers.into_iter().flat_map(Answer::rows).next()?.number().ok()
}

fn first_version(tables: &Tables) -> Vec<String> {
    let Tables { layout, shards, nodes, cluster, names, members, rows, tallies, deltas, .. } = tables;
    let shard = "shard SMALLINT UNSIGNED NOT NULL";
    let key = name::LONGEST;
    let table = |name: &str, columns: String| {
        format!("CREATE TABLE IF NOT EXISTS {name} ({columns}) ENGINE=InnoDB ROW_FORMAT=DYNAMIC")
    };
    vec![
        table(
            shards,
            format!(
                "{shard} PRIMARY KEY, fence BIGINT UNSIGNED NOT NULL, serial BIGINT UNSIGNED NOT NULL, \
                 node VARBINARY(255), incarnation BIGINT UNSIGNED"
            ),
        ),
        table(
            nodes,
            "node VARBINARY(255) NOT NULL PRIMARY KEY, incarnation BIGINT UNSIGNED NOT NULL, \
             address VARBINARY(1024) NOT NULL, until_ms BIGINT UNSIGNED NOT NULL"
                .to_owned(),
        ),
        table(
            cluster,
            "entry VARBINARY(255) NOT NULL PRIMARY KEY, revision BIGINT UNSIGNED NOT NULL, value LONGBLOB NOT NULL"
                .to_owned(),
        ),
        table(
            names,
            format!(
                "{shard}, seq BIGINT UNSIGNED NOT NULL, size INT UNSIGNED NOT NULL, name VARBINARY({key}) NOT NULL, \
                 grp VARBINARY(255), body LONGBLOB NOT NULL, PRIMARY KEY (shard, seq), UNIQUE KEY name (shard, name)"
            ),
        ),
        table(
            members,
            format!(
                "{shard}, grp VARBINARY(255) NOT NULL, seq BIGINT UNSIGNED NOT NULL, PRIMARY KEY (shard, grp, seq)"
            ),
        ),
        table(
            rows,
            format!(
                "{shard}, seq BIGINT UNSIGNED NOT NULL, tbl TINYINT UNSIGNED NOT NULL, at BIGINT UNSIGNED NOT NULL, \
                 serial BIGINT UNSIGNED NOT NULL, state LONGBLOB NOT NULL, PRIMARY KEY (shard, seq), \
                 KEY time (shard, tbl, at)"
            ),
        ),
        table(tallies, format!("{shard} PRIMARY KEY, serial BIGINT UNSIGNED NOT NULL, counts LONGBLOB NOT NULL")),
        table(
            deltas,
            format!("{shard}, serial BIGINT UNSIGNED NOT NULL, counts LONGBLOB NOT NULL, PRIMARY KEY (shard, serial)"),
        ),
        table(layout, "one TINYINT NOT NULL PRIMARY KEY, version INT UNSIGNED NOT NULL".to_owned()),
    ]
}
