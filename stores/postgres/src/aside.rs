//! Work that takes as long as it takes, on a connection of its own beside the calls: looking at all rows.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use punctual_core::store::StoreError;
use punctual_database::Threads;
use tokio_postgres::{Client, Error};

use crate::courier::Courier;
use crate::error::Trouble;
use crate::session::connect;
use crate::target::Target;

/// Does something, all of which sees the tables at one moment.
pub(crate) fn aside<T: Send + 'static>(
    courier: &Arc<Courier>,
    threads: &Threads,
    look: impl for<'a> FnOnce(&'a Client, &'a Target) -> BoxFuture<'a, Result<T, Error>> + Send + 'static,
) -> Result<T, StoreError> {
    let target = courier.target().clone();
    let place = target.place();
    let work = threads.begin(async move {
        let (client, driver) = connect(&target).await?;
        let begun = client.batch_execute(SNAPSHOT).await;
        let seen = match begun {
            Ok(()) => look(&client, &target).await,
            Err(error) => Err(error),
        };
        driver.abort();
        seen.map_err(|error| Trouble::of(&error))
    });
    let seen = work.wait().unwrap_or_else(|| Err(Trouble::broken_off()));
    seen.map_err(|trouble| StoreError::Unavailable(format!("{place}: {}", trouble.text())))
}

/// From here on a connection sees one moment.
pub(crate) const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
