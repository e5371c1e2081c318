//! A client that says a command and hears its answer as text.

use crate::stage::Server;
use crate::wire::{Manner, Wire};

pub struct Client(Wire);

impl Client {
    pub fn of(server: &Server) -> Client {
        Client(Wire::open(&server.beanstalk_address()))
    }

    /// Says a command; its answer without the end of its last line.
    pub fn say(&mut self, command: &str) -> String {
        self.send(command);
        self.hear()
    }

    /// Says a command and does not wait.
    pub fn send(&mut self, command: &str) {
        self.0.send(format!("{command}\r\n").as_bytes(), Manner::Plain);
    }

    /// The next answer.
    pub fn hear(&mut self) -> String {
        self.try_hear().unwrap_or_else(|instead| panic!("no answer, but {instead:?}"))
    }

    /// The next answer, or what came instead.
    pub fn try_hear(&mut self) -> Result<String, String> {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim_end_matches("\r\n").to_owned();
        self.0.answer().map(text).map_err(text)
    }

    /// Puts a job with priority 5, this delay and time to run; its id.
    pub fn put(&mut self, delay: u32, ttr: u32, body: &str) -> u64 {
        let answer = self.say(&format!("put 5 {delay} {ttr} {}\r\n{body}", body.len()));
        answer.strip_prefix("INSERTED ").and_then(|id| id.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
    }

    /// One line of a document of numbers and texts.
    pub fn line(&mut self, command: &str, name: &str) -> String {
        let document = self.say(command);
        let line = document.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("no {name} in {document}")).to_owned()
    }
}
