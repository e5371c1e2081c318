//! Where answers go: stdout for what was asked for, stderr for all that is said about it.
//!
//! In JSON nothing but the answers of the server goes to stdout, one on a line. Every write can fail,
//! because whoever reads may have seen enough; so nothing here prints behind the back of its caller. What people
//! read has no control characters but those that are put in here (`plain.rs`), whoever wrote the text.

use std::fmt;
use std::io::{self, BufWriter, IsTerminal, Write};

use comfy_table::{Attribute, Cell, CellAlignment, ColumnConstraint, Table, Width, presets};
use punctual_wire::Deleted;
use serde::Serialize;

use super::failure::Failure;
use super::plain::{one_line, plain};

/// Where the answers of a command go.
pub struct Output {
    to: Box<dyn Write + Send>,
    /// Whether answers are JSON for programs.
    pub json: bool,
    colours: bool,
}

impl Output {
    /// To stdout.
    pub fn stdout(json: bool) -> Output {
        let colours = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Output { to: Box::new(BufWriter::new(io::stdout())), json, colours }
    }

    /// One line for people.
    pub fn line(&mut self, text: impl fmt::Display) -> Result<(), Failure> {
        Ok(writeln!(self.to, "{}", plain(&text.to_string()))?)
    }

    /// One line for people, some parts of which have a colour where colours can be seen.
    pub fn painted(&mut self, parts: &[Painted]) -> Result<(), Failure> {
        Ok(writeln!(self.to, "{}", paint(parts, self.colours))?)
    }

    /// One line of JSON.
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        self.to.write_all(&json_line(value)?)?;
        Ok(())
    }

    /// The JSON, or what a person reads instead.
    pub fn either(&mut self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        if self.json { self.json(value) } else { self.line(text()) }
    }

    /// That something is gone, and what went with it.
    pub fn deleted(&mut self, what: &str, rows: u64) -> Result<(), Failure> {
        self.either(&Deleted { rows }, || format!("deleted {what}, and {} with it", counted(rows, "row")))
    }

    /// Each entry as a line of JSON, or all of them as a table; if there is none, a person is told why.
    pub fn list<T: Serialize>(
        &mut self,
        entries: &[T],
        none: &str,
        table: impl FnOnce(&[T]) -> Columns,
    ) -> Result<(), Failure> {
        if self.json {
            return entries.iter().try_for_each(|entry| self.json(entry));
        }
        if entries.is_empty() {
            note(none);
            return Ok(());
        }
        self.table(&table(entries))
    }

    /// A table without lines; its header is bold where that can be seen.
    pub fn table(&mut self, columns: &Columns) -> Result<(), Failure> {
        let table = columns.draw(self.colours);
        for line in table.lines() {
            writeln!(self.to, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// Hands over what was gathered, so that a reader need not wait for more.
    pub fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.to.flush()?)
    }
}

/// Text, and its colour if it has one.
pub type Painted = (Option<Colour>, String);

/// The colours in use, by their numbers in ANSI's list.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum Colour {
    /// For what matters less.
    Dim = 2,
    /// For what went wrong.
    Red = 31,
    /// For what went well.
    Green = 32,
    /// For what goes on.
    Yellow = 33,
    /// For numbers and bars.
    Cyan = 36,
}

/// The parts as a line, in their colours if these can be seen.
fn paint(parts: &[Painted], colours: bool) -> String {
    let paint = |(colour, text): &Painted| match colour.filter(|_| colours) {
        Some(colour) => format!("\x1b[{}m{}\x1b[0m", colour as u8, one_line(text)),
        None => one_line(text).into_owned(),
    };
    parts.iter().map(paint).collect()
}

/// One line of JSON. A body keeps the line breaks it was written with; they are only ever between
/// its parts, never inside of a text, so a space says the same.
pub fn json_line(value: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let mut line = serde_json::to_vec(value)?;
    for byte in line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    line.push(b'\n');
    Ok(line)
}

/// Says something about the command, on stderr. If that cannot be written, the command goes on without.
pub fn note(text: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{}", plain(&text.to_string()));
}

/// A table in the making. It can be drawn page by page: the columns of later pages are at least as
/// wide as those of the pages before.
pub struct Columns {
    names: Vec<&'static str>,
    numbers: Vec<bool>,
    rows: Vec<Vec<String>>,
    widths: Vec<u16>,
    with_header: bool,
}

impl Columns {
    /// With these columns; those whose name begins with `#` hold numbers and stand to the right.
    pub fn new(names: &[&'static str]) -> Columns {
        let numbers = names.iter().map(|name| name.starts_with('#')).collect();
        let names: Vec<&'static str> = names.iter().map(|name| name.trim_start_matches('#')).collect();
        let widths = vec![0; names.len()];
        Columns { names, numbers, rows: Vec::new(), widths, with_header: true }
    }

    /// One more row.
    pub fn row(&mut self, cells: Vec<String>) {
        let cells: Vec<String> = cells.iter().map(|cell| one_line(cell).into_owned()).collect();
        for (width, cell) in self.widths.iter_mut().zip(&cells) {
            *width = (*width).max(u16::try_from(cell.chars().count()).unwrap_or(u16::MAX));
        }
        self.rows.push(cells);
    }

    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// After a page was drawn: the next one has no header.
    pub fn next_page(&mut self) {
        self.rows.clear();
        self.with_header = false;
    }

    fn draw(&self, colours: bool) -> Table {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        if colours {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        if self.with_header {
            table.set_header(self.names.iter().map(|name| Cell::new(name).add_attribute(Attribute::Bold)));
        }
        table.add_rows(&self.rows);
        table.discover_columns();
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 2));
            if self.numbers.get(index).copied().unwrap_or(false) {
                column.set_cell_alignment(CellAlignment::Right);
            }
            let name = self.names.get(index).map_or(0, |name| name.len());
            let width = self.widths.get(index).copied().unwrap_or(0).max(name as u16);
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width + 2)));
        }
        table
    }
}

/// A number as people read it: 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of something: `1 task`, `2 tasks`, `3 deliveries`.
pub fn counted(number: u64, one: &str) -> String {
    match (number, one.strip_suffix('y')) {
        (1, _) => format!("1 {one}"),
        (_, Some(stem)) => format!("{} {stem}ies", grouped(number)),
        (_, None) => format!("{} {one}s", grouped(number)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn drawn(columns: &Columns) -> Vec<String> {
        columns.draw(false).lines().map(|line| line.trim_end().to_owned()).collect()
    }

    #[test]
    fn numbers_stand_to_the_right_of_their_column() {
        let mut columns = Columns::new(&["NAME", "#READY"]);
        columns.row(vec!["a".into(), "7".into()]);
        columns.row(vec!["long-name".into(), "1,000".into()]);
        assert_eq!(drawn(&columns), ["NAME       READY", "a              7", "long-name  1,000"]);
    }

    #[test]
    fn only_what_is_painted_here_has_a_colour() {
        let parts = [(None, "a\n\x1b[31m".into()), (Some(Colour::Red), "b\x1b[0m".into())];
        assert_eq!(paint(&parts, false), "a\\n\\u{1b}[31mb\\u{1b}[0m");
        assert_eq!(paint(&parts, true), "a\\n\\u{1b}[31m\x1b[31mb\\u{1b}[0m\x1b[0m");
    }

    #[test]
    fn a_cell_is_one_line_of_plain_text() {
        let mut columns = Columns::new(&["NOTE"]);
        columns.row(vec!["a\nb\x1b[2J".into()]);
        assert_eq!(drawn(&columns), ["NOTE", "a\\nb\\u{1b}[2J"]);
    }

    #[test]
    fn a_later_page_keeps_the_columns_of_the_first() {
        let mut columns = Columns::new(&["ID", "STATE"]);
        columns.row(vec!["a-rather-long-id".into(), "ready".into()]);
        let first = drawn(&columns);
        columns.next_page();
        assert!(columns.is_empty());
        columns.row(vec!["b".into(), "ready".into()]);
        let second = drawn(&columns);
        assert_eq!(second.len(), 1);
        assert_eq!(second[0].find("ready"), first[1].find("ready"));
    }

    #[test]
    fn a_body_with_line_breaks_stays_on_one_line() {
        let body = RawValue::from_string("{\n  \"text\": \"a\\nb\"\n}".into()).unwrap();
        let line = String::from_utf8(json_line(&body).unwrap()).unwrap();
        assert_eq!(line, "{   \"text\": \"a\\nb\" }\n");
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(counted(1, "task"), "1 task");
        assert_eq!(counted(0, "task"), "0 tasks");
        assert_eq!(counted(1, "delivery"), "1 delivery");
        assert_eq!(counted(2, "delivery"), "2 deliveries");
    }
}
