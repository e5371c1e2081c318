//! Where the body of a task comes from, and in which form it is sent.

use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use punctual_wire::Base64;
use serde_json::value::RawValue;

use super::failure::Failure;
use super::output::counted;

/// How a body is given, other than as an argument.
#[derive(Args, Clone, Debug, Default)]
pub struct BodyOptions {
    /// Read the body from this file.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Send the body as text, even if it looks like JSON.
    #[arg(long, conflicts_with = "body_json")]
    pub text: bool,
    /// Send the body as JSON, even a bare number or string; fails if it is not JSON.
    #[arg(long)]
    pub body_json: bool,
}

/// A body in the form in which it is sent.
#[derive(Debug)]
pub enum Body {
    /// There is none.
    Empty,
    /// JSON, as it was written.
    Json(Box<RawValue>),
    /// Plain text.
    Text(String),
    /// Bytes that are no text.
    Bytes(Base64),
}

impl BodyOptions {
    /// Reads the body: from the argument, from a file, or with `-` from stdin.
    pub fn read(&self, given: Option<&str>) -> Result<Body, Failure> {
        let bytes = match (given, &self.file) {
            (Some(_), Some(_)) => return Err(Failure::usage("give either the body or --file, not both")),
            (Some("-"), None) => read_stdin()?,
            (Some(text), None) => text.as_bytes().to_vec(),
            (None, Some(file)) if file.as_os_str() == "-" => read_stdin()?,
            (None, Some(file)) => std::fs::read(file)
                .map_err(|error| Failure::local(format_args!("{} cannot be read", file.display()), error))?,
            (None, None) if self.text || self.body_json => {
                return Err(Failure::usage("no body given: pass it as an argument, with --file, or as - for stdin"));
            }
            (None, None) => return Ok(Body::Empty),
        };
        self.form(bytes)
    }

    /// Decides the form. An object or a list is surely meant as JSON; `42` or `true` may well be a text.
    fn form(&self, bytes: Vec<u8>) -> Result<Body, Failure> {
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(_) if self.text => return Err(Failure::usage("the body is not text (UTF-8): omit --text")),
            Err(_) if self.body_json => {
                return Err(Failure::usage("the body is not JSON: it is not even text (UTF-8)"));
            }
            Err(bytes) => return Ok(Body::Bytes(Base64(bytes.into_bytes()))),
        };
        let looks_like_json = text.trim_start().starts_with(['{', '[']);
        if self.text || !(self.body_json || looks_like_json) {
            return Ok(Body::Text(text));
        }
        match RawValue::from_string(text.trim().to_owned()) {
            Ok(json) => Ok(Body::Json(json)),
            Err(error) if self.body_json => Err(Failure::usage(format!("the body is not JSON: {error}"))),
            Err(_) => Ok(Body::Text(text)),
        }
    }
}

fn read_stdin() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).map_err(|error| Failure::local("stdin cannot be read", error))?;
    Ok(bytes)
}

impl Body {
    /// The fields `body`, `text` and `base64` of a request; one of them at most is there.
    pub fn into_fields(self) -> (Option<Box<RawValue>>, Option<String>, Option<Base64>) {
        match self {
            Body::Empty => (None, None, None),
            Body::Json(json) => (Some(json), None, None),
            Body::Text(text) => (None, Some(text), None),
            Body::Bytes(bytes) => (None, None, Some(bytes)),
        }
    }

    /// How it is sent, in words.
    pub fn in_words(&self) -> String {
        match self {
            Body::Empty => "no body".into(),
            Body::Json(json) => format!("body sent as JSON, {}", counted(json.get().len() as u64, "byte")),
            Body::Text(text) => format!("body sent as text, {}", counted(text.len() as u64, "byte")),
            Body::Bytes(bytes) => format!("body sent as {}", counted(bytes.0.len() as u64, "byte")),
        }
    }
}

/// The bytes of a body as they were handed in.
pub fn bytes_of(body: Option<&RawValue>, text: Option<&str>, base64: Option<&Base64>) -> Vec<u8> {
    match (body, text, base64) {
        (Some(json), ..) => json.get().as_bytes().to_vec(),
        (_, Some(text), _) => text.as_bytes().to_vec(),
        (.., Some(bytes)) => bytes.0.clone(),
        (None, None, None) => Vec::new(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    fn auto(text: &str) -> Body {
        BodyOptions::default().read(Some(text)).unwrap()
    }

    #[test]
    fn objects_and_lists_are_json_and_everything_else_is_text() {
        assert!(matches!(auto("{\"order\": 7}"), Body::Json(_)));
        assert!(matches!(auto(" [1, 2]\n"), Body::Json(_)));
        for text in ["close order 7", "42", "true", "\"quoted\"", "{not json", "", "[later]"] {
            assert!(matches!(auto(text), Body::Text(_)), "{text}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_sent_as_bytes() {
        let body = BodyOptions::default().form(vec![0xff, 0]).unwrap();
        assert!(matches!(body, Body::Bytes(Base64(bytes)) if bytes == [0xff, 0]));
    }

    #[test]
    fn a_form_that_was_asked_for_is_kept_or_refused() {
        let text = BodyOptions { text: true, ..BodyOptions::default() };
        assert!(matches!(text.read(Some("{}")).unwrap(), Body::Text(_)));
        assert!(text.form(vec![0xff]).is_err());
        let json = BodyOptions { body_json: true, ..BodyOptions::default() };
        assert!(matches!(json.read(Some("42")).unwrap(), Body::Json(_)));
        assert!(json.read(Some("{")).is_err());
        assert!(json.read(None).is_err());
    }

    #[test]
    fn json_keeps_the_way_it_was_written() {
        let Body::Json(json) = auto("{\"price\": 1.10}\n") else { panic!("this is JSON") };
        assert_eq!(json.get(), "{\"price\": 1.10}");
    }

    #[test]
    fn a_file_is_read_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("body");
        std::fs::write(&file, "hello\n").unwrap();
        let options = BodyOptions { file: Some(file.clone()), ..BodyOptions::default() };
        assert!(matches!(options.read(None).unwrap(), Body::Text(text) if text == "hello\n"));
        assert!(options.read(Some("both")).is_err());
        let gone = BodyOptions { file: Some(file.with_extension("gone")), ..BodyOptions::default() };
        assert!(gone.read(None).is_err());
    }
}
