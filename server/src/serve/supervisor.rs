//! What the server looks after while it runs: signals, the file of tokens, and whether the node is well.

use std::sync::Arc;
use std::time::Duration;

use punctual_node::Handle;
use tokio::time::{MissedTickBehavior, interval};

use super::in_force::InForce;
use super::signals::{Asked, Signals};
use crate::doors::OpenDoors;
use crate::tls::Certificate;

/// How often the file of tokens and the node's health are looked at.
const ROUND: Duration = Duration::from_secs(2);

pub struct Supervisor {
    pub handle: Handle,
    pub tokens: InForce,
    pub certificate: Option<Arc<Certificate>>,
    pub doors: OpenDoors,
}

/// Why the server stops.
pub enum Stop {
    /// It was told to, by this signal.
    Signal(&'static str),
    /// The node cannot vouch for its data any more; whoever looks after the process may start it again.
    Broken(String),
}

impl Supervisor {
    /// Does its rounds until there is a reason to stop.
    pub async fn until_stopped(&mut self, signals: &mut Signals) -> Stop {
        let mut rounds = interval(ROUND);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_well = true;
        let mut is_troubled = false;
        loop {
            tokio::select! {
                asked = signals.next() => match asked {
                    Asked::Stop(signal) => return Stop::Signal(signal),
                    Asked::Reload => {
                        self.tokens.read_again();
                        self.close_unguarded();
                        self.reload_certificate();
                    }
                    Asked::Drain => self.doors.drain(),
                },
                why = self.handle.until_broken() => return Stop::Broken(why),
                _ = rounds.tick() => {
                    self.look_at_tokens();
                    is_well = self.look_at_node(is_well);
                    is_troubled = self.look_at_store(is_troubled);
                }
            }
        }
    }

    /// Lets what was done to the file of tokens count.
    pub fn look_at_tokens(&mut self) {
        self.tokens.look();
        self.close_unguarded();
    }

    fn close_unguarded(&self) {
        if !self.tokens.access().is_open() {
            self.doors.close_unguarded();
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
