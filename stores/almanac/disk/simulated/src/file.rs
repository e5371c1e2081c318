//! An open file of a simulated disk.

use std::io;
use std::sync::{Arc, MutexGuard};

use punctual_disk::File;

use crate::medium::{Medium, Stop};
use crate::{Call, SimulatedDisk};

/// An open file; it goes on to have its bytes when it has lost its name.
pub(crate) struct SimulatedFile {
    disk: SimulatedDisk,
    inode: u64,
}

impl SimulatedFile {
    pub(crate) fn open(disk: &SimulatedDisk, medium: &mut Medium, inode: u64) -> Arc<dyn File> {
        medium.inode(inode).open += 1;
        Arc::new(SimulatedFile { disk: disk.clone(), inode })
    }

    /// The medium, and the name by which faults know the file.
    fn medium(&self) -> (MutexGuard<'_, Medium>, Arc<str>) {
        let mut medium = self.disk.medium();
        let name = Arc::clone(&medium.inode(self.inode).name);
        (medium, name)
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        self.disk.medium().close(self.inode);
    }
}

impl File for SimulatedFile {
    fn len(&self) -> io::Result<u64> {
        let (mut medium, name) = self.medium();
        medium.enter(Call::Length, &name)?;
        Ok(medium.inode(self.inode).visible.length())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let (mut medium, name) = self.medium();
        medium.enter(Call::Read, &name)?;
        if medium.inode(self.inode).visible.read(offset, buffer) {
            Ok(())
        } else {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("{name} ends before what is read")))
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (mut medium, name) = self.medium();
        match medium.enter(Call::Write, &name) {
            Ok(()) => medium.write(self.inode, offset, bytes),
            Err(stop) => {
                let written = match stop {
                    Stop::PowerGoes => bytes,
                    Stop::PowerIsGone => &[],
                    Stop::Fault(_) => medium.some_first(bytes),
                };
                // The call has failed already, however this goes.
                let _ = medium.write(self.inode, offset, written);
                Err(stop.into())
            }
        }
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let (mut medium, name) = self.medium();
        medium.perform(Call::Allocate, &name, |medium| medium.allocate(self.inode, length))
    }

    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        let (mut medium, name) = self.medium();
        medium.perform(Call::Punch, &name, |medium| {
            medium.punch(self.inode, offset, length);
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        let (mut medium, name) = self.medium();
        match medium.enter(Call::Sync, &name) {
            Ok(()) => {
                medium.sync(self.inode);
                Ok(())
            }
            Err(stop) => {
                if matches!(stop, Stop::Fault(_)) {
                    medium.fail_sync(self.inode);
                }
                Err(stop.into())
            }
        }
    }
}
