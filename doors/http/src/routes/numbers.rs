//! Rows by their numbers, for whoever knows nothing but a job id.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use punctual_core::Standing;
use punctual_core::store::Bodies;
use punctual_node::Number;
use punctual_wire as wire;

use super::LOOKING;
use crate::app::Shared;
use crate::fault::{Code, Fault};
use crate::gate::Caller;
use crate::input::Names;
use crate::output::json;
use crate::translate;

/// Look at the task with this number, or at the delivery of one that was broadcast.
#[utoipa::path(get, operation_id = "get_numbered", path = "/v1/numbers/{number}", tag = "tasks",
    params(("number" = u64, Path, description = "Its number: its job id at the beanstalk door.")),
    responses((status = 200, description = "All that is known of it.", body = wire::TaskInfo)))]
pub(crate) async fn get(
    State(app): State<Shared>,
    caller: Caller,
    Names([number]): Names<1>,
) -> Result<Response, Fault> {
    let number = number.parse().map_err(|_| Fault::invalid("number", "it must be a whole number such as 4711"))?;
    let found = app.handle.numbered(vec![Number(number)], Bodies::With).await?.pop().flatten();
    // Whose topic is not for this caller is not there for them: numbers are easily guessed.
    let found = found.filter(|row| caller.needs_one_of(&LOOKING, Some(&row.task.topic)).is_ok());
    let Some(row) = found else {
        return Err(Fault::new(Code::NoSuchTask, format!("there is no task or delivery with the number {number}")));
    };
    let mut task = row.task;
    if let Standing::Spread { .. } = task.delivery.standing {
        // Where its deliveries stand is told by rows of their own.
        let whole = app.handle.get(&task.topic, &task.id).await?;
        task = whole.filter(|whole| whole.number == task.number).unwrap_or(task);
    }
    Ok(json(StatusCode::OK, &translate::task_info(task, Some(&app.handle), true)))
}
