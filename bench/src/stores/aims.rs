//! What was aimed at, beside what was measured.

use super::contestants::{Contestant, Script};
use super::engine::Kind;
use super::findings::Findings;
use super::stage::Line;
use crate::table::{Table, decimals, grouped};

pub fn print(findings: &Findings) {
    let mut table = Table::new(&["aim", "measured", "met"]);
    let mut aim = |text: &str, outcome: Option<(String, bool)>| {
        // What did not take part has no aim.
        if let Some((measured, is_met)) = outcome {
            table.row(vec![text.to_owned(), measured, if is_met { "yes" } else { "no" }.to_owned()]);
        }
    };
    let own = |kind, line| findings.of(kind, Contestant::Punctual, line);
    let ratio = |own: Option<f64>, other: Option<f64>, least: f64| {
        let ratio = own? / other?;
        Some((format!("{ratio:.2}"), ratio >= least))
    };
    let raw = |line| findings.of(Kind::Postgres, Contestant::Raw, line).map(|measured| measured.a_second);
    let rate = |kind, line| own(kind, line).map(|measured| measured.a_second);
    aim(
        "PostgreSQL: schedules in batches, at least 0.6 of raw inserts",
        ratio(rate(Kind::Postgres, Line::Batches), raw(Line::Batches), 0.6),
    );
    aim(
        "PostgreSQL: schedules one at a time, at least 3 times raw inserts",
        ratio(rate(Kind::Postgres, Line::InFlight), raw(Line::InFlight), 3.0),
    );
    aim(
        "PostgreSQL: whole lives, at least twice the best peer",
        findings.best_peer(Kind::Postgres).and_then(|(peer, best)| {
            let (ratio, is_met) = ratio(rate(Kind::Postgres, Line::Lives), Some(best), 2.0)?;
            Some((format!("{ratio} ({} {})", peer.heading(), grouped(best as u64)), is_met))
        }),
    );
    let logged =
        own(Kind::Postgres, Line::Lives).map(|lives| (grouped(lives.log_bytes as u64), lives.log_bytes <= 2_300.0));
    aim("PostgreSQL: at most 2,300 bytes of log for a life", logged);
    for (kind, most) in
        [(Kind::Postgres, 75.0), (Kind::Maria, 90.0), (Kind::RedisAlways, 40.0), (Kind::RedisEverySecond, 40.0)]
    {
        let outcome = own(kind, Line::Lives).map(|lives| (decimals(lives.cpu_us, 1), lives.cpu_us <= most));
        aim(&format!("{}: at most {most} µs of its CPU for a life", kind.heading()), outcome);
    }
    for kind in [Kind::RedisAlways, Kind::RedisEverySecond] {
        let peer = findings.of(kind, Contestant::Script(Script::BullMq), Line::Lives).map(|lives| lives.a_second);
        aim(&format!("{}: more lives than BullMQ", kind.heading()), ratio(rate(kind, Line::Lives), peer, 1.0));
    }
    for late in &findings.own.late {
        let [p50, p99, ..] = late.shares_ms;
        let is_met = p50 < 3.0 && p99 < 20.0;
        let text = format!("{}: late at half load p50 under 3 ms, p99 under 20 ms", late.kind.heading());
        aim(&text, Some((format!("{p50:.2} and {p99:.2} ms"), is_met)));
    }
    let started = findings.own.started.map(|(pending, took)| {
        (format!("{} ms with {}", took.as_millis(), grouped(pending)), took.as_millis() < 1_000)
    });
    aim("PostgreSQL: there within 1 s with 1,000,000 pending", started);
    aim("PostgreSQL: tables do not grow from the first quarter of the lives to the last", growth(findings));
    table.print();
}

/// The tables may be somewhat larger or smaller by when they were looked at: what they grow by has to stay.
fn growth(findings: &Findings) -> Option<(String, bool)> {
    let total = |bytes: &[u64]| bytes.iter().sum::<u64>() as f64 / 1e6;
    let grown = &findings.own.grown;
    let (first, last) = (total(&grown.first()?.bytes), total(&grown.last()?.bytes));
    Some((format!("{first:.0} MB, then {last:.0} MB"), last < first * 1.5))
}
