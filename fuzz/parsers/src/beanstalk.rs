//! The bytes of a beanstalk connection: what is understood does not depend on how they were cut into reads.

use punctual_beanstalk::command::Command;
use punctual_beanstalk::input::{Input, Next};

/// Small, so that bodies of all sizes around it are short.
const MAX_JOB: u32 = 40;

/// No read makes the buffer longer than this, whatever is announced.
const MOST_BUFFER: usize = 128 << 10;

/// Reads the bytes in one piece and in pieces as long as the first byte says.
pub fn beanstalk(bytes: &[u8]) {
    let Some((cut, bytes)) = bytes.split_first() else { return };
    let piece = usize::from(*cut).max(1);
    assert_eq!(understood(bytes, bytes.len().max(1)), understood(bytes, piece), "cut into pieces of {piece}");
}

/// What is understood, in words.
fn understood(bytes: &[u8], piece: usize) -> Vec<String> {
    let mut input = Input::new(MAX_JOB);
    let mut said = Vec::new();
    for mut piece in bytes.chunks(piece) {
        while !piece.is_empty() {
            let buffer = input.buffer();
            assert!(buffer.capacity() <= MOST_BUFFER, "the buffer grows with what came, not with what was announced");
            let room = (buffer.capacity() - buffer.len()).min(piece.len());
            buffer.extend_from_slice(&piece[..room]);
            piece = &piece[room..];
            loop {
                match input.next() {
                    Next::More => break,
                    Next::Command(Command::Quit) => return said,
                    next => said.push(format!("{next:?}")),
                }
            }
        }
    }
    said
}
