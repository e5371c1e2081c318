//! Looking at jobs and tubes, kicking, pausing: what reads first what is durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use punctual_core::store::Bodies;
use punctual_core::view::{Kept, Listing, LiveState, RowView, TaskView};
use punctual_core::{Answer, Command, Millis, Name, PauseNote, Scope, Standing, TimeRange, Timestamp};
use punctual_node::{Error, Number};

use crate::answer::Word;
use crate::connection::{Apart, Connection, DEFAULT};
use crate::door::{Door, millis};
use crate::translate::word_for;
use crate::tubes::{Pause, Tube};
use crate::yaml::{self, JobCounts, JobState, JobStats, ServerStats, TubeStats};

/// How many jobs are kicked together.
const KICKED_TOGETHER: usize = 1_000;

/// How many topics are looked at together.
const NAMES_TOGETHER: usize = 1_000;

/// The longest pause that the protocol can tell: one without an end looks like this.
const LONGEST_PAUSE: Millis = Millis::from_secs(u32::MAX as u64);

/// How often the first of a queue is looked for that others take meanwhile.
const LOOKS: usize = 3;

impl Connection<'_> {
    pub async fn look(&mut self, apart: Apart) {
        let used = self.used.tube.name.clone();
        let looked = match apart {
            Apart::Peek(id) => self.peek(id).await,
            Apart::PeekReady => self.peek_ready(&used).await,
            Apart::PeekDelayed => self.peek_first(self.door.delayed(&used)).await,
            Apart::PeekBuried => self.peek_first(buried(&used)).await,
            Apart::Kick(most) => self.kick(&used, most).await,
            Apart::Stats => self.stats().await,
            Apart::StatsJob(id) => self.stats_job(id).await,
            Apart::StatsTube(tube) => self.stats_tube(&tube).await,
            Apart::ListTubes => self.list_tubes().await,
            Apart::PauseTube(tube, pause) => self.pause_tube(&tube, pause).await,
            Apart::ReserveJob(id) => self.reserve_job(id).await,
            Apart::Reserve(_) => unreachable!("a reserve may wait and is no look"),
        };
        if let Err(error) = looked {
            self.output.word(word_for(&error));
        }
    }

    async fn peek(&mut self, id: u64) -> Result<(), Error> {
        if !self.find(id).await? {
            self.output.word(Word::NotFound);
        }
        Ok(())
    }

    /// Shows a job if there is one; refused if it is long and too many answers wait for their readers. Its room is free
    /// again before it is written: only if it has to wait then, it takes room for as long as that.
    async fn find(&mut self, id: u64) -> Result<bool, Error> {
        let found = self.door.handle.numbered_held(Number(id)).await?.filter(|(found, _)| is_open(found));
        if let Some((found, _room)) = &found {
            self.output.found(id, &found.task.body);
        }
        Ok(found.is_some())
    }

    async fn peek_ready(&mut self, tube: &Name) -> Result<(), Error> {
        for _ in 0..LOOKS {
            let Some(number) = self.door.handle.first(tube).await? else { break };
            if self.find(number.0).await? {
                return Ok(());
            }
        }
        self.output.word(Word::NotFound);
        Ok(())
    }

    async fn peek_first(&mut self, listing: Listing) -> Result<(), Error> {
        let first = self.door.page(&listing, 1).await?.into_iter().next();
        let id = first.map(|task| self.door.id_of(&task));
        match id {
            Some(id) => self.peek(id).await,
            None => {
                self.output.word(Word::NotFound);
                Ok(())
            }
        }
    }

    /// Brings back buried jobs, the oldest first; delayed ones if none is buried.
    async fn kick(&mut self, tube: &Name, limit: u32) -> Result<(), Error> {
        let mut kicked = 0;
        let mut listing = buried(tube);
        // No more than are buried now: what a full queue pushes out meanwhile would go round in circles.
        let buried = self.door.handle.queue(tube).await?.map_or(0, |queue| queue.counts.dead);
        let mut most = limit.min(u32::try_from(buried).unwrap_or(u32::MAX));
        if most == 0 {
            listing = self.door.delayed(tube);
            most = limit;
        }
        while kicked < most {
            let together = KICKED_TOGETHER.min((most - kicked) as usize);
            let tasks = self.door.page(&listing, together).await?;
            let hastened = self.hasten(&tasks).await?;
            if hastened == 0 {
                break;
            }
            kicked += hastened;
        }
        self.output.kicked(kicked);
        Ok(())
    }

    /// Makes jobs ready; says how many of them are: those for which there is no room stay what they are.
    async fn hasten(&self, tasks: &[TaskView]) -> Result<u32, Error> {
        let handle = &self.door.handle;
        let numbers = tasks.iter().map(|task| Number(self.door.id_of(task))).collect();
        let rows = handle.numbered(numbers, Bodies::Without).await?.into_iter().flatten();
        let outcomes = handle.carry_out(rows.map(|found| Command::Hasten { row: found.row }).collect()).await;
        let is_ready =
            |outcome: &&Result<Answer, Error>| matches!(outcome, Ok(Answer::Hastened(Standing::Ready { .. })));
        Ok(outcomes.iter().filter(is_ready).count() as u32)
    }

    async fn stats_job(&mut self, id: u64) -> Result<(), Error> {
        let Some(RowView { task, .. }) = self.door.job(id, Bodies::Without).await? else {
            self.output.word(Word::NotFound);
            return Ok(());
        };
        let handle = &self.door.handle;
        let now = handle.now();
        let delivery = &task.delivery;
        let tube = delivery.queue.as_ref().unwrap_or(&task.topic);
        let ttr = match task.lease_time {
            Some(time) => time,
            None => self.door.handle.queue(tube).await?.map(|queue| queue.settings).unwrap_or_default().lease,
        };
        let (state, left) = match &delivery.standing {
            Standing::Scheduled { at } => (JobState::Delayed, less_than(handle.until(*at))),
            Standing::Leased { until, .. } => (JobState::Reserved, less_than(handle.until(*until).min(ttr))),
            Standing::Dead { .. } => (JobState::Buried, Millis::ZERO),
            Standing::Ready { .. } | Standing::Spread { .. } | Standing::Finished { .. } => {
                (JobState::Ready, Millis::ZERO)
            }
        };
        let stats = JobStats {
            id,
            tube,
            state,
            pri: delivery.priority,
            age: duration(now.since(task.scheduled_at)),
            delay: duration(delivery.delay),
            ttr: duration(ttr),
            time_left: duration(left),
            reserves: delivery.past.attempts + delivery.attempts,
            timeouts: delivery.past.failures + delivery.failures,
            releases: delivery.past.releases,
            buries: delivery.past.rejections,
            kicks: delivery.past.replays,
        };
        self.output.ok(&stats.document());
        Ok(())
    }

    async fn stats_tube(&mut self, name: &Name) -> Result<(), Error> {
        let Some((jobs, tube)) = self.door.tube(name).await? else {
            self.output.word(Word::NotFound);
            return Ok(());
        };
        let happened = self.door.handle.happened(name).await;
        let memory = self.door.tubes.memory(name);
        let until = self.door.handle.queue(name).await?.and_then(|queue| queue.settings.paused_until);
        let pause_left =
            until.map_or(Millis::ZERO, |until| less_than(self.door.handle.until(until))).min(LONGEST_PAUSE);
        let told = memory.pause.filter(|pause| Some(pause.until) == until).map(|pause| pause.time);
        let count =
            |count: fn(&Tube) -> &AtomicU64| tube.as_ref().map_or(0, |tube| count(tube).load(Ordering::Relaxed));
        let stats = TubeStats {
            name,
            jobs,
            total_jobs: happened.scheduled,
            using: count(|tube| &tube.using),
            watching: count(|tube| &tube.watching),
            waiting: count(|tube| &tube.waiting),
            deletes: happened.done + happened.cancelled + happened.purged,
            pauses: memory.pauses,
            // One that others have told shows the time that is left of it.
            pause: if pause_left == Millis::ZERO { Duration::ZERO } else { told.unwrap_or(duration(pause_left)) },
            pause_left: duration(pause_left),
        };
        self.output.ok(&stats.document());
        Ok(())
    }

    async fn stats(&mut self) -> Result<(), Error> {
        let total = self.door.handle.total().await?;
        let happened = self.door.handle.work(&Scope::ALL, 0, None).await?.work.happened;
        let tubes = self.door.tube_names().await?.len() as u64;
        // A stats command counts itself.
        self.add_counts();
        let (user_time, system_time) = (self.door.machine.times)();
        let stats = ServerStats {
            jobs: JobCounts {
                urgent: total.urgent,
                ready: total.ready,
                reserved: total.leased,
                delayed: total.waiting.saturating_sub(total.ready),
                buried: total.dead_in_queues,
            },
            commands: &self.door.counters.commands(),
            timeouts: happened.failed,
            total_jobs: happened.scheduled,
            max_job_size: self.door.limits.max_job_size,
            tubes,
            connections: self.door.counters.connections(),
            pid: std::process::id(),
            version: self.door.machine.version,
            user_time,
            system_time,
            uptime: Instant::now() - self.door.started,
            is_draining: self.door.is_draining(),
            id: self.door.session,
            hostname: &self.door.machine.hostname,
            os: &self.door.machine.os,
            platform: &self.door.machine.platform,
        };
        self.output.ok(&stats.document());
        Ok(())
    }

    async fn list_tubes(&mut self) -> Result<(), Error> {
        let names = self.door.tube_names().await?;
        self.output.ok(&yaml::list(names.iter().map(Name::as_str)));
        Ok(())
    }

    async fn pause_tube(&mut self, name: &Name, time: Duration) -> Result<(), Error> {
        let handle = &self.door.handle;
        let Some((_, tube)) = self.door.tube(name).await? else {
            self.output.word(Word::NotFound);
            return Ok(());
        };
        if let Some(tube) = tube.filter(|tube| !tube.is_known()) {
            self.door.know(&tube).await;
        }
        let until = handle.after(millis(time));
        if time.is_zero() {
            handle.resume_queue(name).await?;
        } else {
            let note = PauseNote { by: "beanstalk".into(), since: handle.now(), reason: None };
            handle.pause_queue(name, Some(until), Some(note)).await?;
        }
        self.door.tubes.paused(name, (!time.is_zero()).then_some(Pause { time, until }));
        self.output.word(Word::Paused);
        Ok(())
    }
}

impl Door {
    /// The job with this id: a row that is not finished.
    async fn job(&self, id: u64, bodies: Bodies) -> Result<Option<RowView>, Error> {
        let found = self.handle.numbered(vec![Number(id)], bodies).await?.pop().flatten();
        Ok(found.filter(is_open))
    }

    /// What a tube holds, and who has to do with it; none if it holds nothing and nobody has.
    async fn tube(&self, name: &Name) -> Result<Option<(JobCounts, Option<Arc<Tube>>)>, Error> {
        let (topic, queue) = (self.handle.topic(name).await?, self.handle.queue(name).await?);
        let waiting = topic.map_or(0, |topic| topic.counts.waiting);
        let jobs = queue.map_or(JobCounts { delayed: waiting, ..JobCounts::default() }, |queue| JobCounts {
            urgent: queue.counts.urgent,
            ready: queue.counts.ready,
            reserved: queue.counts.leased,
            delayed: waiting.saturating_sub(queue.counts.ready),
            buried: queue.counts.dead,
        });
        let tube = self.tubes.get(name);
        let held = jobs.ready + jobs.reserved + jobs.delayed + jobs.buried;
        let exists = name.as_str() == DEFAULT || tube.is_some() || held > 0;
        Ok(exists.then_some((jobs, tube)))
    }

    fn id_of(&self, task: &TaskView) -> u64 {
        self.handle.number(&task.topic, &task.id, task.number).0
    }

    /// The jobs of a tube whose time has not come.
    fn delayed(&self, tube: &Name) -> Listing {
        let wakes = TimeRange { from: self.handle.now(), until: Timestamp::NEVER };
        Listing::Live { topic: Some(tube.clone()), state: Some(LiveState::Scheduled), wakes, latest_first: false }
    }

    /// The first tasks of a list, as many as that, fewer only if there are no more.
    async fn page(&self, listing: &Listing, limit: usize) -> Result<Vec<TaskView>, Error> {
        let (mut tasks, mut from) = (Vec::new(), None);
        loop {
            let page = self.handle.list(listing.clone(), from, limit - tasks.len(), Bodies::Without).await?;
            tasks.extend(page.tasks);
            from = page.next;
            if from.is_none() || tasks.len() >= limit {
                return Ok(tasks);
            }
        }
    }

    /// The tubes there are: those that hold jobs, and those that connections have to do with.
    async fn tube_names(&self) -> Result<Vec<Name>, Error> {
        let mut names = self.tubes.names();
        let mut after = None;
        loop {
            let page = self.handle.topics(after, NAMES_TOGETHER, |_| true).await?;
            let counts = page.entries.into_iter().map(|topic| topic.counts);
            names.extend(counts.filter(|topic| topic.waiting + topic.leased + topic.dead > 0).map(|topic| topic.name));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        names.retain(|name| name.as_str() != DEFAULT && crate::number::tube(name.as_bytes()).is_some());
        names.sort();
        names.dedup();
        names.insert(0, Name::new(DEFAULT).expect("a name"));
        Ok(names)
    }
}

/// Whether a row is a job: what is finished is none any more.
fn is_open(found: &RowView) -> bool {
    !matches!(found.task.delivery.standing, Standing::Finished { .. })
}

fn buried(tube: &Name) -> Listing {
    Listing::Kept(Kept { queue: Some(tube.clone()), ..Kept::dead() })
}

/// What is left of a length of time that has begun is less than that, if only by a microsecond, and whole seconds are
/// told of it: right after 10 it is 9.
fn less_than(left: Millis) -> Millis {
    Millis(left.0.saturating_sub(1))
}

fn duration(time: Millis) -> Duration {
    Duration::from_millis(time.0)
}
