//! What the machine is and has: the facts printed above the table, the packages of the peers, a free port.

use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// What a small synced write costs on this disk, in the median of 200: every synced answer waits for one.
pub fn sync_latency(directory: &Path) -> Duration {
    let path = directory.join("punctual-bench-sync");
    let mut file = File::create(&path).expect("a file can be made where the servers keep their data");
    let mut took: Vec<Duration> = (0..200)
        .map(|_| {
            let started = Instant::now();
            file.write_all(&[b'x'; 256]).and_then(|()| file.sync_data()).expect("the disk takes it");
            started.elapsed()
        })
        .collect();
    // It was made a moment ago by us; a failure to remove it harms nobody.
    let _ = fs::remove_file(&path);
    took.sort_unstable();
    took[took.len() / 2]
}

/// Processor, cores, memory and kernel, and how many others want a core at this moment.
pub fn description() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let after = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        line.split_once(':').map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let kibibytes: u64 =
        after(&read("/proc/meminfo"), "MemTotal").split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    let processor = after(&read("/proc/cpuinfo"), "model name");
    let kernel = read("/proc/sys/kernel/osrelease");
    let (kernel, memory) = (kernel.trim(), kibibytes >> 20);
    let busy = read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned();
    format!("{cores} cores ({processor}), {memory} GiB of memory, Linux {kernel}; load average {busy}")
}

/// The processor time that this process, the load, has used.
pub fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A port that was free a moment ago. Nobody else takes one by chance: the system hands them out in turn.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback has a free port");
    listener.local_addr().expect("it is bound").port()
}

/// A program that is called by its name alone.
pub fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(name)).find(|program| program.is_file())
}

/// Finds a peer's program, and installs its package if it is not there.
pub fn program(package: &str, find: impl Fn() -> Option<PathBuf>) -> Result<PathBuf, String> {
    if let Some(found) = find() {
        return Ok(found);
    }
    eprintln!("{package} is missing: apt-get install -y {package}");
    let mut install = Command::new("apt-get");
    install.args(["install", "-y", package]).env("DEBIAN_FRONTEND", "noninteractive");
    let output = install.output().map_err(|error| format!("apt-get cannot be run: {error}"))?;
    find().ok_or_else(|| format!("{package} cannot be installed: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// The first line that a program says about its version.
pub fn version(program: &Path, option: &str) -> String {
    let output = Command::new(program).arg(option).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("version unknown").to_owned()
}
