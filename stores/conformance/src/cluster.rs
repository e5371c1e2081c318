//! Facts about the entries that all nodes share.

use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use punctual_core::Millis;
use punctual_core::store::{Entry, Outdated, Store, StoreError};

use crate::concurrency::joined;
use crate::content::{ALIKE, any_bytes};
use crate::ownership::roll;
use crate::stage::{Difference, Outcome, Stage, holds, same};

crate::listed![
    an_entry_that_nobody_wrote_is_absent,
    an_entry_is_read_as_it_was_written,
    an_entry_is_written_only_by_who_has_seen_the_latest,
    writing_the_same_again_is_a_change,
    entries_may_have_any_bytes,
    entries_whose_keys_look_alike_are_different,
    the_roll_names_the_revisions_in_the_order_of_the_keys,
    revisions_are_not_behind_the_clock,
    of_many_who_write_an_entry_at_once_one_does,
    entries_are_there_when_the_store_is_reopened,
];

fn get(store: &Arc<dyn Store>, key: &str) -> Result<Option<Entry>, StoreError> {
    store.cluster_get(key)
}

/// Writes an entry of which this revision was seen; gives the new one.
fn put(store: &Arc<dyn Store>, key: &str, seen: u64, value: &[u8]) -> Result<u64, Difference> {
    let answer = store.cluster_put(key, seen, value)?;
    answer.map_err(|outdated| Difference(format!("{key:?} seen at {seen} was not written: {outdated}")))
}

fn an_entry_that_nobody_wrote_is_absent(stage: &mut Stage<'_>) -> Outcome {
    same("an entry", get(stage.store(), "level")?, None)?;
    same("the revisions", roll(stage.store())?.revisions, vec![])
}

fn an_entry_is_read_as_it_was_written(stage: &mut Stage<'_>) -> Outcome {
    let (here, there) = (stage.store(), stage.other());
    let first = put(here, "level", 0, b"one")?;
    holds("the first revision is above zero", first > 0)?;
    same("the entry", get(&there, "level")?, Some(Entry { revision: first, value: "one".into() }))?;
    let second = put(&there, "level", first, b"two")?;
    holds(format_args!("revision {second} comes after {first}"), second > first)?;
    same("the entry, changed", get(here, "level")?, Some(Entry { revision: second, value: "two".into() }))?;
    same("another entry", get(here, "levels")?, None)
}

fn an_entry_is_written_only_by_who_has_seen_the_latest(stage: &mut Stage<'_>) -> Outcome {
    let (here, there) = (stage.store(), stage.other());
    for seen in [1, 7] {
        let answer = there.cluster_put("level", seen, b"early")?;
        same("a change of what is not there", answer, Err(Outdated { current: 0 }))?;
    }
    same("the entry that is not there", get(here, "level")?, None)?;
    let first = put(here, "level", 0, b"one")?;
    let current = put(here, "level", first, b"two")?;
    for seen in [0, first, current + 1] {
        let answer = there.cluster_put("level", seen, b"late")?;
        same(format_args!("a change by one who has seen {seen}"), answer, Err(Outdated { current }))?;
    }
    same("the entry", get(&there, "level")?, Some(Entry { revision: current, value: "two".into() }))
}

fn writing_the_same_again_is_a_change(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let mut seen = put(store, "level", 0, b"same")?;
    for _ in 0..3 {
        let next = put(store, "level", seen, b"same")?;
        holds(format_args!("revision {next} comes after {seen}"), next > seen)?;
        seen = next;
    }
    same("the revision", get(store, "level")?.map(|entry| entry.revision), Some(seen))
}

fn entries_may_have_any_bytes(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let long: Bytes = (0..64 << 10).map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut seen = 0;
    for value in any_bytes().into_iter().chain([long]) {
        seen = put(store, "secret", seen, &value)?;
        same("the entry", get(store, "secret")?.map(|entry| entry.value), Some(value))?;
    }
    Ok(())
}

fn entries_whose_keys_look_alike_are_different(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    for key in ALIKE {
        put(store, key, 0, key.as_bytes())?;
    }
    for key in ALIKE {
        let value = get(store, key)?.map(|entry| entry.value);
        same(format_args!("the entry {key:?}"), value, Some(Bytes::from_static(key.as_bytes())))?;
    }
    Ok(())
}

fn the_roll_names_the_revisions_in_the_order_of_the_keys(stage: &mut Stage<'_>) -> Outcome {
    let store = stage.store();
    let long = format!("settings/{}", "x".repeat(180));
    let mut expected = Vec::new();
    for (times, key) in (1..).zip(["b", "settings/queue/注文", "B", "a b", "a'b", "%", &long]) {
        let mut seen = 0;
        for _ in 0..times {
            seen = put(store, key, seen, b"value")?;
        }
        expected.push((key.to_owned(), seen));
    }
    expected.sort();
    same("the revisions", roll(&stage.other())?.revisions, expected)
}

fn revisions_are_not_behind_the_clock(stage: &mut Stage<'_>) -> Outcome {
    let (here, there) = (stage.store(), stage.other());
    let mut seen = 0;
    for store in [here, &there, here] {
        stage.subject.pass(Millis(50));
        let before = roll(store)?.micros;
        seen = put(store, "level", seen, b"value")?;
        holds(format_args!("revision {seen} was given when {before} µs had passed"), seen >= before)?;
    }
    Ok(())
}

fn of_many_who_write_an_entry_at_once_one_does(stage: &mut Stage<'_>) -> Outcome {
    let handles = [Arc::clone(stage.store()), stage.other()];
    let mut seen = 0;
    for _ in 0..5 {
        let answers = thread::scope(|scope| {
            let write = |n: usize| {
                let store = &handles[n % 2];
                scope.spawn(move || Ok((n, store.cluster_put("shards", seen, n.to_string().as_bytes())?)))
            };
            let writers: Vec<_> = (0..6).map(write).collect();
            writers.into_iter().map(joined).collect::<Result<Vec<_>, Difference>>()
        })?;
        let wrote: Vec<(usize, u64)> = answers.iter().filter_map(|(n, answer)| Some((*n, (*answer).ok()?))).collect();
        let [(writer, current)] = wrote[..] else {
            return holds(format_args!("one of six writes, not {}", wrote.len()), false);
        };
        let others =
            answers.iter().filter(|(n, _)| *n != writer).all(|(_, answer)| *answer == Err(Outdated { current }));
        holds(format_args!("the others hear that it is at {current}: {answers:?}"), others)?;
        let entry = Entry { revision: current, value: writer.to_string().into() };
        same("the entry", get(&handles[0], "shards")?, Some(entry))?;
        seen = current;
    }
    Ok(())
}

fn entries_are_there_when_the_store_is_reopened(stage: &mut Stage<'_>) -> Outcome {
    let first = put(stage.store(), "level", 0, b"one")?;
    stage.reopen()?;
    same("the entry", get(stage.store(), "level")?, Some(Entry { revision: first, value: "one".into() }))?;
    let second = put(stage.store(), "level", first, b"two")?;
    stage.reopen()?;
    same("the entry, changed", get(stage.store(), "level")?, Some(Entry { revision: second, value: "two".into() }))?;
    same("the revisions", roll(stage.store())?.revisions, vec![("level".to_owned(), second)])
}
