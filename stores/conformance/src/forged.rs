//! Reading what no store has written: every way to a row, for stores whose rows others can reach.

use punctual_core::store::{
    Bodies, Find, FindBack, Look, Position, Row, Scan, ScanBack, ShardId, Store, StoreError, Table, Want,
};
use punctual_core::{Name, Timestamp};

/// Looks for a row in every way that there is, and gives what the store says against it. It must say so and live.
pub fn objections(store: &dyn Store, shard: ShardId, row: &Row) -> Vec<StoreError> {
    let (until, before) = (Timestamp::NEVER, Position::start_of(Timestamp::NEVER));
    let group = row.group.clone().unwrap_or_else(|| Name::stored("none"));
    let mut objections = Vec::new();
    let mut look = |want: Want<'_>| objections.extend(store.look_for(shard, want).err());
    for bodies in [Bodies::With, Bodies::Without] {
        look(Want::Keys(std::slice::from_ref(&row.key), bodies));
        look(Want::Numbers(&[row.seq], bodies));
        look(Want::Positions(&[row.position()], bodies));
        for table in Table::ALL {
            for topic in [None, Some(Name::stored(row.key.topic()))] {
                let (from, limit) = (Position::START, 100);
                look(Want::Scan(&Scan { table, from, until, topic: topic.clone(), limit, bodies }));
                look(Want::ScanBack(&ScanBack { table, before, from: Timestamp::ZERO, topic, limit, bodies }));
            }
            look(Want::Find(&Find { table, group: group.clone(), from_seq: 0, limit: 100, bodies }));
            look(Want::FindBack(&FindBack { table, group: group.clone(), before_seq: u64::MAX, limit: 100, bodies }));
        }
    }
    look(Want::Tallies);
    objections
}

/// Requires that the store objects to a row, and each time says to which row of which shard.
pub fn is_objected_to(store: &dyn Store, shard: ShardId, row: &Row, forgery: &str) {
    let objections = objections(store, shard, row);
    assert!(!objections.is_empty(), "{forgery}: the store takes it for one of its own");
    let place = [format!("shard {}", shard.0), format!("row {}", row.seq)];
    for objection in objections {
        let StoreError::Poisoned(why) = &objection else { panic!("{forgery}: {objection:?}") };
        assert!(place.iter().all(|part| why.contains(part)), "{forgery}: {why:?} does not say where");
    }
}
