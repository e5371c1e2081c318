//! Room for new rows: what is changed or removed leaves dead rows behind, and until these are vacuumed away the tables
//! grow.
//!
//! The server sees to that by itself, but unless it is set otherwise it looks once a minute, and a busy store leaves
//! millions behind in a minute. So we look, too. Where tables are large and little of them changes, the server is first.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::sleep;
use tracing::debug;

use crate::background::Notes;
use crate::courier::Courier;
use crate::error::Trouble;
use crate::session::connect;
use crate::statement::{Query, Statement, value};

/// How often we look, and how seldom where it was of no use: somebody may hold on to old rows, or the tables be another's.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Vacuums whenever it pays, as long as the store is there and writes.
pub(crate) async fn keep_tidy(courier: Weak<Courier>, notes: Arc<Notes>) {
    let mut pause = LOOK_EVERY;
    loop {
        sleep(pause).await;
        let Some(courier) = courier.upgrade() else { return };
        if !notes.has_committed() {
            continue;
        }
        pause = match tidy(&courier).await {
            Ok(true) => LOOK_EVERY,
            Ok(false) => (pause * 2).min(LONGEST_PAUSE),
            Err(trouble) => {
                debug!(reason = trouble.text(), "the tables were not vacuumed, and are later");
                (pause * 2).min(LONGEST_PAUSE)
            }
        };
    }
}

/// Vacuums the tables that want it, and says whether none does any more.
async fn tidy(courier: &Courier) -> Result<bool, Trouble> {
    let tables = littered(courier).await?;
    if tables.is_empty() {
        return Ok(true);
    }
    // A connection of its own: those for calls are cut when a statement takes long, as this one may.
    let (client, _) = connect(courier.target()).await?;
    for table in tables {
        let vacuum = format!("VACUUM (SKIP_LOCKED, TRUNCATE false, PARALLEL 0) {table}");
        client.batch_execute(&vacuum).await.map_err(|error| Trouble::of(&error))?;
    }
    Ok(littered(courier).await?.is_empty())
}

/// The tables that have many dead rows, for their size.
async fn littered(courier: &Courier) -> Result<Vec<String>, Trouble> {
    let tables: Vec<String> = courier.target().layout.tables().collect();
    let mut answer = courier.ask(&[Query::new(Statement::Littered, vec![value(tables)])]).await?;
    Ok(answer.results.remove(0)?.iter().map(|row| row.get(0)).collect())
}
