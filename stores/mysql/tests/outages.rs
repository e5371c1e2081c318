//! A server that hangs, dies, comes back, or whose connections are cut at any byte.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::ground::{MARIA, SHARD, batch, commit, config, hasty, insert, node, numbered, open, prefix, row, take};
use punctual_core::Millis;
use punctual_core::store::{Beat, Bodies, Store, StoreError, Tenure, Want};
use punctual_engines::{Maria, Proxy, Way};
use punctual_mysql::{Config, Database, MysqlStore, OpenError};

/// Every call, each of which fails within the store's patience and a little.
fn everything_ends_in_time(store: &MysqlStore, tenure: Tenure) {
    let in_time = |what: &str, call: &dyn Fn() -> Option<StoreError>| {
        let began = Instant::now();
        let error = call();
        assert!(matches!(error, Some(StoreError::Unavailable(_))), "{what}: {error:?}");
        assert!(began.elapsed() < Duration::from_millis(1_700), "{what} took {:?}", began.elapsed());
    };
    let beat = Beat { who: node("a"), address: String::new(), lease: Millis(1_000) };
    in_time("a commit", &|| commit(store, batch(tenure.fence, 1, vec![insert(&row(1))])).err());
    in_time("an empty commit", &|| commit(store, batch(tenure.fence, 0, vec![])).err());
    in_time("a read", &|| store.read(SHARD, tenure, &[Want::Numbers(&[1], Bodies::With)]).err());
    in_time("a look", &|| store.look(&[(SHARD, Want::Tallies)]).err());
    in_time("a beat", &|| store.beat(&beat).err());
    in_time("a claim", &|| store.claim(&node("a"), &[(SHARD, tenure.fence)]).err());
    in_time("a release", &|| store.release(SHARD, tenure.fence, None).err());
    in_time("an entry", &|| store.cluster_get("key").err());
    in_time("a new entry", &|| store.cluster_put("key", 0, b"value").err());
}

#[test]
fn every_call_ends_in_time_when_the_network_hangs_and_works_when_it_is_back() {
    let proxy = Proxy::to(MARIA.port());
    let config = hasty(Maria::url_at(proxy.port()));
    let store = open(&config);
    let tenure = take(&store);
    proxy.hang();
    everything_ends_in_time(&store, tenure);
    let refused = MysqlStore::open(config);
    assert!(matches!(refused, Err(OpenError::Away(_))), "{refused:?}");
    // What hung is cut, so that nothing that was given up comes late.
    proxy.cut();
    proxy.pass();
    let tenure = take(&store);
    assert_eq!(commit(&store, batch(tenure.fence, tenure.serial + 1, vec![insert(&row(2))])), Ok(Ok(())));
    assert!(store.status().failures >= 9);
}

#[test]
fn a_beat_that_is_not_answered_leaves_time_for_another() {
    let proxy = Proxy::to(MARIA.port());
    let store = open(&Config { patience: Duration::from_secs(20), ..config(Maria::url_at(proxy.port())) });
    proxy.hang();
    let began = Instant::now();
    let beat = Beat { who: node("a"), address: String::new(), lease: Millis::from_secs(3) };
    assert!(matches!(store.beat(&beat), Err(StoreError::Unavailable(_))));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    proxy.pass();
    store.beat(&beat).unwrap();
}

#[test]
fn every_call_ends_in_time_when_the_server_is_gone() {
    let mut maria = Maria::start();
    let store = open(&hasty(maria.url()));
    let tenure = take(&store);
    maria.kill();
    everything_ends_in_time(&store, tenure);
    maria.start_again();
    let again = take(&store);
    assert!(again.fence > tenure.fence);
}

#[test]
fn a_paused_server_is_waited_for() {
    let maria = Maria::start();
    let store = open(&config(maria.url()));
    let tenure = take(&store);
    maria.pause();
    thread::scope(|scope| {
        let committing = scope.spawn(|| commit(&store, batch(tenure.fence, 1, vec![insert(&row(1))])));
        thread::sleep(Duration::from_millis(300));
        maria.go_on();
        assert_eq!(committing.join().unwrap(), Ok(Ok(())));
    });
}

#[test]
fn nothing_confirmed_is_lost_when_the_server_is_killed_and_nothing_needs_a_restart() {
    let mut maria = Maria::start_with(&[]);
    let store = open(&Config { patience: Duration::from_secs(20), ..config(maria.url()) });
    let tenure = take(&store);
    let (confirmed, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let serial = confirmed.load(Ordering::SeqCst) + 1;
                let committed = commit(&store, batch(tenure.fence, serial, vec![insert(&row(serial))]));
                assert_eq!(committed, Ok(Ok(())), "number {serial}");
                confirmed.store(serial, Ordering::SeqCst);
            }
        });
        for _ in 0..3 {
            let before = confirmed.load(Ordering::SeqCst);
            while confirmed.load(Ordering::SeqCst) < before + 20 {
                thread::sleep(Duration::from_millis(1));
            }
            maria.kill();
            maria.start_again();
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let confirmed = confirmed.load(Ordering::SeqCst);
    let numbers: Vec<u64> = (1..=confirmed).collect();
    let found = store.read(SHARD, Tenure { serial: confirmed, ..tenure }, &[Want::Numbers(&numbers, Bodies::With)]);
    let rows = found.unwrap().remove(0).each();
    for (number, found) in numbers.iter().zip(rows) {
        assert_eq!(found, Some(row(*number)));
    }
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_commit_cut_at_any_byte_happens_once() {
    let proxy = Proxy::to(MARIA.port());
    let config = config(Maria::url_at(proxy.port()));
    let store = open(&config);
    let tenure = take(&store);
    let mut serial = 0;
    let mut next = |tenure: Tenure| {
        serial += 1;
        let committed = commit(&store, batch(tenure.fence, serial, vec![insert(&row(serial))]));
        assert_eq!(committed, Ok(Ok(())), "number {serial}");
        serial
    };
    let length = |way: Way, next: &mut dyn FnMut(Tenure) -> u64| {
        let before = proxy.passed(way);
        next(tenure);
        proxy.passed(way) - before
    };
    for way in [Way::There, Way::Back] {
        let bytes = length(way, &mut next);
        assert!((20..2_000).contains(&bytes), "a commit has {bytes} bytes {way:?}");
        for after in 0..=bytes {
            proxy.cut_after(way, after);
            next(tenure);
            proxy.disarm();
        }
    }
    let numbers: Vec<u64> = (1..=serial).collect();
    let found = store.read(SHARD, Tenure { serial, ..tenure }, &[Want::Numbers(&numbers, Bodies::With)]);
    let rows = found.unwrap().remove(0).each();
    assert!(rows.iter().zip(&numbers).all(|(found, number)| *found == Some(row(*number))));
    let count = format!("SELECT COUNT(*) FROM punctual.{}rows", prefix(&config));
    assert_eq!(MARIA.sql(&count), serial.to_string(), "each once");
}

#[test]
fn an_entry_cut_at_any_byte_is_written_and_its_revision_told() {
    let proxy = Proxy::to(MARIA.port());
    let store = open(&config(Maria::url_at(proxy.port())));
    let mut seen = 0;
    let mut next = || {
        let value = format!("after {seen}");
        let given = store.cluster_put("key", seen, value.as_bytes()).unwrap().unwrap();
        assert!(given > seen, "{given} comes after {seen}");
        proxy.disarm();
        let entry = store.cluster_get("key").unwrap().unwrap();
        assert_eq!((entry.revision, &*entry.value), (given, value.as_bytes()));
        seen = given;
    };
    next();
    for way in [Way::There, Way::Back] {
        let before = proxy.passed(way);
        next();
        let bytes = proxy.passed(way) - before;
        for after in 0..=bytes {
            proxy.cut_after(way, after);
            next();
        }
    }
}

#[test]
fn a_connection_that_the_server_has_closed_costs_nobody_an_error() {
    let maria = Maria::start();
    let store = open(&config(maria.url()));
    let tenure = take(&store);
    for serial in 1..=3 {
        let kill =
            "SELECT GROUP_CONCAT('KILL ',ID SEPARATOR ';') FROM information_schema.PROCESSLIST WHERE COMMAND='Sleep'";
        maria.sql(&maria.sql(kill));
        assert_eq!(commit(&store, batch(tenure.fence, serial, vec![insert(&row(serial))])), Ok(Ok(())));
        assert!(numbered(&store, serial).is_some());
    }
    assert!(store.status().retries >= 3);
}
