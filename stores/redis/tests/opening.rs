//! Which Redis is good enough, who may use it, and what is said when it is not.

use std::fs;
use std::sync::Arc;

use crate::owner::{Owner, SHARD, numbers};
use punctual_core::store::Store;
use punctual_engines::{Redis, RedisCluster};
use punctual_redis::{Config, Database, Migrated, OpenError, RedisStore};

fn refusal(config: Config) -> OpenError {
    RedisStore::open(config).map(drop).unwrap_err()
}

#[test]
fn a_redis_that_evicts_keys_is_refused_with_what_to_do() {
    let redis = Redis::start_with(&["--maxmemory-policy", "allkeys-lru"]);
    let OpenError::Refused(why) = refusal(Config::new(redis.url())) else { panic!("it is not refused") };
    assert!(why.contains("allkeys-lru") && why.contains("CONFIG SET maxmemory-policy noeviction"), "{why}");
    assert_eq!(redis.command(&["DBSIZE"]), "0", "and nothing was written");
    redis.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    RedisStore::open(Config::new(redis.url())).unwrap();
}

#[test]
fn one_member_of_a_cluster_that_evicts_keys_is_enough_to_refuse() {
    let cluster = RedisCluster::start();
    cluster.servers()[2].command(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
    let OpenError::Refused(why) = refusal(Config::new(cluster.url())) else { panic!("it is not refused") };
    assert!(why.contains("volatile-ttl"), "{why}");
}

#[test]
fn the_banner_says_what_a_confirmation_is_worth() {
    for (sync, words) in [("always", "synced before"), ("everysec", "every second"), ("no", "by the system some time")]
    {
        let redis = Redis::start_with(&["--appendfsync", sync]);
        let store = RedisStore::open(Config::new(redis.url())).unwrap();
        let banner = store.to_string();
        assert!(banner.starts_with("Redis 7.") && banner.contains(words), "{banner}");
        assert_eq!(store.warnings().iter().any(|warning| warning.contains("appendfsync")), sync != "always");
    }
}

#[test]
fn a_layout_of_another_version_is_refused_and_left_alone() {
    let redis = Redis::start();
    let config = Config::new(redis.url());
    assert_eq!(RedisStore::migrate(&config).unwrap(), Migrated { from: None, to: 1 });
    assert_eq!(RedisStore::migrate(&config).unwrap(), Migrated { from: Some(1), to: 1 });
    redis.command(&["SET", "{punctual}:layout", "2"]);
    for result in [RedisStore::open(config.clone()).map(drop), RedisStore::migrate(&config).map(drop)] {
        let Err(OpenError::Refused(why)) = result else { panic!("it is not refused") };
        assert!(why.contains("layout 2") && why.contains("newer"), "{why}");
    }
    assert_eq!(redis.command(&["GET", "{punctual}:layout"]), "2");
}

#[test]
fn attaching_changes_nothing_and_needs_a_store() {
    let redis = Redis::start();
    let config = Config::new(redis.url());
    assert!(matches!(RedisStore::attach(config.clone()), Err(OpenError::Refused(why)) if why.contains("no store")));
    assert_eq!(redis.command(&["DBSIZE"]), "0");
    RedisStore::open(config.clone()).unwrap();
    RedisStore::attach(config).unwrap();
}

#[test]
fn stores_with_other_prefixes_and_databases_do_not_meet() {
    let redis = Redis::start();
    let config = |prefix: &str, database: &str| Config {
        prefix: Some(prefix.to_owned()),
        ..Config::new(format!("{}{database}", redis.url()))
    };
    let places = [config("a", ""), config("b", ""), config("a", "/3")];
    for (index, place) in places.iter().enumerate() {
        let store = Arc::new(RedisStore::open(place.clone()).unwrap());
        Owner::of(&store, "a").insert(index as u64 + 1).unwrap().unwrap();
    }
    for (index, place) in places.iter().enumerate() {
        let store = RedisStore::attach(place.clone()).unwrap();
        assert_eq!(numbers(&store, SHARD), [index as u64 + 1]);
    }
}

#[test]
fn nobody_is_there_is_told_from_nobody_lets_us_in() {
    let mut redis = Redis::start();
    redis.command(&["CONFIG", "SET", "requirepass", "open sesame"]);
    let with = |password: &str| Config::new(redis.url().replace("//", &format!("//:{password}@")));
    RedisStore::open(with("open%20sesame")).unwrap();
    for config in [with("hush-hush"), Config::new(redis.url())] {
        let OpenError::Refused(why) = refusal(config) else { panic!("it is not refused") };
        assert!(!why.contains("hush-hush"), "{why}");
    }
    let config = Config { patience: std::time::Duration::from_millis(300), ..with("hush-hush") };
    redis.kill();
    let OpenError::Away(why) = refusal(config) else { panic!("it is there") };
    assert!(!why.contains("hush-hush"), "{why}");
    assert!(matches!(refusal(Config::new("redis://a,b")), OpenError::Url(_)));
    assert!(matches!(
        refusal(Config { prefix: Some("{x}".to_owned()), ..Config::new("redis://a") }),
        OpenError::Url(_)
    ));
}

/// What docs/stores/redis.md tells to allow.
fn documented_rights() -> String {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/stores/redis.md")).unwrap();
    let line = page.lines().find(|line| line.starts_with("ACL SETUSER punctual ")).unwrap();
    line.to_owned()
}

#[test]
fn the_documented_rights_are_enough() {
    let redis = Redis::start();
    let rights = documented_rights().replace("PASSWORD", "secret");
    assert_eq!(redis.command(&rights.split_whitespace().collect::<Vec<_>>()), "OK");
    let store = RedisStore::open(Config::new(redis.url().replace("//", "//punctual:secret@"))).unwrap();
    let store = Arc::new(store);
    let mut owner = Owner::of(&store, "a");
    owner.insert(1).unwrap().unwrap();
    owner
        .commit(vec![punctual_core::store::Change::Remove { place: crate::owner::row(1, 20).place() }])
        .unwrap()
        .unwrap();
    owner.read().unwrap();
    store.cluster_put("key", 0, b"value").unwrap().unwrap();
    assert!(store.cluster_get("key").unwrap().is_some());
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    store.release(SHARD, owner.tenure.fence, None).unwrap();
    assert_eq!(redis.command(&["ACL", "LOG"]), "", "nothing was denied");
}

#[test]
fn damage_that_only_redis_can_have_done_is_found() {
    let redis = Redis::start();
    let store = Arc::new(RedisStore::open(Config::new(redis.url())).unwrap());
    let mut owner = Owner::of(&store, "a");
    (1..=3).for_each(|seq| owner.insert(seq).unwrap().unwrap());
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    redis.command(&["ZREMRANGEBYRANK", "{punctual:7}:live", "0", "0"]);
    let damage = store.check().unwrap();
    assert!(damage.len() == 1 && damage[0].starts_with("shard 7: 3 rows"), "{damage:?}");
}

#[test]
fn connections_are_encrypted_for_whom_we_trust() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let redis = Redis::start_encrypted(&made.cert.pem(), &made.signing_key.serialize_pem());
    let ca = std::env::temp_dir().join(format!("punctual-redis-ca-{}", std::process::id()));
    fs::write(&ca, made.cert.pem()).unwrap();
    let trusting = Config { ca: Some(ca.clone()), ..Config::new(redis.secure_url()) };
    let store = Arc::new(RedisStore::open(trusting).unwrap());
    fs::remove_file(&ca).unwrap();
    assert!(store.to_string().contains("rediss://localhost"), "{store}");
    let mut owner = Owner::of(&store, "a");
    owner.commit(vec![crate::owner::insert(crate::owner::row(1, 200_000))]).unwrap().unwrap();
    assert_eq!(numbers(&store, SHARD), [1]);

    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(&ca, other.cert.pem()).unwrap();
    let distrusting = Config { ca: Some(ca.clone()), ..Config::new(redis.secure_url()) };
    let refused = refusal(distrusting);
    fs::remove_file(&ca).unwrap();
    assert!(matches!(&refused, OpenError::Refused(why) if why.contains("certificate")), "{refused:?}");
}
