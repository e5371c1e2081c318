//! How numbers are written for Prometheus: OpenMetrics 1.0, or the text format 0.0.4 that came before it.
//!
//! The two differ in little: what a counter is called in its head, whether a unit and the end are told, and that
//! the older one knows no type for mere facts.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use punctual_http::Exposition;
use punctual_node::Buckets;

/// What begins every metric's name.
const PREFIX: &str = "punctual_";

/// Numbers by the values of some labels.
pub type Series<const N: usize> = BTreeMap<[String; N], u64>;

/// What the numbers of a family are counted in; its name ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    Bytes,
}

impl Unit {
    fn word(self) -> &'static str {
        match self {
            Unit::Seconds => "seconds",
            Unit::Bytes => "bytes",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gauge,
    Counter,
    Histogram,
    Info,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
            Kind::Info => "info",
        }
    }

    /// What the names of its numbers end with, if all of them end alike.
    fn ending(self) -> &'static str {
        match self {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram => "",
        }
    }
}

/// Families of metrics, written one after the other.
pub struct MetricsPage {
    text: String,
    format: Exposition,
}

impl MetricsPage {
    pub fn new(format: Exposition) -> MetricsPage {
        MetricsPage { text: String::new(), format }
    }

    /// All that was written.
    pub fn into_text(mut self) -> String {
        if self.format == Exposition::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    /// A fact: its labels are what it says.
    pub fn info(&mut self, name: &str, about: &str, labels: &[(&str, &str)]) {
        let name = self.head(name, about, None, Kind::Info);
        self.line(&format!("{name}_info"), labels, 1);
    }

    pub fn gauge(&mut self, name: &str, about: &str, unit: Option<Unit>, value: u64) {
        let name = self.head(name, about, unit, Kind::Gauge);
        self.line(&name, &[], value);
    }

    /// A gauge of something that is measured in parts of its unit.
    pub fn measure(&mut self, name: &str, about: &str, unit: Unit, value: f64) {
        let name = self.head(name, about, Some(unit), Kind::Gauge);
        self.line(&name, &[], value);
    }

    pub fn counter(&mut self, name: &str, about: &str, value: u64) {
        let name = self.head(name, about, None, Kind::Counter);
        self.line(&format!("{name}_total"), &[], value);
    }

    pub fn gauges<const N: usize>(
        &mut self,
        name: &str,
        about: &str,
        unit: Option<Unit>,
        labels: [&str; N],
        rows: &Series<N>,
    ) {
        let name = self.head(name, about, unit, Kind::Gauge);
        self.rows(&name, labels, rows);
    }

    pub fn counters<const N: usize>(&mut self, name: &str, about: &str, labels: [&str; N], rows: &Series<N>) {
        let name = self.head(name, about, None, Kind::Counter);
        self.rows(&format!("{name}_total"), labels, rows);
    }

    /// Sums by label, each times `scale`.
    pub fn sums<const N: usize>(
        &mut self,
        name: &str,
        about: &str,
        unit: Unit,
        labels: [&str; N],
        rows: &Series<N>,
        scale: f64,
    ) {
        let name = self.head(name, about, Some(unit), Kind::Counter);
        self.scaled_rows(&format!("{name}_total"), labels, rows, scale);
    }

    /// Gauges by label, each times `scale`.
    pub fn measures<const N: usize>(
        &mut self,
        name: &str,
        about: &str,
        unit: Unit,
        labels: [&str; N],
        rows: &Series<N>,
        scale: f64,
    ) {
        let name = self.head(name, about, Some(unit), Kind::Gauge);
        self.scaled_rows(&name, labels, rows, scale);
    }

    fn scaled_rows<const N: usize>(&mut self, name: &str, labels: [&str; N], rows: &Series<N>, scale: f64) {
        for (values, value) in rows {
            let labels: Vec<(&str, &str)> = labels.iter().copied().zip(values.iter().map(String::as_str)).collect();
            self.line(name, &labels, *value as f64 * scale);
        }
    }

    /// Values that were counted by their size, each times `scale`.
    pub fn histogram(&mut self, name: &str, about: &str, unit: Option<Unit>, buckets: &Buckets, scale: f64) {
        let name = self.head(name, about, unit, Kind::Histogram);
        let bucket = format!("{name}_bucket");
        for (bound, count) in buckets.bounds.iter().zip(&buckets.counts) {
            // Six digits after the point: the product of a bound and a millionth is not quite what one would write.
            let bound = (*bound as f64 * scale * 1e6).round() / 1e6;
            // With a point, so that both formats write the same bound in the same way.
            self.line(&bucket, &[("le", &format!("{bound:?}"))], count);
        }
        self.line(&bucket, &[("le", "+Inf")], buckets.count);
        self.line(&format!("{name}_sum"), &[], buckets.sum as f64 * scale);
        self.line(&format!("{name}_count"), &[], buckets.count);
    }

    /// Writes what a family is about and gives its name.
    fn head(&mut self, name: &str, about: &str, unit: Option<Unit>, kind: Kind) -> String {
        let unit = unit.map(Unit::word);
        let mut name = format!("{PREFIX}{name}");
        if let Some(unit) = unit {
            name = format!("{name}_{unit}");
        }
        let (called, word) = match (self.format, kind) {
            (Exposition::OpenMetrics, kind) => (name.clone(), kind.word()),
            (Exposition::Text, Kind::Info) => (format!("{name}_info"), Kind::Gauge.word()),
            (Exposition::Text, kind) => (format!("{name}{}", kind.ending()), kind.word()),
        };
        self.add(format_args!("# HELP {called} {about}\n# TYPE {called} {word}\n"));
        if let (Exposition::OpenMetrics, Some(unit)) = (self.format, unit) {
            self.add(format_args!("# UNIT {called} {unit}\n"));
        }
        name
    }

    fn rows<const N: usize>(&mut self, name: &str, labels: [&str; N], rows: &Series<N>) {
        for (values, value) in rows {
            let labels: [(&str, &str); N] = std::array::from_fn(|place| (labels[place], values[place].as_str()));
            self.line(name, &labels, value);
        }
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(name);
        for (place, (label, value)) in labels.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            self.add(format_args!("{}{label}=\"{value}\"", if place == 0 { '{' } else { ',' }));
        }
        self.add(format_args!("{} {value}\n", if labels.is_empty() { "" } else { "}" }));
    }

    fn add(&mut self, text: std::fmt::Arguments<'_>) {
        match self.text.write_fmt(text) {
            Ok(()) => {}
            Err(_) => unreachable!("writing to a text does not fail"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(format: Exposition) -> String {
        let mut page = MetricsPage::new(format);
        page.info("build", "The version that is running.", &[("version", "1.0")]);
        page.gauge("uptime", "How long.", Some(Unit::Seconds), 7);
        let rows = Series::from([(["a\"b\\c\nd".to_owned(), "x".to_owned()], 3)]);
        page.counters("happenings", "What happened.", ["topic", "what"], &rows);
        let buckets = Buckets { bounds: &[500, 1_000_000], counts: vec![1, 2], count: 3, sum: 2_500_000 };
        page.histogram("lateness", "How late.", Some(Unit::Seconds), &buckets, 1e-6);
        page.into_text()
    }

    #[test]
    fn open_metrics_name_the_family_without_the_ending_of_its_numbers() {
        let expected = r#"# HELP punctual_build The version that is running.
# TYPE punctual_build info
punctual_build_info{version="1.0"} 1
# HELP punctual_uptime_seconds How long.
# TYPE punctual_uptime_seconds gauge
# UNIT punctual_uptime_seconds seconds
punctual_uptime_seconds 7
# HELP punctual_happenings What happened.
# TYPE punctual_happenings counter
punctual_happenings_total{topic="a\"b\\c\nd",what="x"} 3
# HELP punctual_lateness_seconds How late.
# TYPE punctual_lateness_seconds histogram
# UNIT punctual_lateness_seconds seconds
punctual_lateness_seconds_bucket{le="0.0005"} 1
punctual_lateness_seconds_bucket{le="1.0"} 2
punctual_lateness_seconds_bucket{le="+Inf"} 3
punctual_lateness_seconds_sum 2.5
punctual_lateness_seconds_count 3
# EOF
"#;
        assert_eq!(page(Exposition::OpenMetrics), expected);
    }

    #[test]
    fn the_text_format_names_the_family_as_its_numbers() {
        let text = page(Exposition::Text);
        let expected = r#"# HELP punctual_build_info The version that is running.
# TYPE punctual_build_info gauge
punctual_build_info{version="1.0"} 1
# HELP punctual_uptime_seconds How long.
# TYPE punctual_uptime_seconds gauge
punctual_uptime_seconds 7
# HELP punctual_happenings_total What happened.
# TYPE punctual_happenings_total counter
punctual_happenings_total{topic="a\"b\\c\nd",what="x"} 3
"#;
        assert!(text.starts_with(expected), "{text}");
        assert!(text.ends_with("punctual_lateness_seconds_count 3\n"), "{text}");
    }
}
