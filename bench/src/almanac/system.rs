//! What the system says about this process and its directory.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The processor time that all threads of this process have used.
pub fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The bytes that were written to the disk on which this directory is, by whomever. What a process itself is
/// charged with is no measure: the kernel charges a whole folio of the page cache for each byte that makes it dirty.
pub fn written(directory: &Path) -> u64 {
    const SECTOR: u64 = 512;
    // The nearest directory that is there: the store's own may be still to come.
    let device = directory.ancestors().find_map(|path| fs::metadata(path).ok()).expect("a directory is there").dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let counters = read(&format!("/sys/dev/block/{major}:{minor}/stat"));
    counters.split_whitespace().nth(6).and_then(|number| number.parse::<u64>().ok()).expect("a number") * SECTOR
}

/// The resident memory, in bytes.
pub fn resident() -> u64 {
    number_after(&read("/proc/self/status"), "VmRSS:") * 1024
}

/// The most memory that ever was resident, in bytes.
pub fn resident_at_most() -> u64 {
    number_after(&read("/proc/self/status"), "VmHWM:") * 1024
}

/// The bytes that are allocated on the disk for a directory, as `du` counts them.
pub fn allocated_on_disk(path: &Path) -> u64 {
    // What vanishes while we look was in the middle of being deleted.
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    let own = metadata.blocks() * 512;
    let Ok(entries) = fs::read_dir(path) else { return own };
    own + entries.filter_map(Result::ok).map(|entry| allocated_on_disk(&entry.path())).sum::<u64>()
}

/// Waits until the work in the background is done: less than a tenth of a core for a second. Gives the
/// time it took, or two minutes.
pub fn settle() -> Duration {
    const WINDOW: Duration = Duration::from_millis(250);
    let started = Instant::now();
    let mut quiet = 0;
    while quiet < 4 && started.elapsed() < Duration::from_secs(120) {
        let before = cpu();
        thread::sleep(WINDOW);
        quiet = if cpu() - before < WINDOW / 10 { quiet + 1 } else { 0 };
    }
    started.elapsed().saturating_sub(4 * WINDOW)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).expect("Linux tells about its processes")
}

fn number_after(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the line is there");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number follows")
}
