//! Taking deliveries, and saying what became of them.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use punctual_core::{Answer, Back, Choice, Command, Millis, Name, Reserve};
use punctual_node::access::{Denied, Role};
use punctual_wire as wire;

use super::tasks::{check_batch, part};
use crate::app::Shared;
use crate::fault::{Code, Fault};
use crate::gate::Bearer;
use crate::input::{JsonBody, maybe_name, name};
use crate::output::{ROW_BYTES, build_json, deliveries, json};
use crate::{lease, translate};

/// How many queues a consumer may wait for at once.
const QUEUES: usize = 64;
/// The name of a consumer that gives none.
const ANONYMOUS: &str = "anonymous";

/// Take deliveries from queues, optionally waiting for the first one. If the answer is lost on its way, the
/// deliveries become available again when their leases end.
#[utoipa::path(post, operation_id = "reserve", path = "/v1/reserve", tag = "consumers", request_body = wire::Reserve,
    responses((status = 200, description = "The deliveries; none if the wait was over.", body = wire::Deliveries)))]
pub(crate) async fn reserve(State(app): State<Shared>, bearer: Bearer, body: JsonBody) -> Result<Response, Fault> {
    let asked: wire::Reserve = body.parse()?;
    if asked.queues.is_empty() || asked.queues.len() > QUEUES {
        return Err(Fault::invalid("queues", format!("name 1 to {QUEUES} queues")));
    }
    let queues: Vec<Name> = asked.queues.iter().map(|queue| name("queues", queue)).collect::<Result<_, _>>()?;
    for queue in &queues {
        bearer.needs(Role::Consume, Some(queue))?;
    }
    let max = asked.max.unwrap_or(1) as usize;
    check_batch(max, &app)?;
    let longest = Millis::from(app.limits.wait);
    let wait = translate::millis(asked.wait.unwrap_or_default());
    if wait > longest {
        let why = format!("at most {} in one request: ask again afterwards", wire::Span(longest.0));
        return Err(Fault::invalid("wait", why));
    }
    let consumer = maybe_name("consumer", asked.consumer.as_deref())?;
    let consumer = consumer.unwrap_or_else(|| Name::new(ANONYMOUS).expect("it is a name"));
    let until = app.handle.after(wait);
    let lease = asked.lease.map(translate::millis);
    let choice = Choice::default();
    let reserve = app.handle.reserve_held(Reserve { queues, max, lease, until, consumer, choice });
    let (taken, hold) = if wait.0 == 0 {
        reserve.await?
    } else {
        // Who waits may wait for long, and is given nothing under a token that is not good any more.
        tokio::select! {
            taken = reserve => taken?,
            () = app.access.until_withdrawn(bearer.grant()) => {
                return Err(Fault::new(Code::Unauthorized, Denied::Unknown.to_string()));
            }
        }
    };
    let about = hold.bytes() + taken.len() as u64 * ROW_BYTES;
    Ok(build_json(StatusCode::OK, hold, move || deliveries(&taken, about, &app.secret)).await)
}

/// Settle deliveries: acknowledge, release, reject, or extend each. Each is answered individually.
#[utoipa::path(post, operation_id = "settle", path = "/v1/leases", tag = "consumers", request_body = wire::Actions,
    responses((status = 200, description = "One result for each, in the same order.", body = wire::Settlements)))]
pub(crate) async fn settle(State(app): State<Shared>, bearer: Bearer, body: JsonBody) -> Result<Response, Fault> {
    // Whoever holds a lease got it for a queue that they may consume.
    bearer.needs(Role::Consume, None)?;
    let asked: wire::Actions = body.parse()?;
    check_batch(asked.actions.len(), &app)?;
    let (refused, wanted) = part(asked.actions.into_iter().map(|action| command_of(action, &app.secret)));
    let mut answers = bearer.handle(&app).carry_out(wanted).await.into_iter();
    let result = |refused: Option<Fault>| {
        let answer = match refused {
            Some(fault) => Err(fault),
            None => answers.next().expect("each action that was let in has an outcome").map_err(Fault::from),
        };
        answer.map(settled).map_err(Fault::into_problem).into()
    };
    let results = refused.into_iter().map(result).collect();
    Ok(json(StatusCode::OK, &wire::Settlements { results }))
}

fn command_of(action: wire::Action, secret: &[u8; 32]) -> Result<Command, Fault> {
    let lease = lease::read(&action.lease, secret)?;
    let misplaced = |field: &str, is_there: bool| {
        let why = "this does not apply to the given `do`";
        if is_there { Err(Fault::invalid(field, why)) } else { Ok(()) }
    };
    let (after, priority, note) = (action.after, action.priority, action.note);
    misplaced("after", after.is_some() && matches!(action.what, wire::Do::Acknowledge | wire::Do::Reject))?;
    misplaced("priority", priority.is_some() && action.what != wire::Do::Release)?;
    misplaced("note", note.is_some() && !matches!(action.what, wire::Do::Release | wire::Do::Reject))?;
    Ok(match action.what {
        wire::Do::Acknowledge => Command::Acknowledge(lease),
        wire::Do::Release => {
            let back = after.map_or(Back::Retry, |after| Back::After(translate::millis(after)));
            Command::Release { lease, back, priority, note }
        }
        wire::Do::Reject => Command::Reject { lease, note, priority: None },
        wire::Do::Extend => Command::Extend { lease, by: after.map(translate::millis) },
    })
}

fn settled(answer: Answer) -> wire::Settled {
    let (outcome, standing, until) = match answer {
        Answer::Acknowledged => (wire::SettledOutcome::Acknowledged, None, None),
        Answer::Released(standing) => (wire::SettledOutcome::Released, Some(translate::standing(standing)), None),
        Answer::Rejected => (wire::SettledOutcome::Rejected, None, None),
        Answer::Extended(until) => (wire::SettledOutcome::Extended, None, Some(translate::time(until))),
        other => unreachable!("nothing was said of a delivery that is answered with {other:?}"),
    };
    wire::Settled { outcome, standing, until }
}
