//! What the server looks after while it runs: signals, the tokens, and whether the node is well.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use punctual_node::access::{Access, Token};
use punctual_node::{Act, Handle};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval};

use super::in_force::InForce;
use super::signals::{Asked, Signals};
use crate::doors::OpenDoors;
use crate::tls::Certificate;

/// How often the tokens and the node's health are looked at.
const ROUND: Duration = Duration::from_secs(2);

/// How often it is looked how much there is, for the series.
const STOCKTAKING: Duration = Duration::from_secs(10);

pub struct Supervisor {
    handle: Handle,
    tokens: Arc<Mutex<InForce>>,
    access: Arc<Access>,
    /// The tokens as they were when it was last noted what was done to them.
    known: Vec<Token>,
    /// A look at the tokens that is under way: a store that is away lets it wait, and nothing else may.
    looks: JoinSet<()>,
    certificate: Option<Arc<Certificate>>,
    pub doors: OpenDoors,
}

/// Looks how much there is now and then, until it is dropped. A store that is away may let it wait, and nothing else.
struct Stocktaking(JoinHandle<()>);

impl Stocktaking {
    fn begin(handle: Handle) -> Stocktaking {
        Stocktaking(tokio::spawn(async move {
            let mut looks = interval(STOCKTAKING);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                looks.tick().await;
                // What cannot be looked at now is looked at the next time; that something is wrong is told elsewhere.
                _ = handle.take_stock().await;
            }
        }))
    }
}

impl Drop for Stocktaking {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why the server stops.
pub enum Stop {
    /// It was told to, by this signal.
    Signal(&'static str),
    /// The node cannot vouch for its data any more; whoever looks after the process may start it again.
    Broken(String),
}

impl Supervisor {
    pub fn new(handle: Handle, tokens: InForce, certificate: Option<Arc<Certificate>>, doors: OpenDoors) -> Supervisor {
        let access = Arc::clone(tokens.access());
        let (known, tokens) = (access.known(), Arc::new(Mutex::new(tokens)));
        Supervisor { handle, tokens, access, known, looks: JoinSet::new(), certificate, doors }
    }

    /// Does its rounds until there is a reason to stop.
    pub async fn until_stopped(&mut self, signals: &mut Signals) -> Stop {
        let mut rounds = interval(ROUND);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let _stocktaking = Stocktaking::begin(self.handle.clone());
        let mut is_well = true;
        let mut is_troubled = false;
        loop {
            tokio::select! {
                asked = signals.next() => match asked {
                    Asked::Stop(signal) => return Stop::Signal(signal),
                    Asked::Reload => {
                        self.begin_look(InForce::read_again);
                        self.reload_certificate();
                    }
                    Asked::Drain => self.doors.drain(),
                },
                why = self.handle.until_broken() => return Stop::Broken(why),
                Some(_) = self.looks.join_next() => {
                    self.close_unguarded();
                    self.note_tokens();
                }
                _ = rounds.tick() => {
                    if self.looks.is_empty() {
                        self.begin_look(InForce::look);
                    }
                    is_well = self.look_at_node(is_well);
                    is_troubled = self.look_at_store(is_troubled);
                }
            }
        }
    }

    /// Lets what was done to the tokens count.
    pub fn look_at_tokens(&mut self) {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).look();
        self.close_unguarded();
    }

    fn begin_look(&mut self, look: fn(&mut InForce)) {
        let tokens = Arc::clone(&self.tokens);
        self.looks.spawn_blocking(move || look(&mut tokens.lock().unwrap_or_else(PoisonError::into_inner)));
    }

    fn close_unguarded(&self) {
        if !self.access.is_open() {
            self.doors.close_unguarded();
        }
    }

    /// Notes which tokens were made, changed and revoked. All nodes on a store see that, and one of them notes it.
    fn note_tokens(&mut self) {
        let before = std::mem::replace(&mut self.known, self.access.known());
        if before == self.known || !self.handle.notes_for_all() {
            return;
        }
        let made = self.known.iter().filter(|token| !before.contains(token)).map(|token| ("put-token", token));
        let gone = |token: &&Token| !self.known.iter().any(|known| known.name == token.name);
        let revoked = before.iter().filter(gone).map(|token| ("revoke-token", token));
        for (what, token) in made.chain(revoked) {
            self.handle.note_act(Act {
                at: self.handle.now(),
                // Tokens are made beside the server, by whoever may write where they are kept.
                by: "punctual token".into(),
                person: None,
                node: self.handle.node_name().to_string(),
                what: what.into(),
                topic: None,
                id: None,
                queue: None,
                subject: Some(token.name.clone()),
                detail: None,
            });
        }
    }

    fn reload_certificate(&self) {
        let Some(certificate) = &self.certificate else { return };
        match certificate.reload() {
            Ok(()) => tracing::info!("certificate and key reloaded; new connections use them"),
            Err(error) => tracing::error!(error, "cannot reload the certificate; the previous one stays in use"),
        }
    }

    /// Logs when the store takes no new tasks any more, and when it does so again.
    fn look_at_store(&self, was_troubled: bool) -> bool {
        let hardship = self.handle.hardship();
        match (&hardship, was_troubled) {
            (Some(hardship), false) => {
                tracing::error!(why = hardship.why(), "new tasks are refused; /readyz says so too");
            }
            (None, true) => tracing::info!("new tasks are accepted again"),
            _ => {}
        }
        hardship.is_some()
    }

    /// Logs when the node stops or begins to answer.
    fn look_at_node(&self, was_well: bool) -> bool {
        let now = self.handle.ready();
        match (&now, was_well) {
            (Err(error), true) => tracing::error!(%error, "the node does not answer; /readyz says so too"),
            (Ok(()), false) => tracing::info!("the node answers again"),
            _ => {}
        }
        now.is_ok()
    }
}
