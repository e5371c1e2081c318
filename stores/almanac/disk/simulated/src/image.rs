//! The bytes of one file, in chunks that images share until one of them writes.
//!
//! So a copy costs a pointer a chunk, and thousands of crashes of a disk of many megabytes take
//! seconds.

use std::sync::Arc;

/// The smallest piece that can be punched out, as on most file systems.
const CHUNK: u64 = 4096;

#[derive(Clone, Debug)]
enum Chunk {
    /// Zeros that take no room on the disk. Only a whole chunk within the length becomes a hole.
    Hole,
    /// Zeros that have their room.
    Zeros,
    Bytes(Arc<[u8; CHUNK as usize]>),
}

/// The bytes of one file. What is behind its end in the last chunk is zero, and so are chunks that
/// are missing before it: room that was only reserved costs nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    chunks: Vec<Chunk>,
    length: u64,
    holes: u64,
}

impl Image {
    pub(crate) fn of(bytes: &[u8]) -> Image {
        let mut image = Image::default();
        image.write(0, bytes);
        image
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// What it takes of the disk: its length without its holes.
    pub(crate) fn room(&self) -> u64 {
        self.length - self.holes * CHUNK
    }

    /// What it would take more if these bytes were written or allocated.
    pub(crate) fn lacking(&self, offset: u64, length: u64) -> u64 {
        let end = offset + length;
        let holes = if self.holes == 0 || length == 0 {
            0
        } else {
            let chunks = (offset / CHUNK) as usize..(end.div_ceil(CHUNK) as usize).min(self.chunks.len());
            self.chunks.get(chunks).unwrap_or_default().iter().filter(|chunk| matches!(chunk, Chunk::Hole)).count()
        };
        end.saturating_sub(self.length) + holes as u64 * CHUNK
    }

    /// Fills the buffer; false if the file ends before.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> bool {
        if offset.checked_add(buffer.len() as u64).is_none_or(|end| end > self.length) {
            return false;
        }
        let mut rest = buffer;
        let mut at = offset;
        while !rest.is_empty() {
            let within = (at % CHUNK) as usize;
            let (piece, later) = rest.split_at_mut(rest.len().min(CHUNK as usize - within));
            match self.chunks.get((at / CHUNK) as usize) {
                None | Some(Chunk::Hole | Chunk::Zeros) => piece.fill(0),
                Some(Chunk::Bytes(bytes)) => piece.copy_from_slice(&bytes[within..within + piece.len()]),
            }
            at += piece.len() as u64;
            rest = later;
        }
        true
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length as usize];
        self.read(0, &mut bytes);
        bytes
    }

    /// Writes, and grows as needed.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.grow(offset + bytes.len() as u64);
        let mut rest = bytes;
        let mut at = offset;
        while !rest.is_empty() {
            let within = (at % CHUNK) as usize;
            let (piece, later) = rest.split_at(rest.len().min(CHUNK as usize - within));
            self.chunk(at / CHUNK)[within..within + piece.len()].copy_from_slice(piece);
            at += piece.len() as u64;
            rest = later;
        }
    }

    /// Gives it at least this length.
    pub(crate) fn grow(&mut self, length: u64) {
        self.length = self.length.max(length);
    }

    /// Gives it at least this length and room for all of it.
    pub(crate) fn allocate(&mut self, length: u64) {
        self.grow(length);
        if self.holes == 0 {
            return;
        }
        for chunk in self.chunks.iter_mut().take(length.div_ceil(CHUNK) as usize) {
            if matches!(chunk, Chunk::Hole) {
                *chunk = Chunk::Zeros;
                self.holes -= 1;
            }
        }
    }

    /// Zeros from here on; whole chunks give their room back.
    pub(crate) fn punch(&mut self, offset: u64, length: u64) {
        let end = offset.saturating_add(length).min(self.length);
        let mut at = offset;
        while at < end {
            let number = at / CHUNK;
            let until = end.min((number + 1) * CHUNK);
            if until - at == CHUNK {
                let chunk = self.slot(number);
                if !matches!(chunk, Chunk::Hole) {
                    *chunk = Chunk::Hole;
                    self.holes += 1;
                }
            } else if let Some(Chunk::Bytes(bytes)) = self.chunks.get_mut(number as usize) {
                Arc::make_mut(bytes)[(at % CHUNK) as usize..][..(until - at) as usize].fill(0);
            }
            at = until;
        }
    }

    pub(crate) fn empty(&mut self) {
        *self = Image::default();
    }

    /// Flips a bit, if the file is long enough to have it.
    pub(crate) fn flip(&mut self, offset: u64, bit: u8) {
        if offset < self.length {
            self.chunk(offset / CHUNK)[(offset % CHUNK) as usize] ^= 1 << bit;
        }
    }

    /// A chunk to write to, which no other image has.
    fn chunk(&mut self, number: u64) -> &mut [u8; CHUNK as usize] {
        if matches!(self.slot(number), Chunk::Hole) {
            self.holes -= 1;
        }
        let chunk = self.slot(number);
        if !matches!(chunk, Chunk::Bytes(_)) {
            *chunk = Chunk::Bytes(Arc::new([0; CHUNK as usize]));
        }
        match chunk {
            Chunk::Bytes(bytes) => Arc::make_mut(bytes),
            Chunk::Hole | Chunk::Zeros => unreachable!("it was given bytes above"),
        }
    }

    /// Where a chunk is, also if it was missing.
    fn slot(&mut self, number: u64) -> &mut Chunk {
        if self.chunks.len() as u64 <= number {
            self.chunks.resize(number as usize + 1, Chunk::Zeros);
        }
        &mut self.chunks[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use punctual_chance::Chance;

    use super::*;

    #[test]
    fn an_image_behaves_like_a_vector_of_bytes() {
        for seed in 0..200 {
            let mut chance = Chance::new(seed);
            let mut image = Image::default();
            let mut model: Vec<u8> = Vec::new();
            for _ in 0..40 {
                let offset = chance.below(20_000);
                let length = chance.below(10_000);
                let before = (image.clone(), model.clone());
                match chance.below(8) {
                    0..4 => {
                        let bytes = vec![chance.draw() as u8; length as usize];
                        let lacking = image.lacking(offset, length);
                        if length > 0 && model.len() < (offset + length) as usize {
                            model.resize((offset + length) as usize, 0);
                        }
                        if length > 0 {
                            model[offset as usize..][..length as usize].copy_from_slice(&bytes);
                            let room = image.room();
                            image.write(offset, &bytes);
                            assert_eq!(image.room(), room + lacking);
                        }
                    }
                    4 => {
                        let room = image.room() + image.lacking(0, length);
                        image.allocate(length);
                        assert_eq!(image.room(), room);
                        model.resize(model.len().max(length as usize), 0);
                    }
                    5 | 6 => {
                        image.punch(offset, length);
                        let end = model.len().min((offset + length) as usize);
                        if let Some(range) = model.get_mut(offset as usize..end) {
                            range.fill(0);
                        }
                    }
                    _ if !model.is_empty() => {
                        let at = chance.below(model.len() as u64);
                        image.flip(at, 3);
                        model[at as usize] ^= 8;
                    }
                    _ => image.empty(),
                }
                assert_eq!(image.length(), model.len() as u64);
                assert!(image.bytes() == model, "seed {seed}");
                assert!(before.0.bytes() == before.1, "a copy changed with the original, seed {seed}");
            }
        }
    }

    #[test]
    fn punched_pages_take_no_room_until_they_are_written_again() {
        let mut image = Image::of(&[7; 10 * CHUNK as usize]);
        image.punch(CHUNK - 1, 3 * CHUNK);
        assert_eq!(image.room(), 8 * CHUNK);
        assert_eq!(image.lacking(CHUNK, 1), CHUNK);
        image.write(CHUNK, b"x");
        assert_eq!(image.room(), 9 * CHUNK);
        image.allocate(1);
        assert_eq!(image.room(), 9 * CHUNK);
        image.allocate(10 * CHUNK);
        assert_eq!(image.room(), 10 * CHUNK);
    }
}
