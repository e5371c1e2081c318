//! Data that is gone or in the wrong hands: a store that lost something does not start as if nothing had been, and
//! nobody else can read what is there.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use serde_json::json;
use stage::{ALMANAC, Server, eventually, punctual, run};

/// A server that was killed after it had taken tasks.
fn killed() -> Server {
    let mut server = Server::start_with(ALMANAC);
    for number in 0..20 {
        server.post("/v1/tasks", &json!({ "topic": "t", "id": number.to_string(), "delay": "1h" })).expect(201);
    }
    server.kill();
    server
}

/// Does not start, and says why and what to do.
fn is_refused(server: &mut Server, why: &str) {
    server.spawn();
    assert_eq!(server.wait().code(), Some(1));
    server.wait_for(why);
    server.wait_for("punctual serve --force-open");
}

/// Starts on the same data when told to do without what is lost.
fn forced(server: &Server) -> Server {
    Server::start_with(&["--data", server.data().to_str().unwrap(), "--force-open", "--store", "almanac"])
}

/// The file of the journal that has the highest number.
fn latest_segment(data: &Path) -> std::path::PathBuf {
    let files = fs::read_dir(data.join("almanac")).unwrap().map(|entry| entry.unwrap().path());
    let number = |path: &std::path::PathBuf| {
        let bytes = fs::read(path).unwrap();
        bytes.starts_with(b"PUNCJRNL").then(|| u64::from_le_bytes(bytes[20..28].try_into().unwrap()))
    };
    files.filter(|path| number(path).is_some()).max_by_key(number).unwrap()
}

#[test]
fn a_data_directory_that_had_a_store_and_lost_it_is_refused() {
    let mut server = killed();
    fs::remove_dir_all(server.data().join("almanac")).unwrap();
    is_refused(&mut server, "the store that was in");
    let mut forced = forced(&server);
    forced.wait_for("Everything in it is lost");
    forced.get("/v1/tasks/t/1").expect(404);
    forced.post("/v1/tasks", &json!({ "topic": "t", "id": "new", "delay": "1h" })).expect(201);
    forced.stop();
    server.start_again();
    server.get("/v1/tasks/t/new").expect(200);
}

#[test]
fn a_journal_that_lost_a_segment_is_refused_and_forced_says_what_is_lost() {
    let mut server = killed();
    let segment = latest_segment(&server.data());
    fs::remove_file(&segment).unwrap();
    is_refused(&mut server, segment.file_name().unwrap().to_str().unwrap());
    let mut forced = forced(&server);
    forced.wait_for("Lost commits: ");
    forced.stop();
    server.start_again();
    server.get("/readyz").expect(200);
}

#[test]
fn a_store_that_lost_its_note_of_how_far_it_went_is_refused_and_forced_has_all_its_tasks() {
    let mut server = killed();
    fs::remove_file(server.data().join("almanac/reach")).unwrap();
    is_refused(&mut server, "reach is damaged");
    let mut forced = forced(&server);
    forced.wait_for("How far the journal went is unknown");
    forced.get("/v1/tasks/t/19").expect(200);
    forced.stop();
    server.start_again();
    server.get("/v1/tasks/t/19").expect(200);
}

#[test]
fn a_killed_server_whose_last_records_are_wiped_is_refused() {
    let mut server = killed();
    let segment = latest_segment(&server.data());
    let mut bytes = fs::read(&segment).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[end - 200..=end].fill(0);
    fs::write(&segment, bytes).unwrap();
    is_refused(&mut server, "were on disk");
}

fn modes_below(directory: &Path) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let metadata = entry.metadata().unwrap();
        let allowed = if metadata.is_dir() { 0o700 } else { 0o600 };
        if metadata.mode() & 0o777 != allowed {
            found.push((entry.path().display().to_string(), metadata.mode() & 0o777));
        }
        if metadata.is_dir() {
            found.extend(modes_below(&entry.path()));
        }
    }
    found
}

#[test]
fn every_file_of_the_store_is_private_whoever_made_the_data_directory() {
    for mode in [0o755, 0o775, 0o777] {
        let mut server = Server::prepare(ALMANAC, &[]);
        let almanac = server.data().join("almanac");
        fs::create_dir_all(&almanac).unwrap();
        fs::set_permissions(server.data(), Permissions::from_mode(mode)).unwrap();
        fs::set_permissions(&almanac, Permissions::from_mode(mode)).unwrap();
        server.start_again();
        server.post("/v1/tasks", &json!({ "topic": "t", "delay": "1h" })).expect(201);
        assert_eq!(modes_below(&server.data()), [], "in one of {mode:o}");
        // As an older version has left them.
        server.kill();
        for entry in fs::read_dir(&almanac).unwrap().map(Result::unwrap) {
            fs::set_permissions(entry.path(), Permissions::from_mode(0o644)).unwrap();
        }
        fs::set_permissions(server.data().join("secret"), Permissions::from_mode(0o660)).unwrap();
        server.start_again();
        assert_eq!(modes_below(&server.data()), [], "in one of {mode:o}");
    }
}

#[test]
fn a_token_that_root_makes_is_for_the_owner_of_the_data_directory() {
    let directory = tempfile::tempdir().unwrap();
    chown(directory.path(), Some(12_345), Some(54_321)).expect("this test is run by root");
    let data = directory.path().to_str().unwrap();
    for name in ["one", "two"] {
        let made = run(punctual().args(["token", "create", "--name", name, "--role", "admin", "--data", data]));
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        let found = fs::metadata(directory.path().join("tokens.toml")).unwrap();
        assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (12_345, 54_321, 0o600));
    }
}

#[test]
fn a_token_file_keeps_its_owner_and_mode() {
    let directory = tempfile::tempdir().unwrap();
    let (data, file) = (directory.path().to_str().unwrap(), directory.path().join("tokens.toml"));
    let token = |arguments: &[&str]| {
        let done = run(punctual().arg("token").args(arguments).args(["--data", data]));
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        let found = fs::metadata(&file).unwrap();
        (found.uid(), found.gid(), found.mode() & 0o777)
    };
    // A directory of root's that the server's group may look into: so it may read what is made there.
    chown(directory.path(), Some(0), Some(54_321)).expect("this test is run by root");
    fs::set_permissions(directory.path(), Permissions::from_mode(0o750)).unwrap();
    assert_eq!(token(&["create", "--name", "a", "--role", "admin"]), (0, 54_321, 0o640));
    // As somebody has set it since.
    chown(&file, Some(12_345), Some(23_456)).unwrap();
    for (mode, kept) in [(0o600, 0o600), (0o640, 0o640), (0o440, 0o440), (0o644, 0o640)] {
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        assert_eq!(token(&["create", "--name", "b", "--role", "admin"]), (12_345, 23_456, kept), "of {mode:o}");
        assert_eq!(token(&["revoke", "b"]), (12_345, 23_456, kept), "of {mode:o}");
    }
}

#[test]
fn tokens_that_cannot_be_read_let_nobody_in() {
    let mut server = Server::start_with(ALMANAC);
    server.get("/v1/topics").expect(200);
    // Nobody can read a directory as a file, not even root.
    fs::create_dir(server.data().join("tokens.toml")).unwrap();
    eventually("the doors close", || server.get("/v1/topics").status == 401);
    server.wait_for("every request is refused");
    server.kill();
    server.spawn();
    assert_ne!(server.wait().code(), Some(0), "it does not start open");
}
