//! Who is there, and whether they may: every request passes here before it is read.

use axum::extract::FromRequestParts;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::request::Parts;
use punctual_node::access::{Grant, Role};

use crate::app::Shared;
use crate::fault::{Code, Fault};

/// Somebody whose token was looked at.
#[derive(Clone)]
pub(crate) struct Caller(Grant);

impl FromRequestParts<Shared> for Caller {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Caller, Fault> {
        check_origin(parts)?;
        let presented = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let presented = presented.and_then(bearer);
        let grant = app.access.check(presented);
        grant.map(Caller).map_err(|denied| Fault::new(Code::Unauthorized, denied.to_string()))
    }
}

/// The scheme is not case-sensitive (RFC 9110).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// A browser says which page a request comes from. Pages of elsewhere have no business here: without
/// this, any page that somebody visits could give commands to a server on their own machine.
fn check_origin(parts: &Parts) -> Result<(), Fault> {
    let Some(origin) = parts.headers.get(ORIGIN) else { return Ok(()) };
    let host = parts.headers.get(HOST).map_or(&b""[..], |host| host.as_bytes());
    let origin = origin.as_bytes();
    let authority = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    if authority == Some(host) {
        return Ok(());
    }
    Err(Fault::new(Code::Forbidden, "requests from web pages of another origin are refused"))
}

impl Caller {
    /// Refuses what this caller may not do; `name` is the topic or queue it is about.
    pub fn needs(&self, role: Role, name: Option<&str>) -> Result<(), Fault> {
        self.needs_one_of(&[role], name)
    }

    /// The same where any of several roles will do.
    pub fn needs_one_of(&self, roles: &[Role], name: Option<&str>) -> Result<(), Fault> {
        if roles.iter().any(|role| self.0.may(*role, name)) {
            return Ok(());
        }
        let roles: Vec<String> = roles.iter().map(|role| format!("`{role}`")).collect();
        let about = name.map_or("for all topics".into(), |name| format!("for {name}"));
        let detail =
            format!("token {} lacks the role {} {about}: ask for one that has it", self.0.name(), roles.join(" or "));
        Err(Fault::new(Code::Forbidden, detail))
    }

    /// Notes an operator's action in the audit log: who did what to what.
    pub fn audit(&self, action: &'static str, subject: &str) {
        tracing::info!(target: "punctual::audit", token = self.0.name(), action, subject, "operator action");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn origin(origin: &str, host: &str) -> Result<(), Fault> {
        let request = Request::builder().header(ORIGIN, origin).header(HOST, host).body(());
        check_origin(&request.expect("the headers are well formed").into_parts().0)
    }

    #[test]
    fn a_page_of_another_origin_is_refused() {
        assert!(origin("http://127.0.0.1:7400", "127.0.0.1:7400").is_ok());
        assert!(origin("https://evil.example", "127.0.0.1:7400").is_err());
        assert!(origin("null", "127.0.0.1:7400").is_err());
    }

    #[test]
    fn the_scheme_is_read_in_any_case() {
        assert_eq!(bearer("bearer abc"), Some("abc"));
        assert_eq!(bearer("Basic abc"), None);
    }
}
