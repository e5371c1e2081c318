//! What there is to know of the server, and what a confirmation of its is worth.

use tokio_postgres::Client;

use crate::error::Trouble;
use crate::migrate;
use crate::session::connect;
use crate::target::Target;

/// A server that we can work with, as it was when we first met it.
pub(crate) struct Server {
    /// What it calls itself: `PostgreSQL 15.13`.
    pub(crate) product: String,
    synchronous_commit: String,
    standbys: String,
    /// Settings that are off, and let what was confirmed get lost in a crash.
    off: Vec<String>,
}

impl Server {
    pub(crate) async fn meet(target: &Target) -> Result<Server, Trouble> {
        let (client, driver) = connect(target).await?;
        let met = look(&client, target).await;
        if met.is_err() {
            driver.abort();
        }
        met
    }

    /// What a confirmation is worth.
    pub(crate) fn worth(&self) -> String {
        let where_to = match (&*self.synchronous_commit, &*self.standbys) {
            ("off", _) => return "confirmed before it is on a disk (synchronous_commit is off)".to_owned(),
            ("local", _) | (_, "") => "on the server's disk".to_owned(),
            ("remote_apply" | "on", standbys) => format!("on its disk and on those of standbys ({standbys})"),
            (other, standbys) => format!("on its disk and handed to standbys ({other}, {standbys})"),
        };
        format!("confirmed when {where_to}")
    }

    /// What somebody should know who trusts it with tasks.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.synchronous_commit == "off" {
            let text = "synchronous_commit is off on the PostgreSQL server: if it crashes, the last confirmed changes are lost. \
                        Turn it on for Punctual's user: ALTER ROLE … SET synchronous_commit = on";
            warnings.push(text.to_owned());
        }
        for setting in &self.off {
            warnings.push(format!(
                "{setting} is off on the PostgreSQL server: if its machine crashes, everything may be lost. Turn it on"
            ));
        }
        warnings
    }
}

async fn look(client: &Client, target: &Target) -> Result<Server, Trouble> {
    migrate::suits(client).await?;
    migrate::look(client, &target.layout).await?;
    let text = "SELECT current_setting('server_version'), current_setting('synchronous_commit'), \
                current_setting('synchronous_standby_names'), current_setting('fsync'), \
                current_setting('full_page_writes'), pg_is_in_recovery()";
    let row = client.query_one(text, &[]).await.map_err(|error| Trouble::of(&error))?;
    if row.get::<_, bool>(5) {
        return Err(Trouble::ReadOnly("this server is a standby, which only reads: connect to the primary".to_owned()));
    }
    // Builds of distributions add their own words: `15.13 (Debian 15.13-0+deb12u1)`.
    let version: String = row.get(0);
    let product = format!("PostgreSQL {}", version.split(' ').next().unwrap_or_default());
    let settings = [("fsync", row.get::<_, String>(3)), ("full_page_writes", row.get(4))];
    let off = settings.into_iter().filter(|(_, value)| value == "off").map(|(name, _)| name.to_owned()).collect();
    Ok(Server { product, synchronous_commit: row.get(1), standbys: row.get(2), off })
}
