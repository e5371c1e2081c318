//! The executables of all tests, built once.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::so_far;
use crate::stint::{PATIENCE, Stint};

/// A file of tests, as cargo has built it.
pub struct Executable {
    /// Its crate's directory, from the root.
    home: String,
    name: String,
    path: PathBuf,
}

impl Executable {
    pub fn is(&self, home: &str, name: &str) -> bool {
        self.home == home && self.name == name
    }

    /// Its tests, run where cargo would run them.
    pub fn stint(&self) -> Stint {
        Stint {
            label: format!("tests {} of {}", self.name, self.home),
            program: self.path.clone(),
            args: Vec::new(),
            directory: root().join(&self.home),
            envs: Vec::new(),
            patience: PATIENCE,
        }
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Builds all tests; `None` if that fails. The server's come first, which take longest.
pub fn build() -> Option<Vec<Executable>> {
    let line = "cargo test --workspace --locked --no-run --message-format=json-render-diagnostics";
    eprintln!("\n[{}] $ {line}", so_far());
    let mut words = line.split_whitespace();
    let built = Command::new(words.next()?).args(words).current_dir(root()).stderr(Stdio::inherit()).output().ok()?;
    if !built.status.success() {
        return None;
    }
    let mut executables: Vec<Executable> = built
        .stdout
        .split(|byte| *byte == b'\n')
        .filter_map(|line| read(&serde_json::from_slice(line).ok()?))
        .collect();
    executables
        .sort_by_key(|executable| (executable.home != "server", executable.home.clone(), executable.name.clone()));
    Some(executables)
}

/// What one of cargo's messages says of an executable, if it does.
fn read(message: &Value) -> Option<Executable> {
    let is_test = message["profile"]["test"].as_bool()?;
    let path = message["executable"].as_str().filter(|_| is_test)?;
    let home = Path::new(message["manifest_path"].as_str()?).parent()?;
    let root = root().canonicalize().ok()?;
    Some(Executable {
        home: home.strip_prefix(root).ok()?.display().to_string(),
        name: message["target"]["name"].as_str()?.to_owned(),
        path: path.into(),
    })
}
