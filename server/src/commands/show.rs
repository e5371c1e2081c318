//! Tasks as people read them: a row of a table, or a card with all that is known.

use punctual_wire::{Attempt, DeliveryInfo, Ending, Past, PauseNote, Retry, Span, Standing, TaskInfo, Time, Undone};

use super::body::bytes_of;
use super::moment::{exact, hint, rough};
use super::output::{Columns, counted};
use super::plain::one_line;

/// How much of a body fits into a row.
const PREVIEW: usize = 60;

/// Where something stands, in a few words.
pub fn standing(standing: &Standing, now: Time) -> String {
    match standing {
        Standing::Scheduled { at } if at.0 > now.0 => format!("scheduled, {}", hint(*at, now)),
        Standing::Scheduled { .. } => "scheduled, now".into(),
        Standing::Ready { since } => format!("ready for {}", rough(now.0.saturating_sub(since.0))),
        Standing::Leased { holder, until, .. } if until.0 > now.0 => {
            format!("with {holder}, {} left", rough(until.0 - now.0))
        }
        Standing::Leased { holder, .. } => format!("with {holder}, its time is up"),
        Standing::Spread { open, finished } => {
            format!("broadcast, {} of {} open", open.len(), open.len() + finished.len())
        }
        Standing::Finished { ending: how, at } => format!("{} {}", ending(*how), hint(*at, now)),
        Standing::Dead { reason, at, .. } => format!("dead {}: {reason}", hint(*at, now)),
    }
}

/// The same as a sentence with exact times, for somebody who came too late.
pub fn sentence(standing: &Standing, now: Time) -> String {
    match standing {
        Standing::Scheduled { at } => format!("it is scheduled for {}", exact(*at, now)),
        Standing::Ready { since } => format!("it has been waiting for a consumer since {}", exact(*since, now)),
        Standing::Leased { queue, holder, until } => {
            format!("it is with {holder} of queue {queue} until {}", exact(*until, now))
        }
        Standing::Spread { open, finished } => {
            let finished = if finished.is_empty() { "none".into() } else { finished.join(", ") };
            format!("it was broadcast, open in {}, finished in {finished}", open.join(", "))
        }
        Standing::Finished { ending: how, at } => format!("it was {} at {}", ending(*how), exact(*at, now)),
        Standing::Dead { reason, at, note } => {
            let note = note.as_ref().map_or(String::new(), |note| format!(": {note}"));
            format!("it has been a dead letter ({reason}{note}) since {}", exact(*at, now))
        }
    }
}

fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::Done => "done",
        Ending::Cancelled => "cancelled",
        Ending::Forwarded => "forwarded",
        Ending::Purged => "purged",
    }
}

/// An empty table of tasks.
pub fn task_table(bodies: bool) -> Columns {
    let mut names = vec!["TOPIC", "ID", "DUE", "STATE", "QUEUE", "#PRIORITY", "#ATTEMPTS", "KEY"];
    if bodies {
        names.push("BODY");
    }
    Columns::new(&names)
}

/// A task as a row of it.
pub fn task_row(task: &TaskInfo, bodies: bool, now: Time) -> Vec<String> {
    let mut row = vec![
        task.topic.clone(),
        task.id.clone(),
        task.due.to_string(),
        standing(&task.standing, now),
        task.queue.clone().unwrap_or("-".into()),
        task.priority.to_string(),
        task.attempts.to_string(),
        task.key.clone().unwrap_or("-".into()),
    ];
    if bodies {
        row.push(preview(task));
    }
    row
}

/// The beginning of a body, on one line.
fn preview(task: &TaskInfo) -> String {
    let bytes = bytes_of(task.body.as_deref(), task.text.as_deref(), task.base64.as_ref());
    match std::str::from_utf8(&bytes) {
        Ok(text) => {
            let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(PREVIEW).collect();
            match text.chars().nth(PREVIEW) {
                None => line,
                Some(_) => line.chars().take(PREVIEW - 1).chain(['…']).collect(),
            }
        }
        Err(_) => counted(bytes.len() as u64, "byte"),
    }
}

/// All that is known of a task, one fact on a line.
pub fn task_card(task: &TaskInfo, now: Time) -> String {
    let mut card = Card::default();
    card.fact("task", format!("{} {}", task.topic, task.id));
    card.maybe("number", task.number.map(|number| number.to_string()).as_deref());
    card.fact("standing", standing(&task.standing, now));
    if let Standing::Dead { note: Some(note), .. } = &task.standing {
        card.fact("note", note);
    }
    card.fact("due", exact(task.due, now));
    card.fact("scheduled", exact(task.scheduled_at, now));
    card.maybe("queue", task.queue.as_deref());
    card.maybe("key", task.key.as_deref());
    card.maybe("routing key", task.routing_key.as_deref());
    card.fact("priority", task.priority);
    card.fact("attempts", attempts(task.attempts, task.failures));
    card.maybe("past", past(&task.past).as_deref());
    for attempt in &task.log {
        card.fact("attempt", attempt_line(attempt, now));
    }
    card.maybe("time to live", task.ttl.map(|ttl: Span| ttl.to_string()).as_deref());
    card.maybe("retry", task.retry.as_ref().map(retry).as_deref());
    card.maybe("lease", task.lease.map(|lease| lease.to_string()).as_deref());
    card.maybe("longest lease", task.max_lease.map(|lease| lease.to_string()).as_deref());
    for (name, value) in &task.headers {
        card.fact("header", format!("{name}: {value}"));
    }
    for delivery in &task.deliveries {
        card.fact("delivery", delivery_line(delivery, now));
        for attempt in &delivery.log {
            card.fact("", attempt_line(attempt, now));
        }
    }
    match (&task.body, &task.text, &task.base64) {
        (Some(json), ..) => card.text("body (JSON)", json.get()),
        (_, Some(text), _) => card.text("body (text)", text),
        (.., Some(bytes)) => {
            card.fact("body (bytes)", format!("{}, use --json to see them", counted(bytes.0.len() as u64, "byte")))
        }
        (None, None, None) => card.fact("body", "none"),
    }
    card.0
}

/// An attempt that came to nothing: `2 lapsed 3s ago, with w1`.
fn attempt_line(attempt: &Attempt, now: Time) -> String {
    let how = match attempt.undone {
        Undone::Failed => "failed",
        Undone::Lapsed => "lapsed",
        Undone::Released => "released",
        Undone::Rejected => "rejected",
        Undone::Revoked => "revoked",
        Undone::Abandoned => "abandoned",
    };
    let note = attempt.note.as_ref().map_or(String::new(), |note| format!(": {note}"));
    format!("{} {how} {}, with {}{note}", attempt.attempt, hint(attempt.at, now), attempt.consumer)
}

fn attempts(attempts: u32, failures: u32) -> String {
    if failures == 0 { attempts.to_string() } else { format!("{attempts}, {failures} of them failed") }
}

/// What happened besides the attempts that count now, if anything did.
fn past(past: &Past) -> Option<String> {
    let mut told = Vec::new();
    for (what, times) in [("released", past.releases), ("rejected", past.rejections), ("replayed", past.replays)] {
        if times > 0 {
            told.push(format!("{what} {times}×"));
        }
    }
    if past.attempts > 0 {
        told.push(format!("earlier attempts {}", attempts(past.attempts, past.failures)));
    }
    (!told.is_empty()).then(|| told.join(", "))
}

fn delivery_line(delivery: &DeliveryInfo, now: Time) -> String {
    let mut line = format!(
        "{}: {}, priority {}, attempts {}",
        delivery.queue.as_deref().unwrap_or("-"),
        standing(&delivery.standing, now),
        delivery.priority,
        attempts(delivery.attempts, delivery.failures),
    );
    for more in [past(&delivery.past), delivery.number.map(|number| format!("number {number}"))].into_iter().flatten() {
        line.push_str(&format!(", {more}"));
    }
    line
}

/// A retry policy in words.
pub fn retry(retry: &Retry) -> String {
    let attempts = match retry.attempts {
        0 => "any number of attempts".into(),
        attempts => counted(u64::from(attempts), "attempt"),
    };
    let (first, longest) = (retry.backoff.first, retry.backoff.longest);
    let wait = if first >= longest { first.to_string() } else { format!("{first} up to {longest}") };
    format!("{attempts}, waiting {wait}, plus up to {}%", retry.jitter_percent)
}

/// Facts under each other, their names aligned.
#[derive(Default)]
pub struct Card(pub String);

impl Card {
    /// One fact.
    pub fn fact(&mut self, name: &str, value: impl std::fmt::Display) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0.push_str(&format!("{name:<14}{}", one_line(&value.to_string())));
    }

    /// A text that may have several lines, as its writer laid it out.
    fn text(&mut self, name: &str, text: &str) {
        self.0.push_str(&format!("\n{name:<14}{text}"));
    }

    /// One that may not be there.
    pub fn maybe(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.fact(name, value);
        }
    }

    /// Who paused it, and why, if that is known.
    pub fn pause(&mut self, note: Option<&PauseNote>, now: Time) {
        let Some(PauseNote { by, since, reason }) = note else { return };
        self.fact("paused by", format!("{by}, since {}", exact(*since, now)));
        self.maybe("because", reason.as_deref());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    const NOW: Time = Time(1_000_000);

    fn task() -> TaskInfo {
        let json = r#"{"topic":"order-unpaid","id":"order-7","number":4711,"key":"user-1","body":{"order":7},"lease":"5m",
            "headers":{"trace":"abc"},"scheduled_at":900000,"due":1899000,"priority":65536,"attempts":0,"failures":0,
            "standing":{"state":"scheduled","at":1899000}}"#;
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn standings_are_told_in_a_few_words() {
        let told = |json: &str| standing(&serde_json::from_str(json).unwrap(), NOW);
        assert_eq!(told(r#"{"state":"scheduled","at":1899000}"#), "scheduled, in 14m59s");
        assert_eq!(told(r#"{"state":"ready","since":997000}"#), "ready for 3s");
        assert_eq!(told(r#"{"state":"leased","queue":"q","holder":"w1","until":1029000}"#), "with w1, 29s left");
        assert_eq!(told(r#"{"state":"spread","open":["a"],"finished":["b","c"]}"#), "broadcast, 1 of 3 open");
        assert_eq!(told(r#"{"state":"finished","ending":"done","at":940000}"#), "done 1m ago");
        assert_eq!(told(r#"{"state":"dead","reason":"rejected","at":940000}"#), "dead 1m ago: rejected");
    }

    #[test]
    fn who_comes_too_late_learns_where_the_task_is() {
        let leased: Standing =
            serde_json::from_str(r#"{"state":"leased","queue":"q","holder":"w1","until":1029000}"#).unwrap();
        let told = sentence(&leased, NOW);
        assert_eq!(told, "it is with w1 of queue q until 1970-01-01T00:17:09.000Z (in 29s)");
    }

    #[test]
    fn a_row_has_as_many_cells_as_its_table_has_columns() {
        let row = task_row(&task(), true, NOW);
        assert_eq!(row.len(), 9);
        assert_eq!(row[3], "scheduled, in 14m59s");
        assert_eq!(row[8], "{\"order\":7}");
        assert_eq!(task_row(&task(), false, NOW).len(), 8);
    }

    #[test]
    fn a_long_body_is_cut_and_a_line_break_is_a_space() {
        let mut long = task();
        long.body = None;
        long.text = Some(format!("a\nb{}", "x".repeat(100)));
        let shown = preview(&long);
        assert_eq!(shown.chars().count(), PREVIEW);
        assert!(shown.starts_with("a b") && shown.ends_with('…'), "{shown}");
    }

    #[test]
    fn a_card_tells_everything() {
        let card = task_card(&task(), NOW);
        for part in
            ["order-unpaid order-7", "in 14m59s", "user-1", "trace: abc", "{\"order\":7}", "65536", "4711", "5m"]
        {
            assert!(card.contains(part), "{part} is missing in\n{card}");
        }
        assert!(!card.contains("past"), "nothing happened to it yet:\n{card}");
    }

    #[test]
    fn a_past_is_told_if_there_is_one() {
        let told = |json: &str| past(&serde_json::from_str(json).unwrap());
        assert_eq!(told("{}"), None);
        assert_eq!(told(r#"{"releases":3,"replays":1}"#).as_deref(), Some("released 3×, replayed 1×"));
        let all = told(r#"{"rejections":1,"replays":1,"attempts":5,"failures":4}"#);
        assert_eq!(all.as_deref(), Some("rejected 1×, replayed 1×, earlier attempts 5, 4 of them failed"));
    }

    #[test]
    fn an_attempt_says_who_when_how_and_why() {
        let json = r#"{"attempt":2,"at":997000,"consumer":"w1","undone":"failed","note":"no bank"}"#;
        assert_eq!(attempt_line(&serde_json::from_str(json).unwrap(), NOW), "2 failed 3s ago, with w1: no bank");
    }

    #[test]
    fn a_delivery_says_its_number() {
        let json = r#"{"number":12,"queue":"q","priority":1,"attempts":0,"failures":0,"past":{"releases":2},
            "standing":{"state":"ready","since":997000}}"#;
        let told = delivery_line(&serde_json::from_str(json).unwrap(), NOW);
        assert_eq!(told, "q: ready for 3s, priority 1, attempts 0, released 2×, number 12");
    }
}
