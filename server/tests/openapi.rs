//! A third party's look at the HTTP door: schemathesis makes up requests from the served OpenAPI document, good ones
//! and bad ones, and checks every answer against it.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod stage;

use std::path::{Path, PathBuf};
use std::process::Command;

use stage::Server;

/// The version that was tried.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// The tool, installed into the build directory if it is missing.
fn schemathesis() -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(SCHEMATHESIS.replace('=', "-"));
    let tool = place.join("bin/schemathesis");
    if !tool.exists() {
        succeed(Command::new("python3").args(["-m", "venv"]).arg(&place));
        succeed(Command::new(place.join("bin/pip")).args(["install", "--quiet", SCHEMATHESIS]));
    }
    tool
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&text));
}

#[test]
fn every_answer_is_what_the_document_says() {
    let server = Server::start();
    let url = format!("http://{}/v1/openapi.json", server.address());
    succeed(
        // What it notes for itself goes with the server's directory.
        Command::new(schemathesis())
            .current_dir(server.directory())
            .args(["--config-file", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schemathesis.toml"), "run", &url])
            .args(["--max-examples", "20", "--seed", "7", "--no-color"])
            // Following events never ends, and so there is no answer to check; operators' tests follow them.
            .args(["--exclude-path", "/v1/events"]),
    );
    server.get("/readyz").expect(200);
}
