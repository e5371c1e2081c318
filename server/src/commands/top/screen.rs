//! Draws the screen. It is whole at 80 by 24; a larger one has more minutes and more queues.

use punctual_wire::{Distribution, QueueInfo, StoreStats, Time};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table};

use super::super::moment::{micros, rough};
use super::super::output::{counted, grouped};
use super::super::queues::paused;
use super::gauge::{Sample, View};

const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);

/// Draws everything.
pub fn draw(frame: &mut Frame, view: &View) {
    let [head, numbers, forecast, queues] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(8), Constraint::Length(6), Constraint::Min(4)])
            .areas(frame.area());
    draw_head(frame, head, view);
    let Some(sample) = &view.sample else { return };
    let [rates, lateness, server] =
        Layout::horizontal([Constraint::Ratio(1, 3), Constraint::Ratio(1, 3), Constraint::Ratio(1, 3)]).areas(numbers);
    draw_rates(frame, rates, view);
    draw_lateness(frame, lateness, sample);
    draw_server(frame, server, view, sample);
    draw_forecast(frame, forecast, sample);
    draw_queues(frame, queues, view);
}

fn draw_head(frame: &mut Frame, area: Rect, view: &View) {
    let mut left = vec![Span::styled(" punctual ", BOLD)];
    if let Some(Sample { stats, .. }) = &view.sample {
        left.push(Span::raw(format!("{}  ", stats.version)));
    }
    left.push(Span::raw(view.url.clone()));
    match (&view.trouble, &view.sample) {
        (Some(trouble), _) => left.push(Span::styled(format!("  {trouble}"), Style::new().fg(Color::Red))),
        (None, Some(Sample { stats, .. })) => {
            let up = rough(stats.now.0.saturating_sub(stats.started_at.0));
            left.push(Span::styled(format!("  up {up}"), DIM));
        }
        (None, None) => {}
    }
    let right = Line::styled("s sorts  q quits ", DIM).alignment(Alignment::Right);
    let [text, keys] = Layout::horizontal([Constraint::Min(0), Constraint::Length(18)]).areas(area);
    frame.render_widget(Line::from(left), text);
    frame.render_widget(right, keys);
}

/// A box with one number on a line.
fn numbers(frame: &mut Frame, area: Rect, title: &str, rows: &[(&str, String, Option<Color>)]) {
    let block = Block::bordered().title(format!(" {title} ")).border_style(DIM).title_style(BOLD);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    for ((name, value, colour), line) in rows.iter().zip(inner.rows()) {
        let [left, right] =
            Layout::horizontal([Constraint::Min(0), Constraint::Length(value.chars().count() as u16 + 1)]).areas(line);
        frame.render_widget(Line::from(format!(" {name}")), left);
        let style = colour.map_or(Style::new(), |colour| Style::new().fg(colour));
        frame.render_widget(Line::styled(format!("{value} "), style).alignment(Alignment::Right), right);
    }
}

/// A rate: whole above ten, with a decimal below.
fn rate(rate: f64) -> String {
    if rate > 0.0 && rate < 10.0 { format!("{rate:.1}") } else { grouped(rate.round() as u64) }
}

fn red_if(wrong: bool) -> Option<Color> {
    wrong.then_some(Color::Red)
}

fn draw_rates(frame: &mut Frame, area: Rect, view: &View) {
    let rates = &view.rates;
    let rows = [
        ("scheduled", rate(rates.scheduled), Some(Color::Cyan)),
        ("fired", rate(rates.fired), Some(Color::Yellow)),
        ("done", rate(rates.done), Some(Color::Green)),
        ("cancelled", rate(rates.cancelled), None),
        ("failed", rate(rates.failed), red_if(rates.failed > 0.0)),
        ("dead", rate(rates.dead), red_if(rates.dead > 0.0)),
    ];
    numbers(frame, area, "per second", &rows);
}

/// A number, if the token is one that the server tells it to.
fn told(number: Option<u64>, written: fn(u64) -> String) -> String {
    number.map_or("-".into(), written)
}

fn draw_lateness(frame: &mut Frame, area: Rect, sample: &Sample) {
    let stats = &sample.stats;
    let late = |value: fn(&Distribution) -> u64| told(stats.lateness_micros.as_ref().map(value), micros);
    let commit = |value: fn(&Distribution) -> u64| told(stats.commit_micros.as_ref().map(value), micros);
    let failed = stats.failed_commits;
    let rows = [
        ("lateness p50", late(|late| late.p50), None),
        ("lateness p99", late(|late| late.p99), None),
        ("offered p99", told(stats.offered_micros.map(|offered| offered.p99), micros), None),
        ("taken p99", told(stats.taken_micros.map(|taken| taken.p99), micros), None),
        ("commit p99", commit(|commit| commit.p99), None),
        ("failed commits", told(failed, grouped), red_if(failed.is_some_and(|failed| failed > 0))),
    ];
    numbers(frame, area, "since the start", &rows);
}

fn draw_server(frame: &mut Frame, area: Rect, view: &View, sample: &Sample) {
    let stats = &sample.stats;
    let [first, second] = store_rows(stats.store.as_ref());
    let rows = [
        ("waiting consumers", told(stats.waiting_consumers, grouped), None),
        ("waiting requests", told(stats.waiting_requests, grouped), None),
        ("answers a second", rate(view.rates.answers), None),
        ("refusals a second", rate(view.rates.refusals), red_if(view.rates.refusals > 0.0)),
        first,
        second,
    ];
    numbers(frame, area, "server", &rows);
}

/// What is worth knowing of a store: what it takes, and if it is a database how it is reached.
fn store_rows(store: Option<&StoreStats>) -> [(&'static str, String, Option<Color>); 2] {
    let told = |number: fn(&StoreStats) -> u64| told(store.map(number), bytes);
    let Some(link) = store.and_then(|store| store.link) else {
        return [
            ("store, memory", told(|store| store.memory_bytes), None),
            ("store, disk", told(|store| store.disk_bytes), None),
        ];
    };
    let state = match link.failures {
        0 => format!("{}/{} busy", link.busy, link.connections),
        failures => format!("{} failed", grouped(failures)),
    };
    [
        ("database", told(|store| store.memory_bytes + store.disk_bytes), None),
        ("database link", state, red_if(link.failures > 0)),
    ]
}

/// For how long the first of those that are ready has been.
fn oldest(queue: &QueueInfo, now: Time) -> String {
    queue.oldest_ready.map_or(String::new(), |since| rough(now.0.saturating_sub(since.0)))
}

/// Bytes in the unit that fits.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1e3;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1e3;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

fn draw_forecast(frame: &mut Frame, area: Rect, sample: &Sample) {
    let room = usize::from(area.width.saturating_sub(2));
    let due: Vec<u64> = sample.forecast.slots.iter().map(|slot| slot.due).take(room).collect();
    let (sum, most) = (due.iter().sum::<u64>(), due.iter().max().copied().unwrap_or(0));
    let title = format!(" due in the next {}: {} ", counted(due.len() as u64, "minute"), grouped(sum));
    let most = format!(" most in a minute: {} ", grouped(most));
    let block = Block::bordered().title(title).title_style(BOLD).border_style(DIM);
    let block = block.title_top(Line::from(most).alignment(Alignment::Right));
    let bars = Sparkline::default().data(due).style(Style::new().fg(Color::Cyan)).block(block);
    frame.render_widget(bars, area);
}

fn draw_queues(frame: &mut Frame, area: Rect, view: &View) {
    let queues = view.queues();
    let all = view
        .sample
        .as_ref()
        .map_or(0, |sample| sample.stats.total.map_or(0, |total| total.queues).max(queues.len() as u64));
    let title = match all - queues.len() as u64 {
        0 => format!(" {}, by {} ", counted(queues.len() as u64, "queue"), view.sort.name()),
        _ => format!(" the first {} of {}, by {} ", queues.len(), counted(all, "queue"), view.sort.name()),
    };
    let block = Block::bordered().title(title).title_style(BOLD).border_style(DIM);
    if queues.is_empty() {
        frame.render_widget(Paragraph::new(" no queues yet").style(DIM).block(block), area);
        return;
    }
    let room = usize::from(area.height.saturating_sub(3));
    let hidden = queues.len().saturating_sub(room);
    let block = match hidden {
        0 => block,
        _ => block.title_bottom(Line::from(format!(" {hidden} more ")).alignment(Alignment::Right)),
    };
    let now = view.sample.as_ref().map_or(Time(0), |sample| sample.stats.now);
    let number = |number: u64| Line::from(grouped(number)).alignment(Alignment::Right);
    let row = |queue: &&QueueInfo| {
        let dead = if queue.dead > 0 { Style::new().fg(Color::Red) } else { Style::new() };
        Row::new([
            Cell::new(format!(" {}", queue.name)),
            Cell::new(number(queue.ready)),
            Cell::new(number(queue.leased)),
            Cell::new(number(queue.dead)).style(dead),
            Cell::new(Line::from(oldest(queue, now)).alignment(Alignment::Right)),
            Cell::new(paused(&queue.settings, now).map_or(String::new(), |_| "paused".into())),
        ])
    };
    let heading = |text: &'static str| Cell::new(Line::from(text).alignment(Alignment::Right));
    let header = Row::new([
        Cell::new(" QUEUE"),
        heading("READY"),
        heading("LEASED"),
        heading("DEAD"),
        heading("OLDEST"),
        Cell::new(""),
    ]);
    let widths = [
        Constraint::Min(20),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(7),
    ];
    let table = Table::new(queues.iter().take(room).map(row), widths).header(header.style(BOLD)).block(block);
    frame.render_widget(table, area);
}
