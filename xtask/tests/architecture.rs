//! The shape of the tree, held by tests: which crate may depend on which, and how files look.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The edges between our crates that are allowed in what is built. Dependencies point inward and
/// never sideways; only binaries name concrete stores.
const ALLOWED: &[(&str, &[&str])] = &[
    ("punctual-wheel", &[]),
    ("punctual-core", &["punctual-wheel"]),
    ("punctual-memory", &["punctual-core"]),
    ("punctual-moving", &["punctual-core"]),
    ("punctual-database", &["punctual-core"]),
    ("punctual-mysql", &["punctual-core", "punctual-database"]),
    ("punctual-postgres", &["punctual-core", "punctual-database"]),
    ("punctual-redis", &["punctual-core", "punctual-database"]),
    ("punctual-disk", &[]),
    ("punctual-almanac", &["punctual-core", "punctual-disk"]),
    ("punctual-center", &["punctual-core"]),
    ("punctual-node", &["punctual-center", "punctual-core"]),
    ("punctual-node-check", &[]),
    ("punctual-link", &["punctual-center", "punctual-core"]),
    ("punctual-socket", &[]),
    ("punctual-beanstalk", &["punctual-core", "punctual-node", "punctual-socket"]),
    ("punctual-console", &[]),
    ("punctual-http", &["punctual-console", "punctual-core", "punctual-node", "punctual-socket", "punctual-wire"]),
    ("punctual-wire", &[]),
    ("punctual-client", &["punctual-wire"]),
    (
        "punctual",
        &[
            "punctual-almanac",
            "punctual-beanstalk",
            "punctual-client",
            "punctual-core",
            "punctual-database",
            "punctual-http",
            "punctual-link",
            "punctual-memory",
            "punctual-moving",
            "punctual-mysql",
            "punctual-node",
            "punctual-postgres",
            "punctual-redis",
            "punctual-socket",
            "punctual-wire",
        ],
    ),
    // For tests and for those who write stores: nothing that users run is built from these.
    ("punctual-chance", &[]),
    ("punctual-conformance", &["punctual-chance", "punctual-core"]),
    ("punctual-engines", &[]),
    ("punctual-simulated-disk", &["punctual-chance", "punctual-disk"]),
    ("punctual-sim", &["punctual-center", "punctual-chance", "punctual-core", "punctual-memory"]),
    (
        "punctual-parsers",
        &[
            "punctual-almanac",
            "punctual-beanstalk",
            "punctual-core",
            "punctual-http",
            "punctual-link",
            "punctual-memory",
            "punctual-node",
            "punctual-simulated-disk",
            "punctual-socket",
            "punctual-wire",
        ],
    ),
    ("xtask", &[]),
];

/// The crates that decide what happens, and all that they may be built from.
const PURE: &[(&str, &[&str])] = &[
    ("punctual-wheel", &[]),
    ("punctual-core", &["bytes", "foldhash", "postcard", "punctual-wheel", "serde", "thiserror"]),
    ("punctual-center", &["foldhash", "postcard", "punctual-core", "serde", "thiserror"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// All files of Rust that are there, as git names them.
fn sources() -> Vec<String> {
    let output = Command::new("git").args(["ls-files", "*.rs"]).current_dir(root()).output().unwrap();
    let files = String::from_utf8(output.stdout).unwrap();
    files.lines().filter(|file| root().join(file).exists()).map(str::to_owned).collect()
}

/// Each of our crates with what it is built from, tests left out.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let built_from = package["dependencies"].as_array().unwrap().iter().filter(|edge| edge["kind"].is_null());
            let names = built_from.map(|edge| edge["name"].as_str().unwrap().to_owned()).collect();
            (package["name"].as_str().unwrap().to_owned(), names)
        })
        .collect()
}

#[test]
fn our_crates_depend_on_each_other_only_as_allowed() {
    let dependencies = dependencies();
    let ours: BTreeSet<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    let found: BTreeSet<&str> = dependencies.keys().map(String::as_str).collect();
    assert_eq!(found, ours, "a crate that comes or goes is entered in this test");
    for (name, allowed) in ALLOWED {
        let edges: Vec<&str> =
            dependencies[*name].iter().map(String::as_str).filter(|edge| ours.contains(edge)).collect();
        for edge in edges {
            assert!(allowed.contains(&edge), "{name} must not depend on {edge}");
        }
    }
}

#[test]
fn only_binaries_name_a_store() {
    let dependencies = dependencies();
    for (name, edges) in dependencies
        .iter()
        .filter(|(name, _)| !["punctual", "punctual-parsers", "punctual-sim"].contains(&name.as_str()))
    {
        for store in ["punctual-almanac", "punctual-memory", "punctual-mysql", "punctual-postgres", "punctual-redis"] {
            assert!(!edges.contains(store), "{name} must work with any store, and names {store}");
        }
    }
}

#[test]
fn the_server_names_a_door_or_a_store_in_one_place() {
    let places = [
        ("punctual_beanstalk", "doors/beanstalk.rs"),
        ("punctual_almanac", "stores/almanac/"),
        ("punctual_database", "stores/database/"),
        ("punctual_mysql", "stores/mod.rs"),
        ("punctual_postgres", "stores/mod.rs"),
        ("punctual_redis", "stores/mod.rs"),
    ];
    for file in sources().iter().filter_map(|file| file.strip_prefix("server/src/")) {
        let text = fs::read_to_string(root().join("server/src").join(file)).unwrap();
        for (name, place) in places {
            assert!(file.starts_with(place) || !text.contains(name), "{file} names {name}, which belongs to {place}");
        }
    }
}

#[test]
fn the_pure_crates_are_built_from_pure_crates() {
    let dependencies = dependencies();
    for (name, allowed) in PURE {
        for edge in &dependencies[*name] {
            assert!(allowed.contains(&edge.as_str()), "{name} must not be built from {edge}");
        }
    }
}

#[test]
fn the_linter_bans_clocks_threads_and_files_in_the_pure_crates() {
    for file in ["core/clippy.toml", "center/clippy.toml"] {
        let bans = fs::read_to_string(root().join(file)).unwrap();
        for banned in ["Instant::now", "SystemTime::now", "thread::spawn", "fs::File", "RandomState"] {
            assert!(bans.contains(banned), "{file} bans {banned}");
        }
    }
}

#[test]
fn the_nodes_threads_meet_where_the_model_checker_sees_it() {
    let is_meant = |file: &&String| file.starts_with("node/src/") && !file.starts_with("node/src/sync/");
    for file in sources().iter().filter(is_meant) {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for line in code.lines().filter(|line| line.starts_with("use std::")) {
            let unseen = ["Mutex", "RwLock", "Condvar", "atomic", "mpsc", "thread", "Instant"];
            assert!(!unseen.iter().any(|one| line.contains(one)), "{file}: take it from crate::sync: {line}");
        }
    }
}

#[test]
fn source_files_say_what_they_are_and_can_be_read_in_one_go() {
    let mut seen = 0;
    for file in sources().iter().map(|file| root().join(file)) {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let vague = ["common", "utils", "util", "helpers", "helper", "manager", "misc"];
        assert!(!vague.contains(&name), "{}: name what it holds", file.display());
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//!"), "{}: opens with what lives here", file.display());
        let lines = text.lines().count();
        assert!(lines <= 600, "{}: {lines} lines, look for the seam", file.display());
        seen += 1;
    }
    assert!(seen > 20, "the files were found");
}

/// Where cargo does not look for tests by itself, a file that nobody names is never run.
#[test]
fn every_file_of_tests_is_named_by_its_executable() {
    let sources = sources();
    let mains: Vec<&String> = sources.iter().filter(|path| path.ends_with("tests/main.rs")).collect();
    assert!(mains.len() >= 5, "{mains:?}");
    for main in mains {
        let (text, home) = (fs::read_to_string(root().join(main)).unwrap(), main.trim_end_matches("main.rs"));
        for path in sources.iter().filter(|path| path.starts_with(home) && *path != main) {
            let module = path.trim_start_matches(home).split('/').next().unwrap().trim_end_matches(".rs");
            assert!(text.contains(&format!("\nmod {module};\n")), "{main} does not name {path}");
        }
    }
}

#[test]
fn the_places_that_newcomers_are_sent_to_exist() {
    let page = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    // Every second piece stands between backticks; placeholders are in capitals.
    let is_place = |text: &&str| text.contains('/') && !text.starts_with('/') && !text.contains([' ', 'N']);
    let named = page.split('`').skip(1).step_by(2).filter(is_place);
    let mut seen = 0;
    for place in named {
        assert!(root().join(place.trim_start_matches("./")).exists(), "CONTRIBUTING.md names {place}");
        seen += 1;
    }
    assert!(seen > 20, "the places were found");
}
