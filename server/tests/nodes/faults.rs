//! Servers that die, stand still or are cut off while people work with all of them: nothing confirmed is lost, nothing
//! comes early, nothing has two holders, and no answer says what is not so.

use std::env;
use std::thread;
use std::time::Duration;

use punctual_chance::Chance;
use punctual_engines::{Postgres, Proxy, Redis, free_port};

use crate::center::Center;
use crate::crowd::{confirms, works_through};
use crate::engine::Engine;

/// Longer than a node's lease (3 s).
const BEYOND: Duration = Duration::from_millis(4_500);

/// How often something happens; more by hand.
fn times(usual: u64) -> u64 {
    env::var("PUNCTUAL_TEST_KILLS").map_or(usual, |times| times.parse().unwrap())
}

fn are_killed_at_random<E: Engine>() {
    let engine = E::start();
    let center = Center::start(3, &engine.url(), &[]);
    let mut chance = Chance::new(7);
    works_through(&center, |ledger| {
        for _ in 0..times(4) {
            let number = chance.below(3) as usize;
            center.kill(number);
            // Also before others have taken over what it had.
            thread::sleep(Duration::from_millis(chance.below(5_000)));
            center.start_again(number);
            confirms(ledger, 20);
        }
        center.recover();
    });
}

fn stand_still_beyond_their_lease<E: Engine>() {
    let engine = E::start();
    let center = Center::start(3, &engine.url(), &[]);
    works_through(&center, |ledger| {
        for number in 0..3 {
            center.server(number).signal("STOP");
            thread::sleep(BEYOND);
            center.server(number).signal("CONT");
            confirms(ledger, 20);
        }
        center.recover();
    });
}

fn are_cut_off_from_the_store<E: Engine>() {
    let engine = E::start();
    let proxies: Vec<Proxy> = (0..3).map(|_| Proxy::to(engine.port())).collect();
    let urls: Vec<String> = proxies.iter().map(|proxy| E::url_at(proxy.port())).collect();
    let center = Center::at(&urls, |_| Vec::new());
    works_through(&center, |ledger| {
        for proxy in &proxies {
            proxy.refuse();
            thread::sleep(BEYOND);
            proxy.pass();
            confirms(ledger, 20);
        }
        center.recover();
    });
}

/// Each of them is reached by the others through a proxy of its own.
fn are_cut_off_from_each_other<E: Engine>() {
    let engine = E::start();
    let proxies: Vec<(u16, Proxy)> = (0..3).map(|_| free_port()).map(|port| (port, Proxy::to(port))).collect();
    let center = Center::at(&vec![engine.url(); 3], |number| {
        let (port, proxy) = &proxies[number];
        let (listen, advertise) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{}", proxy.port()));
        ["--links-listen", &listen, "--links-advertise", &advertise].map(str::to_owned).to_vec()
    });
    works_through(&center, |ledger| {
        for (_, proxy) in &proxies {
            // For a moment, and for longer than requests wait for a way.
            for away in [Duration::from_millis(200), Duration::from_millis(6_000)] {
                proxy.refuse();
                thread::sleep(away);
                proxy.pass();
                confirms(ledger, 20);
            }
        }
        center.recover();
    });
}

fn survive_a_crash_of_the_store<E: Engine>() {
    let mut engine = E::start();
    let center = Center::start(3, &engine.url(), &[]);
    works_through(&center, |ledger| {
        for _ in 0..times(2) {
            engine.kill();
            engine.start_again();
            confirms(ledger, 20);
        }
        center.recover();
    });
}

macro_rules! faults {
    ($($name:ident: $engine:ty;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn are_killed_at_random() {
                super::are_killed_at_random::<$engine>();
            }
            #[test]
            fn stand_still_beyond_their_lease() {
                super::stand_still_beyond_their_lease::<$engine>();
            }
            #[test]
            fn are_cut_off_from_the_store() {
                super::are_cut_off_from_the_store::<$engine>();
            }
            #[test]
            fn are_cut_off_from_each_other() {
                super::are_cut_off_from_each_other::<$engine>();
            }
            #[test]
            fn survive_a_crash_of_the_store() {
                super::survive_a_crash_of_the_store::<$engine>();
            }
        }
    )*};
}

faults! {
    servers_on_postgres: Postgres;
    servers_on_redis: Redis;
}
