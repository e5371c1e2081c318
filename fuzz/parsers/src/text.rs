//! Short texts that come back from clients: cursors, times, lengths of time, names, patterns, roles.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use punctual_core::{Name, Pattern, scope};
use punctual_node::Cursor;
use punctual_node::access::Role;
use punctual_wire::{Shift, Span, Time};

/// Parses the bytes as each of them. What is taken is the same after it was written and read again.
pub fn text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    comes_back::<Cursor>(text);
    comes_back::<Time>(text);
    comes_back::<Span>(text);
    comes_back::<Shift>(text);
    _ = text.parse::<Role>();
    let (pattern, key) = text.split_once(' ').unwrap_or((text, text));
    _ = scope::fits(pattern, key);
    _ = Pattern::Words(pattern.to_owned()).fits(key);
    if let Ok(name) = Name::new(text) {
        assert_eq!(Name::read_back(name.as_str()).as_ref(), Ok(&name), "a name that was taken can be read back");
    }
}

fn comes_back<T: FromStr<Err: Debug> + Display + PartialEq + Debug>(text: &str) {
    if let Ok(value) = text.parse::<T>() {
        let written = value.to_string();
        assert_eq!(written.parse::<T>().expect("what was written can be read"), value, "{text:?} became {written:?}");
    }
}
