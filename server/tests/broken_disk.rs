//! A disk that fails under the real binary: nothing is guessed, the process ends, and a restart has what was confirmed.
//!
//! The server runs with a library before libc's that lets `fdatasync` of one file fail as soon as another one names it: the
//! journal's live segment. Others succeed: if no new segment could be made either, the disk would look full, and nothing finished be kept.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::json;
use stage::{ALMANAC, Server, eventually};

const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int is_broken(int fd) {
    char link[64], path[4096] = "", name[4096] = "";
    FILE *broken = fopen(getenv("BROKEN_DISK"), "r");
    if (!broken) return 0;
    size_t length = fread(name, 1, sizeof name - 1, broken);
    fclose(broken);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return length > 0 && readlink(link, path, sizeof path - 1) > 0 && strstr(path, name);
}
int fdatasync(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int)) dlsym(RTLD_NEXT, "fdatasync");
    if (is_broken(fd)) { errno = EIO; return -1; }
    return real(fd);
}
"#;

/// The library, made by the C compiler that the build needs anyway.
fn shim(directory: &Path) -> PathBuf {
    let (source, library) = (directory.join("shim.c"), directory.join("shim.so"));
    fs::write(&source, SHIM).unwrap();
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl").status();
    assert!(made.unwrap().success());
    library
}

/// When each segment of the journal was written last.
fn segments(almanac: &Path) -> BTreeMap<String, SystemTime> {
    let files = fs::read_dir(almanac).unwrap().map(Result::unwrap);
    let written =
        files.map(|file| (file.file_name().into_string().unwrap(), file.metadata().unwrap().modified().unwrap()));
    written.filter(|(name, _)| name.starts_with("journal-")).collect()
}

/// The name of the segment that commits are written to: the only one that changes with a commit. Others are made ready at first.
fn live_segment(server: &Server) -> String {
    let almanac = server.data().join("almanac");
    loop {
        let before = segments(&almanac);
        thread::sleep(Duration::from_millis(20));
        server.post("/v1/tasks", &json!({ "topic": "t", "delay": "1h" })).expect(201);
        let mut after = segments(&almanac);
        after.retain(|name, at| before.get(name) != Some(at));
        if after.len() == 1 {
            return after.pop_first().unwrap().0;
        }
    }
}

#[test]
fn a_failed_sync_ends_the_process_and_a_restart_has_what_was_confirmed() {
    let directory = tempfile::tempdir().unwrap();
    let (library, broken) = (shim(directory.path()), directory.path().join("broken"));
    let environment = [("LD_PRELOAD", library.to_str().unwrap()), ("BROKEN_DISK", broken.to_str().unwrap())];
    let mut server = Server::prepare(ALMANAC, &environment);
    server.start_again();
    for id in ["kept", "cancelled"] {
        server.post("/v1/tasks", &json!({ "topic": "t", "id": id, "delay": "1h" })).expect(201);
    }
    let mut waiting = server.connect();
    waiting.send("POST", "/v1/reserve", Some(&json!({ "queues": ["t"], "wait": "60s" })));
    eventually("a consumer waits", || server.get("/v1/stats").expect(200).json()["waiting_consumers"] == 1);

    fs::write(&broken, live_segment(&server)).unwrap();
    let unknown = server.delete("/v1/tasks/t/cancelled").expect(503).json();
    assert_eq!(unknown["code"], "outcome-unknown");
    assert!(unknown["detail"].as_str().unwrap().contains("unknown"), "{unknown}");
    // Who waits hears of the trouble, or that nothing came, whichever is first: the end follows at once.
    let answer = waiting.receive();
    assert!(answer.status == 503 || answer.json()["deliveries"] == json!([]), "{answer:?}");
    assert_eq!(server.wait().code(), Some(1));
    server.says("must be restarted");

    fs::remove_file(&broken).unwrap();
    server.start_again();
    server.get("/v1/tasks/t/kept").expect(200);
    let again = server.delete("/v1/tasks/t/cancelled");
    assert!([200, 409].contains(&again.status), "it was cancelled then, or it is now: {again:?}");
}
