//! `punctual token`: making, listing and revoking tokens. Works on the file, or on the store if they are there; running
//! servers notice.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use punctual_node::SystemClock;
use punctual_node::access::Role;
use serde_json::json;

use crate::cli::print;
use crate::commands::note;
use crate::config::{of_server, of_store};
use crate::failure::Failure;
use crate::moving::Place;
use crate::tokens::{StoredToken, TokenEntry, TokenError, TokenFile, Tokens};

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token and print its secret, which is shown only once.
    Create {
        /// A name for the token, shown in logs.
        #[arg(long)]
        name: String,
        /// What it allows: produce, consume, view, operate or admin. Can be repeated.
        #[arg(long = "role", required = true, value_name = "ROLE")]
        roles: Vec<Role>,
        /// The topics and queues it covers; `*` matches any characters. Can be repeated.
        #[arg(long = "topic", value_name = "PATTERN", default_value = "*")]
        topics: Vec<String>,
        #[command(flatten)]
        whose: Whose,
    },
    /// List all tokens.
    List {
        #[command(flatten)]
        whose: Whose,
    },
    /// Revoke a token.
    Revoke {
        /// The name of the token.
        name: String,
        #[command(flatten)]
        whose: Whose,
    },
}

/// Whose tokens: those that the server's configuration leads to, unless told otherwise.
#[derive(Args, Debug)]
pub struct Whose {
    /// The server's TOML file of settings; by default ./punctual.toml, if it exists.
    #[arg(long, env = "PUNCTUAL_CONFIG", value_name = "FILE", hide_env_values = true)]
    config: Option<PathBuf>,
    /// The data directory of a server on the embedded store, which contains tokens.toml.
    #[arg(long, value_name = "DIR", conflicts_with = "tokens")]
    data: Option<PathBuf>,
    /// The URL of the database that the servers share, which contains the tokens. A password is better given by
    /// PUNCTUAL_STORE_PASSWORD than in the URL.
    #[arg(long, value_name = "URL", conflicts_with_all = ["tokens", "data"])]
    store: Option<String>,
    /// The token file, if it is elsewhere.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
}

impl Whose {
    fn tokens(self) -> Result<Tokens, Failure> {
        if let Some(file) = self.tokens {
            return Ok(Tokens::of(TokenFile::at(file)));
        }
        let config = match self.store {
            Some(url) => of_store(self.config, url)?,
            None => of_server(self.config, self.data)?,
        };
        if !config.has_tokens_in_store() {
            return Ok(Tokens::of(TokenFile::at(config.tokens())));
        }
        let opened = Place::of(config.clone()).open_now(Arc::new(SystemClock))?;
        Ok(Tokens::of(TokenEntry::of(opened.store, &config).map_err(failure)?))
    }
}

impl TokenCommand {
    /// Does it.
    pub fn run(self, json: bool) -> Result<(), Failure> {
        match self {
            TokenCommand::Create { name, roles, topics, whose } => {
                let name = name.trim();
                if name.is_empty() || name.chars().any(char::is_control) {
                    return Err(Failure::Usage(
                        "--name: give the token a name with visible characters, for the log".into(),
                    ));
                }
                let tokens = whose.tokens()?;
                let secret = tokens.create(name, roles, topics).map_err(failure)?;
                if json {
                    return print(&format!("{}\n", json!({ "name": name, "secret": secret })));
                }
                note(format_args!(
                    "added token {name:?} to {}; this is its secret, which is not shown again:",
                    tokens.place()
                ));
                print(&format!("{secret}\n"))
            }
            TokenCommand::List { whose } => {
                let tokens = whose.tokens()?;
                let entries = tokens.entries().map_err(failure)?;
                if json {
                    let lines = entries
                        .unwrap_or_default()
                        .iter()
                        .map(|entry| format!("{}\n", as_json(entry)))
                        .collect::<String>();
                    return print(&lines);
                }
                match entries {
                    Some(entries) if !entries.is_empty() => print(&table(&entries)),
                    Some(_) => print(&format!("{} contains no tokens: every request is refused\n", tokens.place())),
                    None => print(&format!("there are no tokens in {}: requests need none\n", tokens.place())),
                }
            }
            TokenCommand::Revoke { name, whose } => {
                whose.tokens()?.revoke(&name).map_err(failure)?;
                if json {
                    return print(&format!("{}\n", json!({ "name": name, "revoked": true })));
                }
                print(&format!("revoked token {name:?}; a running server refuses it within seconds\n"))
            }
        }
    }
}

fn failure(error: TokenError) -> Failure {
    match error {
        TokenError::Taken(_) | TokenError::Unknown(_) => Failure::Usage(error.to_string()),
        _ => Failure::Failed(error.to_string()),
    }
}

fn words(entry: &StoredToken) -> String {
    entry.roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ")
}

fn as_json(entry: &StoredToken) -> serde_json::Value {
    json!({ "name": entry.name, "roles": entry.roles, "topics": entry.topics, "created": entry.created })
}

fn table(entries: &[StoredToken]) -> String {
    let row = |entry: &StoredToken| {
        let created = entry.created.map(|time| time.to_string()).unwrap_or_default();
        [entry.name.clone(), words(entry), entry.topics.join(", "), created]
    };
    let heads = ["name", "roles", "topics", "created"].map(str::to_owned);
    let rows: Vec<[String; 4]> = [heads].into_iter().chain(entries.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let [name, roles, topics, _] = [0, 1, 2, 3].map(width);
    let line = |[a, b, c, d]: &[String; 4]| format!("{a:name$}  {b:roles$}  {c:topics$}  {d}\n");
    rows.iter().map(line).collect()
}
