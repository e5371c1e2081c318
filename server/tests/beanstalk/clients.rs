//! Third parties' clients, as they are published, with scripts that call everything they have.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peer;

/// The versions that were tried.
const GREENSTALK: &str = "greenstalk==2.1.1";
const FIVEBEANS: &str = "fivebeans@1.5.0";

/// A place in the build directory for what is installed.
fn place(package: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(package.replace(['=', '@'], "-"))
}

/// The client's Python, installed if it is missing.
fn python() -> PathBuf {
    let place = place(GREENSTALK);
    if !place.join("installed").exists() {
        succeed(Command::new("python3").args(["-m", "venv"]).arg(&place), "apt-get install python3-venv");
        succeed(Command::new(place.join("bin/pip")).args(["install", "--quiet", GREENSTALK]), "is PyPI reached?");
        std::fs::write(place.join("installed"), GREENSTALK).unwrap();
    }
    place.join("bin/python")
}

/// Where Node finds the client, installed if it is missing.
fn node_modules() -> PathBuf {
    let place = place(FIVEBEANS);
    if !place.join("installed").exists() {
        let mut install = Command::new("npm");
        install.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]).arg(&place).arg(FIVEBEANS);
        succeed(&mut install, "apt-get install nodejs npm");
        std::fs::write(place.join("installed"), FIVEBEANS).unwrap();
    }
    place.join("node_modules")
}

fn succeed(command: &mut Command, advice: &str) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}: {advice}"));
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{command:?}: {advice}\n{}", String::from_utf8_lossy(&text));
}

/// Runs a script of `clients/` with the door's host and port.
fn script(command: &mut Command, name: &str) {
    let server = peer::punctual();
    let door = server.beanstalk_address();
    let (host, port) = door.rsplit_once(':').unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/beanstalk/clients").join(name);
    succeed(command.arg(script).args([host, port]), "the client was not served as it expects");
}

#[test]
fn greenstalk_for_python_is_served() {
    script(&mut Command::new(python()), "greenstalk_calls.py");
}

#[test]
fn fivebeans_for_node_is_served() {
    let modules = node_modules();
    // The client is older than Node's advice on buffers.
    script(Command::new("node").arg("--no-deprecation").env("NODE_PATH", modules), "fivebeans_calls.js");
}
