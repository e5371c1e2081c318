//! Slow, broken and greedy clients, against the real binary: each is told what is wrong, and hurts nobody else.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::stage::{Answer, PATIENCE, Server, eventually};

fn raw(server: &Server, request: &str) -> Answer {
    let mut connection = server.connect();
    connection.send_raw(request.as_bytes());
    connection.receive()
}

fn post(server: &Server, headers: &str, body: &str) -> Answer {
    let length = body.len();
    raw(
        server,
        &format!("POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {length}\r\n\r\n{body}"),
    )
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
    let refused = post(&server, JSON, &deep).expect(422);
    assert!(refused.text().contains("nested deeper"), "{}", refused.text());
    let bytes = b"POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 14\r\n\r\n{\"topic\":\"\xff\xfe\"}";
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
    let head = format!("POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\n{JSON}transfer-encoding: chunked\r\n\r\n");
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
    assert_eq!(raw(&server, &format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{many}\r\n")).status, 431);
    let long = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(100_000));
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

/// The status of a request without a body, as a page or a broken client could send it.
fn status(server: &Server, line: &str, headers: &[&str]) -> u16 {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    raw(server, &format!("{line}\r\n{headers}content-length: 0\r\n\r\n")).status
}

#[test]
fn a_name_that_resolves_here_is_not_this_server() {
    let server = Server::start();
    server.post("/v1/tasks", &json!({ "topic": "t", "id": "1", "delay": "1h" })).expect(201);
    let address = server.address().to_owned();
    let (_, port) = address.rsplit_once(':').unwrap();
    for name in ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io"] {
        let (host, origin) = (format!("host: {name}:{port}"), format!("origin: http://{name}:{port}"));
        // A page under such a name is of the same origin as what it asks, and may send what it likes.
        let page = [host.as_str(), origin.as_str(), "sec-fetch-site: same-origin"];
        for line in [
            "GET /v1/tasks HTTP/1.1",
            "GET /metrics HTTP/1.1",
            "GET / HTTP/1.1",
            "GET /v1/openapi.json HTTP/1.1",
            "POST /v1/topics/t/pause HTTP/1.1",
            "DELETE /v1/topics/t?force=true HTTP/1.1",
            "PUT /v1/topics/t HTTP/1.1",
            "OPTIONS /v1/topics/t HTTP/1.1",
            "GET /nowhere HTTP/1.1",
            "GET /v1/tasks HTTP/1.0",
        ] {
            assert_eq!(status(&server, line, &page), 421, "{name}: {line}");
        }
        let here = format!("host: {address}");
        assert_eq!(status(&server, &format!("GET http://{name}/v1/tasks HTTP/1.1"), &[&here]), 421);
    }
    let refused = raw(&server, "GET /v1/tasks HTTP/1.1\r\nhost: evil.example\r\n\r\n").expect(421);
    assert_eq!(code(&refused), "misdirected-request");
    assert!(refused.json()["detail"].as_str().unwrap().contains("http.hosts"), "{}", refused.text());
    for host in [&address, "localhost", "LOCALHOST:1", "a.localhost", "[::1]:7400", "127.0.0.1", "localhost."] {
        assert_eq!(status(&server, "GET /v1/tasks/t/1 HTTP/1.1", &[&format!("host: {host}")]), 200, "{host}");
    }
}

#[test]
fn names_that_the_operator_gives_are_this_server() {
    let server = Server::start_with(&["--http-hosts", "punctual.example,*.cluster.local"]);
    for host in ["punctual.example", "Punctual.Example:80", "a.b.cluster.local"] {
        assert_eq!(status(&server, "GET /readyz HTTP/1.1", &[&format!("host: {host}")]), 200, "{host}");
    }
    assert_eq!(status(&server, "GET /readyz HTTP/1.1", &["host: cluster.local"]), 421);
}

#[test]
fn which_server_is_meant_is_said_once() {
    let server = Server::start();
    let get = "GET /healthz HTTP/1.1";
    assert_eq!(status(&server, get, &[]), 400);
    assert_eq!(status(&server, get, &["host: localhost", "host: localhost"]), 400);
    assert_eq!(status(&server, get, &["host: localhost", "host: evil.example"]), 400);
    assert_eq!(status(&server, get, &["host: evil@localhost"]), 400);
    assert_eq!(status(&server, get, &["host:"]), 400);
    assert_eq!(status(&server, "GET /healthz HTTP/1.0", &[]), 200);
    assert_eq!(status(&server, get, &["host: localhost"]), 200);
}

#[test]
fn pages_of_another_origin_are_refused() {
    let server = Server::start();
    server.post("/v1/tasks", &json!({ "topic": "t", "id": "1", "delay": "1h" })).expect(201);
    let host = format!("host: {}", server.address());
    let own = format!("origin: http://{}", server.address());
    // What a page may send without asking first has no body, or one of plain text; with a preflight it has any.
    for line in [
        "POST /v1/topics/t/pause HTTP/1.1",
        "POST /v1/queues/t/pause HTTP/1.1",
        "POST /v1/tasks/t/1/purge HTTP/1.1",
        "DELETE /v1/tasks/t/1 HTTP/1.1",
        "GET /v1/tasks HTTP/1.1",
        "GET /v1/events HTTP/1.1",
        "GET /healthz HTTP/1.1",
    ] {
        for page in [
            "origin: https://evil.example",
            "origin: null",
            "origin: http://127.0.0.1:1",
            "sec-fetch-site: cross-site",
            "sec-fetch-site: same-site",
        ] {
            assert_eq!(status(&server, line, &[&host, page]), 403, "{line} {page}");
        }
        assert_eq!(status(&server, line, &[&host, &own, &own]), 400, "{line}");
        assert_eq!(status(&server, line, &[&host, &own, "sec-fetch-site: cross-site"]), 403, "{line}");
    }
    let preflight = [&host, "origin: https://evil.example", "access-control-request-method: DELETE"];
    assert_eq!(status(&server, "OPTIONS /v1/tasks/t/1 HTTP/1.1", &preflight), 403);
    assert_eq!(server.get("/v1/topics/t").json()["settings"]["paused"], false, "nothing got through");
    server.get("/v1/tasks/t/1").expect(200);
    let page = [host.as_str(), &own, "sec-fetch-site: same-origin"];
    assert_eq!(status(&server, "POST /v1/topics/t/pause HTTP/1.1", &page), 200);
    assert_eq!(status(&server, "GET /v1/topics/t HTTP/1.1", &[&host, "sec-fetch-site: none"]), 200);
}

#[test]
fn a_name_that_leads_elsewhere_in_an_address_is_refused_everywhere() {
    let server = Server::start();
    server.send("PUT", "/v1/queues/q", &json!({ "retry": { "attempts": 1 } })).expect(200);
    for dots in [".", ".."] {
        for task in [
            json!({ "topic": dots }),
            json!({ "topic": "t", "id": dots }),
            json!({ "topic": "t", "key": dots }),
            json!({ "topic": "t", "routing_key": dots }),
        ] {
            assert_eq!(code(&server.post("/v1/tasks", &task).expect(422)), "invalid", "{task}");
        }
        server.post("/v1/reserve", &json!({ "queues": [dots] })).expect(422);
        server.post("/v1/reserve", &json!({ "queues": ["q"], "consumer": dots })).expect(422);
        server.send("PUT", "/v1/topics/t", &json!({ "feeds": [{ "queue": dots }] })).expect(422);
        server.send("PUT", "/v1/queues/q", &json!({ "dead_letter": dots })).expect(422);
        let keyed = "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\nidempotency-key: ";
        raw(&server, &format!("{keyed}{dots}\r\n{JSON}content-length: 13\r\n\r\n{{\"topic\":\"t\"}}")).expect(422);
        for escaped in [dots.to_owned(), dots.replace('.', "%2e"), dots.replace('.', "%2E")] {
            server.post(&format!("/v1/tasks/{escaped}/dead/purge"), &json!({})).expect(422);
            server.send("PUT", &format!("/v1/topics/{escaped}"), &json!({})).expect(422);
            server.send("PUT", &format!("/v1/queues/{escaped}"), &json!({})).expect(422);
            server.get(&format!("/v1/tasks/t/{escaped}")).expect(422);
            server.delete(&format!("/v1/keys/{escaped}")).expect(422);
        }
    }
    server.post("/v1/tasks", &json!({ "topic": "t", "id": "...", "delay": "1h" })).expect(201);
    server.get("/v1/tasks/t/...").expect(200);
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
    assert!(begun.elapsed() < Duration::from_secs(20));
    for stream in &mut slow {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // A refusal or nothing, and then the end.
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    let mut half = server.connect();
    half.send_raw(
        format!("POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: 1000\r\n\r\n{{").as_bytes(),
    );
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

/// A number of the server's that the system knows, such as how much memory it holds (`VmRSS`) and has ever held (`VmHWM`),
/// in KiB.
fn memory(server: &Server, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().split(' ').next().unwrap().parse().unwrap()
}

/// How much room answers have in these tests, in KiB.
const ROOM: u64 = 32 << 10;

/// A server on which tasks have texts that are six times as long when they are written.
fn with_control_characters(tasks: usize, delay: &str) -> Server {
    let server = Server::start_with(&["--node-answers", "32MiB"]);
    let text = "\u{1}".repeat(1_000_000);
    for id in 0..tasks {
        let task = json!({ "topic": "c", "id": id.to_string(), "delay": delay, "text": text });
        server.post("/v1/tasks", &task).expect(201);
    }
    server.post("/v1/tasks", &json!({ "topic": "c", "id": "short", "delay": "1h", "text": "x" })).expect(201);
    server
}

/// Some ask for this again and again, and read nothing.
fn ask_and_do_not_read(server: &Server, path: &str, clients: usize) -> Vec<TcpStream> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").repeat(4);
    let ask = |_| {
        let mut deaf = TcpStream::connect(server.address()).unwrap();
        deaf.write_all(request.as_bytes()).unwrap();
        deaf
    };
    (0..clients).map(ask).collect()
}

/// The server answers all that is short while long answers wait to be read, and holds no more than it may. Who asks while
/// others are just being answered is refused, so more come until as many wait as there is room for.
fn is_well(server: &Server, before: u64, long: &str) -> Vec<TcpStream> {
    let mut deaf = Vec::new();
    eventually("there is no room for long answers", || {
        deaf.extend(ask_and_do_not_read(server, long, 10));
        thread::sleep(Duration::from_millis(50));
        (0..3).all(|_| server.get(long).status == 503)
    });
    let begun = Instant::now();
    server.get("/healthz").expect(200);
    server.get("/v1/tasks/c/short").expect(200);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let (now, peak) = (memory(server, "VmRSS"), memory(server, "VmHWM"));
    assert!(peak < before + 2 * ROOM, "from {before} to {now} KiB, {peak} KiB at its peak");
    deaf
}

#[test]
fn single_tasks_that_nobody_reads_are_bounded_as_they_are_written() {
    let server = with_control_characters(1, "1h");
    let number = server.get("/v1/tasks/c/0").expect(200).json()["number"].clone();
    let before = memory(&server, "VmHWM");
    let deaf = ask_and_do_not_read(&server, "/v1/tasks/c/0", 100);
    let also_deaf = ask_and_do_not_read(&server, &format!("/v1/numbers/{number}"), 100);
    let still_deaf = is_well(&server, before, "/v1/tasks/c/0");
    drop((deaf, also_deaf, still_deaf));
    eventually("there is room again", || server.get("/v1/tasks/c/0").status == 200);
}

#[test]
fn lists_that_nobody_reads_are_bounded_as_they_are_written() {
    let server = with_control_characters(10, "1h");
    let list = "/v1/tasks?bodies=true";
    let page = server.get(list).expect(200);
    assert_eq!(page.json()["tasks"].as_array().unwrap().len(), 1, "two would be longer than an answer may be");
    let before = memory(&server, "VmHWM");
    let deaf = is_well(&server, before, list);
    drop(deaf);
    eventually("there is room again", || server.get(list).status == 200);
}

#[test]
fn a_reservation_ends_where_its_bodies_are_long_as_they_are_written() {
    let server = with_control_characters(3, "0s");
    let reserve = json!({ "queues": ["c"], "max": 3, "wait": "5s" });
    for _ in 0..3 {
        let taken = server.post("/v1/reserve", &reserve).expect(200).json();
        assert_eq!(taken["deliveries"].as_array().unwrap().len(), 1);
        assert_eq!(taken["deliveries"][0]["text"].as_str().unwrap().len(), 1_000_000);
    }
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
        let answer =
            raw(&server, &format!("GET /v1/tasks HTTP/1.1\r\nhost: localhost\r\naccept-encoding: {packing}\r\n\r\n"))
                .expect(200);
        assert_eq!(answer.header("content-encoding"), Some(packing));
        assert!(answer.body.len() < 5_000, "{}", answer.body.len());
    }
    let packed = zstd::encode_all(&br#"{"topic":"z","id":"packed","delay":"1h"}"#[..], 1).unwrap();
    let mut connection = server.connect();
    let head = format!(
        "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\n{JSON}content-encoding: zstd\r\ncontent-length: {}\r\n\r\n",
        packed.len()
    );
    connection.send_raw(&[head.as_bytes(), &packed].concat());
    assert_eq!(connection.receive().expect(201).json()["id"], "packed");
    let bomb = zstd::encode_all(&vec![b' '; 64 << 20][..], 1).unwrap();
    let head = format!(
        "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\n{JSON}content-encoding: zstd\r\ncontent-length: {}\r\n\r\n",
        bomb.len()
    );
    connection.send_raw(&[head.as_bytes(), &bomb].concat());
    assert_eq!(code(&connection.receive().expect(413)), "request-too-large");
}
