//! Queues in tables of PostgreSQL: what is alike in all of them, whose consumers look for what is due every few
//! milliseconds.

use std::io;
use std::time::Duration;

use tokio::time::sleep;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};

use super::task::{Bodies, due_of};

const LOOKS_EVERY: Duration = Duration::from_millis(5);

/// Connects to a server by URL, or by words as `host=…`.
pub async fn connect(address: &str) -> io::Result<Client> {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.map_err(io::Error::other)?;
    // It ends with the client, and the client tells what went wrong.
    tokio::spawn(async { drop(connection.await) });
    Ok(client)
}

/// Bodies as texts, for tasks that are due then.
pub fn texts(bodies: &mut Bodies, due_ms: &[u64]) -> Vec<String> {
    let text = |due: &u64| String::from_utf8(bodies.next(*due).to_vec()).expect("it is made of letters");
    due_ms.iter().map(text).collect()
}

/// What was taken.
pub struct Taken {
    pub numbers: Vec<i64>,
    pub due_ms: Vec<u64>,
}

/// Takes what is due as soon as there is any, by a statement that gives numbers and bodies.
pub async fn take(client: &Client, statement: &Statement, values: impl Fn() -> Vec<i64>) -> io::Result<Taken> {
    loop {
        let values = values();
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        let rows = client.query(statement, &values).await.map_err(io::Error::other)?;
        if !rows.is_empty() {
            let due_ms = rows.iter().map(|row| due_of(row.get::<_, &str>(1).as_bytes())).collect::<Result<_, _>>()?;
            return Ok(Taken { numbers: rows.iter().map(|row| row.get(0)).collect(), due_ms });
        }
        sleep(LOOKS_EVERY).await;
    }
}
