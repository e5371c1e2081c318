//! Asking before something that cannot be taken back.

use std::io::{self, BufRead, IsTerminal, Write};

use super::failure::{Exit, Failure};
use super::output::counted;
use super::plain::plain;

/// Asks on stderr and reads a line from stdin. Without a terminal nobody can answer, so `--yes` is needed there.
pub fn confirm(question: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(Failure::usage(format!("{question} There is no terminal to ask on: confirm with --yes")));
    }
    let mut stderr = io::stderr();
    let _ = write!(stderr, "{} [y/N] ", plain(question));
    let _ = stderr.flush();
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| Failure::local("stdin cannot be read", error))?;
    if is_yes(&answer) { Ok(()) } else { Err(Failure::new(Exit::Failed, "nothing was changed")) }
}

/// Asks whether a topic or a queue is to be deleted with so many tasks in it.
pub fn confirm_deletion(what: &str, held: u64, yes: bool) -> Result<(), Failure> {
    confirm(&format!("Delete {what} and {} in it?", counted(held, "task")), yes || held == 0)
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        assert!(is_yes("y\n") && is_yes("YES\r\n"));
        assert!(!is_yes("") && !is_yes("\n") && !is_yes("yep") && !is_yes("n"));
    }

    #[test]
    fn who_said_yes_before_is_not_asked() {
        assert_eq!(confirm("Purge everything?", true), Ok(()));
    }
}
