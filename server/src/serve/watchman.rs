//! What the server looks after while it runs: signals, the file of tokens, and whether the node is well.

use std::fs;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use punctual_beanstalk::Door;
use punctual_node::Handle;
use punctual_node::access::Access;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::signals::{Asked, Signals};
use crate::tls::Certificate;
use crate::tokens::TokenFile;

/// How often the file of tokens and the node's health are looked at.
const ROUND: Duration = Duration::from_secs(2);

pub struct Watchman {
    pub handle: Handle,
    pub access: Arc<Access>,
    pub tokens: TokenFile,
    pub certificate: Option<Arc<Certificate>>,
    pub beanstalk: Option<BeanstalkDoor>,
}

/// The beanstalk door as the watchman knows it.
pub struct BeanstalkDoor {
    pub door: Arc<Door>,
    /// Whether it stays open where tokens are in force.
    pub is_open_to_all: bool,
    /// Closes it.
    pub stop: watch::Sender<bool>,
}

/// Why the server stops.
pub enum Stop {
    /// It was told to, by this signal.
    Signal(&'static str),
    /// The node cannot vouch for its data any more; whoever looks after the process may start it again.
    Broken(String),
}

impl Watchman {
    /// Does its rounds until there is a reason to stop.
    pub async fn until_stopped(self, signals: &mut Signals) -> Stop {
        let mut rounds = interval(ROUND);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seen = self.tokens_changed_at();
        let mut is_well = true;
        let mut is_troubled = false;
        loop {
            tokio::select! {
                asked = signals.next() => match asked {
                    Asked::Stop(signal) => return Stop::Signal(signal),
                    Asked::Reload => {
                        seen = self.tokens_changed_at();
                        self.reload_tokens();
                        self.reload_certificate();
                    }
                    Asked::Drain => self.drain(),
                },
                why = self.handle.until_broken() => return Stop::Broken(why),
                _ = rounds.tick() => {
                    let changed = self.tokens_changed_at();
                    if changed != seen {
                        seen = changed;
                        self.reload_tokens();
                    }
                    is_well = self.look_at_node(is_well);
                    is_troubled = self.look_at_store(is_troubled);
                }
            }
        }
    }

    fn drain(&self) {
        match &self.beanstalk {
            Some(beanstalk) => {
                beanstalk.door.drain();
                tracing::info!("the beanstalk door takes no more jobs until the server is started again");
            }
            None => tracing::warn!("told to drain the beanstalk door, which is not open"),
        }
    }

    fn tokens_changed_at(&self) -> Option<SystemTime> {
        match fs::metadata(self.tokens.path()).and_then(|metadata| metadata.modified()) {
            Ok(changed) => Some(changed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            // That it cannot be looked at is news, too.
            Err(_) => Some(SystemTime::UNIX_EPOCH),
        }
    }

    fn reload_tokens(&self) {
        let file = self.tokens.path().display();
        match self.tokens.read() {
            Ok(Some(tokens)) => {
                tracing::info!(tokens = tokens.len(), %file, "the tokens were read again");
                self.access.replace(tokens);
                self.close_beanstalk();
            }
            // A file that vanishes must not open the doors.
            Ok(None) if !self.access.is_open() => {
                tracing::warn!(%file, "the file of tokens is gone; what was read stays in force until a restart");
            }
            Ok(None) => {}
            // Tokens were made, though not for this server to read: nobody is let in until they can be.
            Err(error) if self.access.is_open() => {
                tracing::error!(%error, "there are tokens now, and none can be read: nobody is let in");
                self.access.replace(Vec::new());
                self.close_beanstalk();
            }
            Err(error) => tracing::error!(%error, "the tokens stay as they were"),
        }
    }

    /// The protocol knows no tokens: where they are in force, the door would let in whom they keep out.
    fn close_beanstalk(&self) {
        let Some(beanstalk) = &self.beanstalk else { return };
        if !beanstalk.is_open_to_all && !beanstalk.stop.send_replace(true) {
            tracing::warn!(
                "tokens are in force now, and the beanstalk protocol knows none: its door is closed, and whatever its \
                 connections held is given back; start with --beanstalk-open if something else keeps strangers out"
            );
        }
    }

    fn reload_certificate(&self) {
        let Some(certificate) = &self.certificate else { return };
        match certificate.reload() {
            Ok(()) => tracing::info!("certificate and key were read again; new connections get them"),
            Err(error) => tracing::error!(error, "the certificate stays as it was"),
        }
    }

    /// Logs when the store takes no new tasks any more, and when it does so again.
    fn look_at_store(&self, was_troubled: bool) -> bool {
        let hardship = self.handle.hardship();
        match (&hardship, was_troubled) {
            (Some(hardship), false) => {
                tracing::error!(why = hardship.why(), "no new tasks are taken; /readyz says so too");
            }
            (None, true) => tracing::info!("new tasks are taken again"),
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
