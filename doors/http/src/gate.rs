//! Who is there, and whether they may: every request that needs a token passes here before it is read.

use axum::extract::FromRequestParts;
use http::header::AUTHORIZATION;
use http::request::Parts;
use percent_encoding::percent_decode;
use punctual_core::{Name, PauseNote, Scope, Timestamp};
use punctual_node::access::{Grant, Role};
use punctual_node::{Act, Handle};

use crate::app::{App, Shared};
use crate::deed::Deed;
use crate::fault::{Code, Fault};

/// The header by which a request says that a person sent it, and who.
const PERSON: &str = "punctual-by";
/// The longest name of a person, in bytes.
const PERSON_BYTES: usize = 128;

/// Whoever asks, by the token that was looked at.
#[derive(Clone)]
pub(crate) struct Bearer {
    grant: Grant,
    /// The person, if the request names one.
    person: Option<String>,
}

impl FromRequestParts<Shared> for Bearer {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Bearer, Fault> {
        let presented = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let presented = presented.and_then(token_of);
        let grant = app.access.check(presented);
        let grant = grant.map_err(|denied| Fault::new(Code::Unauthorized, denied.to_string()))?;
        let person = parts.headers.get(PERSON).map(|value| person_of(value.as_bytes())).transpose()?;
        Ok(Bearer { grant, person })
    }
}

/// The scheme is not case-sensitive (RFC 9110).
fn token_of(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The name of a person: text in UTF-8, of which anything may be percent-encoded, since browsers send no other.
fn person_of(value: &[u8]) -> Result<String, Fault> {
    let name = percent_decode(value).decode_utf8().ok();
    let is_plain = |name: &str| !name.is_empty() && name.len() <= PERSON_BYTES && !name.chars().any(char::is_control);
    name.filter(|name| is_plain(name)).map(Into::into).ok_or_else(|| {
        let detail = format!("`Punctual-By` must be a name of 1 to {PERSON_BYTES} bytes in UTF-8");
        Fault::new(Code::BadRequest, detail)
    })
}

impl Bearer {
    /// Refuses what this token is not good for; `name` is the topic or queue it is about.
    pub fn needs(&self, role: Role, name: Option<&str>) -> Result<(), Fault> {
        self.needs_one_of(&[role], name)
    }

    /// The same where any of several roles will do.
    pub fn needs_one_of(&self, roles: &[Role], name: Option<&str>) -> Result<(), Fault> {
        if roles.iter().any(|role| self.grant.may(*role, name)) {
            return Ok(());
        }
        let roles: Vec<String> = roles.iter().map(|role| format!("`{role}`")).collect();
        let about = name.map_or(String::new(), |name| format!(" for {name}"));
        let detail =
            format!("token {} lacks the role {}{about}: use one that has it", self.grant.name(), roles.join(" or "));
        Err(Fault::new(Code::Forbidden, detail))
    }

    /// Refuses what this token is not good for, where it is about the whole server.
    pub fn needs_for_all(&self, role: Role) -> Result<(), Fault> {
        self.needs(role, None)?;
        if self.scope().is_all() {
            return Ok(());
        }
        let detail = format!(
            "token {} covers some topics only, and this is about all: use one that covers all",
            self.grant.name()
        );
        Err(Fault::new(Code::Forbidden, detail))
    }

    /// The topics and queues that this token is for. What is about several is about these only.
    pub fn scope(&self) -> &Scope {
        self.grant.scope()
    }

    /// Refuses to let settings lead to a topic or queue that this token is not for.
    pub fn reaches<'a>(&self, field: &str, names: impl IntoIterator<Item = &'a Name>) -> Result<(), Fault> {
        let Some(outside) = names.into_iter().find(|name| !self.scope().fits(name)) else { return Ok(()) };
        let detail = format!("`{field}`: token {} does not cover {outside}: use one that does", self.grant.name());
        Err(Fault::new(Code::Forbidden, detail))
    }

    /// Who is asking and what they may.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// The node, asked under the name of this caller.
    pub fn handle(&self, app: &App) -> Handle {
        app.handle.on_behalf_of(self.grant.by().cloned())
    }

    /// What is noted of a pause that this caller begins.
    pub fn pause_note(&self, since: Timestamp, reason: Option<String>) -> Option<PauseNote> {
        Some(PauseNote { by: self.grant.name().to_owned(), since, reason })
    }

    /// Notes an operator's action, in the log and for all nodes: who did what to what.
    pub fn audit(&self, app: &App, deed: Deed) {
        let (token, action, subject) = (self.grant.name(), deed.what, deed.target());
        match &self.person {
            Some(person) => {
                tracing::info!(target: "punctual::audit", token, person, action, subject, "operator action");
            }
            None => tracing::info!(target: "punctual::audit", token, action, subject, "operator action"),
        }
        let Deed { what, topic, id, queue, subject, detail } = deed;
        app.handle.note_act(Act {
            at: app.handle.now(),
            by: token.to_owned(),
            person: self.person.clone(),
            node: app.handle.node_name().to_string(),
            what: what.to_owned(),
            topic,
            id,
            queue,
            subject,
            detail,
        });
    }

    /// The same for what producers do all the time: it is noted if a person does it, or somebody who operates and does not
    /// produce.
    pub fn audit_if_by_hand(&self, app: &App, deed: impl FnOnce() -> Deed) {
        let operates = self.grant.may(Role::Operate, None) && !self.grant.may(Role::Produce, None);
        if self.person.is_some() || operates {
            self.audit(app, deed());
        }
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

    #[test]
    fn a_person_may_have_any_name() {
        assert_eq!(person_of("amy".as_bytes()).ok().as_deref(), Some("amy"));
        assert_eq!(person_of("Zoë".as_bytes()).ok().as_deref(), Some("Zoë"));
        assert_eq!(person_of(b"%E5%BC%A0%20%E4%B8%89").ok().as_deref(), Some("张 三"));
        let long = "x".repeat(PERSON_BYTES + 1);
        for bad in [&b""[..], b"%ff", b"a%0ab", long.as_bytes()] {
            assert_eq!(person_of(bad).unwrap_err().into_problem().status, 400);
        }
    }
}
