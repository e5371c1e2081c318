//! Rows that no store has written: they are objected to with their shard and number, found by a check, and never a panic.

use crate::owner::{Owner, SHARD, insert, open, row};
use punctual_conformance::forged::{is_objected_to, objections};
use punctual_core::Name;
use punctual_core::store::{Bodies, Look, Row, StoreError};
use punctual_engines::Redis;
use punctual_redis::Database;

fn grouped(seq: u64) -> Row {
    Row { group: Some(Name::stored("spring")), ..row(seq, 200) }
}

/// A script that puts other bytes into the row of number ARGV[1], from what it is (`row`).
fn forge(redis: &Redis, seq: u64, bytes: &str) {
    let script = format!(
        "local n = string.char(0,0,0,0,0,0,0,tonumber(ARGV[1])) local row = redis.call('HGET', KEYS[1], n) \
         redis.call('HSET', KEYS[1], n, {bytes}) return 'done'"
    );
    let said = redis.command(&["EVAL", &script, "1", "{punctual:7}:rows", &seq.to_string()]);
    assert_eq!(said, "done", "{bytes}");
}

#[test]
fn forged_rows_are_objected_to_with_shard_and_number() {
    let redis = Redis::start();
    let store = open(&redis.url(), 5_000);
    let mut owner = Owner::of(&store, "a");
    for (seq, bytes) in (1..).zip([
        "''",
        "string.sub(row, 1, 8)",
        "string.sub(row, 1, 20)",
        "string.char(0) .. string.sub(row, 2)",
        "string.char(9) .. string.sub(row, 2)",
        "string.char(4) .. string.sub(row, 2)",
        "string.sub(row, 1, 1) .. string.rep(string.char(255), 8) .. string.sub(row, 10)",
        "string.sub(row, 1, 9) .. string.char(127,255,255,255) .. string.sub(row, 14)",
        "string.sub(row, 1, 13) .. string.rep(string.char(255), 5) .. string.sub(row, 19)",
        "string.sub(row, 1, 18) .. string.char(255) .. string.sub(row, 20)",
    ]) {
        owner.commit(vec![insert(grouped(seq))]).unwrap().unwrap();
        assert_eq!(objections(&*store, SHARD, &grouped(seq)), [], "before {bytes}");
        forge(&redis, seq, bytes);
        is_objected_to(&*store, SHARD, &grouped(seq), bytes);
        redis.command(&["FLUSHALL"]);
        owner = Owner::of(&store, "a");
    }
}

#[test]
fn what_is_gone_from_one_part_of_a_shard_is_found() {
    let redis = Redis::start();
    let store = open(&redis.url(), 5_000);
    for part in ["rows", "names", "live"] {
        let mut owner = Owner::of(&store, "a");
        owner.commit(vec![insert(grouped(1))]).unwrap().unwrap();
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
        redis.command(&["DEL", &format!("{{punctual:7}}:{part}")]);
        let _ = objections(&*store, SHARD, &grouped(1));
        assert!(store.check().unwrap()[0].starts_with("shard 7: "), "{part}");
        redis.command(&["FLUSHALL"]);
    }
    let mut owner = Owner::of(&store, "a");
    owner.commit(vec![insert(grouped(1))]).unwrap().unwrap();
    redis.command(&["DEL", "{punctual:7}:bodies"]);
    let found = store.numbered(SHARD, &[1], Bodies::With);
    let is_told = |why: &String| ["shard 7", "row 1", "body"].iter().all(|part| why.contains(part));
    assert!(matches!(&found, Err(StoreError::Poisoned(why)) if is_told(why)), "{found:?}");
    redis.command(&["HSET", "{punctual:7}:tallies", "nonsense", "1"]);
    let counts = store.tallies(SHARD);
    assert!(matches!(&counts, Err(StoreError::Poisoned(why)) if why.contains("shard 7")), "{counts:?}");
}
