//! What the server says on standard output when it is ready: for people, and for whoever started it.
//!
//! The lines `listening on http://ADDRESS` are stable: with port 0, scripts and tests read from them which port was
//! taken. Those of unix sockets are `listening on unix:PATH for http`.

use std::io::{Write, stdout};
use std::path::Path;

use punctual_node::access::Access;

use crate::config::Effective;
use crate::doors::OpenDoors;

/// Says where the server listens, where its data is, what a confirmation is worth, and how to try it.
pub fn show(effective: &Effective, doors: &OpenDoors, data: Option<&Path>, store: &str, access: &Access) {
    let config = &effective.config;
    let mut text = format!("Punctual {}\n", env!("CARGO_PKG_VERSION"));
    text += &doors.listening();
    if let Some(data) = data {
        let data = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
        text += &format!("data in {}\n", data.display());
    }
    text += &format!("{store}\n");
    text += &match effective.files.as_slice() {
        [] => "no configuration file; `punctual config` shows the settings in effect\n".to_owned(),
        files => format!("configured by {}; `punctual config` shows the settings in effect\n", files.join(", ")),
    };
    text += &match access.is_open() {
        true => "no tokens: anyone who can connect may do everything\n".to_owned(),
        false => format!("every request needs a token from {}\n", config.tokens_place()),
    };
    text += &doors.advice();
    // Whoever closed the pipe does not want to know.
    let mut out = stdout().lock();
    _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
