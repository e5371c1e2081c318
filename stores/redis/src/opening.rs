//! Opening a store: whether this Redis will do, and whether its layout is ours.

use std::time::Instant;

use punctual_core::store::{ShardId, StoreError};
use redis::{Cmd, Value, cmd};

use crate::RedisStore;
use crate::condition::{self, Condition};
use crate::config::{Config, OpenError};
use crate::health::Health;
use crate::keys::{Keys, LAYOUT};
use crate::scripts;
use crate::servers::{Call, Servers};
use crate::trouble::Trouble;
use crate::url;
use crate::value::{list, number, odd, text};

/// What a migration has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version that was there, if there was a store.
    pub from: Option<u32>,
    /// The version that is there now.
    pub to: u32,
}

impl RedisStore {
    /// Connects, and begins a store if there is none.
    pub fn open(config: Config) -> Result<RedisStore, OpenError> {
        let store = RedisStore::reach(&config)?;
        store.adopt()?;
        Ok(store)
    }

    /// Connects to a store that is there, and changes nothing.
    pub fn attach(config: Config) -> Result<RedisStore, OpenError> {
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

    /// Brings the layout to the version of this program. So far there is only one.
    pub fn migrate(config: &Config) -> Result<Migrated, OpenError> {
        let from = RedisStore::reach(config)?.adopt()?;
        Ok(Migrated { from, to: LAYOUT })
    }

    /// Damage that only the store itself can see: parts of a shard that do not have the same rows.
    pub fn check(&self) -> Result<Vec<String>, StoreError> {
        let by = self.servers.deadline();
        let mut members = cmd("SMEMBERS");
        members.arg(self.keys.shared("shards"));
        let shards = list(self.servers.call_one(self.shared(members), by)?).ok_or_else(|| odd("a check"))?;
        let mut damage = Vec::new();
        for shard in shards.iter().filter_map(number).map(ShardId) {
            let command = scripts::sizes().on(&self.keys.shard(shard));
            let call = Call { slot: self.keys.slot(shard), command, may_repeat: true, writes: false };
            let sizes = list(self.servers.call_one(call, self.servers.deadline())?).ok_or_else(|| odd("a check"))?;
            let sizes: Vec<u64> = sizes.iter().filter_map(number).collect();
            let [ordered, names, rows, bodies, groups] = sizes[..] else { return Err(odd("a check")) };
            if ordered != rows || names != rows || bodies > rows || groups > rows {
                damage.push(format!(
                    "shard {}: {rows} rows, of which {ordered} are in the order of time and {names} have a name; {bodies} \
                     bodies lie apart, {groups} are in groups",
                    shard.0
                ));
            }
        }
        Ok(damage)
    }

    fn reach(config: &Config) -> Result<RedisStore, OpenError> {
        let target = url::parse(&config.url)?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b':' | b'-' | b'_');
        // Braces would tear the keys of a shard apart.
        if !(1..=64).contains(&config.prefix.len()) || !config.prefix.bytes().all(is_plain) {
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
            keys: Keys::new(&config.prefix),
            prefix: config.prefix.clone(),
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

    fn shared(&self, command: Cmd) -> Call {
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
