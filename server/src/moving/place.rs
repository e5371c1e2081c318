//! A store that somebody names, and the settings it is opened with.

use std::path::PathBuf;
use std::sync::Arc;

use punctual_core::Clock;

use crate::config::{Config, StorePart, StoreUrl};
use crate::failure::Failure;
use crate::stores::{Opened, Opening, Unopened, chosen, named};

/// A store and where it is.
pub struct Place {
    pub config: Config,
    /// What people call it, without secrets. It can be read again.
    pub name: String,
}

impl Place {
    /// Understands `almanac`, `almanac:DIRECTORY`, a directory, or a URL. What a server's settings say about stores of this
    /// kind counts for this one, too.
    pub fn read(text: &str, settings: &Config) -> Result<Place, Failure> {
        if text == "memory" {
            let why = "`memory` forgets everything when the server stops: a store cannot be moved into it, nor from it \
                       but by the server itself";
            return Err(Failure::Usage(why.into()));
        }
        let is_directory = !text.contains("://") && text != "almanac";
        let data = text.strip_prefix("almanac:").unwrap_or(text);
        let data = if is_directory { data.into() } else { settings.data.clone() };
        let url = StoreUrl::read(if is_directory { "almanac" } else { text }).map_err(Failure::Usage)?;
        let kind = |url: &StoreUrl| named(url).map(|storage| storage.form()).map_err(Failure::Usage);
        let is_of_kind = kind(&url)? == kind(&settings.store.url)?;
        let store = if is_of_kind { settings.store.clone() } else { Config::default().store };
        Ok(Place::of(Config { data, store: StorePart { url, ..store }, ..Config::default() }))
    }

    /// The store that settings choose.
    pub fn of(config: Config) -> Place {
        let name = if config.store.url.is_remote() {
            config.store.url.without_secrets().to_string()
        } else {
            let data = std::path::absolute(&config.data).unwrap_or_else(|_| config.data.clone());
            format!("{}:{}", config.store.url, data.display())
        };
        Place { config, name }
    }

    /// As one to move into: its password is in its URL, or in this file, or what the settings say for that.
    #[must_use]
    pub fn into_target(mut self, settings: &StorePart, file: Option<PathBuf>) -> Place {
        let said = !self.config.store.url.has_password();
        let store = &mut self.config.store;
        store.password = settings.moving_to_password.clone().filter(|_| said && file.is_none());
        store.password_file = file.or_else(|| settings.moving_to_password_file.clone()).filter(|_| said);
        self
    }

    /// What to do when everything was moved here from there.
    pub fn advice(&self, from: &str) -> String {
        let settings = match self.config.store.url.is_remote() {
            true => format!("set `store` to {}", self.name),
            false => format!(
                "set `store` to almanac and `data` to {}, where tokens.toml is if there are tokens,",
                self.config.data.display()
            ),
        };
        format!("{settings} before the next start of the server: it refuses to start on {from}")
    }

    pub fn open(&self, clock: Arc<dyn Clock>) -> Result<Opened, Unopened> {
        let opening = Opening { config: &self.config, clock, is_forced: false };
        chosen(&self.config)?.open(&opening)
    }

    /// For those who do not wait.
    pub fn open_now(&self, clock: Arc<dyn Clock>) -> Result<Opened, Failure> {
        self.open(clock).map_err(|unopened| match unopened.into_failure() {
            Failure::Usage(why) => Failure::Usage(format!("{}: {why}", self.name)),
            Failure::Failed(why) => Failure::Failed(format!("{}: {why}", self.name)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    #[test]
    fn what_a_place_is_called_can_be_read_again_and_has_no_secret() {
        let settings = Config::default();
        for (text, name) in [
            ("postgres://u:hunter2@db/x?sslmode=require", "postgres://u@db/x?sslmode=require"),
            ("postgres://u@db/x?password=hunter2&a=b", "postgres://u@db/x?a=b"),
            ("mysql://u@db/x?password=hunter2", "mysql://u@db/x"),
            ("redis://:hunter2@cache", "redis://cache"),
            ("almanac:/var/lib/x", "almanac:/var/lib/x"),
            ("/var/lib/x", "almanac:/var/lib/x"),
        ] {
            let called = |text: &str| Place::read(text, &settings).expect(text).name;
            assert_eq!((called(text), called(name)), (name.to_owned(), name.to_owned()));
        }
        assert!(Place::read("memory", &settings).is_err());
        assert!(Place::read("mongodb://u:hunter2@db/x", &settings).is_err());
    }

    #[test]
    fn the_password_of_a_target_is_in_its_url_or_said_for_targets() {
        let mut settings = Config::default();
        settings.store.url = StoreUrl::read("redis://:source@old").expect("it is a URL");
        settings.store.moving_to_password = Some(Secret("said".into()));
        let whole = |text: &str, file: Option<&str>| {
            let place = Place::read(text, &settings).expect("it is a place");
            place.into_target(&settings.store, file.map(PathBuf::from)).config.store_url()
        };
        assert_eq!(whole("redis://new", None), Ok("redis://:said@new".into()));
        assert_eq!(whole("redis://:own@new", None), Ok("redis://:own@new".into()));
        assert!(whole("redis://new", Some("/no/such/file")).is_err(), "the file that was named counts");
    }

    #[test]
    fn settings_count_for_stores_of_their_kind() {
        let mut settings = Config::default();
        settings.store.url = StoreUrl::read("postgresql://a/x").expect("it is a URL");
        settings.store.schema = Some("own".into());
        let schema = |text| Place::read(text, &settings).expect("it is a place").config.store.schema;
        assert_eq!(schema("postgres://b/x").as_deref(), Some("own"));
        assert_eq!(schema("mysql://b/x"), None);
    }
}
