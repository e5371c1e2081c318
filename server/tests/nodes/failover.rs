//! Three servers on a Redis that fails over by Sentinel while people work with all of them: nobody has to be started again,
//! and what is lost is what the new master did not have, no more, and is told.

use std::thread;
use std::time::Duration;

use punctual_engines::RedisSentinels;

use crate::center::Center;
use crate::crowd::{Told, confirms, works_through};
use crate::stage::eventually;

/// Waits until the replica has taken the master's place.
fn is_promoted(set: &RedisSentinels) {
    eventually("the replica is the master", || set.replica.info("role").as_deref() == Some("master"));
}

impl Center {
    /// How many commits were lost, as all servers have counted them.
    fn lost_commits(&self) -> u64 {
        let counted = |number: usize| {
            let metrics = self.server(number).get("/metrics").expect(200).text();
            let line = metrics.lines().find_map(|line| line.strip_prefix("punctual_lost_commits_total "));
            line.and_then(|count| count.parse::<u64>().ok()).unwrap()
        };
        (0..self.len()).map(counted).sum()
    }
}

#[test]
fn with_commits_that_wait_for_the_replica_nothing_confirmed_is_lost() {
    let mut set = RedisSentinels::start();
    let center = Center::start(3, &set.url(), &["--store-replicas", "1"]);
    works_through(&center, |ledger| {
        set.master.kill();
        is_promoted(&set);
        // Nothing is confirmed before there is a replica again.
        set.master.start_again();
        confirms(ledger, 50);
        center.recover();
    });
    assert_eq!(center.lost_commits(), 0);
}

#[test]
fn without_them_what_the_replica_did_not_have_is_lost_and_nothing_else_and_it_is_counted() {
    let mut set = RedisSentinels::start();
    let center = Center::start(3, &set.url(), &[]);
    let mut missing = Vec::new();
    let ledger = works_through(&center, |ledger| {
        ledger.may_be_forgotten();
        // Nobody listens there, so that it does not hear of what comes now.
        set.replica.command(&["REPLICAOF", "127.0.0.1", "1"]);
        confirms(ledger, 50);
        set.master.kill();
        is_promoted(&set);
        confirms(ledger, 50);
        center.recover();
        // Who asked about a job before it was lost may be heard now, and its number be another job's. They have all been
        // answered when nothing is forgiven any more.
        thread::sleep(Duration::from_secs(2));
        missing = ledger.is_forgotten();
    });
    let is_missing = |place: &&String| center.server(0).get(place).status == 404;
    let lost = missing.iter().filter(is_missing).count();
    println!("{lost} of {} tasks of that time are lost, of {} in all", missing.len(), ledger.all().len());
    assert!(lost > 0 && lost < ledger.count(Told::Done));
    assert!(center.lost_commits() > 0, "it is counted");
    let said: Vec<String> = (0..3).map(|number| center.server(number).output()).collect();
    assert!(said.iter().any(|said| said.contains("lost")), "it is said: {said:?}");
}
