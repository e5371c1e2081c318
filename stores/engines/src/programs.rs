//! Where the programs of a server are: those that are installed, or those of another version, in a directory that a
//! variable names.

use std::env;
use std::path::PathBuf;

/// A program in the directory that this variable names, if there is such a one. What is not there, such as a client, is
/// the one that is installed.
pub(crate) fn chosen(variable: &str, name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env::var_os(variable)?).join(name);
    path.exists().then_some(path)
}
