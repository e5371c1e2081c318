//! Private database servers for tests and benchmarks, each on a free port of the loopback and in a directory of its own.
//!
//! A server that cannot be started is a failure, never a reason to skip: everything here panics and says what is missing.
//! Servers and directories go with the value that stands for them, and also when the process is killed.

mod engine;
mod maria;
mod port;
mod postgres;
mod process;
mod programs;
mod proxy;
mod redis;
mod redis_cluster;
mod scratch;

pub use engine::Engine;
pub use maria::Maria;
pub use port::free_port;
pub use postgres::Postgres;
pub use proxy::{Proxy, Way};
pub use redis::Redis;
pub use redis_cluster::{RedisCluster, RedisSentinels};
