//! The tables: what was measured of each contestant, how Punctual stands beside the others, and what the load itself
//! took, so that one sees where it was the load that could do no more.

use super::contestants::Kind;
use super::plan::Plan;
use crate::arena::rate::Rate;
use crate::arena::{Contestant, median};
use crate::table::{Table, decimals, grouped};

#[derive(Clone, Copy)]
pub enum Better {
    Higher,
    Lower,
    /// A fact that the other lines depend on.
    Neither,
}

pub struct Report {
    table: Table,
    load: Table,
    /// Where Punctual and those it is compared with stand; none if it does not take part.
    punctual: Option<usize>,
    others: Vec<usize>,
}

impl Report {
    pub fn new(plan: &Plan) -> Report {
        let punctual = plan.kinds.iter().position(|kind| *kind == Kind::Punctual);
        let others =
            (0..plan.kinds.len()).filter(|place| punctual.is_some_and(|own| own != *place)).collect::<Vec<_>>();
        let kinds: Vec<&str> = plan.kinds.iter().map(|kind| kind.heading()).collect();
        let mut headings = vec!["200-byte bodies"];
        headings.extend(&kinds);
        headings.extend(others.iter().map(|place| match plan.kinds[*place] {
            Kind::InMemory => "beside nothing on disk",
            _ => "beside synced",
        }));
        let mut load_headings = vec!["cores that the load took, of the one it has"];
        load_headings.extend(&kinds);
        Report { table: Table::new(&headings), load: Table::new(&load_headings), punctual, others }
    }

    /// The medians of what was measured of each contestant, with a gap where there was nothing to measure or it was too
    /// slow for it.
    pub fn row(&mut self, label: &str, better: Better, places: usize, measured: Vec<Vec<Option<f64>>>) {
        let medians = measured.into_iter().map(|rounds| median(rounds.into_iter().flatten().collect()));
        let medians: Vec<Option<f64>> = medians.collect();
        let show =
            |number: f64| if places == 0 { grouped(number.max(0.0).round() as u64) } else { decimals(number, places) };
        let mut cells = vec![label.to_owned()];
        cells.extend(medians.iter().map(|median| median.map_or("–".to_owned(), show)));
        if let Some(own) = self.punctual {
            cells.extend(self.others.iter().map(|other| compared(medians[own], medians[*other], better)));
        }
        self.table.row(cells);
    }

    /// What each of them cost the server, and what all of it cost the load.
    pub fn costs(&mut self, label: &str, rates: &[Vec<Rate>]) {
        let micros = |rate: &Rate| Some(rate.server_cores / rate.a_second * 1e6);
        let server = rates.iter().map(|rounds| rounds.iter().map(micros).collect()).collect();
        self.row("the same, processor of the server, µs each", Better::Lower, 1, server);
        let load = rates.iter().map(|rounds| median(rounds.iter().map(|rate| rate.load_cores).collect()));
        let cells = load.map(|cores| cores.map_or("–".to_owned(), |cores| decimals(cores, 2)));
        self.load.row([label.to_owned()].into_iter().chain(cells).collect());
    }

    pub fn print(&self) {
        self.table.print();
        if !self.load.is_empty() {
            self.load.print();
        }
    }
}

fn compared(own: Option<f64>, other: Option<f64>, better: Better) -> String {
    let (Some(own), Some(other)) = (own, other) else { return "–".to_owned() };
    let factor = match better {
        Better::Higher => own / other,
        Better::Lower => other / own,
        Better::Neither => return String::new(),
    };
    match factor {
        // One of them is nothing that a factor could be of.
        factor if !factor.is_normal() || factor < 0.0 => "–".to_owned(),
        0.95..1.05 => "level".to_owned(),
        1.0.. => format!("{factor:.1}× better"),
        _ => format!("{:.1}× worse", 1.0 / factor),
    }
}
