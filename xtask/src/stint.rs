//! A command that is run beside others: what it says is kept, and told as one when it has ended.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a command may take that waits for nobody: several times what the longest takes on a busy machine. What is stuck
/// is to be told in one line, and not by a run that never ends.
pub const PATIENCE: Duration = Duration::from_secs(1_200);
/// The same for one that only gets what others leave.
const MORE_PATIENCE: Duration = Duration::from_secs(3_600);

/// A command, and how it is called in a log.
#[derive(Clone, Debug)]
pub struct Stint {
    pub label: String,
    pub program: PathBuf,
    pub args: Vec<String>,
    pub directory: PathBuf,
    pub envs: Vec<(&'static str, String)>,
    /// How long it may take.
    pub patience: Duration,
}

/// What came of a stint.
pub struct Ended {
    pub is_well: bool,
    pub took: Duration,
    /// What it has said, and why it ended if that was not its own doing.
    pub said: String,
}

impl Stint {
    /// One line of a shell without any quoting.
    pub fn line(line: &str) -> Stint {
        let mut words = line.split_whitespace();
        Stint {
            label: line.to_owned(),
            program: words.next().expect("a command line starts with its program").into(),
            args: words.map(str::to_owned).collect(),
            directory: concat!(env!("CARGO_MANIFEST_DIR"), "/..").into(),
            envs: Vec::new(),
            patience: PATIENCE,
        }
    }

    pub fn env(mut self, name: &'static str, value: &str) -> Stint {
        self.label = format!("{name}={value:?} {}", self.label);
        self.envs.push((name, value.to_owned()));
        self
    }

    /// The same for when nothing else wants the processor. Whoever wakes up has it at once, which a low priority alone does not
    /// give: tests look at the clock.
    pub fn in_leisure(self) -> Stint {
        let args = ["--idle".to_owned(), "0".to_owned(), self.program.display().to_string()];
        Stint {
            program: "chrt".into(),
            patience: MORE_PATIENCE,
            args: args.into_iter().chain(self.args).collect(),
            ..self
        }
    }

    pub fn run(&self) -> Ended {
        let begun = Instant::now();
        let (is_well, said) = match self.spawn() {
            Ok((child, pipe)) => see_to_its_end(child, pipe, self.patience),
            Err(error) => (false, format!("cannot run `{}`: {error}\n", self.program.display())),
        };
        Ended { is_well, took: begun.elapsed(), said }
    }

    /// Starts it with one pipe for all that it says, so that this stays in its order.
    fn spawn(&self) -> io::Result<(Child, io::PipeReader)> {
        let (reader, writer) = io::pipe()?;
        let child = Command::new(&self.program)
            .args(&self.args)
            .envs(self.envs.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .spawn()?;
        Ok((child, reader))
    }
}

fn see_to_its_end(mut child: Child, pipe: io::PipeReader, patience: Duration) -> (bool, String) {
    let (until, heard) = (Instant::now() + patience, hear(pipe));
    let (mut said, mut is_stuck) = (Vec::new(), false);
    loop {
        match heard.recv_timeout(Duration::from_secs(1)) {
            Ok(piece) => said.extend(piece),
            Err(RecvTimeoutError::Disconnected) => break,
            // Whoever it left behind may hold the pipe open.
            Err(RecvTimeoutError::Timeout) if matches!(child.try_wait(), Ok(Some(_))) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if Instant::now() > until && !is_stuck {
            is_stuck = true;
            // Not much can be done if that fails.
            _ = child.kill();
        }
    }
    let mut said = String::from_utf8_lossy(&said).into_owned();
    if is_stuck {
        said.push_str(&format!("\nit was killed, because it had not ended after {patience:?}\n"));
    }
    let status = child.wait();
    if let Some(how) = how_it_ended(&status) {
        said.push_str(&how);
    }
    (!is_stuck && status.is_ok_and(|status| status.success()), said)
}

/// What there is to say of an end, if there is something.
fn how_it_ended(status: &io::Result<ExitStatus>) -> Option<String> {
    match status {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("it ended with {status}\n")),
        Err(error) => Some(format!("nobody knows how it ended: {error}\n")),
    }
}

/// What comes through a pipe, on a channel: so one can also wait for it with an eye on the clock.
fn hear(mut pipe: io::PipeReader) -> mpsc::Receiver<Vec<u8>> {
    let (teller, heard) = mpsc::channel();
    thread::spawn(move || {
        let mut piece = [0; 1 << 14];
        while let Ok(length @ 1..) = pipe.read(&mut piece) {
            if teller.send(piece[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    heard
}
