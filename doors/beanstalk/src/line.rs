//! Where the line of a command ends.
//!
//! A line is looked for in a window of [`WINDOW`] bytes that begins at the first unread byte. What is found does
//! not depend on how the bytes were cut into reads: a window that is not full is only ever waited for.
//!
//! ```text
//! delete 5 \r \n put 0 0 ...
//! └─ text ─┘     └─ the next window begins here
//! ```

use memchr::memchr;

/// How long a line may be, its CR and LF included.
pub const WINDOW: usize = 224;

/// How long the end of a line is.
pub const END: usize = 2;

/// What stands at the beginning of the unread bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A line with this many bytes of text; [`END`] more bytes belong to it.
    Line(usize),
    /// A whole window without the end of a line: its bytes are thrown away, and so is what follows them up to
    /// the next end of a line.
    TooLong,
    /// A part of a line: more bytes are needed.
    More,
}

/// Looks for the end of a line.
///
/// Only the first CR of a window counts: if something else than LF follows it, no later one ends the line, and
/// the window is waited for and thrown away. The window's last byte is not looked at, since what follows it is
/// not in the window; so an end of a line that two windows would share is none.
pub fn find(unread: &[u8]) -> Found {
    let window = &unread[..unread.len().min(WINDOW)];
    let looked_at = &window[..window.len().saturating_sub(1)];
    match memchr(b'\r', looked_at) {
        Some(cr) if window[cr + 1] == b'\n' => Found::Line(cr),
        _ if window.len() == WINDOW => Found::TooLong,
        _ => Found::More,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(text: usize, end: &str) -> Vec<u8> {
        let mut line = vec![b'x'; text];
        line.extend_from_slice(end.as_bytes());
        line
    }

    #[test]
    fn a_line_ends_at_cr_lf_and_not_behind_it() {
        assert_eq!(find(b"stats\r\nstats\r\n"), Found::Line(5));
        assert_eq!(find(b"\r\n"), Found::Line(0));
    }

    #[test]
    fn part_of_a_line_waits() {
        for part in [&b""[..], b"s", b"stats", b"stats\r", b"\r"] {
            assert_eq!(find(part), Found::More);
        }
    }

    #[test]
    fn a_lone_lf_ends_nothing() {
        assert_eq!(find(b"stats\nstats\n"), Found::More);
        assert_eq!(find(b"a\nb\r\n"), Found::Line(3));
    }

    #[test]
    fn only_the_first_cr_of_a_window_counts() {
        assert_eq!(find(b"ab\rcd\r\n"), Found::More);
        assert_eq!(find(b"ab\r\r\n"), Found::More);
        let mut window = b"ab\rcd\r\n".to_vec();
        window.resize(WINDOW, b'x');
        assert_eq!(find(&window), Found::TooLong);
    }

    #[test]
    fn the_longest_line_has_222_bytes_of_text() {
        assert_eq!(find(&long(222, "\r\n")), Found::Line(222));
        assert_eq!(find(&long(222, "\r")), Found::More);
        assert_eq!(find(&long(223, "\r\n")), Found::TooLong);
        assert_eq!(find(&long(223, "")), Found::More);
        assert_eq!(find(&long(224, "")), Found::TooLong);
    }

    #[test]
    fn an_end_that_two_windows_share_is_none() {
        let bytes = long(223, "\r\nstats\r\n");
        assert_eq!(find(&bytes), Found::TooLong);
        assert_eq!(find(&bytes[WINDOW..]), Found::Line(6), "it begins with the LF that was torn off");
    }
}
