//! The versions of the tables: made and brought forward by whoever comes first, one at a time, and never back.
//!
//! To change the tables, write the next file under `sql/migrations/` and name it here; those that are there never change.

use punctual_database::Migrated;
use tokio_postgres::Client;

use crate::error::Trouble;
use crate::layout::Layout;
use crate::session::connect;
use crate::target::Target;

/// What brings the tables from each version to the next.
const MIGRATIONS: [&str; 1] = [include_str!("../sql/migrations/1.sql")];

/// The version that this code works with.
pub(crate) const VERSION: u32 = MIGRATIONS.len() as u32;

/// The oldest PostgreSQL that knows what we ask of it.
const OLDEST_SERVER: i32 = 13;

/// Creates the tables, or brings them forward. The others that try at the same time wait, and find it done.
pub(crate) async fn migrate(target: &Target) -> Result<Migrated, Trouble> {
    let (client, driver) = connect(target).await?;
    let migrated = steps(&client, &target.layout).await;
    drop(client);
    if migrated.is_err() {
        driver.abort();
    }
    migrated
}

async fn steps(client: &Client, layout: &Layout) -> Result<Migrated, Trouble> {
    suits(client).await?;
    let found = version(client, layout).await?;
    if found == Some(VERSION) {
        // The usual case needs no rights but to read.
        return Ok(Migrated { from: found, to: VERSION });
    }
    let run = async |text: &str| client.batch_execute(text).await.map_err(|error| Trouble::of(&error));
    run("BEGIN").await?;
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
    client.execute(lock, &[&layout.lock_text()]).await.map_err(|error| Trouble::of(&error))?;
    let found = version(client, layout).await?;
    check(found)?;
    if found.is_none() {
        // Asked for, even if it is there, this takes a right that may be missing.
        let has_schema = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
        let schemas = client.query(has_schema, &[&layout.schema()]).await.map_err(|error| Trouble::of(&error))?;
        if schemas.is_empty() {
            run(&layout.fill("CREATE SCHEMA {schema}")).await?;
        }
        let table = "CREATE TABLE {migrations} (version int4 PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())";
        run(&layout.fill(table)).await?;
    }
    for (version, text) in (1u32..).zip(MIGRATIONS).skip(found.unwrap_or(0) as usize) {
        run(&layout.fill(text)).await?;
        run(&layout.fill(&format!("INSERT INTO {{migrations}} (version) VALUES ({version})"))).await?;
    }
    run("COMMIT").await?;
    Ok(Migrated { from: found, to: VERSION })
}

/// Whether the tables are of the version that this code works with.
pub(crate) async fn look(client: &Client, layout: &Layout) -> Result<(), Trouble> {
    let found = version(client, layout).await?;
    check(found)?;
    match found {
        Some(VERSION) => Ok(()),
        Some(older) => Err(Trouble::Refused(format!(
            "the tables in {} are of version {older}, and this server needs version {VERSION}: run `punctual store migrate`",
            layout.place()
        ))),
        None => Err(Trouble::Refused(format!(
            "there are no tables of Punctual in {}: run `punctual store migrate`",
            layout.place()
        ))),
    }
}

fn check(found: Option<u32>) -> Result<(), Trouble> {
    match found {
        Some(newer) if newer > VERSION => Err(Trouble::Refused(format!(
            "the tables are of version {newer}, and this server knows no version after {VERSION}: a newer Punctual has \
             been here, so run that"
        ))),
        _ => Ok(()),
    }
}

async fn version(client: &Client, layout: &Layout) -> Result<Option<u32>, Trouble> {
    // Looked for as a row of the catalogue: what the server knows by name may be from before somebody else's migration.
    let there =
        "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE nspname = $1 AND relname = $2";
    let found = client.query(there, &[&layout.schema(), &layout.migrations()]).await;
    if found.map_err(|error| Trouble::of(&error))?.is_empty() {
        return Ok(None);
    }
    let text = layout.fill("SELECT max(version) FROM {migrations}");
    let latest = client.query_one(&text, &[]).await.map_err(|error| Trouble::of(&error))?;
    Ok(latest.get::<_, Option<i32>>(0).and_then(|version| u32::try_from(version).ok()))
}

/// Whether the server is one that we can work with.
pub(crate) async fn suits(client: &Client) -> Result<(), Trouble> {
    let text = "SELECT current_setting('server_version_num')::int4, current_setting('server_encoding')";
    let row = client.query_one(text, &[]).await.map_err(|error| Trouble::of(&error))?;
    let (version, encoding): (i32, String) = (row.get(0), row.get(1));
    if version / 10_000 < OLDEST_SERVER {
        let found = version / 10_000;
        return Err(Trouble::Refused(format!("this is PostgreSQL {found}, and {OLDEST_SERVER} or later is needed")));
    }
    if encoding != "UTF8" {
        return Err(Trouble::Refused(format!(
            "the database is encoded in {encoding}, which cannot hold every name: create one in UTF8"
        )));
    }
    Ok(())
}
