//! Who is there, and whether they may: every request that needs a token passes here before it is read.

use axum::extract::FromRequestParts;
use http::header::AUTHORIZATION;
use http::request::Parts;
use punctual_core::{Name, Scope};
use punctual_node::access::{Grant, Role};

use crate::app::Shared;
use crate::fault::{Code, Fault};

/// Whoever asks, by the token that was looked at.
#[derive(Clone)]
pub(crate) struct Bearer(Grant);

impl FromRequestParts<Shared> for Bearer {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Bearer, Fault> {
        let presented = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let presented = presented.and_then(token_of);
        let grant = app.access.check(presented);
        grant.map(Bearer).map_err(|denied| Fault::new(Code::Unauthorized, denied.to_string()))
    }
}

/// The scheme is not case-sensitive (RFC 9110).
fn token_of(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

impl Bearer {
    /// Refuses what this token is not good for; `name` is the topic or queue it is about.
    pub fn needs(&self, role: Role, name: Option<&str>) -> Result<(), Fault> {
        self.needs_one_of(&[role], name)
    }

    /// The same where any of several roles will do.
    pub fn needs_one_of(&self, roles: &[Role], name: Option<&str>) -> Result<(), Fault> {
        if roles.iter().any(|role| self.0.may(*role, name)) {
            return Ok(());
        }
        let roles: Vec<String> = roles.iter().map(|role| format!("`{role}`")).collect();
        let about = name.map_or(String::new(), |name| format!(" for {name}"));
        let detail =
            format!("token {} lacks the role {}{about}: use one that has it", self.0.name(), roles.join(" or "));
        Err(Fault::new(Code::Forbidden, detail))
    }

    /// The topics and queues that this token is for. What is about several is about these only.
    pub fn scope(&self) -> &Scope {
        self.0.scope()
    }

    /// Refuses to let settings lead to a topic or queue that this token is not for.
    pub fn reaches<'a>(&self, field: &str, names: impl IntoIterator<Item = &'a Name>) -> Result<(), Fault> {
        let Some(outside) = names.into_iter().find(|name| !self.scope().fits(name)) else { return Ok(()) };
        let detail = format!("`{field}`: token {} does not cover {outside}: use one that does", self.0.name());
        Err(Fault::new(Code::Forbidden, detail))
    }

    /// Who is asking and what they may.
    pub fn grant(&self) -> &Grant {
        &self.0
    }

    /// Notes an operator's action in the audit log: who did what to what.
    pub fn audit(&self, action: &'static str, subject: &str) {
        tracing::info!(target: "punctual::audit", token = self.0.name(), action, subject, "operator action");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_is_read_in_any_case() {
        assert_eq!(token_of("bearer abc"), Some("abc"));
        assert_eq!(token_of("Basic abc"), None);
    }
}
