//! Opening a store: whether this Redis will do, and whether its layout is ours.

use std::time::Instant;

use punctual_core::store::StoreError;
use punctual_database::{Config, Contents, Database, Kind, Migrated, OpenError, Part, Status};
use redis::{Cmd, Value, cmd};

use crate::RedisStore;
use crate::condition::{self, Condition};
use crate::health::Health;
use crate::keys::{Keys, LAYOUT};
use crate::servers::{Call, Servers};
use crate::survey::{self, Sizes};
use crate::trouble::Trouble;
use crate::url;
use crate::value::text;

impl Database for RedisStore {
    const KIND: Kind = Kind {
        name: "Redis",
        word: "redis",
        schemes: &[
            "redis",
            "rediss",
            "redis+sentinel",
            "rediss+sentinel",
            "redis+cluster",
            "rediss+cluster",
            "valkey",
            "valkeys",
        ],
        form: "redis://HOST",
        settings: &["replicas"],
        backup: "a copy of its append-only file or of a snapshot",
    };

    fn open(config: Config) -> Result<RedisStore, OpenError> {
        let store = RedisStore::reach(&config)?;
        store.adopt()?;
        Ok(store)
    }

    fn attach(config: Config) -> Result<RedisStore, OpenError> {
        let store = RedisStore::reach(&config)?;
        match store.layout()? {
            Some(LAYOUT) => Ok(store),
            Some(found) => Err(other_layout(found)),
            None => {
                let why = format!("there is no store at {} under the prefix {}", store.target, store.prefix);
                Err(OpenError::Refused(why))
            }
        }
    }

    /// So far there is only one version.
    fn migrate(config: &Config) -> Result<Migrated, OpenError> {
        let from = RedisStore::reach(config)?.adopt()?;
        Ok(Migrated { from, to: LAYOUT })
    }

    fn status(&self) -> Status {
        Status { memory_bytes: self.health.bytes(), ..self.servers.counters.status(self.servers.connections()) }
    }

    fn warnings(&self) -> Vec<String> {
        self.conditions.iter().flat_map(|condition| condition.warnings(self.replicas)).collect()
    }

    /// Parts of a shard that do not have the same rows.
    fn check(&self) -> Result<Vec<String>, StoreError> {
        Ok(survey::sizes(self)?.iter().filter_map(Sizes::damage).collect())
    }

    /// Redis tells how much memory it uses as a whole.
    fn contents(&self) -> Result<Contents, StoreError> {
        let shards = survey::sizes(self)?.iter().map(Sizes::contents).collect();
        let memory =
            Part { name: "memory of Redis, with all else that is in it".to_owned(), bytes: self.health.bytes() };
        Ok(Contents { version: LAYOUT, parts: vec![memory], shards })
    }
}

impl RedisStore {
    fn reach(config: &Config) -> Result<RedisStore, OpenError> {
        config.check(&RedisStore::KIND)?;
        let target = url::parse(&config.url)?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b':' | b'-' | b'_');
        // Braces would tear the keys of a shard apart.
        let prefix = config.prefix.as_deref().unwrap_or("punctual");
        if !(1..=64).contains(&prefix.len()) || !prefix.bytes().all(is_plain) {
            let why = "the prefix of the keys is 1 to 64 letters, digits, dots, colons, dashes and underscores";
            return Err(OpenError::Url(why.to_owned()));
        }
        if config.replicas > 0 && target.wait * 2 > config.patience {
            let why = "replicas are waited for (wait_ms) at most half as long as a call may take (patience)";
            return Err(OpenError::Url(why.to_owned()));
        }
        let servers = Servers::new(&target, config)?;
        let by = Instant::now() + config.patience;
        let conditions = Condition::of_all(&servers, by).map_err(hindered)?;
        if let Some(why) = conditions.iter().find_map(Condition::unfit) {
            return Err(OpenError::Refused(why));
        }
        let health = Health::default();
        health.see(&condition::memory(&servers, by).map_err(hindered)?);
        Ok(RedisStore {
            keys: Keys::new(prefix),
            prefix: prefix.to_owned(),
            replicas: config.replicas,
            target,
            servers,
            health,
            conditions,
        })
    }

    /// The version of the layout that is there.
    fn layout(&self) -> Result<Option<u32>, OpenError> {
        let mut get = cmd("GET");
        get.arg(self.keys.shared("layout"));
        let found = self.servers.call_one(self.shared(get), self.servers.deadline()).map_err(hindered)?;
        match (text(&found).and_then(|version| version.parse().ok()), found) {
            (_, Value::Nil) => Ok(None),
            (Some(version), _) => Ok(Some(version)),
            (None, _) => Err(OpenError::Refused("what is under the key of the layout is not ours".to_owned())),
        }
    }

    /// Makes the layout ours, and says which one was there.
    fn adopt(&self) -> Result<Option<u32>, OpenError> {
        let mut begin = cmd("SETNX");
        begin.arg(self.keys.shared("layout")).arg(LAYOUT);
        let begun = self.servers.call_one(self.shared(begin), self.servers.deadline()).map_err(hindered)?;
        match self.layout()? {
            Some(LAYOUT) if begun == Value::Int(1) => Ok(None),
            Some(LAYOUT) => Ok(Some(LAYOUT)),
            found => Err(other_layout(found.unwrap_or_default())),
        }
    }

    pub(crate) fn shared(&self, command: Cmd) -> Call {
        Call { slot: self.keys.shared_slot(), command, may_repeat: true, writes: false }
    }
}

fn other_layout(found: u32) -> OpenError {
    OpenError::Refused(format!(
        "the store has layout {found}, and this server knows {LAYOUT}: it is from a newer server, so run that one"
    ))
}

fn hindered(trouble: Trouble) -> OpenError {
    match trouble {
        Trouble::Away(why) => OpenError::Away(why),
        trouble => OpenError::Refused(trouble.to_string()),
    }
}
