//! Changing some fields of an object and no others: merge patches (RFC 7396).

use serde_json::{Map, Value};

/// Changes what a patch names: a value takes the place of the one before, an object changes the object there in the
/// same way, and null takes a field away.
pub fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(&name);
        } else {
            merge(fields.entry(name).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(target: Value, patch: Value) -> Value {
        let mut target = target;
        merge(&mut target, patch);
        target
    }

    #[test]
    fn only_what_is_named_changes_and_null_takes_away() {
        let before = json!({ "a": "b", "c": { "d": "e", "f": "g" }, "h": [1] });
        let after = merged(before, json!({ "a": "z", "c": { "f": null }, "h": [2], "i": { "j": 1, "k": null } }));
        assert_eq!(after, json!({ "a": "z", "c": { "d": "e" }, "h": [2], "i": { "j": 1 } }));
    }

    #[test]
    fn the_cases_of_the_standard_hold() {
        assert_eq!(merged(json!(["a", "b"]), json!(["c", "d"])), json!(["c", "d"]));
        assert_eq!(merged(json!({ "a": "foo" }), json!("bar")), json!("bar"));
        assert_eq!(merged(json!({ "e": null }), json!({ "a": 1 })), json!({ "e": null, "a": 1 }));
        assert_eq!(merged(json!([1, 2]), json!({ "a": "b", "c": null })), json!({ "a": "b" }));
        assert_eq!(merged(json!({}), json!({ "a": { "bb": { "ccc": null } } })), json!({ "a": { "bb": {} } }));
    }
}
