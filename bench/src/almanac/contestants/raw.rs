//! What the disk itself takes: the bytes of the rows in one write, and a data sync, around and around in a file
//! that has been written before, so that the file system has nothing to note down.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use punctual_core::store::Row;

use super::Inserts;
use crate::almanac::rows::ROW_BYTES;

const FILE_BYTES: usize = 64 << 20;

struct Raw {
    file: File,
    at: usize,
    buffer: Vec<u8>,
}

pub fn open(directory: &Path) -> Box<dyn Inserts> {
    fs::create_dir_all(directory).expect("the directory can be made");
    let path = directory.join("raw");
    fs::write(&path, vec![0xa5; FILE_BYTES]).expect("there is room");
    let file = File::options().read(true).write(true).open(path).expect("it was just written");
    file.sync_all().expect("it is synced");
    Box::new(Raw { file, at: 0, buffer: Vec::new() })
}

impl Inserts for Raw {
    fn insert(&mut self, rows: Vec<Row>) {
        self.buffer.clear();
        for row in &rows {
            self.buffer.extend_from_slice(row.key.topic().as_bytes());
            self.buffer.extend_from_slice(row.key.id().as_bytes());
            self.buffer.extend_from_slice(&row.at.as_millis().to_le_bytes());
            self.buffer.extend_from_slice(&row.seq.to_le_bytes());
            self.buffer.extend_from_slice(&row.state);
            self.buffer.extend_from_slice(&row.body);
        }
        debug_assert_eq!(self.buffer.len() as u64, rows.len() as u64 * ROW_BYTES);
        if self.at + self.buffer.len() > FILE_BYTES {
            self.at = 0;
        }
        self.file.write_all_at(&self.buffer, self.at as u64).expect("the file has room");
        self.file.sync_data().expect("it is synced");
        self.at += self.buffer.len();
    }
}
