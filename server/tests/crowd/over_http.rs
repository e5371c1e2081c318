//! Clients of the HTTP door.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use punctual_wire::Time;
use serde_json::{Value, json};

use super::ledger::Receipt;
use super::roaming::{Connects, Roaming};
use super::{Doors, LEASE, Ledger, Told};
use crate::stage::{Answer, Connection};

/// A connection to the HTTP door.
pub struct Http(Connection);

impl Connects for Http {
    fn open(doors: &Doors) -> io::Result<Http> {
        Connection::try_open(&doors.http, None).map(Http)
    }
}

impl Roaming<'_, Http> {
    /// Sends a request. On an error nobody knows what came of it; the next one goes to another server.
    pub fn request(&mut self, method: &str, path: &str, body: Option<&Value>) -> io::Result<Answer> {
        let (Http(connection), _) = self.connect();
        let answer = connection.try_send(method, path, body).and_then(|()| connection.try_receive());
        match answer {
            Ok(answer) if answer.header("connection") != Some("close") => Ok(answer),
            other => {
                self.leave();
                other
            }
        }
    }
}

/// What a problem says of the request that has met it.
fn told(problem: &Value) -> Told {
    // A test that fails shows it.
    println!("{} {}", Time::now(), problem["detail"]);
    match problem["code"].as_str() {
        Some("outcome-unknown") => Told::Unknown,
        Some("unavailable" | "overloaded" | "stopping") => Told::NothingDone,
        _ => panic!("{problem} says neither that nothing was done nor that nobody knows"),
    }
}

pub fn produce(mut client: Roaming<'_, Http>, producer: usize, ledger: &Ledger, over: &AtomicBool) {
    for number in (0..).take_while(|_| !over.load(Ordering::SeqCst)) {
        let (id, delay) = (format!("{producer}-{number}"), number * 37 % 300);
        ledger.schedules(&id, delay);
        ledger.is_at(&id, format!("/v1/tasks/work/{id}"));
        let task = json!({ "topic": "work", "id": id, "delay": delay, "text": id });
        let mut heard = schedule(&mut client, &task);
        // Half of those who do not know ask again, which is the same as to ask once.
        while heard == Told::Unknown && number % 2 == 0 && !over.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(50));
            let again = schedule(&mut client, &task);
            heard = if again == Told::Done { Told::Done } else { Told::Unknown };
        }
        ledger.scheduled(&id, heard);
        thread::sleep(Duration::from_millis(if heard == Told::Done { 5 } else { 50 }));
    }
}

fn schedule(client: &mut Roaming<'_, Http>, task: &Value) -> Told {
    heard(client.request("POST", "/v1/tasks", Some(task)), client).map_or_else(|told| told, |_| Told::Done)
}

/// The answer, or what its absence says.
fn heard(answer: io::Result<Answer>, client: &mut Roaming<'_, Http>) -> Result<Answer, Told> {
    match answer {
        Ok(answer) if [200, 201].contains(&answer.status) => Ok(answer),
        Ok(problem) => {
            client.leave();
            Err(told(&problem.expect(503).json()))
        }
        Err(_) => Err(Told::Unknown),
    }
}

pub fn consume(mut client: Roaming<'_, Http>, consumer: usize, ledger: &Ledger, done: &AtomicBool) {
    for round in (0..).take_while(|_| !done.load(Ordering::SeqCst)) {
        let reserve = json!({ "queues": ["work"], "max": 8, "wait": "300ms", "lease": LEASE });
        let answer = client.request("POST", "/v1/reserve", Some(&reserve));
        let Ok(answer) = heard(answer, &mut client) else {
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        // What a beanstalk connection held goes out again when it leaves, and that is nobody's business any more.
        if done.load(Ordering::SeqCst) {
            break;
        }
        let taken = taken(&answer, ledger);
        // Now and then one of them forgets about it.
        if round % 16 != consumer {
            settle(&mut client, taken, ledger, done);
        }
    }
}

/// A task in the hands of a consumer.
struct Held {
    /// What it is called in the ledger: its body.
    name: String,
    receipt: Receipt,
    lease: Value,
    until: Time,
    /// It may be done already.
    is_doubtful: bool,
}

/// What an answer brings, which goes into the ledger.
fn taken(answer: &Answer, ledger: &Ledger) -> Vec<Held> {
    let held = |delivery: &Value| {
        let (name, until) = (text_of(delivery), delivery["until"].as_str().unwrap().parse().unwrap());
        let receipt = ledger.delivered(&name, until, None);
        Held { name, receipt, lease: delivery["lease"].clone(), until, is_doubtful: false }
    };
    answer.json()["deliveries"].as_array().unwrap().iter().map(held).collect()
}

/// What came by the beanstalk door is bytes.
fn text_of(delivery: &Value) -> String {
    match delivery["text"].as_str() {
        Some(text) => text.to_owned(),
        None => String::from_utf8(STANDARD.decode(delivery["base64"].as_str().unwrap()).unwrap()).unwrap(),
    }
}

/// Says that they are done, to whichever server answers, again and again where nobody knows whether it was heard.
fn settle(client: &mut Roaming<'_, Http>, mut open: Vec<Held>, ledger: &Ledger, done: &AtomicBool) {
    while !open.is_empty() && !done.load(Ordering::SeqCst) {
        let actions: Vec<Value> = open.iter().map(|held| json!({ "do": "acknowledge", "lease": held.lease })).collect();
        let answer = client.request("POST", "/v1/leases", Some(&json!({ "actions": actions })));
        let Ok(answer) = heard(answer, client) else {
            open.iter_mut().for_each(|held| held.is_doubtful = true);
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        let results = answer.json()["results"].as_array().unwrap().clone();
        let mut again = Vec::new();
        for (mut held, result) in open.into_iter().zip(results) {
            let problem = &result["problem"];
            if result["outcome"] == "acknowledged" {
                ledger.acknowledged(&held.name);
            } else if problem["code"] != "lease-lost" {
                held.is_doubtful |= told(problem) == Told::Unknown;
                again.push(held);
            } else if held.is_doubtful && problem["standing"]["ending"] == "done" {
                ledger.acknowledged(&held.name);
            } else {
                ledger.taken_away(&held.receipt, held.until);
            }
        }
        if !again.is_empty() {
            thread::sleep(Duration::from_millis(50));
        }
        open = again;
    }
}
