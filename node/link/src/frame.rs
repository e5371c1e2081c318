//! Frames, and the seals that show that they come from the other end of the link, whole and in order.
//!
//! ```text
//! length of the payload  kind  payload  seal
//! 4 bytes, low first     1     length   32 bytes
//! ```
//! A seal is the keyed BLAKE3 of the frame's number and all that stands before the seal. Each direction has a key of its own
//! that is drawn by both nodes for this connection, so a frame that was altered, left out, repeated or sent back is
//! noticed, and ends the link. A frame counts as a whole: what has not its seal yet was not said.

use bytes::{Buf, Bytes, BytesMut};

/// What stands before a payload.
pub(crate) const HEAD: usize = 5;

const SEAL: usize = 32;

/// The longest payload.
pub(crate) const LONGEST: usize = 64 << 20;

/// What a payload is. A frame of another kind is for newer versions, and passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Messages, one after the other.
    Messages = 1,
    /// Eight bytes to be sent back.
    Ping = 2,
    /// These eight bytes.
    Pong = 3,
}

/// A key for one direction of a connection, and the number of the next frame.
pub struct Sealing {
    key: [u8; 32],
    next: u64,
}

/// A frame whose seal is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its kind, by its number.
    pub kind: u8,
    /// What it holds.
    pub payload: Bytes,
}

/// What came is not what the other end of the link has sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Forged {
    /// More is announced than a frame can hold.
    #[error("a frame of {0} bytes is announced, and none has more than {LONGEST}")]
    TooLong(usize),
    /// It was altered on its way, or does not come from there.
    #[error("frame {0} is not as it was sent")]
    Seal(u64),
}

impl Sealing {
    /// From the first frame on.
    pub fn new(key: [u8; 32]) -> Sealing {
        Sealing { key, next: 0 }
    }

    /// Completes a frame: the payload stands in it already, behind room for the head.
    pub(crate) fn seal(&mut self, kind: Kind, frame: &mut Vec<u8>) {
        let length = u32::try_from(frame.len() - HEAD).expect("a payload is not longer than a frame may be");
        frame[..4].copy_from_slice(&length.to_le_bytes());
        frame[4] = kind as u8;
        let seal = self.stamp(frame);
        frame.extend_from_slice(seal.as_bytes());
    }

    /// Takes the first frame out of what has come; none if there is not all of it yet.
    pub fn open(&mut self, came: &mut BytesMut) -> Result<Option<Frame>, Forged> {
        let Some(announced) = came.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*announced) as usize;
        if length > LONGEST {
            return Err(Forged::TooLong(length));
        }
        if came.len() < HEAD + length + SEAL {
            return Ok(None);
        }
        let mut frame = came.split_to(HEAD + length + SEAL).freeze();
        let seal = frame.split_off(HEAD + length);
        let number = self.next;
        // Comparing a hash takes the same time wherever it differs.
        if self.stamp(&frame) != blake3::Hash::from_bytes(seal[..].try_into().expect("a seal has its length")) {
            return Err(Forged::Seal(number));
        }
        let kind = frame[4];
        frame.advance(HEAD);
        Ok(Some(Frame { kind, payload: frame }))
    }

    fn stamp(&mut self, frame: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&self.next.to_le_bytes()).update(frame);
        self.next += 1;
        hasher.finalize()
    }
}

/// An empty frame with room for its head.
pub(crate) fn blank() -> Vec<u8> {
    vec![0; HEAD]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(sealing: &mut Sealing, payload: &[u8]) -> Vec<u8> {
        let mut frame = blank();
        frame.extend_from_slice(payload);
        sealing.seal(Kind::Messages, &mut frame);
        frame
    }

    #[test]
    fn frames_come_out_whole_and_in_order_however_they_arrive() {
        let (mut there, mut here) = (Sealing::new([7; 32]), Sealing::new([7; 32]));
        let sent: Vec<u8> =
            [&b"one"[..], b"", b"three"].iter().flat_map(|payload| frame(&mut there, payload)).collect();
        let (mut came, mut opened) = (BytesMut::new(), Vec::new());
        for byte in sent {
            came.extend_from_slice(&[byte]);
            opened.extend(here.open(&mut came).unwrap().map(|frame| frame.payload));
        }
        assert_eq!(opened, [&b"one"[..], b"", b"three"]);
    }

    #[test]
    fn a_flipped_bit_anywhere_is_noticed() {
        let sent = frame(&mut Sealing::new([7; 32]), b"one");
        for bit in 0..sent.len() * 8 {
            let mut came = BytesMut::from(&sent[..]);
            came[bit / 8] ^= 1 << (bit % 8);
            // A length that has grown waits for more; whatever comes then, the seal is wrong.
            came.extend_from_slice(&[0; 70_000]);
            let opened = Sealing::new([7; 32]).open(&mut came);
            assert!(!matches!(opened, Ok(Some(_))), "bit {bit}");
        }
    }

    #[test]
    fn frames_that_are_left_out_repeated_or_of_the_other_direction_are_noticed() {
        let mut there = Sealing::new([7; 32]);
        let (first, second) = (frame(&mut there, b"one"), frame(&mut there, b"two"));
        let mut here = Sealing::new([7; 32]);
        assert!(here.open(&mut BytesMut::from(&second[..])).is_err());
        let mut here = Sealing::new([7; 32]);
        assert!(here.open(&mut BytesMut::from(&first[..])).is_ok());
        assert!(here.open(&mut BytesMut::from(&first[..])).is_err());
        assert!(Sealing::new([8; 32]).open(&mut BytesMut::from(&first[..])).is_err());
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_before_it_comes() {
        let announced = u32::try_from(LONGEST + 1).unwrap().to_le_bytes();
        let opened = Sealing::new([7; 32]).open(&mut BytesMut::from(&announced[..]));
        assert_eq!(opened, Err(Forged::TooLong(LONGEST + 1)));
    }
}
