//! Scheduling tasks, and changing what was scheduled.

use punctual_center::Place;
use punctual_core::store::ShardId;
use punctual_core::{
    Command, Ending, Matching, Name, Reschedule, Ruling, Schedule, Scheduled, Scope, Selected, Shift, Standing, Sweep,
    SweepAction, Swept, Task, TimeRange, Timestamp,
};

use super::{Handle, together};
use crate::error::Error;
use punctual_core::shard_of;

/// How often an id is drawn at most: among a hundred nodes half of them find one of their own.
const DRAWS: usize = 64;

impl Handle {
    /// Takes a task. When this comes back the task is durable. The same topic and id again is the
    /// same task: nothing new is made, and the answer says so.
    pub async fn schedule(&self, task: Task) -> Result<Scheduled, Error> {
        self.ask(self.scheduling(task)).await
    }

    /// Takes many tasks at once; each is answered by itself, in the order of the tasks.
    pub async fn schedule_many(&self, tasks: Vec<Task>) -> Vec<Result<Scheduled, Error>> {
        self.ask_many(tasks.into_iter().map(|task| self.scheduling(task)).collect()).await
    }

    /// The command that takes a task, under its id or one that is made up.
    pub fn scheduling(&self, task: Task) -> Command {
        let (id, id_is_new) = match &task.id {
            Some(id) => (id.clone(), false),
            None => (self.make_up_id(&task.topic), true),
        };
        Command::Schedule(Box::new(Schedule { task, id, id_is_new }))
    }

    /// An id for a task that comes without. It is drawn until its shard is here, so that no other node has to be asked.
    fn make_up_id(&self, topic: &Name) -> Name {
        let now = self.now();
        let draw = || self.shared.ids.next(now);
        let is_near = |id: &Name| self.shared.place(self.shard_of(topic, id)) == Place::Here;
        (0..DRAWS).map(|_| draw()).find(is_near).unwrap_or_else(draw)
    }

    /// Takes a task back, if it is not too late.
    pub async fn cancel(&self, topic: &Name, id: &Name) -> Result<Ruling<()>, Error> {
        self.ask(Command::Cancel { topic: topic.clone(), id: id.clone() }).await
    }

    /// Changes a task's due time, priority or body, if it is not too late; answers with its due time.
    pub async fn reschedule(&self, change: Reschedule) -> Result<Ruling<Timestamp>, Error> {
        self.ask(Command::Reschedule(Box::new(change))).await
    }

    /// Cancels all tasks of a key, maybe of one topic only. A dry run only counts.
    pub async fn cancel_key(&self, key: &Name, topic: Option<&Name>, dry_run: bool) -> Result<Swept, Error> {
        let matching = Matching::Key { key: key.clone(), topic: topic.cloned() };
        self.sweep(Sweep { matching, within: Scope::ALL, action: SweepAction::Cancel, dry_run }).await
    }

    /// Moves the due times of all tasks of a key, maybe of one topic only. A dry run only counts.
    pub async fn shift_key(
        &self,
        key: &Name,
        topic: Option<&Name>,
        shift: Shift,
        dry_run: bool,
    ) -> Result<Swept, Error> {
        let matching = Matching::Key { key: key.clone(), topic: topic.cloned() };
        self.sweep(Sweep { matching, within: Scope::ALL, action: SweepAction::Shift(shift), dry_run }).await
    }

    /// Hands a dead letter or a finished task out again; says where it stands then.
    pub async fn replay(&self, selected: Selected) -> Result<Standing, Error> {
        self.ask(Command::Replay(selected)).await
    }

    /// Removes a dead letter.
    pub async fn purge(&self, selected: Selected) -> Result<(), Error> {
        self.ask(Command::Purge(selected)).await
    }

    /// Hands all dead letters that match out again. A dry run only counts.
    pub async fn replay_dead(
        &self,
        topic: Option<&Name>,
        queue: Option<&Name>,
        died: TimeRange,
        dry_run: bool,
    ) -> Result<Swept, Error> {
        let matching = Matching::Dead { topic: topic.cloned(), queue: queue.cloned(), died };
        self.sweep(Sweep { matching, within: Scope::ALL, action: SweepAction::Replay, dry_run }).await
    }

    /// Removes all dead letters that match. A dry run only counts.
    pub async fn purge_dead(
        &self,
        topic: Option<&Name>,
        queue: Option<&Name>,
        died: TimeRange,
        dry_run: bool,
    ) -> Result<Swept, Error> {
        let matching = Matching::Dead { topic: topic.cloned(), queue: queue.cloned(), died };
        self.sweep(Sweep { matching, within: Scope::ALL, action: SweepAction::Purge, dry_run }).await
    }

    /// Hands a topic's finished tasks of a time range out again, those that ended so or all. A dry run only counts.
    pub async fn replay_history(
        &self,
        topic: &Name,
        finished: TimeRange,
        ending: Option<Ending>,
        dry_run: bool,
    ) -> Result<Swept, Error> {
        let matching = Matching::History { topic: topic.clone(), finished, ending };
        self.sweep(Sweep { matching, within: Scope::ALL, action: SweepAction::Replay, dry_run }).await
    }

    /// Changes all that match, in all shards. On an error some shards may have done it; doing it
    /// again does the rest.
    pub async fn sweep(&self, sweep: Sweep) -> Result<Swept, Error> {
        self.counted(self.sweep_all(sweep).await)
    }

    async fn sweep_all(&self, sweep: Sweep) -> Result<Swept, Error> {
        match sweep.action {
            SweepAction::Replay if !sweep.dry_run => self.shared.check_room()?,
            SweepAction::Shift(_) if !sweep.dry_run => self.shared.check_growth()?,
            _ => {}
        }
        let swept: Vec<Swept> = if sweep.dry_run {
            self.look_all(Command::Sweep(Box::new(sweep))).await?
        } else {
            together(self.ask_all(Command::Sweep(Box::new(sweep))).await)?
        };
        Ok(swept.into_iter().fold(Swept::default(), Swept::plus))
    }

    pub(super) fn shard_of(&self, topic: &str, id: &str) -> ShardId {
        shard_of(topic, id, self.shared.config.shards)
    }
}
