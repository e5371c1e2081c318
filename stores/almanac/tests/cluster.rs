//! What all nodes share: entries of the cluster and the owners of shards. What was answered outlives every crash, and what
//! was not is there wholly or not at all.

use std::collections::BTreeSet;

use punctual_almanac::inspect::{Contents, check};
use punctual_almanac::{Almanac, Config, SyncPolicy};
use punctual_core::store::{Claim, Fence, Outdated, Refusal, ShardId, Store, Tenure, Want};
use punctual_simulated_disk::Call;

use crate::stage::scene::{SHARD, Scene, insert};
use crate::stage::{claim, life, roll, tiny};

const EVERY: SyncPolicy = SyncPolicy::Every(std::time::Duration::from_secs(1));

/// Shards that nobody has claimed yet.
const NEW: [ShardId; 3] = [ShardId(7), ShardId(8), ShardId(9)];

#[test]
fn an_entry_is_in_the_journal_and_then_in_the_manifest_and_a_power_loss_takes_neither() {
    for sync in [SyncPolicy::Always, EVERY] {
        let mut scene = Scene::new(1, Config { sync, ..tiny() });
        let almanac = scene.open();
        let first = scene.put(&almanac, "level", b"1").unwrap();
        scene.put(&almanac, "pins", b"").unwrap();
        almanac.checkpoint().unwrap();
        let current = scene.put(&almanac, "level", b"2").unwrap();
        for round in 0..10 {
            let (disk, possible) = (scene.disk.crash(round), [scene.model.clone()]);
            drop(scene.resume(disk, &possible));
        }
        let almanac = scene.open();
        assert_eq!(almanac.cluster_put("level", first, b"3"), Ok(Err(Outdated { current })));
        assert_eq!(almanac.cluster_put("other", first, b"3"), Ok(Err(Outdated { current: 0 })));
        scene.compare(&almanac);
    }
}

/// Lets the power go at each call of some work, in several ways, and looks at what is left, given what the work was told.
fn at_each_call<T>(scene: &mut Scene, work: impl Fn(&Almanac) -> T, mut look: impl FnMut(&Scene, &Almanac, &T)) {
    let before = scene.disk.copy();
    let mut ends = BTreeSet::new();
    for call in 0.. {
        scene.disk = before.copy();
        let almanac = scene.open();
        scene.disk.crash_at(scene.disk.calls() + 1 + call);
        let told = work(&almanac);
        let Some((last, _)) = scene.disk.last_call() else { break };
        ends.insert(last);
        drop(almanac);
        let dead = scene.disk.clone();
        for seed in 0..12 {
            scene.disk = dead.crash(seed);
            look(scene, &scene.try_open().unwrap(), &told);
            assert_eq!(check(&scene.disk, &mut |_| ()).unwrap().damage, []);
        }
    }
    assert!(ends.contains(&Call::Write) && ends.contains(&Call::Sync), "{ends:?}");
}

#[test]
fn an_entry_whose_writing_was_cut_short_is_the_old_one_or_the_new_one() {
    let mut scene = Scene::new(2, tiny());
    let almanac = scene.open();
    let seen = scene.put(&almanac, "level", b"old").unwrap();
    drop(almanac);
    let old = scene.model.clone();
    let mut new = old.clone();
    // Torn into sectors as well.
    let value = [7; 3_000];
    new.put("level", &value, seen);
    let mut met = BTreeSet::new();
    let put = |almanac: &Almanac| almanac.cluster_put("level", seen, &value);
    at_each_call(&mut scene, put, |scene, almanac, told| {
        let found = scene.read(almanac).unwrap();
        assert!(found == new || (found == old && told.is_err()), "{}", found.differences(&new));
        met.insert(found == new);
    });
    assert_eq!(met.len(), 2, "both were met");
}

#[test]
fn a_fence_that_was_granted_is_never_granted_again_whenever_the_power_goes() {
    let mut scene = Scene::new(3, tiny());
    drop(scene.open());
    let take = |almanac: &Almanac| almanac.claim(&life("other"), &NEW.map(|shard| (shard, Fence::default())));
    at_each_call(&mut scene, take, |_, almanac, told| {
        let held = roll(almanac).unwrap();
        let known = NEW.map(|shard| held.held(shard).is_some());
        assert!(known == [true; 3] || (known == [false; 3] && told.is_err()), "{known:?}: one record says it all");
        for (old, shard) in told.iter().flatten().zip(NEW) {
            assert!(claim(almanac, shard).unwrap().fence > fence(old));
        }
    });
}

fn fence(claim: &Claim) -> Fence {
    let Claim::Granted(tenure) = claim else { panic!("{claim:?}") };
    tenure.fence
}

#[test]
fn after_a_restart_nobody_is_there_and_the_chain_of_commits_begins_anew() {
    let mut scene = Scene::new(4, tiny());
    let almanac = scene.open();
    scene.change(&almanac, vec![insert(1, 10)]).unwrap();
    let before = scene.work.tenures[&SHARD];
    assert_eq!(before.serial, 1);
    drop(almanac);
    let almanac = scene.try_open().unwrap();
    let held = roll(&almanac).unwrap();
    assert!(held.nodes.is_empty() && held.shards.iter().all(|held| held.by.is_none()), "{held:?}");
    let refused = almanac.read(SHARD, before, &[Want::Tallies]);
    assert_eq!(refused, Err(Refusal::Fenced { current: held.fence(SHARD) }.into()));
    let after = claim(&almanac, SHARD).unwrap();
    assert_eq!(after, Tenure { fence: after.fence, serial: 0 });
}

#[test]
fn what_is_shown_of_entries_is_no_secret() {
    let mut scene = Scene::new(5, tiny());
    let almanac = scene.open();
    let secret = scene.put(&almanac, "secret", b"hunter2").unwrap();
    almanac.checkpoint().unwrap();
    scene.put(&almanac, "level", b"1").unwrap();
    drop(almanac);
    let shown = Contents::read(&scene.disk).unwrap().to_string();
    assert!(
        shown.contains("cluster: 2 entries") && shown.contains(&format!("  secret  revision {secret}  7 bytes")),
        "{shown}"
    );
    assert!(!shown.contains("hunter2"), "{shown}");
    let report = check(&scene.disk, &mut |_| ()).unwrap();
    assert!(report.entries == 2 && report.to_string().contains("cluster   2 entries"), "{report}");
}
