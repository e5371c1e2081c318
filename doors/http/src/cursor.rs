//! The text of a cursor: where a page ended, which may be at a row that its reader is not to know of.
//!
//! Who may see all gets it in clear. For all others it is sealed: a page through the tasks of some topics ends where its
//! reader has seen enough, and what stands there, with its due time and its number, may be a task of somebody else.
//! ```text
//! base64url( check 16 bytes | the text in clear, filled up with spaces and covered )
//! ```
//! The check is a keyed hash over the text, and the cover is a stream that is made of the check and the secret. So a sealed cursor
//! tells nothing but whether it is the same as another one, and one that is made up is refused. All nodes read it, as they do leases.

use std::fmt::Display;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use punctual_core::Scope;
use punctual_node::BadCursor;

const CHECK: usize = 16;
/// Texts are filled up to a multiple of this, so that their length does not tell how long the numbers in them are.
const FILL: usize = 64;
const CHECKING: &str = "punctual 2026-11 check of a sealed cursor";
const COVERING: &str = "punctual 2026-11 cover of a sealed cursor";

/// A cursor's text for who may see this much.
pub(crate) fn write(cursor: &impl Display, scope: &Scope, secret: &[u8; 32]) -> String {
    let text = cursor.to_string();
    if scope.is_all() { text } else { seal(&text, secret) }
}

/// Reads a cursor's text, sealed or in clear: only in clear there is a dot in it.
pub(crate) fn read<T: FromStr<Err = BadCursor>>(text: &str, secret: &[u8; 32]) -> Result<T, BadCursor> {
    if text.contains('.') { text.parse() } else { open(text, secret).ok_or(BadCursor)?.trim_end().parse() }
}

fn seal(text: &str, secret: &[u8; 32]) -> String {
    let length = text.len().next_multiple_of(FILL);
    let mut covered = format!("{text:<length$}").into_bytes();
    let check = check(&covered, secret);
    cover(&mut covered, &check, secret);
    URL_SAFE_NO_PAD.encode([&check[..], &covered].concat())
}

fn open(sealed: &str, secret: &[u8; 32]) -> Option<String> {
    let mut bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
    let (given, text) = bytes.split_first_chunk_mut::<CHECK>()?;
    cover(text, given, secret);
    let is_ours = bool::from(subtle::ConstantTimeEq::ct_eq(&given[..], &check(text, secret)[..]));
    String::from_utf8(text.to_vec()).ok().filter(|_| is_ours)
}

fn check(text: &[u8], secret: &[u8; 32]) -> [u8; CHECK] {
    let hash = blake3::keyed_hash(&blake3::derive_key(CHECKING, secret), text);
    *hash.as_bytes().first_chunk().expect("a hash is longer")
}

/// Covers a text, or uncovers it.
fn cover(text: &mut [u8], check: &[u8; CHECK], secret: &[u8; 32]) {
    let mut stream = vec![0; text.len()];
    let key = blake3::derive_key(COVERING, secret);
    blake3::Hasher::new_keyed(&key).update(check).finalize_xof().fill(&mut stream);
    text.iter_mut().zip(stream).for_each(|(byte, cover)| *byte ^= cover);
}

#[cfg(test)]
mod tests {
    use punctual_node::Cursor;

    use super::*;

    const SECRET: [u8; 32] = [7; 32];
    const TEXTS: [&str; 3] = ["1893456000000.42_-_0.0", "0.0", "4000000000000.18446744073709551615"];

    fn some() -> Scope {
        Scope::of(["own*".into()])
    }

    fn cursor(text: &str) -> Cursor {
        text.parse().expect("a cursor")
    }

    #[test]
    fn a_cursor_comes_back_sealed_or_in_clear() {
        for text in TEXTS {
            for scope in [Scope::ALL, some()] {
                let written = write(&cursor(text), &scope, &SECRET);
                assert_eq!(written == text, scope.is_all(), "{written}");
                assert_eq!(read::<Cursor>(&written, &SECRET), Ok(cursor(text)));
            }
        }
    }

    #[test]
    fn a_sealed_cursor_does_not_tell_where_it_points() {
        let sealed = |text: &str| write(&cursor(text), &some(), &SECRET);
        let (one, next) = (sealed("1893456000000.42"), sealed("1893456000000.43"));
        assert_eq!(one.len(), sealed("1.2").len(), "nor how long the numbers are");
        let alike = one.bytes().zip(next.bytes()).filter(|(one, next)| one == next).count();
        assert!(alike < one.len() / 4, "{one} and {next}");
    }

    #[test]
    fn a_made_up_or_changed_cursor_is_refused() {
        let sealed = write(&cursor(TEXTS[0]), &some(), &SECRET);
        for index in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[index] = if bytes[index] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).expect("base64 is text");
            assert_eq!(read::<Cursor>(&changed, &SECRET), Err(BadCursor), "{changed}");
        }
        assert_eq!(read::<Cursor>(&sealed, &[8; 32]), Err(BadCursor));
        for bad in ["", "-", "x", "????", "é", &"A".repeat(5_000)] {
            assert_eq!(read::<Cursor>(bad, &SECRET), Err(BadCursor), "{bad}");
        }
    }
}
