//! Clients that leave: to the next command of anybody, they were never there.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;

use crate::client::Client;
use crate::peer;
use crate::stage::eventually;

#[test]
fn what_a_closed_connection_held_is_ready_to_the_next_command_of_anybody() {
    let server = peer::punctual();
    let mut other = Client::of(&server);
    for round in 0..300 {
        let mut holder = Client::of(&server);
        let id = holder.put(0, 100_000, "x");
        assert_eq!(holder.say("reserve"), format!("RESERVED {id} 1\r\nx"));
        drop(holder);
        match round % 3 {
            0 => assert_eq!(other.line(&format!("stats-job {id}"), "state"), "ready", "round {round}"),
            1 => assert_eq!(other.line("stats", "current-connections"), "1", "round {round}"),
            _ => assert_eq!(other.say(&format!("kick-job {id}")), "NOT_FOUND", "round {round}"),
        }
        assert_eq!(other.say(&format!("delete {id}")), "DELETED", "round {round}");
    }
}

#[test]
fn who_left_while_waiting_is_given_nothing() {
    let server = peer::punctual();
    let mut other = Client::of(&server);
    for round in 0..50 {
        let mut waiting = Client::of(&server);
        waiting.send("reserve");
        while other.line("stats", "current-waiting") != "1" {}
        drop(waiting);
        let id = other.put(0, 100, "x");
        assert_eq!(other.line(&format!("stats-job {id}"), "reserves"), "0", "round {round}");
        other.say(&format!("delete {id}"));
    }
}

#[test]
fn many_who_say_something_and_leave_do_not_wait_for_each_other() {
    let server = peer::punctual();
    let address = server.beanstalk_address();
    let said = b"put 0 0 10 1\r\nx\r\nreserve-with-timeout 0\r\nstats-tube default\r\n";
    thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| {
                let mut stream = TcpStream::connect(&address).unwrap();
                stream.write_all(said).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
                let mut answers = String::new();
                stream.read_to_string(&mut answers).unwrap();
                assert!(answers.starts_with("INSERTED ") && answers.contains("current-waiting: "), "{answers}");
            });
        }
    });
    let mut client = Client::of(&server);
    assert_eq!(client.line("stats", "current-jobs-ready"), "40", "all that was reserved is back");
}

#[test]
fn who_leaves_and_does_not_read_holds_up_nobody_for_long() {
    let server = peer::punctual();
    let mut client = Client::of(&server);
    let id = client.put(0, 100, &"x".repeat(1_000_000));
    let mut deaf = TcpStream::connect(server.beanstalk_address()).unwrap();
    deaf.write_all(format!("peek {id}\r\n").repeat(50).as_bytes()).unwrap();
    deaf.shutdown(Shutdown::Write).unwrap();
    eventually("it is let in", || client.line("stats", "current-connections") == "2");
    // Each would wait for as long as the other one may leave its answers unread.
    for _ in 0..60 {
        assert_eq!(client.line("stats", "current-connections"), "2");
    }
    drop(deaf);
    assert_eq!(client.say(&format!("delete {id}")), "DELETED");
}
