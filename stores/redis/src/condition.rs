//! What kind of Redis a server is: whether it will do, what a confirmation is worth on it, and how full it is.

use std::fmt;
use std::time::Instant;

use punctual_database::Address;
use redis::{Value, cmd};

use crate::servers::Servers;
use crate::trouble::{Trouble, said};
use crate::value::text;

/// A server, as it was when it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) server: Address,
    /// `Redis 7.0.15`, or `Valkey 8.1.0`.
    pub(crate) product: String,
    pub(crate) major: u32,
    /// What it does when memory is used up.
    pub(crate) policy: String,
    /// The memory in use, and the limit; 0 is none.
    pub(crate) used: u64,
    pub(crate) limit: u64,
    pub(crate) durability: Durability,
    pub(crate) replicas: u32,
    /// Below how many replicas it takes no writes, if it says so.
    pub(crate) min_replicas: u32,
}

/// What is left of what Redis has confirmed after its machine lost power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// All.
    Always,
    /// All but the last second or two.
    EverySecond,
    /// All but what the system had not yet written, about half a minute.
    WhenTheSystemLikes,
    /// There is a file, and it is not said how often it is synced.
    Unsaid,
    /// What was there at the last snapshot.
    Snapshots,
    /// Nothing.
    Nothing,
}

impl Condition {
    /// Asks all servers that have slots.
    pub(crate) fn of_all(servers: &Servers, by: Instant) -> Result<Vec<Condition>, Trouble> {
        let mut settings = cmd("CONFIG");
        settings.arg("GET").arg(&["appendfsync", "save", "min-replicas-to-write"]);
        let said_settings = servers.each(&settings, by)?;
        let infos = servers.each(&cmd("INFO"), by)?;
        infos
            .into_iter()
            .map(|(server, info)| {
                // Services that forbid CONFIG say less.
                let settings = said_settings.iter().find(|(of, _)| *of == server).map(|(_, settings)| settings);
                Condition::of(server, &info, settings)
            })
            .collect()
    }

    fn of(server: Address, info: &Value, settings: Option<&Value>) -> Result<Condition, Trouble> {
        if let Value::ServerError(error) = info {
            return Err(Trouble::of(error, said(error)).at(server));
        }
        let info = text(info).unwrap_or_default();
        let setting = |name: &str| setting(settings?, name);
        let (product, version) = match field(info, "valkey_version") {
            Some(version) => ("Valkey", version),
            None => ("Redis", field(info, "redis_version").unwrap_or("of an unknown version")),
        };
        Ok(Condition {
            product: format!("{product} {version}"),
            major: version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or_default(),
            policy: field(info, "maxmemory_policy").unwrap_or_default().to_owned(),
            used: numbered(info, "used_memory"),
            limit: numbered(info, "maxmemory"),
            durability: durability(field(info, "aof_enabled") == Some("1"), setting("appendfsync"), setting("save")),
            replicas: u32::try_from(numbered(info, "connected_slaves")).unwrap_or(u32::MAX),
            min_replicas: setting("min-replicas-to-write").and_then(|least| least.parse().ok()).unwrap_or_default(),
            server,
        })
    }

    /// Why the store cannot be kept here, if it cannot.
    pub(crate) fn unfit(&self) -> Option<String> {
        let Condition { server, product, policy, .. } = self;
        if self.major < 7 {
            return Some(format!("{server} is {product}, and Redis 7 or Valkey is needed"));
        }
        if policy != "noeviction" {
            return Some(format!(
                "{server} removes keys when memory is used up (maxmemory-policy is {policy}), and with them tasks that \
                 were confirmed: set it to noeviction in redis.conf, or with CONFIG SET maxmemory-policy noeviction"
            ));
        }
        None
    }

    /// What an operator should know before relying on it.
    pub(crate) fn warnings(&self, waits_for: usize) -> Vec<String> {
        let Condition { server, .. } = self;
        let mut warnings = Vec::new();
        match self.durability {
            Durability::Always => {}
            Durability::EverySecond => warnings.push(format!(
                "{server} syncs once a second (appendfsync everysec): a crash of its machine loses up to two seconds of \
                 confirmed tasks"
            )),
            Durability::WhenTheSystemLikes => warnings.push(format!(
                "{server} never syncs (appendfsync no): a crash of its machine loses confirmed tasks of half a minute"
            )),
            Durability::Unsaid => {
                warnings.push(format!("{server} does not say how often it syncs its append-only file"));
            }
            Durability::Snapshots => warnings.push(format!(
                "{server} keeps snapshots only (appendonly no): its end loses confirmed tasks of minutes or hours"
            )),
            Durability::Nothing => warnings.push(format!(
                "{server} writes nothing to disk (appendonly no, save \"\"): its end loses all tasks"
            )),
        }
        if self.limit == 0 {
            warnings.push(format!(
                "{server} has no limit of memory (maxmemory 0): the system may end it when memory is used up"
            ));
        }
        if usize::try_from(self.replicas).is_ok_and(|replicas| replicas < waits_for) {
            let replicas = self.replicas;
            warnings
                .push(format!("{server} has {replicas} replicas, and {waits_for} are waited for: no commit succeeds"));
        }
        if self.replicas > 0 && waits_for == 0 {
            warnings.push(format!(
                "{server} has replicas that are not waited for: a failover may lose the last moments (`replicas`)"
            ));
        }
        warnings
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Durability::Always => "synced before it is confirmed (appendfsync always)",
            Durability::EverySecond => "synced every second (appendfsync everysec)",
            Durability::WhenTheSystemLikes => "written, and synced by the system some time (appendfsync no)",
            Durability::Unsaid => "written to the append-only file",
            Durability::Snapshots => "kept in memory until the next snapshot (appendonly no)",
            Durability::Nothing => "kept in memory only",
        })
    }
}

fn durability(has_file: bool, sync: Option<&str>, save: Option<&str>) -> Durability {
    match (has_file, sync, save) {
        (true, Some("always"), _) => Durability::Always,
        (true, Some("everysec"), _) => Durability::EverySecond,
        (true, Some("no"), _) => Durability::WhenTheSystemLikes,
        (true, _, _) => Durability::Unsaid,
        (false, _, Some("")) => Durability::Nothing,
        (false, _, _) => Durability::Snapshots,
    }
}

/// A line of INFO.
pub(crate) fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'))
}

/// The same, as a number.
pub(crate) fn numbered(info: &str, name: &str) -> u64 {
    field(info, name).and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// A value from the answer to CONFIG GET.
fn setting<'a>(settings: &'a Value, name: &str) -> Option<&'a str> {
    let Value::Array(settings) = settings else { return None };
    settings.chunks_exact(2).find(|pair| text(&pair[0]) == Some(name)).and_then(|pair| text(&pair[1]))
}

/// The memory in use and its limit on each server, which is asked more often than the rest.
pub(crate) fn memory(servers: &Servers, by: Instant) -> Result<Vec<(Address, u64, u64)>, Trouble> {
    let mut info = cmd("INFO");
    info.arg("memory");
    let answers = servers.each(&info, by)?.into_iter();
    Ok(answers
        .map(|(server, info)| {
            let info = text(&info).unwrap_or_default();
            (server, numbered(info, "used_memory"), numbered(info, "maxmemory"))
        })
        .collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

    use super::*;

    const INFO: &str = "redis_version:7.0.15\r\nused_memory:900\r\nused_memory_human:900B\r\nmaxmemory:1000\r\n\
                        maxmemory_policy:noeviction\r\naof_enabled:1\r\nconnected_slaves:1\r\n";

    fn condition(info: &str, settings: &[&str]) -> Condition {
        let value = |text: &str| Value::BulkString(text.into());
        let settings = Value::Array(settings.iter().map(|text| value(text)).collect());
        Condition::of(Address { host: "a".to_owned(), port: 1 }, &value(info), Some(&settings)).unwrap()
    }

    #[test]
    fn what_redis_says_of_itself_is_read() {
        let found = condition(INFO, &["save", "", "appendfsync", "always", "min-replicas-to-write", "1"]);
        assert_eq!((found.product.as_str(), found.major), ("Redis 7.0.15", 7));
        assert_eq!((found.used, found.limit, found.replicas, found.min_replicas), (900, 1000, 1, 1));
        assert_eq!(found.durability, Durability::Always);
        assert_eq!(found.unfit(), None);
        assert_eq!(condition("valkey_version:8.1.0", &[]).product, "Valkey 8.1.0");
    }

    #[test]
    fn a_redis_that_would_lose_tasks_by_itself_is_unfit() {
        let evicting = condition(&INFO.replace("noeviction", "allkeys-lru"), &[]);
        assert!(evicting.unfit().unwrap().contains("allkeys-lru"));
        assert!(condition(&INFO.replace("7.0.15", "6.2.1"), &[]).unfit().unwrap().contains("Redis 7"));
    }

    #[test]
    fn durability_is_what_file_and_sync_make_of_it() {
        assert_eq!(durability(true, Some("everysec"), None), Durability::EverySecond);
        assert_eq!(durability(true, Some("no"), None), Durability::WhenTheSystemLikes);
        assert_eq!(durability(true, None, None), Durability::Unsaid);
        assert_eq!(durability(false, Some("always"), Some("3600 1")), Durability::Snapshots);
        assert_eq!(durability(false, Some("always"), Some("")), Durability::Nothing);
    }
}
