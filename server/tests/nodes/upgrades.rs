//! Servers that are replaced one after the other while people work with all of them. By hand with those of an earlier version,
//! there and back, if `PUNCTUAL_TEST_OLDER` names its binary; else by their like.

use std::env;
use std::path::{Path, PathBuf};

use punctual_engines::{Postgres, Redis};

use crate::center::Center;
use crate::crowd::{Ledger, confirms, works_through};
use crate::engine::Engine;

/// Replaces each server, and goes on when all have their parts again.
fn replace_all(center: &Center, by: Option<&Path>, ledger: &Ledger) {
    for number in 0..center.len() {
        center.stop(number);
        center.server(number).program = by.map(Path::to_owned);
        center.start_again(number);
        center.recover();
        confirms(ledger, 20);
    }
}

fn are_replaced_in_turn<E: Engine>() {
    let engine = E::start();
    let older = env::var_os("PUNCTUAL_TEST_OLDER").map(PathBuf::from);
    let center = Center::start_build(older.as_deref(), 3, &engine.url());
    works_through(&center, |ledger| {
        replace_all(&center, None, ledger);
        if older.is_some() {
            replace_all(&center, older.as_deref(), ledger);
        }
    });
}

#[test]
fn servers_on_postgres_are_replaced_in_turn() {
    are_replaced_in_turn::<Postgres>();
}

#[test]
fn servers_on_redis_are_replaced_in_turn() {
    are_replaced_in_turn::<Redis>();
}
