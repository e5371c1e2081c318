//! Facts about the configuration: which source wins, and how each mistake is told.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use punctual_wire::Span;
use tempfile::TempDir;

use super::problem::Problems;
use super::settings::SETTINGS;
use super::table::Setting;
use super::value::{Given, Size, Synced};
use super::{Config, Effective, Overrides, Sources, load, markdown};

/// A place for a configuration file.
struct Desk {
    directory: TempDir,
}

impl Desk {
    fn new() -> Desk {
        Desk { directory: tempfile::tempdir().unwrap() }
    }

    fn load(&self, file: &str, environment: &[(&str, &str)], flags: &[(&str, &str)]) -> Result<Effective, Problems> {
        let path = self.directory.path().join("p.toml");
        fs::write(&path, file).unwrap();
        let owned = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        load(&Sources { file: Some(path), environment: owned(environment), flags: Overrides(owned(flags)) })
    }
}

fn loaded(file: &str, environment: &[(&str, &str)], flags: &[(&str, &str)]) -> Effective {
    Desk::new().load(file, environment, flags).unwrap_or_else(|problems| panic!("{problems}"))
}

/// The problems, without the directory in front of the file's name.
fn problems(file: &str, environment: &[(&str, &str)], flags: &[(&str, &str)]) -> Vec<String> {
    let desk = Desk::new();
    let problems = desk.load(file, environment, flags).err().expect("it must be refused");
    let directory = format!("{}/", desk.directory.path().display());
    problems.0.iter().map(|problem| format!("{}: {}", problem.origin, problem.what).replace(&directory, "")).collect()
}

#[test]
fn without_sources_the_defaults_count() {
    let config = load(&Sources { file: Some("/dev/null".into()), ..Sources::default() }).unwrap().config;
    assert_eq!(config, Config::default());
    assert_eq!(config.listen[0].to_string(), "127.0.0.1:7400");
    assert_eq!(config.data, Path::new("punctual-data"));
    assert_eq!(config.tokens(), Path::new("punctual-data/tokens.toml"));
}

#[test]
fn every_default_can_be_read() {
    for setting in SETTINGS {
        let taken = (setting.take)(&mut Config::default(), &Given::Text(setting.default.to_owned()));
        assert!(taken.is_ok(), "{}: {taken:?}", setting.name);
    }
}

#[test]
fn variables_and_flags_differ_from_setting_to_setting() {
    let variables: BTreeSet<String> = SETTINGS.iter().map(Setting::variable).collect();
    let flags: BTreeSet<String> = SETTINGS.iter().filter_map(Setting::flag).collect();
    let with_flag = SETTINGS.iter().filter(|setting| setting.flag().is_some()).count();
    assert_eq!((variables.len(), flags.len()), (SETTINGS.len(), with_flag));
}

#[test]
fn flags_override_variables_which_override_the_file() {
    let file = "data = \"/file\"\n[store]\nmemory = \"1GiB\"\n[node]\nname = \"from-file\"\n";
    let effective =
        loaded(file, &[("PUNCTUAL_DATA", "/variable"), ("PUNCTUAL_STORE_MEMORY", "2GiB")], &[("data", "/flag")]);
    assert_eq!(effective.config.data, Path::new("/flag"));
    assert_eq!(effective.config.store.memory, Size(2 << 30));
    assert_eq!(effective.config.node.name.as_str(), "from-file");
    let json = effective.to_json();
    assert_eq!(json["data"]["from"], "flag");
    assert_eq!(json["store.memory"]["place"], "PUNCTUAL_STORE_MEMORY");
    assert_eq!(json["node.name"]["from"], "file");
    assert_eq!(json["node.shards"]["from"], "default");
}

#[test]
fn values_may_be_written_as_toml_or_as_text() {
    let toml = loaded(
        "listen = [\"127.0.0.1:1\", \"[::1]:2\"]\n[tasks]\ncreate_on_use = false\n[node]\nshards = 4\n",
        &[],
        &[],
    );
    let environment = [
        ("PUNCTUAL_LISTEN", "127.0.0.1:1,[::1]:2"),
        ("PUNCTUAL_TASKS_CREATE_ON_USE", "false"),
        ("PUNCTUAL_NODE_SHARDS", "4"),
    ];
    assert_eq!(toml.config, loaded("", &environment, &[]).config);
    assert_eq!(loaded("http.wait = \"90s\"", &[], &[]).config.http.wait, Span(90_000));
    assert_eq!(loaded("[store]\nsync = \"100ms\"", &[], &[]).config.store.sync, Synced::Within(Span(100)));
}

#[test]
fn the_store_is_one_setting_however_it_is_written() {
    let url = "postgres://u:hunter2@db/x";
    let wanted = loaded(&format!("store = \"{url}\""), &[], &[]).config;
    assert_eq!(wanted.store_url().unwrap(), url);
    assert_eq!(loaded(&format!("[store]\nurl = \"{url}\""), &[], &[]).config, wanted);
    assert_eq!(loaded("", &[("PUNCTUAL_STORE", url)], &[]).config, wanted);
    let by_flag = loaded("", &[], &[("store.url", url)]);
    assert_eq!(by_flag.config, wanted);
    assert_eq!(by_flag.to_json()["store.url"]["place"], "--store");
}

#[test]
fn a_password_is_read_from_its_place_and_shown_nowhere() {
    let desk = Desk::new();
    let file = desk.directory.path().join("password");
    fs::write(&file, "hunter2\n").unwrap();
    let by_file = format!("[store]\nurl = \"redis://db\"\npassword_file = {file:?}");
    let sources: [(&str, &[(&str, &str)]); 3] = [
        (&by_file, &[]),
        ("store = \"redis://db\"", &[("PUNCTUAL_STORE_PASSWORD", "hunter2")]),
        ("store = \"redis://:hunter2@db\"", &[]),
    ];
    for (file, environment) in sources {
        let effective = loaded(file, environment, &[]);
        assert_eq!(effective.config.store_url().unwrap(), "redis://:hunter2@db");
        let shown = format!("{}{}{:?}", effective.to_toml(), effective.to_json(), effective.config);
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    assert_eq!(Setting::named("store.password").unwrap().flag(), None);
}

#[test]
fn an_empty_text_is_not_set() {
    let effective = loaded("[archive]\ndirectory = \"/archive\"\n", &[("PUNCTUAL_ARCHIVE_DIRECTORY", "")], &[]);
    assert_eq!(effective.config.archive.directory, None);
}

#[test]
fn what_is_printed_can_be_read_again() {
    let file = "listen = [\"127.0.0.1:1\", \"127.0.0.1:2\"]\n[log]\nlevel = 'info,a=debug'\n[trace]\nsample = 0.25\n";
    let effective = loaded(file, &[("PUNCTUAL_STORE_SYNC", "250ms")], &[("data", "/a \"quoted\" place")]);
    let again = loaded(&effective.to_toml(), &[], &[]);
    assert_eq!(again.config, effective.config);
}

#[test]
fn what_is_printed_says_where_it_came_from() {
    let desk = Desk::new();
    let effective =
        desk.load("\n[store]\nmemory = \"1GiB\"\n", &[("PUNCTUAL_STORE_SYNC", "1s")], &[("data", "/d")]).unwrap();
    let printed = effective.to_toml();
    let line = |begin: &str| {
        let line = printed.lines().find(|line| line.starts_with(begin)).unwrap();
        line.split_once('#').unwrap().1.trim().rsplit('/').next().unwrap().to_owned()
    };
    assert_eq!(line("memory ="), "p.toml:3");
    assert_eq!(line("sync ="), "PUNCTUAL_STORE_SYNC");
    assert_eq!(line("data ="), "--data");
    assert_eq!(line("reserve ="), "default");
}

#[test]
fn an_unknown_setting_is_refused_with_its_line_and_the_nearest_one() {
    let found = problems("data = \"d\"\n\n[store]\nmemry = \"1GiB\"\n", &[], &[]);
    assert_eq!(found, ["p.toml:4: `store.memry` is not a setting: did you mean `store.memory`?"]);
    let found = problems("[stroe]\nmemory = \"1GiB\"\n", &[], &[]);
    assert_eq!(found, ["p.toml:1: `stroe` is not a setting: did you mean `store`?"]);
    let found = problems("[node]\ncreate_on_use = true\n", &[], &[]);
    assert_eq!(found, ["p.toml:2: `node.create_on_use` is not a setting: did you mean `tasks.create_on_use`?"]);
    let found = problems("wibble = 1\n", &[], &[]);
    assert_eq!(found, ["p.toml:1: `wibble` is not a setting: run `punctual config` to see them all"]);
}

#[test]
fn an_unknown_variable_is_refused_with_the_nearest_one() {
    let found = problems("", &[("PUNCTUAL_LISTN", "x"), ("PUNCTUAL_URL", "x"), ("HOME", "/")], &[]);
    assert_eq!(found, ["PUNCTUAL_LISTN: no setting has this name: did you mean PUNCTUAL_LISTEN?"]);
}

#[test]
fn all_problems_are_told_at_once() {
    let file = "listen = \"nowhere\"\n[store]\nsync = \"often\"\nmemory = \"many\"\n[tls]\nkye = \"k\"\n";
    let found = problems(file, &[("PUNCTUAL_NODE_SHARDS", "none")], &[("log.format", "xml")]);
    let places: Vec<&str> = found.iter().map(|problem| problem.split(": ").next().unwrap()).collect();
    assert_eq!(places, ["p.toml:6", "p.toml:1", "p.toml:3", "p.toml:4", "PUNCTUAL_NODE_SHARDS", "--log-format"]);
}

#[test]
fn a_wrong_value_is_refused_with_what_to_write() {
    let cases = [
        (
            "listen = \"7400\"",
            "`listen`: \"7400\" is not an address with a port: write 127.0.0.1:7400, [::1]:7400, localhost:7400, \
             or unix:PATH for a Unix socket",
        ),
        ("data = \" \"", "`data`: the path is empty: give a file or directory"),
        ("node.shards = -1", "`node.shards`: \"-1\" is not a number: write digits, such as 1000"),
        ("node.shards = 70000", "`node.shards`: 70000 is too large here"),
        ("node.shards = [1]", "`node.shards`: a list or table is not allowed here: write a number"),
        (
            "node.name = \"two words\"",
            "`node.name`: a name must consist of visible characters, but this one has ' ' at byte 3",
        ),
        (
            "store.memory = \"1GB\"",
            "`store.memory`: \"1GB\" is not a size: write 192MiB (KiB, MiB, GiB, TiB), or a number of bytes",
        ),
        (
            "store.sync = \"never\"",
            "`store.sync`: \"never\" is neither `always` nor a duration: write always, or a duration such as 100ms",
        ),
        ("store.sync = 0", "`store.sync`: 0 is too short: write always, or a duration such as 100ms"),
        (
            "tasks.create_on_use = \"yes\"",
            "`tasks.create_on_use`: \"yes\" is neither true nor false: write one of the two",
        ),
        ("log.format = \"xml\"", "`log.format`: \"xml\" is not a log format: write auto, human or json"),
        ("trace.sample = 2", "`trace.sample`: \"2\" is not between 0 and 1: write a number such as 0.1"),
        ("http = 1", "`http` is a section: write [http], and its settings below it"),
        ("store = 1", "`store.url`: neither the name of a store nor a URL"),
        ("[data]\nx = 1", "`data` is a setting, not a section: write data = …"),
    ];
    for (file, told) in cases {
        assert_eq!(problems(file, &[], &[]), [format!("p.toml:1: {told}")], "{file}");
    }
    let found = problems("http.wait = \"5 minutes\"", &[], &[]);
    assert!(found[0].starts_with("p.toml:1: `http.wait`: \"5 minutes\" is not a duration: write 15m"), "{found:?}");
}

#[test]
fn what_cannot_be_true_together_is_refused_where_it_was_said() {
    let cases = [
        (
            "\n[tls]\ncertificate = \"c.pem\"",
            "p.toml:3: `tls.certificate`: a certificate needs its key: set `tls.key` too",
        ),
        ("\n[tls]\nkey = \"k.pem\"", "p.toml:3: `tls.key`: a key needs its certificate: set `tls.certificate` too"),
        ("http.batch = 0", "p.toml:1: `http.batch`: 0 is too small: write 1 or more"),
        ("http.body_time = 0", "p.toml:1: `http.body_time`: 0 is too short: write a duration such as 10s"),
        ("store.memory = \"1KiB\"", "p.toml:1: `store.memory`: too small: write 1MiB or more"),
        ("store = \"postgres\"", "p.toml:1: `store.url`: write postgres://USER@HOST/DATABASE"),
        (
            "[store]\nurl = \"memory\"\nsync = \"1s\"",
            "p.toml:3: `store.sync`: it means nothing for the store `memory`: remove it",
        ),
        (
            "[store]\nurl = \"postgres://u:hunter2@db/x\"\npassword_file = \"f\"",
            "p.toml:3: `store.password_file`: the password is in the URL already: remove it there, or here",
        ),
        (
            "[store]\nurl = \"postgres://u@db/x\"\nkey = \"k.pem\"",
            "p.toml:3: `store.key`: a certificate and its key go together: set `store.certificate` and `store.key`",
        ),
        ("listen = []", "p.toml:1: `listen`: the list is empty: give at least one address"),
        (
            "trace.endpoint = \"localhost\"",
            "p.toml:1: `trace.endpoint`: not a URL: write something like http://127.0.0.1:4318",
        ),
    ];
    for (file, told) in cases {
        assert_eq!(problems(file, &[], &[]), [told], "{file}");
    }
    let found = problems("", &[("PUNCTUAL_LOG_LEVEL", "loud")], &[]);
    assert!(found[0].starts_with("PUNCTUAL_LOG_LEVEL: `log.level`: \"loud\" is not a log level"), "{found:?}");
}

#[test]
fn what_is_not_toml_is_refused_with_its_line() {
    let found = problems("data = \"d\"\nlisten = \n", &[], &[]);
    assert!(found[0].starts_with("p.toml:2: not valid TOML: "), "{found:?}");
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let problems = load(&Sources { file: Some("/nowhere/p.toml".into()), ..Sources::default() }).err().unwrap();
    let told = problems.to_string();
    assert!(told.contains("/nowhere/p.toml:1: the file cannot be read") && told.contains("--config"), "{told}");
}

#[test]
fn the_documentation_is_what_the_table_says() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    let there = fs::read_to_string(file).unwrap_or_default();
    assert!(there == markdown(), "run: cargo run -p punctual -- config --markdown > docs/configuration.md");
}
