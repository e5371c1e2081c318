//! Listening on a file: who may reach it, what a crash has left behind, and what is left of it at the end: nothing.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tokio::net::UnixSocket;

use crate::Listener;

/// How long the path of a socket may be: the system keeps it in a field of 108 bytes that ends with a zero.
const LONGEST_PATH: usize = 107;

/// Why a unix socket cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum UnixError {
    /// Another process does.
    #[error("another process is listening there")]
    InUse,
    /// A file of another kind is there, which is not ours to remove.
    #[error("there is a file that is not a socket")]
    NotASocket,
    /// The system does not take such a path.
    #[error("the path has {0} bytes, but the path of a socket can have at most {LONGEST_PATH}")]
    TooLong(usize),
    /// The system says no.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// The file of a socket that is listened on. It is removed when this is dropped.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // If somebody has removed it before, all the better.
        _ = fs::remove_file(&self.0);
    }
}

/// Listens on a file that only those reach who may write to it by this mode; so many may wait to be let in. A socket that
/// nobody listens on any more, as a crash leaves it, is replaced.
pub fn listen_unix(path: &Path, mode: u32, line: u32) -> Result<Listener, UnixError> {
    let length = path.as_os_str().len();
    if length > LONGEST_PATH {
        return Err(UnixError::TooLong(length));
    }
    let socket = UnixSocket::new_stream()?;
    let socket = match socket.bind(path) {
        Ok(()) => socket,
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            remove_left_over(path)?;
            let socket = UnixSocket::new_stream()?;
            socket.bind(path)?;
            socket
        }
        Err(error) => return Err(error.into()),
    };
    let file = SocketFile(path.to_owned());
    // Until it is listened on, everybody who tries to connect is refused: nobody slips in before the mode is right.
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    Ok(Listener::Unix(file, socket.listen(line)?))
}

/// Removes a socket that nobody listens on.
fn remove_left_over(path: &Path) -> Result<(), UnixError> {
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(UnixError::NotASocket);
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(fs::remove_file(path)?),
        // It may have gone just now.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // If its line is full, somebody listens, too.
        Ok(_) => Err(UnixError::InUse),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(UnixError::InUse),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

    use std::os::unix::net::UnixListener as StdListener;

    use super::*;

    fn directory() -> tempfile::TempDir {
        tempfile::Builder::new().prefix("socket-").tempdir().unwrap()
    }

    #[tokio::test]
    async fn a_socket_has_its_mode_and_is_gone_at_the_end() {
        let directory = directory();
        let path = directory.path().join("s");
        for mode in [0o600, 0o666] {
            let listener = listen_unix(&path, mode, 16).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
            let connected = UnixStream::connect(&path).unwrap();
            listener.accept().await.unwrap();
            drop((connected, listener));
            assert!(!path.exists());
        }
    }

    #[tokio::test]
    async fn what_a_crash_has_left_is_replaced_and_what_is_in_use_is_not() {
        let directory = directory();
        let path = directory.path().join("s");
        // Nobody removes it: as after a crash.
        drop(StdListener::bind(&path).unwrap());
        let _listener = listen_unix(&path, 0o600, 16).unwrap();
        assert!(matches!(listen_unix(&path, 0o600, 16), Err(UnixError::InUse)));
        assert!(UnixStream::connect(&path).is_ok(), "the first one still listens");
    }

    #[tokio::test]
    async fn a_file_of_another_kind_is_not_touched() {
        let directory = directory();
        let path = directory.path().join("s");
        fs::write(&path, "precious").unwrap();
        assert!(matches!(listen_unix(&path, 0o600, 16), Err(UnixError::NotASocket)));
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }

    #[tokio::test]
    async fn a_path_that_is_too_long_is_told() {
        let path = PathBuf::from("/tmp").join("x".repeat(200));
        let error = listen_unix(&path, 0o600, 16).unwrap_err();
        assert_eq!(error.to_string(), "the path has 205 bytes, but the path of a socket can have at most 107");
    }
}
