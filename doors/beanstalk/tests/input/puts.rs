//! Puts: their lines, their bodies, and what is read when they are wrong.

use bytes::Bytes;
use punctual_beanstalk::input::{Input, Next};

use crate::talk::{MAX_JOB, Talk, counted, said};

#[test]
fn a_put_comes_with_its_body() {
    assert_eq!(said("put 5 6 7 3\r\nabc\r\nstats\r\n"), ["put 5 6 7 'abc'", "stats"]);
    assert_eq!(said("put  4294967295  4294967295  4294967295  0\r\n\r\n"), ["put 4294967295 4294967295 4294967295 ''"]);
}

#[test]
fn a_body_may_hold_anything() {
    assert_eq!(said(b"put 0 0 1 7\r\n\r\n\0\xffab\n\r\n"), [r"put 0 0 1 '\r\n\x00\xffab\n'"]);
    assert_eq!(said("put 0 0 1 6\r\nquit\r\n\r\nstats\r\n"), [r"put 0 0 1 'quit\r\n'", "stats"]);
}

#[test]
fn a_time_to_run_of_nothing_is_a_second() {
    assert_eq!(said("put 0 0 0 0\r\n\r\n"), ["put 0 0 1 ''"]);
}

#[test]
fn a_body_waits_until_its_end_of_a_line_is_there() {
    let mut talk = Talk::new(MAX_JOB);
    talk.hear(b"put 0 0 1 3\r\nabc\r");
    assert!(talk.said.is_empty());
    talk.hear(b"\n");
    assert_eq!(talk.said, ["put 0 0 1 'abc'"]);
}

#[test]
fn without_its_end_of_a_line_what_follows_is_the_next_command() {
    assert_eq!(said("put 0 0 1 3\r\nabcdef\r\nstats\r\n"), ["EXPECTED_CRLF", "UNKNOWN_COMMAND", "stats"]);
    assert_eq!(
        said("put 0 0 1 3\r\nabc\r\r\nstats\r\n"),
        ["EXPECTED_CRLF", "UNKNOWN_COMMAND"],
        "it has the LF before it"
    );
    assert_eq!(said("put 0 0 1 3\r\nabc\nxstats\r\n"), ["EXPECTED_CRLF", "stats"]);
}

#[test]
fn the_largest_body_is_taken_and_one_byte_more_is_not() {
    let body = "x".repeat(100);
    assert_eq!(
        said(format!("put 0 0 1 100\r\n{body}\r\nstats\r\n")),
        [format!("put 0 0 1 '{body}'"), "stats".to_owned()]
    );
    assert_eq!(said(format!("put 0 0 1 101\r\nx{body}\r\nstats\r\n")), ["JOB_TOO_BIG", "stats"]);
}

#[test]
fn a_body_that_is_too_big_is_swallowed_whatever_its_last_bytes_are() {
    let body = "x".repeat(103);
    assert_eq!(said(format!("put 0 0 1 101\r\n{body}stats\r\n")), ["JOB_TOO_BIG", "stats"]);
    assert!(said(format!("put 0 0 1 101\r\n{}", "x".repeat(102))).is_empty(), "and answered when all of it came");
}

#[test]
fn bad_numbers_leave_the_body_to_be_read_as_commands() {
    let lines = ["put 0 0 1", "put 0 0 1 ", "put 0 0 x 3", "put -1 0 1 3", "put 0 +0 1 3", "put 0 0 4294967296 3"];
    for line in lines.into_iter().chain(["put 0 0 1 4294967296", "put  ", "put ", "put 0,0 1 3", "put\t0 0 1 3"]) {
        let word = if line.starts_with("put ") { "BAD_FORMAT" } else { "UNKNOWN_COMMAND" };
        assert_eq!(said(format!("{line}\r\nabc\r\nstats\r\n")), [word, "UNKNOWN_COMMAND", "stats"], "{line:?}");
        assert!(counted(format!("{line}\r\n")).is_empty(), "{line:?}");
    }
}

#[test]
fn something_behind_the_last_number_is_bad_and_counted() {
    for line in ["put 0 0 1 3 ", "put 0 0 1 3x", "put 0 0 1 3 4", "put 0 0 1 3\t"] {
        assert_eq!(said(format!("{line}\r\nabc\r\n")), ["BAD_FORMAT", "UNKNOWN_COMMAND"], "{line:?}");
        assert_eq!(counted(format!("{line}\r\n")), [("put".to_owned(), 1)], "{line:?}");
    }
}

#[test]
fn too_big_is_noticed_before_something_behind_the_last_number() {
    let body = "x".repeat(101);
    assert_eq!(said(format!("put 0 0 1 101 and more\r\n{body}\r\nstats\r\n")), ["JOB_TOO_BIG", "stats"]);
}

#[test]
fn a_put_is_counted_with_its_line() {
    let put = [("put".to_owned(), 1)];
    assert_eq!(counted("put 0 0 1 3\r\n"), put, "the body is not there yet");
    assert_eq!(counted("put 0 0 1 3\r\nabcdef\r\n"), put);
    assert_eq!(counted("put 0 0 1 101\r\n"), put);
}

#[test]
fn a_connection_produces_from_its_first_good_line_on() {
    let has_produced = |bytes: &str| {
        let mut talk = Talk::new(MAX_JOB);
        talk.hear(bytes.as_bytes());
        talk.input.has_produced()
    };
    assert!(has_produced("put 0 0 1 3\r\n"));
    assert!(has_produced("put 0 0 1 3\r\nabcdef\r\n"));
    for line in ["", "put 0 0 1\r\n", "put 0 0 1 3 \r\n", "put 0 0 1 101\r\n", "stats\r\n"] {
        assert!(!has_produced(line), "{line:?}");
    }
}

#[test]
fn a_body_is_a_slice_of_what_was_read() {
    let mut input = Input::new(MAX_JOB);
    let buffer = input.buffer();
    buffer.extend_from_slice(b"put 0 0 1 3\r\nabc\r\nput 0 0 1 3\r\ndef\r\n");
    let start = buffer.as_ptr();
    let mut bodies: Vec<Bytes> = Vec::new();
    while let Next::Put(put) = input.next() {
        bodies.push(put.body);
    }
    assert_eq!(bodies, ["abc", "def"]);
    let places: Vec<usize> = bodies.iter().map(|body| body.as_ptr() as usize - start as usize).collect();
    assert_eq!(places, [13, 31]);
}
