//! A caller that breaks the contract hears of it at once.

mod bench;

use bench::{Bench, insert, row, update};
use punctual_core::store::{Change, Place, Position, Table};
use punctual_core::{Name, Timestamp};

#[test]
#[should_panic(expected = "a key stands once: Place { table: Live, key: topic/a/")]
fn inserting_a_key_twice_panics() {
    let bench = Bench::new();
    bench.commit(vec![insert("a", 1)]).unwrap();
    let _ = bench.commit(vec![insert("a", 2)]);
}

#[test]
#[should_panic(expected = "a number is given once")]
fn giving_a_number_twice_panics() {
    let bench = Bench::new();
    bench.commit(vec![insert("a", 1)]).unwrap();
    let _ = bench.commit(vec![insert("b", 1)]);
}

#[test]
#[should_panic(expected = "meets no row")]
fn updating_a_row_that_is_not_there_panics() {
    let _ = Bench::new().commit(vec![update(row("a", 1).place())]);
}

#[test]
#[should_panic(expected = "a change names where its row stands")]
fn updating_a_row_that_stands_elsewhere_panics() {
    let bench = Bench::new();
    bench.commit(vec![insert("a", 1)]).unwrap();
    let elsewhere = Position { at: Timestamp::from_millis(77), seq: 1 };
    let _ = bench.commit(vec![update(Place { position: elsewhere, ..row("a", 1).place() })]);
}

#[test]
#[should_panic(expected = "a change names where its row stands")]
fn removing_a_row_under_another_key_panics() {
    let bench = Bench::new();
    bench.commit(vec![insert("a", 1)]).unwrap();
    let _ = bench.commit(vec![Change::Remove { place: Place { key: row("b", 1).key, ..row("a", 1).place() } }]);
}

#[test]
#[should_panic(expected = "a change names where its row stands")]
fn removing_a_row_from_another_group_panics() {
    let bench = Bench::new();
    bench.commit(vec![insert("a", 1)]).unwrap();
    let group = Some(Name::new("other").unwrap());
    let _ = bench.commit(vec![Change::Remove { place: Place { group, ..row("a", 1).place() } }]);
}

#[test]
#[should_panic(expected = "settings stay settings")]
fn moving_a_row_to_the_settings_panics() {
    let bench = Bench::new();
    bench.commit(vec![insert("a", 1)]).unwrap();
    let place = row("a", 1).place();
    let at = place.position.at;
    let _ = bench.commit(vec![Change::Update { place, table: Table::Settings, at, state: "new".into() }]);
}
