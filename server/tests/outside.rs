//! What the server exchanges with the outside: certificates, collectors of traces, the archive.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value, json};
use stage::{PATIENCE, Server, eventually, punctual, run};

/// Makes a certificate for this machine that vouches for itself, with its key.
fn make_certificate(directory: &Path) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    fs::write(directory.join("cert.pem"), made.cert.pem()).unwrap();
    fs::write(directory.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
}

/// Whether a client that trusts this certificate gets through.
fn is_trusted(server: &Server, certificate: &Path) -> bool {
    let url = format!("https://{}", server.address());
    let asked = run(punctual().args(["--url", &url, "--ca"]).arg(certificate).arg("health"));
    asked.code == Some(0)
}

#[test]
fn with_a_certificate_it_speaks_tls_and_a_renewed_one_counts_after_a_signal() {
    let mut server = Server::prepare(&["--tls-certificate", "cert.pem", "--tls-key", "key.pem"], &[]);
    let directory = server.directory().to_owned();
    make_certificate(&directory);
    server.start_again();
    server.says("listening on https://");
    let first = directory.join("first.pem");
    fs::copy(directory.join("cert.pem"), &first).unwrap();
    assert!(is_trusted(&server, &first), "{}", server.output());

    make_certificate(&directory);
    server.signal("HUP");
    server.wait_for("certificate and key reloaded");
    assert!(is_trusted(&server, &directory.join("cert.pem")));
    assert!(!is_trusted(&server, &first));

    // What is no good does not take the place of what is.
    fs::write(directory.join("cert.pem.good"), fs::read(directory.join("cert.pem")).unwrap()).unwrap();
    fs::write(directory.join("cert.pem"), "not a certificate").unwrap();
    server.signal("HUP");
    server.wait_for("cannot reload the certificate; the previous one stays in use");
    assert!(is_trusted(&server, &directory.join("cert.pem.good")));
    assert!(server.stop().success());
}

#[test]
fn a_certificate_that_cannot_be_used_is_refused_with_its_file() {
    let server = Server::prepare(&["--tls-certificate", "cert.pem", "--tls-key", "key.pem"], &[]);
    let directory = server.directory().to_owned();
    let refused = |told: &str| {
        let ended = run(&mut server.command());
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(told), "{told}: {ended:?}");
    };
    refused("`tls.certificate`: cert.pem cannot be read");
    make_certificate(&directory);
    let key = fs::read_to_string(directory.join("key.pem")).unwrap();
    fs::write(directory.join("key.pem"), "nothing").unwrap();
    refused("`tls.key`: key.pem has no section that begins with -----BEGIN PRIVATE KEY-----");
    make_certificate(&directory);
    fs::write(directory.join("key.pem"), key).unwrap();
    refused("`tls.key`: key.pem does not match the certificate in cert.pem");
}

/// Takes what a server sends by HTTP: paths and bodies.
fn collector() -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, sender) = (BufReader::new(stream.unwrap()), sender.clone());
            thread::spawn(move || {
                let mut line = String::new();
                while stream.read_line(&mut line).unwrap_or(0) > 0 {
                    let path = line.split(' ').nth(1).unwrap().to_owned();
                    let mut length = 0;
                    loop {
                        line.clear();
                        stream.read_line(&mut line).unwrap();
                        let Some((name, value)) = line.split_once(':') else { break };
                        if name.eq_ignore_ascii_case("content-length") {
                            length = value.trim().parse().unwrap();
                        }
                    }
                    let mut body = vec![0; length];
                    stream.read_exact(&mut body).unwrap();
                    stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                    _ = sender.send((path, body));
                    line.clear();
                }
            });
        }
    });
    (url, receiver)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Spans by their names, as soon as all of these have come.
fn named<const N: usize>(sent: &Receiver<(String, Vec<u8>)>, names: [&str; N]) -> [Span; N] {
    let mut spans: Vec<Span> = Vec::new();
    while !names.iter().all(|name| spans.iter().any(|span| span.name == *name)) {
        let (_, body) = sent.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{names:?} are to come: {spans:?}"));
        let request = ExportTraceServiceRequest::decode(&*body).unwrap();
        spans.extend(request.resource_spans.into_iter().flat_map(|one| one.scope_spans).flat_map(|one| one.spans));
    }
    names.map(|name| spans.iter().find(|span| span.name == name).unwrap().clone())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn requests_become_spans_at_the_collector() {
    let (url, spans) = collector();
    let server = Server::start_with(&["--trace-endpoint", &url]);
    server.post("/v1/tasks", &json!({ "topic": "orders", "text": "x" })).expect(201);
    let (path, body) = spans.recv_timeout(PATIENCE).unwrap();
    assert_eq!(path, "/v1/traces");
    assert!(contains(&body, b"POST /v1/tasks") && contains(&body, b"service.name"));
}

#[test]
fn a_task_can_be_followed_from_its_request_to_its_acknowledgement() {
    let (url, sent) = collector();
    let mut server = Server::start_with(&["--trace-endpoint", &url]);
    server.post("/v1/tasks", &json!({ "topic": "orders", "text": "x", "headers": { "mine": "1" } })).expect(201);
    let reserved = server.post("/v1/reserve", &json!({ "queues": ["orders"], "wait": "10s" })).expect(200).json();
    let delivery = &reserved["deliveries"][0];
    server.post("/v1/leases", &json!({ "actions": [{ "do": "acknowledge", "lease": delivery["lease"] }] })).expect(200);
    // Nothing is lost that has happened before.
    assert!(server.stop().success());
    let [request, commit, fire, lease, acknowledge, reserve] =
        named(&sent, ["POST /v1/tasks", "commit", "fire", "lease", "acknowledge", "POST /v1/reserve"]);
    assert!(request.parent_span_id.is_empty(), "{request:?}");
    for (span, parent) in [(&commit, &request), (&fire, &request), (&lease, &request), (&acknowledge, &lease)] {
        assert_eq!((&span.trace_id, &span.parent_span_id), (&request.trace_id, &parent.span_id), "{span:?}");
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
    }
    assert_eq!(lease.links[0].span_id, reserve.span_id);
    let carried = format!("00-{}-{}-01", hex(&lease.trace_id), hex(&lease.span_id));
    assert_eq!(delivery["headers"], json!({ "mine": "1", "traceparent": carried }));
}

#[test]
fn a_job_carries_its_trace_to_other_doors() {
    let (url, sent) = collector();
    let mut server = Server::start_with(&["--trace-endpoint", &url, "--beanstalk-listen", "127.0.0.1:0"]);
    let told = server.wait_for("listening on beanstalk://");
    let mut client = TcpStream::connect(told.strip_prefix("listening on beanstalk://").unwrap()).unwrap();
    client.write_all(b"put 0 0 60 1\r\nx\r\n").unwrap();
    let reserved = server.post("/v1/reserve", &json!({ "queues": ["default"], "wait": "10s" })).expect(200).json();
    let [put, lease] = named(&sent, ["beanstalk put", "lease"]);
    assert_eq!((&lease.trace_id, &lease.parent_span_id), (&put.trace_id, &put.span_id));
    let carried = format!("00-{}-{}-01", hex(&lease.trace_id), hex(&lease.span_id));
    assert_eq!(reserved["deliveries"][0]["headers"], json!({ "traceparent": carried }));
}

#[test]
fn without_a_collector_no_task_grows_by_a_trace() {
    let server = Server::start();
    server.post("/v1/tasks", &json!({ "topic": "orders", "text": "x" })).expect(201);
    let reserved = server.post("/v1/reserve", &json!({ "queues": ["orders"], "wait": "10s" })).expect(200).json();
    assert_eq!(reserved["deliveries"][0].get("headers"), None, "{reserved}");
}

#[test]
fn a_collector_that_is_away_hurts_nobody() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut server = Server::start_with(&["--trace-endpoint", &format!("http://{nobody}")]);
    for _ in 0..50 {
        server.post("/v1/tasks", &json!({ "topic": "orders", "text": "x" })).expect(201);
    }
    server.wait_for("spans were lost on the way to the collector");
    assert!(server.stop().success());
}

#[test]
fn finished_tasks_go_to_the_archive_and_can_be_read_there() {
    let mut server = Server::start_with(&["--archive-directory", "archive", "--archive-every", "50ms"]);
    server.send("PUT", "/v1/topics/orders", &json!({ "history": "100ms" })).expect(200);
    for id in ["1", "2", "3"] {
        server
            .post("/v1/tasks", &json!({ "topic": "orders", "id": id, "key": "user-7", "body": { "order": id } }))
            .expect(201);
        let reserved = server.post("/v1/reserve", &json!({ "queues": ["orders"], "wait": "5s" })).expect(200).json();
        let lease = &reserved["deliveries"][0]["lease"];
        server.post("/v1/leases", &json!({ "actions": [{ "do": "acknowledge", "lease": lease }] })).expect(200);
    }
    let archive = server.directory().join("archive");
    let read = |arguments: &[&str]| -> Vec<Value> {
        let read = run(punctual().args(["history", "--json", "--bodies", "--archive"]).arg(&archive).args(arguments));
        assert_eq!(read.code, Some(0), "{read:?}");
        read.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    eventually("all are archived", || archive.exists() && read(&[]).len() == 3);
    assert_eq!(read(&["--id", "2"])[0]["body"], json!({ "order": "2" }));
    eventually("the history is empty", || server.get("/v1/history").json()["tasks"] == json!([]));
    let metrics = server.get("/metrics").text();
    assert!(metrics.contains("punctual_archived_tasks_total 3"), "{metrics}");

    // What a kill leaves behind is cut off or read again; nothing is there twice.
    server.crash();
    assert_eq!(read(&[]).len(), 3);
}

/// The metrics in a format, and what it is.
fn metrics(server: &Server, accept: &str) -> (String, String) {
    let mut connection = server.connect();
    connection.send_raw(format!("GET /metrics HTTP/1.1\r\nhost: localhost\r\naccept: {accept}\r\n\r\n").as_bytes());
    let answer = connection.receive().expect(200);
    (answer.text(), answer.header("content-type").unwrap().to_owned())
}

#[test]
fn metrics_follow_accept_and_pass_promtool() {
    let server = Server::start_with(&["--beanstalk-listen", "127.0.0.1:0", "--archive-directory", "archive"]);
    for (id, action) in [("1", "acknowledge"), ("2", "reject")] {
        server.post("/v1/tasks", &json!({ "topic": "or\"de\\rs", "id": id })).expect(201);
        let queues = json!({ "queues": ["or\"de\\rs"], "wait": "10s" });
        let lease = server.post("/v1/reserve", &queues).expect(200).json()["deliveries"][0]["lease"].clone();
        server.post("/v1/leases", &json!({ "actions": [{ "do": action, "lease": lease }] })).expect(200);
    }
    let (text, media) = metrics(&server, "*/*");
    assert_eq!(media, "text/plain; version=0.0.4; charset=utf-8");
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("promtool does not start ({error}): apt-get install prometheus"));
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let checked = promtool.wait_with_output().unwrap();
    let told = String::from_utf8([checked.stdout, checked.stderr].concat()).unwrap();
    assert!(checked.status.success() && told.is_empty(), "{told}\n{text}");

    let (open, media) =
        metrics(&server, "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3");
    assert_eq!(media, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert!(open.ends_with("# EOF\n") && !text.contains("# EOF"));
    // Both tell of the same, whatever changed between the two.
    let names = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
    };
    assert_eq!(names(&text), names(&open));
    assert!(
        text.contains("# TYPE punctual_happenings_total counter")
            && open.contains("# TYPE punctual_happenings counter")
    );
}
