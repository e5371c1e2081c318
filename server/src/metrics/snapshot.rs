//! All numbers at one instant, and how they are written.

use std::collections::BTreeSet;
use std::sync::Arc;

use punctual_almanac::Usage;
use punctual_beanstalk::answer::Word;
use punctual_beanstalk::counters::Counters;
use punctual_beanstalk::kind::Kind;
use punctual_core::{Counts, Name, Reason, Timestamp};
use punctual_http::Exposition;
use punctual_node::{Happened, Stats};

use super::page::{Page, Rows, Unit};
use super::shown::OTHER;

/// All numbers at one instant.
#[derive(Debug)]
pub struct Snapshot {
    pub is_ready: bool,
    pub now: Timestamp,
    pub usage: Usage,
    pub beanstalk: Option<Arc<Counters>>,
    pub counts: Counts,
    pub stats: Stats,
    pub topics: BTreeSet<Name>,
    pub queues: BTreeSet<Name>,
}

const MICROS: f64 = 1e-6;

impl Snapshot {
    /// All of them; without those of the node as a whole, what is counted by topic and queue.
    pub fn text(&self, format: Exposition, is_whole: bool) -> String {
        let mut page = Page::new(format);
        if is_whole {
            self.node(&mut page);
        }
        self.content(&mut page);
        self.happenings(&mut page);
        if is_whole {
            self.work(&mut page);
            self.store(&mut page);
            self.archive(&mut page);
            self.beanstalk(&mut page);
        }
        page.into_text()
    }

    fn node(&self, page: &mut Page) {
        page.info("build", "What is running.", &[("version", env!("CARGO_PKG_VERSION"))]);
        page.gauge("ready", "1 if the node answers, as /readyz says.", None, u64::from(self.is_ready));
        let up = self.now.as_millis().saturating_sub(self.stats.started_at.as_millis()) / 1_000;
        page.gauge("uptime", "How long the node has been running.", Some(Unit::Seconds), up);
    }

    fn content(&self, page: &mut Page) {
        let mut tasks = Rows::new();
        for topic in &self.counts.topics {
            let states = [
                ("waiting", topic.waiting),
                ("leased", topic.leased),
                ("dead", topic.dead),
                ("history", topic.history),
            ];
            add(&mut tasks, &self.topics, &topic.name, &states);
        }
        let about = "Tasks by topic: waiting for their time or a consumer, leased, dead letters, in the history.";
        page.gauges("tasks", about, None, ["topic", "state"], &tasks);
        let mut deliveries = Rows::new();
        for queue in &self.counts.queues {
            let states = [("ready", queue.ready), ("leased", queue.leased), ("dead", queue.dead)];
            add(&mut deliveries, &self.queues, &queue.name, &states);
        }
        let about = "Deliveries by queue: ready for a consumer, leased, dead letters.";
        page.gauges("deliveries", about, None, ["queue", "state"], &deliveries);
    }

    fn happenings(&self, page: &mut Page) {
        let (mut happened, mut dead) = (Rows::new(), Rows::new());
        for (topic, counts) in &self.stats.topics {
            add(&mut happened, &self.topics, topic, &by_kind(counts));
            let reasons = Reason::ALL.map(|reason| (reason.as_str(), counts.dead_of(reason)));
            add(&mut dead, &self.topics, topic, &reasons);
        }
        page.counters("happenings", "What happened to tasks and deliveries, by topic.", ["topic", "what"], &happened);
        page.counters(
            "dead_letters",
            "Deliveries that were given up, by topic and reason.",
            ["topic", "reason"],
            &dead,
        );
    }

    fn work(&self, page: &mut Page) {
        let stats = &self.stats;
        let late = "How late deliveries were handed over after they were due.";
        page.histogram("lateness", late, Some(Unit::Seconds), &stats.lateness_buckets, MICROS);
        let commit = "How long the store took to make a commit durable.";
        page.histogram("commit", commit, Some(Unit::Seconds), &stats.commit_time_buckets, MICROS);
        page.histogram("commit_rows", "How many rows each commit changed.", None, &stats.commit_changes_buckets, 1.0);

        page.counter("failed_commits", "Commits that failed or were refused.", stats.failed_commits);
        page.counter("steps", "Steps of the shards that had an outcome.", stats.steps);
        page.counter("answers", "Answers that were given.", stats.answers);
        let refusals: Rows<1> = stats.refusals.iter().map(|(code, count)| ([(*code).to_owned()], *count)).collect();
        page.counters(
            "refusals",
            "Requests that were not carried out, by the code of the problem.",
            ["reason"],
            &refusals,
        );
        page.gauge("waiting_consumers", "Consumers that wait for deliveries.", None, stats.waiting_consumers as u64);
        let inboxes = (0..).zip(&stats.inboxes).map(|(shard, length): (u32, _)| ([shard.to_string()], *length as u64));
        let about = "Requests that wait to be looked at, by shard.";
        page.gauges("inbox_requests", about, None, ["shard"], &inboxes.collect());
    }

    fn store(&self, page: &mut Page) {
        let usage = &self.usage;
        let parts = |parts: &[(&str, u64)]| parts.iter().map(|(part, bytes)| ([(*part).to_owned()], *bytes)).collect();
        let memory: Rows<1> = parts(&[
            ("recent", usage.recent_bytes as u64),
            ("keys", usage.key_bytes as u64),
            ("blocks", usage.block_bytes as u64),
        ]);
        page.gauges("store_memory", "Memory of the store, by what it is for.", Some(Unit::Bytes), ["part"], &memory);
        let disk: Rows<1> = parts(&[("runs", usage.run_bytes), ("journal", usage.journal_bytes)]);
        page.gauges("store_disk", "Disk space of the store, by what it is for.", Some(Unit::Bytes), ["part"], &disk);
        page.gauge("store_runs", "Runs of the store.", None, usage.runs as u64);
        page.gauge("store_run_rows", "Living rows in runs of the store.", None, usage.rows_in_runs);
        page.gauge(
            "store_free_segments",
            "Segments of the journal that are ready to be written over.",
            None,
            usage.free_segments as u64,
        );
    }
}

impl Snapshot {
    fn archive(&self, page: &mut Page) {
        let Some(archive) = &self.stats.archive else { return };
        page.counter("archived_tasks", "Finished tasks that the archive has taken.", archive.archived);
        page.counter("archive_failures", "How often archiving failed.", archive.failures);
        page.gauge(
            "archive_failing",
            "1 if archiving failed the last time.",
            None,
            u64::from(archive.last_error.is_some()),
        );
    }
}

impl Snapshot {
    fn beanstalk(&self, page: &mut Page) {
        let Some(counters) = &self.beanstalk else { return };
        let connections = counters.connections();
        let states = [("open", connections.current), ("waiting", connections.waiting)];
        let connections = states.map(|(state, count)| ([state.to_owned()], count));
        let about = "Connections to the beanstalk door: all that are open, and those of them that wait for a job.";
        page.gauges("beanstalk_connections", about, None, ["state"], &connections.into());
        let counts = counters.commands();
        let kinds = Kind::SHOWN.into_iter().chain(Kind::HIDDEN);
        let commands = kinds.map(|kind| ([kind.name().to_owned()], counts[kind as usize])).collect();
        page.counters("beanstalk_commands", "Commands at the beanstalk door.", ["command"], &commands);
        let errors = Word::ERRORS.map(|word| ([word.line().trim_end().to_owned()], counters.answers(word)));
        let about = "Answers of the beanstalk door that say what went wrong.";
        page.counters("beanstalk_errors", about, ["answer"], &errors.into());
    }
}

fn by_kind(counts: &Happened) -> [(&'static str, u64); 12] {
    [
        ("scheduled", counts.scheduled),
        ("rescheduled", counts.rescheduled),
        ("fired", counts.fired),
        ("leased", counts.leased),
        ("extended", counts.extended),
        ("released", counts.released),
        ("failed", counts.failed),
        ("done", counts.done),
        ("cancelled", counts.cancelled),
        ("forwarded", counts.forwarded),
        ("replayed", counts.replayed),
        ("purged", counts.purged),
    ]
}

/// Adds the numbers of a topic or queue under its name, or to the others.
fn add(rows: &mut Rows<2>, shown: &BTreeSet<Name>, name: &Name, values: &[(&str, u64)]) {
    let name = if shown.contains(name) { name.as_str() } else { OTHER };
    for (what, value) in values {
        *rows.entry([name.to_owned(), (*what).to_owned()]).or_default() += value;
    }
}
