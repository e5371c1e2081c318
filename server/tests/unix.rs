//! Doors on unix sockets: the real server, the command line and plain clients.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use stage::{Server, punctual, run};

const SOCKETS: &[&str] = &["--listen", "127.0.0.1:0,unix:http", "--beanstalk-listen", "unix:beanstalk"];

/// What comes back for these bytes until the other end closes.
fn tell(socket: &Path, bytes: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(bytes.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn both_doors_listen_on_unix_sockets_and_leave_nothing_behind() {
    let mut server = Server::start_with(SOCKETS);
    let (http, beanstalk) = (server.directory().join("http"), server.directory().join("beanstalk"));
    server.wait_for(&format!("listening on unix:{} for http", http.display()));
    server.wait_for(&format!("listening on unix:{} for beanstalk", beanstalk.display()));
    assert_eq!((mode(&http), mode(&beanstalk)), (0o660, 0o660));

    let said = tell(&beanstalk, "use mails\r\nput 0 0 60 5\r\nhello\r\nquit\r\n");
    assert_eq!(said, "USING mails\r\nINSERTED 1\r\n");
    let answer = tell(&http, "GET /v1/numbers/1 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("\"mails\""), "{answer}");

    assert!(server.stop().success());
    assert!(!http.exists() && !beanstalk.exists());
}

#[test]
fn the_command_line_reaches_a_server_over_its_socket() {
    let server = Server::start_with(SOCKETS);
    let url = format!("unix:{}", server.directory().join("http").display());
    let scheduled = run(punctual().args(["--url", &url, "--json", "schedule", "mails", "hi", "--in", "1h"]));
    assert_eq!(scheduled.code, Some(0), "{scheduled:?}");
    let listed = run(punctual().env("PUNCTUAL_URL", &url).args(["list", "--topic", "mails"]));
    assert!(listed.stdout.contains("scheduled, in "), "{listed:?}");

    let nobody = format!("unix:{}", server.directory().join("nobody").display());
    let failed = run(punctual().args(["--url", &nobody, "list"]));
    assert!(failed.code != Some(0) && failed.stderr.contains(&format!("{nobody} cannot be reached")), "{failed:?}");
}

#[test]
fn a_socket_that_a_crash_left_is_replaced_and_one_in_use_is_not() {
    let mut server = Server::start_with(SOCKETS);
    let http = server.directory().join("http");
    server.kill();
    assert!(http.exists(), "nobody was there to remove it");
    server.start_again();
    assert!(tell(&http, "GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n").contains(" 200 "));

    let second = Server::prepare(&["--listen", &format!("unix:{}", http.display())], &[]);
    let refused = run(&mut second.command());
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let why = format!("cannot listen on unix:{}: another process is listening there: stop it", http.display());
    assert!(refused.stderr.contains(&why), "{refused:?}");
    assert!(tell(&http, "GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n").contains(" 200 "));
}

#[test]
fn the_mode_of_a_socket_is_a_setting() {
    let server = Server::start_with(&["--listen", "127.0.0.1:0,unix:http", "--unix-mode", "0600"]);
    assert_eq!(mode(&server.directory().join("http")), 0o600);
    let refused = run(&mut Server::prepare(&["--unix-mode", "rw"], &[]).command());
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("write it as for chmod, in quotes: \"0660\""), "{refused:?}");
}
