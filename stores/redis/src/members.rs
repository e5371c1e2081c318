//! Who is there, who owns what, and what all share.

use std::collections::BTreeSet;
use std::time::Instant;

use bytes::Bytes;
use punctual_core::store::{
    Beat, Claim, Entry, Fence, Held, Incarnation, Outdated, Present, Roll, ShardId, StoreError, Tenure,
};
use punctual_core::{Name, Timestamp};
use redis::{Value, cmd};

use crate::commit::stands;
use crate::keys::Keys;
use crate::scripts;
use crate::servers::{Call, Servers};
use crate::value::{bytes, list, number, odd, pairs, text};

/// Two round trips: the roll's own slot names the shards, and their owners are read where they are.
pub(crate) fn beat(servers: &Servers, keys: &Keys, beat: &Beat, by: Instant) -> Result<Roll, StoreError> {
    let strange = || odd("a beat");
    let mut command = scripts::beat().on(&["nodes", "shards", "revisions"].map(|name| keys.shared(name)));
    command.arg(&*beat.who.node).arg(beat.who.number).arg(beat.lease.0).arg(&beat.address);
    let call = Call { slot: keys.shared_slot(), command, may_repeat: true, writes: false };
    let mut parts = list(servers.call_one(call, by)?).ok_or_else(strange)?.into_iter();
    let mut part = || parts.next().ok_or_else(strange);

    let seconds: u64 = number(&part()?).ok_or_else(strange)?;
    let micros: u64 = number(&part()?).ok_or_else(strange)?;
    let nodes = pairs(part()?).ok_or_else(strange)?;
    let shards = list(part()?).ok_or_else(strange)?;
    let revisions = pairs(part()?).ok_or_else(strange)?;

    let mut nodes =
        nodes.iter().map(|(node, word)| present(node, word)).collect::<Option<Vec<_>>>().ok_or_else(strange)?;
    nodes.sort_by(|one, other| one.who.node.cmp(&other.who.node));
    let shards = shards.iter().map(|shard| number(shard).map(ShardId)).collect::<Option<_>>().ok_or_else(strange)?;
    let revision = |(key, revision): &(Value, Value)| Some((text(key)?.to_owned(), number(revision)?));
    let mut revisions = revisions.iter().map(revision).collect::<Option<Vec<_>>>().ok_or_else(strange)?;
    revisions.sort();
    Ok(Roll { micros: seconds * 1_000_000 + micros, nodes, shards: held(servers, keys, shards, by)?, revisions })
}

/// A node as the script notes it: `number until address`.
fn present(node: &Value, word: &Value) -> Option<Present> {
    let mut words = text(word)?.splitn(3, ' ');
    let who = Incarnation { node: Name::read_back(text(node)?).ok()?, number: words.next()?.parse().ok()? };
    let until = Timestamp::from_millis(words.next()?.parse().ok()?);
    Some(Present { who, address: words.next()?.to_owned(), until })
}

fn held(servers: &Servers, keys: &Keys, shards: BTreeSet<ShardId>, by: Instant) -> Result<Vec<Held>, StoreError> {
    let ask = |shard: &ShardId| {
        let mut command = cmd("HMGET");
        command.arg(keys.own(*shard)).arg(&["fence", "node", "number"]);
        Call { slot: keys.slot(*shard), command, may_repeat: true, writes: false }
    };
    let calls: Vec<Call> = shards.iter().map(ask).collect();
    let answers = servers.call(&calls, by)?;
    let held = |(shard, own): (ShardId, Value)| {
        let own = list(own)?;
        let by = match (own.get(1).and_then(text), own.get(2).and_then(number)) {
            (Some(node), Some(number)) => Some(Incarnation { node: Name::read_back(node).ok()?, number }),
            _ => None,
        };
        // One that was about to be claimed for the first time has no fence.
        let fence = own.first().and_then(number).unwrap_or_default();
        Some(Held { shard, fence: Fence(fence), by })
    };
    let found = shards.into_iter().zip(answers.into_iter().map(|answer| answer.value)).map(held);
    let found: Vec<Held> = found.collect::<Option<_>>().ok_or_else(|| odd("who owns the shards"))?;
    Ok(found.into_iter().filter(|held| held.fence != Fence::default()).collect())
}

pub(crate) fn claim(
    servers: &Servers,
    keys: &Keys,
    who: &Incarnation,
    wanted: &[(ShardId, Fence)],
    by: Instant,
) -> Result<Vec<Claim>, StoreError> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    // First, so that no shard is ever held that the roll does not name.
    let mut enter = cmd("SADD");
    enter.arg(keys.shared("shards")).arg(wanted.iter().map(|(shard, _)| shard.0).collect::<Vec<_>>());
    servers.call_one(Call { slot: keys.shared_slot(), command: enter, may_repeat: true, writes: true }, by)?;

    let call = |(shard, seen): &(ShardId, Fence)| {
        let mut command = scripts::claim().on(&[keys.own(*shard)]);
        command.arg(seen.0).arg(&*who.node).arg(who.number);
        // A second attempt would be outrun by the first.
        Call { slot: keys.slot(*shard), command, may_repeat: false, writes: true }
    };
    let calls: Vec<Call> = wanted.iter().map(call).collect();
    let claim = |value: Value| {
        let parts = list(value)?;
        let fence = Fence(number(parts.get(1)?)?);
        match text(parts.first()?)? {
            "granted" => Some(Claim::Granted(Tenure { fence, serial: number(parts.get(2)?)? })),
            "outrun" => Some(Claim::Outrun(fence)),
            _ => None,
        }
    };
    let answers = servers.call(&calls, by)?.into_iter().map(|answer| claim(answer.value));
    answers.collect::<Option<_>>().ok_or_else(|| odd("a claim"))
}

pub(crate) fn release(
    servers: &Servers,
    keys: &Keys,
    shard: ShardId,
    fence: Fence,
    to: Option<&Incarnation>,
    by: Instant,
) -> Result<Fence, StoreError> {
    let strange = || odd("a release");
    let mut command = scripts::release().on(&[keys.own(shard)]);
    command.arg(fence.0);
    if let Some(to) = to {
        command.arg(&*to.node).arg(to.number);
    }
    let call = Call { slot: keys.slot(shard), command, may_repeat: false, writes: true };
    let parts = list(servers.call_one(call, by)?).ok_or_else(strange)?;
    let current = parts.get(1).and_then(number).map(Fence).ok_or_else(strange)?;
    match parts.first().and_then(text) {
        Some("released") => Ok(current),
        Some("stands") => Err(stands(fence, current, 0, 0).into()),
        _ => Err(strange()),
    }
}

pub(crate) fn entry(servers: &Servers, keys: &Keys, key: &str, by: Instant) -> Result<Option<Entry>, StoreError> {
    let strange = || odd("a read of an entry");
    let mut command = cmd("HGET");
    command.arg(keys.shared("entries")).arg(key);
    let call = Call { slot: keys.shared_slot(), command, may_repeat: true, writes: false };
    let value = servers.call_one(call, by)?;
    if value == Value::Nil {
        return Ok(None);
    }
    // `revision value`
    let value = Bytes::from(bytes(value).ok_or_else(strange)?);
    let end = value.iter().position(|byte| *byte == b' ').ok_or_else(strange)?;
    let revision = std::str::from_utf8(&value[..end]).ok().and_then(|text| text.parse().ok()).ok_or_else(strange)?;
    Ok(Some(Entry { revision, value: value.slice(end + 1..) }))
}

pub(crate) fn put(
    servers: &Servers,
    keys: &Keys,
    key: &str,
    seen: u64,
    value: &[u8],
    by: Instant,
) -> Result<Result<u64, Outdated>, StoreError> {
    let strange = || odd("a write of an entry");
    let mut command = scripts::put().on(&["revisions", "entries"].map(|name| keys.shared(name)));
    command.arg(key).arg(seen).arg(value);
    // A second attempt would find the entry changed by the first.
    let call = Call { slot: keys.shared_slot(), command, may_repeat: false, writes: true };
    match servers.call_one(call, by)? {
        Value::Array(current) => {
            let current = current.first().and_then(number).ok_or_else(strange)?;
            Ok(Err(Outdated { current }))
        }
        value => number(&value).map(Ok).ok_or_else(strange),
    }
}
