//! One connection to one server. The `redis` crate speaks on it, on threads of the store's own; whoever asks waits for the
//! answers until a deadline, on any thread, and what has not answered by then is closed.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use punctual_database::{Address, Work};
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ErrorKind, IntoConnectionInfo, Pipeline, RedisConnectionInfo,
    RedisError, RedisResult, TlsCertificates, Value, cmd, pipe,
};
use tokio::runtime::Handle;

use crate::scripts;
use crate::target::User;
use crate::trouble::{Trouble, said};

/// How a connection begins: encryption, user, database.
#[derive(Clone)]
pub(crate) struct Manner {
    /// The threads that work on it.
    pub(crate) threads: Handle,
    /// Whom to trust, if it is encrypted, and who we are.
    pub(crate) certificates: Option<TlsCertificates>,
    pub(crate) user: User,
    pub(crate) database: u32,
    pub(crate) party: Party,
}

/// Whom a connection is to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Party {
    /// Whoever has the data.
    Server,
    /// The same, where sentinels may be a moment behind: it says itself that it is the master.
    Master,
    /// A sentinel, which has no data.
    Sentinel,
}

/// A connection, ready for commands.
pub(crate) struct Wire {
    threads: Handle,
    connection: MultiplexedConnection,
    under_way: Option<Work<RedisResult<Vec<Value>>>>,
}

impl Wire {
    /// Connects, says who we are and brings the scripts.
    pub(crate) fn connect(address: &Address, manner: &Manner, deadline: Instant) -> Result<Wire, Trouble> {
        let client = client(address, manner).map_err(told)?;
        // The deadline is the caller's.
        let patient = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let connect = async move { client.get_multiplexed_async_connection_with_config(&patient).await };
        let connection = waited(Work::begin(&manner.threads, connect), deadline)?;
        let mut wire = Wire { threads: manner.threads.clone(), connection, under_way: None };
        wire.greet(manner.party, deadline)?;
        Ok(wire)
    }

    fn greet(&mut self, party: Party, deadline: Instant) -> Result<(), Trouble> {
        if party == Party::Sentinel {
            return Ok(());
        }
        let mut greeting = pipe();
        for script in scripts::ALL.iter() {
            greeting.cmd("SCRIPT").arg("LOAD").arg(script.text());
        }
        self.send(greeting);
        for answer in self.receive(deadline)? {
            match answer {
                // An older one takes the first line of a script for a mistake.
                Value::ServerError(error) if error.code() == "ERR" => {
                    return Err(Trouble::Refused(format!("Redis 7 or Valkey is needed: {}", said(&error))));
                }
                Value::ServerError(error) => return Err(Trouble::of(&error, said(&error))),
                _ => {}
            }
        }
        if party == Party::Master {
            match self.ask(&cmd("ROLE"), deadline)? {
                Value::Array(role) if role.first() == Some(&Value::BulkString(b"master".to_vec())) => {}
                _ => return Err(Trouble::Away("it is not the master any more".to_owned())),
            }
        }
        Ok(())
    }

    /// Sends commands, whose answers are to be received next.
    pub(crate) fn send(&mut self, commands: Pipeline) {
        let mut connection = self.connection.clone();
        let work = async move { connection.send_packed_commands(&commands, 0, commands.len()).await };
        self.under_way = Some(Work::begin(&self.threads, work));
    }

    /// The answers to what was sent; that of a command which failed is [`Value::ServerError`]. After an error it is unknown
    /// whether the commands arrived, and the connection is of no more use.
    pub(crate) fn receive(&mut self, deadline: Instant) -> Result<Vec<Value>, Trouble> {
        self.under_way.take().map_or(Ok(Vec::new()), |work| waited(work, deadline))
    }

    /// One command and its answer.
    pub(crate) fn ask(&mut self, command: &Cmd, deadline: Instant) -> Result<Value, Trouble> {
        let mut one = pipe();
        one.add_command(command.clone());
        self.send(one);
        self.receive(deadline)?.pop().ok_or_else(|| Trouble::Away("it said nothing".to_owned()))
    }
}

/// What came of something that a thread of ours does.
fn waited<T: Send + 'static>(work: Work<RedisResult<T>>, deadline: Instant) -> Result<T, Trouble> {
    let done = work.wait_until(deadline).ok_or_else(|| Trouble::Away("no answer in time".to_owned()))?;
    done.map_err(told)
}

fn client(address: &Address, manner: &Manner) -> RedisResult<Client> {
    let (host, port) = (address.host.clone(), address.port);
    let place = match manner.certificates {
        None => ConnectionAddr::Tcp(host, port),
        Some(_) => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
    };
    // Nobody needs to know which library this is, and a user may not be allowed to say it.
    let mut session = RedisConnectionInfo::default().set_skip_set_lib_name();
    if manner.party != Party::Sentinel {
        session = session.set_db(i64::from(manner.database));
    }
    if let Some(name) = &manner.user.name {
        session = session.set_username(name).set_password("");
    }
    if let Some(password) = &manner.user.password {
        session = session.set_password(&password.0);
    }
    let tcp = TcpSettings::default().set_nodelay(true);
    let info = place.into_connection_info()?.set_redis_settings(session).set_tcp_settings(tcp);
    match &manner.certificates {
        None => Client::open(info),
        Some(certificates) => Client::build_with_tls(info, certificates.clone()),
    }
}

/// What an error of a connection means. A server that does not want us, or that we do not trust, will be no other at the
/// next attempt.
fn told(error: RedisError) -> Trouble {
    // A certificate that is not trusted comes as data that cannot be.
    let is_distrust = |source: &(dyn Error + 'static)| {
        let source = source.downcast_ref::<Arc<dyn Error + Send + Sync>>()?.downcast_ref::<io::Error>()?;
        (source.kind() == io::ErrorKind::InvalidData).then_some(())
    };
    let is_final = match error.kind() {
        ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig => true,
        ErrorKind::Io => error.source().and_then(is_distrust).is_some(),
        // A database that there is not.
        _ => error.code() == Some("ERR"),
    };
    if is_final { Trouble::Refused(error.to_string()) } else { Trouble::Away(error.to_string()) }
}
