//! What is measured of Punctual: what all do, and beyond that how late it is at half of its load, how soon it is there
//! with many tasks pending, and whether its tables grow with the lives that have passed through them.

use std::io;
use std::time::Duration;

use super::contestants::{Contestant, Keeping};
use super::engine::Kind;
use super::late::lateness;
use super::measured::Measured;
use super::plan::Size;
use super::stage::{Line, Stage};
use super::work::Until;
use crate::arena::tally::{SHARES, shares_ms};
use crate::table::{Table, decimals, grouped};

/// The tables that grow and shrink, in PostgreSQL.
const TABLES: [&str; 3] = ["punctual.names", "punctual.rows", "punctual.deltas"];

#[derive(Default)]
pub struct Own {
    pub late: Vec<Late>,
    /// How many were pending, and how soon a node was there.
    pub started: Option<(u64, Duration)>,
    pub grown: Vec<Grown>,
}

pub struct Late {
    pub kind: Kind,
    pub rate: u64,
    pub shares_ms: [f64; 4],
}

/// The tables after so many lives.
pub struct Grown {
    lives: u64,
    measured: Measured,
    pub bytes: [u64; TABLES.len()],
}

pub fn measure(kind: Kind, size: &Size, note: &mut dyn FnMut(Line, Measured), own: &mut Own) -> io::Result<()> {
    let mut stage = Stage::set(kind, Contestant::Punctual, Keeping::History)?;
    for line in Line::of(Contestant::Punctual) {
        let measured = stage.measure(*line, Until::time(size.lasting))?;
        note(*line, measured);
        if *line == Line::Lives {
            let rate = (measured.a_second / 2.0) as u64;
            let late = stage.runtime.block_on(lateness(&stage, rate, size.steady))?;
            own.late.push(Late { kind, rate, shares_ms: shares_ms(&late) });
        }
    }
    if kind == Kind::Postgres {
        stage.measure(Line::Batches, Until::tasks(size.pending))?;
        own.started = Some((size.pending, stage.restart()?));
        drop(stage);
        watch(kind, size.watched, &mut own.grown)?;
    }
    Ok(())
}

/// Looks at the tables while tasks pass through of which nothing is kept.
fn watch(kind: Kind, lives: u64, grown: &mut Vec<Grown>) -> io::Result<()> {
    const LOOKS: u64 = 4;
    let stage = Stage::set(kind, Contestant::Punctual, Keeping::Nothing)?;
    for look in 1..=LOOKS {
        let measured = stage.measure(Line::Lives, Until::tasks(lives / LOOKS))?;
        let bytes = TABLES.map(|table| stage.engine.table_bytes(table));
        eprintln!("after {} lives: {bytes:?}", lives / LOOKS * look);
        grown.push(Grown { lives: lives / LOOKS * look, measured, bytes });
    }
    Ok(())
}

impl Own {
    pub fn print(&self) {
        let mut late = Table::new(&[&["late at half of its lives", "a second"][..], &SHARES[..]].concat());
        for Late { kind, rate, shares_ms } in &self.late {
            let shares = shares_ms.map(|millis| format!("{} ms", decimals(millis, 2)));
            late.row([kind.heading().to_owned(), grouped(*rate)].into_iter().chain(shares).collect());
        }
        if !late.is_empty() {
            late.print();
        }
        if let Some((pending, took)) = self.started {
            let (pending, millis) = (grouped(pending), took.as_millis());
            println!(
                "with {pending} pending in PostgreSQL, a node was started and had confirmed a task after {millis} ms\n"
            );
        }
        let mut grown =
            Table::new(&["PostgreSQL, nothing kept", "lives/s", "CPU µs each", "names MB", "rows MB", "deltas MB"]);
        for Grown { lives, measured, bytes } in &self.grown {
            let sizes = bytes.map(|bytes| decimals(bytes as f64 / 1e6, 1));
            let rate = [grouped(measured.a_second as u64), decimals(measured.cpu_us, 1)];
            let label = format!("after {} lives", grouped(*lives));
            grown.row([label].into_iter().chain(rate).chain(sizes).collect());
        }
        if !grown.is_empty() {
            grown.print();
        }
    }
}
