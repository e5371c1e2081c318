//! `forecast`: how much falls due when, as bars.

use clap::{Args, ValueEnum};
use punctual_wire::{Forecast, ForecastQuery, Time, TopicForecast, Unit};
use ratatui::crossterm::terminal;

use super::Session;
use super::failure::{Failure, help};
use super::moment::{Moment, hint};
use super::output::{Colour, grouped, note};

/// How wide the drawing is where there is no terminal to measure.
const WIDTH: usize = 80;

/// The parts of a character that a bar can end with, in eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Show how many tasks are due in each of the next minutes, hours, days, weeks or months.
#[derive(Args, Debug)]
#[command(after_help = help!("Example:\n  punctual forecast --unit hour --slots 24"))]
pub struct ForecastArgs {
    /// The length of a slot.
    #[arg(long, value_enum, default_value_t = SlotLength::Minute)]
    unit: SlotLength,
    /// The number of slots.
    #[arg(long, value_name = "N", default_value_t = 20)]
    slots: u32,
    /// Begin here instead of now: RFC 3339, milliseconds since 1970, or +2h.
    #[arg(long, value_name = "TIME")]
    from: Option<Moment>,
    /// Only this topic.
    #[arg(long)]
    topic: Option<String>,
    /// Tell the N topics with the most tasks apart, a line for each.
    #[arg(long, value_name = "N", conflicts_with = "topic", value_parser = clap::value_parser!(u32).range(1..=100))]
    top: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SlotLength {
    /// 60 seconds.
    Minute,
    /// 60 minutes.
    Hour,
    /// 24 hours, from midnight UTC.
    Day,
    /// 7 days, from Monday on.
    Week,
    /// A month of the calendar.
    Month,
}

/// Draws the forecast.
pub async fn run(args: ForecastArgs, mut session: Session) -> Result<(), Failure> {
    let unit = match args.unit {
        SlotLength::Minute => Unit::Minute,
        SlotLength::Hour => Unit::Hour,
        SlotLength::Day => Unit::Day,
        SlotLength::Week => Unit::Week,
        SlotLength::Month => Unit::Month,
    };
    let query = ForecastQuery {
        unit,
        slots: Some(args.slots),
        from: args.from.map(Moment::time),
        topic: args.topic,
        top: args.top,
    };
    let forecast = session.client.forecast_of(&query).await?;
    if session.output.json {
        return session.output.json(&forecast);
    }
    let width = terminal::size().map_or(WIDTH, |(columns, _)| usize::from(columns)).clamp(60, 160);
    if args.top.is_some() {
        for line in by_topic(&forecast.topics, width) {
            session.output.line(line)?;
        }
        return tell_uncounted(&forecast);
    }
    for Line { when, hint, due, bar } in draw(&forecast, width, Time::now()) {
        let due = format!("  {due}  ");
        let due = if bar.is_empty() { due.trim_end().to_owned() } else { due };
        let parts = [(None, format!("{when}  ")), (Some(Colour::Dim), hint), (None, due), (Some(Colour::Cyan), bar)];
        session.output.painted(&parts)?;
    }
    tell_uncounted(&forecast)
}

fn tell_uncounted(forecast: &Forecast) -> Result<(), Failure> {
    if let Some(from) = forecast.topics_until {
        note(format_args!(
            "there were too many tasks to count by topic: of those from {from} on, only some of the first are shown"
        ));
    } else if let Some(from) = forecast.counted_until {
        note(format_args!("from {from} on there were too many tasks to count by topic: ask for fewer slots"));
    }
    Ok(())
}

/// A line for each topic: how much comes due in all slots, and a mark for each slot, or for several if there are many.
fn by_topic(topics: &[TopicForecast], width: usize) -> Vec<String> {
    let name = |topic: &TopicForecast| topic.topic.clone().unwrap_or("(others)".into());
    let total = |topic: &TopicForecast| grouped(topic.due.iter().sum());
    let names = topics.iter().map(|topic| name(topic).chars().count()).max().unwrap_or(0);
    let totals = topics.iter().map(|topic| total(topic).len()).max().unwrap_or(0);
    let room = width.saturating_sub(names + totals + 4).max(8);
    let line = |topic: &TopicForecast| {
        let marks: Vec<u64> =
            topic.due.chunks(topic.due.len().div_ceil(room).max(1)).map(|due| due.iter().sum()).collect();
        let most = marks.iter().copied().max().unwrap_or(0);
        let marks: String = marks.iter().map(|due| mark(*due, most)).collect();
        format!("{:<names$}  {:>totals$}  {marks}", name(topic), total(topic)).trim_end().to_owned()
    };
    topics.iter().map(line).collect()
}

/// How much comes due in a slot, as a character of that height.
fn mark(due: u64, most: u64) -> char {
    const MARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    if due == 0 { ' ' } else { MARKS[(u128::from(due) * 8).div_ceil(u128::from(most)) as usize - 1] }
}

/// One slot, ready to be printed.
struct Line {
    when: String,
    hint: String,
    due: String,
    bar: String,
}

/// Draws each slot as a line of at most this width.
fn draw(forecast: &Forecast, width: usize, now: Time) -> Vec<Line> {
    let most = forecast.slots.iter().map(|slot| slot.due).max().unwrap_or(0);
    let numbers = grouped(most).len();
    let hints: Vec<String> = forecast.slots.iter().map(|slot| slot_hint(slot.from, now)).collect();
    let longest = hints.iter().map(String::len).max().unwrap_or(0);
    let room = width.saturating_sub(when(Time(0), forecast.unit).len() + numbers + longest + 6).max(8);
    let lines = forecast.slots.iter().zip(hints);
    lines
        .map(|(slot, hint)| Line {
            when: when(slot.from, forecast.unit),
            due: format!("{:>numbers$}", grouped(slot.due)),
            bar: bar(slot.due, most, room),
            hint: format!("{hint:<longest$}"),
        })
        .collect()
}

/// As much of an instant as tells slots of this length apart, in UTC.
fn when(time: Time, unit: Unit) -> String {
    let text = time.to_string();
    let (day, clock) = text.split_once('T').unwrap_or((&text, ""));
    match unit {
        Unit::Month => day.rsplit_once('-').map_or(day, |(month, _)| month).into(),
        Unit::Day | Unit::Week => day.into(),
        Unit::Minute | Unit::Hour => format!("{day} {}Z", clock.get(..5).unwrap_or(clock)),
    }
}

fn slot_hint(from: Time, now: Time) -> String {
    if from <= now { "now".into() } else { hint(from, now) }
}

/// A bar in eighths of a character. What is there at all can be seen.
pub fn bar(value: u64, most: u64, room: usize) -> String {
    if value == 0 || most == 0 {
        return String::new();
    }
    let eighths = (u128::from(value) * room as u128 * 8 / u128::from(most)).max(1) as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use punctual_wire::ForecastSlot;

    use super::*;

    fn forecast(due: &[u64]) -> Forecast {
        let slot = |(index, due): (usize, &u64)| ForecastSlot { from: Time(index as u64 * 60_000), due: *due };
        let slots = due.iter().enumerate().map(slot).collect();
        Forecast { unit: Unit::Minute, slots, counted_until: None, topics: Vec::new(), topics_until: None }
    }

    #[test]
    fn the_greatest_slot_fills_the_room_and_nothing_is_nothing() {
        assert_eq!(bar(10, 10, 4), "████");
        assert_eq!(bar(5, 10, 4), "██");
        assert_eq!(bar(1, 1_000_000, 4), "▏");
        assert_eq!(bar(0, 10, 4), "");
        assert_eq!(bar(0, 0, 4), "");
        assert_eq!(bar(u64::MAX, u64::MAX, 3), "███");
    }

    #[test]
    fn each_topic_is_a_line_of_marks() {
        let topic =
            |topic: Option<&str>, due: &[u64]| TopicForecast { topic: topic.map(Into::into), due: due.to_vec() };
        let lines = by_topic(&[topic(Some("coupons"), &[0, 1, 800, 1_600]), topic(None, &[0, 2, 0, 0])], 80);
        assert_eq!(lines, ["coupons   2,401   ▁▄█", "(others)      2   █"]);
        let long = by_topic(&[topic(Some("t"), &[1; 1_440])], 60);
        assert!(long[0].chars().count() <= 60, "{long:?}");
    }

    #[test]
    fn lines_keep_to_the_width() {
        for width in [60, 80, 120] {
            for line in draw(&forecast(&[0, 1, 1_000, 1_000_000]), width, Time(1_000)) {
                let all = format!("{}  {}  {}  {}", line.when, line.hint, line.due, line.bar);
                assert!(all.chars().count() <= width, "{all}");
            }
        }
    }

    #[test]
    fn a_slot_says_when_it_begins() {
        let lines = draw(&forecast(&[3, 1_234]), 80, Time(1_000));
        assert_eq!((lines[0].when.as_str(), lines[0].hint.as_str()), ("1970-01-01 00:00Z", "now   "));
        assert_eq!((lines[0].due.as_str(), lines[1].due.as_str()), ("    3", "1,234"));
        assert_eq!(lines[1].hint, "in 59s");
        assert_eq!(when(Time(0), Unit::Day), "1970-01-01");
        assert_eq!((when(Time(0), Unit::Week), when(Time(0), Unit::Month)), ("1970-01-01".into(), "1970-01".into()));
    }

    #[test]
    fn a_forecast_without_slots_is_empty() {
        assert!(draw(&forecast(&[]), 80, Time(0)).is_empty());
    }
}
