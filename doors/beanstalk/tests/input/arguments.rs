//! Arguments: the numbers and names of each command but put.

use crate::talk::{counted, line};

/// Numbers of 64 bits with what becomes of them; none is bad.
const U64: [(&str, Option<&str>); 15] = [
    ("0", Some("0")),
    ("4294967296", Some("4294967296")),
    ("18446744073709551615", Some("18446744073709551615")),
    (" 1", Some("1")),
    ("0001", Some("1")),
    ("18446744073709551616", None),
    ("", None),
    (" ", None),
    ("+1", None),
    ("-1", None),
    ("1a", None),
    ("0x1", None),
    ("1 ", None),
    ("\t1", None),
    ("1 1", None),
];

/// Numbers of 32 bits that are not the last of their line.
const U32: [(&str, Option<&str>); 10] = [
    ("0", Some("0")),
    ("4294967295", Some("4294967295")),
    ("  1", Some("1")),
    ("4294967296", None),
    ("18446744073709551616", None),
    ("+1", None),
    ("-1", None),
    ("1a", None),
    ("1,", None),
    ("\t1", None),
];

#[test]
fn ids_have_64_bits_and_nothing_behind_them() {
    for word in ["peek", "reserve-job", "delete", "kick-job", "touch", "stats-job"] {
        for (number, becomes) in U64 {
            let expected = becomes.map_or("BAD_FORMAT".to_owned(), |id| format!("{word} {id}"));
            assert_eq!(line(&format!("{word} {number}")), expected, "{word} {number:?}");
        }
    }
}

#[test]
fn release_takes_an_id_a_priority_and_a_delay() {
    for (number, becomes) in U32 {
        let pri = becomes.map_or("BAD_FORMAT".to_owned(), |pri| format!("release 9 {pri} 8"));
        assert_eq!(line(&format!("release 9 {number} 8")), pri, "{number:?}");
        let delay = becomes.map_or("BAD_FORMAT".to_owned(), |delay| format!("release 9 8 {delay}"));
        assert_eq!(line(&format!("release 9 8 {number}")), delay, "{number:?}");
    }
    assert_eq!(line("release 18446744073709551615 1 2"), "release 18446744073709551615 1 2");
    for bad in ["release ", "release 1", "release 1 2", "release 1 2 ", "release 1 2 3 ", "release 1 2 3 4"] {
        assert_eq!(line(bad), "BAD_FORMAT", "{bad:?}");
    }
}

#[test]
fn bury_takes_an_id_and_a_priority() {
    for (number, becomes) in U32 {
        let expected = becomes.map_or("BAD_FORMAT".to_owned(), |pri| format!("bury 9 {pri}"));
        assert_eq!(line(&format!("bury 9 {number}")), expected, "{number:?}");
    }
    for bad in ["bury ", "bury 1", "bury 1 ", "bury 1 2 ", "bury 1 2 3", "bury 18446744073709551616 1"] {
        assert_eq!(line(bad), "BAD_FORMAT", "{bad:?}");
    }
}

#[test]
fn kick_takes_what_strtoul_takes() {
    let numbers = [("5", "5"), ("5x", "5"), ("5 6", "5"), (" \t5", "5"), ("+5", "5"), ("-1", "4294967295")];
    for (number, count) in numbers.into_iter().chain([("4294967296", "0"), ("0x5", "0"), ("5 ", "5")]) {
        assert_eq!(line(&format!("kick {number}")), format!("kick {count}"), "{number:?}");
    }
    for bad in ["", " ", "x", "-", "18446744073709551616"] {
        assert_eq!(line(&format!("kick {bad}")), "BAD_FORMAT", "{bad:?}");
    }
}

#[test]
fn reserve_with_timeout_takes_what_strtol_takes() {
    let numbers =
        [("0", "0"), ("7", "7"), ("", "0"), ("x", "0"), ("0x7", "0"), ("7s", "7"), ("2147483647", "2147483647")];
    for (number, timeout) in numbers {
        let expected = format!("reserve-with-timeout {timeout}");
        assert_eq!(line(&format!("reserve-with-timeout {number}")), expected, "{number:?}");
    }
    for bad in ["9223372036854775808", "-9223372036854775809"] {
        assert_eq!(line(&format!("reserve-with-timeout {bad}")), "BAD_FORMAT", "{bad:?}");
    }
}

#[test]
fn a_timeout_below_nothing_is_for_ever() {
    for number in ["-1", "2147483648", "4294967295"] {
        assert_eq!(line(&format!("reserve-with-timeout {number}")), "reserve-with-timeout for ever", "{number}");
    }
}

#[test]
fn names_are_the_whole_rest_of_the_line() {
    let longest = "a".repeat(200);
    let every = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()";
    for word in ["use", "watch", "ignore", "stats-tube"] {
        for name in ["a", "0", "a-", every, &longest] {
            assert_eq!(line(&format!("{word} {name}")), format!("{word} {name}"));
        }
        for bad in ["", " ", " a", "a ", "a b", "-a", "-", "a,", "a\t", "\u{e4}", "a\n", &format!("{longest}a")] {
            assert_eq!(line(&format!("{word} {bad}")), "BAD_FORMAT", "{word} {bad:?}");
        }
    }
}

#[test]
fn pause_tube_takes_a_name_and_a_duration() {
    assert_eq!(line("pause-tube a 1"), "pause-tube a 1");
    assert_eq!(line("pause-tube   a   4294967295"), "pause-tube a 4294967295");
    let bad_ones =
        ["", " ", " a", " a ", " a b", " a 1 ", " a -1", " a 4294967296", " a,1", " a1", " a\t1", " , 1", "\ta 1"];
    for bad in bad_ones {
        assert_eq!(line(&format!("pause-tube{bad}")), "BAD_FORMAT", "{bad:?}");
    }
}

#[test]
fn pause_tube_needs_no_blank_before_the_name() {
    assert_eq!(line("pause-tubefoo 1"), "pause-tube foo 1");
}

#[test]
fn pause_tube_counts_before_it_looks_at_the_name() {
    let too_long = "a".repeat(201);
    assert_eq!(line("pause-tube -a 1"), "BAD_FORMAT");
    assert_eq!(line(&format!("pause-tube {too_long} 1")), "BAD_FORMAT");
    let lines = format!("pause-tube -a 1\r\npause-tube {too_long} 1\r\npause-tube a x\r\npause-tube -a x\r\n");
    assert_eq!(counted(lines), [("pause-tube".to_owned(), 2)]);
}
