//! The settings of topics and queues on the command line and in docs/settings.md, compared with the wire's lists.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::fmt::Write;
use std::path::Path;

use clap::{Args, Command, FromArgMatches};
use punctual_wire::{Kind, QueueSettings, Settings, TopicSettings, merge};
use serde_json::{Value, json};

use super::settings::{Set, flag};

/// Reads what stands behind `set`.
pub fn set<S: Settings>(line: &str) -> Result<Set<S>, clap::Error> {
    let words = std::iter::once("set").chain(line.split(' '));
    Set::from_arg_matches(&Set::<S>::augment_args(Command::new("set")).try_get_matches_from(words)?)
}

/// A patch of one setting.
fn patch(path: &str, value: Value) -> Value {
    path.rsplit('.').fold(value, |value, name| json!({ name: value }))
}

/// A card is another one when a setting is another: alone, or beside all others.
pub fn every_setting_shows<S: Settings>(card: impl Fn(&Value) -> String) {
    let (default, mut all) = (json!(S::default()), json!(S::default()));
    for (path, setting) in S::values() {
        merge(&mut all, patch(&path, setting.kind.example()));
    }
    for (path, setting) in S::values() {
        let (mut alone, mut without) = (default.clone(), all.clone());
        merge(&mut alone, patch(&path, setting.kind.example()));
        merge(&mut without, patch(&path, path.split('.').fold(&default, |within, name| &within[name]).clone()));
        let shows = card(&alone) != card(&default) || card(&without) != card(&all);
        assert!(shows, "{path} is not told in\n{}", card(&all));
    }
}

/// An example as people type it.
fn typed(kind: Kind) -> String {
    match (kind, kind.example()) {
        (Kind::Rate, rate) => format!("{}:{}", rate["per_second"], rate["burst"]),
        (Kind::Bindings, list) => {
            let word = |name: &str| list[0][name].as_str().unwrap().to_owned();
            format!("{}={}", word("queue"), word("pattern"))
        }
        (Kind::Choice(_), word) => word.as_str().unwrap().replace('_', "-"),
        (_, Value::String(text)) => text,
        (_, value) => value.to_string(),
    }
}

fn each_has_a_flag<S: Settings>() {
    for (path, setting) in S::values() {
        let flag = flag(&path);
        let given: Set<S> = set(&format!("name --{flag} {}", typed(setting.kind))).unwrap();
        assert_eq!(json!(given.patch), patch(&path, setting.kind.example()), "--{flag}");
        let taken_back: Set<S> = set(&format!("name --unset {flag}")).unwrap();
        assert_eq!(json!(taken_back.patch), patch(&path, Value::Null), "--unset {flag}");
    }
}

#[test]
fn every_setting_has_a_flag_that_sets_it_and_is_set_back_by_its_name() {
    each_has_a_flag::<TopicSettings>();
    each_has_a_flag::<QueueSettings>();
}

#[test]
fn what_does_not_fit_a_setting_is_refused() {
    for line in
        ["q --jitter 101", "q --max-length 0", "q --order last", "q --lease 5", "q --paused maybe", "q --unset x"]
    {
        assert!(set::<QueueSettings>(line).is_err(), "{line}");
    }
}

const HEAD: &str = "\
<!-- Made of the lists in client/wire/src/settings.rs; a test compares it. Change those instead. -->
# Settings of topics and queues

Topics and queues work with their defaults until you change something: with `punctual topics set NAME` and
`punctual queues set NAME` and the flags below ([the command line](cli.md#topics)), or over HTTP with the names in the first column
([PUT and PATCH](http.md#operate)). A name with dots is nested: `retry.attempts` is `{\"retry\": {\"attempts\": 7}}`. `--unset FLAG`, or `null` in a
`PATCH`, resets a setting to its default.
";

/// What docs/settings.md says.
fn page() -> String {
    let mut page = HEAD.to_owned();
    page += "\n## Of a topic\n";
    describe::<TopicSettings>(&mut page);
    page += "\n## Of a queue\n";
    describe::<QueueSettings>(&mut page);
    page
}

fn describe<S: Settings>(page: &mut String) {
    *page += "\n| setting | such as | what it is | flag |\n| --- | --- | --- | --- |\n";
    for (path, setting) in S::values() {
        let mut about = setting.about();
        for (word, meaning) in setting.kind.choices() {
            _ = write!(about, " `{word}`: {meaning}");
        }
        let (example, flag) = (setting.kind.example(), flag(&path));
        _ = writeln!(page, "| `{path}` | `{example}` | {about} | `--{flag}` |");
    }
}

#[test]
fn the_documentation_is_made_of_the_lists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if std::fs::read_to_string(root.join("docs/settings.md")).unwrap_or_default() != page() {
        std::fs::write(root.join("target/settings.md"), page()).unwrap();
        panic!("run: mv target/settings.md docs/settings.md");
    }
}
