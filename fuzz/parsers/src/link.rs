//! What comes over a link between nodes: introductions before it is one, then frames of messages.

use bytes::{Bytes, BytesMut};
use punctual_link::{Heard, Introduction, Sealing, encode, hear};

/// Reads the bytes as messages, as a sealed frame and as an introduction. What is understood is the same after it was said and
/// heard again; what is not has a reason.
pub fn link(bytes: &[u8]) {
    messages(bytes);
    // Nobody can guess a seal: frames are found to be cut off, too long or forged, and nothing else.
    let mut came = BytesMut::from(bytes);
    assert!(!matches!(Sealing::new([0; 32]).open(&mut came), Ok(Some(_))), "a seal was guessed");
    if let Some(introduction) = Introduction::decode(bytes) {
        assert_eq!(Introduction::decode(&introduction.encode()).as_ref(), Some(&introduction));
    }
}

fn messages(bytes: &[u8]) {
    let heard = match hear(Bytes::copy_from_slice(bytes)) {
        Ok(heard) => heard,
        Err(why) => return assert!(!why.to_string().is_empty(), "a refusal has a reason"),
    };
    for heard in heard {
        match heard {
            Heard::Clear(message) => {
                let again = hear(encode(std::slice::from_ref(&message)).into()).expect("what was said is a message");
                assert_eq!(again, [Heard::Clear(message)]);
            }
            Heard::Answer(message, why) | Heard::Instead(message, why) => {
                let said =
                    hear(encode(std::slice::from_ref(&message)).into()).expect("what is said instead is a message");
                assert_eq!(said, [Heard::Clear(message)]);
                assert!(why.to_string().len() < 1_000, "{why}");
            }
            Heard::Lost(why) => assert!(why.to_string().len() < 1_000, "{why}"),
        }
    }
}
