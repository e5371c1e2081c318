//! Lines: where they end, how long they may be, and what is skipped.

use crate::talk::{MAX_JOB, Talk, said};

#[test]
fn many_commands_come_of_one_read_in_their_order() {
    assert_eq!(said("use a\r\nwatch b\r\ndelete 7\r\nstats\r\n"), ["use a", "watch b", "delete 7", "stats"]);
}

#[test]
fn a_command_waits_for_the_end_of_its_line() {
    let mut talk = Talk::new(MAX_JOB);
    for byte in b"delete 7\r" {
        talk.hear(&[*byte]);
        assert!(talk.said.is_empty());
    }
    talk.hear(b"\n");
    assert_eq!(talk.said, ["delete 7"]);
}

#[test]
fn a_line_of_222_bytes_is_a_command() {
    let line = format!("delete {:0>215}\r\n", 7);
    assert_eq!(line.len(), 224);
    assert_eq!(said(line), ["delete 7"]);
}

#[test]
fn a_longer_line_is_skipped_and_the_next_command_works() {
    let line = format!("delete {:0>216}\r\nstats\r\n", 7);
    assert_eq!(said(line), ["BAD_FORMAT"], "its end was torn apart, so the next line is part of it");
    let line = format!("delete {:0>217}\r\nstats\r\n", 7);
    assert_eq!(said(line), ["BAD_FORMAT", "stats"]);
}

#[test]
fn however_long_a_line_is_it_has_one_answer() {
    for length in [300, 446, 448, 10_000, 100_000] {
        let line = format!("{}\r\nstats\r\n", "x".repeat(length));
        assert_eq!(said(line), ["BAD_FORMAT", "stats"], "{length}");
    }
}

#[test]
fn nothing_is_answered_before_the_skipped_line_ends() {
    assert!(said("x".repeat(1_000)).is_empty());
}

#[test]
fn a_skipped_line_is_not_looked_at() {
    let line = format!("{}quit\r\nstats\r\n", "x".repeat(224));
    assert_eq!(said(line), ["BAD_FORMAT", "stats"]);
}

#[test]
fn behind_a_lone_cr_no_line_ends_in_the_same_window() {
    assert!(said("ab\rcd\r\nstats\r\n").is_empty());
    let line = format!("ab\rcd\r\n{}\r\nstats\r\n", "x".repeat(217));
    assert_eq!(said(line), ["BAD_FORMAT", "stats"]);
}

#[test]
fn a_lone_lf_is_part_of_the_line() {
    assert_eq!(said("stats\nstats\n\r\n"), ["BAD_FORMAT"]);
}

#[test]
fn a_nul_is_bad_whatever_the_command() {
    for line in ["\0", "stats\0", "nonsense\0", "delete 1\0", "put 1 1 1 1\0", "put 1 1 1 999999\0", "quit\0"] {
        assert_eq!(said(format!("{line}\r\nstats\r\n")), ["BAD_FORMAT", "stats"], "{line:?}");
    }
}

#[test]
fn an_empty_line_is_unknown() {
    assert_eq!(said("\r\n\r\n"), ["UNKNOWN_COMMAND", "UNKNOWN_COMMAND"]);
}
