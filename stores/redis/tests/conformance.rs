//! The store passes the suite that every store must pass, on one Redis and on a cluster of three.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use punctual_conformance::Subject;
use punctual_core::Millis;
use punctual_core::store::Store;
use punctual_engines::{Redis, RedisCluster};
use punctual_redis::{Config, Database, RedisStore};

/// Stores in one Redis, each under a prefix of its own. The handles to one store are separate, as those of nodes are.
struct InRedis<'a> {
    url: String,
    servers: &'a [Redis],
    stores: AtomicU64,
}

/// Copies the keys of a store beside them, and back: what came since is gone.
const MARK: &str = "for _, key in ipairs(redis.call('KEYS', '{' .. ARGV[1] .. '[}:]*')) do
    redis.call('COPY', key, key .. '|marked', 'REPLACE')
end";
const GO_BACK: &str = "for _, key in ipairs(redis.call('KEYS', '{' .. ARGV[1] .. '[}:]*')) do
    if string.sub(key, -7) ~= '|marked' then redis.call('DEL', key) end
end
for _, key in ipairs(redis.call('KEYS', '{' .. ARGV[1] .. '[}:]*')) do
    if string.sub(key, -7) == '|marked' then redis.call('RENAME', key, string.sub(key, 1, -8)) end
end";

impl<'a> InRedis<'a> {
    fn new(url: String, servers: &'a [Redis]) -> InRedis<'a> {
        InRedis { url, servers, stores: AtomicU64::new(0) }
    }

    fn prefix(&self) -> String {
        format!("store-{}", self.stores.load(Ordering::SeqCst))
    }

    fn open(&self) -> Arc<dyn Store> {
        Arc::new(RedisStore::open(Config { prefix: Some(self.prefix()), ..Config::new(&self.url) }).unwrap())
    }

    fn on_each(&self, script: &str) {
        self.servers.iter().for_each(|server| {
            server.command(&["EVAL", script, "0", &self.prefix()]);
        });
    }
}

impl Subject for InRedis<'_> {
    fn fresh(&self) -> Arc<dyn Store> {
        self.stores.fetch_add(1, Ordering::SeqCst);
        self.open()
    }

    fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        drop(store);
        self.open()
    }

    fn share(&self, _: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        Some(self.open())
    }

    fn mark<'a>(&'a self, _: &Arc<dyn Store>) -> Option<Box<dyn FnOnce() + 'a>> {
        self.on_each(MARK);
        Some(Box::new(|| self.on_each(GO_BACK)))
    }

    fn pass(&self, time: Millis) {
        std::thread::sleep(Duration::from_millis(time.0));
    }
}

#[test]
fn a_store_in_one_redis_conforms() {
    let redis = Redis::start();
    punctual_conformance::run(&InRedis::new(redis.url(), std::slice::from_ref(&redis)));
}

#[test]
fn a_store_in_a_cluster_conforms() {
    let cluster = RedisCluster::start();
    punctual_conformance::run(&InRedis::new(cluster.url(), cluster.servers()));
}
