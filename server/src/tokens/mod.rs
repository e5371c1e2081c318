//! The tokens: who is let in, with hashes instead of secrets. The same text in a file, or in the store that several servers
//! share.
//!
//! ```toml
//! [[token]]
//! name = "orders-service"
//! hash = "9f2b…"                     # of the secret, blake3, 64 hexadecimal digits
//! roles = ["produce", "consume"]
//! topics = ["orders*"]
//! created = "2026-11-16T12:00:00Z"
//! ```
//! **Invariant**: the text is replaced as a whole, so that a server that reads it never sees half of a change.

mod entry;
mod file;

use std::io;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use punctual_core::store::StoreError;
use punctual_node::access::{Role, Token, hash_secret};
use punctual_wire::Time;
use serde::{Deserialize, Serialize};

pub use entry::{TokenEntry, bring_out};
pub use file::TokenFile;

/// What every secret begins with, so that people and scanners recognize one where it should not be.
const PREFIX: &str = "pct_";

/// What stands above the tokens, for people.
const HEAD: &str = "# Written by `punctual token`. While this exists, every request needs one of these tokens.\n\n";

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    #[serde(default, rename = "token")]
    tokens: Vec<StoredToken>,
}

/// A token as it is kept.
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

/// Why tokens cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// They are not as they should be.
    #[error("{place}{}: {what}", line.map_or(String::new(), |line| format!(":{line}")))]
    Content {
        /// Where they are.
        place: String,
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
    /// The store did not answer: they may be there or not.
    #[error("the tokens are in the store, and {0}")]
    Store(#[from] StoreError),
    /// There is no chance to make a secret of.
    #[error("cannot get random numbers from the system: {0}")]
    Random(String),
    /// There is one of this name.
    #[error("a token named {0:?} already exists: revoke it first (punctual token revoke {0}), or choose another name")]
    Taken(String),
    /// There is none of this name.
    #[error("there is no token named {0:?}: `punctual token list` shows them all")]
    Unknown(String),
}

/// What was found where tokens are kept.
pub struct Found {
    /// `None`: there are none, and nobody needs one.
    pub text: Option<String>,
    /// By which a later change is told.
    pub revision: u64,
}

/// How the place looks from outside: whatever is done to the tokens makes another mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    File(file::Look),
    Entry(u64),
}

/// Where tokens are kept.
pub trait TokenPlace: Send {
    /// What people call it.
    fn name(&self) -> String;

    fn find(&self) -> Result<Found, TokenError>;

    /// Writes all of them, unless somebody has changed them since this revision; says whether it did.
    fn replace(&self, revision: u64, text: &str) -> Result<bool, TokenError>;

    /// How it looks at this moment; nothing if that cannot be told now.
    fn mark(&self) -> Option<Mark>;
}

/// All tokens of a server.
pub struct Tokens(Box<dyn TokenPlace>);

impl Tokens {
    pub fn of(place: impl TokenPlace + 'static) -> Tokens {
        Tokens(Box::new(place))
    }

    /// Where they are, as people call it.
    pub fn place(&self) -> String {
        self.0.name()
    }

    /// How they look from outside at this moment; nothing if that cannot be told now.
    pub fn mark(&self) -> Option<Mark> {
        self.0.mark()
    }

    /// For doors; `None` if there are none.
    pub fn read(&self) -> Result<Option<Vec<Token>>, TokenError> {
        let Some(entries) = self.entries()? else { return Ok(None) };
        entries.iter().map(|entry| self.token(entry)).collect::<Result<_, _>>().map(Some)
    }

    /// For people; `None` if there are none.
    pub fn entries(&self) -> Result<Option<Vec<StoredToken>>, TokenError> {
        self.0.find()?.text.map(|text| self.parse(&text)).transpose()
    }

    /// Makes a token and gives its secret, which is not kept anywhere.
    pub fn create(&self, name: &str, roles: Vec<Role>, topics: Vec<String>) -> Result<String, TokenError> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|error| TokenError::Random(error.to_string()))?;
        let secret = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
        let hash = blake3::Hash::from_bytes(hash_secret(&secret)).to_hex().to_string();
        let made = StoredToken { name: name.to_owned(), hash, roles, topics, created: Some(Time::now()) };
        self.change(|tokens| {
            if tokens.iter().any(|token| token.name == name) {
                return Err(TokenError::Taken(name.to_owned()));
            }
            tokens.push(made.clone());
            Ok(())
        })?;
        Ok(secret)
    }

    /// Takes a token away.
    pub fn revoke(&self, name: &str) -> Result<(), TokenError> {
        self.change(|tokens| {
            let before = tokens.len();
            tokens.retain(|token| token.name != name);
            if tokens.len() < before { Ok(()) } else { Err(TokenError::Unknown(name.to_owned())) }
        })
    }

    /// Changes what is there. If somebody else does so meanwhile, this happens after it.
    fn change(&self, edit: impl Fn(&mut Vec<StoredToken>) -> Result<(), TokenError>) -> Result<(), TokenError> {
        loop {
            let Found { text, revision } = self.0.find()?;
            let mut tokens = text.map_or_else(|| Ok(Vec::new()), |text| self.parse(&text))?;
            edit(&mut tokens)?;
            let text = toml_edit::ser::to_string_pretty(&Content { tokens })
                .map_err(|error| self.content(None, error.to_string()))?;
            if self.0.replace(revision, &format!("{HEAD}{text}"))? {
                return Ok(());
            }
        }
    }

    fn parse(&self, text: &str) -> Result<Vec<StoredToken>, TokenError> {
        let content: Content = toml_edit::de::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let mend = "correct it, or remove it and create tokens with `punctual token`";
            self.content(line, format!("{}; {mend}", error.message().trim()))
        })?;
        Ok(content.tokens)
    }

    fn token(&self, entry: &StoredToken) -> Result<Token, TokenError> {
        let hash = blake3::Hash::from_hex(&entry.hash).map_err(|error| {
            let what = format!("the hash of token {:?} is not valid ({error}): create that token again", entry.name);
            self.content(None, what)
        })?;
        let (roles, topics) = (entry.roles.clone(), entry.topics.clone());
        Ok(Token { name: entry.name.clone(), hash: *hash.as_bytes(), roles, topics })
    }

    fn content(&self, line: Option<usize>, what: String) -> TokenError {
        TokenError::Content { place: self.place(), line, what }
    }
}
