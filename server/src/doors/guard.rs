//! What keeps strangers out of a door: tokens, or that only this machine reaches it, or the operator's word that
//! something else does.

use super::sockets::BoundDoor;
use super::{Doorway, Endpoint};
use crate::config::Config;
use crate::failure::Failure;

/// What can keep strangers out of a door.
#[derive(Clone, Copy)]
pub enum Guard {
    /// Its protocol carries tokens. `access.open` is the word that none are needed.
    Tokens,
    /// Its protocol knows no tokens. Where they are in force it would let in whom they keep out, so it has to be asked for twice.
    Nothing { is_open_to_all: bool },
}

/// Refuses sockets where whoever reaches one could do everything.
pub fn keep_strangers_out(bound: &[BoundDoor], config: &Config, has_tokens: bool) -> Result<(), Failure> {
    for BoundDoor { doorway, sockets } in bound {
        let mut endpoints = sockets.iter().map(|socket| &socket.endpoint);
        if let Some(why) = endpoints.find_map(|endpoint| doorway.refuses(config, endpoint, has_tokens)) {
            return Err(Failure::Usage(why));
        }
    }
    Ok(())
}

impl Doorway {
    /// Why it must not be opened there: whoever reaches it could do everything.
    fn refuses(&self, config: &Config, endpoint: &Endpoint, has_tokens: bool) -> Option<String> {
        match self.guard {
            Guard::Tokens if endpoint.is_exposed() && !has_tokens && !config.access.open => {
                Some(exposed(config, endpoint))
            }
            Guard::Nothing { is_open_to_all: false } if has_tokens || endpoint.is_exposed() => {
                Some(self.unguarded(endpoint, has_tokens))
            }
            _ => None,
        }
    }

    /// Whether it has to be closed where tokens are in force.
    pub(super) fn is_closed_by_tokens(&self) -> bool {
        matches!(self.guard, Guard::Nothing { is_open_to_all: false })
    }

    fn unguarded(&self, endpoint: &Endpoint, has_tokens: bool) -> String {
        let (name, setting) = (self.name, self.setting);
        let why = if has_tokens { "the server uses tokens" } else { "other machines can reach it" };
        format!(
            "`{setting}`: {endpoint} would be open to everyone, and {why}: the protocol has no tokens.\n  \
             Use --{name}-open if something else keeps strangers out, or listen on 127.0.0.1 and use no tokens"
        )
    }
}

fn exposed(config: &Config, endpoint: &Endpoint) -> String {
    let whose = match config.has_tokens_in_store() {
        true => format!("--store {}", config.store.url.without_secrets()),
        false => format!("--data {}", config.data.display()),
    };
    format!(
        "other machines can reach {endpoint}, and there are no tokens in {}: anyone could do everything.\n  \
         Create a token first: punctual token create --name admin --role admin {whose}\n  \
         or listen only on 127.0.0.1, or use --access-open if something else keeps strangers out",
        config.tokens_place(),
    )
}
