//! Text that somebody else has written, as a terminal can be trusted with it.
//!
//! Notes, reasons, names and owners come from whoever may produce or consume. A terminal obeys control characters: they
//! could clear the screen, or have it show what nobody said. So people see them as `\u{1b}`, whatever command prints them.

use std::borrow::Cow;
use std::fmt::Write;

/// The text without control characters but line breaks and tabs, for what may have several lines.
pub fn plain(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c.is_control() && !matches!(c, '\n' | '\t'))
}

/// The text without any control characters, for what stands on one line: a line break in it could make up another one.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, char::is_control)
}

fn escaped(text: &str, is_unwanted: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_unwanted) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match is_unwanted(c) {
            true => _ = write!(plain, "{}", c.escape_default()),
            false => plain.push(c),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(plain("\x1b[2J\x1b]0;x\x07 a\r\n\tb\u{9b}31m"), "\\u{1b}[2J\\u{1b}]0;x\\u{7} a\\r\n\tb\\u{9b}31m");
        assert_eq!(one_line("a\nb\t\u{7f}"), "a\\nb\\t\\u{7f}");
    }

    #[test]
    fn all_other_text_stays_as_it_is() {
        for text in ["", "plain", "订单 \u{1f600} é \\n \"quoted\""] {
            assert!(matches!(plain(text), Cow::Borrowed(same) if same == text));
            assert!(matches!(one_line(text), Cow::Borrowed(same) if same == text));
        }
    }
}
