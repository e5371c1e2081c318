//! Tokens in a file, for a server that has its store to itself, or whose settings name one.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Found, Mark, TokenError, TokenPlace};
use crate::private_file::replace_shared;

/// How a file looks from outside: device, inode, length, and when content and rights were last changed. Whatever is done to
/// it, also to who may read it, makes another look.
pub type Look = Result<(u64, u64, u64, (i64, i64), (i64, i64)), io::ErrorKind>;

/// A file of tokens.
#[derive(Clone, Debug)]
pub struct TokenFile {
    path: PathBuf,
}

impl TokenFile {
    /// The file at this place, whether it is there or not.
    pub fn at(path: PathBuf) -> TokenFile {
        TokenFile { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn io(&self, verb: &'static str) -> impl Fn(io::Error) -> TokenError {
        let file = self.path.clone();
        move |error| TokenError::Io { file: file.clone(), verb, error }
    }
}

impl TokenPlace for TokenFile {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn find(&self) -> Result<Found, TokenError> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => Some(text),
            // Whoever made the link wants tokens.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !self.path.is_symlink() => None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(self.io("read")(link_to_nothing())),
            Err(error) => return Err(self.io("read")(error)),
        };
        Ok(Found { text, revision: 0 })
    }

    /// Files have no revisions: of two who change one at the same time, the later wins.
    fn replace(&self, _: u64, text: &str) -> Result<bool, TokenError> {
        replace_shared(&self.path, text.as_bytes()).map_err(self.io("written"))?;
        Ok(true)
    }

    fn mark(&self) -> Option<Mark> {
        Some(Mark::File(fs::metadata(&self.path).map_err(|error| error.kind()).map(|metadata| {
            let written = (metadata.mtime(), metadata.mtime_nsec());
            let changed = (metadata.ctime(), metadata.ctime_nsec());
            (metadata.dev(), metadata.ino(), metadata.len(), written, changed)
        })))
    }
}

fn link_to_nothing() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "it is a link to a file that does not exist")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use punctual_node::access::{Access, Role, hash_secret};

    use super::super::{Tokens, every_topic};
    use super::*;

    fn file() -> (tempfile::TempDir, Tokens, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/tokens.toml");
        (directory, Tokens::of(TokenFile::at(path.clone())), path)
    }

    #[test]
    fn a_secret_opens_the_door_and_is_not_in_the_file() {
        let (_directory, file, path) = file();
        assert_eq!(file.read().unwrap(), None);
        let secret = file.create("orders", vec![Role::Produce], vec!["orders*".into()]).unwrap();
        assert!(secret.starts_with("pct_") && secret.len() == 47, "{secret}");
        assert!(!fs::read_to_string(&path).unwrap().contains(&secret));
        let access = Access::with_tokens(file.read().unwrap().unwrap());
        let grant = access.check(Some(&secret)).unwrap();
        assert_eq!(grant.name(), "orders");
        assert!(grant.may(Role::Produce, Some("orders-unpaid")) && !grant.may(Role::Produce, Some("coupons")));
    }

    #[test]
    fn nobody_else_may_read_the_file() {
        let (_directory, file, path) = file();
        file.create("a", vec![Role::Admin], every_topic()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_revoked_token_is_gone_and_the_others_stay() {
        let (_directory, file, _) = file();
        file.create("a", vec![Role::Admin], every_topic()).unwrap();
        file.create("b", vec![Role::Admin], every_topic()).unwrap();
        file.revoke("a").unwrap();
        let names: Vec<String> = file.entries().unwrap().unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["b"]);
        file.revoke("b").unwrap();
        assert_eq!(file.read().unwrap(), Some(Vec::new()), "the file stays, and nobody is let in");
    }

    #[test]
    fn a_name_can_be_given_once_and_must_be_known_to_be_revoked() {
        let (_directory, file, _) = file();
        file.create("a", vec![Role::Admin], every_topic()).unwrap();
        assert!(matches!(file.create("a", vec![Role::Admin], every_topic()), Err(TokenError::Taken(_))));
        assert!(matches!(file.revoke("b"), Err(TokenError::Unknown(_))));
    }

    #[test]
    fn a_mistake_in_the_file_is_told_with_its_line() {
        let (_directory, file, path) = file();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let hash = "0".repeat(64);
        fs::write(&path, format!("[[token]]\nname = \"a\"\nhash = \"{hash}\"\nroles = [\"root\"]\n")).unwrap();
        let told = file.read().unwrap_err().to_string();
        assert!(told.contains("tokens.toml:4: ") && told.contains("root"), "{told}");
        fs::write(&path, "[[token]]\nname = \"a\"\nhash = \"12\"\nroles = [\"admin\"]\n").unwrap();
        let told = file.read().unwrap_err().to_string();
        assert!(told.contains("the hash of token \"a\" is not valid"), "{told}");
    }

    #[test]
    fn a_token_without_topics_is_for_all_of_them() {
        let (_directory, file, path) = file();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let hash = blake3::Hash::from_bytes(hash_secret("s")).to_hex();
        fs::write(&path, format!("[[token]]\nname = \"a\"\nhash = \"{hash}\"\nroles = [\"admin\"]\n")).unwrap();
        assert_eq!(file.read().unwrap().unwrap()[0].topics, ["*"]);
    }
}
