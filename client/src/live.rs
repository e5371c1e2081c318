//! What goes on: a small snapshot every second, and what happened when.

use punctual_wire::{Pulse, PulseQuery, Series, SeriesQuery};

use crate::address::Path;
use crate::client::Client;
use crate::error::Error;
use crate::stream::Stream;

/// How the server is doing, once a second, until the connection ends.
#[derive(Debug)]
pub struct Pulses(Stream);

impl Client {
    /// Follows how all nodes together are doing, with the topics and queues of these names.
    ///
    /// ```no_run
    /// # async fn follow(client: punctual_client::Client) -> Result<(), punctual_client::Error> {
    /// let mut pulses = client.pulse(&["order-unpaid"], &["sms"]).await?;
    /// while let Some(pulse) = pulses.next().await {
    ///     println!("{} are ready", pulse?.queues["sms"].ready);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn pulse(&self, topics: &[impl AsRef<str>], queues: &[impl AsRef<str>]) -> Result<Pulses, Error> {
        let query = PulseQuery { topics: joined(topics), queues: joined(queues) };
        self.stream(Path::new("pulse").query(&query)?).await.map(Pulses)
    }

    /// What happened when: of one topic or queue, or of all together.
    pub async fn series(&self, query: &SeriesQuery) -> Result<Series, Error> {
        self.read(Path::new("series").query(query)?).await
    }
}

/// Names with spaces between them, which no name has.
fn joined(names: &[impl AsRef<str>]) -> Option<String> {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

impl Pulses {
    /// The next one; `None` after the connection ended. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Pulse, Error>> {
        Some(self.0.next().await?.and_then(|message| message.parse()))
    }
}
