//! Punctual over its HTTP door.

use std::io::{self, Write};
use std::ops::Range;

use serde::Deserialize;

use crate::arena::task::{Bodies, due_of};
use crate::arena::wire::Wire;

pub async fn is_ready(port: u16) -> io::Result<()> {
    let mut wire = Wire::connect(port).await?;
    wire.out.extend_from_slice(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    answered(&mut wire, 200).await.map(drop)
}

#[derive(Deserialize)]
struct Deliveries<'a> {
    #[serde(borrow)]
    deliveries: Vec<Delivery<'a>>,
}

#[derive(Deserialize)]
struct Delivery<'a> {
    lease: &'a str,
    text: &'a str,
}

pub struct Client {
    wire: Wire,
    bodies: Bodies,
    /// The request's content, kept to be written over by the next one.
    content: Vec<u8>,
    taken: Vec<String>,
}

impl Client {
    pub async fn connect(port: u16) -> io::Result<Client> {
        let wire = Wire::connect(port).await?;
        Ok(Client { wire, bodies: Bodies::new(), content: Vec::new(), taken: Vec::new() })
    }

    pub async fn schedule(&mut self, due_ms: u64) -> io::Result<()> {
        self.write_task(due_ms);
        self.post("/v1/tasks", 201).await.map(drop)
    }

    pub async fn schedule_many(&mut self, due_ms: &[u64]) -> io::Result<()> {
        self.content.extend_from_slice(b"{\"tasks\":[");
        for (number, due) in due_ms.iter().enumerate() {
            if number > 0 {
                self.content.push(b',');
            }
            self.write_task(*due);
        }
        self.content.extend_from_slice(b"]}");
        let place = self.post("/v1/tasks/batch", 200).await?;
        self.no_problem_in(place)
    }

    pub async fn take(&mut self, at_most: usize) -> io::Result<Vec<u64>> {
        let request = br#"{"queues":["orders"],"wait":"10s","lease":"60s","consumer":"bench","max":"#;
        self.content.extend_from_slice(request);
        write!(self.content, "{at_most}}}").expect("memory takes it");
        let place = self.post("/v1/reserve", 200).await?;
        let Deliveries { deliveries } = serde_json::from_slice(&self.wire.answer[place])?;
        self.taken = deliveries.iter().map(|delivery| delivery.lease.to_owned()).collect();
        deliveries.iter().map(|delivery| due_of(delivery.text.as_bytes())).collect()
    }

    pub async fn acknowledge(&mut self) -> io::Result<()> {
        self.content.extend_from_slice(b"{\"actions\":[");
        for (number, lease) in self.taken.drain(..).enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(self.content, r#"{comma}{{"do":"acknowledge","lease":"{lease}"}}"#).expect("memory takes it");
        }
        self.content.extend_from_slice(b"]}");
        let place = self.post("/v1/leases", 200).await?;
        self.no_problem_in(place)
    }

    fn write_task(&mut self, due_ms: u64) {
        let body = self.bodies.next(due_ms);
        write!(self.content, r#"{{"topic":"orders","at":{due_ms},"text":""#).expect("memory takes it");
        self.content.extend_from_slice(&body);
        self.content.extend_from_slice(b"\"}");
    }

    /// Sends the content that was written; gives the place of the answer's content.
    async fn post(&mut self, path: &str, expected: u16) -> io::Result<Range<usize>> {
        let length = self.content.len();
        write!(
            self.wire.out,
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        )?;
        self.wire.out.append(&mut self.content);
        answered(&mut self.wire, expected).await
    }

    /// An answer to many says of each what became of it.
    fn no_problem_in(&self, place: Range<usize>) -> io::Result<()> {
        let answer = String::from_utf8_lossy(&self.wire.answer[place]);
        match answer.find("\"problem\"") {
            None => Ok(()),
            Some(at) => Err(io::Error::other(answer[at..].chars().take(300).collect::<String>())),
        }
    }
}

/// Sends what was written and reads the answer; gives the place of its content. Any other status is an error.
pub async fn answered(wire: &mut Wire, expected: u16) -> io::Result<Range<usize>> {
    wire.send().await?;
    let head = loop {
        match wire.answer.windows(4).position(|end| end == b"\r\n\r\n") {
            Some(end) => break end + 4,
            None => wire.read_more().await?,
        }
    };
    let lines = str::from_utf8(&wire.answer[..head]).map_err(io::Error::other)?;
    let status = lines.get(9..12).and_then(|digits| digits.parse::<u16>().ok());
    let length = lines.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") { value.trim().parse::<usize>().ok() } else { None }
    });
    let end = head + length.ok_or_else(|| io::Error::other(format!("an answer of no length: {lines}")))?;
    while wire.answer.len() < end {
        wire.read_more().await?;
    }
    match status {
        Some(status) if status == expected => Ok(head..end),
        _ => Err(io::Error::other(format!("{}", wire.answer[..end].escape_ascii()))),
    }
}
