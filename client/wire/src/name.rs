//! Names, as the OpenAPI document tells of them. On the wire they are plain texts; the server checks them.

/// A name of a topic, queue, task, key or consumer: 1 to 255 bytes of visible characters.
#[derive(utoipa::ToSchema)]
#[schema(value_type = String, min_length = 1, max_length = 255, pattern = "^(\\.{0,2}[^\\u0000-\\u0020.\\u007f-\\u00a0]|\\.{3})[^\\u0000-\\u0020\\u007f-\\u00a0]*$")]
pub struct Name(#[allow(dead_code, reason = "it is there to be described")] String);
