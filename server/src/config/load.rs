//! Brings defaults, file, environment and flags together, and checks what they add up to.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toml_edit::Value;

use super::file;
use super::flags::Overrides;
use super::problem::{Origin, Problems, nearest};
use super::settings::{Config, SETTINGS};
use super::table::Setting;
use super::value::{Given, Size};
use crate::failure::Failure;

/// The file that is read if none is named and it is there.
const USUAL_FILE: &str = "punctual.toml";

/// Variables of our own that are not settings: they say where a client finds its server, and which file to read.
const OTHER_VARIABLES: [&str; 5] =
    ["PUNCTUAL_URL", "PUNCTUAL_TOKEN", "PUNCTUAL_CA", "PUNCTUAL_PERSON", "PUNCTUAL_CONFIG"];

/// Where settings come from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file that was named.
    pub file: Option<PathBuf>,
    /// The environment.
    pub environment: Vec<(String, String)>,
    /// The flags.
    pub flags: Overrides,
}

impl Sources {
    /// With this process's environment.
    pub fn new(file: Option<PathBuf>, flags: Overrides) -> Sources {
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let environment = std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect();
        Sources { file, environment, flags }
    }
}

/// The settings of a server on this machine, for commands that work on its files; `data` is a directory that was named.
pub fn of_server(file: Option<PathBuf>, data: Option<PathBuf>) -> Result<Config, Failure> {
    overridden(file, data.map(|data| ("data".to_owned(), data.display().to_string())))
}

/// The same for commands that work on a store that was named by its URL.
pub fn of_store(file: Option<PathBuf>, url: String) -> Result<Config, Failure> {
    overridden(file, Some(("store.url".to_owned(), url)))
}

fn overridden(file: Option<PathBuf>, said: Option<(String, String)>) -> Result<Config, Failure> {
    let sources = Sources::new(file, Overrides(said.into_iter().collect()));
    load(&sources).map(|effective| effective.config).map_err(|problems| Failure::Usage(problems.to_string()))
}

/// What can be said of any store.
const OF_ANY: [&str; 3] = ["store.url", "store.moving_to_password", "store.moving_to_password_file"];

/// What counts, and where it came from.
pub struct Effective {
    /// The settings.
    pub config: Config,
    /// The files that were read.
    pub files: Vec<String>,
    /// Each setting as a file would write it, in the order of the table.
    pub(super) values: Vec<(&'static Setting, Value, Origin)>,
}

impl Effective {
    /// Whether a setting was said by a flag of the command line.
    pub fn is_by_flag(&self, name: &str) -> bool {
        self.values.iter().any(|(setting, _, origin)| setting.name == name && matches!(origin, Origin::Flag(_)))
    }
}

/// Brings all sources together.
pub fn load(sources: &Sources) -> Result<Effective, Problems> {
    let mut loading = Loading { config: Config::default(), values: Vec::new(), problems: Problems::default() };
    for setting in SETTINGS {
        // Shown as a file would write it once it was taken.
        loading.values.push((setting, Value::from(setting.default), Origin::Default));
        loading.take(setting, &Given::Text(setting.default.to_owned()), &Origin::Default);
    }
    let files = loading.take_file(sources.file.as_deref());
    loading.take_environment(&sources.environment);
    for (name, value) in &sources.flags.0 {
        if let Some((setting, flag)) = Setting::named(name).and_then(|setting| Some((setting, setting.flag()?))) {
            loading.take(setting, &Given::Text(value.clone()), &Origin::Flag(flag));
        }
    }
    if loading.problems.0.is_empty() {
        loading.check();
    }
    let Loading { config, values, problems } = loading;
    if problems.0.is_empty() { Ok(Effective { config, files, values }) } else { Err(problems) }
}

struct Loading {
    config: Config,
    values: Vec<(&'static Setting, Value, Origin)>,
    problems: Problems,
}

impl Loading {
    fn take(&mut self, setting: &'static Setting, given: &Given, origin: &Origin) {
        match (setting.take)(&mut self.config, given) {
            Ok(shown) => {
                let known = self.values.iter_mut().find(|(known, ..)| known.name == setting.name);
                if let Some(known) = known {
                    *known = (setting, shown, origin.clone());
                }
            }
            Err(what) => self.problems.add(origin, format!("`{}`: {what}", setting.name)),
        }
    }

    fn take_file(&mut self, named: Option<&Path>) -> Vec<String> {
        let path = named.unwrap_or(Path::new(USUAL_FILE));
        let name = path.display().to_string();
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => return Vec::new(),
            Err(error) => {
                let origin = Origin::File { file: name, line: 1 };
                self.problems.add(
                    &origin,
                    format!("the file cannot be read: {error}; give another one with --config, or omit it"),
                );
                return Vec::new();
            }
        };
        for file::Assignment { setting, given, origin } in file::read(&name, &text, &mut self.problems) {
            self.take(setting, &given, &origin);
        }
        vec![name]
    }

    fn take_environment(&mut self, environment: &[(String, String)]) {
        let mut ours: Vec<_> = environment.iter().filter(|(name, _)| name.starts_with("PUNCTUAL_")).collect();
        ours.sort();
        let variables: Vec<String> = SETTINGS.iter().map(Setting::variable).collect();
        for (name, value) in ours {
            let origin = Origin::Variable(name.clone());
            if let Some(setting) = SETTINGS.iter().find(|setting| setting.variable() == *name) {
                self.take(setting, &Given::Text(value.clone()), &origin);
            } else if !OTHER_VARIABLES.contains(&name.as_str()) {
                let known = variables.iter().map(String::as_str).chain(OTHER_VARIABLES);
                let fix = match nearest(name, known) {
                    Some(near) => format!("did you mean {near}?"),
                    None => "run `punctual config` to see all settings, or unset it if it is not meant for Punctual"
                        .to_owned(),
                };
                self.problems.add(&origin, format!("no setting has this name: {fix}"));
            }
        }
    }

    /// What a setting's type does not say, and what settings must have in common.
    fn check(&mut self) {
        let config = self.config.clone();
        self.demand(!config.listen.is_empty(), "listen", "the list is empty: give at least one address");
        self.check_store(&config);
        let (store, http) = (&config.store, &config.http);
        self.demand(store.memory >= Size(1 << 20), "store.memory", "too small: write 1MiB or more");
        self.demand(store.journal >= Size(1 << 20), "store.journal", "too small: write 1MiB or more");
        self.demand(http.header_size >= Size(8 << 10), "http.header_size", "too small: write 8KiB or more");
        self.demand(
            http.request_size >= config.tasks.max_body,
            "http.request_size",
            "a task with the largest allowed body does not fit in a request: raise it, or lower `tasks.max_body`",
        );
        let tls = &config.tls;
        self.demand(
            tls.key.is_some() || tls.certificate.is_none(),
            "tls.certificate",
            "a certificate needs its key: set `tls.key` too",
        );
        self.demand(
            tls.certificate.is_some() || tls.key.is_none(),
            "tls.key",
            "a key needs its certificate: set `tls.certificate` too",
        );
        let links = &config.links;
        let given = [&links.certificate, &links.key, &links.ca].into_iter().filter(|file| file.is_some()).count();
        for (is_given, setting) in [
            (links.certificate.is_some(), "links.certificate"),
            (links.key.is_some(), "links.key"),
            (links.ca.is_some(), "links.ca"),
        ] {
            let all = "links are encrypted with three files: set `links.certificate`, `links.key` and `links.ca`";
            self.demand(!is_given || given == 3, setting, all);
        }
        if let Err(error) = crate::logs::filter(&config.log.level) {
            self.demand(false, "log.level", &error);
        }
        if let Some(endpoint) = &config.trace.endpoint {
            let is_url = endpoint.starts_with("http://") || endpoint.starts_with("https://");
            self.demand(is_url, "trace.endpoint", "not a URL: write something like http://127.0.0.1:4318");
        }
    }

    /// Whether there is such a store, and whether all that is said about it concerns it.
    fn check_store(&mut self, config: &Config) {
        let store = &config.store;
        let storage = match crate::stores::named(&store.url) {
            Ok(storage) => storage,
            Err(what) => return self.demand(false, "store.url", &what),
        };
        let is_said = |(setting, value, origin): &&(&Setting, Value, Origin)| {
            let is_default = || setting.default_shown().is_ok_and(|shown| shown.to_string() == value.to_string());
            *origin != Origin::Default
                && !is_default()
                && setting.place().0 == Some("store")
                && !OF_ANY.contains(&setting.name)
        };
        let said: Vec<&str> = self.values.iter().filter(is_said).map(|(setting, ..)| setting.name).collect();
        for name in said {
            let what = format!("it means nothing for the store `{}`: remove it", store.url.scheme());
            self.demand(storage.knows(name), name, &what);
        }
        let has_other = store.password.is_some() || store.password_file.is_some();
        let twice = "the password is in the URL already: remove it there, or here";
        let name = if store.password.is_some() { "store.password" } else { "store.password_file" };
        self.demand(!(store.url.has_password() && has_other), name, twice);
        self.demand(
            store.password.is_none() || store.password_file.is_none(),
            "store.password_file",
            "the password is given by `store.password` too: remove one of the two",
        );
        self.demand(
            store.certificate.is_some() == store.key.is_some(),
            if store.key.is_some() { "store.key" } else { "store.certificate" },
            "a certificate and its key go together: set `store.certificate` and `store.key`",
        );
    }

    fn demand(&mut self, is_kept: bool, name: &str, what: &str) {
        if is_kept {
            return;
        }
        let origin = self.values.iter().find(|(setting, ..)| setting.name == name).map(|(_, _, origin)| origin.clone());
        self.problems.add(&origin.unwrap_or(Origin::Default), format!("`{name}`: {what}"));
    }
}
