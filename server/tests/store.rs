//! `punctual store check` and `show`, on files of the first version of the format and beside a running server.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use stage::{ALMANAC, Ended, Server, punctual, run};
use tempfile::TempDir;

/// A copy of the store that tests of the format keep, in `almanac` of a data directory.
fn kept_store() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let almanac = directory.path().join("almanac");
    fs::create_dir(&almanac).unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stores/almanac/tests/fixtures/v1");
    for entry in fs::read_dir(fixture).unwrap().map(Result::unwrap) {
        if entry.file_name() != "expected.txt" {
            fs::copy(entry.path(), almanac.join(entry.file_name())).unwrap();
        }
    }
    directory
}

fn store(arguments: &[&str], directory: &Path) -> Ended {
    run(punctual().arg("store").arg(arguments[0]).arg(directory).args(&arguments[1..]))
}

/// All files of a directory with their bytes.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

fn flip(path: &Path, offset: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[offset] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn rows(shown: &Ended) -> usize {
    shown.stdout.lines().filter(|line| line.contains("  seq ")).count()
}

#[test]
fn clean_is_told_from_damaged_and_nothing_is_changed() {
    let directory = kept_store();
    let almanac = directory.path().join("almanac");
    let before = files(&almanac);
    // The data directory will do as well as the almanac in it.
    let clean = store(&["check"], directory.path());
    assert_eq!((clean.code, clean.stderr.as_str()), (Some(0), ""), "{}", clean.stdout);
    assert!(clean.stdout.contains("clean"), "{}", clean.stdout);
    let shown = store(&["show", "--rows"], &almanac);
    assert_eq!(shown.code, Some(0));
    assert!(shown.stdout.contains("manifest: format 1, sequence") && rows(&shown) > 3, "{}", shown.stdout);
    assert_eq!(rows(&store(&["show", "--rows", "--limit", "3"], &almanac)), 3);
    assert_eq!(files(&almanac), before);

    let name = before.keys().rfind(|name| name.starts_with("run-")).unwrap();
    flip(&almanac.join(name), 100);
    let damaged = store(&["check"], &almanac);
    assert_eq!(damaged.code, Some(1), "{}", damaged.stdout);
    assert!(damaged.stdout.contains(&format!("{name}, byte 24: a data block has a wrong checksum")));
    assert!(damaged.stdout.contains("`punctual store show --rows"), "it says what to do: {}", damaged.stdout);
    let shown = store(&["show", "--rows"], &almanac);
    assert_eq!(shown.code, Some(1));
    assert!(shown.stdout.contains("LOST") && rows(&shown) > 0, "{}", shown.stdout);

    flip(&almanac.join("manifest"), 50);
    let damaged = store(&["check"], &almanac);
    assert!(damaged.code == Some(1) && damaged.stdout.contains("manifest, byte 12"), "{}", damaged.stdout);
    assert_eq!(store(&["show"], &almanac).code, Some(1));
    assert_eq!(files(&almanac).len(), before.len());
}

#[test]
fn json_is_one_object_on_a_line() {
    let directory = kept_store();
    let lines = |arguments: &[&str]| -> Vec<Value> {
        let ended = store(&[arguments, &["--json"]].concat(), directory.path());
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let [report] = <[Value; 1]>::try_from(lines(&["check"])).unwrap();
    assert_eq!((&report["clean"], &report["damage"]), (&json!(true), &json!([])));
    let shown = lines(&["show", "--rows", "--limit", "2"]);
    assert_eq!(shown.len(), 3, "what is in it, and two rows");
    assert!(shown[1]["topic"].is_string() && shown[1]["seq"].is_u64(), "{}", shown[1]);
}

#[test]
fn it_says_why_it_cannot_look() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    fs::write(here.join("file"), "text").unwrap();
    for command in ["check", "show"] {
        for (place, why) in [(here.join("nowhere"), "nowhere cannot be read"), (here.to_owned(), "contains no almanac")]
        {
            let ended = store(&[command], &place);
            assert!(ended.code == Some(2) && ended.stderr.contains(why), "{command}: {}", ended.stderr);
        }
        let ended = store(&[command], &here.join("file"));
        assert!(ended.code == Some(2) && ended.stderr.contains("not a directory"), "{}", ended.stderr);
        let ended = store(&[command, "--mend"], here);
        assert!(ended.code == Some(2) && ended.stderr.contains("--mend"), "{}", ended.stderr);
    }
    assert_eq!(files(here).len(), 1, "nothing was made");

    let kept = kept_store();
    let manifest = kept.path().join("almanac/manifest");
    let mut bytes = fs::read(&manifest).unwrap();
    bytes[8] = 9;
    fs::write(&manifest, bytes).unwrap();
    let ended = store(&["check"], kept.path());
    assert!(ended.code == Some(2) && ended.stderr.contains("use a newer Punctual"), "{}", ended.stderr);
}

#[test]
fn a_store_is_looked_at_beside_the_server_that_uses_it() {
    let server = Server::start_with(ALMANAC);
    server.post("/v1/tasks", &json!({ "topic": "t", "id": "here", "delay": "1h" })).expect(201);
    let shown = run(punctual().args(["store", "show", "--rows", "--topic", "t"]).arg(server.data()));
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("in use") && shown.stdout.contains("t/here"), "{}", shown.stdout);
    server.get("/readyz").expect(200);
}
