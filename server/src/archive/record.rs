//! A finished task as a line of the archive: the same JSON that the HTTP door shows, with the body.

use std::io;

use punctual_core::Standing;
use punctual_core::view::TaskView;
use punctual_wire as wire;
use serde_json::value::RawValue;

/// When a task finished.
pub fn finished_at(task: &TaskView) -> wire::Time {
    let at = match &task.delivery.standing {
        Standing::Finished { at, .. } => *at,
        // The place in its table is the time at which it came there.
        _ => task.position.at,
    };
    wire::Time(at.as_millis())
}

/// Writes a task as one line.
pub fn line(task: &TaskView, to: &mut Vec<u8>) -> io::Result<()> {
    let mut info = punctual_http::task_info(task.clone(), None, true);
    info.body = info.body.map(one_line).transpose()?;
    serde_json::to_writer(&mut *to, &info)?;
    to.push(b'\n');
    Ok(())
}

/// A line must not have breaks in it, and JSON may. There they stand only between tokens: within texts they are escaped.
fn one_line(json: Box<RawValue>) -> io::Result<Box<RawValue>> {
    if !json.get().contains(['\n', '\r']) {
        return Ok(json);
    }
    Ok(RawValue::from_string(json.get().replace(['\n', '\r'], " "))?)
}
