//! Facts about the archive: what a crash leaves behind, what a month's end does, and what readers see.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use punctual_core::store::Position;
use punctual_core::view::{DeliveryView, TaskView};
use punctual_core::{Ending, Form, Millis, Name, Past, Standing, Timestamp};
use punctual_wire::{TaskInfo, Time};
use tempfile::TempDir;

use super::read::ReadError;
use super::{Archivist, Filter, read};

fn time(text: &str) -> Time {
    text.parse().unwrap()
}

/// A task that finished then.
fn task(topic: &str, id: &str, finished: &str) -> TaskView {
    let at = Timestamp::from_millis(time(finished).0);
    TaskView {
        topic: Name::new(topic).unwrap(),
        id: Name::new(id).unwrap(),
        number: 1,
        key: Some(Name::new(format!("key-{id}")).unwrap()),
        body: Bytes::from(format!("{{\"order\":\n\"{id}\"}}")),
        form: Form::Json,
        headers: vec![("a".into(), "b".into())].into_iter().collect(),
        routing_key: None,
        ttl: None,
        retry: None,
        lease_time: None,
        max_lease: None,
        scheduled_at: Timestamp::from_millis(1),
        due: at,
        delivery: DeliveryView {
            number: 1,
            queue: Some(Name::new(topic).unwrap()),
            standing: Standing::Finished { ending: Ending::Done, at },
            lease: None,
            priority: 1,
            attempts: 1,
            failures: 0,
            past: Past::default(),
            delay: Millis::ZERO,
            death: None,
            log: Vec::new(),
        },
        parts: Vec::new(),
        position: Position { at, seq: 1 },
    }
}

const NOVEMBER: &str = "2026-11-15T12:00:00Z";
const DECEMBER: &str = "2026-12-15T12:00:00Z";
const JANUARY: &str = "2027-01-15T12:00:00Z";

struct Shelf {
    directory: TempDir,
}

impl Shelf {
    fn new() -> Shelf {
        Shelf { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn open(&self) -> Archivist {
        Archivist::open(self.path(), time(NOVEMBER)).unwrap()
    }

    fn read(&self, filter: Filter) -> Vec<Result<TaskInfo, ReadError>> {
        read(self.path(), filter).unwrap().collect()
    }

    /// The ids of all that fits; nothing may be wrong.
    fn ids(&self, filter: Filter) -> Vec<String> {
        self.read(filter).into_iter().map(|task| task.unwrap().id).collect()
    }

    fn files(&self) -> Vec<String> {
        let names = fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != "archive.lock").collect();
        names.sort();
        names
    }

    fn november(&self) -> std::path::PathBuf {
        self.path().join("history-2026-11.jsonl.zst")
    }
}

#[test]
fn tasks_come_back_as_they_were_from_the_month_in_which_they_finished() {
    let shelf = Shelf::new();
    shelf.open().write(&[task("t", "1", NOVEMBER), task("t", "2", DECEMBER)]).unwrap();
    assert_eq!(shelf.files(), ["history-2026-11.jsonl.zst", "history-2026-12.jsonl.zst"]);
    let tasks = shelf.read(Filter::default());
    let first = tasks[0].as_ref().unwrap();
    assert_eq!((first.topic.as_str(), first.id.as_str(), first.key.as_deref()), ("t", "1", Some("key-1")));
    assert_eq!(first.body.as_ref().unwrap().get(), "{\"order\": \"1\"}");
    assert_eq!(first.headers["a"], "b");
    assert_eq!(first.due, time(NOVEMBER));
}

#[test]
fn the_usual_tools_can_read_it() {
    let shelf = Shelf::new();
    shelf.open().write(&[task("t", "1", NOVEMBER), task("t", "2", NOVEMBER)]).unwrap();
    let file = fs::read(shelf.november()).unwrap();
    // The library passes over the heads of pieces, as zstdcat does.
    let lines = String::from_utf8(zstd::decode_all(&file[..]).unwrap()).unwrap();
    assert_eq!(lines.lines().count(), 2);
    assert!(lines.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{lines}");
}

#[test]
fn filters_leave_out_the_others() {
    let shelf = Shelf::new();
    let tasks = [task("a", "1", NOVEMBER), task("b", "2", NOVEMBER), task("a", "3", DECEMBER)];
    shelf.open().write(&tasks).unwrap();
    let filter = Filter::default;
    assert_eq!(shelf.ids(Filter { topic: Some("a".into()), ..filter() }), ["1", "3"]);
    assert_eq!(shelf.ids(Filter { key: Some("key-2".into()), ..filter() }), ["2"]);
    assert_eq!(shelf.ids(Filter { id: Some("3".into()), ..filter() }), ["3"]);
    assert_eq!(shelf.ids(Filter { from: Some(time(DECEMBER)), ..filter() }), ["3"]);
    assert_eq!(shelf.ids(Filter { until: Some(time(DECEMBER)), ..filter() }), ["1", "2"]);
}

#[test]
fn a_torn_end_is_cut_off_wherever_it_is_torn() {
    let shelf = Shelf::new();
    shelf.open().write(&[task("t", "1", NOVEMBER)]).unwrap();
    let whole = fs::read(shelf.november()).unwrap();
    shelf.open().write(&[task("t", "2", NOVEMBER)]).unwrap();
    let both = fs::read(shelf.november()).unwrap();
    for length in whole.len()..both.len() {
        fs::write(shelf.november(), &both[..length]).unwrap();
        assert_eq!(shelf.ids(Filter::default()), ["1"], "a reader stops before it");
        shelf.open().write(&[task("t", "3", NOVEMBER)]).unwrap();
        assert_eq!(shelf.ids(Filter::default()), ["1", "3"], "torn at {length}");
    }
}

#[test]
fn an_end_that_is_as_long_as_it_should_be_but_did_not_arrive_is_cut_off() {
    let shelf = Shelf::new();
    shelf.open().write(&[task("t", "1", NOVEMBER)]).unwrap();
    let first = fs::read(shelf.november()).unwrap().len();
    shelf.open().write(&[task("t", "2", NOVEMBER)]).unwrap();
    let mut bytes = fs::read(shelf.november()).unwrap();
    let length = bytes.len();
    bytes[first + 30..].fill(0);
    fs::write(shelf.november(), &bytes[..length]).unwrap();
    shelf.open().write(&[task("t", "3", NOVEMBER)]).unwrap();
    assert_eq!(shelf.ids(Filter::default()), ["1", "3"]);
}

#[test]
fn damage_before_the_end_is_told_and_nothing_is_cut_off() {
    let shelf = Shelf::new();
    for id in ["1", "2", "3"] {
        shelf.open().write(&[task("t", id, NOVEMBER)]).unwrap();
    }
    let mut bytes = fs::read(shelf.november()).unwrap();
    let second = bytes.len() / 3;
    bytes[second..second + 4].fill(0);
    fs::write(shelf.november(), &bytes).unwrap();
    shelf.open().write(&[task("t", "4", NOVEMBER)]).unwrap();
    assert_eq!(fs::read(shelf.november()).unwrap(), bytes, "it is left as it is");
    let tasks = shelf.read(Filter::default());
    let ids: Vec<&str> = tasks.iter().flatten().map(|task| task.id.as_str()).collect();
    assert_eq!(ids, ["1", "3", "4"]);
    let errors: Vec<String> = tasks.iter().filter_map(|task| task.as_ref().err()).map(ToString::to_string).collect();
    assert!(errors.len() == 1 && errors[0].contains("is damaged at byte"), "{errors:?}");
}

#[test]
fn a_task_that_was_archived_twice_comes_once() {
    let shelf = Shelf::new();
    shelf.open().write(&[task("t", "1", NOVEMBER), task("t", "2", NOVEMBER)]).unwrap();
    shelf.open().write(&[task("t", "2", NOVEMBER), task("u", "2", NOVEMBER)]).unwrap();
    shelf.open().write(&[task("t", "2", "2026-11-15T12:00:00.001Z")]).unwrap();
    assert_eq!(shelf.ids(Filter::default()), ["1", "2", "2", "2"]);
    assert_eq!(shelf.ids(Filter { topic: Some("t".into()), ..Filter::default() }), ["1", "2", "2"]);
}

#[test]
fn a_month_that_is_over_gets_a_checksum_that_sha256sum_understands() {
    let shelf = Shelf::new();
    let archivist = shelf.open();
    archivist.write(&[task("t", "1", NOVEMBER)]).unwrap();
    archivist.write(&[task("t", "2", DECEMBER)]).unwrap();
    assert_eq!(shelf.files(), ["history-2026-11.jsonl.zst", "history-2026-12.jsonl.zst"]);
    archivist.write(&[task("t", "3", JANUARY)]).unwrap();
    assert!(shelf.files().contains(&"history-2026-11.jsonl.zst.sha256".to_owned()), "{:?}", shelf.files());
    let checked =
        Command::new("sha256sum").args(["-c", "history-2026-11.jsonl.zst.sha256"]).current_dir(shelf.path()).output();
    assert!(checked.unwrap().status.success());
    assert_eq!(shelf.ids(Filter::default()), ["1", "2", "3"]);
}

#[test]
fn stragglers_of_a_finished_month_go_to_a_file_of_their_own() {
    let shelf = Shelf::new();
    let archivist = shelf.open();
    archivist.write(&[task("t", "1", NOVEMBER), task("t", "2", JANUARY)]).unwrap();
    archivist.write(&[task("t", "3", NOVEMBER)]).unwrap();
    assert!(shelf.files().contains(&"history-2026-11.1.jsonl.zst".to_owned()), "{:?}", shelf.files());
    assert_eq!(shelf.ids(Filter::default()), ["1", "3", "2"]);
    drop(archivist);
    // Stragglers are finished at the next start, and further ones go on in the next file.
    let archivist = Archivist::open(shelf.path(), time(JANUARY)).unwrap();
    archivist.write(&[task("t", "4", NOVEMBER)]).unwrap();
    assert!(shelf.files().contains(&"history-2026-11.2.jsonl.zst".to_owned()), "{:?}", shelf.files());
    assert_eq!(shelf.ids(Filter::default()), ["1", "3", "4", "2"]);
}

#[test]
fn a_finished_file_that_was_changed_is_refused() {
    let shelf = Shelf::new();
    shelf.open().write(&[task("t", "1", NOVEMBER), task("t", "2", JANUARY)]).unwrap();
    OpenOptions::new().append(true).open(shelf.november()).unwrap().write_all(b"x").unwrap();
    let tasks = shelf.read(Filter::default());
    assert!(matches!(&tasks[0], Err(ReadError::Changed { file }) if *file == shelf.november()), "{tasks:?}");
    assert_eq!(tasks[1].as_ref().unwrap().id, "2");
}

#[test]
fn a_second_writer_is_refused() {
    let shelf = Shelf::new();
    let _first = shelf.open();
    let refused = Archivist::open(shelf.path(), time(NOVEMBER)).unwrap_err();
    assert!(refused.contains("is in use by another process"), "{refused}");
}

#[test]
fn much_at_once_becomes_several_pieces() {
    let shelf = Shelf::new();
    let mut tasks: Vec<TaskView> = (0..40).map(|number| task("t", &format!("{number:02}"), NOVEMBER)).collect();
    for task in &mut tasks {
        task.form = Form::Bytes;
        task.body = Bytes::from(vec![7; 100_000]);
    }
    shelf.open().write(&tasks).unwrap();
    let ids: Vec<String> = (0..40).map(|number| format!("{number:02}")).collect();
    assert_eq!(shelf.ids(Filter::default()), ids);
}
