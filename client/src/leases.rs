//! Taking deliveries, and saying what became of them.

use std::time::Duration;

use http::Method;
use punctual_wire::{
    Action, Actions, Answer, Deliveries, Delivery, Do, Ending, Problem, Reserve, Settled, SettledOutcome, Settlements,
    Span, Standing, Time,
};

use crate::address::Path;
use crate::client::{Client, parse, write};
use crate::error::Error;
use crate::transport::{Call, Repeat};

/// At most so many actions go into one request: the server's limit.
pub(crate) const ACTIONS: usize = 10_000;

impl Client {
    /// Takes deliveries to work on, waiting for the first one as long as the request says.
    ///
    /// This is not repeated once it may have been carried out: deliveries whose answer was lost are handed out
    /// again when their leases end.
    pub async fn reserve(&self, reserve: Reserve) -> Result<Vec<Delivery>, Error> {
        let wait = reserve.wait.unwrap_or_default().as_duration();
        let (path, body) = (Path::new("reserve"), write(&reserve)?);
        let call = Call { method: Method::POST, path, body, if_match: None, repeat: Repeat::Undone, wait, limit: None };
        Ok(parse::<Deliveries>(&self.transport.call(call).await?)?.deliveries)
    }

    /// Says what became of deliveries; each is answered by itself, in their order.
    ///
    /// A lease is good for one answer, so this is safe to repeat. Should the answer to the first attempt be lost, then
    /// a delivery that the second attempt finds done counts as acknowledged, one that was rejected as rejected,
    /// and one that waits again as released.
    pub async fn settle(&self, actions: Vec<Action>) -> Result<Vec<Result<Settled, Problem>>, Error> {
        let mut results = Vec::with_capacity(actions.len());
        let mut rest = actions;
        while !rest.is_empty() {
            let later = rest.split_off(rest.len().min(ACTIONS));
            results.extend(self.settle_at_once(Actions { actions: rest }).await?);
            rest = later;
        }
        Ok(results)
    }

    async fn settle_at_once(&self, actions: Actions) -> Result<Vec<Result<Settled, Problem>>, Error> {
        let (answers, lost_before) = self.settle_plainly(&actions, Repeat::Safe, None).await?;
        let answers = answers.into_iter().zip(&actions.actions);
        let answers =
            answers.map(|(answer, action)| if lost_before { look_again(action.what, answer) } else { answer });
        Ok(answers.map(Answer::into_result).collect())
    }

    /// The server's answers as they are, and whether they may be about a repetition.
    pub(crate) async fn settle_plainly(
        &self,
        actions: &Actions,
        repeat: Repeat,
        limit: Option<Duration>,
    ) -> Result<(Vec<Answer<Settled>>, bool), Error> {
        let (path, body) = (Path::new("leases"), write(actions)?);
        let call = Call { method: Method::POST, path, body, if_match: None, repeat, wait: Duration::ZERO, limit };
        let answer = self.transport.call(call).await?;
        let results = parse::<Settlements>(&answer)?.results;
        if results.len() != actions.actions.len() {
            let reason = format!("{} answers to {} actions", results.len(), actions.actions.len());
            return Err(Error::BadAnswer { status: answer.status.as_u16(), reason });
        }
        Ok((results, answer.lost_before))
    }

    /// The work is done.
    pub async fn acknowledge(&self, lease: &str) -> Result<(), Error> {
        self.settle_one(Action::new(Do::Acknowledge, lease)).await.map(|_| ())
    }

    /// The work is not done, and somebody else may try: `after` a time of your choice, or, without, by the retry
    /// policy, in which case the attempt counts as failed. The note stays with the task. Answers where the delivery
    /// stands now.
    pub async fn release(
        &self,
        lease: &str,
        after: Option<Span>,
        priority: Option<u32>,
        note: Option<&str>,
    ) -> Result<Standing, Error> {
        let note = note.map(str::to_owned);
        let settled = self.settle_one(Action { after, priority, note, ..Action::new(Do::Release, lease) }).await?;
        settled.standing.ok_or_else(|| missing("standing"))
    }

    /// The work cannot be done: the delivery becomes a dead letter, with this note.
    pub async fn reject(&self, lease: &str, note: Option<&str>) -> Result<(), Error> {
        let note = note.map(str::to_owned);
        self.settle_one(Action { note, ..Action::new(Do::Reject, lease) }).await.map(|_| ())
    }

    /// The work takes longer: so long from now, or, without, as long as the task or its queue gives, and no longer than
    /// these allow. Answers the new end.
    pub async fn extend(&self, lease: &str, by: Option<Span>) -> Result<Time, Error> {
        let settled = self.settle_one(Action { after: by, ..Action::new(Do::Extend, lease) }).await?;
        settled.until.ok_or_else(|| missing("until"))
    }

    async fn settle_one(&self, action: Action) -> Result<Settled, Error> {
        let result = self.settle(vec![action]).await?.pop().ok_or_else(|| missing("results"))?;
        Ok(result?)
    }
}

fn missing(field: &str) -> Error {
    Error::BadAnswer { status: 200, reason: format!("{field:?} is missing") }
}

/// The answer to an action whose first attempt may have been carried out.
///
/// A lost lease is then no proof that the action failed; where the delivery stands tells. A delivery that is not
/// there any more was finished and is not kept.
pub(crate) fn look_again(what: Do, answer: Answer<Settled>) -> Answer<Settled> {
    let problem = match answer {
        Answer::Refused { problem } if problem.code == "lease-lost" => problem,
        answer => return answer,
    };
    let outcome = match (what, &problem.standing) {
        (Do::Acknowledge, None | Some(Standing::Finished { ending: Ending::Done, .. })) => SettledOutcome::Acknowledged,
        (Do::Reject, Some(Standing::Dead { .. } | Standing::Finished { ending: Ending::Forwarded, .. })) => {
            SettledOutcome::Rejected
        }
        (Do::Release, Some(Standing::Scheduled { .. } | Standing::Ready { .. })) => SettledOutcome::Released,
        _ => return Answer::Refused { problem },
    };
    Answer::Done(Settled { outcome, standing: problem.standing, until: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(standing: Option<Standing>) -> Problem {
        Problem { code: "lease-lost".into(), status: 409, standing, ..Problem::default() }
    }

    fn outcome(what: Do, standing: Option<Standing>) -> Option<SettledOutcome> {
        look_again(what, Answer::Refused { problem: lost(standing) }).into_result().ok().map(|settled| settled.outcome)
    }

    #[test]
    fn what_a_second_try_finds_done_was_acknowledged_by_the_first() {
        let done = Standing::Finished { ending: Ending::Done, at: Time(1) };
        assert_eq!(outcome(Do::Acknowledge, Some(done)), Some(SettledOutcome::Acknowledged));
        assert_eq!(outcome(Do::Acknowledge, None), Some(SettledOutcome::Acknowledged));
    }

    #[test]
    fn what_a_second_try_finds_with_somebody_else_was_not_acknowledged() {
        let leased = Standing::Leased { queue: "q".into(), holder: "other".into(), until: Time(9) };
        assert_eq!(outcome(Do::Acknowledge, Some(leased)), None);
        assert_eq!(outcome(Do::Acknowledge, Some(Standing::Ready { since: Time(1) })), None);
        let other = Problem { code: "unavailable".into(), ..Problem::default() };
        let other = Answer::Refused { problem: other };
        assert_eq!(look_again(Do::Acknowledge, other.clone()), other);
    }

    #[test]
    fn a_second_try_finds_what_was_rejected_or_released() {
        let dead = Standing::Dead { reason: "rejected".into(), at: Time(1), note: None };
        assert_eq!(outcome(Do::Reject, Some(dead)), Some(SettledOutcome::Rejected));
        assert_eq!(outcome(Do::Release, Some(Standing::Scheduled { at: Time(5) })), Some(SettledOutcome::Released));
        assert_eq!(outcome(Do::Extend, Some(Standing::Ready { since: Time(1) })), None);
    }
}
