//! The links between servers on one store. A store that only this server can reach has no others on it, and needs none.

mod bind;
mod meter;
mod tls;

use std::sync::Arc;

use punctual_core::store::Store;
use punctual_link::{Credentials, Settings, TcpLinks};
use punctual_node::LEVELS;
use tokio::runtime::Handle;

pub use bind::{Bound, bind};
pub use meter::meter;

use crate::config::Config;
use crate::failure::Failure;
use crate::stores::{Unopened, made_once};

/// The entry of the cluster by which the servers of a center know each other.
const CREDENTIALS: &str = "links";

/// Links by this socket, for servers that know what the store has.
pub fn open(bound: Bound, config: &Config, store: &dyn Store, runtime: Handle) -> Result<Arc<TcpLinks>, Failure> {
    let credentials = credentials(store)?;
    let mut settings = Settings::new(credentials, env!("CARGO_PKG_VERSION"), LEVELS);
    settings.tls = tls::from(&config.links)?;
    let links = TcpLinks::new(bound.listener, settings, runtime);
    links.map(Arc::new).map_err(|error| Failure::Failed(format!("cannot let other servers in: {error}")))
}

/// What all servers of the center have from the store; made by the first one that comes.
fn credentials(store: &dyn Store) -> Result<Credentials, Failure> {
    let kept = made_once(store, CREDENTIALS, || Credentials::draw().map(|drawn| drawn.to_bytes().to_vec()));
    let damaged = "the entry by which servers know each other is damaged: restore the store from a backup";
    let kept = kept.map_err(Unopened::into_failure)?;
    Credentials::from_bytes(&kept).ok_or_else(|| Failure::Failed(damaged.to_owned()))
}

#[cfg(test)]
mod tests {
    use punctual_memory::MemoryStore;
    use punctual_node::SystemClock;

    use super::*;

    #[test]
    fn all_servers_of_a_store_have_the_same_credentials() {
        let store = MemoryStore::new(Arc::new(SystemClock));
        let first = credentials(&store).expect("they are made");
        assert_eq!(credentials(&store).ok(), Some(first));
        let seen = store.cluster_get(CREDENTIALS).expect("the store answers").expect("it is there").revision;
        store.cluster_put(CREDENTIALS, seen, b"short").expect("the store answers").expect("it was not changed");
        let damaged = credentials(&store).expect_err("they cannot be read");
        assert!(damaged.to_string().contains("is damaged"), "{damaged}");
    }
}
