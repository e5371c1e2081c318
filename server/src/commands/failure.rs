//! Why a command ended without success: one line for people, one exit code for scripts.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use punctual_client::Error;
use punctual_wire::Problem;

use super::plain::plain;

/// What the exit codes mean, for `--help`. They never change their meaning.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed: the server refused or had an error
  2  wrong usage
  3  no such task, topic or queue
  4  too late to cancel, reschedule, or revoke
  5  the server cannot be reached, or did not answer in time
  6  not allowed: no token, or a token without the required role";

/// What stands below a command's options: examples, and the exit codes in short.
macro_rules! help {
    ($text:literal) => {
        concat!(
            $text,
            "\n\nExit codes: 0 done, 1 failed or refused, 2 wrong usage, 3 no such task, topic or queue, \
             4 too late,\n5 server unreachable, 6 not allowed."
        )
    };
}
pub(super) use help;

/// How a command ended if it did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The server refused it or had an error.
    Failed = 1,
    /// It was asked for in a way that makes no sense.
    Usage = 2,
    /// There is no such task, topic or queue.
    Missing = 3,
    /// The task is with a consumer, or finished.
    TooLate = 4,
    /// Nobody answers.
    Unreachable = 5,
    /// The token is missing, wrong, or lacks the right.
    NotAllowed = 6,
}

/// Why a command ended without success.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// For this reason.
    Told {
        /// For scripts.
        exit: Exit,
        /// For people: what is wrong and what to do.
        message: String,
    },
    /// Whoever read the output has seen enough, as `head` does. That is no failure.
    PipeClosed,
}

impl Failure {
    /// A failure with its reason.
    pub fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure::Told { exit, message: message.into() }
    }

    /// Something that makes no sense.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, message)
    }

    /// Something on this machine that went wrong, such as a file that cannot be read.
    pub fn local(what: impl fmt::Display, error: impl fmt::Display) -> Failure {
        Failure::new(Exit::Failed, format!("{what}: {error}"))
    }

    /// A topic or a queue that is not there.
    pub fn no_such(noun: &str, name: &str) -> Failure {
        Failure::missing(format!("there is no {noun} {name}: see all with `punctual {noun}s`"))
    }

    /// Something that is not there.
    pub fn missing(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Missing, message)
    }

    /// Says it on stderr and ends the program.
    pub fn report(&self) -> ExitCode {
        match self {
            Failure::PipeClosed => ExitCode::SUCCESS,
            Failure::Told { exit, message } => {
                // If not even this can be written there is nobody left to tell.
                let _ = writeln!(io::stderr(), "error: {}", plain(message));
                ExitCode::from(*exit as u8)
            }
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::PipeClosed,
            _ => Failure::local("the output cannot be written", error),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        match error.io_error_kind() {
            Some(kind) => Failure::from(io::Error::from(kind)),
            None => Failure::local("the output cannot be written as JSON", error),
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        let exit = match (problem.code.as_str(), problem.status) {
            ("too-late" | "lease-lost", _) => Exit::TooLate,
            (_, 401 | 403) => Exit::NotAllowed,
            (_, 404) => Exit::Missing,
            _ => Exit::Failed,
        };
        let hint = match (problem.code.as_str(), problem.status) {
            (_, 401) => "; give a token with --token or PUNCTUAL_TOKEN",
            (_, 403) => "; use a token with the required role",
            ("not-empty", _) => "; --force deletes it with everything in it",
            ("no-such-topic", _) => "; `punctual topics` lists the topics",
            ("no-such-queue", _) => "; `punctual queues` lists the queues",
            _ => "",
        };
        Failure::new(exit, format!("{problem}{hint}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Problem(problem) => Failure::from(*problem),
            Error::Untrusted { .. } => {
                Failure::new(Exit::Unreachable, format!("{error}; give a certificate to trust with --ca FILE"))
            }
            Error::NoServer { ref tried } if tried.iter().all(|tried| tried.error.problem().is_some()) => {
                Failure::new(Exit::Failed, error.to_string())
            }
            other => Failure::new(exit_of(&other), other.to_string()),
        }
    }
}

fn exit_of(error: &Error) -> Exit {
    match error {
        Error::Unreachable { .. } | Error::Timeout { .. } | Error::NoServer { .. } => Exit::Unreachable,
        Error::BadUrl { .. } | Error::BadToken | Error::BadUse { .. } | Error::BadCertificate { .. } => Exit::Usage,
        _ => Exit::Failed,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    fn exit(code: &str, status: u16) -> Exit {
        let problem = Problem { code: code.into(), status, ..Problem::default() };
        match Failure::from(problem) {
            Failure::Told { exit, .. } => exit,
            Failure::PipeClosed => panic!("a problem is told"),
        }
    }

    #[test]
    fn problems_have_the_exit_codes_that_are_documented() {
        assert_eq!(exit("too-late", 409), Exit::TooLate);
        assert_eq!(exit("not-empty", 409), Exit::Failed);
        assert_eq!(exit("no-such-task", 404), Exit::Missing);
        assert_eq!(exit("unauthorized", 401), Exit::NotAllowed);
        assert_eq!(exit("forbidden", 403), Exit::NotAllowed);
        assert_eq!(exit("overloaded", 503), Exit::Failed);
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let closed = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(closed, Failure::PipeClosed);
        let error = serde_json::Error::io(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(Failure::from(error), Failure::PipeClosed);
    }
}
