//! Pieces: what is appended to an archive's file at once. `archive/mod.rs` draws one.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use zstd::stream::read::Decoder;

/// A skippable frame that tells how long the frame after it is.
const HEAD: usize = 20;
const MAGIC: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];
const MARK: [u8; 4] = *b"pct1";

/// How much is looked at together when a piece is searched for.
const SEARCH: usize = 1 << 16;

/// Packs lines into a piece.
pub fn pack(lines: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::stream::Encoder::new(vec![0; HEAD], zstd::DEFAULT_COMPRESSION_LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.set_pledged_src_size(Some(lines.len() as u64))?;
    io::Write::write_all(&mut encoder, lines)?;
    let mut piece = encoder.finish()?;
    let length = (piece.len() - HEAD) as u64;
    piece[..4].copy_from_slice(&MAGIC);
    piece[4..8].copy_from_slice(&12_u32.to_le_bytes());
    piece[8..12].copy_from_slice(&MARK);
    piece[12..20].copy_from_slice(&length.to_le_bytes());
    Ok(piece)
}

/// Where the pieces of a file are.
pub struct Pieces<'a> {
    file: &'a File,
    length: u64,
    at: u64,
}

/// What is found at a place of a file.
pub enum Found {
    /// A piece, by its frame.
    Piece(Frame),
    /// Nothing more.
    End,
    /// Something that is not a whole piece begins here.
    Torn(u64),
}

/// A frame in a file: where it begins, and how long it is.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    start: u64,
    length: u64,
}

impl Frame {
    /// Where its piece begins.
    pub fn piece_start(self) -> u64 {
        self.start - HEAD as u64
    }

    /// Unpacks its lines.
    pub fn unpack(self, file: &File) -> io::Result<Vec<u8>> {
        let mut lines = Vec::new();
        let frame = Section { file, at: self.start, end: self.start + self.length };
        Decoder::new(frame)?.single_frame().read_to_end(&mut lines)?;
        Ok(lines)
    }
}

impl<'a> Pieces<'a> {
    /// The pieces of a file as it is now.
    pub fn of(file: &'a File) -> io::Result<Pieces<'a>> {
        Pieces::from(file, 0)
    }

    /// The pieces from here on.
    pub fn from(file: &'a File, at: u64) -> io::Result<Pieces<'a>> {
        let length = file.metadata()?.len();
        Ok(Pieces { file, length, at: at.min(length) })
    }

    /// Where the next one begins.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Passes over everything that is left.
    pub fn go_to_end(&mut self) {
        self.at = self.length;
    }

    /// Finds the next one.
    pub fn next(&mut self) -> io::Result<Found> {
        let left = self.length - self.at;
        if left == 0 {
            return Ok(Found::End);
        }
        if left < HEAD as u64 {
            return Ok(Found::Torn(self.at));
        }
        let mut head = [0; HEAD];
        self.file.read_exact_at(&mut head, self.at)?;
        match frame_length(&head).filter(|frame| *frame <= left - HEAD as u64) {
            Some(frame) => {
                let start = self.at + HEAD as u64;
                self.at = start + frame;
                Ok(Found::Piece(Frame { start, length: frame }))
            }
            None => Ok(Found::Torn(self.at)),
        }
    }

    /// After something torn: goes on to where the next whole piece seems to begin, if there is one.
    pub fn find_next(&mut self) -> io::Result<bool> {
        let mut buffer = vec![0; SEARCH + HEAD];
        self.at += 1;
        while self.at + HEAD as u64 <= self.length {
            let left = usize::try_from(self.length - self.at).unwrap_or(usize::MAX).min(buffer.len());
            self.file.read_exact_at(&mut buffer[..left], self.at)?;
            for (offset, head) in (0..).zip(buffer[..left].windows(HEAD)) {
                let after = self.at + offset + HEAD as u64;
                if frame_length(head).is_some_and(|frame| frame <= self.length - after) {
                    self.at += offset;
                    return Ok(true);
                }
            }
            // The windows that were looked at overlap the next stretch by one head less a byte.
            self.at += (left - HEAD + 1) as u64;
        }
        Ok(false)
    }
}

/// How long the frame after a head is; `None` if it is not a head.
fn frame_length(head: &[u8]) -> Option<u64> {
    let length = head.get(12..HEAD)?.try_into().ok()?;
    (head[..4] == MAGIC && head[8..12] == MARK).then(|| u64::from_le_bytes(length))
}

/// A part of a file, to be read from its beginning to its end.
struct Section<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl Read for Section<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(to.len());
        let read = self.file.read_at(&mut to[..left], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
