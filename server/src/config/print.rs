//! The effective configuration, with where each value came from.

use serde_json::{Map, json};
use toml_edit::Value;

use super::load::Effective;
use super::problem::Origin;

impl Effective {
    /// As a TOML file that can be used in the place of all sources.
    pub fn to_toml(&self) -> String {
        let entry = |value: &Value, name: &str| format!("{name} = {}", value.clone().decorated("", ""));
        let entries = self.values.iter().map(|(setting, value, _)| entry(value, setting.place().1).len());
        let width = entries.max().unwrap_or(0).min(60);
        let mut text = String::new();
        let mut present = None;
        for (setting, value, origin) in &self.values {
            let (section, name) = setting.place();
            if section != present {
                text += &format!("\n[{}]\n", section.unwrap_or_default());
                present = section;
            }
            text += &format!("{:width$}  # {origin}\n", entry(value, name));
        }
        text
    }

    /// As one JSON object: for each setting its value and its origin.
    pub fn to_json(&self) -> serde_json::Value {
        let settings = self.values.iter().map(|(setting, value, origin)| {
            let (from, place) = match origin {
                Origin::Default => ("default", None),
                Origin::File { .. } => ("file", Some(origin.to_string())),
                Origin::Variable(_) => ("environment", Some(origin.to_string())),
                Origin::Flag(_) => ("flag", Some(origin.to_string())),
            };
            (setting.name.to_owned(), json!({ "value": plain(value), "from": from, "place": place }))
        });
        serde_json::Value::Object(settings.collect::<Map<_, _>>())
    }
}

fn plain(value: &Value) -> serde_json::Value {
    match value {
        Value::Integer(number) => json!(number.value()),
        Value::Float(number) => json!(number.value()),
        Value::Boolean(truth) => json!(truth.value()),
        Value::Array(items) => items.iter().map(plain).collect(),
        other => json!(other.as_str().unwrap_or_default()),
    }
}
