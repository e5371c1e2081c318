//! The web console's files. They are the same for everybody and need no token: what is shown in them is asked for under
//! `/v1`, by a token.

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::header::ACCEPT;
use http::{HeaderMap, HeaderName, HeaderValue};
use punctual_console::PLACE;

use crate::app::Shared;
use crate::fault::Fault;
use crate::routes::nowhere;

/// The address without the slash at its end.
pub(crate) async fn enter(State(app): State<Shared>, request: Request) -> Result<Redirect, Fault> {
    if app.console.is_some() { Ok(Redirect::to(PLACE)) } else { Err(nowhere(request).await) }
}

/// A page, or one of its files.
pub(crate) async fn find(State(app): State<Shared>, request: Request) -> Result<Response, Fault> {
    let path = request.uri().path().strip_prefix(PLACE).unwrap_or_default();
    let Some(sent) = app.console.as_ref().and_then(|console| console.find(path)) else {
        return Err(nowhere(request).await);
    };
    let headers = sent.headers().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    Ok((headers.collect::<HeaderMap>(), sent.body).into_response())
}

/// Whether it is a browser that asks: programs do not name this among what they take.
pub(crate) fn is_browser(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|range| range.trim_start().to_ascii_lowercase().starts_with("text/html"))
}
