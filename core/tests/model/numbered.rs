//! What is done to one row by its number.

use punctual_core::store::Table;
use punctual_core::{Answer, Ending, Phase, Refused, Reply, RowId, Shift, Take, What};
use punctual_core::{Millis, Name};

use super::consumers::asks_for_some;
use super::{Model, Number};

impl Model {
    fn numbered(&self, row: &RowId) -> Result<Number, Refused> {
        self.find(&row.key).filter(|number| *number == row.number).ok_or(Refused::NothingThere)
    }

    pub fn remove(&mut self, row: &RowId, token: Option<u64>) -> Reply {
        let number = self.numbered(row)?;
        let row = &self.rows[&number];
        let is_mine = match row.state.phase {
            Phase::Leased { token: held, .. } => token == Some(held) && self.now < row.at,
            _ => false,
        };
        match row.state.phase {
            Phase::Finished(_) => Err(Refused::NothingThere),
            Phase::Dead(_) => {
                self.purge(number);
                Ok(Answer::Removed(Ending::Purged))
            }
            Phase::Forwarding { ref death, .. } => {
                // What died in this very step has not been sent on yet.
                if death.at == self.now {
                    self.sent.retain(|sent| sent.number != number);
                }
                self.note(number, What::Purged);
                self.end(number, Ending::Purged);
                Ok(Answer::Removed(Ending::Purged))
            }
            Phase::Leased { .. } if is_mine => {
                self.end(number, Ending::Done);
                Ok(Answer::Removed(Ending::Done))
            }
            Phase::Leased { .. } | Phase::Spread(_) | Phase::Waiting => match self.open_rows(number) {
                Err(standing) => Err(Refused::LeaseLost { now: Some(standing) }),
                Ok(open) => {
                    open.into_iter().for_each(|number| self.end(number, Ending::Cancelled));
                    Ok(Answer::Removed(Ending::Cancelled))
                }
            },
        }
    }

    pub fn hasten(&mut self, row: &RowId) -> Reply {
        let number = self.numbered(row)?;
        let row = &self.rows[&number];
        if row.table == Table::Dead {
            return self.replay(number).map(Answer::Hastened);
        } else if row.is_waiting() && row.at > self.now {
            let delay = row.delay();
            self.check_return(number, &[])?;
            let past = self.row(number).state.past_mut();
            (past.delay, past.replays) = (Some(delay), past.replays + 1);
            self.shift(number, Some(Shift::In(Millis::ZERO)), None);
        } else {
            return Err(Refused::NothingThere);
        }
        Ok(Answer::Hastened(self.standing(number)))
    }

    pub fn take(&mut self, take: &Take) -> Reply {
        asks_for_some("lease", take.lease)?;
        let number = self.numbered(&take.row)?;
        let row = self.rows[&number].clone();
        let worth_it = row.is_waiting() && self.now < row.expires_at();
        if row.table != Table::Dead && !worth_it {
            return Err(Refused::NothingThere);
        }
        let own = row.ready_in.clone().or(row.state.queue.clone()).filter(|queue| self.queues.contains_key(queue));
        let queues: Vec<Name> = match own {
            Some(own) => vec![own],
            None if self.is_detained(&row).is_some() => {
                return Err(Refused::BeingDeleted(self.is_detained(&row).expect("it is")));
            }
            None => self.route(&row.topic, row.state.routing_key.as_ref()),
        };
        let Some(queue) = queues.first().filter(|_| queues.len() == 1 || row.part.is_some()) else {
            return Err(Refused::NothingThere);
        };
        if row.ready_in.is_none() {
            self.call_up(number, queue);
        }
        Ok(Answer::Reserved(vec![self.lease(number, queue, &take.consumer, take.lease)]))
    }

    /// It is due now, in this queue.
    fn call_up(&mut self, number: Number, queue: &Name) {
        let now = self.now;
        if self.rows[&number].table == Table::Dead {
            self.note(number, What::Replayed);
            self.row(number).recall(now);
        } else {
            let delay = self.rows[&number].delay();
            let row = self.row(number);
            row.state.past_mut().delay = Some(delay);
            row.state.due = now;
            self.note(number, What::Rescheduled { due: now });
        }
        let row = self.row(number);
        (row.table, row.at, row.state.phase) = (Table::Live, now, Phase::Waiting);
        row.state.queue = Some(queue.clone());
        self.note(number, What::Fired);
    }
}
