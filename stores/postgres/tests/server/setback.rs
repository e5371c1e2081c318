//! A server that was set back to a state from before a claim, as by a failover to a copy that was behind.

use punctual_core::store::{Refusal, Store, StoreError, Want};
use punctual_engines::Postgres;

use crate::owner::{Owner, SHARD, insert, open, row};

#[test]
fn a_store_from_before_the_claim_has_lost_what_came_after_it_and_grants_another_fence() {
    let postgres = Postgres::start();
    let (here, there) = (open(&postgres.url()), open(&postgres.url()));
    let mut before = Owner::of(&here, SHARD, "a");
    before.commit(vec![insert(row(1))]).unwrap().unwrap();
    let mut owner = Owner::of(&here, SHARD, "a");
    owner.commit(vec![insert(row(2))]).unwrap().unwrap();
    postgres.sql(&format!(
        "UPDATE punctual.shards SET fence = {}, serial = 1; DELETE FROM punctual.names WHERE seq = 2; \
         DELETE FROM punctual.rows WHERE seq = 2; DELETE FROM punctual.deltas WHERE serial = 2",
        before.tenure.fence.0
    ));
    // The fence in force is an older one, and nobody has been quicker: something is missing.
    let lost = Refusal::Lost { expected: 2, found: 1 };
    assert_eq!(owner.commit(vec![insert(row(3))]).unwrap(), Err(lost.clone()));
    assert_eq!(here.read(SHARD, owner.tenure, &[Want::Tallies]), Err(StoreError::Refused(lost)));
    let new = Owner::of(&there, SHARD, "b");
    assert!(new.tenure.fence > owner.tenure.fence, "{:?} was granted before", new.tenure.fence);
    let current = new.tenure.fence;
    assert_eq!(owner.commit(vec![insert(row(3))]).unwrap(), Err(Refusal::Fenced { current }));
    new.expect(&[row(1)]);
}
