//! How late jobs are under a steady load, and how long a herd that is due within one second takes.

use std::io;
use std::time::{Duration, Instant};

use tokio::time::sleep_until;

use super::answer::Answer;
use super::connection::{Census, Connection, MICROS};
use super::consumers::{Consumers, out_of_turn};
use super::contestants::Kind;
use super::flow::{Flow, Work};
use super::plan::Size;
use crate::arena::rate::Rate;
use crate::arena::running::Running;
use crate::arena::tally::{PATIENCE, shares_ms};
use crate::arena::task::now_us;

/// How many puts of the herd are in flight. With many more, a server that syncs each would handle them long after the
/// moment that they are counted from.
const HERD_IN_FLIGHT: usize = 100;

/// Who would take longer than this to put the herd is too slow for it.
const HERD_AT_MOST: Duration = Duration::from_secs(300);

/// The quantiles of the time from when each job was due until a consumer had its body in hand.
pub async fn lateness(running: &Running<Kind>, rate: u64, size: &Size) -> io::Result<(Rate, [f64; 4])> {
    let jobs = rate * size.steady.as_secs();
    let consumers = Consumers::of(jobs);
    let mut crew = consumers.attend(running).await?;
    let producer = Connection::open(running.port).await?;
    let (steady, delays) = (size.steady, size.delays);
    let work = async {
        crew.add(produce(producer, jobs, steady, delays));
        let at_most = steady + Duration::from_secs(delays.1) + PATIENCE;
        consumers.all_deleted(&mut crew, at_most).await?;
        Ok((jobs, shares_ms(&consumers.tally.late_us())))
    };
    let measured = Rate::of(running, work).await?;
    Connection::open(running.port).await?.holds(&Census::default()).await?;
    Ok(measured)
}

/// Puts evenly over the time, whatever the answers take: what comes within a millisecond is sent together.
async fn produce(mut connection: Connection, jobs: u64, lasting: Duration, delays: (u64, u64)) -> io::Result<()> {
    let started = Instant::now();
    for job in 0..jobs {
        let at = started + lasting.mul_f64(job as f64 / jobs as f64);
        if at > Instant::now() {
            connection.exchange_now()?;
            all_inserted(&mut connection)?;
            sleep_until(at.into()).await;
        }
        connection.put(fastrand::u64(delays.0..=delays.1));
    }
    while connection.in_flight > 0 {
        let Answer::Inserted = connection.next().await? else { return Err(out_of_turn()) };
    }
    Ok(())
}

fn all_inserted(connection: &mut Connection) -> io::Result<()> {
    while let Some(answer) = connection.arrived()? {
        let Answer::Inserted = answer else { return Err(out_of_turn()) };
    }
    Ok(())
}

pub struct Herd {
    /// How long after the first the last is due, in seconds: a delay is a whole number of them.
    pub spread: f64,
    /// From when the first was due, in milliseconds.
    pub first_received: f64,
    /// From when the last was due, in seconds.
    pub last_received: f64,
    pub all_deleted: f64,
    pub late_p50_ms: f64,
}

/// The rate is that from the first put to the last delete; only what it costs is of interest.
pub async fn herd(running: &Running<Kind>, jobs: u64) -> io::Result<(Rate, Herd)> {
    let (taking, delayed) = time_to_put(running, jobs).await?;
    let mut producer = Connection::open(running.port).await?;
    let consumers = Consumers::of(jobs);
    let work = async {
        let due_us = put_herd(&mut producer, jobs, taking).await?;
        let mut crew = consumers.attend(running).await?;
        consumers.all_deleted(&mut crew, taking * 2 + PATIENCE).await?;
        let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / MICROS as f64;
        let (first_us, last_us) = consumers.received_us();
        let [late_p50_ms, ..] = shares_ms(&consumers.tally.late_us());
        let herd = Herd {
            spread: seconds(due_us.0, due_us.1),
            first_received: seconds(due_us.0, first_us) * 1e3,
            last_received: seconds(due_us.1, last_us),
            all_deleted: seconds(due_us.1, now_us()),
            late_p50_ms,
        };
        Ok((jobs, herd))
    };
    let measured = Rate::of(running, work).await?;
    producer.holds(&Census { delayed, ..Census::default() }).await?;
    Ok(measured)
}

/// Tried out with jobs that are far from due: gives how many of them there are now.
async fn time_to_put(running: &Running<Kind>, jobs: u64) -> io::Result<(Duration, u64)> {
    const TRIED_FOR: Duration = Duration::from_millis(500);
    let puts = Flow { connections: 1, in_flight: HERD_IN_FLIGHT, work: Work::Puts };
    let started = Instant::now();
    let (tried, _) = puts.through(running.connect(1).await?, TRIED_FOR, u64::MAX).await?;
    // The disk may be much slower in the next moment.
    let seconds = 2.0 + 3.0 * jobs as f64 * started.elapsed().as_secs_f64() / tried as f64;
    if seconds > HERD_AT_MOST.as_secs_f64() {
        return Err(io::Error::new(io::ErrorKind::TimedOut, format!("putting the herd would take {seconds:.0} s")));
    }
    Ok((Duration::from_secs_f64(seconds), tried))
}

/// All due within the second that begins after that time; gives when the first and the last are due.
async fn put_herd(connection: &mut Connection, jobs: u64, ahead: Duration) -> io::Result<(u64, u64)> {
    let from_us = now_us() + ahead.as_micros() as u64;
    connection.enough = HERD_IN_FLIGHT / 2;
    let mut due_us = (u64::MAX, 0);
    let mut begun = 0;
    while begun < jobs || connection.in_flight > 0 {
        while begun < jobs && connection.in_flight < HERD_IN_FLIGHT {
            let delay = from_us.saturating_sub(now_us()).div_ceil(MICROS);
            let due = connection.put(delay);
            due_us = (due_us.0.min(due), due_us.1.max(due));
            begun += 1;
        }
        let Answer::Inserted = connection.next().await? else { return Err(out_of_turn()) };
        all_inserted(connection)?;
    }
    connection.enough = 0;
    if now_us() > from_us {
        return Err(io::Error::new(io::ErrorKind::TimedOut, format!("putting the herd took longer than {ahead:.1?}")));
    }
    Ok(due_us)
}
