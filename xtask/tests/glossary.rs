//! One word, one idea: a word of ARCHITECTURE.md's glossary is the name of one type at most.
//!
//! The client's side of the wire (`client/`) has types of its own for what the server's side has: one there, one here.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The words of the glossary as types would be named: `dead letter` is `DeadLetter`.
fn words() -> Vec<String> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = text.split("## Words\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(2);
    let listed = rows.flat_map(|row| row.split(" | ").next().unwrap().trim_start_matches("| ").split(", "));
    listed.map(|word| word.split(" (").next().unwrap().split(' ').map(capitalized).collect()).collect()
}

fn capitalized(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}

/// The name of the type that a line begins to define.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let item = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let name = ["struct ", "enum ", "trait ", "union "].iter().find_map(|kind| item.strip_prefix(kind))?;
    name.split(|c: char| !c.is_alphanumeric()).next()
}

/// Where types are defined, by whether that is the client's side, and name.
fn definitions() -> BTreeMap<(bool, String), Vec<String>> {
    let output = Command::new("git").args(["ls-files", "*/src/*.rs"]).current_dir(root()).output().unwrap();
    let files = String::from_utf8(output.stdout).unwrap();
    // Peers have words of their own, and tests are not what people read to learn them.
    let is_product =
        |file: &&str| !file.starts_with("bench/") && !file.ends_with("tests.rs") && !file.contains("/tests/");
    let mut definitions: BTreeMap<(bool, String), Vec<String>> = BTreeMap::new();
    for file in files.lines().filter(is_product).filter(|file| root().join(file).exists()) {
        let text = fs::read_to_string(root().join(file)).unwrap();
        for name in text.lines().filter_map(defined) {
            let side = (file.starts_with("client/"), name.to_owned());
            definitions.entry(side).or_default().push(file.to_owned());
        }
    }
    definitions
}

#[test]
fn a_word_of_the_glossary_names_one_type_at_most() {
    let (words, definitions) = (words(), definitions());
    assert!(words.contains(&"DeadLetter".to_owned()) && words.contains(&"Board".to_owned()), "the words were found");
    assert!(definitions.contains_key(&(false, "Board".to_owned())), "the types were found");
    for word in words {
        for is_client in [false, true] {
            let places = definitions.get(&(is_client, word.clone())).map_or(&[][..], Vec::as_slice);
            assert!(places.len() <= 1, "{word} is one idea, and {} name a type so", places.join(" and "));
        }
    }
}
