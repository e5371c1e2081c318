//! What PostgreSQL takes as such: rows of the same bytes, inserted into the tables and indexes of Punctual's store by one
//! statement for each call. No key is looked for before, no fence is checked, nothing is counted.

use std::io;

use tokio_postgres::Statement;

use super::super::rows::{STATE, id, numbers, stored};
use crate::arena::postgres::connect;
use crate::arena::task::Bodies;

const INSERT: &str = "WITH new AS MATERIALIZED (
    SELECT * FROM unnest($1::int8[], $2::int8[], $3::text[], $4::bytea[]) AS new (seq, at, id, body)
), named AS (
    INSERT INTO punctual.names (shard, seq, space, topic, id, queue, grp, body)
    SELECT seq % 4, seq, seq % 4 * 2, 'orders', id, '', NULL, body FROM new
)
INSERT INTO punctual.rows (shard, seq, tbl, at, state) SELECT seq % 4, seq, 1, at, $5 FROM new";

pub struct Client {
    client: tokio_postgres::Client,
    insert: Statement,
    bodies: Bodies,
}

impl Client {
    pub async fn connect(url: &str) -> io::Result<Client> {
        let client = connect(url).await?;
        let insert = client.prepare(INSERT).await.map_err(io::Error::other)?;
        Ok(Client { client, insert, bodies: Bodies::new() })
    }

    pub async fn insert(&mut self, due_ms: &[u64]) -> io::Result<()> {
        let numbers = numbers(due_ms.len());
        let ids: Vec<String> = numbers.iter().map(|number| id(*number)).collect();
        let seqs: Vec<i64> = numbers.iter().map(|number| *number as i64).collect();
        let bodies: Vec<Vec<u8>> = due_ms.iter().map(|due| stored(&self.bodies.next(*due))).collect();
        let at: Vec<i64> = due_ms.iter().map(|due| *due as i64).collect();
        let inserted = self.client.execute(&self.insert, &[&seqs, &at, &ids, &bodies, &STATE]).await;
        inserted.map(drop).map_err(io::Error::other)
    }
}
