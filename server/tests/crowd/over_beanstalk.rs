//! Clients of the beanstalk door. What they have reserved is theirs as long as their connection is there.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use punctual_wire::Time;

use super::ledger::{JOB, Receipt};
use super::roaming::{Connects, Roaming};
use super::wire::{Manner, Wire};
use super::{Doors, LEASE, Ledger, Told};

/// A connection to the beanstalk door, at the one tube that all use.
pub struct Tube(Wire);

impl Connects for Tube {
    fn open(doors: &Doors) -> io::Result<Tube> {
        Tube::at(&doors.beanstalk)
    }
}

impl Tube {
    /// Connects, if somebody listens.
    pub fn at(address: &str) -> io::Result<Tube> {
        let mut tube = Tube(Wire::try_open(address)?);
        for command in ["use work", "watch work", "ignore default"] {
            tube.say(command).ok_or(io::ErrorKind::ConnectionReset)?;
        }
        Ok(tube)
    }

    /// The answer to a command, if one comes.
    pub fn say(&mut self, command: &str) -> Option<String> {
        self.0.send(format!("{command}\r\n").as_bytes(), Manner::Plain);
        let answer = self.0.answer().ok()?;
        Some(String::from_utf8(answer).unwrap().trim_end_matches("\r\n").to_owned())
    }
}

/// What is heard of a command.
enum Heard {
    /// Its own words.
    Said(String),
    NothingDone,
    /// Nobody knows what came of it, or the connection has gone.
    Unknown,
}

impl Roaming<'_, Tube> {
    fn say(&mut self, command: &str) -> Heard {
        let (tube, _) = self.connect();
        let Some(answer) = tube.say(command) else {
            self.leave();
            return Heard::Unknown;
        };
        match answer.as_str() {
            "OUT_OF_MEMORY" | "DRAINING" => Heard::NothingDone,
            "INTERNAL_ERROR" => Heard::Unknown,
            _ => Heard::Said(answer),
        }
    }

    /// Says it until it was done, it is said that it cannot be, or nobody knows.
    fn insist(&mut self, command: &str, done: &AtomicBool) -> Option<String> {
        while !done.load(Ordering::SeqCst) {
            match self.say(command) {
                Heard::Said(answer) => return Some(answer),
                Heard::NothingDone => pause(),
                Heard::Unknown => return None,
            }
        }
        None
    }
}

fn pause() {
    thread::sleep(Duration::from_millis(50));
}

fn after(since: Time, millis: u64) -> Time {
    Time(since.0 + millis)
}

pub fn produce(mut client: Roaming<'_, Tube>, producer: usize, ledger: &Ledger, over: &AtomicBool) {
    for number in (0..).take_while(|_| !over.load(Ordering::SeqCst)) {
        let (name, delay) = (format!("{JOB}{producer}-{number}"), number % 2);
        ledger.schedules(&name, delay * 1_000);
        let told = match client.say(&format!("put 5 {delay} 2 {}\r\n{name}", name.len())) {
            Heard::Said(answer) => {
                let id = answer.strip_prefix("INSERTED ").unwrap_or_else(|| panic!("{answer}"));
                ledger.is_at(&name, format!("/v1/numbers/{id}"));
                Told::Done
            }
            Heard::NothingDone => Told::NothingDone,
            Heard::Unknown => Told::Unknown,
        };
        ledger.scheduled(&name, told);
        if told == Told::Done {
            thread::sleep(Duration::from_millis(5));
        } else {
            client.leave();
            pause();
        }
    }
}

pub fn consume(mut client: Roaming<'_, Tube>, consumer: usize, ledger: &Ledger, done: &AtomicBool) {
    let mut forgotten = Vec::new();
    for round in (0..).take_while(|_| !done.load(Ordering::SeqCst)) {
        let asked_at = Time::now();
        let heard = client.say("reserve-with-timeout 1");
        // What another one held goes out again when it leaves, and that is nobody's business any more.
        if done.load(Ordering::SeqCst) {
            break;
        }
        match heard {
            Heard::Said(answer) => {
                let Some((id, name)) = reserved(&answer) else {
                    pause();
                    continue;
                };
                let (until, life) = (after(asked_at, LEASE), client.connect().1.clone());
                let receipt = ledger.delivered(name, until, Some(life));
                if round % 16 == consumer {
                    forgotten.push(receipt);
                } else {
                    Job { id, name, until, receipt }.settle(round, &mut client, ledger, done);
                }
            }
            Heard::NothingDone | Heard::Unknown => {
                // What it still holds is ready when it has gone.
                forgotten.drain(..).for_each(|receipt| ledger.lets_go(&receipt));
                client.leave();
                pause();
            }
        }
    }
}

/// The id and the body of the job that an answer brings, if it brings one.
fn reserved(answer: &str) -> Option<(u64, &str)> {
    let Some(job) = answer.strip_prefix("RESERVED ") else {
        assert!(["TIMED_OUT", "DEADLINE_SOON"].contains(&answer), "{answer}");
        return None;
    };
    let (head, body) = job.split_once("\r\n").unwrap();
    Some((head.split(' ').next().unwrap().parse().unwrap(), body))
}

/// A job in the hands of a consumer.
struct Job<'a> {
    id: u64,
    /// What it is called in the ledger: its body.
    name: &'a str,
    until: Time,
    receipt: Receipt,
}

impl Job<'_> {
    /// Does one thing or another with it.
    fn settle(&self, round: usize, client: &mut Roaming<'_, Tube>, ledger: &Ledger, done: &AtomicBool) {
        match round % 8 {
            1 => self.release(0, client, ledger, done),
            2 => self.release(1, client, ledger, done),
            3 => self.bury(client, ledger, done),
            _ => self.delete(client, ledger, done),
        }
    }

    fn delete(&self, client: &mut Roaming<'_, Tube>, ledger: &Ledger, done: &AtomicBool) {
        match client.insist(&format!("delete {}", self.id), done).as_deref() {
            Some("DELETED") => ledger.acknowledged(self.name),
            Some(answer) => self.is_lost(answer, ledger),
            None => ledger.doubts(&self.receipt),
        }
    }

    fn release(&self, delay: u64, client: &mut Roaming<'_, Tube>, ledger: &Ledger, done: &AtomicBool) {
        // Others may have it before the answer is here.
        ledger.lets_go(&self.receipt);
        let asked_at = Time::now();
        match client.insist(&format!("release {} 5 {delay}", self.id), done).as_deref() {
            Some("RELEASED") => ledger.is_put_off(&self.receipt, after(asked_at, delay * 1_000)),
            Some(answer) => self.is_lost(answer, ledger),
            // It comes back in any case.
            None => {}
        }
    }

    /// Buries it, and kicks it then: meanwhile nobody gets it.
    fn bury(&self, client: &mut Roaming<'_, Tube>, ledger: &Ledger, done: &AtomicBool) {
        match client.insist(&format!("bury {} 5", self.id), done).as_deref() {
            Some("BURIED") => {}
            Some(answer) => return self.is_lost(answer, ledger),
            None => return ledger.doubts(&self.receipt),
        }
        ledger.buries(&self.receipt);
        thread::sleep(Duration::from_millis(20));
        // Its number may be that of another job.
        if ledger.is_forgiven(&self.receipt) {
            return ledger.doubts(&self.receipt);
        }
        ledger.lets_go(&self.receipt);
        match client.insist(&format!("kick-job {}", self.id), done).as_deref() {
            Some("KICKED") => {}
            Some(answer) => self.is_lost(answer, ledger),
            None => ledger.doubts(&self.receipt),
        }
    }

    fn is_lost(&self, answer: &str, ledger: &Ledger) {
        assert_eq!(answer, "NOT_FOUND", "{}", self.name);
        ledger.taken_away(&self.receipt, self.until);
    }
}
