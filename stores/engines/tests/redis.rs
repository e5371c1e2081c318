//! The Redis that tests run on: alone, with a replica, in a cluster, and watched by sentinels.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use punctual_engines::{Proxy, Redis, RedisCluster, RedisSentinels};

#[test]
fn a_killed_server_comes_back_with_what_it_had() {
    let mut redis = Redis::start();
    redis.command(&["SET", "kept", "7"]);
    redis.kill();
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, redis.port())).is_err(), "it is away");
    redis.start_again();
    assert_eq!(redis.command(&["GET", "kept"]), "7");
    redis.command(&["EVAL", "for i = 1, 20000000 do end", "0"]);
    assert!(redis.cpu() > Duration::ZERO);
}

#[test]
fn a_replica_that_was_cut_off_takes_over_with_what_it_had() {
    let mut master = Redis::start();
    let link = Proxy::to(master.port());
    let mut replica = Redis::replica_of(link.port(), &[]);
    master.command(&["SET", "early", "1"]);
    master.wait_for(&replica);
    link.refuse();
    master.command(&["SET", "late", "1"]);
    master.kill();
    replica.take_over(master.port());
    assert_eq!(replica.info("role").as_deref(), Some("master"));
    assert_eq!(
        (replica.command(&["GET", "early"]), replica.command(&["GET", "late"])),
        ("1".to_owned(), String::new())
    );
}

#[test]
fn a_cluster_shares_its_slots_and_moves_them() {
    let cluster = RedisCluster::start();
    let slot = cluster.slot("{a}");
    let from = cluster.home(slot);
    let to = (from + 1) % 3;
    cluster.servers()[from].command(&["SET", "{a}", "1"]);
    assert!(cluster.servers()[to].command(&["GET", "{a}"]).starts_with("MOVED"), "it is elsewhere");
    cluster.begin_move(slot, from, to);
    assert_eq!(cluster.move_keys(slot, from, to, 10), 1);
    cluster.end_move(slot, to);
    assert_eq!(cluster.servers()[to].command(&["GET", "{a}"]), "1");
}

#[test]
fn sentinels_watch_a_master_and_its_replica() {
    let set = RedisSentinels::start();
    assert!(set.url().ends_with("/main"), "{}", set.url());
    assert_eq!(set.master.info("role").as_deref(), Some("master"));
    assert_eq!(set.replica.info("role").as_deref(), Some("slave"));
}
