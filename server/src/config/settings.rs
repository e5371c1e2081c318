//! Every setting of the server, once. Its variable, its flag, its place in a file, its documentation and its
//! line in `punctual config` follow from this list; `common` ones are shown by `punctual serve -h`.

use std::num::{NonZeroU16, NonZeroUsize};
use std::path::PathBuf;

use punctual_core::Name;
use punctual_wire::Span;

use super::store_url::{Secret, StoreUrl};
use super::table::{Setting, settings};
use super::value::{Address, FileMode, Given, HostName, LogFormat, Period, Ratio, Reads, Size, Synced};

settings! {
    {
        /// The addresses to listen on, as a list or separated by commas. Port 0 picks a free port and prints it;
        /// `unix:PATH` is a Unix socket. An address that other machines can reach needs tokens (`punctual token create`)
        /// or `access.open`.
        listen: Vec<Address> = "127.0.0.1:7400", common;
        /// The directory of the embedded store, the secret that signs leases, and the tokens. The server creates it if it
        /// does not exist, and only one process can use it at a time. With a database it is not needed: the secret and
        /// the tokens are in it, too.
        data: PathBuf = "punctual-data", common;
    }

    /// How the node works.
    node: NodePart {
        /// The name of the node, used in logs and as the owner of its shards. Two servers on one store cannot have the
        /// same name.
        name: Name = "node-1";
        /// Where clients reach this server over HTTP, such as `https://punctual-1.example:7400`. Clients that know one
        /// server of several learn of the others by this.
        advertise: Option<String> = "";
        /// The number of shards that tasks are divided into, each on its own thread. It is chosen at the first start
        /// and must be what the store has after that; `punctual shards grow` divides them into more. If not set, it is
        /// what the store has, or at a first start 1 for the embedded store, which is enough for most uses and keeps the order within a queue strict, and 16 for databases, where several servers share them and order is strict within each of them.
        shards: Option<NonZeroU16> = "";
        /// How many requests may wait for each shard before further ones are refused as overload.
        inbox: NonZeroUsize = "16384";
        /// How many bytes of answers may be in flight at once: tasks, lists and deliveries that clients have not read yet.
        /// Beyond it, lists and large tasks are refused as overload, and consumers get one short delivery at a time. A
        /// single answer holds at most 8 MiB of encoded bodies, or one larger body.
        answers: Size = "256MiB";
    }

    /// The links between servers on one store. See docs/cluster.md.
    links: LinksPart {
        /// Databases: the address and port where other servers on the same store reach this one. If not set, it is the
        /// address from which this machine reaches the store, with a free port. Only servers that know the secret in the
        /// store are let in.
        listen: Option<Address> = "";
        /// Databases: what other servers are told instead of the address in `links.listen`, as `HOST:PORT`, if they reach
        /// this machine under another one.
        advertise: Option<Address> = "";
        /// Databases: a PEM file with the certificate of this server, followed by any intermediate certificates. With it,
        /// links are encrypted, and both ends must show a certificate. Set `links.key` and `links.ca` along with it.
        certificate: Option<PathBuf> = "";
        /// Databases: a PEM file with the certificate's private key.
        key: Option<PathBuf> = "";
        /// Databases: a PEM file with the certificates that vouch for those of all servers.
        ca: Option<PathBuf> = "";
    }

    /// The machine's clock.
    clock: ClockPart {
        /// How long to distrust the clock after it jumps forward by more than a second without the time since boot
        /// confirming it. Until then time runs on as before the jump, because a task that has fired cannot be taken back.
        doubt: Span = "30s";
    }

    /// Where tasks are kept. See docs/stores.md.
    store: StorePart {
        /// The store: `almanac` is embedded and keeps its files in the data directory; `memory` forgets everything when the
        /// server stops; a URL is a database: `postgres://USER@HOST/DATABASE`, `mysql://USER@HOST/DATABASE` or
        /// `redis://HOST`.
        url: StoreUrl = "almanac", common;
        /// Databases: the password, if it is not in the URL. It has no flag, because everyone on a machine can see
        /// command lines. It is never shown or logged.
        password: Option<Secret> = "";
        /// Databases: a file that holds the password and nothing else.
        password_file: Option<PathBuf> = "", common;
        /// Databases: how many connections to use at most.
        connections: NonZeroUsize = "8";
        /// Databases: how long a request may take, including its retries, before it fails as unavailable.
        patience: Period = "5s";
        /// Databases: how long to wait at startup for one that cannot be reached yet.
        wait: Span = "30s";
        /// Databases: a PEM file with the certificate to trust, instead of those this machine trusts.
        ca: Option<PathBuf> = "";
        /// Databases: a PEM file with a certificate to show, if the database asks for one.
        certificate: Option<PathBuf> = "";
        /// Databases: a PEM file with the private key of `store.certificate`.
        key: Option<PathBuf> = "";
        /// PostgreSQL: the schema of the tables, which is created if it does not exist. If not set, it is `punctual`.
        schema: Option<String> = "";
        /// Databases: what the names of all tables or keys begin with, so that several servers can share a database. If
        /// not set, nothing for PostgreSQL, `punctual_` for MySQL, and `punctual` for Redis.
        prefix: Option<String> = "";
        /// Redis: how many replicas must have a commit before it is confirmed.
        replicas: usize = "0";
        /// The password of the database that `punctual store move` moves into, if it is not in the URL. A server that was
        /// killed during a live move needs it to continue. See docs/moving.md.
        moving_to_password: Option<Secret> = "";
        /// A file that holds the password of the database to move into and nothing else.
        moving_to_password_file: Option<PathBuf> = "";
        /// Almanac: how much memory recent rows and cached parts of runs may use. Beyond it, a pending task costs at most
        /// 16 bytes.
        memory: Size = "192MiB", common;
        /// Almanac: how large the journal grows before its rows move to a run. A larger journal means fewer, larger runs
        /// and a slower start.
        journal: Size = "128MiB";
        /// Almanac: when a commit is synced to disk: `always` before it is confirmed, or within this duration afterwards.
        /// With a duration, a power loss can lose what was confirmed within it; a killed process loses nothing either way.
        sync: Synced = "always", common;
        /// Almanac: how much disk space to reserve, so that acknowledging and cancelling still work when the disk is full.
        reserve: Size = "32MiB";
    }

    /// What can be scheduled.
    tasks: TasksPart {
        /// The maximum size of a task's body.
        max_body: Size = "1MiB", common;
        /// Whether topics and queues are created when they are first used. If not, create them with `punctual topics` and
        /// `punctual queues`.
        create_on_use: bool = "true";
    }

    /// The HTTP door. Its limits bound what a broken or hostile client can cost.
    http: HttpPart {
        /// The host names by which clients may address the server, such as `punctual.example.com`, as a list or separated
        /// by commas; `*` matches any characters. IP addresses, `localhost` and names under it are always accepted.
        /// Requests for any other name are refused, because they could come from a web page whose name was made to
        /// resolve to the server's address.
        hosts: Option<Vec<HostName>> = "", common;
        /// The maximum size of a request body, after decompression.
        request_size: Size = "16MiB";
        /// The maximum number of header lines in a request.
        headers: NonZeroUsize = "64";
        /// The maximum size of a request's head: request line and headers.
        header_size: Size = "32KiB";
        /// How long the head of a request may take to arrive, and how long a connection may be idle.
        header_time: Period = "30s";
        /// How long the body of a request may take to arrive, and how long a client may leave an answer unread.
        body_time: Period = "30s";
        /// The longest time a consumer may wait for deliveries in one request.
        wait: Span = "5m";
        /// The maximum number of open connections for each address. Further ones wait.
        connections: NonZeroUsize = "10000";
        /// The maximum number of tasks, actions or deliveries in one request.
        batch: NonZeroUsize = "10000";
    }

    /// The web console, at `/console/` of the HTTP door. See docs/console.md.
    console: ConsolePart {
        /// Whether to serve it. It can do nothing that its user's token does not allow.
        enabled: bool = "true";
        /// What it is called in the browser, such as the name of the team that runs the server.
        title: String = "Punctual";
        /// What the server is used for, such as `staging`, shown beside the title. One that begins with `prod` is shown in red.
        environment: Option<String> = "";
    }

    /// The beanstalk door, which speaks the protocol of beanstalkd 1.12. See docs/beanstalk.md.
    beanstalk: BeanstalkPart {
        /// The address to listen on, such as 127.0.0.1:11300 or unix:/run/punctual/beanstalk. If not set, the door is
        /// closed.
        listen: Option<Address> = "", common;
        /// Whether to open the door even if the other doors need tokens or other machines can reach it. The protocol has
        /// neither tokens nor encryption: anyone who can connect may put, take and remove jobs.
        open: bool = "false";
        /// The maximum number of open connections. Further ones wait.
        connections: NonZeroUsize = "10000";
        /// How many commands of one connection are processed together.
        batch: NonZeroUsize = "1024";
        /// How long a client may leave an answer unread.
        unread_time: Period = "30s";
    }

    /// Unix sockets, for addresses that begin with `unix:`. They are created at startup, replacing any that a crash
    /// left behind, and removed at shutdown.
    unix: UnixPart {
        /// The file mode of the socket; whoever may write to the file may connect. `0660` allows the user and the group of the process.
        mode: FileMode = "0660";
    }

    /// Encryption. With a certificate and its key, all addresses except Unix sockets speak only TLS. Both files are read again on SIGHUP.
    tls: TlsPart {
        /// A PEM file with the certificate, followed by any intermediate certificates.
        certificate: Option<PathBuf> = "", common;
        /// A PEM file with the certificate's private key.
        key: Option<PathBuf> = "", common;
    }

    /// Who may do what.
    access: AccessPart {
        /// The token file, written by `punctual token`; by default `tokens.toml` in the data directory or, if the store is a
        /// database, the tokens in it, which are the same for all servers. If set, the file must exist, and only it counts.
        /// While there are tokens, every request needs one. Changes take effect within seconds, or at once on SIGHUP.
        tokens: Option<PathBuf> = "", common;
        /// Whether to listen without tokens on addresses that other machines can reach. Anyone who can connect may then
        /// do everything: use it only where something else keeps strangers out.
        open: bool = "false", common;
    }

    /// The archive: finished tasks, written to files before they are forgotten.
    archive: ArchivePart {
        /// The directory for the archive; if not set, nothing is archived. A task goes there at the end of its topic's
        /// retention time in the history. There is one file per month: JSON lines, compressed with zstd.
        directory: Option<PathBuf> = "", common;
        /// How often to look for finished tasks.
        every: Period = "10s";
    }

    /// The log, on standard error.
    log: LogPart {
        /// The format: `human` for people, or `json` for machines, one object per line. `auto` is `human`, in colour on
        /// a terminal.
        format: LogFormat = "auto", common;
        /// The log level: error, warn, info, debug or trace, also per component, as in `info,punctual::http=debug`.
        /// Operator actions are logged as `punctual::audit` at info.
        level: String = "info", common;
    }

    /// Metrics for Prometheus, at `/metrics`.
    metrics: MetricsPart {
        /// How many topics and how many queues get metrics of their own. Any further ones are combined as `other`.
        topics: usize = "1000";
    }

    /// Traces for OpenTelemetry.
    trace: TracePart {
        /// Where to send the spans of requests and tasks (OTLP over HTTP), such as `http://127.0.0.1:4318`; if not set, nowhere.
        endpoint: Option<String> = "", common;
        /// The share of requests to trace, among those whose own trace context does not decide it.
        sample: Ratio = "1";
    }

    /// The process.
    runtime: RuntimePart {
        /// How many threads serve connections; 0 means one per core.
        threads: usize = "0";
    }
}

/// Reads a default; a test reads all of them.
fn default<T: Reads>(text: &str) -> T {
    T::read(&Given::Text(text.to_owned())).expect("defaults are well written")
}

impl Config {
    /// The file of tokens: the one that was named, or the one in the data directory.
    pub fn tokens(&self) -> PathBuf {
        self.access.tokens.clone().unwrap_or_else(|| self.data.join("tokens.toml"))
    }

    /// Whether the tokens are in the store, the same for all servers on it, and not in a file.
    pub fn has_tokens_in_store(&self) -> bool {
        self.store.url.is_remote() && self.access.tokens.is_none()
    }

    /// Where the tokens are, for people.
    pub fn tokens_place(&self) -> String {
        if self.has_tokens_in_store() { "the store".into() } else { self.tokens().display().to_string() }
    }

    /// The store's URL with its password in it, wherever that was said.
    pub fn store_url(&self) -> Result<String, String> {
        let StorePart { url, password, password_file, .. } = &self.store;
        let password = match (password, password_file) {
            (Some(password), _) => Some(password.clone()),
            (None, Some(path)) => Some(Secret::from_file(path)?),
            (None, None) => None,
        };
        Ok(url.whole(password.as_ref()))
    }
}
