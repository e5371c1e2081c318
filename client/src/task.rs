//! Putting a task together.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use punctual_wire::{Base64, NewTask, Retry, Span, Time};
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::error::Error;

/// A task in the making.
///
/// ```
/// use std::time::Duration;
/// use punctual_client::Task;
///
/// # fn main() -> Result<(), punctual_client::Error> {
/// let task = Task::new("order-unpaid").id("order-7").after(Duration::from_secs(15 * 60)).text("order 7");
/// let task = Task::new("order-unpaid").key("user-3").json(&["order", "7"])?.priority(1);
/// # let _ = task; Ok(())
/// # }
/// ```
///
/// Without a time it is due at once. Of two times, and of two bodies, the later counts.
#[derive(Clone, Debug)]
pub struct Task(NewTask);

/// An instant: a [`Time`] or a [`SystemTime`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due(pub Time);

impl From<Time> for Due {
    fn from(time: Time) -> Due {
        Due(time)
    }
}

impl From<SystemTime> for Due {
    /// Rounds up to milliseconds, so that the task is not early. What lies before 1970 is long past either way.
    fn from(time: SystemTime) -> Due {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Due(Time(Span::from(since).0).min(Time::LAST))
    }
}

impl Task {
    /// A task of this topic.
    pub fn new(topic: impl Into<String>) -> Task {
        Task(NewTask { topic: topic.into(), ..NewTask::default() })
    }

    /// Its id: the same topic and id again is the same task.
    pub fn id(mut self, id: impl Into<String>) -> Task {
        self.0.id = Some(id.into());
        self
    }

    /// Due so long from now, by the server's clock.
    pub fn after(mut self, delay: Duration) -> Task {
        (self.0.delay, self.0.at) = (Some(delay.into()), None);
        self
    }

    /// Due at this instant; what lies in the past is due at once.
    pub fn at(mut self, at: impl Into<Due>) -> Task {
        (self.0.at, self.0.delay) = (Some(at.into().0), None);
        self
    }

    /// What is handed to the consumer, as JSON.
    pub fn json(self, body: &(impl Serialize + ?Sized)) -> Result<Task, Error> {
        let body = to_raw_value(body).map_err(|error| Error::BadBody { reason: error.to_string() })?;
        Ok(Task(NewTask { body: Some(body), text: None, base64: None, ..self.0 }))
    }

    /// What is handed to the consumer, as text.
    pub fn text(self, body: impl Into<String>) -> Task {
        Task(NewTask { text: Some(body.into()), body: None, base64: None, ..self.0 })
    }

    /// What is handed to the consumer, as bytes.
    pub fn bytes(self, body: impl Into<Vec<u8>>) -> Task {
        Task(NewTask { base64: Some(Base64(body.into())), body: None, text: None, ..self.0 })
    }

    /// What goes along with the body.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Task {
        self.0.headers.insert(name.into(), value.into());
        self
    }

    /// What it can be found by together with others: a user, an order.
    pub fn key(mut self, key: impl Into<String>) -> Task {
        self.0.key = Some(key.into());
        self
    }

    /// What the topic's bindings look at.
    pub fn routing_key(mut self, key: impl Into<String>) -> Task {
        self.0.routing_key = Some(key.into());
        self
    }

    /// Lower comes first.
    pub fn priority(mut self, priority: u32) -> Task {
        self.0.priority = Some(priority);
        self
    }

    /// How long after its due time it is worth handing over.
    pub fn time_to_live(mut self, ttl: Duration) -> Task {
        self.0.ttl = Some(ttl.into());
        self
    }

    /// What happens when it fails, instead of what its queue says.
    pub fn retry(mut self, retry: Retry) -> Task {
        self.0.retry = Some(retry);
        self
    }

    /// How long a consumer may work on it if it does not say, instead of what its queue gives.
    pub fn lease(mut self, lease: Duration) -> Task {
        self.0.lease = Some(lease.into());
        self
    }

    /// How long a lease on it lasts at most, whoever asks for more, if that is less than its queue allows.
    pub fn max_lease(mut self, longest: Duration) -> Task {
        self.0.max_lease = Some(longest.into());
        self
    }

    /// A task of the same id that was not handed out yet, or is finished, gives way to this one.
    pub fn replace(mut self) -> Task {
        self.0.replace = true;
        self
    }
}

impl From<Task> for NewTask {
    fn from(task: Task) -> NewTask {
        task.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_times_and_two_bodies_the_later_counts() {
        let task = Task::new("t").at(Time(7)).after(Duration::from_secs(1)).text("x").json(&[1, 2]).unwrap();
        let task = NewTask::from(task);
        assert_eq!((task.at, task.delay), (None, Some(Span(1_000))));
        assert_eq!((task.text, task.body.map(|body| body.get().to_owned())), (None, Some("[1,2]".into())));
        let task = NewTask::from(Task::new("t").after(Duration::ZERO).at(Time(7)).bytes([1, 2]).text("x"));
        assert_eq!((task.at, task.delay, task.base64, task.text.as_deref()), (Some(Time(7)), None, None, Some("x")));
    }

    #[test]
    fn an_instant_between_milliseconds_is_rounded_up() {
        let instant = UNIX_EPOCH + Duration::from_micros(1_001);
        assert_eq!(NewTask::from(Task::new("t").at(instant)).at, Some(Time(2)));
        let before = UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(NewTask::from(Task::new("t").at(before)).at, Some(Time(0)));
    }

    #[test]
    fn all_that_is_said_of_a_task_is_sent() {
        let task = Task::new("t").id("i").key("k").routing_key("a.b").priority(3).header("x", "y").replace();
        let task = task.time_to_live(Duration::from_secs(9)).retry(Retry::default()).lease(Duration::from_secs(300));
        let task = task.max_lease(Duration::from_secs(600));
        let task = NewTask::from(task);
        let json = serde_json::to_value(&task).unwrap();
        let expected = serde_json::json!({
            "topic": "t", "id": "i", "key": "k", "routing_key": "a.b", "priority": 3, "headers": {"x": "y"},
            "replace": true, "ttl": "9s", "lease": "5m", "max_lease": "10m",
            "retry": {"attempts": 5, "backoff": {"first": "1s", "longest": "1h"}, "jitter_percent": 10},
        });
        assert_eq!(json, expected);
    }
}
