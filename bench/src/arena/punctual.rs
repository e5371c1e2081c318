//! Punctual as it is shipped: nothing is tuned, every answer comes after a sync.

use std::env;
use std::path::{Path, PathBuf};

use super::text;

/// Where the build of the root workspace leaves it.
pub fn program() -> Result<PathBuf, String> {
    let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target"));
    let built = [target, Some(root)].into_iter().flatten().map(|target| target.join("release/punctual"));
    let named = env::var_os("PUNCTUAL_BIN").map(PathBuf::from);
    match named.into_iter().chain(built).find(|program| program.is_file()) {
        Some(program) => std::path::absolute(program).map_err(|error| error.to_string()),
        None => Err("there is no punctual to measure (cargo build --release -p punctual); \
             --only can leave it out"
            .to_owned()),
    }
}

/// With its HTTP door on this port; other doors are further options.
pub fn command(program: &Path, directory: &Path, port: u16) -> Vec<String> {
    let (listen, data) = (format!("127.0.0.1:{port}"), text(&directory.join("data")));
    let words = ["serve", "--listen", &listen, "--data", &data, "--log-format", "json"];
    [text(program)].into_iter().chain(words.map(str::to_owned)).collect()
}
