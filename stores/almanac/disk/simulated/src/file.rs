//! An open file of a simulated disk.

use std::io;
use std::sync::{Arc, MutexGuard};

use punctual_disk::File;

use crate::state::{State, Stop};
use crate::{Call, SimulatedDisk};

/// An open file; it goes on to have its bytes when it has lost its name.
pub(crate) struct SimulatedFile {
    disk: SimulatedDisk,
    node: u64,
}

impl SimulatedFile {
    pub(crate) fn open(disk: &SimulatedDisk, state: &mut State, node: u64) -> Arc<dyn File> {
        state.node(node).open += 1;
        Arc::new(SimulatedFile { disk: disk.clone(), node })
    }

    /// The state, and the name by which faults know the file.
    fn state(&self) -> (MutexGuard<'_, State>, Arc<str>) {
        let mut state = self.disk.state();
        let name = Arc::clone(&state.node(self.node).name);
        (state, name)
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        self.disk.state().close(self.node);
    }
}

impl File for SimulatedFile {
    fn len(&self) -> io::Result<u64> {
        let (mut state, name) = self.state();
        state.enter(Call::Length, &name)?;
        Ok(state.node(self.node).visible.length())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let (mut state, name) = self.state();
        state.enter(Call::Read, &name)?;
        if state.node(self.node).visible.read(offset, buffer) {
            Ok(())
        } else {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("{name} ends before what is read")))
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (mut state, name) = self.state();
        match state.enter(Call::Write, &name) {
            Ok(()) => state.write(self.node, offset, bytes),
            Err(stop) => {
                let written = match stop {
                    Stop::PowerGoes => bytes,
                    Stop::PowerIsGone => &[],
                    Stop::Fault(_) => state.some_first(bytes),
                };
                // The call has failed already, however this goes.
                let _ = state.write(self.node, offset, written);
                Err(stop.into())
            }
        }
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let (mut state, name) = self.state();
        state.perform(Call::Allocate, &name, |state| state.allocate(self.node, length))
    }

    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        let (mut state, name) = self.state();
        state.perform(Call::Punch, &name, |state| {
            state.punch(self.node, offset, length);
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        let (mut state, name) = self.state();
        match state.enter(Call::Sync, &name) {
            Ok(()) => {
                state.sync(self.node);
                Ok(())
            }
            Err(stop) => {
                if matches!(stop, Stop::Fault(_)) {
                    state.fail_sync(self.node);
                }
                Err(stop.into())
            }
        }
    }
}
