//! What lies ready under `deploy/`: every metric and label that the dashboard and the alerts name is exported by a real
//! server, promtool takes the rules and their tests, and the unit, the image and the package name files that are there.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use punctual_engines::Postgres;
use serde_json::{Value, json};
use stage::{Ended, Server, eventually, punctual, run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn deployed(file: &str) -> String {
    fs::read_to_string(root().join("deploy").join(file)).unwrap()
}

/// All values of each label of each metric.
type Exported = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// What servers export that have an archive and a beanstalk door, have handed out, given up and refused something: one on
/// the almanac, and one of two on a database.
fn exported() -> Exported {
    let database = Postgres::start();
    let mut all = Exported::new();
    export(&served("almanac", "a"), &mut all);
    let (first, second) = (served(&database.url(), "a"), served(&database.url(), "b"));
    eventually("they know how far apart they are", || {
        first.get("/metrics").expect(200).text().contains("punctual_link_round_trip_seconds{node=\"b\"}")
    });
    export(&first, &mut all);
    drop(second);
    all
}

fn served(store: &str, name: &str) -> Server {
    let doors = ["--archive-directory", "archive", "--beanstalk-listen", "127.0.0.1:0"];
    Server::start_with(&[&doors[..], &["--store", store, "--node-name", name]].concat())
}

fn export(server: &Server, all: &mut Exported) {
    for what in ["acknowledge", "reject"] {
        server.post("/v1/tasks", &json!({ "topic": "t", "id": what })).expect(201);
        let taken = server.post("/v1/reserve", &json!({ "queues": ["t"], "wait": "5s" })).expect(200).json();
        let action = json!({ "do": what, "lease": taken["deliveries"][0]["lease"] });
        server.post("/v1/leases", &json!({ "actions": [action] })).expect(200);
    }
    server.send("PUT", "/v1/topics/p", &json!({ "paused": true })).expect(200);
    server.post("/v1/tasks", &json!({ "topic": "p" })).expect(409);
    for line in server.get("/metrics").expect(200).text().lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_at(line.find(['{', ' ']).unwrap());
        let labels = all.entry(name.to_owned()).or_default();
        // No value here has a brace, a comma or a quote in it.
        if let Some((inner, _)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            for (label, value) in inner.split(',').filter_map(|pair| pair.split_once('=')) {
                labels.entry(label.to_owned()).or_default().insert(value.trim_matches('"').to_owned());
            }
        }
    }
}

/// What Prometheus adds to whatever it scrapes.
const ADDED: [&str; 2] = ["job", "instance"];

/// Labels whose values are all there from the beginning.
const WHOLE: [&str; 3] = ["state", "what", "part"];

/// Checks an expression: its metrics, the labels it asks for, and those by which it sums up.
fn check(expression: &str, exported: &Exported) {
    let mut of_all: BTreeSet<&str> = ADDED.into();
    let mut seen = 0;
    for (at, _) in expression.match_indices("punctual_") {
        let rest = &expression[at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = &rest[..end];
        let labels = exported.get(name).unwrap_or_else(|| panic!("{name} is not exported: {expression}"));
        of_all.extend(labels.keys().map(String::as_str));
        seen += 1;
        let Some((asked, _)) = rest[end..].strip_prefix('{').and_then(|rest| rest.split_once('}')) else { continue };
        for pair in asked.split(',') {
            let (label, value) = pair.split_once('=').unwrap();
            let value = value.trim_matches('"');
            assert!(ADDED.contains(&label) || labels.contains_key(label), "{name} has no {label}: {expression}");
            if WHOLE.contains(&label) {
                assert!(labels[label].contains(value), "{name} has no {label} {value}: {expression}");
            }
        }
    }
    assert!(seen > 0 || expression.starts_with("up{"), "it is about Punctual: {expression}");
    for word in ["by (", "on ("] {
        for (at, _) in expression.match_indices(word) {
            let inner = expression[at + word.len()..].split(')').next().unwrap();
            for label in inner.split(',').map(str::trim) {
                assert!(of_all.contains(label), "nothing has {label}: {expression}");
            }
        }
    }
}

/// The expressions of all panels of the dashboard, and what its variables ask.
fn drawn() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&deployed("grafana/punctual.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "each panel has an id of its own");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// The expressions of all alerts, by name.
fn alerts() -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut name = String::new();
    for line in deployed("prometheus/punctual-alerts.yml").lines().map(str::trim) {
        if let Some(alert) = line.strip_prefix("- alert: ") {
            alert.clone_into(&mut name);
        } else if let Some(expression) = line.strip_prefix("expr: ") {
            all.insert(name.clone(), expression.to_owned());
        }
    }
    all
}

/// Metrics that are neither drawn nor watched: sums by queue, for whoever looks into a single one, and the rows of runs.
const LEFT_OUT: [&str; 7] = [
    "punctual_queue_offered_total",
    "punctual_queue_offered_seconds_total",
    "punctual_queue_taken_total",
    "punctual_queue_taken_seconds_total",
    "punctual_store_run_rows",
    // A fact to join others with.
    "punctual_store_info",
    // It is logged, with what was wrong, and nothing leads to it that is known.
    "punctual_counts_mended_total",
];

/// All names of metrics in a text.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("punctual_")).collect()
}

fn promtool(arguments: &[&str], directory: &Path) -> Ended {
    let ended = run(Command::new("promtool").args(arguments).current_dir(directory));
    assert_eq!(ended.code, Some(0), "promtool {arguments:?}: {}{}", ended.stdout, ended.stderr);
    ended
}

#[test]
fn every_metric_and_label_that_is_drawn_or_watched_is_exported() {
    let exported = exported();
    let (drawn, alerts) = (drawn(), alerts());
    assert!(drawn.len() > 20 && alerts.len() > 10, "they were found");
    drawn.iter().chain(alerts.values()).for_each(|expression| check(expression, &exported));
}

#[test]
fn every_metric_that_is_documented_is_drawn_or_watched() {
    let page = fs::read_to_string(root().join("docs/operating.md")).unwrap();
    let documented = metrics_in(&page);
    assert!(documented.len() > 30, "they were found");
    let expressions: Vec<String> = drawn().into_iter().chain(alerts().into_values()).collect();
    let shown: BTreeSet<&str> = expressions.iter().flat_map(|expression| metrics_in(expression)).collect();
    // A histogram is shown by its buckets, or by how many there were.
    let is_shown =
        |name: &str| ["", "_bucket", "_count"].iter().any(|end| shown.contains(format!("{name}{end}").as_str()));
    let left: BTreeSet<&str> = documented.into_iter().filter(|name| !is_shown(name)).collect();
    assert_eq!(left, BTreeSet::from(LEFT_OUT));
}

#[test]
fn promtool_takes_the_alerts_and_each_has_a_test() {
    let directory = root().join("deploy/prometheus");
    promtool(&["check", "rules", "punctual-alerts.yml"], &directory);
    promtool(&["test", "rules", "punctual-alerts-test.yml"], &directory);
    let tests = deployed("prometheus/punctual-alerts-test.yml");
    for name in alerts().keys() {
        // Once that it stays away, and once that it fires.
        assert!(tests.matches(&format!("alertname: {name}")).count() >= 2, "{name} is not tested");
    }
}

#[test]
fn promtool_understands_what_the_dashboard_asks() {
    let directory = tempfile::tempdir().unwrap();
    let rule = |(number, expression): (usize, String)| {
        // What Grafana fills in.
        let expression = expression.replace("$__rate_interval", "5m").replace("$instance", ".*");
        json!({ "record": format!("drawn:{number}"), "expr": expression })
    };
    let rules: Vec<Value> = drawn().into_iter().enumerate().map(rule).collect();
    // YAML is a superset of JSON.
    let file = json!({ "groups": [{ "name": "drawn", "rules": rules }] }).to_string();
    fs::write(directory.path().join("rules.yml"), file).unwrap();
    promtool(&["check", "rules", "rules.yml"], directory.path());
}

#[test]
fn the_settings_that_are_installed_can_be_used() {
    let server = Server::start();
    let file = server.directory().join("punctual.toml");
    fs::write(&file, deployed("punctual.toml")).unwrap();
    let ended = run(punctual().args(["config", "--check", "--config"]).arg(&file));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // What is only hinted at has to be right too.
    let text = deployed("punctual.toml");
    let hinted = text.lines().map(|line| {
        let hint = line.strip_prefix("# ").filter(|hint| hint.starts_with('[') || hint.contains(" = "));
        hint.unwrap_or(line).to_owned() + "\n"
    });
    fs::write(&file, hinted.collect::<String>()).unwrap();
    let ended = run(punctual().args(["config", "--check", "--config"]).arg(&file));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn the_unit_keeps_its_data_private_and_starts_what_is_installed() {
    let unit = deployed("punctual.service");
    for line in [
        "StateDirectoryMode=0700",
        "RuntimeDirectory=punctual",
        "RuntimeDirectoryMode=0750",
        "UMask=0077",
        "NoNewPrivileges=true",
        "ProtectSystem=strict",
    ] {
        assert!(unit.lines().any(|known| known == line), "{line}");
    }
    assert!(unit.contains("ExecStart=/usr/bin/punctual serve --config /etc/punctual/punctual.toml\n"));
    let package = fs::read_to_string(root().join("server/Cargo.toml")).unwrap();
    assert!(package.contains("\"usr/bin/\"") && package.contains("\"etc/punctual/punctual.toml\""));
    // Debian's systemd knows each of its words, but not the program, which is not installed here.
    let directory = tempfile::tempdir().unwrap();
    let local = directory.path().join("punctual.service");
    fs::write(&local, unit.replace("/usr/bin/punctual", env!("CARGO_BIN_EXE_punctual"))).unwrap();
    let ended = run(Command::new("systemd-analyze").arg("verify").arg(&local));
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let ended = run(Command::new("systemd-analyze").args(["security", "--offline=true", "--threshold=20"]).arg(&local));
    assert_eq!(ended.code, Some(0), "it is exposed too much: {}", ended.stdout);
}

#[test]
fn the_image_is_built_as_the_package_is_and_runs_as_nobody_special() {
    let image = deployed("Dockerfile");
    let command = "cargo build --profile dist --locked --package punctual";
    assert!(image.contains(&format!("RUN {command}\n")));
    assert!(image.contains("/target/dist/punctual "));
    let chores = fs::read_to_string(root().join("xtask/src/main.rs")).unwrap();
    assert!(chores.contains(command), "`cargo xtask package` builds it in the same way");
    assert!(image.contains("USER punctual\n"));
    // Its settings are ones that the server knows.
    let settings = image.lines().find_map(|line| line.strip_prefix("ENV ")).unwrap();
    let mut checked = punctual();
    checked.args(["config", "--check"]);
    for (name, value) in settings.split(' ').map(|pair| pair.split_once('=').unwrap()) {
        checked.env(name, value);
    }
    let ended = stage::run(&mut checked);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn the_package_names_files_that_are_there_and_scripts_that_can_be_run() {
    let manifest = fs::read_to_string(root().join("server/Cargo.toml")).unwrap();
    let mut seen = 0;
    for path in manifest.split('"').filter(|text| text.starts_with("../") && !text.contains('*')) {
        assert!(root().join("server").join(path).exists(), "{path}");
        seen += 1;
    }
    assert!(seen > 3, "they were found");
    for script in ["postinst", "prerm", "postrm"] {
        let checked = run(Command::new("sh").arg("-n").arg(root().join("deploy/debian").join(script)));
        assert_eq!(checked.code, Some(0), "{script}: {}", checked.stderr);
        assert!(deployed(&format!("debian/{script}")).contains("#DEBHELPER#"), "{script}: the unit is started here");
    }
}
