//! Redis as a delayed queue, the usual way: a sorted set of ids by due time, a hash of bodies, a list of what is due.
//! One mover looks every few milliseconds; consumers block on the list. A consumer that dies loses what it has popped:
//! what it would cost to keep that is not asked of Redis here.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::resp::{Reply, ask, command as write, open, word};
use crate::arena::task::{BODY_BYTES, Bodies, due_of, now_ms};
use crate::arena::wire::Wire;
use crate::arena::{machine, text};

const BY_TIME: &[u8] = b"tasks:by-time";
const BODIES: &[u8] = b"tasks:bodies";
const DUE: &[u8] = b"tasks:due";

const LOOKS_EVERY: Duration = Duration::from_millis(5);
const MOVES_AT_MOST: usize = 1_000;

const MOVE: &str = "local due = redis.call('zrange', KEYS[1], '-inf', ARGV[1], 'byscore', 'limit', 0, ARGV[2])
if #due > 0 then
    redis.call('zrem', KEYS[1], unpack(due))
    redis.call('rpush', KEYS[2], unpack(due))
end
return tostring(#due)";

pub fn program() -> Option<PathBuf> {
    machine::in_path("redis-server")
}

pub fn command(program: &Path, directory: &Path, port: u16, synced: &str) -> Vec<String> {
    let (program, port, directory) = (text(program), port.to_string(), text(directory));
    let options = ["--port", &port, "--bind", "127.0.0.1", "--dir", &directory];
    let keeping = ["--save", "", "--appendonly", "yes", "--appendfsync", synced];
    [program.as_str()].into_iter().chain(options).chain(keeping).map(str::to_owned).collect()
}

/// It takes connections before it has read its file, and refuses commands until then.
pub async fn is_ready(port: u16) -> io::Result<()> {
    let mut wire = Wire::connect(port).await?;
    write(&mut wire.out, &[b"PING"]);
    ask(&mut wire, 1).await.map(drop)
}

/// Moves what is due from the sorted set to the list, until it is aborted.
pub async fn keep_moving(port: u16) -> io::Result<()> {
    let mut wire = Wire::connect(port).await?;
    write(&mut wire.out, &[b"SCRIPT", b"LOAD", MOVE.as_bytes()]);
    let sha = match ask(&mut wire, 1).await?.as_slice() {
        [Reply::Text(sha)] => wire.answer[sha.clone()].to_vec(),
        _ => return Err(io::Error::other("Redis did not name the script")),
    };
    let mut looks = interval(LOOKS_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let at_most = MOVES_AT_MOST.to_string();
    loop {
        let now = now_ms().to_string();
        write(&mut wire.out, &[b"EVALSHA", &sha, b"2", BY_TIME, DUE, now.as_bytes(), at_most.as_bytes()]);
        let replies = ask(&mut wire, 1).await?;
        // Where that many were due there may be more.
        let more = matches!(&replies[0], Reply::Text(moved) if wire.answer[moved.clone()] == *at_most.as_bytes());
        if !more {
            looks.tick().await;
        }
    }
}

pub struct Client {
    wire: Wire,
    bodies: Bodies,
    taken: Vec<Vec<u8>>,
}

impl Client {
    pub async fn connect(port: u16) -> io::Result<Client> {
        Ok(Client { wire: Wire::connect(port).await?, bodies: Bodies::new(), taken: Vec::new() })
    }

    /// One transaction with all ids in one command and all bodies in another: in batches that takes half the time of a
    /// script, and one at a time it takes no longer than one.
    pub async fn schedule_many(&mut self, due_ms: &[u64]) -> io::Result<()> {
        let ids: Vec<[u8; 16]> = due_ms.iter().map(|_| new_id()).collect();
        let out = &mut self.wire.out;
        write(out, &[b"MULTI"]);
        open(out, 2 + 2 * ids.len());
        word(out, b"ZADD");
        word(out, BY_TIME);
        for (id, due) in ids.iter().zip(due_ms) {
            word(out, due.to_string().as_bytes());
            word(out, id);
        }
        open(out, 2 + 2 * ids.len());
        word(out, b"HSET");
        word(out, BODIES);
        for (id, due) in ids.iter().zip(due_ms) {
            word(out, id);
            word(out, &self.bodies.next(*due));
        }
        write(out, &[b"EXEC"]);
        match ask(&mut self.wire, 4).await?.as_slice() {
            [.., Reply::List(done)] if done.iter().all(|reply| matches!(reply, Reply::Number)) => Ok(()),
            _ => Err(io::Error::other("Redis did not do the transaction")),
        }
    }

    pub async fn take(&mut self, at_most: usize) -> io::Result<Vec<u64>> {
        let count = at_most.to_string();
        write(&mut self.wire.out, &[b"BLMPOP", b"10", b"1", DUE, b"LEFT", b"COUNT", count.as_bytes()]);
        let replies = ask(&mut self.wire, 1).await?;
        let [Reply::List(key_and_ids)] = replies.as_slice() else { return Ok(Vec::new()) };
        let Some(Reply::List(ids)) = key_and_ids.get(1) else { return Ok(Vec::new()) };
        self.taken = ids.iter().filter_map(|id| self.at(id)).map(<[u8]>::to_vec).collect();
        self.of_taken(b"HMGET");
        match ask(&mut self.wire, 1).await?.as_slice() {
            [Reply::List(bodies)] => {
                bodies.iter().map(|body| due_of(self.at(body).unwrap_or(&[0; BODY_BYTES]))).collect()
            }
            _ => Err(io::Error::other("Redis did not give the bodies")),
        }
    }

    pub async fn acknowledge(&mut self) -> io::Result<()> {
        self.of_taken(b"HDEL");
        self.taken.clear();
        ask(&mut self.wire, 1).await.map(drop)
    }

    fn of_taken(&mut self, verb: &[u8]) {
        let out = &mut self.wire.out;
        open(out, 2 + self.taken.len());
        word(out, verb);
        word(out, BODIES);
        self.taken.iter().for_each(|id| word(out, id));
    }

    fn at(&self, reply: &Reply) -> Option<&[u8]> {
        match reply {
            Reply::Text(place) => Some(&self.wire.answer[place.clone()]),
            _ => None,
        }
    }
}

fn new_id() -> [u8; 16] {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let number = NEXT.fetch_add(1, Relaxed);
    std::array::from_fn(|place| DIGITS[(number >> (60 - 4 * place)) as usize & 15])
}
