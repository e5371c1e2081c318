//! The text of a lease: opaque for clients, and vouched for.
//!
//! ```text
//! base64url( check 8 bytes | token 8 | length of topic 1 | length of id 1 | topic | id | queue )
//! ```
//! The check is a keyed hash over the rest. So nobody can make up a lease from a task's id and a
//! number, and whoever holds one got it from this door: that is what entitles to settle it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use punctual_core::store::Key;
use punctual_core::{Lease, Name};

use crate::fault::{Code, Fault};

const CHECK: usize = 8;
const HEAD: usize = CHECK + 8 + 2;
/// Three names and the head.
const LONGEST: usize = HEAD + 3 * Name::MAX_BYTES;

/// Appends the lease's text.
pub(crate) fn write(lease: &Lease, secret: &[u8; 32], out: &mut Vec<u8>) {
    let (topic, id, queue) = (lease.key.topic(), lease.key.id(), lease.key.queue());
    let mut bytes = [0; LONGEST];
    let mut end = CHECK;
    let mut put = |part: &[u8]| {
        bytes[end..end + part.len()].copy_from_slice(part);
        end += part.len();
    };
    put(&lease.token.to_le_bytes());
    put(&[topic.len() as u8, id.len() as u8]);
    put(topic.as_bytes());
    put(id.as_bytes());
    put(queue.as_bytes());
    let check = check(secret, &bytes[CHECK..end]);
    bytes[..CHECK].copy_from_slice(&check);
    let start = out.len();
    out.resize(start + end.div_ceil(3) * 4, 0);
    let written = URL_SAFE_NO_PAD.encode_slice(&bytes[..end], &mut out[start..]).expect("there is room");
    out.truncate(start + written);
}

/// Reads a lease's text back.
pub(crate) fn read(text: &str, secret: &[u8; 32]) -> Result<Lease, Fault> {
    parse(text, secret).ok_or_else(|| {
        let detail = "`lease`: this is not a lease: send the one that came with the delivery, unchanged";
        Fault::new(Code::Invalid, detail)
    })
}

fn parse(text: &str, secret: &[u8; 32]) -> Option<Lease> {
    let mut bytes = [0; LONGEST + 2];
    let length = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
    let (given, vouched) = bytes[..length].split_at_checked(CHECK)?;
    if !bool::from(subtle::ConstantTimeEq::ct_eq(given, &check(secret, vouched)[..])) {
        return None;
    }
    let (token, rest) = vouched.split_first_chunk::<8>()?;
    let ([topic, id], rest) = rest.split_first_chunk::<2>()?;
    let (topic, rest) = rest.split_at_checked(usize::from(*topic))?;
    let (id, queue) = rest.split_at_checked(usize::from(*id))?;
    // The first two lengths fit into a byte, and so into a name; nothing but this bounds the third.
    if queue.len() > Name::MAX_BYTES {
        return None;
    }
    let text = |bytes| std::str::from_utf8(bytes).ok();
    Some(Lease { key: Key::new(text(topic)?, text(id)?, text(queue)?), token: u64::from_le_bytes(*token) })
}

fn check(secret: &[u8; 32], bytes: &[u8]) -> [u8; CHECK] {
    *blake3::keyed_hash(secret, bytes).as_bytes().first_chunk().expect("a hash is longer")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; 32] = [7; 32];

    fn text(lease: &Lease) -> String {
        let mut out = Vec::new();
        write(lease, &SECRET, &mut out);
        String::from_utf8(out).expect("base64 is text")
    }

    #[test]
    fn a_lease_comes_back_from_its_text() {
        let long = "é".repeat(127);
        for (topic, id, queue) in [("orders", "7", ""), ("orders", "order/7", "mails"), (&long, &long, &long)] {
            let lease = Lease { key: Key::new(topic, id, queue), token: u64::MAX - 5 };
            assert_eq!(read(&text(&lease), &SECRET).ok(), Some(lease));
        }
    }

    #[test]
    fn a_lease_with_a_queue_longer_than_any_name_is_refused() {
        let mut vouched = [7_u64.to_le_bytes().as_slice(), &[255, 255]].concat();
        vouched.resize(vouched.len() + 3 * Name::MAX_BYTES + 1, b'x');
        let whole = [&check(&SECRET, &vouched)[..], &vouched].concat();
        assert!(read(&URL_SAFE_NO_PAD.encode(whole), &SECRET).is_err());
    }

    #[test]
    fn a_made_up_or_changed_lease_is_refused() {
        let text = text(&Lease { key: Key::new("orders", "7", ""), token: 1 });
        for index in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[index] = if bytes[index] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).expect("base64 is text");
            assert!(read(&changed, &SECRET).is_err(), "{changed}");
        }
        assert!(read(&text, &[8; 32]).is_err());
        for bad in ["", "x", "????", &"A".repeat(5_000)] {
            assert!(read(bad, &SECRET).is_err(), "{bad}");
        }
    }
}
