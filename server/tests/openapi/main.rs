//! Third parties' looks at the HTTP door, from the document that it serves: a validator reads it, generators make clients
//! of it that are used, and schemathesis makes up requests, good ones and bad ones, and checks every answer.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

#[path = "../stage/mod.rs"]
mod stage;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde_json::json;
use stage::{Server, punctual, run};

/// The versions that were tried.
const SCHEMATHESIS: [&str; 1] = ["schemathesis==4.32.5"];
const PYTHON_TOOLS: [&str; 2] = ["openapi-spec-validator==0.9.0", "openapi-python-client==0.29.1"];
const TYPESCRIPT_TOOLS: [&str; 3] = ["openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3"];

/// Several tests may need the same tools at once.
static INSTALLING: Mutex<()> = Mutex::new(());

/// The programs of Python packages, installed into the build directory if they are missing.
fn python(packages: &[&str]) -> PathBuf {
    let _turn = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(packages.join("-").replace('=', "-"));
    let ready = place.join("ready");
    if !ready.exists() {
        succeed(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&place));
        succeed(Command::new(place.join("bin/pip")).args(["install", "--quiet"]).args(packages));
        fs::write(ready, "").unwrap();
    }
    place.join("bin")
}

/// A directory with the packages for TypeScript, installed if they are missing.
fn typescript() -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(TYPESCRIPT_TOOLS.join("-"));
    let ready = place.join("ready");
    if !ready.exists() {
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("package.json"), r#"{"type": "module", "private": true}"#).unwrap();
        let npm = ["install", "--silent", "--no-fund", "--no-audit", "--save-exact"];
        succeed(Command::new("npm").current_dir(&place).args(npm).args(TYPESCRIPT_TOOLS));
        fs::write(ready, "").unwrap();
    }
    place
}

/// Runs a command, and gives what it printed.
fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}:\n{text}");
    text
}

/// The document of a server, as a file in its directory.
fn document(server: &Server) -> PathBuf {
    let file = server.directory().join("openapi.json");
    fs::write(&file, server.get("/v1/openapi.json").expect(200).body).unwrap();
    file
}

/// A server that asks for a token, and one that is good for everything.
fn guarded() -> (Server, String) {
    let mut server = Server::prepare(&[], &[]);
    let create = ["token", "create", "--name", "all", "--role", "admin"];
    let made = run(punctual().args(create).arg("--data").arg(server.data()));
    assert_eq!(made.code, Some(0), "{made:?}");
    server.start_again();
    (server, made.stdout.trim().to_owned())
}

#[test]
fn every_answer_is_what_the_document_says() {
    let server = Server::start();
    let url = format!("http://{}/v1/openapi.json", server.address());
    succeed(
        // What it notes for itself goes with the server's directory.
        Command::new(python(&SCHEMATHESIS).join("schemathesis"))
            .current_dir(server.directory())
            .args(["--config-file", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schemathesis.toml"), "run", &url])
            .args(["--max-examples", "20", "--seed", "7", "--no-color"])
            // Following never ends, and so there is no answer to check; operators' tests follow both.
            .args(["--exclude-path", "/v1/events", "--exclude-path", "/v1/pulse"]),
    );
    server.get("/readyz").expect(200);
}

#[test]
fn the_document_is_valid_and_says_where_and_under_which_token() {
    let server = Server::start();
    succeed(Command::new(python(&PYTHON_TOOLS).join("openapi-spec-validator")).arg(document(&server)));
    let document = server.get("/v1/openapi.json").expect(200).json();
    assert_eq!(document["servers"][0]["url"], "/");
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    assert_eq!(document["security"], json!([{ "token": [] }, {}]), "a token, or none where none is needed");
    assert_eq!(document["paths"]["/healthz"]["get"]["security"], json!([]));
}

#[test]
fn no_parameter_of_a_list_is_always_refused() {
    let server = Server::start();
    let document = server.get("/v1/openapi.json").expect(200).json();
    server.send("PUT", "/v1/queues/t", &json!({})).expect(200);
    let mut asked = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let parameters = item["get"]["parameters"].as_array().cloned().unwrap_or_default();
        let of_the_query = parameters.iter().filter(|parameter| parameter["in"] == "query");
        for name in of_the_query
            .map(|parameter| parameter["name"].as_str().unwrap())
            .filter(|_| !["/v1/events", "/v1/pulse"].contains(&path.as_str()))
        {
            let value = match (name, path.as_str()) {
                ("state", "/v1/keys/{key}") => "dead",
                ("state", _) => "ready",
                ("from" | "until", _) => "2030-01-01T00:00:00Z",
                ("limit" | "slots" | "top", _) => "3",
                ("cursor", "/v1/queues/{queue}/deliveries") => "0.0.0.0",
                ("cursor", _) => "0.0",
                ("bodies", _) => "true",
                ("unit", _) => "hour",
                ("topic" | "queue" | "key", _) => "t",
                ("ending", _) => "done",
                ("reason", _) => "rejected",
                ("note" | "q", _) => "x",
                ("by", "/v1/audit") => "amy",
                ("by", _) => "reason,note",
                ("what", _) => "pause-queue",
                ("node", _) => "node-1",
                ("holder" | "contains", _) => "x",
                ("attempts_min", _) => "2",
                ("count", _) => "true",
                ("metric", _) => "done",
                ("step", _) => "10s",
                ("first", _) => "earliest",
                other => panic!("{other:?}: say what to ask it for"),
            };
            let answer = server.get(&format!("{}?{name}={value}", path.replace("{key}", "k").replace("{queue}", "t")));
            assert_eq!(answer.status, 200, "{path} {name}: {}", answer.text());
            asked += 1;
        }
    }
    assert!(asked > 15, "{asked}");
}

#[test]
fn a_client_that_was_generated_in_python_works() {
    let (server, token) = guarded();
    let programs = python(&PYTHON_TOOLS);
    let generated = succeed(
        Command::new(programs.join("openapi-python-client"))
            .current_dir(server.directory())
            .args(["generate", "--meta", "none", "--output-path", "punctual_client", "--path"])
            .arg(document(&server)),
    );
    assert!(!generated.contains("WARNING parsing"), "{generated}");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/openapi/use.py");
    let used = succeed(
        Command::new(programs.join("python"))
            .current_dir(server.directory())
            .env("PYTHONPATH", server.directory())
            .args([script, &format!("http://{}", server.address()), &token]),
    );
    assert_eq!(used, "fine\n");
}

#[test]
fn a_client_that_was_generated_in_typescript_works() {
    let (server, token) = guarded();
    let tools = typescript();
    let place = server.directory();
    let program = |name: &str| {
        let mut command = Command::new("node");
        command.current_dir(place).arg(tools.join("node_modules").join(name));
        command
    };
    std::os::unix::fs::symlink(tools.join("node_modules"), place.join("node_modules")).unwrap();
    fs::copy(tools.join("package.json"), place.join("package.json")).unwrap();
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/openapi/use.ts"), place.join("use.ts")).unwrap();
    succeed(program("openapi-typescript/bin/cli.js").arg(document(&server)).args([
        "--default-non-nullable=false",
        "-o",
        "schema.d.ts",
    ]));
    let strictly = ["--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck"];
    succeed(program("typescript/bin/tsc").args(strictly).arg("use.ts"));
    let address = format!("http://{}", server.address());
    let used = succeed(Command::new("node").current_dir(place).args(["use.js", &address, &token]));
    assert_eq!(used, "fine\n");
}
