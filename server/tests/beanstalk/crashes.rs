//! kill -9 under load: what was confirmed is there afterwards, under its id.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::client::Client;
use crate::peer;
use crate::stage::eventually;

/// What a client knows of a job, by what it was told.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    There,
    Gone,
    /// A command about it was not answered.
    Unsure,
}

/// Puts, reserves, buries, releases and deletes until the server is gone; notes what it was told.
fn work(mut client: Client, number: usize, notes: &Mutex<BTreeMap<u64, Known>>) {
    for command in ["use", "watch"] {
        client.send(&format!("{command} t{number}"));
        if client.try_hear().is_err() {
            return;
        }
    }
    let mut tell = |id: Option<u64>, command: &str, known: Known| -> Option<String> {
        client.send(command);
        let answer = client.try_hear().ok();
        let inserted = answer.as_deref().and_then(|answer| answer.strip_prefix("INSERTED ")?.parse().ok());
        if let Some(id) = id.or(inserted) {
            notes.lock().unwrap().insert(id, if answer.is_some() { known } else { Known::Unsure });
        }
        answer
    };
    for turn in 0.. {
        let delay = if turn % 3 == 0 { 1_000 } else { 0 };
        let Some(_) = tell(None, &format!("put {turn} {delay} 600 4\r\nbody"), Known::There) else { return };
        let Some(reserved) = tell(None, "reserve-with-timeout 0", Known::There) else { return };
        let Some(id) = reserved.split(' ').nth(1).and_then(|id| id.parse().ok()) else { continue };
        let (command, known) = match turn % 4 {
            0 => (format!("delete {id}"), Known::Gone),
            1 => (format!("bury {id} 1"), Known::There),
            2 => (format!("release {id} 1 1000"), Known::There),
            _ => continue,
        };
        let Some(_) = tell(Some(id), &command, known) else { return };
    }
}

#[test]
fn what_was_confirmed_before_kill_9_is_there_afterwards() {
    let mut server = peer::punctual();
    let notes: Arc<Mutex<BTreeMap<u64, Known>>> = Arc::default();
    for _ in 0..5 {
        thread::scope(|scope| {
            for number in 0..6 {
                let (client, notes) = (Client::of(&server), &notes);
                scope.spawn(move || work(client, number, notes));
            }
            let before = notes.lock().unwrap().len();
            eventually("they are at work", || notes.lock().unwrap().len() >= before + 30);
            // They end when they see that it has gone.
            server.signal("KILL");
        });
        server.kill();
        server.start_again();
    }
    let notes = notes.lock().unwrap();
    assert!(notes.values().filter(|known| **known == Known::There).count() > 50, "much was confirmed");
    let mut client = Client::of(&server);
    eventually("what was reserved is ready", || client.line("stats", "current-jobs-reserved") == "0");
    for (id, known) in notes.iter() {
        let peeked = client.say(&format!("peek {id}"));
        match known {
            Known::There => assert_eq!(peeked, format!("FOUND {id} 4\r\nbody")),
            Known::Gone => assert_eq!(peeked, "NOT_FOUND", "job {id}"),
            Known::Unsure => {}
        }
    }
    let last = *notes.keys().next_back().unwrap();
    assert!(client.put(0, 1, "x") > last, "no id is given twice");
}

#[test]
fn a_job_that_was_reserved_when_the_server_was_killed_is_ready_when_it_is_back() {
    let mut server = peer::punctual();
    let mut client = Client::of(&server);
    let ids: BTreeSet<u64> = (0..50).map(|_| client.put(0, 100_000, "x")).collect();
    for _ in &ids {
        assert!(client.say("reserve").starts_with("RESERVED"));
    }
    server.crash();
    let mut client = Client::of(&server);
    let mut again = BTreeSet::new();
    for _ in &ids {
        let reserved = client.say("reserve-with-timeout 0");
        again.insert(reserved.split(' ').nth(1).unwrap_or_default().parse().unwrap_or_default());
    }
    assert_eq!(again, ids);
    server.says("ready again");
}

#[test]
fn leases_of_others_outlive_the_clean_up() {
    let mut server = peer::punctual();
    Client::of(&server).put(0, 600, "x");
    let reserve =
        serde_json::json!({ "queues": ["default"], "wait": "5s", "lease": "1h", "consumer": "beanstalk/other/1" });
    let taken = server.post("/v1/reserve", &reserve).expect(200).json();
    assert_eq!(taken["deliveries"].as_array().unwrap().len(), 1);
    server.crash();
    let mut client = Client::of(&server);
    assert_eq!(client.say("reserve-with-timeout 0"), "TIMED_OUT");
    assert_eq!(client.line("stats", "current-jobs-reserved"), "1");
}

#[test]
fn who_stops_the_server_gives_back_what_connections_held() {
    let mut server = peer::punctual();
    let mut client = Client::of(&server);
    let id = client.put(0, 100_000, "x");
    client.say("reserve");
    assert!(server.stop().success());
    server.start_again();
    let mut client = Client::of(&server);
    assert_eq!(client.say("reserve-with-timeout 0"), format!("RESERVED {id} 1\r\nx"));
    assert!(!server.output().contains("ready again"), "nothing was left to clean up");
}
