//! The file of tokens: who is let in, with hashes instead of secrets.
//!
//! ```toml
//! [[token]]
//! name = "orders-service"
//! hash = "9f2b…"                     # of the secret, blake3, 64 hexadecimal digits
//! roles = ["produce", "consume"]
//! topics = ["orders*"]
//! created = "2026-11-16T12:00:00Z"
//! ```
//! **Invariant**: the file is replaced as a whole, so that a server that reads it never sees half of a change.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use punctual_node::access::{Role, Token, hash_secret};
use punctual_wire::Time;
use serde::{Deserialize, Serialize};

use crate::private_file::replace_shared;

/// What every secret begins with, so that people and scanners recognize one where it should not be.
const PREFIX: &str = "pct_";

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    #[serde(default, rename = "token")]
    tokens: Vec<StoredToken>,
}

/// A token as the file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredToken {
    /// Whom it is given to.
    pub name: String,
    /// The hash of its secret.
    hash: String,
    /// What it is good for.
    pub roles: Vec<Role>,
    /// For which topics and queues.
    #[serde(default = "every_topic")]
    pub topics: Vec<String>,
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Time>,
}

fn every_topic() -> Vec<String> {
    vec!["*".to_owned()]
}

/// Why the file of tokens cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It is not as it should be.
    #[error("{}{}: {what}", file.display(), line.map_or(String::new(), |line| format!(":{line}")))]
    Content {
        /// The file.
        file: PathBuf,
        /// The line, if one is to blame.
        line: Option<usize>,
        /// What is wrong with it.
        what: String,
    },
    /// The operating system refused.
    #[error("the token file {} cannot be {verb}: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What was tried.
        verb: &'static str,
        /// What it said.
        error: io::Error,
    },
    /// There is one of this name.
    #[error("a token named {0:?} already exists: revoke it first (punctual token revoke {0}), or choose another name")]
    Taken(String),
    /// There is none of this name.
    #[error("there is no token named {0:?}: `punctual token list` shows them all")]
    Unknown(String),
}

/// How a file of tokens looks from outside: whatever is done to it, also to who may read it, makes another mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark(Result<Look, io::ErrorKind>);

/// Device, inode, length, and when content and rights were last changed.
type Look = (u64, u64, u64, (i64, i64), (i64, i64));

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

    /// What the file says, for doors; `None` if there is no file.
    pub fn read(&self) -> Result<Option<Vec<Token>>, TokenError> {
        let Some(entries) = self.entries()? else { return Ok(None) };
        entries.iter().map(|entry| self.token(entry)).collect::<Result<_, _>>().map(Some)
    }

    /// What the file says, for people; `None` if there is no file.
    pub fn entries(&self) -> Result<Option<Vec<StoredToken>>, TokenError> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Whoever made the link wants tokens.
                return if self.path.is_symlink() { Err(self.io("read")(link_to_nothing())) } else { Ok(None) };
            }
            Err(error) => return Err(self.io("read")(error)),
        };
        let content: Content = toml_edit::de::from_str(&text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let what = format!(
                "{}; correct the file, or remove it and create tokens with `punctual token`",
                error.message().trim()
            );
            TokenError::Content { file: self.path.clone(), line, what }
        })?;
        Ok(Some(content.tokens))
    }

    /// How the file looks from outside at this moment.
    pub fn mark(&self) -> Mark {
        Mark(fs::metadata(&self.path).map_err(|error| error.kind()).map(|metadata| {
            let written = (metadata.mtime(), metadata.mtime_nsec());
            let changed = (metadata.ctime(), metadata.ctime_nsec());
            (metadata.dev(), metadata.ino(), metadata.len(), written, changed)
        }))
    }

    fn token(&self, entry: &StoredToken) -> Result<Token, TokenError> {
        let hash = blake3::Hash::from_hex(&entry.hash).map_err(|error| {
            let what = format!("the hash of token {:?} is not valid ({error}): create that token again", entry.name);
            TokenError::Content { file: self.path.clone(), line: None, what }
        })?;
        let (roles, topics) = (entry.roles.clone(), entry.topics.clone());
        Ok(Token { name: entry.name.clone(), hash: *hash.as_bytes(), roles, topics })
    }

    /// Makes a token and gives its secret, which is not kept anywhere.
    pub fn create(&self, name: &str, roles: Vec<Role>, topics: Vec<String>) -> Result<String, TokenError> {
        let mut entries = self.entries()?.unwrap_or_default();
        if entries.iter().any(|entry| entry.name == name) {
            return Err(TokenError::Taken(name.to_owned()));
        }
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|error| self.io("written")(io::Error::other(error.to_string())))?;
        let secret = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
        let hash = blake3::Hash::from_bytes(hash_secret(&secret)).to_hex().to_string();
        entries.push(StoredToken { name: name.to_owned(), hash, roles, topics, created: Some(Time::now()) });
        self.write(entries)?;
        Ok(secret)
    }

    /// Takes a token away.
    pub fn revoke(&self, name: &str) -> Result<(), TokenError> {
        let mut entries = self.entries()?.unwrap_or_default();
        let before = entries.len();
        entries.retain(|entry| entry.name != name);
        if entries.len() == before {
            return Err(TokenError::Unknown(name.to_owned()));
        }
        self.write(entries)
    }

    fn write(&self, tokens: Vec<StoredToken>) -> Result<(), TokenError> {
        let text = toml_edit::ser::to_string_pretty(&Content { tokens })
            .map_err(|error| self.io("written")(io::Error::other(error.to_string())))?;
        let head =
            "# Written by `punctual token`. While this file exists, every request needs one of these tokens.\n\n";
        replace_shared(&self.path, format!("{head}{text}").as_bytes()).map_err(self.io("written"))
    }

    fn io(&self, verb: &'static str) -> impl Fn(io::Error) -> TokenError {
        let file = self.path.clone();
        move |error| TokenError::Io { file: file.clone(), verb, error }
    }
}

fn link_to_nothing() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "it is a link to a file that does not exist")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use punctual_node::access::Access;

    use super::*;

    fn file() -> (tempfile::TempDir, TokenFile) {
        let directory = tempfile::tempdir().unwrap();
        let file = TokenFile::at(directory.path().join("deep/tokens.toml"));
        (directory, file)
    }

    #[test]
    fn a_secret_opens_the_door_and_is_not_in_the_file() {
        let (_directory, file) = file();
        assert_eq!(file.read().unwrap(), None);
        let secret = file.create("orders", vec![Role::Produce], vec!["orders*".into()]).unwrap();
        assert!(secret.starts_with("pct_") && secret.len() == 47, "{secret}");
        assert!(!fs::read_to_string(file.path()).unwrap().contains(&secret));
        let access = Access::with_tokens(file.read().unwrap().unwrap());
        let grant = access.check(Some(&secret)).unwrap();
        assert_eq!(grant.name(), "orders");
        assert!(grant.may(Role::Produce, Some("orders-unpaid")) && !grant.may(Role::Produce, Some("coupons")));
    }

    #[test]
    fn nobody_else_may_read_the_file() {
        let (_directory, file) = file();
        file.create("a", vec![Role::Admin], every_topic()).unwrap();
        assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_revoked_token_is_gone_and_the_others_stay() {
        let (_directory, file) = file();
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
        let (_directory, file) = file();
        file.create("a", vec![Role::Admin], every_topic()).unwrap();
        assert!(matches!(file.create("a", vec![Role::Admin], every_topic()), Err(TokenError::Taken(_))));
        assert!(matches!(file.revoke("b"), Err(TokenError::Unknown(_))));
    }

    #[test]
    fn a_mistake_in_the_file_is_told_with_its_line() {
        let (_directory, file) = file();
        fs::create_dir_all(file.path().parent().unwrap()).unwrap();
        let hash = "0".repeat(64);
        fs::write(file.path(), format!("[[token]]\nname = \"a\"\nhash = \"{hash}\"\nroles = [\"root\"]\n")).unwrap();
        let told = file.read().unwrap_err().to_string();
        assert!(told.contains("tokens.toml:4: ") && told.contains("root"), "{told}");
        fs::write(file.path(), "[[token]]\nname = \"a\"\nhash = \"12\"\nroles = [\"admin\"]\n").unwrap();
        let told = file.read().unwrap_err().to_string();
        assert!(told.contains("the hash of token \"a\" is not valid"), "{told}");
    }

    #[test]
    fn a_token_without_topics_is_for_all_of_them() {
        let (_directory, file) = file();
        fs::create_dir_all(file.path().parent().unwrap()).unwrap();
        let hash = blake3::Hash::from_bytes(hash_secret("s")).to_hex();
        fs::write(file.path(), format!("[[token]]\nname = \"a\"\nhash = \"{hash}\"\nroles = [\"admin\"]\n")).unwrap();
        assert_eq!(file.read().unwrap().unwrap()[0].topics, ["*"]);
    }
}
