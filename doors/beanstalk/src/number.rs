//! The numbers and names of a command's line, each read as beanstalkd reads it.
//!
//! There are three ways to read a number. [`Reader`] is the strict one, for nearly everything; [`count`] and
//! [`timeout`] follow C's `strtoul` and `strtol`, which take signs, further kinds of blanks and anything behind the
//! digits. `None` is always BAD_FORMAT.

use std::time::Duration;

/// How long the name of a tube may be.
pub const LONGEST_NAME: usize = 200;

/// Reads the arguments of a command one after the other.
///
/// Each begins where the one before stopped, and blanks (0x20 alone) before it are skipped. So `1,2` is one number
/// and something that is none.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader of what follows a command's word.
    pub fn new(arguments: &'a [u8]) -> Reader<'a> {
        Reader { rest: arguments }
    }

    /// A number of at most 64 bits.
    pub fn u64(&mut self) -> Option<u64> {
        self.skip_blanks();
        let (length, value) = digits(self.rest);
        self.rest = &self.rest[length..];
        value.filter(|_| length > 0)
    }

    /// A number of at most 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        self.u64().and_then(|number| u32::try_from(number).ok())
    }

    /// A number of seconds, of at most 32 bits.
    pub fn seconds(&mut self) -> Option<Duration> {
        self.u32().map(|seconds| Duration::from_secs(seconds.into()))
    }

    /// The longest run of bytes that a name may have. Whether it is a name says [`tube`].
    pub fn run(&mut self) -> Option<&'a [u8]> {
        self.skip_blanks();
        let length = self.rest.iter().take_while(|byte| is_of_a_name(**byte)).count();
        let (run, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(run).filter(|run| !run.is_empty())
    }

    /// Whether nothing is left. A blank behind the last argument is something.
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    fn skip_blanks(&mut self) {
        while let [b' ', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }
}

/// The name of a tube: all of the text, without any blank. `.` and `..` are none here, since no topic or queue bears
/// them; all else is as beanstalkd has it.
pub fn tube(text: &[u8]) -> Option<&str> {
    let is_name = matches!(text.len(), 1..=LONGEST_NAME) && text[0] != b'-' && text.iter().copied().all(is_of_a_name);
    if is_name && !matches!(text, b"." | b"..") { str::from_utf8(text).ok() } else { None }
}

/// How many to kick, as `strtoul` reads it into 32 bits: -1 is 4294967295, and 4294967296 is 0.
pub fn count(text: &[u8]) -> Option<u32> {
    let (is_negative, value) = signed(text)?;
    let value = value?;
    let value = if is_negative { value.wrapping_neg() } else { value };
    Some(value as u32)
}

/// How many seconds to wait, as `strtol` reads it into 32 bits; less than 0 is for ever. No digits are 0.
pub fn timeout(text: &[u8]) -> Option<i32> {
    let Some((is_negative, value)) = signed(text) else { return Some(0) };
    let value = value?;
    let value = if is_negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() };
    value.map(|value| value as i32)
}

/// The sign and the digits at the beginning, if there are any; the value is none if it has more than 64 bits.
fn signed(text: &[u8]) -> Option<(bool, Option<u64>)> {
    // The other blank of C, CR, cannot stand in a line.
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\x0b' | b'\x0c')).count();
    let (is_negative, number) = match &text[blanks..] {
        [b'-', number @ ..] => (true, number),
        [b'+', number @ ..] => (false, number),
        number => (false, number),
    };
    let (length, value) = digits(number);
    Some((is_negative, value)).filter(|_| length > 0)
}

/// How many digits the text begins with, and their value unless it has more than 64 bits.
fn digits(text: &[u8]) -> (usize, Option<u64>) {
    let mut value = Some(0u64);
    let mut length = 0;
    while let Some(digit @ b'0'..=b'9') = text.get(length) {
        let digit = u64::from(digit - b'0');
        value = value.and_then(|value| value.checked_mul(10)?.checked_add(digit));
        length += 1;
    }
    (length, value)
}

fn is_of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-+/;.$_()".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_u64(text: &str) -> Option<u64> {
        let mut reader = Reader::new(text.as_bytes());
        reader.u64().filter(|_| reader.is_at_end())
    }

    fn only_u32(text: &str) -> Option<u32> {
        let mut reader = Reader::new(text.as_bytes());
        reader.u32().filter(|_| reader.is_at_end())
    }

    #[test]
    fn numbers_reach_to_the_end_of_their_range() {
        assert_eq!(only_u64("0"), Some(0));
        assert_eq!(only_u64("18446744073709551615"), Some(u64::MAX));
        assert_eq!(only_u64("18446744073709551616"), None);
        assert_eq!(only_u64("99999999999999999999999999"), None);
        assert_eq!(only_u32("4294967295"), Some(u32::MAX));
        assert_eq!(only_u32("4294967296"), None);
        assert_eq!(only_u32("18446744073709551617"), None);
    }

    #[test]
    fn zeros_before_a_number_say_nothing() {
        assert_eq!(only_u32("000000000000000000000000000000007"), Some(7));
    }

    #[test]
    fn blanks_may_stand_before_a_number_and_not_behind_the_last() {
        assert_eq!(only_u64("   7"), Some(7));
        assert_eq!(only_u64("7 "), None);
        assert_eq!(only_u64(" "), None);
        assert_eq!(only_u64(""), None);
    }

    #[test]
    fn signs_tabs_letters_and_other_bases_are_no_numbers() {
        for text in ["+1", "-1", "\t1", "\n1", "1a", "a1", "0x1", "1.", "1\t"] {
            assert_eq!(only_u64(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_next_number_begins_where_the_last_one_stopped() {
        let mut reader = Reader::new(b"1  2 3,4");
        assert_eq!((reader.u64(), reader.u32(), reader.u64()), (Some(1), Some(2), Some(3)));
        assert_eq!(reader.u64(), None);
    }

    #[test]
    fn seconds_have_32_bits() {
        assert_eq!(Reader::new(b"4294967295").seconds(), Some(Duration::from_secs(4_294_967_295)));
        assert_eq!(Reader::new(b"4294967296").seconds(), None);
    }

    #[test]
    fn names_have_1_to_200_of_their_bytes() {
        let every = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()";
        assert_eq!(tube(every.as_bytes()), Some(every));
        assert_eq!(tube("a".repeat(200).as_bytes()), Some(&*"a".repeat(200)));
        assert_eq!(tube("a".repeat(201).as_bytes()), None);
        assert_eq!(tube(b""), None);
    }

    #[test]
    fn names_have_no_other_bytes() {
        for byte in (0..=255u8).filter(|byte| !is_of_a_name(*byte)) {
            assert_eq!(tube(&[b'a', byte]), None, "{byte}");
        }
        assert_eq!((0..=255).filter(|byte| is_of_a_name(*byte)).count(), 26 + 26 + 10 + 9);
    }

    #[test]
    fn names_do_not_begin_with_a_hyphen() {
        assert_eq!(tube(b"-a"), None);
        assert_eq!(tube(b"-"), None);
        assert_eq!(tube(b"a-"), Some("a-"));
    }

    #[test]
    fn dots_alone_are_no_name() {
        assert_eq!((tube(b"."), tube(b"..")), (None, None));
        assert_eq!((tube(b"..."), tube(b".a")), (Some("..."), Some(".a")));
    }

    #[test]
    fn a_run_takes_what_a_name_may_have_and_stops() {
        let mut reader = Reader::new(b"  -ab1 2");
        assert_eq!(reader.run(), Some(&b"-ab1"[..]));
        assert_eq!(reader.u32(), Some(2));
        assert_eq!(Reader::new(b" ,").run(), None);
        assert_eq!(Reader::new(b"").run(), None);
    }

    #[test]
    fn counts_are_read_as_strtoul_reads_them() {
        assert_eq!(count(b"5"), Some(5));
        assert_eq!(count(b" \t\n\x0b\x0c5"), Some(5));
        assert_eq!(count(b"+5"), Some(5));
        assert_eq!(count(b"5x 7"), Some(5));
        assert_eq!(count(b"0x10"), Some(0));
    }

    #[test]
    fn counts_are_cut_to_32_bits() {
        assert_eq!(count(b"-1"), Some(u32::MAX));
        assert_eq!(count(b"4294967296"), Some(0));
        assert_eq!(count(b"18446744073709551615"), Some(u32::MAX));
        assert_eq!(count(b"-18446744073709551615"), Some(1));
    }

    #[test]
    fn counts_need_digits_within_64_bits() {
        for text in ["", " ", "x", "-", "+-5", "- 5", "18446744073709551616", "-18446744073709551616"] {
            assert_eq!(count(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn timeouts_are_read_as_strtol_reads_them() {
        assert_eq!(timeout(b"5"), Some(5));
        assert_eq!(timeout(b" \t+5s"), Some(5));
        assert_eq!(timeout(b"0x10"), Some(0));
        assert_eq!(timeout(b"-1"), Some(-1));
    }

    #[test]
    fn a_timeout_without_digits_is_0() {
        for text in ["", " ", "x", "-", "+-5", "- 5"] {
            assert_eq!(timeout(text.as_bytes()), Some(0), "{text:?}");
        }
    }

    #[test]
    fn timeouts_are_cut_to_32_bits() {
        assert_eq!(timeout(b"2147483647"), Some(i32::MAX));
        assert_eq!(timeout(b"2147483648"), Some(i32::MIN));
        assert_eq!(timeout(b"4294967296"), Some(0));
        assert_eq!(timeout(b"-4294967295"), Some(1));
        assert_eq!(timeout(b"9223372036854775807"), Some(-1));
        assert_eq!(timeout(b"-9223372036854775808"), Some(0));
    }

    #[test]
    fn timeouts_beyond_64_bits_are_bad() {
        for text in ["9223372036854775808", "-9223372036854775809", "18446744073709551616"] {
            assert_eq!(timeout(text.as_bytes()), None, "{text:?}");
        }
    }
}
