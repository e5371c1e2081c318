//! A connection to the server, set up so that the same statements always go the same ways.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use futures_util::TryStreamExt;
use tokio::task::AbortHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row};

use crate::aside::SNAPSHOT;
use crate::draft::Draft;
use crate::error::Trouble;
use crate::migrate;
use crate::statement::{Query, Statement};
use crate::target::Target;

/// A connection with all statements prepared.
pub(crate) struct Session {
    client: Client,
    driver: AbortHandle,
    prepared: Vec<tokio_postgres::Statement>,
}

impl Session {
    /// Connects, and says what there is to know of the server.
    pub(crate) async fn open(target: &Target) -> Result<Session, Trouble> {
        let (client, driver) = connect(target).await?;
        let mut session = Session { client, driver, prepared: Vec::new() };
        session.client.batch_execute(&ways(target.patience)).await.map_err(|error| Trouble::of(&error))?;
        migrate::look(&session.client, &target.layout).await?;
        let (texts, commits, types) =
            (Statement::texts(&target.layout), Statement::commits(&target.layout), Draft::types());
        let plain = texts.iter().map(|text| (text, &[][..]));
        let all = plain.chain(commits.iter().map(|text| (text, &types[..])));
        let prepared = in_order(all.map(|(text, types)| session.client.prepare_typed(text, types)).collect()).await;
        session.prepared = prepared.into_iter().collect::<Result<_, _>>().map_err(|error| Trouble::of(&error))?;
        if let Some(is_seen) = &target.moment {
            if is_seen.swap(true, Ordering::Relaxed) {
                return Err(Trouble::Refused("the connection that saw one moment is lost".to_owned()));
            }
            session.client.batch_execute(SNAPSHOT).await.map_err(|error| Trouble::of(&error))?;
        }
        Ok(session)
    }

    /// Sends all queries at once, each a transaction of its own, and gives what they say. One that fails leaves the
    /// others alone.
    pub(crate) async fn ask(&self, queries: &[Query]) -> Vec<Result<Vec<Row>, Error>> {
        in_order(queries.iter().map(|query| self.ask_one(query)).collect()).await
    }

    async fn ask_one(&self, query: &Query) -> Result<Vec<Row>, Error> {
        let prepared = &self.prepared[query.number];
        let values: Vec<&(dyn ToSql + Sync)> = query.values.iter().map(|value| &**value as _).collect();
        self.client.query_raw(prepared, values).await?.try_collect().await
    }

    /// Whether the server is gone, as far as one knows.
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Ends it at once, with whatever is under way.
    pub(crate) fn cut(self) {
        self.driver.abort();
    }
}

/// Connects, and puts aside what the server, the database or the user may have set that is in our way.
pub(crate) async fn connect(target: &Target) -> Result<(Client, AbortHandle), Trouble> {
    let (client, connection) = target.server.connect(target.tls.clone()).await.map_err(|error| Trouble::of(&error))?;
    let driver = tokio::spawn(async move {
        // What is wrong with the connection is heard by whoever waits for an answer on it.
        let _ = connection.await;
    });
    client.batch_execute(PEACE).await.map_err(|error| Trouble::of(&error))?;
    Ok((client, driver.abort_handle()))
}

/// What every session needs. The last settings are not known to every version.
const PEACE: &str = "
    SET search_path = pg_catalog;
    SET default_transaction_isolation = 'read committed';
    SET default_transaction_read_only = off;
    SET statement_timeout = 0;
    SET lock_timeout = 0;
    SET idle_in_transaction_session_timeout = 0;
    SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('idle_session_timeout', 'transaction_timeout')";

/// What a session for calls needs.
///
/// There is one good way for each of our statements: from the few rows it is given, or from one end of an index, to the
/// others by key. Without statistics, or with old ones, the planner may think otherwise, and then a commit takes seconds;
/// so it gets no choice, and plans once. The statements themselves leave none between two ways by index.
fn ways(patience: Duration) -> String {
    format!(
        "SET statement_timeout = {};
        SET plan_cache_mode = force_generic_plan;
        SET enable_indexscan = on;
        SET enable_indexonlyscan = on;
        SET enable_nestloop = on;
        SET enable_tidscan = on;
        SET enable_seqscan = off;
        SET enable_bitmapscan = off;
        SET enable_hashjoin = off;
        SET enable_mergejoin = off;
        SET jit = off;
        SET max_parallel_workers_per_gather = 0;
        SET work_mem = '32MB';
        SELECT set_config(name, 'off', false) FROM pg_settings WHERE name = 'enable_memoize'",
        patience.as_millis()
    )
}

/// Waits for all. Each is begun before the next, which is the order in which the server hears of them.
async fn in_order<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    poll_fn(|cx| {
        let mut is_done = true;
        for (future, output) in &mut futures {
            if output.is_none() {
                match Pin::new(future).poll(cx) {
                    Poll::Ready(ready) => *output = Some(ready),
                    Poll::Pending => is_done = false,
                }
            }
        }
        if is_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    futures.into_iter().map(|(_, output)| output.expect("all are done")).collect()
}
