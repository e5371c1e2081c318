//! Punctual beside Redis and PostgreSQL, each used as a delayed queue the usual way.

pub mod contestants;
mod delivering;
mod pending;
mod plan;
mod scheduling;

use std::convert::Infallible;
use std::future::Future;
use std::io;

use crate::arena::running::Running;
use crate::arena::tally::{SHARES, shares_ms};
use crate::arena::{self, Contestant, median};
use crate::table::{Table, decimals, grouped};
use contestants::Kind;
use plan::Plan;
use scheduling::{BATCH, BATCH_CONNECTIONS, Load};

pub use plan::USAGE;

pub fn run(options: &[String]) -> Result<(), String> {
    let plan = Plan::new(options, &plan::CHOICE)?;
    arena::run(&plan, async {
        measure(&plan).await.print();
        Ok(())
    })
}

async fn measure(plan: &Plan) -> Table {
    let size = plan.size;
    let mut headings = vec!["200-byte bodies"];
    headings.extend(plan.kinds.iter().map(|kind| kind.heading()));
    let mut table = Table::new(&headings);
    if plan.measures("single") {
        for (connections, label) in [(1, "1 connection"), (64, "64 connections")] {
            let load = Load { connections, together: 1, lasting: size.scheduling, at_most: u64::MAX };
            rates(plan, &mut table, &format!("schedules a second, one at a time, {label}"), &load).await;
        }
    }
    if plan.measures("batches") {
        let (connections, together) = (BATCH_CONNECTIONS, BATCH);
        let load = Load { connections, together, lasting: size.scheduling, at_most: size.in_batches };
        rates(
            plan,
            &mut table,
            &format!("schedules a second, batches of {together}, {connections} connections"),
            &load,
        )
        .await;
    }
    if plan.measures("lateness") {
        for rate in [200, 5_000] {
            lateness(plan, &mut table, rate).await;
        }
    }
    if plan.measures("herd") {
        herd(plan, &mut table).await;
    }
    if plan.measures("pending") {
        pending(plan, &mut table).await;
    }
    table
}

async fn rates(plan: &Plan, table: &mut Table, label: &str, load: &Load) {
    let measured = turns(plan, label, plan.size.rounds, async |running| {
        let rate = scheduling::rate(&running, load).await?;
        let (name, each) = (running.kind.name(), grouped(rate.a_second as u64));
        eprintln!("{label}: {name} {each}; cores: server {:.2}, load {:.2}", rate.server_cores, rate.load_cores);
        Ok(rate.a_second)
    });
    let cells = measured.await.into_iter().map(|rates| median(rates).map(|rate| grouped(rate as u64)));
    row(table, label.to_owned(), cells);
}

async fn lateness(plan: &Plan, table: &mut Table, rate: u64) {
    let label = format!("late at {} a second", grouped(rate));
    let measured = turns(plan, &label, 1, async |running| {
        let late = delivering::lateness(&running, rate, plan.size.steady).await?;
        let shares = shares_ms(&late);
        eprintln!("{label}: {} {shares:?} ms of {}", running.kind.name(), late.len());
        Ok(shares)
    });
    let measured = measured.await;
    for (place, share) in SHARES.into_iter().enumerate() {
        let cells = measured.iter().map(|shares| shares.first().map(|shares| decimals(shares[place], 2)));
        row(table, format!("{label}, {share} ms"), cells);
    }
}

async fn herd(plan: &Plan, table: &mut Table) {
    let label = format!("{} due in one millisecond, all acknowledged after s", grouped(plan.size.herd));
    let measured = turns(plan, &label, plan.size.rounds, async |running| {
        let took = delivering::herd(&running, plan.size.herd, plan.size.herd_ahead).await?;
        eprintln!("{label}: {} {took:.2?}", running.kind.name());
        Ok(took.as_secs_f64())
    });
    let cells = measured.await.into_iter().map(|took| median(took).map(|seconds| decimals(seconds, 2)));
    row(table, label, cells);
}

async fn pending(plan: &Plan, table: &mut Table) {
    let tasks = grouped(plan.size.pending);
    let label = format!("{tasks} pending");
    let measured = turns(plan, &label, 1, async |mut running| {
        let pending = pending::pending(&mut running, plan.size.pending).await?;
        let (name, back) = (running.kind.name(), pending.back_after);
        eprintln!("{label}: {name} {:.0} bytes, {:.0} restarted, {back:.2?}", pending.loaded, pending.restarted);
        Ok([pending.loaded, pending.restarted, pending.back_after.as_secs_f64() * 1e3])
    });
    let measured = measured.await;
    let labels = [
        format!("bytes of memory for each of {tasks} pending"),
        "the same after kill -9 and a restart".to_owned(),
        format!("answers again after kill -9 with {tasks} pending, ms"),
    ];
    for (place, label) in labels.into_iter().enumerate() {
        let cells = measured.iter().map(|facts| facts.first().map(|facts| decimals(facts[place], 0)));
        row(table, label, cells);
    }
}

/// Each turn begins with an empty server. Gives what was measured, for each contestant; who fails leaves a gap.
async fn turns<T, Turn: Future<Output = io::Result<T>>>(
    plan: &Plan,
    label: &str,
    rounds: usize,
    turn: impl Fn(Running<Kind>) -> Turn,
) -> Vec<Vec<T>> {
    let tried = arena::turns(plan, rounds, async |kind| {
        let result = match Running::start(kind, plan).await {
            Ok(running) => turn(running).await,
            Err(error) => Err(error),
        };
        let result = result.inspect_err(|error| eprintln!("{label}: {} failed: {error}", kind.name()));
        Ok::<_, Infallible>(result.ok())
    });
    let Ok(measured) = tried.await;
    measured.into_iter().map(|results| results.into_iter().flatten().collect()).collect()
}

fn row(table: &mut Table, label: String, cells: impl IntoIterator<Item = Option<String>>) {
    let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "failed".to_owned()));
    table.row([label].into_iter().chain(cells).collect());
}
