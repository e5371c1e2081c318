//! Directories that go with what stands for them, and also with the process.

use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory for a server's files. A small process beside ours removes it as soon as ours lets go of it, which it
/// also does by being killed.
pub(crate) struct Scratch {
    path: PathBuf,
    broom: Child,
}

/// Waits for the end of its input. What a server that is just dying writes may be in the way of the first attempt.
const SWEEP: &str = r#"cat >/dev/null; rm -rf "$1" 2>/dev/null || { sleep 1; rm -rf "$1"; }"#;

impl Scratch {
    pub(crate) fn new(what: &str) -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("punctual-{what}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = env::temp_dir().join(name);
        // What is there is from a process of the same number, long ago.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory for temporary files is there");
        let broom = Command::new("sh")
            .args(["-c", SWEEP, "sweep"])
            .arg(&path)
            .stdin(Stdio::piped())
            // In a group of its own, so that Ctrl-C does not end it before its work.
            .process_group(0)
            .spawn()
            .expect("there is a shell");
        Scratch { path, broom }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.broom.stdin = None;
        let _ = self.broom.wait();
    }
}
