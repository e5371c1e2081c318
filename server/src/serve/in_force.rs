//! The tokens in force: what their file says, read again when something was done to it.
//!
//! **Invariant**: the file is looked at from outside before it is read, so what is done to it after that is noticed at the
//! next look. **Invariant**: no file that vanishes or cannot be read lets anybody in who was not let in before.

use std::sync::Arc;

use punctual_node::access::Access;

use crate::config::Config;
use crate::failure::Failure;
use crate::tokens::{Mark, TokenFile};

pub struct InForce {
    file: TokenFile,
    access: Arc<Access>,
    /// How the file looked before it was last read.
    seen: Mark,
    /// Why it could not be read the last time. Until it can be, it is tried again at every look.
    trouble: Option<String>,
}

impl InForce {
    /// Reads the tokens for the first time. A file that was named has to be there: who names one wants tokens.
    pub fn read(config: &Config) -> Result<InForce, Failure> {
        let file = TokenFile::at(config.tokens());
        let seen = file.mark();
        let tokens = file.read().map_err(|error| Failure::Usage(error.to_string()))?;
        if tokens.is_none() && config.access.tokens.is_some() {
            return Err(Failure::Usage(missing(&file)));
        }
        let access = Arc::new(tokens.map_or_else(Access::open, Access::with_tokens));
        Ok(InForce { file, access, seen, trouble: None })
    }

    pub fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// Reads the file again if something was done to it, or if it could not be read.
    pub fn look(&mut self) {
        if self.trouble.is_some() || self.file.mark() != self.seen {
            self.read_again();
        }
    }

    pub fn read_again(&mut self) {
        self.seen = self.file.mark();
        let file = self.file.path().display();
        match self.file.read() {
            Ok(Some(tokens)) => {
                tracing::info!(tokens = tokens.len(), %file, "token file reloaded");
                self.access.replace(tokens);
                self.trouble = None;
            }
            Ok(None) => {
                if !self.access.is_open() {
                    tracing::warn!(%file, "the token file is gone; the tokens last read stay in force until a restart");
                }
                self.trouble = None;
            }
            Err(error) => self.suffer(error.to_string()),
        }
    }

    /// The file cannot be used. The same trouble is told once.
    fn suffer(&mut self, error: String) {
        if self.access.is_open() {
            // Tokens were made, though not for this server to read: nobody is let in until they can be.
            tracing::error!(error, "a token file has appeared but cannot be read: every request is refused");
            self.access.replace(Vec::new());
        } else if self.trouble.as_ref() != Some(&error) {
            tracing::error!(error, "cannot reload the token file; the previous tokens stay in force");
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

    use punctual_node::access::Role;

    use super::*;

    fn in_force(data: &Path) -> InForce {
        let config = Config { data: data.to_owned(), ..Config::default() };
        InForce::read(&config).unwrap()
    }

    fn create(data: &Path, name: &str) -> String {
        let file = TokenFile::at(data.join("tokens.toml"));
        file.create(name, vec![Role::Admin], vec!["*".into()]).unwrap()
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
        tokens.seen = tokens.file.mark();
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
        fs::set_permissions(tokens.file.path(), Permissions::from_mode(0o640)).unwrap();
        assert_ne!(tokens.file.mark(), tokens.seen);
    }

    #[test]
    fn a_link_to_nothing_lets_nobody_in() {
        let data = tempfile::tempdir().unwrap();
        let mut tokens = in_force(data.path());
        std::os::unix::fs::symlink("nowhere", data.path().join("tokens.toml")).unwrap();
        tokens.read_again();
        assert!(tokens.access().check(None).is_err());
        let config = Config { data: data.path().to_owned(), ..Config::default() };
        assert!(InForce::read(&config).is_err(), "and no server starts with it");
    }
}
