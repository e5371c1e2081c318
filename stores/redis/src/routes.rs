//! Which server has which slot: always the same one, the one that the sentinels name, or as the cluster says.

use std::sync::RwLock;
use std::time::Instant;

use punctual_database::Address;
use redis::{Value, cmd};

use crate::slot::SLOTS;
use crate::target::{Target, Topology};
use crate::trouble::{Trouble, said};
use crate::value::{list, text};
use crate::wire::{Manner, Party, Wire};

/// What is known of where the slots are. It may be old: who is sent to the wrong server is told so by it.
pub(crate) struct Routes {
    begin: Vec<Address>,
    topology: Topology,
    known: RwLock<Vec<Range>>,
}

/// The slots up to this one, from the end of the range before it, are on this server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    last: u16,
    server: Address,
}

impl Routes {
    pub(crate) fn new(target: &Target) -> Routes {
        let known = match (&target.topology, target.servers.first()) {
            (Topology::Single, Some(server)) => vec![Range { last: SLOTS - 1, server: server.clone() }],
            _ => Vec::new(),
        };
        Routes { begin: target.servers.clone(), topology: target.topology.clone(), known: RwLock::new(known) }
    }

    /// The server that has a slot, if any is known to.
    pub(crate) fn server(&self, slot: u16) -> Option<Address> {
        let known = self.known.read().expect("nothing panics under it");
        known.get(known.partition_point(|range| range.last < slot)).map(|range| range.server.clone())
    }

    /// All servers that have slots.
    pub(crate) fn servers(&self) -> Vec<Address> {
        let known = self.known.read().expect("nothing panics under it");
        let mut servers: Vec<Address> = known.iter().map(|range| range.server.clone()).collect();
        servers.sort();
        servers.dedup();
        servers
    }

    /// Asks where the slots are: the servers that are known, and then those that it began with.
    pub(crate) fn renew(&self, manner: &Manner, sentinels: &Manner, deadline: Instant) -> Result<(), Trouble> {
        let known = match &self.topology {
            Topology::Single => return Ok(()),
            Topology::Sentinel(master) => self.asked(&self.begin, sentinels, deadline, |wire, _| {
                let mut question = cmd("SENTINEL");
                question.arg("get-master-addr-by-name").arg(master);
                let answer = wire.ask(&question, deadline)?;
                let server = named(&answer).ok_or_else(|| Trouble::Away(format!("it knows no master {master:?}")))?;
                // It is asked whether it is the master before it is believed.
                Wire::connect(&server, &Manner { party: Party::Master, ..manner.clone() }, deadline)?;
                Ok(vec![Range { last: SLOTS - 1, server }])
            })?,
            Topology::Cluster => {
                let places: Vec<Address> = self.servers().into_iter().chain(self.begin.clone()).collect();
                self.asked(&places, manner, deadline, |wire, asked| {
                    let mut question = cmd("CLUSTER");
                    question.arg("SLOTS");
                    ranges(wire.ask(&question, deadline)?, asked)
                })?
            }
        };
        *self.known.write().expect("nothing panics under it") = known;
        Ok(())
    }

    /// The first answer of these servers that can be used. One that hangs leaves time for the others.
    fn asked(
        &self,
        servers: &[Address],
        manner: &Manner,
        deadline: Instant,
        ask: impl Fn(&mut Wire, &Address) -> Result<Vec<Range>, Trouble>,
    ) -> Result<Vec<Range>, Trouble> {
        let mut trouble = Trouble::Away("no server is known".to_owned());
        for (tried, server) in servers.iter().enumerate() {
            let others = u32::try_from(servers.len() - tried).unwrap_or(u32::MAX);
            let now = Instant::now();
            let share = now + deadline.saturating_duration_since(now) / others;
            match Wire::connect(server, manner, share).and_then(|mut wire| ask(&mut wire, server)) {
                Ok(known) => return Ok(known),
                Err(found) => trouble = found.at(server),
            }
        }
        Err(trouble)
    }
}

/// A host and a port, as two texts.
fn named(answer: &Value) -> Option<Address> {
    let Value::Array(parts) = answer else { return None };
    let host = text(parts.first()?)?;
    let port = match parts.get(1)? {
        Value::Int(port) => u16::try_from(*port).ok()?,
        port => text(port)?.parse().ok()?,
    };
    Some(Address { host: host.to_owned(), port })
}

/// The answer to CLUSTER SLOTS: for each range its first and last slot, its master and its replicas.
fn ranges(answer: Value, asked: &Address) -> Result<Vec<Range>, Trouble> {
    if let Value::ServerError(error) = &answer {
        return Err(Trouble::of(error, said(error)));
    }
    let range = |part: &Value| {
        let Value::Array(part) = part else { return None };
        let (Value::Int(first), Value::Int(last)) = (part.first()?, part.get(1)?) else { return None };
        let mut server = named(part.get(2)?)?;
        // A server that does not know its own name is where it was reached.
        if server.host.is_empty() || server.host == "?" {
            server.host.clone_from(&asked.host);
        }
        Some((u16::try_from(*first).ok()?, Range { last: u16::try_from(*last).ok()?, server }))
    };
    let strange = || Trouble::Away("CLUSTER SLOTS was answered oddly".to_owned());
    let parts = list(answer).ok_or_else(strange)?;
    let mut found = parts.iter().map(range).collect::<Option<Vec<_>>>().ok_or_else(strange)?;
    found.sort_by_key(|(first, _)| *first);
    let mut next = 0;
    for (first, range) in &found {
        if *first != next {
            break;
        }
        next = range.last + 1;
    }
    if next < SLOTS {
        return Err(Trouble::Away(format!("no server has slot {next}")));
    }
    Ok(found.into_iter().map(|(_, range)| range).collect())
}

/// Where a MOVED or ASK sends: `slot host:port`.
pub(crate) fn redirected(details: Option<&str>, from: &Address) -> Option<Address> {
    let (host, port) = details?.split_whitespace().nth(1)?.rsplit_once(':')?;
    let host = if host.is_empty() { &from.host } else { host };
    Some(Address { host: host.to_owned(), port: port.parse().ok()? })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

    use super::*;

    fn at(host: &str, port: u16) -> Address {
        Address { host: host.to_owned(), port }
    }

    fn range(first: i64, last: i64, host: &str) -> Value {
        let server = Value::Array(vec![Value::BulkString(host.into()), Value::Int(7000)]);
        Value::Array(vec![Value::Int(first), Value::Int(last), server])
    }

    #[test]
    fn slots_are_looked_up_in_ranges() {
        let routes = Routes::new(&crate::url::parse("redis+cluster://a:1").unwrap());
        assert_eq!(routes.server(0), None);
        let answer = Value::Array(vec![range(9000, 16_383, "b"), range(0, 8999, "")]);
        *routes.known.write().unwrap() = ranges(answer, &at("a", 1)).unwrap();
        assert_eq!(routes.server(8999), Some(at("a", 7000)), "without a name it is where it was asked");
        assert_eq!(routes.server(9000), Some(at("b", 7000)));
        assert_eq!(routes.servers(), [at("a", 7000), at("b", 7000)]);
    }

    #[test]
    fn a_gap_in_the_slots_is_no_answer() {
        for gap in [vec![range(1, 16_383, "a")], vec![range(0, 5, "a"), range(7, 16_383, "b")], vec![range(0, 5, "a")]]
        {
            assert!(ranges(Value::Array(gap), &at("a", 1)).is_err());
        }
    }

    #[test]
    fn redirections_are_read() {
        assert_eq!(redirected(Some("3999 10.0.0.1:6381"), &at("a", 1)), Some(at("10.0.0.1", 6381)));
        assert_eq!(redirected(Some("3999 :6381"), &at("a", 1)), Some(at("a", 6381)));
        assert_eq!(redirected(None, &at("a", 1)), None);
    }
}
