//! Calls to whichever server has the slot, again until they are answered or the time is over.
//!
//! Calls to one server go out in one write, and to several servers before any of them is waited for. Calls of one slot
//! are answered in their order: if one has to be made again, so have those after it.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use punctual_database::{Address, Config, Counters, OpenError, Pauses, Threads};
use redis::{Cmd, ServerError, Value, cmd, pipe};

use crate::pool::{BorrowedWire, Pool};
use crate::routes::{Routes, redirected};
use crate::target::{Target, Topology};
use crate::tls;
use crate::trouble::{Trouble, said};
use crate::value::number;
use crate::wire::{Manner, Party};

/// A command, and what may be done with it.
pub(crate) struct Call {
    pub(crate) slot: u16,
    pub(crate) command: Cmd,
    /// Whether it does no harm to make it a second time, if it is unknown what became of the first.
    pub(crate) may_repeat: bool,
    /// Whether replicas are to be waited for.
    pub(crate) writes: bool,
}

/// What a server said to a call.
pub(crate) struct Answer {
    pub(crate) value: Value,
    /// Whether an attempt before this one may have been carried out.
    pub(crate) is_repeated: bool,
}

pub(crate) struct Servers {
    routes: Routes,
    pool: Pool,
    sentinels: Manner,
    patience: Duration,
    replicas: usize,
    wait: Duration,
    pub(crate) counters: Counters,
    /// Dropped last: connections end on them.
    _threads: Threads,
}

/// What became of an attempt at a call.
enum Outcome {
    Answered(Value),
    /// It was not carried out, and may be if it is made again, there if a server was named.
    Again(String, Option<Address>),
    /// It may have been carried out.
    Unknown(String),
    Failed(Trouble),
}

/// A call that is still to be answered.
struct Open {
    call: usize,
    /// The server to ask instead of the one that has the slot.
    ask: Option<Address>,
}

impl Servers {
    pub(crate) fn new(target: &Target, config: &Config) -> Result<Servers, OpenError> {
        let threads = Threads::start("redis")?;
        let is_watched = matches!(target.topology, Topology::Sentinel(_));
        let manner = Manner {
            threads: threads.handle().clone(),
            certificates: target.is_secure.then(|| tls::certificates(config)).transpose()?,
            user: target.user.clone(),
            database: target.database,
            party: if is_watched { Party::Master } else { Party::Server },
        };
        let sentinels = Manner { user: target.sentinel_user.clone(), party: Party::Sentinel, ..manner.clone() };
        Ok(Servers {
            routes: Routes::new(target),
            pool: Pool::new(manner, config.connections),
            sentinels,
            patience: config.patience,
            replicas: config.replicas,
            wait: target.wait,
            counters: Counters::default(),
            _threads: threads,
        })
    }

    /// When a call that begins now has to be over.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.patience
    }

    /// Whether replicas are waited for.
    pub(crate) fn waits(&self) -> bool {
        self.replicas > 0
    }

    /// How many connections are open, and how many of them in use.
    pub(crate) fn connections(&self) -> (usize, usize) {
        self.pool.counts()
    }

    /// Makes one call.
    pub(crate) fn call_one(&self, call: Call, deadline: Instant) -> Result<Value, Trouble> {
        let answer = self.call(&[call], deadline)?.pop();
        Ok(answer.expect("every call is answered").value)
    }

    /// Makes the calls; answers in their order.
    pub(crate) fn call(&self, calls: &[Call], deadline: Instant) -> Result<Vec<Answer>, Trouble> {
        let mut answers: Vec<Option<Answer>> = calls.iter().map(|_| None).collect();
        let mut is_unknown = vec![false; calls.len()];
        let mut open: Vec<Open> = (0..calls.len()).map(|call| Open { call, ask: None }).collect();
        let mut pauses = Pauses::default();
        while !open.is_empty() {
            let mut trouble = None;
            let mut again: Vec<Open> = Vec::new();
            for (call, outcome) in self.attempt(calls, open, deadline) {
                // What comes after a call of the same slot that is made again has found things as they were before it.
                let is_behind = again.iter().any(|open| calls[open.call].slot == calls[call].slot);
                match outcome {
                    Outcome::Failed(trouble) => return Err(trouble),
                    Outcome::Answered(_) if is_behind && calls[call].may_repeat => again.push(Open { call, ask: None }),
                    Outcome::Answered(value) => {
                        answers[call] = Some(Answer { value, is_repeated: is_unknown[call] });
                    }
                    Outcome::Again(why, ask) => {
                        trouble = Some(why);
                        again.push(Open { call, ask });
                    }
                    Outcome::Unknown(why) if !calls[call].may_repeat => return Err(Trouble::Away(why)),
                    Outcome::Unknown(why) => {
                        trouble = Some(why);
                        is_unknown[call] = true;
                        again.push(Open { call, ask: None });
                    }
                }
            }
            if let Some(why) = trouble {
                let Some(pause) = pauses.next(deadline) else { return Err(Trouble::Away(why)) };
                self.counters.count_retry();
                thread::sleep(pause);
            }
            open = again;
        }
        Ok(answers.into_iter().flatten().collect())
    }

    /// One attempt at the calls that are open, in their order. It leaves time for another one.
    fn attempt(&self, calls: &[Call], open: Vec<Open>, deadline: Instant) -> BTreeMap<usize, Outcome> {
        let by = deadline.min(Instant::now() + (self.patience / 2).max(self.wait + Pauses::LONGEST));
        let mut outcomes = BTreeMap::new();
        let mut groups: BTreeMap<Address, Vec<Open>> = BTreeMap::new();
        for open in open {
            match open.ask.clone().map_or_else(|| self.server(calls[open.call].slot, by), Ok) {
                Ok(server) => groups.entry(server).or_default().push(open),
                Err(trouble) => {
                    outcomes.insert(open.call, not_done(trouble));
                }
            }
        }
        let mut sent = Vec::new();
        for (server, group) in groups {
            match self.send(&server, calls, &group, by) {
                Ok(borrowed) => sent.push((server, group, borrowed)),
                Err(trouble) => {
                    self.mistrust(&server, by);
                    let trouble = trouble.at(&server);
                    outcomes.extend(group.iter().map(|open| (open.call, not_done(trouble.clone()))));
                }
            }
        }
        for (server, group, borrowed) in sent {
            outcomes.extend(self.receive(&server, borrowed, calls, &group, by));
        }
        outcomes
    }

    /// The server that has a slot.
    fn server(&self, slot: u16, by: Instant) -> Result<Address, Trouble> {
        if let Some(server) = self.routes.server(slot) {
            return Ok(server);
        }
        self.routes.renew(self.pool.manner(), &self.sentinels, by)?;
        self.routes.server(slot).ok_or_else(|| Trouble::Away(format!("no server has slot {slot}")))
    }

    /// Sends the calls of a server. On an error nothing was sent.
    fn send(&self, server: &Address, calls: &[Call], group: &[Open], by: Instant) -> Result<BorrowedWire<'_>, Trouble> {
        let mut commands = pipe();
        for open in group {
            if open.ask.is_some() {
                commands.cmd("ASKING");
            }
            commands.add_command(calls[open.call].command.clone());
        }
        if self.is_waited_for(calls, group) {
            let millis = u64::try_from(self.wait.as_millis()).unwrap_or(u64::MAX);
            commands.cmd("WAIT").arg(self.replicas).arg(millis);
        }
        self.counters.count_round_trip();
        let mut borrowed = self.pool.borrow(server, by)?;
        // A connection that was idle may have been closed: what cannot be repeated is only sent on one that answers.
        if group.iter().any(|open| !calls[open.call].may_repeat) {
            borrowed.wire().ask(&cmd("PING"), by)?;
        }
        borrowed.wire().send(commands);
        Ok(borrowed)
    }

    fn is_waited_for(&self, calls: &[Call], group: &[Open]) -> bool {
        self.waits() && group.iter().any(|open| calls[open.call].writes)
    }

    fn receive(
        &self,
        server: &Address,
        mut borrowed: BorrowedWire<'_>,
        calls: &[Call],
        group: &[Open],
        by: Instant,
    ) -> Vec<(usize, Outcome)> {
        let mut answers = match borrowed.wire().receive(by) {
            Ok(answers) => answers.into_iter(),
            Err(trouble) => {
                self.mistrust(server, by);
                let why = trouble.at(server).to_string();
                return group.iter().map(|open| (open.call, Outcome::Unknown(why.clone()))).collect();
            }
        };
        let mut outcomes = Vec::with_capacity(group.len());
        let mut is_right = true;
        for open in group {
            // The one to ASKING says nothing.
            let answer = if open.ask.is_some() { answers.nth(1) } else { answers.next() };
            let outcome = match answer {
                Some(Value::ServerError(error)) => judge(server, &error, &mut is_right),
                Some(value) => Outcome::Answered(value),
                None => Outcome::Unknown(format!("{server}: an answer is missing")),
            };
            outcomes.push((open.call, outcome));
        }
        if self.is_waited_for(calls, group) {
            let reached = answers.next().as_ref().and_then(number::<usize>).unwrap_or_default();
            if reached < self.replicas {
                let trouble = self.unmet(server, reached);
                outcomes.iter_mut().for_each(|(_, outcome)| *outcome = Outcome::Failed(trouble.clone()));
            }
        }
        if is_right {
            borrowed.give_back();
        } else {
            drop(borrowed);
            self.mistrust(server, by);
        }
        outcomes
    }

    /// Too few replicas have what was written.
    fn unmet(&self, server: &Address, reached: usize) -> Trouble {
        let (wanted, millis) = (self.replicas, self.wait.as_millis());
        Trouble::Away(format!("{server}: {reached} of {wanted} replicas had it after {millis} ms; it may yet be lost"))
    }

    /// A server was not what it was thought to be: its other connections are no better, and the slots may have moved.
    fn mistrust(&self, server: &Address, by: Instant) {
        self.pool.clear(server);
        // Who asks next finds out if this has failed.
        let _ = self.routes.renew(self.pool.manner(), &self.sentinels, by);
    }

    /// Asks every server that has slots.
    pub(crate) fn each(&self, command: &Cmd, by: Instant) -> Result<Vec<(Address, Value)>, Trouble> {
        self.server(0, by)?;
        let ask = |server: Address| {
            let mut borrowed = self.pool.borrow(&server, by).map_err(|trouble| trouble.at(&server))?;
            self.counters.count_round_trip();
            let value = borrowed.wire().ask(command, by).map_err(|trouble| trouble.at(&server))?;
            borrowed.give_back();
            Ok((server, value))
        };
        self.routes.servers().into_iter().map(ask).collect()
    }
}

/// Nothing was sent.
fn not_done(trouble: Trouble) -> Outcome {
    match trouble {
        Trouble::Away(why) => Outcome::Again(why, None),
        trouble => Outcome::Failed(trouble),
    }
}

/// What to do about a server's error. Whatever it says, the command was not carried out.
fn judge(server: &Address, error: &ServerError, is_right: &mut bool) -> Outcome {
    let why = format!("{server}: {}", said(error));
    match error.code() {
        "ASK" => Outcome::Again(why, redirected(error.details(), server)),
        // The server has another role than was thought, or its scripts are gone: new connections learn, and bring them.
        "MOVED" | "READONLY" | "CLUSTERDOWN" | "MASTERDOWN" | "NOSCRIPT" => {
            *is_right = false;
            Outcome::Again(why, None)
        }
        "TRYAGAIN" | "LOADING" | "BUSY" | "NOREPLICAS" => Outcome::Again(why, None),
        _ => Outcome::Failed(Trouble::of(error, why)),
    }
}
