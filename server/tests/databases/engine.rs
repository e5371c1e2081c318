//! The databases that facts are shown on, by what all of them can do.

use punctual_engines::{Maria, Postgres, Redis};

/// A private database.
pub trait Engine {
    /// The first word of what the server says of it.
    const PRODUCT: &'static str;

    fn start() -> Self;
    fn url(&self) -> String;
    /// The same at another port, as of a proxy.
    fn url_at(port: u16) -> String;
    fn port(&self) -> u16;
    /// With -9.
    fn kill(&mut self);
    /// On the same data.
    fn start_again(&mut self);
    /// Makes away with a live row behind the server's back, so that only the counts tell.
    fn steal(&self);
    /// Leaves the state of a live row unreadable.
    fn spoil(&self);
    /// Lets it hang.
    fn pause(&self);
    fn go_on(&self);
}

macro_rules! engines {
    ($($engine:ident, $product:literal, $steal:ident, $spoil:ident;)*) => {$(
        impl Engine for $engine {
            const PRODUCT: &'static str = $product;

            fn start() -> $engine {
                $engine::start()
            }
            fn url(&self) -> String {
                $engine::url(self)
            }
            fn url_at(port: u16) -> String {
                $engine::url_at(port)
            }
            fn port(&self) -> u16 {
                punctual_engines::Engine::port(self)
            }
            fn kill(&mut self) {
                punctual_engines::Engine::kill(self);
            }
            fn start_again(&mut self) {
                $engine::start_again(self);
            }
            fn steal(&self) {
                $steal(self);
            }
            fn spoil(&self) {
                $spoil(self);
            }
            fn pause(&self) {
                punctual_engines::Engine::pause(self);
            }
            fn go_on(&self) {
                punctual_engines::Engine::go_on(self);
            }
        }
    )*};
}

engines! {
    Postgres, "PostgreSQL", steal_in_postgres, spoil_in_postgres;
    Maria, "MariaDB", steal_in_maria, spoil_in_maria;
    Redis, "Redis", steal_in_redis, spoil_in_redis;
}

fn steal_in_postgres(postgres: &Postgres) {
    postgres.sql(
        "WITH gone AS (DELETE FROM punctual.rows WHERE (shard, seq) IN \
         (SELECT shard, seq FROM punctual.rows WHERE tbl = 1 LIMIT 1) RETURNING shard, seq) \
         DELETE FROM punctual.names n USING gone WHERE n.shard = gone.shard AND n.seq = gone.seq",
    );
}

fn spoil_in_postgres(postgres: &Postgres) {
    postgres.sql(
        "UPDATE punctual.rows SET state = '\\x09' WHERE (shard, seq) IN \
         (SELECT shard, seq FROM punctual.rows WHERE tbl = 1 LIMIT 1)",
    );
}

fn steal_in_maria(maria: &Maria) {
    maria.sql(
        "USE punctual; SELECT shard,seq INTO @shard,@seq FROM punctual_rows WHERE tbl=1 LIMIT 1; \
         DELETE FROM punctual_rows WHERE shard=@shard AND seq=@seq; \
         DELETE FROM punctual_names WHERE shard=@shard AND seq=@seq",
    );
}

fn spoil_in_maria(maria: &Maria) {
    maria.sql("UPDATE punctual.punctual_rows SET state=x'09' WHERE tbl=1 LIMIT 1");
}

/// Does something with the first live row of the first shard that has one.
fn with_row_in_redis(redis: &Redis, what: &str) {
    let script = format!(
        "for shard = 0, 15 do \
           local key = '{{punctual:' .. shard .. '}}:' \
           local seq = redis.call('ZRANGE', key .. 'live', 0, 0)[1] \
           if seq then local row = redis.call('HGET', key .. 'rows', seq) {what} return 'done' end \
         end"
    );
    assert_eq!(redis.command(&["EVAL", &script, "0"]), "done");
}

fn steal_in_redis(redis: &Redis) {
    with_row_in_redis(
        redis,
        "redis.call('ZREM', key .. 'live', seq) redis.call('HDEL', key .. 'rows', seq) redis.call('HDEL', key .. 'bodies', seq) \
         local name = string.sub(row, 15, 18 + string.byte(row, 16) + string.byte(row, 17) + string.byte(row, 18)) \
         redis.call('HDEL', key .. 'names', name)",
    );
}

fn spoil_in_redis(redis: &Redis) {
    with_row_in_redis(redis, "redis.call('HSET', key .. 'rows', seq, string.sub(row, 1, #row - 3))");
}
