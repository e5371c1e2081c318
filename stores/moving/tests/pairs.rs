//! Anything to anything: real stores of every kind, moved into each other, some of them with the mover killed on its way.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use punctual_almanac::{Almanac, Directory};
use punctual_chance::Chance;
use punctual_core::store::Store;
use punctual_engines::{Maria, Postgres, Redis, RedisCluster};
use punctual_memory::MemoryStore;
use punctual_moving::{Move, MoveError, Side};
use punctual_mysql::MysqlStore;
use punctual_node::SystemClock;
use punctual_postgres::PostgresStore;
use punctual_redis::RedisStore;
use stage::{Life, Line, contents, fill};

/// One of each.
struct Engines {
    postgres: Postgres,
    maria: Maria,
    redis: Redis,
    cluster: RedisCluster,
    directory: tempfile::TempDir,
    stores: AtomicU32,
}

const KINDS: [&str; 6] = ["memory", "almanac", "postgres", "mysql", "redis", "redis-cluster"];

impl Engines {
    fn start() -> Engines {
        Engines {
            postgres: Postgres::start(),
            maria: Maria::start(),
            redis: Redis::start(),
            cluster: RedisCluster::start(),
            directory: tempfile::tempdir().unwrap(),
            stores: AtomicU32::new(0),
        }
    }

    /// A new store of a kind, beside all others in the same engine.
    fn fresh(&self, kind: &str) -> Arc<dyn Store> {
        let name = format!("store{}", self.stores.fetch_add(1, Ordering::SeqCst));
        match kind {
            "memory" => Arc::new(MemoryStore::new(Arc::new(SystemClock))),
            "almanac" => {
                let disk = Directory::open(self.directory.path().join(name)).unwrap();
                Arc::new(
                    Almanac::open(Arc::new(disk), punctual_almanac::Config::default(), Arc::new(SystemClock)).unwrap(),
                )
            }
            "postgres" => {
                let config = punctual_postgres::Config::new(self.postgres.url());
                Arc::new(PostgresStore::open(punctual_postgres::Config { schema: name, ..config }).unwrap())
            }
            "mysql" => {
                let config = punctual_mysql::Config::new(self.maria.url());
                let prefix = format!("{name}_");
                Arc::new(MysqlStore::open(punctual_mysql::Config { prefix, ..config }).unwrap())
            }
            redis => {
                let url = if redis == "redis" { self.redis.url() } else { self.cluster.url() };
                let config = punctual_redis::Config::new(&url);
                Arc::new(RedisStore::open(punctual_redis::Config { prefix: name, ..config }).unwrap())
            }
        }
    }
}

fn plan<'a>(from: (&'a dyn Store, &'a str), to: (&'a dyn Store, &'a str)) -> Move<'a> {
    Move::new(Side { store: from.0, name: from.1 }, Side { store: to.0, name: to.1 })
}

#[test]
fn every_store_can_be_moved_into_every_other_also_in_two_goes() {
    let engines = Engines::start();
    let mut chance = Chance::new(1);
    for (number, from) in KINDS.into_iter().enumerate() {
        for (other, to) in KINDS.into_iter().enumerate() {
            let (source, target) = (engines.fresh(from), engines.fresh(to));
            fill(&*source, &mut chance, 3, 60);
            // Who was killed is waited for, so not all of them are.
            if (number + other) % KINDS.len() == 0 {
                let life = Life::of(chance.between(25, 60) as i64);
                let line = Line::to(Arc::clone(&target), &life);
                let killed = plan((&*source, from), (&line, to)).run();
                assert!(life.is_over() && killed.is_err(), "{from} to {to}");
                thread::sleep(Duration::from_millis(100));
            }
            let report = match plan((&*source, from), (&*target, to)).run() {
                Err(error @ MoveError::Done { .. }) => panic!("{from} to {to}: {error}"),
                report => report.unwrap_or_else(|error| panic!("{from} to {to}: {error}")),
            };
            assert_eq!((report.total.rows, report.shards.len()), (180, 3), "{from} to {to}");
            assert_eq!(contents(&*source), contents(&*target), "{from} to {to}");
        }
    }
}
