//! Changes of settings: written down in an entry of the store, adopted by all shards, struck off; by administrators of
//! several nodes at once, any of whom may die, stand still or be cut off in the midst of it.

use punctual_center::changes::{End, Heeded, Next, Seen, Undertaking, Verdict, is_gone, rows_gone, told};
use punctual_center::{Changes, Error};
use punctual_core::store::{Roll, ShardId, Store};
use punctual_core::{Adopt, Answer, Certainty, Command, Refused, Reply};

use crate::Sabotage;
use crate::clock::Moment;
use crate::demand::{Demand, Purpose, Wish};
use crate::node::{Cause, Doing, Work};
use crate::record::Tag;
use crate::say;
use crate::world::{Event, World};

/// For how long shards are asked again that cannot adopt a change.
const PATIENCE: Moment = 5_000;
/// How soon they are asked again.
const PAUSE: Moment = 20;

impl World {
    /// Somebody wants something changed at this node.
    pub(crate) fn change(&mut self, index: usize, wish: Wish, tag: Tag) {
        self.give_work(index, Work::Change(tag, wish));
    }

    fn give_work(&mut self, index: usize, work: Work) {
        self.nodes[index].administrator.waiting.push_back(work);
        self.take_up(index);
    }

    /// The administrator turns to the next thing, if it has nothing to do.
    fn take_up(&mut self, index: usize) {
        let administrator = &mut self.nodes[index].administrator;
        if administrator.doing.is_some() {
            return;
        }
        let Some(work) = administrator.waiting.pop_front() else { return };
        let (cause, (undertaking, step)) = match work {
            Work::Change(tag, wish) => {
                let making = Undertaking::make(wish.subject());
                (Cause::Change { tag, wish, number: None, amends: None }, making)
            }
            Work::Tidy => (Cause::Tidy, Undertaking::tidy()),
            Work::End(deletion, outcomes) => match rows_gone(&outcomes) {
                None => {
                    let settling = Undertaking::settle(deletion.number);
                    (Cause::Settle(deletion), settling)
                }
                Some(ended) if is_gone(&ended) => {
                    let striking = Undertaking::strike_off(deletion.number);
                    (Cause::StrikeOff(deletion, ended), striking)
                }
                Some(ended) => {
                    administrator.known.tidied(None, self.moment * 1_000);
                    self.end_deletion(index, deletion.number, &ended);
                    return self.take_up(index);
                }
            },
        };
        self.nodes[index].administrator.doing = Some(Doing { cause, undertaking, step, asks_since: None });
        self.administer_soon(index);
    }

    /// What the administrator does next takes its way to the store.
    fn administer_soon(&mut self, index: usize) {
        let (life, takes) = (self.nodes[index].life, self.beat_takes());
        self.after(takes, Event::Administer(index, life));
    }

    /// The administrator does what is next.
    pub(crate) fn administer(&mut self, index: usize, life: u64) {
        let node = &mut self.nodes[index];
        if !node.up || node.life != life {
            return;
        }
        if !node.is_awake(self.moment) {
            let until = node.stalled_until;
            return self.after(until - self.moment, Event::Administer(index, life));
        }
        let Some(mut doing) = node.administrator.doing.take() else { return };
        let next = match std::mem::replace(&mut doing.step, Next::Read) {
            Next::Look => match self.nodes[index].administrator.known.quiet() {
                Some(seen) => Ok(doing.undertaking.looked(seen)),
                None => self.read_changes(index, &mut doing),
            },
            Next::Read => self.read_changes(index, &mut doing),
            Next::Decide => self.decide(index, &mut doing),
            Next::Write(seen, changes) => {
                let before = self.entry_of_changes();
                let laid = changes.lay();
                let written = self.reached(index).cluster_put(Changes::KEY, seen.revision, &laid);
                self.check_written(index, &before, &seen, &doing);
                let known = &mut self.nodes[index].administrator.known;
                match written {
                    Ok(Ok(revision)) => Ok(doing.undertaking.written(Some(known.written(&seen, changes, revision)))),
                    Ok(Err(_)) => {
                        self.census.count("changes that somebody was quicker with");
                        known.forget();
                        Ok(doing.undertaking.written(None))
                    }
                    Err(error) => {
                        known.forget();
                        Err(doing.undertaking.failed(Error::unknown_outcome(error.to_string())))
                    }
                }
            }
            Next::Adopt(adopt, revision) => {
                doing.asks_since.get_or_insert(self.moment);
                doing.step = Next::Adopt(adopt.clone(), revision);
                self.nodes[index].administrator.doing = Some(doing);
                return self.ask_all(index, adopt, None);
            }
            Next::Over(end) => return self.concluded(index, doing.cause, end),
        };
        self.go_on(index, doing, next);
    }

    /// What an administrator does comes to its next step, or cannot go on.
    fn go_on(&mut self, index: usize, mut doing: Doing, next: Result<Next, Error>) {
        doing.step = next.unwrap_or_else(|error| Next::Over(End::Failed(error)));
        self.nodes[index].administrator.doing = Some(doing);
        self.administer_soon(index);
    }

    fn read_changes(&mut self, index: usize, doing: &mut Doing) -> Result<Next, Error> {
        let entry = self.reached(index).cluster_get(Changes::KEY);
        let entry = entry.map_err(|error| Error::nothing_done(error.to_string()))?;
        let seen = self.nodes[index].administrator.known.read(entry.as_ref());
        let mut seen = seen.map_err(|error| Error::nothing_done(error.to_string()))?;
        if self.sabotage == Some(Sabotage::HastyChanges) {
            seen.is_adopted = true;
        }
        Ok(doing.undertaking.looked(seen))
    }

    /// Asks all shards to adopt a change, or for the end of a deletion.
    fn ask_all(&mut self, index: usize, adopt: Adopt, deletion: Option<Adopt>) {
        let node = &mut self.nodes[index];
        let mut shards: Vec<ShardId> = (0..self.profile.shards).map(ShardId).collect();
        if self.sabotage == Some(Sabotage::HalfChanges) && shards.len() > 1 {
            shards.pop();
        }
        let round = node.administrator.begin_round(deletion, shards.len());
        let from = Some((index, node.life));
        for shard in shards {
            let command = Command::Adopt(Box::new(adopt.clone()));
            self.send(Demand::command(Purpose::Adopt(round), shard, command), from);
        }
    }

    /// A shard has said what came of it.
    pub(crate) fn adopt_answered(&mut self, index: usize, round: u64, reply: Option<Reply>) {
        let outcome = match reply {
            Some(reply) => reply.map_err(Error::from),
            None => Err(Error::unknown_outcome("a shard has not answered")),
        };
        let Some(asked) = self.nodes[index].administrator.answered(round, outcome) else { return };
        match asked.deletion {
            Some(deletion) => self.give_work(index, Work::End(deletion, asked.outcomes)),
            None => self.judge(index, &Verdict::of(&asked.outcomes)),
        }
    }

    /// All shards have been asked to adopt what is under way.
    fn judge(&mut self, index: usize, verdict: &Verdict) {
        let Some(mut doing) = self.nodes[index].administrator.doing.take() else { return };
        let (Next::Adopt(_, revision), Some(since)) = (&doing.step, doing.asks_since) else { return };
        if let Verdict::Again(error) = verdict {
            self.census.count("changes that not all shards could adopt at once");
            if self.moment >= since + PATIENCE {
                let error = doing.undertaking.failed(error.clone());
                return self.go_on(index, doing, Err(error));
            }
            self.nodes[index].administrator.doing = Some(doing);
            let life = self.nodes[index].life;
            return self.after(PAUSE, Event::Administer(index, life));
        }
        if *verdict == Verdict::Adopted {
            self.nodes[index].administrator.known.adopted(*revision);
        }
        doing.asks_since = None;
        let micros = self.number_for(index);
        let step = doing.undertaking.adopted(verdict.clone(), micros);
        let refused = doing.undertaking.refused_deletion();
        self.go_on(index, doing, Ok(step));
        // Whoever waited for it may want the next thing: the administrator has to be seen at work by then.
        if let Some((number, refused)) = refused {
            self.census.count("deletions taken back");
            self.end_deletion(index, number, &Err(refused));
        }
    }

    /// Something has come to its end.
    fn concluded(&mut self, index: usize, cause: Cause, end: End) {
        let now = self.moment * 1_000;
        match (cause, end) {
            (Cause::Change { tag, wish, .. }, End::Deleting(deletion)) => match &wish {
                Wish::Delete { .. } => self.follow(index, deletion, Some((tag, wish))),
                _ => self.tell(index, tag, Err(Refused::BeingDeleted(wish.subject().name().clone()).into())),
            },
            (Cause::Change { tag, .. }, End::Failed(error)) => self.tell(index, tag, Err(error)),
            (Cause::Change { tag, number, .. }, _) => {
                self.census.count("changes made");
                if let Some(number) = number {
                    self.auditor.told_made(number, self.profile.shards);
                }
                self.tell(index, tag, Ok(Answer::Noted));
            }
            (Cause::Tidy, End::Tidied(revision, deletions)) => {
                self.census.count("looks after what is left of changes");
                for deletion in deletions {
                    if !self.nodes[index].administrator.followed.contains_key(&deletion.number) {
                        self.follow(index, deletion, None);
                    }
                }
                self.nodes[index].administrator.known.tidied(Some(revision), now);
            }
            (Cause::Tidy, _) => self.nodes[index].administrator.known.tidied(None, now),
            (Cause::Settle(deletion), End::Listed(true)) => {
                // It has begun everywhere after all.
                self.ask_all(index, deletion.clone(), Some(deletion));
            }
            (Cause::Settle(deletion), _) => {
                self.nodes[index].administrator.known.tidied(None, now);
                let ended = Err(Error::unknown_outcome("another node has seen to this deletion"));
                self.end_deletion(index, deletion.number, &ended);
            }
            (Cause::StrikeOff(deletion, ended), end) => {
                let struck_off = match end {
                    End::Failed(error) => Err(error),
                    end => Ok(end),
                };
                self.end_deletion(index, deletion.number, &told(&deletion, ended, &struck_off));
            }
        }
        self.take_up(index);
    }

    /// Waits for the end of a deletion, with those who do already.
    fn follow(&mut self, index: usize, deletion: Adopt, who: Option<(Tag, Wish)>) {
        let followed = &mut self.nodes[index].administrator.followed;
        let is_new = !followed.contains_key(&deletion.number);
        followed.entry(deletion.number).or_default().extend(who);
        if is_new {
            self.ask_all(index, deletion.clone(), Some(deletion));
        } else {
            self.census.count("deletions joined");
        }
    }

    /// A deletion has ended so: all who wait for it hear how.
    fn end_deletion(&mut self, index: usize, number: u64, ended: &Result<u64, Error>) {
        let waiting = self.nodes[index].administrator.followed.remove(&number);
        for (tag, wish) in waiting.into_iter().flatten() {
            let is_forced = matches!(wish, Wish::Delete { force: true, .. });
            match ended {
                // It was joined, and had been asked for without force.
                Err(Error::Refused(Refused::NotEmpty { .. })) if is_forced => {
                    self.give_work(index, Work::Change(tag, wish));
                }
                Ok(rows) => {
                    self.auditor.told_made(number, self.profile.shards);
                    self.tell(index, tag, Ok(Answer::Deleted(*rows)));
                }
                Err(error) => self.tell(index, tag, Err(error.clone())),
            }
        }
    }

    /// Tells whoever wanted something changed what came of it.
    fn tell(&mut self, index: usize, tag: Tag, outcome: Result<Answer, Error>) {
        say!(self.trace, "node {index} says to {tag}: {outcome:?}");
        match outcome {
            Ok(answer) => self.deliver(tag, Ok(answer)),
            Err(Error::Refused(refused)) => self.deliver(tag, Err(refused)),
            Err(error) if error.certainty() == Certainty::NothingDone => {
                self.after(5, Event::Deny(tag, error.to_string()));
            }
            Err(_) => {
                self.census.count("changes whose outcome is unknown");
                self.after(5, Event::Answer(tag, None));
            }
        }
    }

    /// Heeds what a roll says of the entry.
    pub(crate) fn look_after_changes(&mut self, index: usize, roll: &Roll) {
        let node = &mut self.nodes[index];
        let has_first_shard = roll.keeper(ShardId(0)).is_some_and(|keeper| keeper.who == node.membership.who);
        let now = self.moment * 1_000;
        let heeded = node.administrator.known.heed(roll.revision(Changes::KEY), has_first_shard, now);
        let Heeded { is_left, .. } = heeded;
        if is_left && self.sabotage != Some(Sabotage::LeavesChanges) {
            self.give_work(index, Work::Tidy);
        }
    }

    /// Whether nothing is left in the entry.
    pub(crate) fn is_tidy(&self) -> bool {
        let changes = self.entry_of_changes();
        changes.under_way().is_none() && changes.deletions().next().is_none()
    }

    /// What the entry says.
    fn entry_of_changes(&self) -> Changes {
        let entry = self.store.memory().cluster_get(Changes::KEY).ok().flatten();
        entry.and_then(|entry| Changes::read(&entry.value).ok()).unwrap_or_default()
    }

    /// Lets the auditor see what was written in the entry, whether or not the writer hears of that.
    fn check_written(&mut self, index: usize, before: &Changes, seen: &Seen, doing: &Doing) {
        let after = self.entry_of_changes();
        if after == *before {
            return;
        }
        let given = self.store.memory().cluster_get(Changes::KEY).ok().flatten().map(|entry| entry.revision);
        self.auditor.gave_revision(given.unwrap_or(0));
        let Seen { revision, changes, .. } = seen;
        say!(self.trace, "* node {index}, who has seen {changes:?} at revision {revision}, writes {after:?}");
        self.census.count("changes written down");
        self.auditor.wrote(before, &after, self.profile.shards);
        // Who beats seldom by now has to look after it.
        let looking = if self.draining { self.nodes.len() } else { 0 };
        for index in 0..looking {
            let delay = self.rng.below(1_000);
            self.tend_within(index, delay);
        }
        if let Cause::Change { amends: Some(as_it_was), number, .. } = &doing.cause
            && after.under_way().map(|change| change.number) == *number
        {
            self.auditor.amended(as_it_was);
        }
    }
}
