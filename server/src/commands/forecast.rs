//! `forecast`: how much falls due when, as bars.

use clap::{Args, ValueEnum};
use punctual_wire::{Forecast, Time, Unit};
use ratatui::crossterm::terminal;

use super::Session;
use super::failure::{Failure, help};
use super::moment::hint;
use super::output::{Colour, grouped};

/// How wide the drawing is where there is no terminal to measure.
const WIDTH: usize = 80;

/// The parts of a character that a bar can end with, in eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Show how many tasks are due in each of the next minutes, hours or days.
#[derive(Args, Debug)]
#[command(after_help = help!("Example:\n  punctual forecast --unit hour --slots 24"))]
pub struct ForecastArgs {
    /// The length of a slot.
    #[arg(long, value_enum, default_value_t = SlotLength::Minute)]
    unit: SlotLength,
    /// The number of slots.
    #[arg(long, value_name = "N", default_value_t = 20)]
    slots: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SlotLength {
    /// 60 seconds.
    Minute,
    /// 60 minutes.
    Hour,
    /// 24 hours, from midnight UTC.
    Day,
}

/// Draws the forecast.
pub async fn run(args: ForecastArgs, mut session: Session) -> Result<(), Failure> {
    let unit = match args.unit {
        SlotLength::Minute => Unit::Minute,
        SlotLength::Hour => Unit::Hour,
        SlotLength::Day => Unit::Day,
    };
    let forecast = session.client.forecast(unit, args.slots).await?;
    if session.output.json {
        return session.output.json(&forecast);
    }
    let width = terminal::size().map_or(WIDTH, |(columns, _)| usize::from(columns)).clamp(60, 160);
    for Line { when, hint, due, bar } in draw(&forecast, width, Time::now()) {
        let bar = session.output.paint(Colour::Cyan, &bar);
        let hint = session.output.paint(Colour::Dim, &hint);
        session.output.line(format!("{when}  {hint}  {due}  {bar}").trim_end())?;
    }
    if let Some(from) = forecast.counted_until {
        eprintln!(
            "from {from} on there were too many tasks to count with a token limited to topics: ask for fewer slots"
        );
    }
    Ok(())
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
        Unit::Day => day.into(),
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
        Forecast { unit: Unit::Minute, slots: due.iter().enumerate().map(slot).collect(), counted_until: None }
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
    }

    #[test]
    fn a_forecast_without_slots_is_empty() {
        assert!(draw(&forecast(&[]), 80, Time(0)).is_empty());
    }
}
