//! Bytes as base64 text.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

/// Bytes that travel as base64 with padding (RFC 4648, section 4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Base64(pub Vec<u8>);

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Base64, D::Error> {
        struct Texts;
        impl Visitor<'_> for Texts {
            type Value = Base64;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("base64 text")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Base64, E> {
                let bytes = STANDARD.decode(text);
                bytes.map(Base64).map_err(|error| E::custom(format_args!("this is not base64 with padding: {error}")))
            }
        }
        deserializer.deserialize_str(Texts)
    }
}

#[cfg(feature = "openapi")]
mod schemas {
    use utoipa::openapi::RefOr;
    use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
    use utoipa::{PartialSchema, ToSchema};

    use super::Base64;

    impl PartialSchema for Base64 {
        fn schema() -> RefOr<Schema> {
            let pattern = "^([A-Za-z0-9+/]{4})*$";
            let text = ObjectBuilder::new().schema_type(SchemaType::Type(Type::String)).pattern(Some(pattern));
            text.description(Some("Bytes as base64 with padding.")).into()
        }
    }
    impl ToSchema for Base64 {}
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_their_text() {
        let bytes = Base64(vec![0, 255, 7]);
        let text = serde_json::to_string(&bytes).unwrap();
        assert_eq!(text, "\"AP8H\"");
        assert_eq!(serde_json::from_str::<Base64>(&text).unwrap(), bytes);
        assert!(serde_json::from_str::<Base64>("\"AP8\"").is_err());
    }
}
