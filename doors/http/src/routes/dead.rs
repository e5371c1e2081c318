//! Dead letters: looked at, replayed, purged.

use axum::extract::State;
use axum::response::Response;
use punctual_core::view::Kept;
use punctual_core::{Matching, Name, Reason, Sweep, SweepAction, TimeRange};
use punctual_node::access::Role;
use punctual_wire as wire;

use super::keys::swept;
use super::tasks::{kept, range, turn_page};
use super::to_its_end;
use crate::app::Shared;
use crate::deed::Deed;
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
    turn_page(&app, &bearer, kept(Kept { reason, note: query.note.clone(), ..Kept::dead() }, &query)?, &query).await
}

pub(crate) fn reason(word: &str) -> Result<Reason, Fault> {
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

    /// Does something with them, to its end.
    async fn carry_out(
        self,
        app: Shared,
        bearer: Bearer,
        what: &'static str,
        action: SweepAction,
    ) -> Result<Response, Fault> {
        let deed = Deed { topic: self.topic.clone(), queue: self.queue.clone(), ..Deed::new(what) };
        let (dry_run, sweep) = (self.dry_run, self.sweep(&bearer, action));
        to_its_end(async move {
            let done = bearer.handle(&app).sweep(sweep).await;
            if let Some(deed) = deed.came_to(&done).filter(|_| !dry_run) {
                bearer.audit(&app, deed);
            }
            Ok(swept(done?))
        })
        .await
    }
}

/// Replay dead letters.
#[utoipa::path(post, operation_id = "replay_dead", path = "/v1/dead/replay", tag = "dead letters", request_body = wire::Selection,
    responses((status = 200, description = "How many matched and were changed.", body = wire::Swept)))]
pub(crate) async fn replay(State(app): State<Shared>, bearer: Bearer, body: JsonBody) -> Result<Response, Fault> {
    Chosen::by(&bearer, &body)?.carry_out(app, bearer, "replay-dead", SweepAction::Replay).await
}

/// Purge dead letters.
#[utoipa::path(post, operation_id = "purge_dead", path = "/v1/dead/purge", tag = "dead letters", request_body = wire::Selection,
    responses((status = 200, description = "How many matched and were changed.", body = wire::Swept)))]
pub(crate) async fn purge(State(app): State<Shared>, bearer: Bearer, body: JsonBody) -> Result<Response, Fault> {
    Chosen::by(&bearer, &body)?.carry_out(app, bearer, "purge-dead", SweepAction::Purge).await
}
