//! What MariaDB takes as such: rows of the same bytes, inserted into the tables and indexes of Punctual's store, a
//! transaction for each call, sent as one text.

use std::fmt::Write;
use std::io;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::super::rows::{STATE, id, numbers, stored};
use crate::arena::task::Bodies;

pub struct Client {
    conn: Conn,
    bodies: Bodies,
}

impl Client {
    pub async fn connect(url: &str) -> io::Result<Client> {
        let conn = Conn::from_url(url).await.map_err(io::Error::other)?;
        Ok(Client { conn, bodies: Bodies::new() })
    }

    pub async fn insert(&mut self, due_ms: &[u64]) -> io::Result<()> {
        let state: String = STATE.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut names = "INSERT INTO punctual_names (shard, seq, size, name, body) VALUES ".to_owned();
        let mut rows = "INSERT INTO punctual_rows (shard, seq, tbl, at, serial, state) VALUES ".to_owned();
        for (place, (number, due)) in numbers(due_ms.len()).into_iter().zip(due_ms).enumerate() {
            let body = stored(&self.bodies.next(*due));
            let body = str::from_utf8(&body).expect("it is made of letters");
            let (comma, shard, size, id) = (if place == 0 { "" } else { "," }, number % 4, body.len(), id(number));
            // The key is laid out as the store does: the space, and topic and id with their lengths before them.
            write!(
                names,
                "{comma}({shard},{number},{size},CONCAT(x'0006','orders',x'{:02x}','{id}'),'{body}')",
                id.len()
            )
            .and_then(|()| write!(rows, "{comma}({shard},{number},1,{due},1,x'{state}')"))
            .expect("memory takes it");
        }
        let text = format!("BEGIN; {names}; {rows}; COMMIT");
        self.conn.query_drop(text).await.map_err(io::Error::other)
    }
}
