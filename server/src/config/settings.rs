//! Every setting of the server, once. Its variable, its flag, its place in a file, its documentation and its
//! line in `punctual config` follow from this list; `common` ones are shown by `punctual serve -h`.

use std::num::{NonZeroU16, NonZeroUsize};
use std::path::PathBuf;

use punctual_core::Name;
use punctual_wire::Span;

use super::table::{Setting, settings};
use super::value::{Address, FileMode, Given, HostName, LogFormat, Period, Ratio, Reads, Size, Synced};

settings! {
    {
        /// Where to listen; several addresses are a list, or separated by commas. Port 0 takes a free port and says
        /// which, and `unix:PATH` is a socket that is a file. An address that other machines reach needs tokens
        /// (`punctual token create`) or `access.open`.
        listen: Vec<Address> = "127.0.0.1:7400", common;
        /// The directory for everything that is kept. It is made if it is not there, and belongs to one process at a
        /// time.
        data: PathBuf = "punctual-data", common;
    }

    /// How the node works.
    node: NodePart {
        /// The node's name, in logs and as the owner of its shards.
        name: Name = "node-1";
        /// Into how many shards tasks are divided, each on a thread of its own. One is enough for most and keeps the
        /// order within a queue strict. It is noted at the first start and cannot be changed after that.
        shards: NonZeroU16 = "1";
        /// How many requests may wait for each shard before more are refused as overload.
        inbox: NonZeroUsize = "16384";
        /// How many bytes of answers may be under way together: tasks, lists and deliveries that clients have yet to read.
        /// What does not fit is refused as overload, be it a list or a long task that is looked at, and consumers get
        /// one short delivery at a time. One answer has at most 8 MiB of bodies as they are written, or a single one.
        answers: Size = "256MiB";
    }

    /// The machine's clock.
    clock: ClockPart {
        /// For how long a step of the clock forward, of more than a second, is doubted that the time since boot does not
        /// confirm. Until then time runs on as if there had been none, since what has fired cannot be taken back.
        doubt: Span = "30s";
    }

    /// The embedded store.
    store: StorePart {
        /// How much memory recent rows and parts of runs may take. Beyond it a pending task costs at most 16 bytes.
        memory: Size = "192MiB", common;
        /// How long the journal grows before its rows move to a run. More makes for fewer, larger runs and a longer
        /// start.
        journal: Size = "128MiB";
        /// When a commit is on disk: `always` before it is confirmed, or within this time after it. With a time a power
        /// loss takes what was confirmed in that time; a process that is killed loses nothing either way.
        sync: Synced = "always", common;
        /// How much room on the disk is kept for acknowledging and cancelling when it is full.
        reserve: Size = "32MiB";
    }

    /// What may be scheduled.
    tasks: TasksPart {
        /// The largest body of a task.
        max_body: Size = "1MiB", common;
        /// Whether topics and queues come to be by being used. If not, they are made by `punctual topics` and
        /// `punctual queues`.
        create_on_use: bool = "true";
    }

    /// The HTTP door. Its limits bound what a broken or hostile client costs.
    http: HttpPart {
        /// The names under which clients ask for the server, such as `punctual.example.com`; several are a list, or
        /// separated by commas, and `*` stands for any characters. Its addresses, `localhost` and names under it are
        /// always right; requests for any other name are refused, since a web page could have made them by having
        /// its name resolve to the server's address.
        hosts: Option<Vec<HostName>> = "", common;
        /// The largest body of a request, unpacked.
        request_size: Size = "16MiB";
        /// The most header lines of a request.
        headers: NonZeroUsize = "64";
        /// The largest head of a request.
        header_size: Size = "32KiB";
        /// How long a request's head may take to arrive; also how long a connection may be idle.
        header_time: Period = "30s";
        /// How long a request's body may take to arrive, and how long a client may leave an answer unread.
        body_time: Period = "30s";
        /// How long a consumer may wait for deliveries in one request.
        wait: Span = "5m";
        /// How many connections there may be at once, for each address. Further ones wait.
        connections: NonZeroUsize = "10000";
        /// How many tasks, actions or deliveries one request may have.
        batch: NonZeroUsize = "10000";
    }

    /// The beanstalk door: the protocol of beanstalkd 1.12, for its clients. See docs/beanstalk.md.
    beanstalk: BeanstalkPart {
        /// Where to listen, such as 127.0.0.1:11300 or unix:/run/punctual/beanstalk. Without an address the door is
        /// closed.
        listen: Option<Address> = "", common;
        /// Whether to open it although a token would be needed elsewhere, or other machines reach it. The protocol knows
        /// neither tokens nor encryption: everybody who reaches it may put, take and remove jobs.
        open: bool = "false";
        /// How many connections there may be at once. Further ones wait.
        connections: NonZeroUsize = "10000";
        /// How many commands of one connection are carried out together.
        batch: NonZeroUsize = "1024";
        /// How long a client may leave an answer unread.
        unread_time: Period = "30s";
    }

    /// Sockets that are files, of addresses that begin with `unix:`. They are made at the start, also in place of one that
    /// a crash has left behind, and removed at the end.
    unix: UnixPart {
        /// Who may connect: whoever may write to the file. `0660` is the user and the group of the process.
        mode: FileMode = "0660";
    }

    /// Encryption. With a certificate and its key, all addresses but unix sockets speak TLS only. Both are read again on SIGHUP.
    tls: TlsPart {
        /// A PEM file with the certificate, and those that vouch for it after it.
        certificate: Option<PathBuf> = "", common;
        /// A PEM file with the certificate's private key.
        key: Option<PathBuf> = "", common;
    }

    /// Who may do what.
    access: AccessPart {
        /// The file of tokens, written by `punctual token`. Unless named, it is `tokens.toml` in the data directory.
        /// One that is named must be there. While there is one, every request needs a token. Changes count within
        /// seconds, or at once on SIGHUP.
        tokens: Option<PathBuf> = "", common;
        /// Whether to listen without tokens on addresses that other machines reach. Everybody who reaches them may
        /// then do everything: say so only where something else keeps strangers out.
        open: bool = "false", common;
    }

    /// Finished tasks, written to files before they are forgotten.
    archive: ArchivePart {
        /// The directory for the archive; by default nothing is archived. A task goes there when its topic has
        /// kept it in the history for its time. One file a month, JSON lines packed with zstd.
        directory: Option<PathBuf> = "", common;
        /// How often finished tasks are looked for.
        every: Period = "10s";
    }

    /// The log, on standard error.
    log: LogPart {
        /// How it is written: `human` for people, `json` for machines, an object a line. `auto` is human, in colour
        /// on a terminal.
        format: LogFormat = "auto", common;
        /// What is logged: error, warn, info, debug or trace, also for single parts, as in `info,punctual::http=debug`.
        /// Operators' actions are logged by `punctual::audit` at info.
        level: String = "info", common;
    }

    /// Numbers for Prometheus, at `/metrics`.
    metrics: MetricsPart {
        /// How many topics and how many queues are shown by name. Those that come later are summed up as `other`.
        topics: usize = "1000";
    }

    /// Traces for OpenTelemetry.
    trace: TracePart {
        /// Where spans of requests and tasks are sent by OTLP over HTTP, such as `http://127.0.0.1:4318`; by default nowhere.
        endpoint: Option<String> = "", common;
        /// Which share of the requests that do not say so themselves is traced.
        sample: Ratio = "1";
    }

    /// The process.
    runtime: RuntimePart {
        /// How many threads serve connections; 0 is one for each core.
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
}
