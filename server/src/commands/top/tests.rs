//! The screen, drawn onto paper.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use punctual_wire::{Forecast, ForecastSlot, QueueInfo, QueueSettings, Stats, Time, Timing, Unit};

use super::gauge::{Rates, Sample, Sort, View};
use super::screen::bytes;
use super::{FRAME, frame};

fn stats(now: u64, scheduled: u64, answers: u64) -> Stats {
    let json = format!(
        r#"{{"version":"0.1.0","now":{now},"started_at":1000,
        "lateness_micros":{{"count":9,"mean":1,"p50":140,"p90":1,"p99":1200,"p999":1,"max":14200}},
        "commit_micros":{{"count":9,"mean":1,"p50":870,"p90":1,"p99":3100,"p999":1,"max":1}},
        "commit_changes":{{"count":9,"mean":1,"p50":1,"p90":1,"p99":1,"p999":1,"max":1}},
        "failed_commits":0,"answers":{answers},"waiting_consumers":12,"waiting_requests":0,
        "happened":{{"scheduled":{scheduled},"rescheduled":0,"fired":0,"leased":0,"released":0,"failed":0,"done":0,
        "cancelled":0,"dead":0,"replayed":0}},
        "total":{{"topics":1,"queues":2,"waiting":0,"ready":0,"leased":0,"dead":0,"history":0}},"topics":{{}},"refusals":{{}},
        "store":{{"memory_bytes":12300000,"disk_bytes":1200000000}}}}"#
    );
    serde_json::from_str(&json).unwrap()
}

fn queue(name: &str, ready: u64, dead: u64) -> QueueInfo {
    QueueInfo {
        name: name.into(),
        version: String::new(),
        settings: QueueSettings::default(),
        ready,
        leased: 3,
        dead,
        oldest_ready: Some(Time(9_000)),
        offered_micros: Timing::default(),
        pause: None,
        taken_micros: Timing::default(),
    }
}

fn sample(stats: Stats, queues: Vec<QueueInfo>) -> Sample {
    let slots = (0..120).map(|minute| ForecastSlot { from: Time(minute * 60_000), due: minute }).collect();
    Sample {
        stats,
        queues,
        forecast: Forecast { unit: Unit::Minute, slots, counted_until: None, topics: Vec::new(), topics_until: None },
    }
}

fn view(queues: Vec<QueueInfo>) -> View {
    let mut view = View::new("http://127.0.0.1:7400");
    view.show(sample(stats(10_000, 100, 1_000), queues.clone()));
    view.show(sample(stats(12_000, 2_600, 9_000), queues));
    view
}

#[test]
fn a_frame_fits_an_ordinary_terminal_and_shows_the_numbers() {
    let text = frame(&view(vec![queue("orders", 7, 0), queue("billing", 1_234_567, 4)]), FRAME);
    assert_eq!(text.lines().count(), 24);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for part in [
        "punctual 0.1.0",
        "http://127.0.0.1:7400",
        "up 11s",
        "q quits",
        "1,250",
        "140 µs",
        "1.20 ms",
        "waiting consumers",
        "4,000",
        "12.3 MB",
        "1.2 GB",
        "due in the next 78 minutes: 3,003",
        "most in a minute: 77",
        "2 queues, by ready",
        "1,234,567",
        "OLDEST",
        "3s",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
}

#[test]
fn the_queue_with_the_most_comes_first() {
    let mut view = view(vec![queue("a", 1, 9), queue("b", 5, 0), queue("c", 3, 1)]);
    let names = |view: &View| view.queues().iter().map(|queue| queue.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&view), ["b", "c", "a"]);
    view.sort = Sort::Dead;
    assert_eq!(names(&view), ["a", "c", "b"]);
    view.sort = view.sort.next();
    assert_eq!(names(&view), ["a", "b", "c"]);
}

#[test]
fn queues_without_room_are_counted() {
    let queues = (0..20).map(|number| queue(&format!("queue-{number}"), number, 0)).collect();
    let text = frame(&view(queues), FRAME);
    assert!(text.contains("queue-19") && !text.contains("queue-1 "), "{text}");
    assert!(text.contains("14 more"), "{text}");
}

#[test]
fn a_small_terminal_is_no_reason_to_fall() {
    for size in [(1, 1), (10, 3), (40, 12), (200, 60)] {
        frame(&view(vec![queue("a", 1, 1)]), size);
    }
    frame(&View::new("nowhere"), FRAME);
}

#[test]
fn a_server_that_started_anew_has_no_rates_yet() {
    let mut view = View::new("here");
    view.show(sample(stats(10_000, 500, 10), Vec::new()));
    let mut restarted = stats(12_000, 3, 1);
    restarted.started_at = Time(11_000);
    view.show(sample(restarted, Vec::new()));
    assert_eq!(view.rates, Rates::default());
}

#[test]
fn trouble_is_told_until_the_server_answers_again() {
    let mut view = view(Vec::new());
    view.trouble = Some("it cannot be reached".into());
    assert!(frame(&view, FRAME).contains("it cannot be rea"));
    view.show(sample(stats(13_000, 0, 0), Vec::new()));
    assert!(!frame(&view, FRAME).contains("it cannot be rea"));
}

#[test]
fn bytes_are_told_in_a_fitting_unit() {
    assert_eq!(bytes(0), "0 B");
    assert_eq!(bytes(999), "999 B");
    assert_eq!(bytes(12_300_000), "12.3 MB");
    assert_eq!(bytes(999_990), "1.0 MB");
    assert_eq!(bytes(u64::MAX), "18446.7 PB");
}
