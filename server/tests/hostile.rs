//! Slow, broken and greedy clients, against the real binary: each is told what is wrong, and hurts nobody else.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use stage::{Answer, Server, eventually};

fn raw(server: &Server, request: &str) -> Answer {
    let mut connection = server.connect();
    connection.send_raw(request.as_bytes());
    connection.receive()
}

fn post(server: &Server, headers: &str, body: &str) -> Answer {
    let length = body.len();
    raw(server, &format!("POST /v1/tasks HTTP/1.1\r\nhost: x\r\n{headers}content-length: {length}\r\n\r\n{body}"))
}

fn code(answer: &Answer) -> String {
    answer.json()["code"].as_str().unwrap().to_owned()
}

const JSON: &str = "content-type: application/json\r\n";

#[test]
fn broken_json_is_refused_with_the_place() {
    let server = Server::start();
    for body in ["", "{", "{\"topic\":}", "nonsense", "{\"topic\":\"t\"} more", "\u{0}"] {
        let answer = post(&server, JSON, body).expect(400);
        assert_eq!(code(&answer), "bad-request", "{body:?}");
        assert!(answer.json()["detail"].as_str().unwrap().contains("line 1"), "{}", answer.text());
    }
    for body in [
        "[]",
        "[[[[[[[[",
        "7",
        "{}",
        "{\"topic\":7}",
        "{\"topic\":\"t\",\"delya\":\"1s\"}",
        "{\"topic\":\"t\",\"topic\":\"u\"}",
        "{\"topic\":\"t\",\"delay\":-5}",
        "{\"topic\":\"t\",\"delay\":1.5}",
        "{\"topic\":\"t\",\"delay\":\"1h\",\"at\":5}",
        "{\"topic\":\"t\",\"priority\":4294967296}",
        "{\"topic\":\"t\",\"base64\":\"???\"}",
        "{\"topic\":\"a b\"}",
    ] {
        assert_eq!(code(&post(&server, JSON, body).expect(422)), "invalid", "{body}");
    }
    let deep = format!("{{\"topic\":\"t\",\"body\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    post(&server, JSON, &deep).expect(201);
    server.post("/v1/reserve", &json!({ "queues": ["t"], "wait": "5s" })).expect(200);
    let bytes = b"POST /v1/tasks HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 14\r\n\r\n{\"topic\":\"\xff\xfe\"}";
    let mut connection = server.connect();
    connection.send_raw(bytes);
    assert_eq!(connection.receive().status, 400);
    server.post("/v1/tasks", &json!({ "topic": "t" })).expect(201);
}

#[test]
fn a_body_that_is_not_json_is_refused() {
    let server = Server::start();
    for headers in ["", "content-type: text/plain\r\n", "content-type: application/x-www-form-urlencoded\r\n"] {
        assert_eq!(code(&post(&server, headers, "{\"topic\":\"t\"}").expect(415)), "unsupported-media-type");
    }
    let packed = format!("{JSON}content-encoding: br\r\n");
    assert_eq!(code(&post(&server, &packed, "x").expect(415)), "unsupported-media-type");
}

#[test]
fn bodies_at_the_limit_are_taken_and_over_it_refused() {
    let server = Server::start_with(&["--http-request-size", "3MiB"]);
    let task = |bytes: usize| json!({ "topic": "big", "text": "x".repeat(bytes) });
    server.post("/v1/tasks", &task(1 << 20)).expect(201);
    assert_eq!(code(&server.post("/v1/tasks", &task((1 << 20) + 1)).expect(413)), "body-too-large");
    assert_eq!(code(&server.post("/v1/tasks", &task(4 << 20)).expect(413)), "request-too-large");
    let mut chunked = server.connect();
    let head = format!("POST /v1/tasks HTTP/1.1\r\nhost: x\r\n{JSON}transfer-encoding: chunked\r\n\r\n");
    chunked.send_raw(head.as_bytes());
    let chunk = [b"10000\r\n".as_slice(), &[b'['; 0x10000], b"\r\n"].concat();
    (0..100).for_each(|_| chunked.send_raw(&chunk));
    chunked.send_raw(b"0\r\n\r\n");
    assert_eq!(code(&chunked.receive().expect(413)), "request-too-large");
    let taken = server.post("/v1/reserve", &json!({ "queues": ["big"], "wait": "5s" })).expect(200).json();
    assert_eq!(taken["deliveries"][0]["text"].as_str().unwrap().len(), 1 << 20);
    let headers = json!({ "topic": "big", "headers": { "h": "v".repeat(20_000) } });
    assert_eq!(code(&server.post("/v1/tasks", &headers).expect(422)), "headers-too-large");
}

#[test]
fn too_many_and_too_long_header_lines_are_refused() {
    let server = Server::start();
    let many: String = (0..200).map(|index| format!("x-{index}: 1\r\n")).collect();
    assert_eq!(raw(&server, &format!("GET /healthz HTTP/1.1\r\nhost: x\r\n{many}\r\n")).status, 431);
    let long = format!("GET /healthz HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(100_000));
    let mut connection = server.connect();
    connection.send_raw(&long.as_bytes()[..60_000]);
    // What was not read of the request may cut the refusal off on its way.
    let refused = connection.try_receive();
    assert!(refused.as_ref().map_or(true, |answer| answer.status == 431), "{refused:?}");
    assert_eq!(raw(&server, "nonsense\r\n\r\n").status, 400);
    server.get("/healthz").expect(200);
}

#[test]
fn unknown_paths_and_methods_are_told_what_there_is() {
    let server = Server::start();
    assert_eq!(code(&server.get("/v2/tasks").expect(404)), "not-found");
    assert_eq!(code(&server.get("/v1/tasks/").expect(404)), "not-found");
    let wrong = server.delete("/v1/tasks").expect(405);
    assert_eq!(code(&wrong), "method-not-allowed");
    assert!(wrong.header("allow").is_some_and(|allow| allow.contains("POST")), "{:?}", wrong.headers);
}

#[test]
fn pages_of_another_origin_are_refused() {
    let server = Server::start();
    let request = |origin: &str| {
        raw(
            &server,
            &format!(
                "POST /v1/topics/t/pause HTTP/1.1\r\nhost: {}\r\norigin: {origin}\r\ncontent-length: 0\r\n\r\n",
                server.address()
            ),
        )
    };
    assert_eq!(code(&request("https://evil.example").expect(403)), "forbidden");
    assert_eq!(request(&format!("http://{}", server.address())).status, 404);
}

#[test]
fn a_slow_client_is_cut_and_holds_nobody_up() {
    let server =
        Server::start_with(&["--http-header-time", "1s", "--http-body-time", "1s", "--http-connections", "300"]);
    let mut slow: Vec<TcpStream> = (0..250).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: ").unwrap();
    }
    let begun = Instant::now();
    server.get("/healthz").expect(200);
    assert!(begun.elapsed() < Duration::from_secs(5));
    for stream in &mut slow {
        stream.set_read_timeout(Some(stage::PATIENCE)).unwrap();
        // A refusal or nothing, and then the end.
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    let mut half = server.connect();
    half.send_raw(format!("POST /v1/tasks HTTP/1.1\r\nhost: x\r\n{JSON}content-length: 1000\r\n\r\n{{").as_bytes());
    assert_eq!(code(&half.receive().expect(408)), "request-timeout");
}

#[test]
fn a_client_that_does_not_read_its_answers_is_cut() {
    let server = Server::start_with(&["--http-body-time", "1s"]);
    let tasks: Vec<_> = (0..40)
        .map(|id| json!({ "topic": "r", "id": id.to_string(), "delay": "1h", "text": "x".repeat(200_000) }))
        .collect();
    server.post("/v1/tasks/batch", &json!({ "tasks": tasks })).expect(200);
    let mut deaf = TcpStream::connect(server.address()).unwrap();
    let request = format!("GET /v1/tasks?bodies=true HTTP/1.1\r\nhost: {}\r\n\r\n", server.address());
    for _ in 0..4 {
        deaf.write_all(request.as_bytes()).unwrap();
    }
    let open = || std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count();
    thread::sleep(Duration::from_millis(300));
    let before = open();
    eventually("the connection is cut", || open() < before);
    server.get("/healthz").expect(200);
}

#[test]
fn more_connections_than_allowed_wait_for_their_turn() {
    let server = Server::start_with(&["--http-connections", "2", "--http-header-time", "1s"]);
    let _held: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    thread::sleep(Duration::from_millis(100));
    server.get("/healthz").expect(200);
}

#[test]
fn answers_and_requests_may_be_packed() {
    let server = Server::start();
    let tasks: Vec<_> = (0..100).map(|id| json!({ "topic": "z", "id": id.to_string(), "delay": "1h" })).collect();
    server.post("/v1/tasks/batch", &json!({ "tasks": tasks })).expect(200);
    for packing in ["gzip", "zstd"] {
        let answer = raw(&server, &format!("GET /v1/tasks HTTP/1.1\r\nhost: x\r\naccept-encoding: {packing}\r\n\r\n"))
            .expect(200);
        assert_eq!(answer.header("content-encoding"), Some(packing));
        assert!(answer.body.len() < 5_000, "{}", answer.body.len());
    }
    let packed = zstd::encode_all(&br#"{"topic":"z","id":"packed","delay":"1h"}"#[..], 1).unwrap();
    let mut connection = server.connect();
    let head = format!(
        "POST /v1/tasks HTTP/1.1\r\nhost: x\r\n{JSON}content-encoding: zstd\r\ncontent-length: {}\r\n\r\n",
        packed.len()
    );
    connection.send_raw(&[head.as_bytes(), &packed].concat());
    assert_eq!(connection.receive().expect(201).json()["id"], "packed");
    let bomb = zstd::encode_all(&vec![b' '; 64 << 20][..], 1).unwrap();
    let head = format!(
        "POST /v1/tasks HTTP/1.1\r\nhost: x\r\n{JSON}content-encoding: zstd\r\ncontent-length: {}\r\n\r\n",
        bomb.len()
    );
    connection.send_raw(&[head.as_bytes(), &bomb].concat());
    assert_eq!(code(&connection.receive().expect(413)), "request-too-large");
}
