//! Why the server gives up, and the exit code that tells scripts which kind of reason it is.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

/// Why the server gives up. The text says what to do about it.
#[derive(Debug)]
pub enum Failure {
    /// The configuration or the call is wrong: exit code 2, and trying again does not help.
    Usage(String),
    /// Something did not work: exit code 1.
    Failed(String),
}

impl Failure {
    /// For `map_err`: something did not work.
    pub fn failed(error: impl fmt::Display) -> Failure {
        Failure::Failed(error.to_string())
    }

    /// Tells it on standard error.
    pub fn report(&self) -> ExitCode {
        // If not even this can be written there is nobody left to tell.
        let _ = writeln!(std::io::stderr(), "error: {self}");
        self.code()
    }

    /// Tells it in the log, for whoever reads that by machine.
    pub fn log(&self) -> ExitCode {
        tracing::error!("{self}");
        self.code()
    }

    fn code(&self) -> ExitCode {
        match self {
            Failure::Usage(_) => ExitCode::from(2),
            Failure::Failed(_) => ExitCode::from(1),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Usage(text) | Failure::Failed(text)) = self;
        f.write_str(text)
    }
}
