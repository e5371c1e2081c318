//! PGMQ: its tables and indexes as documented, and the statements that its functions `send_batch`, `read` and `archive`
//! come to, prepared once. Called directly they cost less than through the functions, which plan them anew each time.

use std::io;

use tokio_postgres::Statement;

use crate::arena::postgres::{connect, take, texts};
use crate::arena::task::Bodies;

const TABLES: &str = "CREATE SCHEMA pgmq;
CREATE TABLE pgmq.q_orders (
    msg_id      bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    read_ct     int DEFAULT 0 NOT NULL,
    enqueued_at timestamptz DEFAULT now() NOT NULL,
    vt          timestamptz NOT NULL,
    message     jsonb,
    headers     jsonb
);
CREATE INDEX q_orders_vt_idx ON pgmq.q_orders (vt);
CREATE TABLE pgmq.a_orders (
    msg_id      bigint PRIMARY KEY,
    read_ct     int DEFAULT 0 NOT NULL,
    enqueued_at timestamptz DEFAULT now() NOT NULL,
    archived_at timestamptz DEFAULT now() NOT NULL,
    vt          timestamptz NOT NULL,
    message     jsonb,
    headers     jsonb
);
CREATE INDEX a_orders_archived_idx ON pgmq.a_orders (archived_at);";

/// It has one delay for a whole batch.
const SEND: &str = "INSERT INTO pgmq.q_orders (vt, message)
    SELECT to_timestamp($1::float8 / 1000), to_jsonb(body) FROM unnest($2::text[]) AS body RETURNING msg_id";

const READ: &str = "WITH next AS (
    SELECT msg_id FROM pgmq.q_orders WHERE vt <= clock_timestamp() ORDER BY msg_id LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE pgmq.q_orders m SET vt = clock_timestamp() + interval '30 s', read_ct = read_ct + 1
FROM next WHERE m.msg_id = next.msg_id
RETURNING m.msg_id, m.message #>> '{}'";

const ARCHIVE: &str = "WITH archived AS (
    DELETE FROM pgmq.q_orders WHERE msg_id = ANY ($1) RETURNING msg_id, vt, read_ct, enqueued_at, message, headers
)
INSERT INTO pgmq.a_orders (msg_id, vt, read_ct, enqueued_at, message, headers)
SELECT msg_id, vt, read_ct, enqueued_at, message, headers FROM archived RETURNING msg_id";

pub async fn furnish(url: &str) -> io::Result<()> {
    connect(url).await?.batch_execute(TABLES).await.map_err(io::Error::other)
}

pub struct Client {
    client: tokio_postgres::Client,
    send: Statement,
    read: Statement,
    archive: Statement,
    bodies: Bodies,
    taken: Vec<i64>,
}

impl Client {
    pub async fn connect(url: &str) -> io::Result<Client> {
        let client = connect(url).await?;
        let prepare = async |statement: &str| client.prepare(statement).await.map_err(io::Error::other);
        Ok(Client {
            send: prepare(SEND).await?,
            read: prepare(READ).await?,
            archive: prepare(ARCHIVE).await?,
            bodies: Bodies::new(),
            taken: Vec::new(),
            client,
        })
    }

    pub async fn send(&mut self, due_ms: &[u64]) -> io::Result<()> {
        let bodies = texts(&mut self.bodies, due_ms);
        let due = due_ms.first().copied().unwrap_or_default() as f64;
        let sent = self.client.query(&self.send, &[&due, &bodies]).await.map_err(io::Error::other)?;
        debug_assert_eq!(sent.len(), due_ms.len(), "each has a number");
        Ok(())
    }

    pub async fn take(&mut self, at_most: usize) -> io::Result<Vec<u64>> {
        let taken = take(&self.client, &self.read, || vec![at_most as i64]).await?;
        self.taken = taken.numbers;
        Ok(taken.due_ms)
    }

    pub async fn acknowledge(&mut self) -> io::Result<()> {
        let taken = std::mem::take(&mut self.taken);
        self.client.query(&self.archive, &[&taken]).await.map(drop).map_err(io::Error::other)
    }
}
