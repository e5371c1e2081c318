//! What is wrong with a request or a line, in the words of whoever wrote it: the field, and what JSON calls things.
//!
//! Reading is done twice only when it fails: the first time at full speed, the second to learn which field it was.

use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, IgnoredAny};
use serde_path_to_error::Path;

/// A text that cannot be read as what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misread {
    /// Where, such as `tasks[3].retry.attempts`; empty if it is about the whole.
    pub field: String,
    /// What is wrong there.
    pub reason: String,
    /// Whether it is JSON at all (or a query), only not of this kind.
    pub well_formed: bool,
}

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.well_formed, self.field.as_str()) {
            (false, _) => write!(f, "this is not valid JSON: {}", self.reason),
            (true, "") => f.write_str(&self.reason),
            (true, field) => write!(f, "`{field}`: {}", self.reason),
        }
    }
}

impl std::error::Error for Misread {}

/// Reads JSON.
pub fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Misread> {
    serde_json::from_slice(bytes).map_err(|first| {
        // A number where one of several words should be is told by serde as if it were no JSON.
        let is_json = || first.is_data() || serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
        // What is passed over is not looked at, so that bytes which are no text would go for well-formed.
        let well_formed = std::str::from_utf8(bytes).is_ok() && is_json();
        if !well_formed {
            return Misread { field: String::new(), reason: first.to_string(), well_formed: false };
        }
        let mut again = serde_json::Deserializer::from_slice(bytes);
        match serde_path_to_error::deserialize::<_, T>(&mut again) {
            Err(error) => Misread::new(error.path(), &error.inner().to_string()),
            // What follows the value is all that can be wrong then.
            Ok(_) => Misread { field: String::new(), reason: in_words(&first.to_string()), well_formed: true },
        }
    })
}

/// Reads anything else that serde can, such as the query of a URL.
pub fn read_from<'de, T: serde::Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<T, Misread>
where
    D::Error: fmt::Display,
{
    serde_path_to_error::deserialize(from).map_err(|error| Misread::new(error.path(), &error.inner().to_string()))
}

impl Misread {
    fn new(path: &Path, reason: &str) -> Misread {
        let field = path.to_string();
        // A bare dot stands for the whole, and a question mark for what has no name.
        let field = if field == "." { String::new() } else { field.trim_end_matches(".?").to_owned() };
        Misread { field, reason: in_words(reason), well_formed: true }
    }
}

/// What serde says, in the words of JSON: `invalid type: map, expected u32` is "this must be a number from 0 to
/// 4294967295, not an object". The place goes, since the field says it better.
fn in_words(said: &str) -> String {
    let said = said.find(" at line ").map_or(said, |place| &said[..place]);
    // The last three are of the standard library, about the parts of a query.
    match said {
        "expected value" => return "this must be a string".into(),
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            return "this must be a number".into();
        }
        "number too large to fit in target type" => return "this number is too large".into(),
        "provided string was not `true` or `false`" => return "this must be true or false".into(),
        _ => {}
    }
    if let Some((given, wanted)) = said.strip_prefix("unknown variant ").and_then(|rest| rest.split_once(", expected "))
    {
        return format!("this must be {wanted}, not {given}");
    }
    // Lists are taken for objects whose fields come in order, until they are too short.
    if said.starts_with("invalid length ") && said.contains(", expected struct ") {
        return "this must be an object, not a list".into();
    }
    let kinds = ["invalid type: ", "invalid value: ", "invalid length "];
    let Some(rest) = kinds.iter().find_map(|kind| said.strip_prefix(kind)) else {
        return said.to_owned();
    };
    match rest.split_once(", expected ") {
        Some((given, wanted)) => format!("this must be {}, not {}", wanted_in_words(wanted), given_in_words(given)),
        None => said.to_owned(),
    }
}

fn wanted_in_words(wanted: &str) -> &str {
    match wanted {
        "u8" => "a number from 0 to 255",
        "u16" => "a number from 0 to 65535",
        "u32" => "a number from 0 to 4294967295",
        "u64" | "usize" => "a number that is not negative",
        "i64" => "a whole number",
        "a boolean" | "bool" => "true or false",
        "a string" | "str" => "a string",
        "a sequence" => "a list",
        "a map" => "an object",
        wanted if wanted.starts_with("struct ") => "an object",
        wanted if wanted.starts_with("enum ") => "a string",
        wanted => wanted,
    }
}

fn given_in_words(given: &str) -> String {
    let article = |word: &str| match word {
        "map" => Some("an object"),
        "sequence" => Some("a list"),
        "null" | "unit value" => Some("null"),
        _ => None,
    };
    if let Some(words) = article(given) {
        return words.to_owned();
    }
    for kind in ["string ", "integer ", "floating point ", "boolean ", "number "] {
        if let Some(value) = given.strip_prefix(kind) {
            return value.trim_matches('`').to_owned();
        }
    }
    given.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Actions, Batch, NewTask, QueueSettings, Reserve, TopicSettings};

    fn told<T: DeserializeOwned + fmt::Debug>(text: &str) -> String {
        read_json::<T>(text.as_bytes()).expect_err("it cannot be read").to_string()
    }

    #[test]
    fn the_field_is_named_however_deep_it_is() {
        let told = told::<QueueSettings>(r#"{"retry": {"backoff": {"first": true}}}"#);
        assert!(told.starts_with("`retry.backoff.first`: this must be a duration"), "{told}");
        assert!(told.ends_with("not true"), "{told}");
    }

    #[test]
    fn kinds_are_called_what_json_calls_them() {
        let said = told::<NewTask>(r#"{"topic": "t", "priority": "high"}"#);
        assert_eq!(said, r#"`priority`: this must be a number from 0 to 4294967295, not "high""#);
        assert_eq!(told::<NewTask>(r#"{"topic": []}"#), "`topic`: this must be a string, not a list");
        let said = told::<TopicSettings>(r#"{"paused": {}}"#);
        assert_eq!(said, "`paused`: this must be true or false, not an object");
        assert_eq!(told::<Reserve>(r#"{"queues": "q"}"#), r#"`queues`: this must be a list, not "q""#);
        assert_eq!(told::<NewTask>("[]"), "this must be an object, not a list");
        assert_eq!(told::<Batch>("[]"), "this must be an object, not a list");
    }

    #[test]
    fn no_word_of_our_own_code_comes_out() {
        for text in ["[]", "3", "null", "{}", r#"{"tasks": 3}"#, r#"{"tasks": [3]}"#, r#"{"actions": [{"do": 1}]}"#] {
            for said in [told_or_not::<Batch>(text), told_or_not::<Actions>(text), told_or_not::<NewTask>(text)] {
                let foreign = ["struct", "enum ", "sequence", "u32", "Vec", "line 1", "column"];
                assert!(!foreign.iter().any(|word| said.contains(word)), "{text}: {said}");
            }
        }
    }

    fn told_or_not<T: DeserializeOwned + fmt::Debug>(text: &str) -> String {
        read_json::<T>(text.as_bytes()).err().map(|misread| misread.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_number_where_a_word_should_be_is_well_formed() {
        let misread = read_json::<Actions>(br#"{"actions": [{"do": 1, "lease": ""}]}"#).expect_err("1 is no action");
        assert!(misread.well_formed);
        assert_eq!(misread.to_string(), "`actions[0].do`: this must be a string");
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        assert_eq!(told::<NewTask>("{}"), "missing field `topic`");
        let said = told::<QueueSettings>(r#"{"retry": {"tries": 3}}"#);
        assert!(said.contains("unknown field `tries`") && said.contains("`attempts`"), "{said}");
        let said = told::<Actions>(r#"{"actions": [{"do": "ack", "lease": ""}]}"#);
        assert!(said.starts_with("`actions[0].do`: this must be one of `acknowledge`"), "{said}");
        assert!(said.ends_with(", not `ack`"), "{said}");
        let said = told::<QueueSettings>(r#"{"order": "x"}"#);
        assert_eq!(said, "`order`: this must be `due` or `arrival`, not `x`");
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        let misread = read_json::<NewTask>(b"{\"topic\": \"t\",}").expect_err("it is no JSON");
        assert!(!misread.well_formed);
        assert_eq!(misread.to_string(), "this is not valid JSON: trailing comma at line 1 column 15");
    }

    #[test]
    fn bodies_are_taken_as_they_are_also_beside_a_field_that_is_wrong() {
        let said = told::<NewTask>(r#"{"topic": "t", "body": {"a": [1.50]}, "ttl": "soon"}"#);
        assert!(said.starts_with("`ttl`: \"soon\" is not a duration"), "{said}");
    }
}
