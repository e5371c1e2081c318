//! How a worker leaves: nothing that it holds is left lying about if that can be helped.

use std::time::Duration;

use tokio::time::Instant;

use super::Summary;
use super::run::Run;

/// So long an answer to the last fetch is waited for. Under load it is on its way with deliveries that would
/// otherwise lie until their leases end; an idle one brings nothing and can be dropped.
const LAST_FETCH: Duration = Duration::from_millis(500);

/// So long after the grace period handlers may take to stop, and the server to be told.
const LAST_WORDS: Duration = Duration::from_secs(5);

impl Run {
    /// Ends the work. What is begun goes on up to the grace period, with its leases extended; what is not begun is
    /// given back at once.
    pub async fn leave(mut self) -> Summary {
        let now = Instant::now();
        let fetch_until = now + LAST_FETCH.min(self.settings.grace);
        let work_until = now + self.settings.grace;
        let words_until = work_until + LAST_WORDS;
        let (mut fetching, mut working) = (true, true);
        loop {
            while let Some((number, _)) = self.backlog.pop() {
                self.give_back(number);
            }
            self.begin_settling();
            let is_told = self.settlings.is_empty() && self.outbox.is_empty();
            if is_told && self.fetches.is_empty() && self.jobs.is_empty() {
                break;
            }
            let wake_at = self.wake_at();
            tokio::select! {
                Some(finished) = self.jobs.join_next_with_id() => self.finished(finished),
                Some(sent) = self.settlings.join_next() => self.settled(sent),
                // Whatever it brings, it is the last.
                Some(fetched) = self.fetches.join_next() => { let _ = self.fetched(fetched); }
                () = tokio::time::sleep_until(fetch_until), if fetching => {
                    fetching = false;
                    self.fetches.abort_all();
                }
                () = tokio::time::sleep_until(work_until), if working => {
                    working = false;
                    self.jobs.abort_all();
                }
                () = tokio::time::sleep_until(words_until) => break,
                () = tokio::time::sleep_until(wake_at) => self.tick(),
            }
        }
        // A handler that does not stop may still be working, so its delivery is not given to somebody else before
        // its lease ends.
        let left = self.running.len() + self.outbox.len() + self.under_way;
        self.summary.left += left as u64;
        self.summary
    }
}
