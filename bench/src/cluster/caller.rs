//! One connection to a server, for requests of any kind.

use std::io::{self, Write};

use serde_json::Value;

use crate::arena::wire::Wire;
use crate::server::contestants::answered;

pub struct Caller {
    wire: Wire,
}

impl Caller {
    pub async fn connect(port: u16) -> io::Result<Caller> {
        Ok(Caller { wire: Wire::connect(port).await? })
    }

    pub async fn get(&mut self, path: &str) -> io::Result<Value> {
        self.send("GET", path, &Value::Null, 200).await
    }

    pub async fn post(&mut self, path: &str, body: &Value, expected: u16) -> io::Result<Value> {
        self.send("POST", path, body, expected).await
    }

    /// Sends a request, and reads the answer. Any other status is an error.
    pub async fn send(&mut self, method: &str, path: &str, body: &Value, expected: u16) -> io::Result<Value> {
        let content = if body.is_null() { String::new() } else { body.to_string() };
        let length = content.len();
        write!(
            self.wire.out,
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n\
             {content}"
        )?;
        let place = answered(&mut self.wire, expected).await?;
        if place.is_empty() { Ok(Value::Null) } else { Ok(serde_json::from_slice(&self.wire.answer[place])?) }
    }
}
