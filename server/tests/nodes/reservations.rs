//! What beanstalk connections have reserved at servers that they are not connected to.

use std::thread;
use std::time::{Duration, Instant};

use punctual_engines::{Postgres, Proxy, free_port};
use serde_json::json;

use crate::center::Center;
use crate::crowd::over_beanstalk::Tube;
use crate::stage::eventually;

const JOBS: usize = 8;

/// Jobs in shards of the second server, reserved for an hour by a connection to the first one.
fn reserve_elsewhere(center: &Center) -> Tube {
    let mut producer = Tube::at(&center.server(1).beanstalk_address()).unwrap();
    for _ in 0..JOBS {
        let inserted = producer.say("put 5 0 3600 1\r\nx").unwrap();
        assert!(inserted.starts_with("INSERTED "), "{inserted}");
    }
    let mut tube = Tube::at(&center.server(0).beanstalk_address()).unwrap();
    for _ in 0..JOBS {
        let reserved = tube.say("reserve-with-timeout 10").unwrap();
        assert!(reserved.starts_with("RESERVED "), "{reserved}");
    }
    tube
}

/// Waits until all of them can be had again.
fn are_ready(center: &Center) {
    eventually("all of them are ready", || center.server(1).get("/v1/queues/work").json()["ready"] == json!(JOBS));
}

#[test]
fn what_a_connection_held_is_given_back_when_the_server_that_has_it_is_reached_again() {
    let postgres = Postgres::start();
    let ports = [free_port(), free_port()];
    let proxy = Proxy::to(ports[1]);
    let advertised = [ports[0], proxy.port()];
    let center = Center::at(&vec![postgres.url(); 2], |number| {
        let at = |port: u16| format!("127.0.0.1:{port}");
        let (listen, advertise) = (at(ports[number]), at(advertised[number]));
        ["--links-listen", &listen, "--links-advertise", &advertise].map(str::to_owned).to_vec()
    });
    let tube = reserve_elsewhere(&center);
    proxy.refuse();
    drop(tube);
    // Longer than a request waits for a way.
    thread::sleep(Duration::from_millis(6_000));
    assert_eq!(center.server(1).get("/v1/queues/work").json()["leased"], json!(JOBS), "they are out of reach");
    proxy.pass();
    are_ready(&center);
}

#[test]
fn what_a_killed_server_held_for_connections_is_ready_when_it_is_back_and_what_others_hold_stays() {
    let postgres = Postgres::start();
    let center = Center::start(2, &postgres.url(), &[]);
    let tube = reserve_elsewhere(&center);
    let mut other = Tube::at(&center.server(1).beanstalk_address()).unwrap();
    let inserted = other.say("put 5 0 3600 5\r\nother").unwrap();
    let id = inserted.strip_prefix("INSERTED ").unwrap().to_owned();
    assert_eq!(other.say("reserve-with-timeout 10").unwrap(), format!("RESERVED {id} 5\r\nother"));
    center.kill(0);
    drop(tube);
    let begun = Instant::now();
    center.start_again(0);
    are_ready(&center);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(other.say(&format!("delete {id}")).unwrap(), "DELETED", "it is still the other one's");
}
