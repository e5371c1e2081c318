//! Which store the servers of a test keep their tasks in: the almanac, or what `PUNCTUAL_TEST_STORE` says, which is
//! `memory`, `postgres`, `mysql`, `redis` or `redis-cluster`. Tests that are about one store name it themselves (`--store`).
//!
//! A database is started once for all tests of a process, and ends with it; each server has a place of its own in it.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use punctual_engines::{Maria, Postgres, Redis, RedisCluster};

/// The flags that lead a server to a place where nothing is kept yet.
pub fn new_place() -> Vec<String> {
    static POSTGRES: LazyLock<Postgres> = LazyLock::new(Postgres::start);
    static MARIA: LazyLock<Maria> = LazyLock::new(Maria::start);
    static REDIS: LazyLock<Redis> = LazyLock::new(Redis::start);
    static REDIS_CLUSTER: LazyLock<RedisCluster> = LazyLock::new(RedisCluster::start);
    static NEXT: AtomicU32 = AtomicU32::new(0);

    let place = format!("place_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let chosen = std::env::var("PUNCTUAL_TEST_STORE").unwrap_or_else(|_| "almanac".into());
    let (url, flag) = match chosen.as_str() {
        "almanac" => return Vec::new(),
        "memory" => return vec!["--store".into(), chosen],
        "postgres" => (POSTGRES.url(), "--store-schema"),
        "mysql" => (MARIA.url(), "--store-prefix"),
        "redis" => (REDIS.url(), "--store-prefix"),
        "redis-cluster" => (REDIS_CLUSTER.url(), "--store-prefix"),
        other => panic!("PUNCTUAL_TEST_STORE is {other:?}, and there is no such store"),
    };
    vec!["--store".into(), url, flag.into(), place]
}
