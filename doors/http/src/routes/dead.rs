//! Dead letters: looked at, replayed, purged.

use axum::extract::State;
use axum::response::Response;
use punctual_core::view::Kept;
use punctual_core::{Matching, Name, Reason, Sweep, SweepAction, TimeRange};
use punctual_node::access::Role;
use punctual_wire as wire;

use super::keys::swept;
use super::tasks::{kept, range, turn_page};
use crate::app::Shared;
use crate::fault::{Code, Fault};
use crate::gate::Bearer;
use crate::input::{JsonBody, Query, maybe_name};

/// List dead letters by when they died, latest first.
#[utoipa::path(get, operation_id = "list_dead", path = "/v1/dead", tag = "dead letters", params(wire::List),
    responses((status = 200, description = "A page of the list.", body = wire::Page)))]
pub(crate) async fn list(
    State(app): State<Shared>,
    bearer: Bearer,
    Query(query): Query<wire::List>,
) -> Result<Response, Fault> {
    bearer.needs(Role::View, query.topic.as_deref())?;
    bearer.needs(Role::View, query.queue.as_deref())?;
    if query.state.is_some() {
        return Err(Fault::invalid("state", "dead letters cannot be listed by state"));
    }
    if query.ending.is_some() {
        return Err(Fault::invalid("ending", "dead letters have a `reason` instead of an ending"));
    }
    let reason = query.reason.as_deref().map(reason).transpose()?;
    turn_page(&app, &bearer, kept(Kept { reason, ..Kept::dead() }, &query)?, &query).await
}

fn reason(word: &str) -> Result<Reason, Fault> {
    let known = Reason::ALL.into_iter().find(|reason| reason.as_str() == word);
    known.ok_or_else(|| {
        let words = Reason::ALL.map(Reason::as_str).join(", ");
        Fault::invalid("reason", format_args!("no such reason: use one of {words}"))
    })
}

/// Which dead letters are meant.
struct Chosen {
    topic: Option<Name>,
    queue: Option<Name>,
    died: TimeRange,
    dry_run: bool,
}

impl Chosen {
    fn by(bearer: &Bearer, body: &JsonBody) -> Result<Chosen, Fault> {
        let wire::Selection { topic, queue, from, until, ending, all, dry_run } = body.parse()?;
        bearer.needs(Role::Operate, topic.as_deref())?;
        bearer.needs(Role::Operate, queue.as_deref())?;
        if ending.is_some() {
            return Err(Fault::invalid("ending", "dead letters have no ending"));
        }
        if topic.is_none() && queue.is_none() && from.is_none() && until.is_none() && !all {
            let detail = "say which dead letters: give `topic`, `queue`, `from`, `until`, or `\"all\": true`";
            return Err(Fault::new(Code::Invalid, detail));
        }
        let (topic, queue) = (maybe_name("topic", topic.as_deref())?, maybe_name("queue", queue.as_deref())?);
        Ok(Chosen { topic, queue, died: range(from, until), dry_run })
    }

    fn sweep(self, bearer: &Bearer, action: SweepAction) -> Sweep {
        let Chosen { topic, queue, died, dry_run } = self;
        Sweep { matching: Matching::Dead { topic, queue, died }, within: bearer.scope().clone(), action, dry_run }
    }

    fn audit(&self, bearer: &Bearer, action: &'static str) {
        if !self.dry_run {
            let all = |name: &Option<Name>| name.as_deref().unwrap_or("all").to_owned();
            bearer.audit(action, &format!("topic {}, queue {}", all(&self.topic), all(&self.queue)));
        }
    }
}

/// Replay dead letters.
#[utoipa::path(post, operation_id = "replay_dead", path = "/v1/dead/replay", tag = "dead letters", request_body = wire::Selection,
    responses((status = 200, description = "How many matched and were changed.", body = wire::Swept)))]
pub(crate) async fn replay(State(app): State<Shared>, bearer: Bearer, body: JsonBody) -> Result<Response, Fault> {
    let chosen = Chosen::by(&bearer, &body)?;
    chosen.audit(&bearer, "replay-dead");
    Ok(swept(app.handle.sweep(chosen.sweep(&bearer, SweepAction::Replay)).await?))
}

/// Purge dead letters.
#[utoipa::path(post, operation_id = "purge_dead", path = "/v1/dead/purge", tag = "dead letters", request_body = wire::Selection,
    responses((status = 200, description = "How many matched and were changed.", body = wire::Swept)))]
pub(crate) async fn purge(State(app): State<Shared>, bearer: Bearer, body: JsonBody) -> Result<Response, Fault> {
    let chosen = Chosen::by(&bearer, &body)?;
    chosen.audit(&bearer, "purge-dead");
    Ok(swept(app.handle.sweep(chosen.sweep(&bearer, SweepAction::Purge)).await?))
}
