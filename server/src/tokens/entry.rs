//! Tokens in the store, the same for all servers on it: an entry of the cluster, beside the secret that vouches for leases.

use std::sync::Arc;

use punctual_core::store::{Entry, Store, StoreError};

use super::{Found, Mark, TokenError, TokenFile, TokenPlace};
use crate::config::Config;

/// The entry that holds them. An entry cannot be removed: one that says nothing stands for none.
const TOKENS: &str = "tokens";

/// The tokens in a store.
pub struct TokenEntry(Arc<dyn Store>);

impl TokenEntry {
    /// Those of this store. If it has none yet, a file that was made for this server becomes theirs: who was kept out by
    /// it is kept out by the store.
    pub fn of(store: Arc<dyn Store>, config: &Config) -> Result<TokenEntry, TokenError> {
        let (entry, file) = (TokenEntry(store), TokenFile::at(config.tokens()));
        let there = entry.find()?;
        let Some(text) = file.find()?.text else { return Ok(entry) };
        if there.text.is_some() {
            tracing::warn!(file = file.name(), "this token file is not used: the tokens are in the store");
        } else if entry.replace(there.revision, &text)? {
            tracing::info!(
                file = file.name(),
                "the tokens of this file are in the store now; the file is not used any more"
            );
        }
        Ok(entry)
    }
}

impl TokenPlace for TokenEntry {
    fn name(&self) -> String {
        "the store".into()
    }

    fn find(&self) -> Result<Found, TokenError> {
        let Some(Entry { revision, value }) = self.0.cluster_get(TOKENS)? else {
            return Ok(Found { text: None, revision: 0 });
        };
        let text = String::from_utf8(value.to_vec()).map_err(|_| {
            let what = "they are not text: restore the store from a backup, or name a file by `access.tokens`".into();
            TokenError::Content { place: self.name(), line: None, what }
        })?;
        Ok(Found { text: Some(text).filter(|text| !text.is_empty()), revision })
    }

    fn replace(&self, revision: u64, text: &str) -> Result<bool, TokenError> {
        Ok(self.0.cluster_put(TOKENS, revision, text.as_bytes())?.is_ok())
    }

    fn mark(&self) -> Option<Mark> {
        let entry: Result<Option<Entry>, StoreError> = self.0.cluster_get(TOKENS);
        Some(Mark::Entry(entry.ok()?.map_or(0, |entry| entry.revision)))
    }
}

/// Puts tokens that came with a move from another store into the file that a server on this one reads. One that is there
/// stays as it is. The entry is emptied, so that it never counts again.
pub fn bring_out(store: &Arc<dyn Store>, config: &Config) -> Result<(), TokenError> {
    if config.store.url.is_remote() {
        return Ok(());
    }
    let (entry, file) = (TokenEntry(Arc::clone(store)), TokenFile::at(config.tokens()));
    let Found { text: Some(text), revision } = entry.find()? else { return Ok(()) };
    if file.find()?.text.is_none() {
        file.replace(0, &text)?;
        tracing::info!(file = file.name(), "the tokens that came with the store are in this file now");
    }
    entry.replace(revision, "").map(drop)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use punctual_memory::MemoryStore;
    use punctual_node::SystemClock;
    use punctual_node::access::{Access, Role};

    use super::super::Tokens;
    use super::*;
    use crate::config::StoreUrl;

    fn store() -> Arc<dyn Store> {
        Arc::new(MemoryStore::new(Arc::new(SystemClock)))
    }

    fn config(store: &str, data: &std::path::Path) -> Config {
        let mut config = Config { data: data.to_owned(), ..Config::default() };
        config.store.url = StoreUrl::read(store).unwrap();
        config
    }

    fn tokens(store: &Arc<dyn Store>) -> Tokens {
        Tokens::of(TokenEntry(Arc::clone(store)))
    }

    fn create(tokens: &Tokens, name: &str) -> String {
        tokens.create(name, vec![Role::Admin], vec!["*".into()]).unwrap()
    }

    fn names(tokens: &Tokens) -> Vec<String> {
        tokens.entries().unwrap().unwrap().into_iter().map(|token| token.name).collect()
    }

    #[test]
    fn a_secret_opens_the_door_of_every_server_on_the_store() {
        let store = store();
        let (one, other) = (tokens(&store), tokens(&store));
        assert_eq!(other.read().unwrap(), None);
        let before = other.mark();
        let secret = create(&one, "a");
        assert_ne!(other.mark(), before);
        Access::with_tokens(other.read().unwrap().unwrap()).check(Some(&secret)).unwrap();
        other.revoke("a").unwrap();
        assert_eq!(one.read().unwrap(), Some(Vec::new()), "nobody is let in");
    }

    #[test]
    fn of_changes_at_the_same_time_none_is_lost() {
        let store = store();
        std::thread::scope(|scope| {
            for maker in 0..4 {
                let tokens = tokens(&store);
                scope.spawn(move || (0..10).for_each(|n| _ = create(&tokens, &format!("{maker}-{n}"))));
            }
        });
        assert_eq!(names(&tokens(&store)).len(), 40);
    }

    #[test]
    fn what_is_not_tokens_is_told() {
        let store = store();
        store.cluster_put(TOKENS, 0, b"[[token]]\nnam = 1").unwrap().unwrap();
        let told = tokens(&store).read().unwrap_err().to_string();
        assert!(told.starts_with("the store:2: ") && told.contains("nam"), "{told}");
    }

    #[test]
    fn the_file_of_a_server_is_taken_over_once() {
        let (store, data) = (store(), tempfile::tempdir().unwrap());
        let config = config("postgres://db/x", data.path());
        let file = Tokens::of(TokenFile::at(config.tokens()));
        create(&file, "from the file");
        let entry = Tokens::of(TokenEntry::of(Arc::clone(&store), &config).unwrap());
        assert_eq!(names(&entry), ["from the file"]);
        create(&file, "too late");
        entry.revoke("from the file").unwrap();
        let entry = Tokens::of(TokenEntry::of(store, &config).unwrap());
        assert_eq!(names(&entry), [] as [&str; 0], "nobody is let in again");
    }

    #[test]
    fn tokens_that_came_with_a_move_become_the_file_of_an_embedded_store() {
        let (store, data) = (store(), tempfile::tempdir().unwrap());
        create(&tokens(&store), "moved");
        bring_out(&store, &config("postgres://db/x", data.path())).unwrap();
        assert_eq!(names(&tokens(&store)), ["moved"], "another database keeps them");
        let config = config("almanac", data.path());
        bring_out(&store, &config).unwrap();
        let file = Tokens::of(TokenFile::at(config.tokens()));
        assert_eq!(names(&file), ["moved"]);
        assert_eq!(tokens(&store).read().unwrap(), None);
        file.revoke("moved").unwrap();
        bring_out(&store, &config).unwrap();
        assert_eq!(names(&file), [] as [&str; 0], "it is out for good");
    }
}
