//! Some settings out of many, as the server takes them: a merge patch (RFC 7396).

use punctual_wire::{merge, read_json};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::failure::Failure;

/// The settings that were given, and no others.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Patch(Map<String, Value>);

impl Patch {
    /// A setting gets a value, if one was given. A name with dots is that of a setting within others.
    pub fn set(&mut self, name: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.put(name, json!(value));
        }
    }

    /// A setting goes back to its default.
    pub fn unset(&mut self, name: &str) {
        self.put(name, Value::Null);
    }

    /// Whether it says something about a setting.
    pub fn names(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn put(&mut self, name: &str, value: Value) {
        let mut fields = &mut self.0;
        let mut words = name.split('.');
        let last = words.next_back().unwrap_or(name);
        for word in words {
            let inner = fields.entry(word).or_insert_with(|| Value::Object(Map::new()));
            match inner {
                Value::Object(inner) => fields = inner,
                _ => unreachable!("{word} holds settings, not a value"),
            }
        }
        fields.insert(last.to_owned(), value);
    }

    /// What it makes of settings that are not at a server yet.
    pub fn applied<T: Serialize + DeserializeOwned>(self, settings: T) -> Result<T, Failure> {
        let mut whole = serde_json::to_value(settings)?;
        merge(&mut whole, Value::Object(self.0));
        read_json(&serde_json::to_vec(&whole)?).map_err(|misread| Failure::usage(misread.to_string()))
    }
}
