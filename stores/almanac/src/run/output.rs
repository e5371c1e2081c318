//! How a run is written: in large pieces, and synced now and then, so that the last sync has little
//! left to do and the disk stays free for the journal in between.

use std::io;
use std::sync::Arc;

use punctual_disk::File;

/// How much is written at once.
const PIECE: usize = 256 << 10;

pub(super) struct Output {
    file: Arc<dyn File>,
    /// What comes next in the file, not yet written.
    pub buffer: Vec<u8>,
    /// How much was written.
    written: u64,
    /// How much of that was not synced.
    unsynced: u64,
}

impl Output {
    pub fn new(file: Arc<dyn File>) -> Output {
        // A piece is full with the block that makes it so.
        let buffer = Vec::with_capacity(PIECE + 2 * super::block::BLOCK_BYTES);
        Output { file, buffer, written: 0, unsynced: 0 }
    }

    /// Where in the file the next byte will stand.
    pub fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Writes the buffer out if it is full, and syncs if so much was written since the last time.
    pub fn keep_up(&mut self, sync_every: u64) -> io::Result<()> {
        if self.buffer.len() >= PIECE {
            self.write_out()?;
            if self.unsynced >= sync_every {
                self.sync()?;
            }
        }
        Ok(())
    }

    /// Adds a part that is as long as it is.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(PIECE) {
            if self.buffer.len() >= PIECE {
                self.write_out()?;
            }
            self.buffer.extend_from_slice(piece);
        }
        Ok(())
    }

    /// Makes all of it durable.
    pub fn finish(mut self) -> io::Result<Arc<dyn File>> {
        self.write_out()?;
        self.sync()?;
        Ok(self.file)
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.file.write_at(&self.buffer, self.written)?;
        self.written += self.buffer.len() as u64;
        self.unsynced += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.unsynced = 0;
        self.file.sync()
    }
}
