//! A server's process with all that it starts: what it uses, and its end. None outlives this program, whether that
//! ends well, panics or is killed itself.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

pub struct Process {
    child: Child,
}

impl Process {
    /// What it says goes to a file.
    pub fn start(command: &[String], log: &Path) -> io::Result<Process> {
        let log = File::options().create(true).append(true).open(log)?;
        // The kernel kills it if we die without a chance to; the program takes the place of setpriv, under its pid.
        let mut setpriv = Command::new("setpriv");
        setpriv.args(["--pdeathsig", "KILL"]).args(command);
        setpriv.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // Ours are not the server's: they say where to find it, and that freed memory stays with this process.
        for (name, _) in env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"PUNCTUAL_") || name == "MIMALLOC_PURGE_DELAY" {
                setpriv.env_remove(name);
            }
        }
        Ok(Process { child: setpriv.spawn()? })
    }

    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills it and its children with -9, and waits until they are gone.
    pub fn kill(&mut self) {
        let children = self.children();
        // Who has ended by itself needs no killing.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for &pid in &children {
            if let Some(pid) = Pid::from_raw(pid as i32) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        let started = Instant::now();
        while children.iter().any(|pid| is_running(*pid)) && started.elapsed() < Duration::from_secs(10) {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// The resident memory of the process alone, in bytes.
    pub fn resident(&self) -> u64 {
        kibibytes(&format!("/proc/{}/status", self.child.id()), "VmRSS:")
    }

    /// The memory of it and its children, what they share divided among them, in bytes.
    pub fn proportional(&self) -> u64 {
        let pids = self.children().into_iter().chain([self.child.id()]);
        pids.map(|pid| kibibytes(&format!("/proc/{pid}/smaps_rollup"), "Pss:")).sum()
    }

    /// The processor time of it and its children, those that have ended included.
    pub fn cpu(&self) -> Duration {
        // Linux counts in hundredths of a second here, whatever its own tick is.
        const TICK: Duration = Duration::from_millis(10);
        let ticks = |pid: u32, fields: usize| -> u32 {
            let Some(stat) = stat(pid) else { return 0 };
            stat.iter().skip(11).take(fields).filter_map(|field| field.parse::<u32>().ok()).sum()
        };
        let children: u32 = self.children().into_iter().map(|pid| ticks(pid, 2)).sum();
        (ticks(self.child.id(), 4) + children) * TICK
    }

    /// Waits until the work in the background is done: less than a tenth of a core for a second, or a minute at most.
    pub async fn settle(&self) {
        const WINDOW: Duration = Duration::from_millis(250);
        let started = Instant::now();
        let mut quiet = 0;
        while quiet < 4 && started.elapsed() < Duration::from_secs(60) {
            let before = self.cpu();
            tokio::time::sleep(WINDOW).await;
            quiet = if self.cpu().saturating_sub(before) < WINDOW / 10 { quiet + 1 } else { 0 };
        }
    }

    fn children(&self) -> Vec<u32> {
        let parent = self.child.id().to_string();
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter(|pid| stat(*pid).is_some_and(|stat| stat.get(1) == Some(&parent))).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The fields of /proc/PID/stat from the state on: the name before them may hold blanks.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

fn is_running(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| stat[0] != "Z")
}

/// A number of kibibytes in a file of the kernel, in bytes; 0 if the process has just ended.
fn kibibytes(path: &str, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) * 1024
}
