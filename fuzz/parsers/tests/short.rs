//! A short run of every parser: its corpus, and seeded mutations of it. `cargo xtask fuzz` runs one for as long as you like.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::fs;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use punctual_chance::Chance;
use punctual_parsers::{PARSERS, Parser};

/// No input grows longer than this.
const LONGEST: usize = 32 << 10;

/// Numbers at which ranges end, as text.
const NUMBERS: [&str; 8] = ["0", "-1", "255", "65536", "4294967296", "18446744073709551615", "1e999", "0.5"];

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn corpus(parser: &Parser) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(fuzz().join("corpus").join(parser.name)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Where something changes, and for how long.
fn stretch(bytes: &[u8], chance: &mut Chance) -> Range<usize> {
    let start = chance.index(bytes.len() + 1);
    start..(start + chance.index(9)).min(bytes.len())
}

fn mutate(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], chance: &mut Chance) {
    let at = stretch(bytes, chance);
    match chance.below(8) {
        0 => drop(bytes.drain(at)),
        1 => bytes.truncate(at.start),
        2 => bytes[at].fill_with(|| chance.draw() as u8),
        3 => bytes[at].fill(*chance.pick(&[0, 0xff])),
        4 => drop(bytes.splice(at, chance.pick(&NUMBERS).bytes())),
        5 => {
            let copied = bytes[at.clone()].repeat(1 + chance.index(40));
            drop(bytes.splice(at.end..at.end, copied));
        }
        6 => {
            let other = chance.pick(corpus);
            let from = stretch(other, chance).start;
            drop(bytes.splice(at, other[from..].iter().copied()));
        }
        _ => bytes[at].iter_mut().for_each(|byte| *byte ^= 1 << chance.below(8)),
    }
    bytes.truncate(LONGEST);
}

fn short_run(name: &str) {
    let parser = PARSERS.iter().find(|parser| parser.name == name).unwrap();
    let corpus = corpus(parser);
    let parse = |bytes: &[u8]| {
        let parsed = catch_unwind(AssertUnwindSafe(|| (parser.parse)(bytes)));
        assert!(parsed.is_ok(), "{name} failed on: {}", bytes.escape_ascii());
    };
    corpus.iter().for_each(|bytes| parse(bytes));
    let mut chance = Chance::new(1);
    for _ in 0..parser.mutations {
        let mut bytes = chance.pick(&corpus).clone();
        for _ in 0..=chance.below(5) {
            mutate(&mut bytes, &corpus, &mut chance);
        }
        parse(&bytes);
    }
}

#[test]
fn files_of_an_almanac_are_read_or_refused() {
    short_run("almanac");
}

#[test]
fn a_beanstalk_connection_is_understood_however_it_is_cut() {
    short_run("beanstalk");
}

#[test]
fn the_http_door_answers_whatever_is_asked() {
    short_run("http");
}

#[test]
fn a_lease_that_is_vouched_for_may_say_anything() {
    short_run("lease");
}

#[test]
fn what_another_node_says_is_heard_or_refused() {
    short_run("link");
}

#[test]
fn cursors_times_and_names_come_back_from_their_text() {
    short_run("text");
}

#[test]
fn bodies_of_requests_come_back_from_their_json() {
    short_run("wire");
}

#[test]
fn every_parser_has_a_target_a_corpus_and_a_short_run() {
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    let tests = include_str!("short.rs");
    for Parser { name, .. } in PARSERS {
        let target = fs::read_to_string(fuzz().join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(
            target.ends_with(&format!("fuzz_target!(|bytes: &[u8]| punctual_parsers::{name}(bytes));\n")),
            "{name}"
        );
        assert!(
            manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")),
            "{name}: no [[bin]] in fuzz/Cargo.toml"
        );
        assert!(fs::read_dir(fuzz().join("corpus").join(name)).unwrap().count() > 0, "{name}: no corpus");
        assert!(tests.contains(&format!("short_run(\"{name}\")")), "{name}: no short run");
    }
    assert_eq!(
        fs::read_dir(fuzz().join("fuzz_targets")).unwrap().count(),
        PARSERS.len(),
        "a target without its parser"
    );
}
