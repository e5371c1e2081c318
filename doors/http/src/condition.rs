//! Changes on condition: settings are replaced only if they are still those that the caller has seen (RFC 9110, `If-Match`).

use axum::extract::FromRequestParts;
use axum::response::Response;
use http::header::{ETAG, IF_MATCH};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use serde::Serialize;

use crate::app::Shared;
use crate::fault::{Code, Fault};

/// What present settings must be so that they may be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Anything, or missing.
    Any,
    /// There.
    Present,
    /// Of one of these versions.
    OneOf(Vec<String>),
}

impl FromRequestParts<Shared> for Condition {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Condition, Fault> {
        Condition::read(&parts.headers)
    }
}

impl Condition {
    fn read(headers: &HeaderMap) -> Result<Condition, Fault> {
        let mut versions = Vec::new();
        for line in headers.get_all(IF_MATCH) {
            for tag in line.to_str().map_err(|_| bad_tag())?.split(',').map(str::trim) {
                if tag == "*" {
                    return Ok(Condition::Present);
                }
                versions.push(version_of(tag).ok_or_else(bad_tag)?.to_owned());
            }
        }
        Ok(if versions.is_empty() { Condition::Any } else { Condition::OneOf(versions) })
    }

    /// Refuses a change if the settings are not those that are meant.
    pub fn check<T: Serialize>(&self, present: Option<&T>) -> Result<(), Fault> {
        let is_met = match (self, present) {
            (Condition::Any, _) | (Condition::Present, Some(_)) => true,
            (Condition::OneOf(versions), Some(present)) => versions.contains(&version(present)),
            (_, None) => false,
        };
        if is_met {
            return Ok(());
        }
        let what = if present.is_some() { "someone has changed these settings" } else { "it does not exist" };
        let detail = format!("`If-Match` is not met, nothing was changed: {what}. Get them again, and decide anew");
        Err(Fault::new(Code::SettingsChanged, detail))
    }
}

/// The version in a tag. A proxy that packs answers calls tags weak; they mean the same settings all the same.
fn version_of(tag: &str) -> Option<&str> {
    let tag = tag.strip_prefix("W/").unwrap_or(tag);
    tag.strip_prefix('"')?.strip_suffix('"')
}

fn bad_tag() -> Fault {
    Fault::new(Code::BadRequest, "`If-Match` must be `*`, or versions in quotation marks as `ETag` gave them")
}

/// Which settings these are: the same ones have the same version, whichever node is asked.
pub(crate) fn version<T: Serialize>(settings: &T) -> String {
    let text = serde_json::to_vec(settings).expect("settings can be written as JSON");
    blake3::hash(&text).to_hex()[..16].to_owned()
}

/// An answer that says which settings it shows.
pub(crate) fn tagged(mut response: Response, version: &str) -> Response {
    let tag = HeaderValue::from_str(&format!("\"{version}\"")).expect("a version is written in hexadecimal digits");
    response.headers_mut().insert(ETAG, tag);
    response
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Result<Condition, Fault> {
        let mut headers = HeaderMap::new();
        lines.iter().for_each(|line| _ = headers.append(IF_MATCH, line.parse().unwrap()));
        Condition::read(&headers)
    }

    #[test]
    fn several_versions_may_be_named() {
        let named = |versions: &[&str]| Condition::OneOf(versions.iter().map(|version| (*version).into()).collect());
        assert_eq!(read(&[]).unwrap(), Condition::Any);
        assert_eq!(read(&["*"]).unwrap(), Condition::Present);
        assert_eq!(read(&["\"a\", W/\"b\"", "\"c\""]).unwrap(), named(&["a", "b", "c"]));
        for bad in ["a", "\"a", "", "\"a\","] {
            assert_eq!(read(&[bad]).unwrap_err().into_problem().status, 400, "{bad:?}");
        }
    }

    #[test]
    fn only_what_was_seen_may_be_changed() {
        let seen = Condition::OneOf(vec![version(&"old")]);
        assert!(seen.check(Some(&"old")).is_ok());
        for other in [Some(&"new"), None] {
            assert_eq!(seen.check(other).unwrap_err().into_problem().status, 412);
        }
        assert!(Condition::Any.check(None::<&str>.as_ref()).is_ok());
        assert!(Condition::Present.check(Some(&"new")).is_ok());
        assert!(Condition::Present.check(None::<&str>.as_ref()).is_err());
    }
}
