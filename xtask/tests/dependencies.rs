//! What the project is built from, held to `deny.toml` and to the Rust it promises to build with; and what each of our
//! packages says about itself. All of it from `cargo metadata`, without a network.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;
use spdx::{Expression, ParseMode};
use toml_edit::{DocumentMut, Item};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every package of the graph, ours included.
static PACKAGES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--all-features", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
});

static DENY: LazyLock<DocumentMut> =
    LazyLock::new(|| fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap());

fn ours() -> impl Iterator<Item = &'static Value> {
    PACKAGES.iter().filter(|package| package["source"].is_null())
}

fn others() -> impl Iterator<Item = &'static Value> {
    PACKAGES.iter().filter(|package| !package["source"].is_null())
}

fn text<'a>(package: &'a Value, field: &str) -> &'a str {
    package[field].as_str().unwrap_or_default()
}

fn name(package: &Value) -> String {
    format!("{}@{}", text(package, "name"), text(package, "version"))
}

/// The texts of a list, or the `crate` of each of its tables.
fn listed(list: &Item) -> BTreeSet<String> {
    let list = list.as_array().unwrap().iter();
    let text = |value: &toml_edit::Value| match value.as_inline_table() {
        Some(table) => table["crate"].as_str().unwrap().to_owned(),
        None => value.as_str().unwrap().to_owned(),
    };
    list.map(text).collect()
}

/// A version as numbers that can be compared; what is left out is 0.
fn version(text: &str) -> Vec<u64> {
    let mut numbers: Vec<u64> = text.split('.').map(|number| number.parse().unwrap()).collect();
    numbers.resize(3, 0);
    numbers
}

#[test]
fn every_licence_is_one_that_is_allowed() {
    let allowed = listed(&DENY["licenses"]["allow"]);
    for package in others() {
        let licence = text(package, "license");
        let terms = Expression::parse_mode(licence, ParseMode::LAX)
            .unwrap_or_else(|error| panic!("{}: {licence:?} is no licence expression: {error}", name(package)));
        let is_allowed = terms.evaluate(|term| allowed.contains(&term.to_string()));
        assert!(is_allowed, "{}: deny.toml does not allow {licence}", name(package));
    }
}

#[test]
fn nothing_that_is_banned_is_built_in() {
    let banned = listed(&DENY["bans"]["deny"]);
    for package in others() {
        assert!(!banned.contains(text(package, "name")), "{}: deny.toml says why not", name(package));
    }
}

#[test]
fn two_versions_of_a_crate_are_listed_exceptions() {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in others() {
        versions.entry(text(package, "name")).or_default().push(text(package, "version"));
    }
    versions.retain(|_, versions| versions.len() > 1);
    let mut unused = listed(&DENY["bans"]["skip"]);
    for (name, versions) in versions {
        let is_skipped = |version: &&&str| {
            let skip =
                unused.iter().find(|skip| format!("{name}@{version}.").starts_with(&format!("{skip}."))).cloned();
            skip.is_some_and(|skip| unused.remove(&skip))
        };
        let skipped = versions.iter().filter(is_skipped).count();
        assert!(versions.len() - skipped <= 1, "{name} comes as {versions:?}: align them, or skip one in deny.toml");
    }
    assert!(unused.is_empty(), "deny.toml skips what does not come twice: {unused:?}");
}

#[test]
fn everything_comes_from_crates_io() {
    let allowed: BTreeSet<String> =
        listed(&DENY["sources"]["allow-registry"]).iter().map(|registry| format!("registry+{registry}")).collect();
    for package in others() {
        let source = text(package, "source");
        assert!(allowed.contains(source), "{}: deny.toml does not allow {source}", name(package));
    }
}

#[test]
fn no_dependency_asks_for_a_newer_rust_than_we_promise() {
    let promised = ours().map(|package| text(package, "rust_version")).collect::<BTreeSet<_>>();
    assert_eq!(promised.len(), 1, "all our packages promise the same: {promised:?}");
    let promised = version(promised.first().unwrap());
    for package in others() {
        let asked = package["rust_version"].as_str().unwrap_or("1");
        assert!(version(asked) <= promised, "{} asks for Rust {asked}", name(package));
    }
}

#[test]
fn our_packages_say_what_they_are_and_where_they_come_from() {
    for package in ours() {
        let name = text(package, "name");
        assert_eq!(text(package, "license"), "MIT", "{name}: one licence everywhere");
        for field in ["description", "repository"] {
            assert!(!text(package, field).is_empty(), "{name}: has no {field}");
        }
        let is_published = package["publish"].is_null();
        for field in ["keywords", "categories"] {
            let count = package[field].as_array().unwrap().len();
            assert!((1..=5).contains(&count) || !is_published, "{name}: {count} {field}");
        }
        let directory = Path::new(text(package, "manifest_path")).parent().unwrap();
        assert!(!is_published || directory.join(text(package, "readme")).is_file(), "{name}: has no readme");
    }
}

#[test]
fn workspaces_of_their_own_promise_the_same_licence_and_rust() {
    let manifest = |path: &str| -> DocumentMut { fs::read_to_string(root().join(path)).unwrap().parse().unwrap() };
    let workspace = manifest("Cargo.toml");
    let promised = &workspace["workspace"]["package"];
    for path in listed(&workspace["workspace"]["exclude"]) {
        let package = &manifest(&format!("{path}/Cargo.toml"))["package"];
        for field in ["license", "rust-version", "edition"] {
            assert_eq!(package[field].as_str(), promised[field].as_str(), "{path}: {field}");
        }
    }
}
