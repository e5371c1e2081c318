//! Punctual beside beanstalkd: one load that speaks the beanstalk protocol does the same work with each. An answer that
//! is not expected, or a job too many or too few, ends the run; who is only too slow leaves a gap.

mod answer;
mod connection;
mod consumers;
mod contestants;
mod delivering;
mod flow;
mod pending;
mod plan;
mod report;

use std::future::Future;
use std::io;

use crate::arena::rate::Rate;
use crate::arena::running::Running;
use crate::arena::tally::SHARES;
use crate::arena::{self, Contestant};
use crate::table::grouped;
use contestants::Kind;
use flow::{Flow, WINDOW, Work};
use plan::Plan;
use report::{Better, Report};

pub use plan::USAGE;

pub fn run(options: &[String]) -> Result<(), String> {
    let plan = Plan::new(options, &plan::CHOICE)?;
    arena::run(&plan, async {
        let mut report = Report::new(&plan);
        // What was measured before it went wrong is shown as well.
        let ended = measure(&plan, &mut report).await;
        report.print();
        ended
    })
}

async fn measure(plan: &Plan, report: &mut Report) -> io::Result<()> {
    if plan.measures("puts") {
        for (connections, label) in [(1, "1 connection"), (64, "64 connections")] {
            let flow = Flow { connections, in_flight: 1, work: Work::Puts };
            rates(plan, report, &format!("puts a second, one at a time, {label}"), flow).await?;
        }
    }
    let pipelined = format!("1 connection, {} in flight", grouped(WINDOW as u64));
    if plan.measures("pipelined") {
        let flow = Flow { connections: 1, in_flight: WINDOW, work: Work::Puts };
        rates(plan, report, &format!("puts a second, {pipelined}"), flow).await?;
    }
    if plan.measures("lives") {
        for (connections, in_flight, label) in [(64, 1, "one at a time, 64 connections"), (1, WINDOW, &pipelined)] {
            let flow = Flow { connections, in_flight, work: Work::Lives };
            rates(plan, report, &format!("whole lives a second, {label}"), flow).await?;
        }
    }
    if plan.measures("lateness") {
        for rate in plan.size.rates {
            lateness(plan, report, rate).await?;
        }
    }
    if plan.measures("herd") {
        herd(plan, report).await?;
    }
    if plan.measures("pending") {
        pending(plan, report).await?;
    }
    Ok(())
}

async fn rates(plan: &Plan, report: &mut Report, label: &str, flow: Flow) -> io::Result<()> {
    let size = plan.size;
    let rates = turns(plan, label, size.rounds, async |kind| {
        let running = Running::start(kind, plan).await?;
        let rate = flow.rate(&running, size.lasting, size.at_most).await?;
        tell(label, kind, &rate, &format!("{} a second", grouped(rate.a_second as u64)));
        Ok(rate)
    });
    let rates = rates.await?;
    report.row(label, Better::Higher, 0, each(&rates, |rate| Some(rate.a_second)));
    report.costs(label, &rates);
    Ok(())
}

async fn lateness(plan: &Plan, report: &mut Report, rate: u64) -> io::Result<()> {
    let label = format!("late at {} a second", grouped(rate));
    let measured = turns(plan, &label, 1, async |kind| {
        let running = Running::start(kind, plan).await?;
        let (rate, shares) = delivering::lateness(&running, rate, &plan.size).await?;
        tell(&label, kind, &rate, &format!("{shares:?} ms"));
        Ok((rate, shares))
    });
    let measured = measured.await?;
    for (place, share) in SHARES.into_iter().enumerate() {
        report.row(
            &format!("{label}, {share} ms"),
            Better::Lower,
            2,
            each(&measured, |(_, shares)| Some(shares[place])),
        );
    }
    costs(report, &label, &measured);
    Ok(())
}

async fn herd(plan: &Plan, report: &mut Report) -> io::Result<()> {
    let label = format!("{} due within a second", grouped(plan.size.herd));
    let measured = turns(plan, &label, plan.size.rounds, async |kind| {
        let running = Running::start(kind, plan).await?;
        let (rate, herd) = delivering::herd(&running, plan.size.herd).await?;
        tell(&label, kind, &rate, &format!("all deleted {:.2} s after the last was due", herd.all_deleted));
        Ok((rate, herd))
    });
    let measured = measured.await?;
    let mut row = |what: &str, better, places, of: fn(&delivering::Herd) -> f64| {
        report.row(&format!("{label}{what}"), better, places, each(&measured, |(_, herd)| Some(of(herd))));
    };
    row(": the last after the first, s", Better::Neither, 2, |herd| herd.spread);
    row(": the first received, after it was due, ms", Better::Lower, 2, |herd| herd.first_received);
    row(": the last received, after the last was due, s", Better::Lower, 3, |herd| herd.last_received);
    row(": all deleted, after the last was due, s", Better::Lower, 3, |herd| herd.all_deleted);
    row(": late, p50 ms", Better::Lower, 2, |herd| herd.late_p50_ms);
    costs(report, &label, &measured);
    Ok(())
}

async fn pending(plan: &Plan, report: &mut Report) -> io::Result<()> {
    let jobs = grouped(plan.size.pending);
    let label = format!("{jobs} delayed");
    let measured = turns(plan, &label, 1, async |kind| {
        let mut running = Running::start(kind.filling(), plan).await?;
        let pending = pending::pending(&mut running, plan.size.pending, plan.size.settled).await?;
        eprintln!("{label}: {} {:.0} bytes each, restarted {:.0?}", kind.name(), pending.loaded, pending.restarted);
        Ok(pending)
    });
    let measured = measured.await?;
    let loaded = each(&measured, |pending| Some(pending.loaded));
    report.row(&format!("bytes of memory for each of {jobs} delayed"), Better::Lower, 0, loaded);
    let restarted = each(&measured, |pending| Some(pending.restarted?.0));
    report.row("the same after kill -9 and a restart", Better::Lower, 0, restarted);
    let back = each(&measured, |pending| Some(pending.restarted?.1.as_secs_f64() * 1e3));
    report.row(&format!("answers again after kill -9 with {jobs} delayed, ms"), Better::Lower, 0, back);
    Ok(())
}

/// What was measured of each contestant; nothing of one that was too slow in any turn, as the median of the others would
/// flatter it. Any other failure ends the run.
async fn turns<T, Turn: Future<Output = io::Result<T>>>(
    plan: &Plan,
    label: &str,
    rounds: usize,
    turn: impl Fn(Kind) -> Turn,
) -> io::Result<Vec<Vec<T>>> {
    let tried = arena::turns(plan, rounds, async |kind| match turn(kind).await {
        Ok(result) => Ok(Some(result)),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            eprintln!("{label}: {} is too slow: {error}", kind.name());
            Ok(None)
        }
        Err(error) => Err(io::Error::other(format!("{label}: {} failed: {error}", kind.name()))),
    });
    let whole = |results: Vec<Option<T>>| results.into_iter().collect::<Option<Vec<T>>>().unwrap_or_default();
    Ok(tried.await?.into_iter().map(whole).collect())
}

/// One number of each round of each contestant.
fn each<T>(measured: &[Vec<T>], number: impl Fn(&T) -> Option<f64>) -> Vec<Vec<Option<f64>>> {
    measured.iter().map(|rounds| rounds.iter().map(&number).collect()).collect()
}

fn costs<T>(report: &mut Report, label: &str, measured: &[Vec<(Rate, T)>]) {
    let rates: Vec<Vec<Rate>> = measured.iter().map(|rounds| rounds.iter().map(|(rate, _)| *rate).collect()).collect();
    report.costs(label, &rates);
}

fn tell(label: &str, kind: Kind, rate: &Rate, result: &str) {
    let Rate { server_cores, load_cores, .. } = rate;
    eprintln!("{label}: {} {result}; cores: server {server_cores:.2}, load {load_cores:.2}", kind.name());
}
