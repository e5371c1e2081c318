//! A markdown table whose columns are aligned, so that it reads as well in a terminal as on a page.

pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(headings: &[&str]) -> Self {
        Table { rows: vec![headings.iter().map(ToString::to_string).collect()] }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.rows[0].len(), "a cell for each heading");
        self.rows.push(cells);
    }

    /// Whether it has nothing but its headings.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// The first column is text and stands left; the others are numbers and stand right.
    pub fn print(&self) {
        let columns = 0..self.rows[0].len();
        let widths: Vec<usize> =
            columns.map(|column| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
        for (number, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, &width))| match column {
                    0 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                })
                .collect();
            println!("| {} |", cells.join(" | "));
            if number == 0 {
                let rules: Vec<String> = widths
                    .iter()
                    .enumerate()
                    .map(|(column, width)| if column == 0 { "-".repeat(*width) } else { "-".repeat(width - 1) + ":" })
                    .collect();
                println!("| {} |", rules.join(" | "));
            }
        }
        println!();
    }
}

/// With commas between the thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub fn decimals(number: f64, places: usize) -> String {
    format!("{number:.places$}")
}
