//! Slow, broken and greedy clients at the beanstalk door: none of them hurts anybody else.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::client::Client;
use crate::peer;
use crate::stage::{Server, eventually};

/// How much memory the server holds, in KiB.
fn memory(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().split(' ').next().unwrap().parse().unwrap()
}

fn raw(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.beanstalk_address()).unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    stream
}

#[test]
fn announced_bodies_cost_nothing_and_endless_lines_neither() {
    let server = peer::punctual();
    let before = memory(&server);
    let mut streams: Vec<TcpStream> = (0..200).map(|_| raw(&server)).collect();
    for (number, stream) in streams.iter_mut().enumerate() {
        match number % 3 {
            0 => stream.write_all(b"put 1 1 1 1048576\r\nx").unwrap(),
            1 => stream.write_all(b"put 1 1 1 4294967295\r\nx").unwrap(),
            _ => stream.write_all(&[b'a'; 100_000]).unwrap(),
        }
    }
    let mut client = Client::of(&server);
    assert!(client.put(0, 1, "x") > 0, "others are served");
    let after = memory(&server);
    assert!(after < before + 40 * 1_024, "from {before} to {after} KiB");
}

#[test]
fn who_leaves_answers_unread_is_cut_off_and_its_jobs_go_back() {
    let server = Server::start_with(&["--beanstalk-listen", "127.0.0.1:0", "--beanstalk-unread-time", "300ms"]);
    let mut client = Client::of(&server);
    let body = "x".repeat(100_000);
    let id = client.put(0, 600, &body);
    let mut greedy = raw(&server);
    greedy.write_all(b"reserve\r\n").unwrap();
    eventually("it is reserved", || client.line("stats", "current-jobs-reserved") == "1");
    let peeks = format!("peek {id}\r\n").repeat(2_000);
    // It never reads; when no more fits, writing ends too.
    _ = greedy.write_all(peeks.as_bytes());
    eventually("its job is ready again", || client.line("stats", "current-jobs-ready") == "1");
}

#[test]
fn answers_that_pile_up_are_bounded() {
    let server = peer::punctual();
    let mut client = Client::of(&server);
    let id = client.put(0, 600, &"x".repeat(1_000_000));
    let before = memory(&server);
    let mut greedy: Vec<TcpStream> = (0..5).map(|_| raw(&server)).collect();
    // Each asks for 2 GB in one write, and reads none of it.
    let peeks = format!("peek {id}\r\n").repeat(2_000);
    greedy.iter_mut().for_each(|stream| stream.write_all(peeks.as_bytes()).unwrap());
    thread::sleep(Duration::from_millis(500));
    assert!(client.say("list-tube-used").starts_with("USING"), "others are served");
    let after = memory(&server);
    assert!(after < before + 100 * 1_024, "from {before} to {after} KiB");
}

#[test]
fn answers_that_wait_for_their_readers_count_at_all_doors() {
    let server = peer::punctual_with(&["--node-answers", "8MiB"]);
    let mut client = Client::of(&server);
    let id = client.put(0, 600, &"x".repeat(1_000_000));
    let mut greedy: Vec<TcpStream> = (0..40).map(|_| raw(&server)).collect();
    let (peek, list) = (format!("peek {id}"), "/v1/tasks?topic=default&bodies=true");
    let peeks = format!("{peek}\r\n").repeat(10);
    eventually("there is no room for long answers", || {
        // Who is refused while others are served, be it this list, holds nothing: it asks again until it does.
        greedy.iter_mut().for_each(|stream| _ = stream.write_all(peeks.as_bytes()));
        server.get(list).status == 503 && client.say(&peek) == "OUT_OF_MEMORY"
    });
    assert_eq!(client.line(&format!("stats-job {id}"), "state"), "ready", "short ones are given");
    drop(greedy);
    eventually("there is room again", || server.get(list).status == 200);
    assert!(client.say(&peek).starts_with("FOUND"));
}

#[test]
fn idle_connections_cost_little() {
    let server = peer::punctual();
    let mut client = Client::of(&server);
    let before = memory(&server);
    let mut idle: Vec<Client> = (0..1_000).map(|_| Client::of(&server)).collect();
    for client in &mut idle {
        assert_eq!(client.say("watch x"), "WATCHING 2");
    }
    assert_eq!(client.line("stats", "current-connections"), "1001");
    let after = memory(&server);
    assert!(after < before + 12 * 1_024, "from {before} to {after} KiB for 1,000 connections");
}

#[test]
fn connections_beyond_the_limit_wait_their_turn() {
    let server = Server::start_with(&["--beanstalk-listen", "127.0.0.1:0", "--beanstalk-connections", "2"]);
    let mut first = Client::of(&server);
    let mut second = Client::of(&server);
    assert_eq!(first.say("list-tube-used"), "USING default");
    assert_eq!(second.say("list-tube-used"), "USING default");
    let mut third = raw(&server);
    third.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    third.write_all(b"list-tube-used\r\n").unwrap();
    let mut answer = [0; 64];
    assert!(third.read(&mut answer).is_err(), "it waits");
    drop(first);
    third.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let length = third.read(&mut answer).unwrap();
    assert_eq!(&answer[..length], b"USING default\r\n");
}

#[test]
fn a_thousand_connections_that_come_and_go_leave_nothing_behind() {
    let server = peer::punctual();
    let mut client = Client::of(&server);
    let before: u64 = client.line("stats", "total-connections").parse().unwrap();
    for round in 0..1_000 {
        let mut stream = raw(&server);
        _ = match round % 4 {
            0 => stream.write_all(b"reserve\r\n"),
            1 => stream.write_all(b"put 1 1 1 10\r\nhal"),
            2 => stream.write_all(b"watch x\r\nuse y\r\nreserve-with-timeout 100\r\n"),
            _ => Ok(()),
        };
    }
    let after = (before + 1_000).to_string();
    eventually("all were there", || client.line("stats", "total-connections") == after);
    eventually("all are gone", || client.line("stats", "current-connections") == "1");
    assert_eq!(client.line("stats", "current-waiting"), "0");
    assert_eq!(client.say("list-tubes"), "OK 14\r\n---\n- default\n");
}

#[test]
fn a_web_page_cannot_send_commands_in_the_body_of_a_request() {
    let server = peer::punctual();
    let body = "use mails\r\nput 0 0 60 4\r\nevil\r\nreserve-with-timeout 0\r\n";
    let long = "a".repeat(300);
    for head in [
        "POST / HTTP/1.1\r\nHost: 127.0.0.1:11300\r\n".to_owned(),
        format!("POST /{long} HTTP/1.1\r\nhost: 127.0.0.1:11300\r\n"),
        format!("POST /{long} HTTP/1.1\r\nHost: {long}.example\r\n"),
    ] {
        let mut page = raw(&server);
        let length = body.len();
        let rest =
            format!("Connection: keep-alive\r\nContent-Length: {length}\r\nContent-Type: text/plain\r\n\r\n{body}");
        // It may be hung up on before all of it is sent.
        _ = page.write_all(format!("{head}{rest}").as_bytes());
        let mut heard = Vec::new();
        _ = page.read_to_end(&mut heard);
        let heard = String::from_utf8(heard).unwrap();
        assert!(!heard.contains("INSERTED") && !heard.contains("USING"), "{heard}");
    }
    assert_eq!(server.get("/v1/topics").expect(200).json()["topics"], serde_json::json!([]));
}

#[test]
fn a_web_page_cannot_send_commands_in_a_handshake() {
    let server = peer::punctual();
    let commands = b"\r\nuse mails\r\nput 0 0 60 4\r\nevil\r\n";
    // What comes before the page's words may be longer than a line.
    for length in [0, 60, 500] {
        let mut page = raw(&server);
        let hello = [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], &vec![0xab; length], commands].concat();
        page.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        _ = page.write_all(&hello);
        let mut heard = Vec::new();
        _ = page.read_to_end(&mut heard);
        assert_eq!(heard.escape_ascii().to_string(), "");
    }
    assert_eq!(server.get("/v1/topics").expect(200).json()["topics"], serde_json::json!([]));
}
