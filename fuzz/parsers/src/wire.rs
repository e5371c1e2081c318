//! The bodies of HTTP requests: each type that comes in, from JSON.

use punctual_wire::{
    Actions, Batch, List, ListNames, NewTask, PauseQueue, PauseTopic, QueueSettings, Reschedule, Reserve, Revoke,
    Selection, ShiftKey, TopicSettings, merge, read_json,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads the bytes as each type. What is taken is the same after it was written and read again; what is not taken
/// has a reason.
pub fn wire(bytes: &[u8]) {
    comes_back::<NewTask>(bytes);
    comes_back::<Batch>(bytes);
    comes_back::<Reschedule>(bytes);
    comes_back::<Reserve>(bytes);
    comes_back::<Actions>(bytes);
    comes_back::<Revoke>(bytes);
    comes_back::<Selection>(bytes);
    comes_back::<ShiftKey>(bytes);
    comes_back::<PauseQueue>(bytes);
    comes_back::<PauseTopic>(bytes);
    comes_back::<List>(bytes);
    comes_back::<ListNames>(bytes);
    patches(TopicSettings::default(), bytes);
    patches(QueueSettings::default(), bytes);
}

fn comes_back<T: DeserializeOwned + Serialize>(bytes: &[u8]) {
    match read_json::<T>(bytes) {
        Ok(value) => {
            let written = serde_json::to_vec(&value).expect("what was read can be written");
            let again: T = read_json(&written)
                .unwrap_or_else(|why| panic!("{} was written and is refused: {why}", written.escape_ascii()));
            assert_eq!(serde_json::to_vec(&again).expect("it can be written again"), written);
        }
        Err(why) => assert!(!why.to_string().is_empty(), "a refusal has a reason"),
    }
}

/// Settings also change by a merge patch.
fn patches<T: DeserializeOwned + Serialize>(settings: T, bytes: &[u8]) {
    comes_back::<T>(bytes);
    if let Ok(patch @ Value::Object(_)) = serde_json::from_slice(bytes) {
        let mut whole = serde_json::to_value(settings).expect("settings can be written");
        merge(&mut whole, patch);
        comes_back::<T>(&serde_json::to_vec(&whole).expect("JSON can be written"));
    }
}
