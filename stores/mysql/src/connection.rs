//! One conversation with a server, through `mysql_async`: a text of several statements goes out, and their answers come back.
//!
//! The store's callers block, and may be anybody's threads. What is asynchronous runs on threads of our own, and the caller
//! waits on a channel.

use std::sync::Arc;
use std::time::Instant;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error, IoError, Opts};
use punctual_database::Threads;

use crate::answer::{Answer, Record};
use crate::login::Login;
use crate::trouble::Trouble;

/// A conversation with a server, after the greeting.
pub(crate) struct Connection {
    threads: Arc<Threads>,
    /// Gone after a failure that leaves the conversation in the middle of something.
    conn: Option<Conn>,
}

/// What kept a text from being carried out to its end, after so many of its statements.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) after: usize,
    pub(crate) why: Trouble,
}

impl Connection {
    /// Meets the server and proves who we are.
    pub(crate) fn open(threads: &Arc<Threads>, login: &Login, deadline: Instant) -> Result<Connection, Trouble> {
        let (secret, plain) = (login.secret.clone(), login.plain.clone());
        let conn = threads.begin(meet(secret, plain)).wait_until(deadline).ok_or(Trouble::Late)??;
        Ok(Connection { threads: Arc::clone(threads), conn: Some(conn) })
    }

    /// Has statements carried out, one after the other until one fails, in one round trip.
    pub(crate) fn ask(&mut self, text: Vec<u8>, deadline: Instant) -> Result<Vec<Answer>, Stopped> {
        let stopped = |why| Stopped { after: 0, why };
        let mut conn = self.conn.take().ok_or_else(|| stopped(Trouble::Away("the connection is closed".to_owned())))?;
        let asked = self.threads.begin(async move {
            let mut answers = Vec::new();
            let walked = walk(&mut conn, text, &mut answers).await;
            (conn, answers, walked)
        });
        let (conn, answers, walked) = asked.wait_until(deadline).ok_or_else(|| stopped(Trouble::Late))?;
        match walked.map_err(Trouble::from) {
            Ok(()) => {
                self.conn = Some(conn);
                Ok(answers)
            }
            Err(why) => {
                // After any other failure than a statement's nobody knows what comes next.
                self.conn = matches!(why, Trouble::Server { .. }).then_some(conn);
                Err(Stopped { after: answers.len(), why })
            }
        }
    }
}

impl Drop for Connection {
    /// Says goodbye from one of our threads, wherever this is dropped.
    fn drop(&mut self) {
        let _ours = self.threads.handle().enter();
        self.conn = None;
    }
}

/// Connects, encrypted if that is wanted, and plainly if it is not or if both will do and the server cannot.
async fn meet(secret: Option<Opts>, plain: Option<Opts>) -> Result<Conn, Trouble> {
    if let Some(secret) = secret {
        match Conn::new(secret).await {
            Err(Error::Driver(DriverError::NoClientSslFlagFromServer)) if plain.is_some() => {}
            met => return Ok(met?),
        }
    }
    let plain = plain.ok_or_else(|| Trouble::Foreign("there is no way to connect".to_owned()))?;
    Ok(Conn::new(plain).await?)
}

/// Takes in the answers as far as they come.
async fn walk(conn: &mut Conn, text: Vec<u8>, answers: &mut Vec<Answer>) -> Result<(), Error> {
    let mut result = conn.query_iter(text).await?;
    loop {
        match result.columns() {
            Some(columns) if columns.is_empty() => {
                answers.push(Answer::Done(result.affected_rows()));
                result.next().await?;
            }
            Some(_) => {
                let mut rows = Vec::new();
                while let Some(row) = result.next().await? {
                    rows.push(Record::new(row.unwrap()));
                }
                answers.push(Answer::Rows(rows));
            }
            // All is told, or what is left is why the next statement failed: only asking shows it.
            None => return result.next().await.map(drop),
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        match error {
            Error::Server(error) => Trouble::Server { code: error.code, message: error.message },
            Error::Io(IoError::Io(error)) if error.kind() != std::io::ErrorKind::InvalidData => {
                Trouble::Away(error.to_string())
            }
            // A certificate that cannot be trusted will not be trusted next time.
            Error::Io(IoError::Io(error)) => Trouble::Foreign(error.to_string()),
            Error::Driver(DriverError::ConnectionClosed) => Trouble::Away("it has closed the connection".to_owned()),
            Error::Driver(DriverError::NoClientSslFlagFromServer) => {
                Trouble::Foreign("the server does not speak TLS, and the URL asks for it".to_owned())
            }
            error => Trouble::Foreign(error.to_string()),
        }
    }
}
