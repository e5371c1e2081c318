//! Rows by their numbers, for whoever knows nothing but a job id.

use axum::extract::State;
use axum::response::Response;
use punctual_core::Standing;
use punctual_node::Number;
use punctual_wire as wire;

use super::LOOKING;
use super::tasks::show;
use crate::app::Shared;
use crate::fault::{Code, Fault};
use crate::gate::Bearer;
use crate::input::Names;

/// Get the task with this number, or the delivery of a broadcast task.
#[utoipa::path(get, operation_id = "get_numbered", path = "/v1/numbers/{number}", tag = "tasks",
    params(("number" = u64, Path, description = "Its number, which is its job id at the beanstalk door.")),
    responses((status = 200, description = "Everything known about it.", body = wire::TaskInfo)))]
pub(crate) async fn get(
    State(app): State<Shared>,
    bearer: Bearer,
    Names([number]): Names<1>,
) -> Result<Response, Fault> {
    let number = number.parse().map_err(|_| Fault::invalid("number", "it must be a whole number such as 4711"))?;
    let found = app.handle.numbered_held(Number(number)).await?;
    // Whose topic is not for this caller is not there for them: numbers are easily guessed.
    let found = found.filter(|(row, _)| bearer.needs_one_of(&LOOKING, Some(&row.task.topic)).is_ok());
    let Some((row, mut hold)) = found else {
        return Err(Fault::new(Code::NoSuchTask, format!("there is no task or delivery with the number {number}")));
    };
    let mut task = row.task;
    if let Standing::Spread { .. } = task.delivery.standing {
        // Where its deliveries stand is told by rows of their own.
        let whole = app.handle.get_held(&task.topic, &task.id).await?;
        (task, hold) = whole.filter(|(whole, _)| whole.number == task.number).unwrap_or((task, hold));
    }
    Ok(show(app, task, hold).await)
}
