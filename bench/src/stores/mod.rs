//! Punctual's stores in databases: a whole node in this process on each, beside what the database takes as such, and
//! beside the queues that others have built on it. All do the same work, one after the other, each on a database of its own.

mod aims;
mod contestants;
mod engine;
mod findings;
mod late;
mod measured;
mod own;
mod plan;
mod rows;
mod script;
mod stage;
mod work;

use std::env;
use std::io;

use crate::arena::machine;
use crate::memory;
use crate::table::Table;
use contestants::{Contestant, Keeping};
use engine::Kind;
use findings::Findings;
use measured::Measured;
use plan::{Plan, Size};
use stage::{Line, Stage};
use work::Until;

pub use plan::USAGE;

pub fn run(options: &[String]) -> Result<(), String> {
    let plan = Plan::new(options)?;
    memory::stop_counting();
    println!("{}", machine::description());
    let sync = || format!("{:.2} ms", machine::sync_latency(&env::temp_dir()).as_secs_f64() * 1e3);
    println!("a small write and fdatasync take {} before the run\n", sync());
    let mut findings = Findings::default();
    for kind in Kind::ALL {
        let mut table: Option<Table> = None;
        for contestant in Contestant::on(kind).iter().copied().filter(|who| plan.takes_part(kind, *who)) {
            let table = table.get_or_insert_with(|| {
                let title = format!("{}, 200-byte bodies", kind.start().version());
                Table::new(&[&[title.as_str()], &measured::HEADINGS[..]].concat())
            });
            let mut note = |line: Line, measured: Measured| {
                let label = format!("{}: {}", contestant.heading(), line.label());
                let cells = measured.cells();
                eprintln!("{}, {label}: {}", kind.name(), cells.join("  "));
                table.row([label].into_iter().chain(cells).collect());
                findings.lines.push((kind, contestant, line, measured));
            };
            let ended = match contestant {
                Contestant::Punctual => own::measure(kind, &plan.size, &mut note, &mut findings.own),
                Contestant::Script(peer) => script::measure(kind, peer, plan.size.script)
                    .map(|lines| lines.into_iter().for_each(|(line, measured)| note(line, measured))),
                _ => others(kind, contestant, &plan.size, &mut note),
            };
            if let Err(error) = ended {
                eprintln!("{}: {} failed: {error}", kind.name(), contestant.heading());
            }
        }
        if let Some(table) = table {
            table.print();
        }
    }
    findings.own.print();
    aims::print(&findings);
    println!("a small write and fdatasync take {} after the run\n", sync());
    Ok(())
}

fn others(kind: Kind, contestant: Contestant, size: &Size, note: &mut dyn FnMut(Line, Measured)) -> io::Result<()> {
    let stage = Stage::set(kind, contestant, Keeping::History)?;
    for line in Line::of(contestant) {
        note(*line, stage.measure(*line, Until::time(size.lasting))?);
    }
    Ok(())
}
