//! Looking at servers beside the requests: whether one still lives, whether one that was away is back, who else is there.
//!
//! Nothing runs while nothing is asked: each request begins what is to be done by now, and does not wait for it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use punctual_wire::NodeList;
use tokio::time::Instant;

use crate::address::{Address, Path};
use crate::error::Error;
use crate::server::Server;
use crate::transport::Transport;

/// A server that does not answer for so long is asked whether it lives, and has as long to answer that.
const PATIENCE: Duration = Duration::from_secs(2);

/// So long a server may be silent altogether, if there is another.
pub(crate) const SILENCE: Duration = PATIENCE.saturating_mul(2);

/// How long after the first request the others are asked for: a client that does one thing and ends does not need them.
const FIRST_LEARNING: Duration = Duration::from_secs(1);

/// How often the others are asked for.
const LEARN_EVERY: Duration = Duration::from_secs(30);

/// When to ask who else is there, and whom to believe in.
#[derive(Debug)]
pub(crate) struct Learning {
    /// Whether addresses under TLS, or without it, may be learned: only what was given too, so that a token is never sent
    /// in the clear by somebody else's word.
    secure: bool,
    plain: bool,
    at: Mutex<Option<Instant>>,
}

impl Learning {
    pub fn new(wanted: bool, given: &[Address]) -> Learning {
        let mut net = given.iter().filter(|address| wanted && address.unix().is_none());
        Learning {
            secure: net.clone().any(Address::is_secure),
            plain: net.any(|address| !address.is_secure()),
            at: Mutex::new(None),
        }
    }

    /// Somebody went away: who is there is likely to change.
    pub fn soon(&self) {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        *at = at.map(|at| at.min(Instant::now() + FIRST_LEARNING));
    }

    /// Whether it is time; whoever hears that it is does it.
    fn is_due(&self, now: Instant) -> bool {
        if !self.secure && !self.plain {
            return false;
        }
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let due = *at.get_or_insert(now + FIRST_LEARNING);
        if due <= now {
            *at = Some(now + LEARN_EVERY);
        }
        due <= now
    }

    fn admits(&self, address: &Address) -> bool {
        address.unix().is_none() && if address.is_secure() { self.secure } else { self.plain }
    }
}

/// Begins what is to be looked at by now.
pub(crate) fn around(transport: &Arc<Transport>) {
    let now = Instant::now();
    for (number, server) in transport.servers().due_for_a_look(now) {
        let transport = Arc::clone(transport);
        tokio::spawn(async move {
            let ready = answers(&server, "readyz").await;
            transport.servers().looked(number, ready, Instant::now());
        });
    }
    if transport.learning.is_due(now) {
        let transport = Arc::clone(transport);
        tokio::spawn(async move { learn(&transport).await });
    }
}

/// Ends when the server has not even answered whether it lives; says after how long.
pub(crate) async fn until_silent(server: &Server) -> Duration {
    let asked_at = Instant::now();
    loop {
        tokio::time::sleep(PATIENCE).await;
        if !answers(server, "healthz").await {
            return asked_at.elapsed();
        }
    }
}

/// Whether the server answers a question about itself, and not that it cannot. Something in between may not pass the
/// question on; what it says then is not about the server.
async fn answers(server: &Server, question: &str) -> bool {
    let path = Path::of_server(question);
    let answer = tokio::time::timeout(PATIENCE, server.ask(&Method::GET, &path, Bytes::new(), None)).await;
    match answer {
        Ok(Ok(_)) => true,
        Ok(Err(Error::Problem(problem))) => problem.status < 500,
        Ok(Err(Error::BadAnswer { status, .. })) => status < 500,
        Ok(Err(_)) | Err(_) => false,
    }
}

/// Asks who else is there. That this fails is no harm: it was about going on somewhere else, some time.
async fn learn(transport: &Transport) {
    let Some((_, server)) = transport.choose(&[]) else { return };
    let path = Path::new("nodes");
    let answer = tokio::time::timeout(PATIENCE, server.ask(&Method::GET, &path, Bytes::new(), None)).await;
    let Ok(Ok((_, bytes))) = answer else { return };
    let Ok(NodeList { nodes, .. }) = serde_json::from_slice(&bytes) else { return };
    // Whoever is about to go is no help.
    let staying = nodes.into_iter().filter(|node| node.is_there && !node.is_draining);
    let told = staying.filter_map(|node| Address::parse(&node.url?).ok());
    let addresses: Vec<Address> = told.filter(|address| transport.learning.admits(address)).collect();
    let urls: Vec<String> = addresses.iter().map(Address::to_string).collect();
    let reach = |url: &str| addresses.iter().find(|address| address.to_string() == url).cloned();
    transport.servers().learn(&urls, |url| reach(url).map(|address| transport.reach(address)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(wanted: bool, given: &[&str], told: &str) -> bool {
        let given: Vec<Address> = given.iter().map(|url| Address::parse(url).unwrap()).collect();
        Learning::new(wanted, &given).admits(&Address::parse(told).unwrap())
    }

    #[test]
    fn nobody_is_spoken_to_in_the_clear_by_somebody_elses_word() {
        assert!(!admitted(true, &["https://a"], "http://b"));
        assert!(!admitted(true, &["https://a", "unix:/a"], "http://b"));
        assert!(admitted(true, &["https://a"], "https://b"));
        assert!(admitted(true, &["http://a", "https://a"], "http://b"));
        // Without a given address under TLS there is no certificate to trust one by.
        assert!(!admitted(true, &["http://a"], "https://b"));
        assert!(!admitted(true, &["http://a"], "unix:/b"));
        assert!(!admitted(false, &["http://a"], "http://b"));
    }

    #[test]
    fn the_others_are_asked_for_now_and_then_and_soon_after_one_went_away() {
        let (start, learning) = (Instant::now(), Learning::new(true, &[Address::parse("http://a").unwrap()]));
        assert!(!learning.is_due(start));
        assert!(learning.is_due(start + FIRST_LEARNING));
        assert!(!learning.is_due(start + LEARN_EVERY));
        assert!(learning.is_due(start + FIRST_LEARNING + LEARN_EVERY));
        learning.soon();
        assert!(learning.is_due(Instant::now() + FIRST_LEARNING));
    }
}
