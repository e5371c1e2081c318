//! What comes in as an object comes in as an object: serde would take a list of a struct's fields in their order too, and
//! a list that happens to fit is rather a mistake than a request.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

/// Reads a struct from an object, and from nothing else.
pub(crate) fn read<'de, D, T, F>(deserializer: D, read: F) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    F: Fields<'de, T>,
{
    deserializer.deserialize_map(Object { read, what: PhantomData })
}

/// Reads the fields of a struct; what serde derives.
pub(crate) trait Fields<'de, T> {
    fn read<M: MapAccess<'de>>(self, map: MapAccessDeserializer<M>) -> Result<T, M::Error>;
}

struct Object<T, F> {
    read: F,
    what: PhantomData<T>,
}

impl<'de, T, F: Fields<'de, T>> Visitor<'de> for Object<T, F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<T, M::Error> {
        self.read.read(MapAccessDeserializer::new(map))
    }
}

/// Makes structs whose serde is derived with `remote = "Self"` readable from objects only.
macro_rules! objects {
    ($($name:ident),+ $(,)?) => {$(
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                struct Fields;
                impl<'de> $crate::object::Fields<'de, $name> for Fields {
                    fn read<M: serde::de::MapAccess<'de>>(
                        self,
                        map: serde::de::value::MapAccessDeserializer<M>,
                    ) -> Result<$name, M::Error> {
                        $name::deserialize(map)
                    }
                }
                $crate::object::read(deserializer, Fields)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $name::serialize(self, serializer)
            }
        }
    )+};
}
pub(crate) use objects;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use crate::{NewTask, QueueSettings, TopicSettings};

    #[test]
    fn a_list_is_not_an_object() {
        assert!(serde_json::from_str::<TopicSettings>("[]").is_err());
        assert!(serde_json::from_str::<TopicSettings>("[null, null]").is_err());
        assert!(serde_json::from_str::<QueueSettings>("{\"retry\": [1]}").is_err());
        assert!(serde_json::from_str::<TopicSettings>("{}").is_ok());
    }

    #[test]
    fn json_bodies_stay_as_they_are() {
        let task: NewTask = serde_json::from_str("{\"topic\": \"t\", \"body\": {\"a\" : 1.0}}").unwrap();
        assert_eq!(task.body.unwrap().get(), "{\"a\" : 1.0}");
    }
}
