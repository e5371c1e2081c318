//! All numbers at one instant, and how they are written.

use punctual_core::store::Hardship;
use punctual_core::{Name, QueueView, Reason, Timestamp, TopicCounts, Total};
use punctual_http::Exposition;
use punctual_node::{Buckets, Happened, Stats, Timing};

use super::Meter;
use super::page::{MetricsPage, Series, Unit};
use super::shown::OTHER;
use crate::stores::OpenStore;

/// All numbers at one instant.
pub struct Snapshot<'a> {
    pub is_ready: bool,
    pub hardship: Option<Hardship>,
    pub now: Timestamp,
    /// Forward, and back.
    pub clock_steps: (u64, u64),
    /// By how many microseconds the machine's clock is ahead of the store's, if the store's is gone by.
    pub skew: Option<i64>,
    pub store: &'a dyn OpenStore,
    pub links: Option<&'a Meter>,
    pub doors: &'a [Meter],
    pub total: Total,
    pub stats: Stats,
    /// The topics that are shown by name.
    pub topics: Vec<(TopicCounts, Happened)>,
    /// The queues that are shown by name.
    pub queues: Vec<(QueueView, Timing)>,
}

const MICROS: f64 = 1e-6;

impl Snapshot<'_> {
    /// All of them; without those of the node as a whole, what is counted by topic and queue.
    pub fn text(&self, format: Exposition, is_whole: bool) -> String {
        let mut page = MetricsPage::new(format);
        if is_whole {
            self.node(&mut page);
        }
        self.content(&mut page);
        self.happenings(&mut page);
        if is_whole {
            self.work(&mut page);
            self.store.meter(&mut page);
            self.archive(&mut page);
            self.links.into_iter().for_each(|meter| meter(&mut page));
            self.doors.iter().for_each(|meter| meter(&mut page));
        }
        page.into_text()
    }

    fn node(&self, page: &mut MetricsPage) {
        page.info("build", "The version that is running.", &[("version", env!("CARGO_PKG_VERSION"))]);
        page.info("store", "Where tasks are kept.", &[("kind", &self.store.stats().kind)]);
        page.gauge("ready", "1 if the node answers, as reported by /readyz.", None, u64::from(self.is_ready));
        let reasons = [
            ("no-room", matches!(self.hardship, Some(Hardship::NoRoom(_)))),
            ("failing", matches!(self.hardship, Some(Hardship::Failing(_)))),
        ];
        let degraded: Series<1> = reasons.map(|(reason, is_so)| ([reason.to_owned()], u64::from(is_so))).into();
        let about = "1 if the store accepts no new tasks for this reason, as reported by /readyz.";
        page.gauges("degraded", about, None, ["reason"], &degraded);
        let up = self.now.as_millis().saturating_sub(self.stats.started_at.as_millis()) / 1_000;
        page.gauge("uptime", "How long the node has been running.", Some(Unit::Seconds), up);
        let (forward, back) = self.clock_steps;
        let steps = [("forward", forward), ("back", back)].map(|(way, count)| ([way.to_owned()], count));
        let about = "Jumps of the machine's clock by more than a second, followed or not.";
        page.counters("clock_steps", about, ["direction"], &steps.into());
        let about = "How far the machine's clock is from the store's, by which several nodes go.";
        let skew = self.skew.unwrap_or(0).unsigned_abs() as f64 * MICROS;
        page.measure("clock_skew", about, Unit::Seconds, skew);
    }

    fn content(&self, page: &mut MetricsPage) {
        let total = &self.total;
        let mut tasks = Split::new([
            ("waiting", total.waiting),
            ("leased", total.leased),
            ("dead", total.dead),
            ("history", total.history),
        ]);
        for (topic, _) in &self.topics {
            tasks.add(&topic.name, [topic.waiting, topic.leased, topic.dead, topic.history]);
        }
        let about = "Tasks by topic: waiting for their time or for a consumer, leased, dead letters, in the history.";
        page.gauges("tasks", about, None, ["topic", "state"], &tasks.rows(self.has_other_topics()));
        let mut deliveries =
            Split::new([("ready", total.ready), ("leased", total.leased), ("dead", total.dead_in_queues)]);
        for (QueueView { counts: queue, .. }, _) in &self.queues {
            deliveries.add(&queue.name, [queue.ready, queue.leased, queue.dead]);
        }
        let about = "Deliveries by queue: ready for a consumer, leased, dead letters.";
        page.gauges("deliveries", about, None, ["queue", "state"], &deliveries.rows(self.has_other_queues()));
        self.waits(page);
    }

    fn has_other_topics(&self) -> bool {
        self.total.topics > self.topics.len() as u64
    }

    fn has_other_queues(&self) -> bool {
        self.total.queues > self.queues.len() as u64
    }

    /// How long deliveries wait, by queue: sums and counts, since a histogram of each would be long.
    fn waits(&self, page: &mut MetricsPage) {
        let ages = self.queues.iter().map(|(queue, _)| {
            let age = queue.oldest.map_or(0, |oldest| self.now.as_millis().saturating_sub(oldest.as_millis()) / 1_000);
            ([queue.counts.name.to_string()], age)
        });
        let about = "How long the oldest ready delivery of a queue has been ready; 0 if there is none.";
        page.gauges("queue_oldest_ready", about, Some(Unit::Seconds), ["queue"], &ages.collect());
        let about = "they should have been offered until they were";
        self.wait(page, "offered", about, &self.stats.offered_buckets, |timing| &timing.offered);
        let about = "they were offered until a consumer took them";
        self.wait(page, "taken", about, &self.stats.taken_buckets, |timing| &timing.taken);
    }

    fn wait(&self, page: &mut MetricsPage, what: &str, about: &str, all: &Buckets, of: fn(&Timing) -> &Buckets) {
        let mut table = Split::new([("count", all.count), ("micros", all.sum)]);
        for (queue, timing) in &self.queues {
            table.add(&queue.counts.name, [of(timing).count, of(timing).sum]);
        }
        let rows = table.rows(self.has_other_queues());
        let part = |part: &str| -> Series<1> {
            let part = rows.iter().filter(|([_, what], _)| what == part);
            part.map(|([queue, _], value)| ([queue.clone()], *value)).collect()
        };
        let count = format!("Deliveries that were {what}, by queue.");
        page.counters(&format!("queue_{what}"), &count, ["queue"], &part("count"));
        let sum = format!("Total time from when {about}, by queue.");
        page.sums(&format!("queue_{what}"), &sum, Unit::Seconds, ["queue"], &part("micros"), MICROS);
    }

    fn happenings(&self, page: &mut MetricsPage) {
        let present = &self.stats.present;
        let mut happened = Split::new(by_kind(present));
        let mut dead = Split::new(Reason::ALL.map(|reason| (reason.as_str(), present.dead_of(reason))));
        for (topic, counts) in &self.topics {
            happened.add(&topic.name, by_kind(counts).map(|(_, count)| count));
            dead.add(&topic.name, Reason::ALL.map(|reason| counts.dead_of(reason)));
        }
        let happened = happened.rows(self.has_other_topics());
        let dead = dead.rows(self.has_other_topics());
        page.counters("happenings", "What happened to tasks and deliveries, by topic.", ["topic", "what"], &happened);
        page.counters(
            "dead_letters",
            "Deliveries that became dead letters, by topic and reason.",
            ["topic", "reason"],
            &dead,
        );
    }

    fn work(&self, page: &mut MetricsPage) {
        let stats = &self.stats;
        let late = "How long after their due time deliveries were handed over, no matter which side was slow.";
        page.histogram("lateness", late, Some(Unit::Seconds), &stats.lateness_buckets, MICROS);
        let offered =
            "The server's share of the lateness: from when deliveries should have been offered until they were.";
        page.histogram("offered", offered, Some(Unit::Seconds), &stats.offered_buckets, MICROS);
        let taken =
            "The consumers' share of the lateness: from when deliveries were offered until a consumer took them.";
        page.histogram("taken", taken, Some(Unit::Seconds), &stats.taken_buckets, MICROS);
        let commit = "How long the store took to make a commit durable.";
        page.histogram("commit", commit, Some(Unit::Seconds), &stats.commit_time_buckets, MICROS);
        page.histogram("commit_rows", "How many rows each commit changed.", None, &stats.commit_changes_buckets, 1.0);

        page.counter("failed_commits", "Commits that failed or were refused.", stats.failed_commits);
        let about = "Commits that the store had confirmed and has lost since.";
        page.counter("lost_commits", about, stats.lost_commits);
        let about = "Stored counts that were found wrong and corrected.";
        page.counter("counts_mended", about, stats.counts_mended);
        page.counter("steps", "Shard steps that did something.", stats.steps);
        page.counter("answers", "Answers given.", stats.answers);
        let refusals: Series<1> = stats.refusals.iter().map(|(code, count)| ([(*code).to_owned()], *count)).collect();
        page.counters("refusals", "Requests refused, by problem code.", ["reason"], &refusals);
        page.gauge("waiting_consumers", "Consumers waiting for deliveries.", None, stats.waiting_consumers as u64);
        let inboxes = (0..).zip(&stats.inboxes).map(|(shard, length): (u32, _)| ([shard.to_string()], *length as u64));
        let about = "Requests waiting to be processed, by shard.";
        page.gauges("inbox_requests", about, None, ["shard"], &inboxes.collect());
    }
}

impl Snapshot<'_> {
    fn archive(&self, page: &mut MetricsPage) {
        let Some(archive) = &self.stats.archive else { return };
        page.counter("archived_tasks", "Finished tasks written to the archive.", archive.archived);
        page.counter("archive_failures", "How often archiving failed.", archive.failures);
        page.gauge(
            "archive_failing",
            "1 if the last attempt to archive failed.",
            None,
            u64::from(archive.last_error.is_some()),
        );
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

/// Numbers of topics or queues by name, and what is left for all others.
struct Split<const N: usize> {
    rows: Series<2>,
    left: [(&'static str, u64); N],
}

impl<const N: usize> Split<N> {
    /// With so much in all.
    fn new(total: [(&'static str, u64); N]) -> Split<N> {
        Split { rows: Series::new(), left: total }
    }

    fn add(&mut self, name: &Name, values: [u64; N]) {
        for ((what, left), value) in self.left.iter_mut().zip(values) {
            // The total was counted a moment before.
            *left = left.saturating_sub(value);
            self.rows.insert([name.to_string(), (*what).to_owned()], value);
        }
    }

    /// All rows, with one for the others if there are some.
    fn rows(mut self, has_others: bool) -> Series<2> {
        for (what, left) in self.left.iter().filter(|_| has_others) {
            *self.rows.entry([OTHER.to_owned(), (*what).to_owned()]).or_default() += left;
        }
        self.rows
    }
}
