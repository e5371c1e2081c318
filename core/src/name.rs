//! Names of topics, queues, tasks, keys and consumers: short, visible text.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// A name: 1 to 255 bytes of visible characters. Cloning shares the text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

/// Why a text is not a [`Name`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// The text is empty.
    #[error("a name must not be empty")]
    Empty,
    /// The text is longer than [`Name::MAX_BYTES`].
    #[error("a name can have at most {max} bytes, but this one has {0}", max = Name::MAX_BYTES)]
    TooLong(usize),
    /// The text holds a character that cannot be seen.
    #[error("a name must consist of visible characters, but this one has {character:?} at byte {at}")]
    Invisible {
        /// The character.
        character: char,
        /// Where it stands.
        at: usize,
    },
    /// The text is `.` or `..`.
    #[error("{0:?} cannot be a name, because it has a special meaning in URLs")]
    Dots(String),
}

impl Name {
    /// The longest name, in bytes of UTF-8.
    pub const MAX_BYTES: usize = 255;

    /// Checks the text and makes it a name.
    ///
    /// `.` and `..` are none: whoever reads an address takes such a part for a step to another place, however it is
    /// escaped, so that what was said of a task would be done elsewhere.
    pub fn new(text: impl AsRef<str>) -> Result<Name, BadName> {
        let text = text.as_ref();
        if matches!(text, "." | "..") {
            return Err(BadName::Dots(text.into()));
        }
        Name::read_back(text)
    }

    /// The same for a text that comes out of a store: `.` and `..` may be there from the time when they were names.
    pub fn read_back(text: &str) -> Result<Name, BadName> {
        if text.is_empty() {
            return Err(BadName::Empty);
        }
        if text.len() > Name::MAX_BYTES {
            return Err(BadName::TooLong(text.len()));
        }
        if text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(Name(text.into()));
        }
        match text.char_indices().find(|(_, character)| !is_visible(*character)) {
            Some((at, character)) => Err(BadName::Invisible { character, at }),
            None => Ok(Name(text.into())),
        }
    }

    /// The text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Takes a text that was checked when it was stored.
    pub fn stored(text: &str) -> Name {
        debug_assert!(Name::read_back(text).is_ok(), "{text:?} was stored as a name");
        Name(text.into())
    }
}

/// Whether a reader can tell that the character is there: no controls, no white space, none of
/// Unicode's joiners, marks of direction and other characters without a picture.
fn is_visible(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_graphic();
    }
    let without_picture = matches!(
        character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    !character.is_control() && !character.is_whitespace() && !without_picture
}

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<&str> for Name {
    type Error = BadName;
    fn try_from(text: &str) -> Result<Name, BadName> {
        Name::new(text)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Only stores write names in this way.
impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Name;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Name, E> {
                Name::read_back(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_text_of_any_script_is_a_name() {
        for text in ["orders", "order/42#a~b", "注文", "x".repeat(255).as_str()] {
            assert_eq!(Name::new(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn empty_long_and_invisible_names_are_refused_with_the_reason() {
        assert_eq!(Name::new(""), Err(BadName::Empty));
        assert_eq!(Name::new("x".repeat(256)), Err(BadName::TooLong(256)));
        for (text, character) in [("a b", ' '), ("a\0", '\0'), ("a\u{200b}", '\u{200b}'), ("\u{3000}", '\u{3000}')] {
            assert!(matches!(Name::new(text), Err(BadName::Invisible { character: c, .. }) if c == character));
        }
    }

    #[test]
    fn a_step_to_another_place_is_no_name_unless_it_was_stored_as_one() {
        for text in [".", ".."] {
            assert_eq!(Name::new(text), Err(BadName::Dots(text.into())));
            assert_eq!(Name::stored(text).as_str(), text);
            let bytes = postcard::to_allocvec(&Name::stored(text)).unwrap();
            assert_eq!(postcard::from_bytes::<Name>(&bytes).unwrap().as_str(), text);
        }
        for text in ["...", ".a", "..a", "a.", "./", "../.."] {
            assert_eq!(Name::new(text).unwrap().as_str(), text);
        }
    }
}
