//! A store that somebody names, and the settings it is opened with.

use std::path::PathBuf;
use std::sync::Arc;

use punctual_core::Clock;

use crate::config::{Config, Secret, StorePart, StoreUrl, of_server, of_store};
use crate::failure::Failure;
use crate::stores::{Opened, Opening, Unopened, chosen};

/// A store and where it is.
pub struct Place {
    pub config: Config,
    /// What people call it, without secrets.
    pub name: String,
}

impl Place {
    /// Understands `almanac`, `almanac:DIRECTORY`, a directory, or a URL.
    pub fn read(text: &str, file: Option<PathBuf>) -> Result<Place, Failure> {
        if text == "memory" {
            return Err(Failure::Usage("`memory` forgets everything when the server stops: it cannot be moved".into()));
        }
        if !text.contains("://") && text != "almanac" {
            let data = text.strip_prefix("almanac:").unwrap_or(text).into();
            return Ok(Place::of(Config { data, ..Config::default() }));
        }
        let url = StoreUrl::read(text).map_err(Failure::Usage)?;
        let configured = of_server(file.clone(), None)?;
        // What is said about a store of another kind does not concern this one.
        Ok(Place::of(match configured.store.url.scheme() == url.scheme() {
            true => of_store(file, text.to_owned())?,
            false => {
                let store = StorePart { url, ..Config::default().store };
                Config { data: configured.data, store, ..Config::default() }
            }
        }))
    }

    /// The store that settings choose.
    pub fn of(config: Config) -> Place {
        let name = if config.store.url.is_remote() {
            config.store.url.to_string()
        } else {
            let data = std::path::absolute(&config.data).unwrap_or_else(|_| config.data.clone());
            format!("{}:{}", config.store.url, data.display())
        };
        Place { config, name }
    }

    /// The password is this one, and not the one in the settings.
    #[must_use]
    pub fn with_password(mut self, password: Option<Secret>, file: Option<PathBuf>) -> Place {
        (self.config.store.password, self.config.store.password_file) = (password, file);
        self
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
