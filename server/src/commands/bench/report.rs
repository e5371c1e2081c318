//! What a bench found, as a table or as JSON.

use hdrhistogram::Histogram;
use punctual_wire::Distribution;
use serde::Serialize;

use super::super::failure::Failure;
use super::super::moment::micros;
use super::super::output::{Columns, Output, counted, grouped, note};
use super::load::Measured;

/// What a bench found; times are microseconds.
#[derive(Debug, Serialize)]
pub struct Report {
    done: u64,
    refused: u64,
    early: u64,
    seconds: f64,
    scheduled_per_second: f64,
    done_per_second: f64,
    schedule_micros: Distribution,
    lateness_micros: Distribution,
    acknowledge_micros: Distribution,
    clock_skew_micros: i64,
}

impl Report {
    /// From what was measured.
    pub fn new(measured: &Measured, clock_skew_micros: i64) -> Report {
        let per_second = |number: u64, seconds: f64| if seconds > 0.0 { number as f64 / seconds } else { 0.0 };
        let seconds = measured.all.as_secs_f64();
        let scheduled = measured.lateness.len();
        Report {
            done: measured.done,
            refused: measured.refused,
            early: measured.early,
            seconds,
            scheduled_per_second: per_second(scheduled, measured.scheduling.as_secs_f64()),
            done_per_second: per_second(measured.done, seconds),
            schedule_micros: distribution(&measured.schedule),
            lateness_micros: distribution(&measured.lateness),
            acknowledge_micros: distribution(&measured.acknowledge),
            clock_skew_micros,
        }
    }

    /// For people.
    pub fn print(&self, output: &mut Output) -> Result<(), Failure> {
        let mut columns = Columns::new(&["", "#count", "#p50", "#p90", "#p99", "#p99.9", "#max"]);
        let rows = [
            ("schedule", &self.schedule_micros),
            ("lateness", &self.lateness_micros),
            ("acknowledge", &self.acknowledge_micros),
        ];
        for (name, spread) in rows {
            let times = [spread.p50, spread.p90, spread.p99, spread.p999, spread.max].map(micros);
            columns.row([name.into(), grouped(spread.count)].into_iter().chain(times).collect());
        }
        output.table(&columns)?;
        output.line(format_args!(
            "\n{} in {:.1} s: {} scheduled a second, {} done a second",
            counted(self.done, "task"),
            self.seconds,
            grouped(self.scheduled_per_second as u64),
            grouped(self.done_per_second as u64),
        ))?;
        if self.refused > 0 {
            note(format_args!("{} refused", counted(self.refused, "task")));
        }
        if self.early > 0 {
            note(format_args!("{} came early: check the clocks of both machines", counted(self.early, "delivery")));
        }
        if self.clock_skew_micros != 0 {
            let skew = self.clock_skew_micros / 1_000;
            note(format_args!(
                "the server's clock is {skew} ms ahead of this machine's; lateness is corrected for that"
            ));
        }
        Ok(())
    }
}

fn distribution(histogram: &Histogram<u64>) -> Distribution {
    Distribution {
        count: histogram.len(),
        mean: histogram.mean() as u64,
        p50: histogram.value_at_quantile(0.5),
        p90: histogram.value_at_quantile(0.9),
        p99: histogram.value_at_quantile(0.99),
        p999: histogram.value_at_quantile(0.999),
        max: histogram.max(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_tells_where_most_values_are() {
        let mut histogram = Histogram::new(3).unwrap();
        for value in 1..=1_000 {
            histogram.record(value).unwrap();
        }
        let spread = distribution(&histogram);
        assert_eq!((spread.count, spread.p50, spread.p90, spread.max), (1_000, 500, 900, 1_000));
    }

    #[test]
    fn an_empty_measurement_is_all_zero() {
        let histogram = Histogram::<u64>::new(3).unwrap();
        assert_eq!(distribution(&histogram), Distribution::default());
    }
}
