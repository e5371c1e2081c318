//! The tokens in force: what their file, or the store, says, read again when something was done to it.
//!
//! **Invariant**: they are looked at from outside before they are read, so what is done to them after that is noticed at the
//! next look. **Invariant**: no tokens that vanish or cannot be read let anybody in who was not let in before.

use std::sync::Arc;

use punctual_core::store::Store;
use punctual_node::access::Access;

use crate::config::Config;
use crate::failure::Failure;
use crate::tokens::{Mark, TokenEntry, TokenError, TokenFile, Tokens};

pub struct InForce {
    tokens: Tokens,
    access: Arc<Access>,
    /// How they looked before they were last read.
    seen: Option<Mark>,
    /// Why it could not be read the last time. Until it can be, it is tried again at every look.
    trouble: Option<String>,
}

impl InForce {
    /// Reads the tokens of a file for the first time. One that was named has to be there: who names one wants tokens.
    pub fn of_file(config: &Config) -> Result<InForce, Failure> {
        let file = TokenFile::at(config.tokens());
        let missing = missing(&file);
        let (tokens, is_there) = InForce::read(Tokens::of(file))?;
        match config.access.tokens.is_some() && !is_there {
            true => Err(Failure::Usage(missing)),
            false => Ok(tokens),
        }
    }

    /// Reads the tokens in the store for the first time.
    pub fn of_store(config: &Config, store: Arc<dyn Store>) -> Result<InForce, Failure> {
        let entry = TokenEntry::of(store, config).map_err(|error| Failure::Usage(error.to_string()))?;
        InForce::read(Tokens::of(entry)).map(|(tokens, _)| tokens)
    }

    /// Reads them, and says whether there are any.
    fn read(tokens: Tokens) -> Result<(InForce, bool), Failure> {
        let seen = tokens.mark();
        let found = tokens.read().map_err(|error| Failure::Usage(error.to_string()))?;
        let is_there = found.is_some();
        let access = Arc::new(found.map_or_else(Access::open, Access::with_tokens));
        Ok((InForce { tokens, access, seen, trouble: None }, is_there))
    }

    pub fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// Reads them again if something was done to them, or if they could not be read.
    pub fn look(&mut self) {
        if self.trouble.is_some() || self.tokens.mark() != self.seen {
            self.read_again();
        }
    }

    pub fn read_again(&mut self) {
        let seen = self.tokens.mark();
        let place = self.tokens.place();
        match self.tokens.read() {
            Ok(Some(tokens)) => {
                tracing::info!(tokens = tokens.len(), place, "tokens reloaded");
                self.access.replace(tokens);
                self.trouble = None;
            }
            Ok(None) => {
                if !self.access.is_open() {
                    tracing::warn!(place, "the tokens are gone; those last read stay in force until a restart");
                }
                self.trouble = None;
            }
            // That a store is away says nothing about tokens: it is looked at again.
            Err(TokenError::Store(_)) => return,
            Err(error) => self.suffer(error.to_string()),
        }
        self.seen = seen;
    }

    /// They cannot be used. The same trouble is told once.
    fn suffer(&mut self, error: String) {
        if self.access.is_open() {
            // Tokens were made, though not for this server to read: nobody is let in until they can be.
            tracing::error!(error, "tokens have appeared but cannot be read: every request is refused");
            self.access.replace(Vec::new());
        } else if self.trouble.as_ref() != Some(&error) {
            tracing::error!(error, "cannot reload the tokens; the previous ones stay in force");
        }
        self.trouble = Some(error);
    }
}

fn missing(file: &TokenFile) -> String {
    let path = file.path().display();
    format!(
        "`access.tokens`: there is no file {path}, and without tokens anyone could do everything.\n  \
         Create a token first: punctual token create --name admin --role admin --tokens {path}\n  \
         or, if you do not want tokens, leave the setting out"
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use punctual_memory::MemoryStore;
    use punctual_node::SystemClock;
    use punctual_node::access::Role;

    use super::*;

    fn in_force(data: &Path) -> InForce {
        let config = Config { data: data.to_owned(), ..Config::default() };
        InForce::of_file(&config).unwrap()
    }

    fn create(data: &Path, name: &str) -> String {
        Tokens::of(TokenFile::at(data.join("tokens.toml"))).create(name, vec![Role::Admin], vec!["*".into()]).unwrap()
    }

    #[test]
    fn a_token_that_is_made_after_the_first_read_counts_at_the_next_look() {
        let data = tempfile::tempdir().unwrap();
        let mut tokens = in_force(data.path());
        assert!(tokens.access().is_open());
        let secret = create(data.path(), "a");
        tokens.look();
        assert!(tokens.access().check(None).is_err());
        tokens.access().check(Some(&secret)).unwrap();
    }

    #[test]
    fn tokens_that_become_readable_are_read() {
        let data = tempfile::tempdir().unwrap();
        let first = create(data.path(), "a");
        let mut tokens = in_force(data.path());
        let path = data.path().join("tokens.toml");
        let aside = data.path().join("aside");
        let second = create(data.path(), "b");
        // Nobody can read a directory as a file, not even root.
        fs::rename(&path, &aside).unwrap();
        fs::create_dir(&path).unwrap();
        tokens.look();
        tokens.access().check(Some(&first)).unwrap();
        assert!(tokens.access().check(Some(&second)).is_err(), "it could not be read");
        // However it comes about, also without any sign of it.
        fs::remove_dir(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
        tokens.seen = tokens.tokens.mark();
        tokens.look();
        tokens.access().check(Some(&second)).unwrap();
    }

    #[test]
    fn what_is_done_to_who_may_read_the_file_is_noticed() {
        let data = tempfile::tempdir().unwrap();
        create(data.path(), "a");
        let tokens = in_force(data.path());
        // The system's clock for files may stand still for some milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::set_permissions(data.path().join("tokens.toml"), Permissions::from_mode(0o640)).unwrap();
        assert_ne!(tokens.tokens.mark(), tokens.seen);
    }

    #[test]
    fn a_link_to_nothing_lets_nobody_in() {
        let data = tempfile::tempdir().unwrap();
        let mut tokens = in_force(data.path());
        std::os::unix::fs::symlink("nowhere", data.path().join("tokens.toml")).unwrap();
        tokens.read_again();
        assert!(tokens.access().check(None).is_err());
        let config = Config { data: data.path().to_owned(), ..Config::default() };
        assert!(InForce::of_file(&config).is_err(), "and no server starts with it");
    }

    /// Tokens in a store that can be made to fail.
    fn in_store() -> (Arc<MemoryStore>, InForce, Tokens) {
        let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
        let of = || TokenEntry::of(Arc::clone(&store) as _, &Config::default()).unwrap();
        (Arc::clone(&store), InForce::read(Tokens::of(of())).unwrap().0, Tokens::of(of()))
    }

    #[test]
    fn a_store_that_is_away_changes_nothing() {
        let (store, mut in_force, tokens) = in_store();
        store.faults().cut();
        in_force.look();
        in_force.read_again();
        assert!(in_force.access().is_open(), "an outage is no token");
        store.faults().heal();
        let secret = tokens.create("a", vec![Role::Admin], vec!["*".into()]).unwrap();
        in_force.look();
        in_force.access().check(Some(&secret)).unwrap();
        store.faults().cut();
        in_force.look();
        in_force.access().check(Some(&secret)).unwrap();
        assert!(in_force.access().check(None).is_err());
    }

    #[test]
    fn an_entry_that_cannot_be_read_lets_nobody_in() {
        let (store, mut in_force, _) = in_store();
        store.cluster_put("tokens", 0, b"no tokens").unwrap().unwrap();
        in_force.look();
        assert!(in_force.access().check(None).is_err());
        assert!(InForce::of_store(&Config::default(), store).is_err(), "and no server starts with it");
    }
}
