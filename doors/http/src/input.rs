//! What comes in: bodies, queries and names, each checked and refused with a reason.

use std::pin::pin;
use std::task::Poll;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use bytes::{Bytes, BytesMut};
use futures_util::poll;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::request::Parts;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use punctual_core::Name;
use punctual_wire::{Misread, merge, read_from, read_json};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::app::{Limits, Shared};
use crate::fault::{Code, Fault};
use crate::unpack::unpack;

/// A body of JSON, read to its end within the limits but not looked at yet.
pub(crate) struct JsonBody(Bytes);

impl FromRequest<Shared> for JsonBody {
    type Rejection = Fault;

    async fn from_request(request: Request, app: &Shared) -> Result<JsonBody, Fault> {
        // A page of elsewhere can send plain text without asking first, but not JSON.
        let is_json = request.headers().get(CONTENT_TYPE).is_some_and(|value| is_json(value.as_bytes()));
        let packing = request.headers().get(CONTENT_ENCODING).cloned();
        let body = read(request.into_body(), &app.limits).await?;
        if is_json {
            let body = match packing {
                None => body,
                Some(packing) => unpack(&packing, body, app.limits.request_bytes)?,
            };
            return Ok(JsonBody(body));
        }
        let detail = "the body must be JSON: send `Content-Type: application/json` (curl --json does that)";
        Err(Fault::new(Code::UnsupportedMediaType, detail))
    }
}

impl JsonBody {
    /// The whole body as one value.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        self.read().map_err(Fault::from)
    }

    /// The same, for whoever wants to know what is wrong.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Misread> {
        read_json(&self.0)
    }
}

/// A merge patch: an object of what is to be otherwise.
pub(crate) type Patch = serde_json::Map<String, serde_json::Value>;

/// What becomes of settings when a patch is applied.
pub(crate) fn merged<T: Serialize + DeserializeOwned>(settings: &T, patch: Patch) -> Result<T, Fault> {
    let mut whole = serde_json::to_value(settings).expect("settings can be written as JSON");
    merge(&mut whole, patch.into());
    let whole = serde_json::to_vec(&whole).expect("JSON can be written as JSON");
    read_json(&whole).map_err(Fault::from)
}

/// A body that may be left out.
pub(crate) struct MaybeJson<T>(pub T);

impl<T: DeserializeOwned + Default> FromRequest<Shared> for MaybeJson<T> {
    type Rejection = Fault;

    async fn from_request(request: Request, app: &Shared) -> Result<MaybeJson<T>, Fault> {
        let has_type = request.headers().contains_key(CONTENT_TYPE);
        if !has_type {
            let body = read(request.into_body(), &app.limits).await?;
            if body.is_empty() {
                return Ok(MaybeJson(T::default()));
            }
            let detail = "the body must be JSON: send `Content-Type: application/json`, or no body";
            return Err(Fault::new(Code::UnsupportedMediaType, detail));
        }
        let body = JsonBody::from_request(request, app).await?;
        if body.0.is_empty() {
            return Ok(MaybeJson(T::default()));
        }
        Ok(MaybeJson(body.parse::<Option<T>>()?.unwrap_or_default()))
    }
}

fn is_json(content_type: &[u8]) -> bool {
    let media = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    [&b"application/json"[..], b"application/merge-patch+json"].iter().any(|known| media.eq_ignore_ascii_case(known))
}

impl From<Misread> for Fault {
    /// What is wrong: the form, or the content.
    fn from(misread: Misread) -> Fault {
        let code = if misread.well_formed { Code::Invalid } else { Code::BadRequest };
        Fault::new(code, misread.to_string())
    }
}

/// Reads a body to its end. Most bodies are there already and need no timer.
async fn read(body: Body, limits: &Limits) -> Result<Bytes, Fault> {
    let mut collecting = pin!(collect(body, limits.request_bytes));
    match poll!(&mut collecting) {
        Poll::Ready(collected) => collected,
        Poll::Pending => tokio::time::timeout(limits.body_time, collecting).await.unwrap_or_else(|_| {
            let detail = format!("the body did not arrive within {} s", limits.body_time.as_secs());
            Err(Fault::new(Code::RequestTimeout, detail))
        }),
    }
}

/// How much of a body that is too large is read and dropped: a client that is still sending does not hear why it was refused.
const DROPPED: usize = 64 << 20;

async fn collect(mut body: Body, limit: usize) -> Result<Bytes, Fault> {
    if body.size_hint().lower() > (limit + DROPPED) as u64 {
        return Err(too_large(limit));
    }
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Fault::new(Code::BadRequest, format!("the body ended early: {error}")))?;
        let Ok(piece) = frame.into_data() else { continue };
        length += piece.len();
        if length > limit {
            (first, rest) = (Bytes::new(), BytesMut::new());
            if length > limit + DROPPED {
                break;
            }
        } else if length == piece.len() {
            // Mostly this is all, and it is not copied.
            first = piece;
        } else {
            rest.extend_from_slice(&piece);
        }
    }
    if length > limit {
        return Err(too_large(limit));
    }
    if rest.is_empty() {
        return Ok(first);
    }
    Ok([first, rest.freeze()].concat().into())
}

/// The refusal of a body that is larger than allowed, as it came or unpacked.
pub(crate) fn too_large(limit: usize) -> Fault {
    Fault::new(Code::RequestTooLarge, format!("the body is larger than {limit} bytes: send less at once"))
}

/// A query string.
pub(crate) struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<Shared> for Query<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Query<T>, Fault> {
        let query = parts.uri.query().unwrap_or_default();
        let pairs = serde_urlencoded::Deserializer::new(form_urlencoded::parse(query.as_bytes()));
        let unusable = |misread: Misread| Fault::new(Code::Invalid, format!("the query is not valid: {misread}"));
        read_from(pairs).map(Query).map_err(unusable)
    }
}

/// The names in a path, in their order.
pub(crate) struct Names<const N: usize>(pub [Name; N]);

impl<const N: usize> FromRequestParts<Shared> for Names<N> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Names<N>, Fault> {
        let path = axum::extract::RawPathParams::from_request_parts(parts, app).await;
        let path = path.map_err(|error| Fault::new(Code::Invalid, format!("the path is not valid: {error}")))?;
        let mut names = Vec::with_capacity(N);
        for (field, value) in &path {
            names.push(name(field, value)?);
        }
        let names = names.try_into().expect("a route has as many names as its handler asks for");
        Ok(Names(names))
    }
}

/// A text that must be a name.
pub(crate) fn name(field: &str, text: &str) -> Result<Name, Fault> {
    Name::new(text).map_err(|bad| Fault::invalid(field, bad))
}

/// The same for one that may be left out.
pub(crate) fn maybe_name(field: &str, text: Option<&str>) -> Result<Option<Name>, Fault> {
    text.map(|text| name(field, text)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_recognized_with_its_parameters() {
        assert!(is_json(b"application/json"));
        assert!(is_json(b"Application/JSON; charset=utf-8"));
        assert!(is_json(b"application/merge-patch+json"));
        assert!(!is_json(b"text/plain"));
        assert!(!is_json(b"application/x-www-form-urlencoded"));
    }

    #[tokio::test]
    async fn bodies_are_read_up_to_the_limit_whatever_their_pieces() {
        for pieces in [vec![""], vec!["abc"], vec!["ab", "c"], vec!["", "a", "", "bc"]] {
            let whole = pieces.concat();
            let stream = futures_util::stream::iter(pieces.into_iter().map(Ok::<_, std::io::Error>));
            let body = collect(Body::from_stream(stream), 3).await.ok();
            assert_eq!(body, Some(whole.into()));
        }
        let stream = futures_util::stream::iter([Ok::<_, std::io::Error>("ab"), Ok("cd")]);
        let refused = collect(Body::from_stream(stream), 3).await.err();
        assert_eq!(refused.map(|fault| fault.into_problem().status), Some(413));
    }
}
