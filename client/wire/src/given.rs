//! Fields that may be left out, but that are not `null` if they are there.

use serde::{Deserialize, Deserializer};

/// Reads a field that is there. To leave it out means something that a program whose value went missing does not mean
/// when it sends `null`: at once, or all of them. So `null` is refused, except where it is a value itself, as in a body.
pub(crate) fn given<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use crate::{Action, Delivery, NewTask, PauseQueue, Reschedule, Selection, ShiftKey, TaskInfo};

    #[test]
    fn nothing_is_not_a_time_nor_a_filter() {
        for field in ["delay", "at"] {
            let task = format!(r#"{{"topic":"t","{field}":null}}"#);
            let refused = serde_json::from_str::<NewTask>(&task).unwrap_err().to_string();
            assert!(refused.contains("null") && refused.contains("a "), "{refused}");
        }
        assert!(serde_json::from_str::<Reschedule>(r#"{"by":null}"#).is_err());
        assert!(serde_json::from_str::<ShiftKey>(r#"{"by":"1h","topic":null}"#).is_err());
        assert!(serde_json::from_str::<Selection>(r#"{"queue":"q","topic":null}"#).is_err());
        assert!(serde_json::from_str::<Selection>(r#"{"queue":"q","from":null}"#).is_err());
        assert!(serde_json::from_str::<PauseQueue>(r#"{"for":null}"#).is_err());
        assert!(serde_json::from_str::<Action>(r#"{"do":"release","lease":"l","after":null}"#).is_err());
        assert!(serde_json::from_str::<NewTask>(r#"{"topic":"t","key":null}"#).is_ok(), "no key is no key");
    }

    #[test]
    fn nothing_is_a_body() {
        let task: NewTask = serde_json::from_str(r#"{"topic":"t","body":null}"#).unwrap();
        assert_eq!(task.body.unwrap().get(), "null");
        let change: Reschedule = serde_json::from_str(r#"{"body":null}"#).unwrap();
        assert_eq!(change.body.unwrap().get(), "null");
        let delivery = r#"{"topic":"t","id":"i","queue":"q","body":null,"priority":1,"attempt":1,"scheduled_at":1,
            "due":1,"fired_at":1,"lease":"l","until":1}"#;
        let delivery: Delivery = serde_json::from_str(delivery).unwrap();
        assert_eq!(delivery.body.unwrap().get(), "null");
        let task = r#"{"topic":"t","id":"i","body":null,"scheduled_at":1,"due":1,"standing":{"state":"ready","since":1},
            "priority":1,"attempts":0,"failures":0}"#;
        let task: TaskInfo = serde_json::from_str(task).unwrap();
        assert_eq!(task.body.unwrap().get(), "null");
    }
}
