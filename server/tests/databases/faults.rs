//! A database that dies, is away, hangs, or whose connections are cut, under a server that people work with: nothing
//! confirmed is lost, nothing comes early, nothing has two holders, and no answer says what is not so.

use std::thread;
use std::time::Duration;

use punctual_engines::{Maria, Postgres, Proxy, Redis, Way};

use crate::alone::goes_through;
use crate::crowd::{OPEN_BEANSTALK, Told, confirms};
use crate::engine::Engine;
use crate::stage::{Server, eventually};

/// Longer than a node's lease on its shards (3 s) and a store's patience (5 s).
const AWAY: Duration = Duration::from_millis(6_500);

fn server_at(url: &str) -> Server {
    Server::start_with(&[&["--store", url], &OPEN_BEANSTALK[..]].concat())
}

fn is_killed_and_started_at_once<E: Engine>() {
    let mut engine = E::start();
    goes_through(&mut server_at(&engine.url()), |ledger| {
        for _ in 0..3 {
            engine.kill();
            engine.start_again();
            confirms(ledger, 50);
        }
    });
}

fn is_away_for_a_while<E: Engine>() {
    let mut engine = E::start();
    goes_through(&mut server_at(&engine.url()), |_| {
        engine.kill();
        thread::sleep(AWAY);
        engine.start_again();
    });
}

fn hangs_for_a_while<E: Engine>() {
    let engine = E::start();
    goes_through(&mut server_at(&engine.url()), |_| {
        engine.pause();
        thread::sleep(AWAY);
        engine.go_on();
    });
}

/// Cuts at one position after the other of what passes, while commits are under way.
fn has_its_connections_cut<E: Engine>() {
    let engine = E::start();
    let proxy = Proxy::to(engine.port());
    let ledger = goes_through(&mut server_at(&E::url_at(proxy.port())), |ledger| {
        for way in [Way::There, Way::Back] {
            for byte in (0..1_500).step_by(20) {
                let before = proxy.passed(way);
                proxy.cut_after(way, byte);
                eventually("so much has passed", || proxy.passed(way) > before + byte);
                proxy.disarm();
                confirms(ledger, 1);
            }
        }
    });
    // What is cut is tried again, which is the same as to try it once.
    assert_eq!((ledger.count(Told::Unknown), ledger.count(Told::NothingDone)), (0, 0));
}

macro_rules! faults {
    ($($name:ident: $engine:ty;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn is_killed_and_started_at_once() {
                super::is_killed_and_started_at_once::<$engine>();
            }
            #[test]
            fn is_away_for_a_while() {
                super::is_away_for_a_while::<$engine>();
            }
            #[test]
            fn hangs_for_a_while() {
                super::hangs_for_a_while::<$engine>();
            }
            #[test]
            fn has_its_connections_cut() {
                super::has_its_connections_cut::<$engine>();
            }
        }
    )*};
}

faults! {
    postgres: Postgres;
    mysql: Maria;
    redis: Redis;
}
