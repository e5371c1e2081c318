//! What is the same for all engines: a process that is started, killed, stopped and looked at, with its port and its
//! directory.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::process::{Process, wait_until};
use crate::scratch::Scratch;

/// A server of any kind, running or killed.
pub struct Engine {
    // Dropped first: what it writes lies in the directory.
    process: Option<Process>,
    pub(crate) scratch: Scratch,
    pub(crate) port: u16,
}

impl Engine {
    pub(crate) fn new(scratch: Scratch, port: u16) -> Engine {
        Engine { process: None, scratch, port }
    }

    /// Starts it, as another user if we are root and a user is given, and waits until it is ready.
    pub(crate) fn launch(
        &mut self,
        program: &Path,
        arguments: &[String],
        user: Option<&str>,
        mut is_ready: impl FnMut() -> bool,
    ) {
        assert!(self.process.is_none(), "it is running");
        let mut process = Process::start(program, arguments, user, &self.scratch.path().join("log"));
        wait_until("the server to answer", || {
            assert!(!process.is_over(), "{} did not start: {}", program.display(), self.log());
            is_ready()
        });
        self.process = Some(process);
    }

    /// The port of the loopback where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Kills it and all of its children with -9.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Stops it and its children where they are: connections stay, and nothing answers.
    pub fn pause(&self) {
        self.running().pause();
    }

    /// Lets it go on after a pause.
    pub fn go_on(&self) {
        self.running().go_on();
    }

    /// The processor time that all of its processes have used since it was started.
    pub fn cpu(&self) -> Duration {
        self.running().cpu()
    }

    /// What it wrote to its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.scratch.path().join("log")).unwrap_or_default()
    }

    fn running(&self) -> &Process {
        self.process.as_ref().expect("it is running")
    }
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("the path was made of text")
}
