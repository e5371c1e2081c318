//! Memory that is used up, and reads of much.

use std::time::{Duration, Instant};

use crate::owner::{Owner, SHARD, held, insert, numbers, open, row};
use punctual_core::Timestamp;
use punctual_core::store::{Bodies, Change, Hardship, Key, Look, Position, Room, Scan, Store, StoreError, Table, Want};
use punctual_engines::Redis;
use punctual_redis::Database;

/// Lets the store look at memory, which it does with a beat, and not more often than once a second.
fn look(store: &punctual_redis::RedisStore) {
    std::thread::sleep(Duration::from_millis(1_100));
    held(store);
}

#[test]
fn a_full_redis_takes_nothing_new_and_lets_the_old_go() {
    let redis = Redis::start();
    let store = open(&redis.url(), 5_000);
    let mut owner = Owner::of(&store, "a");
    (1..=8).for_each(|seq| owner.commit(vec![insert(row(seq, 1 << 20))]).unwrap().unwrap());
    assert_eq!((store.room(), store.hardship()), (Room::Enough, None));

    // What Redis uses for connections shrinks in the seconds after large commits.
    let used = || redis.info("used_memory").unwrap().parse::<u64>().unwrap();
    let began = Instant::now();
    while store.room() != Room::Little {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", store.status());
        redis.command(&["CONFIG", "SET", "maxmemory", &(used() * 100 / 94).to_string()]);
        look(&store);
    }
    assert!(matches!(store.hardship(), Some(Hardship::NoRoom(why)) if why.contains("maxmemory")));

    redis.command(&["CONFIG", "SET", "maxmemory", &(used() / 2).to_string()]);
    let refused = owner.insert(9);
    assert!(
        matches!(&refused, Err(StoreError::Unavailable(why)) if why.contains("nothing was written")),
        "{refused:?}"
    );
    assert_eq!(store.room(), Room::None, "it is known at once");
    assert_eq!(numbers(&store, SHARD), (1..=8).collect::<Vec<_>>(), "reads go on");

    let first = row(1, 1 << 20);
    let later = Timestamp::from_millis(99_000);
    let change = Change::Update { place: first.place(), table: Table::Live, at: later, state: "leased".into() };
    owner.commit(vec![change]).unwrap().unwrap();
    (2..=7).for_each(|seq| {
        owner.commit(vec![Change::Remove { place: row(seq, 0).place() }]).unwrap().unwrap();
    });
    look(&store);
    assert_eq!((store.room(), store.hardship()), (Room::Enough, None), "it goes by itself");
    owner.insert(9).unwrap().unwrap();
    assert_eq!(numbers(&store, SHARD), [8, 9, 1]);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn large_bodies_are_read_in_parts() {
    let redis = Redis::start();
    let store = open(&redis.url(), 20_000);
    let mut owner = Owner::of(&store, "a");
    (1..=20).for_each(|seq| owner.commit(vec![insert(row(seq, 1 << 20))]).unwrap().unwrap());
    let scan = Scan {
        table: Table::Live,
        from: Position::START,
        until: Timestamp::NEVER,
        topic: None,
        limit: 1_000,
        bodies: Bodies::With,
    };
    let page = store.scan(SHARD, &scan).unwrap();
    assert!((1..=5).contains(&page.rows.len()), "{} MB in one answer", page.rows.len());
    assert_eq!(page.next, Some(page.rows.last().unwrap().position().next()));
    assert_eq!(store.scan(SHARD, &Scan { bodies: Bodies::Without, ..scan.clone() }).unwrap().rows.len(), 20);

    // What has to be answered at once is asked for in several round trips, also when scans come before it.
    let keys: Vec<Key> = (1..=20).map(|seq| row(seq, 0).key).collect();
    let wants = [Want::Scan(&scan), Want::Keys(&keys, Bodies::With), Want::Numbers(&[20, 99, 1], Bodies::With)];
    let mut found = store.read(SHARD, owner.tenure, &wants).unwrap().into_iter();
    assert!(!found.next().unwrap().span().rows.is_empty());
    let rows = found.next().unwrap().each();
    assert_eq!(rows, (1..=20).map(|seq| Some(row(seq, 1 << 20))).collect::<Vec<_>>());
    let [last, absent, first] = &found.next().unwrap().each()[..] else { panic!("three were asked for") };
    assert_eq!((last.as_ref(), absent, first.as_ref()), (Some(&row(20, 1 << 20)), &None, Some(&row(1, 1 << 20))));
}

#[test]
fn a_batch_of_many_changes_is_one() {
    let redis = Redis::start();
    let store = open(&redis.url(), 20_000);
    let mut owner = Owner::of(&store, "a");
    // More than Lua passes to a command at once.
    owner.commit((1..=9_000).map(|seq| insert(row(seq, 0))).collect()).unwrap().unwrap();
    assert_eq!(numbers(&store, SHARD).len(), 9_000);
    let done = |seq| Change::Update {
        place: row(seq, 0).place(),
        table: Table::History,
        at: Timestamp::from_millis(seq),
        state: "done".into(),
    };
    owner.commit((1..=9_000).map(done).collect()).unwrap().unwrap();
    assert_eq!(numbers(&store, SHARD), Vec::<u64>::new());
    let history =
        |seq| punctual_core::store::Row { table: Table::History, at: Timestamp::from_millis(seq), ..row(seq, 0) };
    owner.commit((1..=9_000).map(|seq| Change::Remove { place: history(seq).place() }).collect()).unwrap().unwrap();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    assert_eq!(redis.command(&["EXISTS", "{punctual:7}:rows"]), "0");
}
