//! Rows that no store has written: they are objected to with their shard and number, found by a check, and never a panic.

use crate::ground::{MARIA, SHARD, batch, commit, config, insert, open, prefix, row, take};
use punctual_conformance::forged::{is_objected_to, objections};
use punctual_core::Name;
use punctual_core::store::{Row, Store, StoreError, Want};
use punctual_mysql::Database;

fn grouped(seq: u64) -> Row {
    Row { group: Some(Name::stored("spring")), ..row(seq) }
}

/// What is done to the row of number {n} in the tables that begin with {p}.
const READABLE: &[&str] = &[
    "UPDATE {p}rows SET at=9007199254740992 WHERE seq={n}",
    "UPDATE {p}rows SET at=18446744073709551615 WHERE seq={n}",
    "UPDATE {p}names SET name=x'' WHERE seq={n}",
    "UPDATE {p}names SET name=x'00' WHERE seq={n}",
    "UPDATE {p}names SET name=x'00ff61' WHERE seq={n}",
    "UPDATE {p}names SET name=x'0001ff0162' WHERE seq={n}",
    "UPDATE {p}names SET name=CONCAT(x'00016f0131',REPEAT('q',256)) WHERE seq={n}",
    "UPDATE {p}names SET grp='' WHERE seq={n}",
    "UPDATE {p}names SET grp=x'ff' WHERE seq={n}",
    "UPDATE {p}names SET grp='a b' WHERE seq={n}",
];

/// What takes the row out of sight, or of one of its ways.
const OUT_OF_SIGHT: &[&str] = &[
    "UPDATE {p}rows SET tbl=9 WHERE seq={n}",
    "UPDATE {p}rows SET tbl=0 WHERE seq={n}",
    "UPDATE {p}rows SET shard=9 WHERE seq={n}",
    "UPDATE {p}names SET name=CONCAT(x'01',SUBSTR(name,2)) WHERE seq={n}",
    "UPDATE {p}names SET body='other' WHERE seq={n}",
    "DELETE FROM {p}members WHERE seq={n}",
    "DELETE FROM {p}names WHERE seq={n}",
    "DELETE FROM {p}rows WHERE seq={n}",
];

#[test]
fn forged_rows_are_objected_to_with_shard_and_number_or_found_by_a_check() {
    let config = config(MARIA.url());
    let store = open(&config);
    let mut tenure = take(&store);
    let all = READABLE.iter().map(|forgery| (forgery, true)).chain(OUT_OF_SIGHT.iter().map(|forgery| (forgery, false)));
    for (n, (forgery, is_readable)) in (1..).zip(all) {
        tenure.serial += 1;
        commit(&store, batch(tenure.fence, tenure.serial, vec![insert(&grouped(n))])).unwrap().unwrap();
        assert_eq!(objections(&store, SHARD, &grouped(n)), [], "before {forgery}");
        assert_eq!(store.check().unwrap(), Vec::<String>::new(), "before {forgery}");
        let sql = |text: &str| {
            let text = text.replace("{n}", &n.to_string()).replace("{p}", &format!("punctual.{}", prefix(&config)));
            MARIA.sql(&text);
        };
        sql(forgery);
        if is_readable {
            is_objected_to(&store, SHARD, &grouped(n), forgery);
        } else {
            let _ = objections(&store, SHARD, &grouped(n));
            assert_ne!(store.check().unwrap(), Vec::<String>::new(), "{forgery}");
        }
        sql(
            "DELETE FROM {p}rows WHERE seq={n}; DELETE FROM {p}names WHERE seq={n}; DELETE FROM {p}members WHERE seq={n}",
        );
    }
}

#[test]
fn forged_counts_are_refused_with_their_shard() {
    let config = config(MARIA.url());
    let store = open(&config);
    let tenure = take(&store);
    for counts in ["ff", "01ffffffffffffffffffff", "6e6f6e73656e7365"] {
        let deltas = format!("punctual.{}deltas", prefix(&config));
        MARIA.sql(&format!("REPLACE INTO {deltas} (shard,serial,counts) VALUES ({},1,x'{counts}')", SHARD.0));
        let read = store.read(SHARD, tenure, &[Want::Tallies]);
        let place = format!("shard {}", SHARD.0);
        assert!(matches!(&read, Err(StoreError::Poisoned(why)) if why.contains(&place)), "{counts}: {read:?}");
    }
}
