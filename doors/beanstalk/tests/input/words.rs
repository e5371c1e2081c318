//! Words: which command a line is.

use crate::talk::{counted, line, said};

#[test]
fn commands_without_arguments_stand_alone() {
    let words = ["peek-ready", "peek-delayed", "peek-buried", "reserve", "stats", "list-tubes", "list-tube-used"];
    for word in words.into_iter().chain(["list-tubes-watched"]) {
        assert_eq!(line(word), word);
        for bad in [format!("{word} "), format!("{word}x"), format!("{word} 1"), format!("{word}\t")] {
            assert_eq!(line(&bad), "BAD_FORMAT", "{bad:?}");
        }
    }
}

#[test]
fn words_that_need_a_blank_are_unknown_without() {
    for word in ["put", "delete", "use", "kick", "touch", "watch", "peek", "bury", "release", "ignore", "kick-job"] {
        assert_eq!(line(word), "UNKNOWN_COMMAND", "{word}");
        assert_eq!(line(&format!("{word}1")), "UNKNOWN_COMMAND", "{word}");
        assert_eq!(line(&format!("{word}\t1")), "UNKNOWN_COMMAND", "{word}");
    }
    assert_eq!(line("list-tube"), "UNKNOWN_COMMAND");
}

#[test]
fn a_shorter_word_that_fits_makes_a_bad_command() {
    let lines = ["reserve-job", "reserve-with-timeout", "reservex", "stats-job", "stats-tube", "stats-x"];
    for bad in lines.into_iter().chain(["peek-readyx", "list-tubes-x", "reserve-jobs 1"]) {
        assert_eq!(line(bad), "BAD_FORMAT", "{bad}");
    }
}

#[test]
fn case_and_blanks_before_a_command_matter() {
    for unknown in ["STATS", "Stats", " stats", "\tstats", "\nstats", "PUT 0 0 1 1", "stat", "x"] {
        assert_eq!(line(unknown), "UNKNOWN_COMMAND", "{unknown:?}");
    }
}

#[test]
fn quit_ends_it_whatever_follows() {
    for quit in ["quit", "quitx", "quit 1 2"] {
        assert_eq!(said(format!("stats\r\n{quit}\r\nstats\r\n")), ["stats", "quit"]);
    }
}

#[test]
fn after_quit_nothing_else_comes() {
    let mut talk = crate::talk::Talk::new(1);
    assert!(!talk.hear(b"quit\r\nstats\r\n"));
    for _ in 0..3 {
        assert!(!talk.take(1), "it is over");
    }
    talk.read(b"stats\r\n");
    assert!(!talk.take(1), "and stays so");
}

#[test]
fn good_commands_are_counted_and_bad_ones_are_not() {
    let lines = "stats\r\nstats\r\nstatsx\r\ndelete 1\r\ndelete x\r\nnonsense\r\nkick-job 1\r\nreserve-job 1\r\n";
    let expected = [("delete", 1), ("kick-job", 1), ("reserve-job", 1), ("stats", 2)];
    assert_eq!(counted(lines), expected.map(|(name, count)| (name.to_owned(), count)));
}

#[test]
fn quit_and_skipped_lines_are_not_counted() {
    assert!(counted(format!("stats{}\r\nquit\r\n", "x".repeat(300))).is_empty());
}
