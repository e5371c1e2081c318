//! Taking answers of Redis apart.

use punctual_core::store::StoreError;
use redis::Value;

/// A text as it came.
pub(crate) fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.into_bytes()),
        Value::Okay => Some(b"OK".to_vec()),
        _ => None,
    }
}

pub(crate) fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

pub(crate) fn list(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(values) => Some(values),
        _ => None,
    }
}

/// A number, also one that came as a text because it may be too large for Lua.
pub(crate) fn number<T: TryFrom<i64> + std::str::FromStr>(value: &Value) -> Option<T> {
    match value {
        Value::Int(number) => T::try_from(*number).ok(),
        value => text(value)?.parse().ok(),
    }
}

/// Pairs that came one after the other, as from HGETALL.
pub(crate) fn pairs(value: Value) -> Option<Vec<(Value, Value)>> {
    let mut values = list(value)?.into_iter();
    let mut pairs = Vec::with_capacity(values.len() / 2);
    while let (Some(one), Some(other)) = (values.next(), values.next()) {
        pairs.push((one, other));
    }
    Some(pairs)
}

/// Redis has said what none of our scripts says.
pub(crate) fn odd(what: &str) -> StoreError {
    StoreError::Unavailable(format!("Redis answered {what} with something else than was asked for"))
}
