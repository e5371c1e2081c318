//! All numbers at one instant, and how they are written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use punctual_almanac::Usage;
use punctual_beanstalk::answer::Word;
use punctual_beanstalk::counters::Counters;
use punctual_beanstalk::kind::Kind;
use punctual_core::{Counts, Name, Reason, Timestamp};
use punctual_node::{Buckets, Happened, Stats};

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

/// Numbers by the values of some labels, those that are not shown by name summed up.
type Rows<const N: usize> = BTreeMap<[String; N], u64>;

const MICROS: f64 = 1e-6;

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let mut page = Page(encoder);
        self.node(&mut page)?;
        self.content(&mut page)?;
        self.work(&mut page)?;
        self.store(&mut page)?;
        self.archive(&mut page)?;
        self.beanstalk(&mut page)
    }
}

impl Snapshot {
    fn node(&self, page: &mut Page<'_>) -> fmt::Result {
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        page.0.encode_descriptor("build", "What is running.", None, MetricType::Info)?.encode_info(&version)?;
        page.gauge("ready", "1 if the node answers, as /readyz says.", None, u64::from(self.is_ready))?;
        let up = self.now.as_millis().saturating_sub(self.stats.started_at.as_millis()) / 1_000;
        page.gauge("uptime", "How long the node has been running.", Some(&Unit::Seconds), up)
    }

    fn content(&self, page: &mut Page<'_>) -> fmt::Result {
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
        page.gauges("tasks", about, ["topic", "state"], &tasks)?;
        let mut deliveries = Rows::new();
        for queue in &self.counts.queues {
            let states = [("ready", queue.ready), ("leased", queue.leased), ("dead", queue.dead)];
            add(&mut deliveries, &self.queues, &queue.name, &states);
        }
        let about = "Deliveries by queue: ready for a consumer, leased, dead letters.";
        page.gauges("deliveries", about, ["queue", "state"], &deliveries)
    }

    fn work(&self, page: &mut Page<'_>) -> fmt::Result {
        let stats = &self.stats;
        let (mut happened, mut dead) = (Rows::new(), Rows::new());
        for (topic, counts) in &stats.topics {
            add(&mut happened, &self.topics, topic, &happenings(counts));
            let reasons = Reason::ALL.map(|reason| (reason.as_str(), counts.dead_of(reason)));
            add(&mut dead, &self.topics, topic, &reasons);
        }
        page.counters("happenings", "What happened to tasks and deliveries, by topic.", ["topic", "what"], &happened)?;
        page.counters(
            "dead_letters",
            "Deliveries that were given up, by topic and reason.",
            ["topic", "reason"],
            &dead,
        )?;

        let late = "How late deliveries were handed over after they were due.";
        page.histogram("lateness", late, Some(&Unit::Seconds), &stats.lateness_buckets, MICROS)?;
        let commit = "How long the store took to make a commit durable.";
        page.histogram("commit", commit, Some(&Unit::Seconds), &stats.commit_time_buckets, MICROS)?;
        page.histogram("commit_rows", "How many rows each commit changed.", None, &stats.commit_changes_buckets, 1.0)?;

        page.counter("failed_commits", "Commits that failed or were refused.", stats.failed_commits)?;
        page.counter("steps", "Steps of the shards that had an outcome.", stats.steps)?;
        page.counter("answers", "Answers that were given.", stats.answers)?;
        let refusals: Rows<1> = stats.refusals.iter().map(|(code, count)| ([(*code).to_owned()], *count)).collect();
        page.counters(
            "refusals",
            "Requests that were not carried out, by the code of the problem.",
            ["reason"],
            &refusals,
        )?;
        page.gauge("waiting_consumers", "Consumers that wait for deliveries.", None, stats.waiting_consumers as u64)?;
        let inboxes = (0..).zip(&stats.inboxes).map(|(shard, length): (u32, _)| ([shard.to_string()], *length as u64));
        page.gauges("inbox_requests", "Requests that wait to be looked at, by shard.", ["shard"], &inboxes.collect())
    }

    fn store(&self, page: &mut Page<'_>) -> fmt::Result {
        let usage = &self.usage;
        let parts = |parts: &[(&str, u64)]| parts.iter().map(|(part, bytes)| ([(*part).to_owned()], *bytes)).collect();
        let memory: Rows<1> = parts(&[
            ("recent", usage.recent_bytes as u64),
            ("keys", usage.key_bytes as u64),
            ("blocks", usage.block_bytes as u64),
        ]);
        page.gauges("store_memory_bytes", "Memory of the store, by what it is for.", ["part"], &memory)?;
        let disk: Rows<1> = parts(&[("runs", usage.run_bytes), ("journal", usage.journal_bytes)]);
        page.gauges("store_disk_bytes", "Disk space of the store, by what it is for.", ["part"], &disk)?;
        page.gauge("store_runs", "Runs of the store.", None, usage.runs as u64)?;
        page.gauge("store_run_rows", "Living rows in runs of the store.", None, usage.rows_in_runs)?;
        page.gauge(
            "store_free_segments",
            "Segments of the journal that are ready to be written over.",
            None,
            usage.free_segments as u64,
        )
    }
}

impl Snapshot {
    fn archive(&self, page: &mut Page<'_>) -> fmt::Result {
        let Some(archive) = &self.stats.archive else { return Ok(()) };
        page.counter("archived_tasks", "Finished tasks that the archive has taken.", archive.archived)?;
        page.counter("archive_failures", "How often archiving failed.", archive.failures)?;
        page.gauge(
            "archive_failing",
            "1 if archiving failed the last time.",
            None,
            u64::from(archive.last_error.is_some()),
        )
    }
}

impl Snapshot {
    fn beanstalk(&self, page: &mut Page<'_>) -> fmt::Result {
        let Some(counters) = &self.beanstalk else { return Ok(()) };
        let connections = counters.connections();
        let states = [("open", connections.current), ("waiting", connections.waiting)];
        let connections = states.map(|(state, count)| ([state.to_owned()], count));
        let about = "Connections to the beanstalk door: all that are open, and those of them that wait for a job.";
        page.gauges("beanstalk_connections", about, ["state"], &connections.into())?;
        let counts = counters.commands();
        let kinds = Kind::SHOWN.into_iter().chain(Kind::HIDDEN);
        let commands = kinds.map(|kind| ([kind.name().to_owned()], counts[kind as usize])).collect();
        page.counters("beanstalk_commands", "Commands at the beanstalk door.", ["command"], &commands)?;
        let errors = Word::ERRORS.map(|word| ([word.line().trim_end().to_owned()], counters.answers(word)));
        let about = "Answers of the beanstalk door that say what went wrong.";
        page.counters("beanstalk_errors", about, ["answer"], &errors.into())
    }
}

fn happenings(counts: &Happened) -> [(&'static str, u64); 12] {
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

/// Writes families of metrics.
struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn gauge(&mut self, name: &str, about: &str, unit: Option<&Unit>, value: u64) -> fmt::Result {
        self.0.encode_descriptor(name, about, unit, MetricType::Gauge)?.encode_gauge(&value)
    }

    fn counter(&mut self, name: &str, about: &str, value: u64) -> fmt::Result {
        count(&mut self.0.encode_descriptor(name, about, None, MetricType::Counter)?, value)
    }

    fn gauges<const N: usize>(&mut self, name: &str, about: &str, labels: [&str; N], rows: &Rows<N>) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, about, None, MetricType::Gauge)?;
        rows.iter().try_for_each(|(values, value)| family.encode_family(&Labels(labels, values))?.encode_gauge(value))
    }

    fn counters<const N: usize>(&mut self, name: &str, about: &str, labels: [&str; N], rows: &Rows<N>) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, about, None, MetricType::Counter)?;
        rows.iter().try_for_each(|(values, value)| count(&mut family.encode_family(&Labels(labels, values))?, *value))
    }

    fn histogram(
        &mut self,
        name: &str,
        about: &str,
        unit: Option<&Unit>,
        buckets: &Buckets,
        scale: f64,
    ) -> fmt::Result {
        let mut before = 0;
        let mut single: Vec<(f64, u64)> = Vec::new();
        for (bound, cumulative) in buckets.bounds.iter().zip(&buckets.counts) {
            single.push((round(*bound as f64 * scale), cumulative - before));
            before = *cumulative;
        }
        single.push((f64::INFINITY, buckets.count - before));
        let mut metric = self.0.encode_descriptor(name, about, unit, MetricType::Histogram)?;
        metric.encode_histogram::<NoLabelSet>(buckets.sum as f64 * scale, buckets.count, &single, None)
    }
}

/// Six digits after the point: the product of a bound and a millionth is not quite what one would write.
fn round(bound: f64) -> f64 {
    (bound * 1e6).round() / 1e6
}

fn count(metric: &mut MetricEncoder<'_>, value: u64) -> fmt::Result {
    metric.encode_counter::<NoLabelSet, u64, f64>(&value, None)
}

/// Labels with their values.
struct Labels<'a, const N: usize>([&'a str; N], &'a [String; N]);

impl<const N: usize> EncodeLabelSet for Labels<'_, N> {
    fn encode(&self, encoder: &mut prometheus_client::encoding::LabelSetEncoder<'_>) -> fmt::Result {
        let labels: [(&str, &str); N] = std::array::from_fn(|place| (self.0[place], self.1[place].as_str()));
        labels.encode(encoder)
    }
}
