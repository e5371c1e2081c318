//! The tables come by themselves, are brought forward by one at a time, and are never touched by an older server.

use std::sync::Arc;
use std::thread;

use punctual_core::store::Store;
use punctual_engines::Postgres;
use punctual_postgres::{Config, Database, Migrated, OpenError, PostgresStore, ShardContents};

use crate::owner::{Owner, SHARD, insert, open_with, row};

fn refused(config: Config) -> String {
    match PostgresStore::open(config) {
        Err(OpenError::Refused(text)) => text,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it was opened"),
    }
}

#[test]
fn tables_are_created_once_by_however_many_come() {
    let postgres = Postgres::start();
    let url = postgres.url();
    let migrated: Vec<Migrated> = thread::scope(|scope| {
        let work: Vec<_> =
            (0..6).map(|_| scope.spawn(|| PostgresStore::migrate(&Config::new(url.clone())).unwrap())).collect();
        work.into_iter().map(|work| work.join().unwrap()).collect()
    });
    assert_eq!(migrated.iter().filter(|migrated| migrated.from.is_none()).count(), 1, "{migrated:?}");
    assert!(migrated.iter().all(|migrated| migrated.to == 1));
    assert_eq!(postgres.sql("SELECT version FROM punctual.migrations"), "1");
}

#[test]
fn an_older_server_is_refused_with_the_reason_also_when_it_connects_again() {
    let postgres = Postgres::start();
    let store = open_with(&postgres.url(), |_| {});
    let owner = Owner::of(&store, SHARD, "a");
    postgres.sql("INSERT INTO punctual.migrations (version) VALUES (2)");
    let text = refused(Config::new(postgres.url()));
    assert!(text.contains("version 2") && text.contains("newer"), "{text}");
    // A server that runs on connections from before meets the same, when it needs another.
    postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'punctual'");
    let answer = owner.store.commit(vec![owner.batch(vec![insert(row(1))])]);
    assert!(format!("{answer:?}").contains("newer"), "{answer:?}");
}

#[test]
fn attaching_creates_nothing() {
    let postgres = Postgres::start();
    let attached = PostgresStore::attach(Config::new(postgres.url())).map(drop);
    assert!(matches!(&attached, Err(OpenError::Refused(text)) if text.contains("store migrate")), "{attached:?}");
    assert_eq!(postgres.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'punctual'"), "0");
}

#[test]
fn several_punctuals_share_a_database_by_schema_and_prefix() {
    let postgres = Postgres::start();
    let places = [("punctual", ""), ("punctual", "second_"), ("It's \"odd\"; Ünïcode", ""), ("public", "p-")];
    let stores: Vec<Arc<PostgresStore>> = places
        .iter()
        .map(|(schema, prefix)| {
            open_with(&postgres.url(), |config| {
                (config.schema, config.prefix) = (Some((*schema).to_owned()), Some((*prefix).to_owned()));
            })
        })
        .collect();
    for (number, store) in (1..).zip(&stores) {
        Owner::of(store, SHARD, "a").commit(vec![insert(row(number))]).unwrap().unwrap();
    }
    for (number, store) in (1..).zip(&stores) {
        Owner::of(store, SHARD, "a").expect(&[row(number)]);
    }
    assert!(stores[1].to_string().contains("punctual.second_*"), "{}", stores[1]);
}

#[test]
fn a_user_without_the_right_to_create_works_with_tables_that_are_there() {
    let postgres = Postgres::start();
    PostgresStore::migrate(&Config::new(postgres.url())).unwrap();
    postgres.sql(
        "CREATE ROLE worker LOGIN; GRANT USAGE ON SCHEMA punctual TO worker; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA punctual TO worker",
    );
    let url = postgres.url_of("worker", "postgres");
    let store = open_with(&url, |_| {});
    Owner::of(&store, SHARD, "a").commit(vec![insert(row(1))]).unwrap().unwrap();
    let elsewhere = Config { schema: Some("elsewhere".to_owned()), ..Config::new(url) };
    assert!(refused(elsewhere).contains("permission denied"));
}

#[test]
fn a_database_that_cannot_hold_every_name_is_refused() {
    let postgres = Postgres::start();
    postgres.sql("CREATE DATABASE western ENCODING 'LATIN1' TEMPLATE template0");
    let text = refused(Config::new(postgres.url_of("postgres", "western")));
    assert!(text.contains("UTF8"), "{text}");
}

#[test]
fn a_server_that_is_not_there_is_away_and_one_that_lets_nobody_in_refuses() {
    let mut postgres = Postgres::start();
    let text = refused(Config::new(postgres.url_of("nobody", "postgres")));
    assert!(text.contains("nobody"), "{text}");
    let text = refused(Config::new(postgres.url_of("postgres", "nowhere")));
    assert!(text.contains("does not exist"), "{text}");
    postgres.kill();
    let away = PostgresStore::open(Config::new(postgres.url())).map(drop);
    assert!(matches!(away, Err(OpenError::Away(_))), "{away:?}");
}

#[test]
fn what_is_there_is_shown_and_damage_is_told() {
    let postgres = Postgres::start();
    let store = open_with(&postgres.url(), |_| {});
    let mut owner = Owner::of(&store, SHARD, "a");
    owner.commit((1..=4).map(|number| insert(row(number))).collect()).unwrap().unwrap();
    assert!(store.check().unwrap().is_empty());
    let contents = store.contents().unwrap();
    assert_eq!(contents.shards, [ShardContents { shard: SHARD, serial: 1, rows: [4, 0, 0, 0] }]);
    assert!(contents.parts.len() == 8 && contents.parts.iter().all(|part| part.bytes > 0), "{contents:?}");
    postgres.sql(
        "DELETE FROM punctual.names WHERE seq = 1; DELETE FROM punctual.rows WHERE seq = 2; \
         UPDATE punctual.rows SET tbl = 9 WHERE seq = 3; UPDATE punctual.deltas SET counts = 'nonsense'",
    );
    let found = store.check().unwrap();
    let expected = ["rows that have no name: 1", "names that have no row: 1", "rows in a table that is none: 1"];
    for wrong in expected {
        assert!(found.iter().any(|found| found == wrong), "{wrong}: {found:?}");
    }
    assert!(found.iter().any(|found| found.contains("cannot be read")), "{found:?}");
}
