//! The PostgreSQL that tests run on, and the proxy in front of it.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use punctual_engines::{Postgres, Proxy, Way};

/// What PostgreSQL answers to the question whether it speaks TLS is one byte: the shortest conversation there is.
const QUESTION: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

fn ask(stream: &mut TcpStream) -> Vec<u8> {
    let mut answer = [0];
    let _ = stream.write_all(&QUESTION);
    match stream.read(&mut answer) {
        Ok(read) => answer[..read].to_vec(),
        Err(_) => Vec::new(),
    }
}

#[test]
fn a_killed_server_comes_back_with_what_it_had() {
    let mut postgres = Postgres::start();
    postgres.sql("CREATE TABLE kept AS SELECT 7 AS n");
    postgres.kill();
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, postgres.port())).is_err(), "it is away");
    postgres.start_again();
    assert_eq!(postgres.sql("SELECT n FROM kept"), "7");
    assert!(postgres.cpu() > Duration::ZERO);
}

#[test]
fn a_paused_server_answers_when_it_goes_on() {
    let postgres = Postgres::start();
    let proxy = Proxy::to(postgres.port());
    postgres.pause();
    let mut stream = connect(&proxy);
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert_eq!(ask(&mut stream), b"");
    postgres.go_on();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut answer = [0];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"N");
}

#[test]
fn the_proxy_passes_hangs_cuts_and_refuses() {
    let postgres = Postgres::start();
    let proxy = Proxy::to(postgres.port());
    assert_eq!(ask(&mut connect(&proxy)), b"N");
    assert_eq!((proxy.passed(Way::There), proxy.passed(Way::Back)), (8, 1));

    proxy.cut_after(Way::There, 7);
    assert_eq!(ask(&mut connect(&proxy)), b"", "the question was cut short");
    assert_eq!(ask(&mut connect(&proxy)), b"N", "once");
    proxy.cut_after(Way::Back, 0);
    assert_eq!(ask(&mut connect(&proxy)), b"", "the answer was lost");
    proxy.cut_after(Way::There, 8);
    assert_eq!(ask(&mut connect(&proxy)), b"N", "all of it passed");
    assert!(proxy.disarm(), "no byte came after it");

    proxy.hang();
    let began = Instant::now();
    let mut hanging = connect(&proxy);
    hanging.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert_eq!(ask(&mut hanging), b"");
    assert!(began.elapsed() >= Duration::from_millis(200), "it waited for an answer");
    proxy.pass();
    hanging.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut answer = [0];
    hanging.read_exact(&mut answer).unwrap();
    proxy.cut();
    assert_eq!(ask(&mut hanging), b"");

    proxy.refuse();
    assert_eq!(ask(&mut connect(&proxy)), b"");
    proxy.pass();
    assert_eq!(ask(&mut connect(&proxy)), b"N");
}
