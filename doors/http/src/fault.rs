//! What went wrong, as problem details (RFC 9457): one list of codes, one translation of the node's errors.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use punctual_core::{BadName, Refused, Selected};
use punctual_node::{BadCursor, Error};
use punctual_wire::{Problem, Span, Standing};

use crate::app::MoveRefused;
use crate::translate;

/// The codes of problems. The words are stable: programs decide by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    BadRequest,
    Invalid,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    RequestTimeout,
    RequestTooLarge,
    UnsupportedMediaType,
    MisdirectedRequest,
    TooLate,
    NoSuchTask,
    NoSuchMove,
    NoSuchSweep,
    CannotUndo,
    MoveUnderWay,
    UnusableStore,
    SettingsChanged,
    Refused(&'static str, StatusCode),
}

impl Code {
    fn word(self) -> &'static str {
        match self {
            Code::BadRequest => "bad-request",
            Code::Invalid => "invalid",
            Code::Unauthorized => "unauthorized",
            Code::Forbidden => "forbidden",
            Code::NotFound => "not-found",
            Code::MethodNotAllowed => "method-not-allowed",
            Code::RequestTimeout => "request-timeout",
            Code::RequestTooLarge => "request-too-large",
            Code::UnsupportedMediaType => "unsupported-media-type",
            Code::MisdirectedRequest => "misdirected-request",
            Code::TooLate => "too-late",
            Code::NoSuchTask => "no-such-task",
            Code::NoSuchMove => "no-such-move",
            Code::NoSuchSweep => "no-such-sweep",
            Code::CannotUndo => "cannot-undo",
            Code::MoveUnderWay => "move-under-way",
            Code::UnusableStore => "unusable-store",
            Code::SettingsChanged => "settings-changed",
            Code::Refused(word, _) => word,
        }
    }

    fn status(self) -> StatusCode {
        match self {
            Code::BadRequest => StatusCode::BAD_REQUEST,
            Code::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            Code::Unauthorized => StatusCode::UNAUTHORIZED,
            Code::Forbidden => StatusCode::FORBIDDEN,
            Code::NotFound | Code::NoSuchTask | Code::NoSuchMove | Code::NoSuchSweep => StatusCode::NOT_FOUND,
            Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Code::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Code::RequestTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Code::MisdirectedRequest => StatusCode::MISDIRECTED_REQUEST,
            Code::TooLate | Code::CannotUndo | Code::MoveUnderWay | Code::UnusableStore => StatusCode::CONFLICT,
            Code::SettingsChanged => StatusCode::PRECONDITION_FAILED,
            Code::Refused(_, status) => status,
        }
    }
}

/// A problem on its way to the client.
#[derive(Clone, Debug)]
pub(crate) struct Fault(Box<Problem>);

impl Fault {
    pub fn new(code: Code, detail: impl Into<String>) -> Fault {
        let word = code.word();
        let mut title = word.replace('-', " ");
        title[..1].make_ascii_uppercase();
        Fault(Box::new(Problem {
            kind: format!("urn:punctual:problem:{word}"),
            title,
            status: code.status().as_u16(),
            code: word.into(),
            detail: detail.into(),
            standing: None,
            retry_after: None,
        }))
    }

    /// A value that cannot be used, and where it stands.
    pub fn invalid(field: &str, why: impl std::fmt::Display) -> Fault {
        Fault::new(Code::Invalid, format!("`{field}`: {why}"))
    }

    /// It is too late for a change: this is where the task stands.
    pub fn too_late(standing: Standing) -> Fault {
        let detail = format!("too late, nothing was changed: {}", translate::in_words(&standing));
        let mut fault = Fault::new(Code::TooLate, detail);
        fault.0.standing = Some(standing);
        fault
    }

    pub fn no_such_task(topic: &str, id: &str) -> Fault {
        Fault::new(Code::NoSuchTask, format!("there is no task {id} in topic {topic}, nor in its history"))
    }

    /// What an operator has selected is not there: the task, or its delivery in the queue that was named.
    pub fn not_there(selected: &Selected) -> Fault {
        let Selected { topic, id, queue } = selected;
        match queue {
            None => Fault::no_such_task(topic, id),
            Some(queue) => {
                let detail = format!("there is no task {id} in topic {topic} with a delivery in queue {queue}");
                Fault::new(Code::NoSuchTask, detail)
            }
        }
    }

    pub fn into_problem(self) -> Problem {
        *self.0
    }
}

impl From<BadName> for Fault {
    fn from(bad: BadName) -> Fault {
        Fault::new(Code::Invalid, bad.to_string())
    }
}

impl From<BadCursor> for Fault {
    fn from(bad: BadCursor) -> Fault {
        Fault::invalid("cursor", bad)
    }
}

impl From<MoveRefused> for Fault {
    fn from(refused: MoveRefused) -> Fault {
        let (code, detail) = match refused {
            MoveRefused::Invalid(what) => return Fault::invalid("to", what),
            MoveRefused::UnderWay(what) => (Code::MoveUnderWay, what),
            MoveRefused::Unusable(what) => (Code::UnusableStore, what),
            MoveRefused::TooLate(what) => (Code::TooLate, what),
            MoveRefused::NoMove => {
                (Code::NoSuchMove, "the store is not being moved, and was not since the server started".into())
            }
        };
        Fault::new(code, detail)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        let status = status_of(&error);
        let mut fault = Fault::new(Code::Refused(error.code(), status), error.to_string());
        let problem = &mut *fault.0;
        match error {
            Error::Refused(Refused::LeaseLost { now }) => {
                let standing = now.map(translate::standing);
                let words = standing.as_ref().map_or("it no longer exists".into(), translate::in_words);
                problem.detail = format!("the lease is no longer valid, nothing was changed: {words}");
                problem.standing = standing;
            }
            Error::Refused(Refused::RateLimited { retry_after, .. }) => problem.retry_after = Some(Span(retry_after.0)),
            Error::Overloaded
            | Error::Stopping
            | Error::Unavailable { .. }
            | Error::Refused(Refused::QueueFull(_) | Refused::BeingDeleted(_)) => {
                problem.retry_after = Some(Span::from_secs(1));
            }
            Error::Refused(_) | Error::Full(_) => {}
        }
        fault
    }
}

/// By what the caller should do: mend it (4xx), slow down (429), or come back later (5xx).
fn status_of(error: &Error) -> StatusCode {
    match error {
        Error::Refused(refused) => match refused {
            Refused::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Refused::HeadersTooLarge { .. } | Refused::Invalid { .. } | Refused::BadSettings(_) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Refused::RateLimited { .. } | Refused::QueueFull(_) => StatusCode::TOO_MANY_REQUESTS,
            Refused::NoSuchTopic(_) | Refused::NoSuchQueue(_) | Refused::NothingThere => StatusCode::NOT_FOUND,
            Refused::TopicPaused(_)
            | Refused::BeingDeleted(_)
            | Refused::NotEmpty { .. }
            | Refused::LeaseLost { .. } => StatusCode::CONFLICT,
        },
        Error::Overloaded | Error::Unavailable { .. } | Error::Stopping => StatusCode::SERVICE_UNAVAILABLE,
        Error::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let problem = &*self.0;
        let mut body = serde_json::to_vec(problem).expect("a problem can be written as JSON");
        body.push(b'\n');
        let mut response = Response::new(body.into());
        *response.status_mut() = StatusCode::from_u16(problem.status).expect("a code's status is one");
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(after) = problem.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(after.0.div_ceil(1_000)));
        }
        if problem.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"punctual\""));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::Certainty;

    use super::*;

    #[test]
    fn a_problem_says_its_code_in_three_ways() {
        let problem = Fault::new(Code::TooLate, "gone").into_problem();
        assert_eq!(problem.kind, "urn:punctual:problem:too-late");
        assert_eq!((problem.title.as_str(), problem.status), ("Too late", 409));
    }

    #[test]
    fn a_problem_says_whether_the_request_may_have_been_carried_out() {
        let errors = [
            Error::Refused(Refused::NothingThere),
            Error::Overloaded,
            Error::Full("the disk".into()),
            Error::Stopping,
            Error::nothing_done("the shard is away"),
            Error::unknown_outcome("the commit failed"),
        ];
        for error in errors {
            let may_have_happened = error.certainty() == Certainty::Unknown;
            let problem = Fault::from(error).into_problem();
            assert_eq!(problem.may_have_happened(), may_have_happened, "{problem}");
        }
    }

    #[test]
    fn who_should_come_back_is_told_when() {
        let response = Fault::from(Error::Overloaded).into_response();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["retry-after"], "1");
    }
}
