//! One connection: its commands in order, many for each read, and their answers, many for each write.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Buf;
use futures_util::poll;
use punctual_core::{Lease, Name};
use punctual_socket::Stream;
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::answer::{Output, Word};
use crate::command::Command;
use crate::counters::Presence;
use crate::door::{Door, millis};
use crate::held::Held;
use crate::input::{Input, Next};
use crate::leaving::Stay;
use crate::round::{Begun, Round};
use crate::tubes::{Tie, Tied};
use crate::yaml;

/// The tube that every connection uses and watches at first.
pub(crate) const DEFAULT: &str = "default";

/// How many bytes of bodies a round takes before it is carried out.
const ROUND_BYTES: usize = 1 << 20;

/// How many bytes of answers are collected before they are written.
const OUTPUT_BYTES: usize = 256 * 1024;

/// How long a client may leave its last answers unread once the door closes.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a TLS handshake begins with, and no command does. A web page can let a browser begin one here, with bytes of
/// its choice that look like commands behind: whoever does is hung up on.
const HANDSHAKE: u8 = 0x16;

pub(crate) struct Connection<'a> {
    pub door: &'a Arc<Door>,
    pub stop: watch::Receiver<bool>,
    pub input: Input,
    pub output: Output,
    pub round: Round,
    pub held: Held,
    pub presence: Presence,
    pub used: Tied<'a>,
    pub watched: Vec<Tied<'a>>,
    /// Under which it holds what it has reserved.
    pub consumer: Name,
    /// Dropped when all of the above is: others wait for that.
    pub stay: Stay,
    /// The last to go: who sees it close finds the connection gone from all counts.
    pub stream: Stream,
}

/// What cannot be in a round: it waits, or it looks at what is durable.
pub(crate) enum Apart {
    Peek(u64),
    PeekReady,
    PeekDelayed,
    PeekBuried,
    Reserve(Option<Duration>),
    ReserveJob(u64),
    Kick(u32),
    Stats,
    StatsJob(u64),
    StatsTube(Name),
    ListTubes,
    PauseTube(Name, Duration),
}

/// What a read has brought.
enum Taken {
    /// Everything is in the round.
    All,
    /// As much as a round takes; there may be more.
    Full,
    /// Up to a command that goes alone.
    Up(Apart),
    Quit,
}

/// A connection that was let in, and is known to everybody before anybody who came after it is served.
pub(crate) struct Visitor {
    presence: Presence,
    stay: Stay,
    stream: Stream,
}

impl Visitor {
    pub fn new(door: &Door, stream: Stream) -> Visitor {
        Visitor { presence: door.counters.enter(), stay: door.leaving.enter(&stream), stream }
    }
}

impl<'a> Connection<'a> {
    pub fn new(door: &'a Arc<Door>, visitor: Visitor, stop: watch::Receiver<bool>) -> Connection<'a> {
        let Visitor { presence, stay, stream } = visitor;
        let default = Name::new(DEFAULT).expect("a name");
        Connection {
            door,
            stop,
            input: Input::new(door.limits.max_job_size),
            output: Output::new(),
            round: Round::default(),
            held: Held::default(),
            presence,
            used: door.tubes.tie(&default, Tie::Uses),
            watched: vec![door.tubes.tie(&default, Tie::Watches)],
            consumer: door.next_consumer(),
            stay,
            stream,
        }
    }

    /// Answers until the client leaves or the door closes. Then what it holds goes back, as far as that can be reached; says
    /// what is left.
    pub async fn run(mut self) -> Vec<Lease> {
        if let Err(error) = self.answer_all().await {
            tracing::debug!(%error, "a connection ended early");
        }
        self.add_counts();
        self.stay.is_ending();
        self.door.handle.abandon(std::mem::take(&mut self.held).into_leases()).await
    }

    async fn answer_all(&mut self) -> io::Result<()> {
        let mut is_first = true;
        loop {
            loop {
                if self.output.remaining() >= OUTPUT_BYTES {
                    self.flush().await?;
                }
                if self.is_closing() {
                    return self.flush().await;
                }
                let taken = self.take();
                if let Taken::Up(Apart::Reserve(timeout)) = taken {
                    if !self.reserve(timeout).await? {
                        return self.flush().await;
                    }
                    // What came while it waited may have come after somebody left.
                    if self.input.unread() > 0 {
                        self.stay.see_off(&self.stream).await;
                    }
                    continue;
                }
                self.finish_round().await;
                match taken {
                    Taken::All => break,
                    Taken::Full => {}
                    Taken::Up(apart) => self.look(apart).await,
                    Taken::Quit => return self.flush().await,
                }
            }
            self.flush().await?;
            self.output.let_go();
            let read = tokio::select! {
                biased;
                _ = self.stop.wait_for(|stop| *stop) => return Ok(()),
                read = read(&self.stream, &mut self.input) => read?,
            };
            if read == 0 || std::mem::take(&mut is_first) && self.input.buffer().first() == Some(&HANDSHAKE) {
                return Ok(());
            }
            self.stay.see_off(&self.stream).await;
        }
    }

    /// Whether the door closes: what was not begun by then is not begun any more, however much of it has come.
    pub fn is_closing(&self) -> bool {
        *self.stop.borrow()
    }

    /// Takes commands into the round until there are no more, the round is full, or one has to go alone.
    fn take(&mut self) -> Taken {
        let limits = self.door.limits;
        loop {
            // A full round is carried out first; what is left of the input comes after it.
            if self.round.len() >= limits.batch || self.round.bytes() >= ROUND_BYTES {
                return Taken::Full;
            }
            let command = match self.input.next() {
                Next::More => return Taken::All,
                Next::Answer(word) => {
                    self.round.say(word);
                    continue;
                }
                Next::Put(put) => {
                    if self.door.is_draining() {
                        self.round.say(Word::Draining);
                    } else {
                        self.round.put(&self.used.tube, put, &self.door.handle);
                    }
                    continue;
                }
                Next::Command(command) => command,
            };
            match command {
                Command::Delete(id) => self.round.delete(id, self.held.get(id)),
                Command::Release { id, pri, delay } => self.round.release(id, self.held.get(id), pri, millis(delay)),
                Command::Bury { id, pri } => self.round.bury(id, self.held.get(id), pri),
                Command::Touch(id) => self.round.touch(id, self.held.get(id)),
                Command::KickJob(id) => self.round.kick(id),
                Command::Use(tube) => {
                    let tube = tube_name(tube);
                    self.used = self.door.tubes.tie(&tube, Tie::Uses);
                    self.round.using(tube);
                }
                Command::Watch(tube) => {
                    if self.watched.iter().all(|watched| watched.tube.name.as_str() != tube) {
                        self.watched.push(self.door.tubes.tie(&tube_name(tube), Tie::Watches));
                    }
                    self.round.watching(self.watched.len());
                }
                Command::Ignore(tube) => {
                    let place = self.watched.iter().position(|watched| watched.tube.name.as_str() == tube);
                    match place {
                        Some(_) if self.watched.len() == 1 => self.round.say(Word::NotIgnored),
                        place => {
                            place.map(|place| self.watched.swap_remove(place));
                            self.round.watching(self.watched.len());
                        }
                    }
                }
                Command::ListTubeUsed => self.round.using(self.used.tube.name.clone()),
                Command::ListTubesWatched => {
                    let names = self.watched.iter().map(|watched| watched.tube.name.as_str());
                    self.round.document(yaml::list(names));
                }
                Command::Quit => return Taken::Quit,
                Command::Peek(id) => return Taken::Up(Apart::Peek(id)),
                Command::PeekReady => return Taken::Up(Apart::PeekReady),
                Command::PeekDelayed => return Taken::Up(Apart::PeekDelayed),
                Command::PeekBuried => return Taken::Up(Apart::PeekBuried),
                Command::Reserve => return Taken::Up(Apart::Reserve(None)),
                Command::ReserveWithTimeout(time) => return Taken::Up(Apart::Reserve(time)),
                Command::ReserveJob(id) => return Taken::Up(Apart::ReserveJob(id)),
                Command::Kick(most) => return Taken::Up(Apart::Kick(most)),
                Command::Stats => return Taken::Up(Apart::Stats),
                Command::StatsJob(id) => return Taken::Up(Apart::StatsJob(id)),
                Command::StatsTube(tube) => return Taken::Up(Apart::StatsTube(tube_name(tube))),
                Command::ListTubes => return Taken::Up(Apart::ListTubes),
                Command::PauseTube { tube, pause } => return Taken::Up(Apart::PauseTube(tube_name(tube), pause)),
            }
        }
    }

    /// Carries out what is in the round, and answers it.
    pub async fn finish_round(&mut self) {
        if self.round.len() > 0 {
            let begun = self.begin_round().await;
            begun.finish(&self.door.handle, &mut self.held, &mut self.output).await;
        }
    }

    /// Begins to carry out what is in the round.
    pub async fn begin_round(&mut self) -> Begun {
        if self.input.has_produced() {
            self.presence.produces();
        }
        self.round.begin(self.door).await
    }

    /// Writes all answers. A client that does not read them is cut off after a while.
    pub async fn flush(&mut self) -> io::Result<()> {
        if !self.output.has_remaining() {
            return Ok(());
        }
        self.add_counts();
        let bytes = self.output.remaining() as u64;
        let mut writing = pin!(self.stream.write_all_buf(&mut self.output));
        if let Poll::Ready(written) = poll!(writing.as_mut()) {
            return written;
        }
        // Others get no long answers while too many wait for their readers.
        let _room = self.door.handle.hold_unread(bytes);
        self.stay.is_behind(true);
        let written = tokio::select! {
            written = timeout(self.door.limits.unread_time, writing) => written.ok(),
            () = until_too_late(&mut self.stop) => None,
        };
        self.stay.is_behind(false);
        written.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Adds what was counted to what everybody sees.
    pub fn add_counts(&mut self) {
        self.door.counters.add(self.input.tally());
        self.door.counters.add(self.output.tally());
    }
}

/// Waits until the door has closed and the last answers should have been read.
async fn until_too_late(stop: &mut watch::Receiver<bool>) {
    // That nobody can close the door any more is no reason to end.
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(LAST_WORDS).await;
}

/// Reads what has come; 0 bytes are the end. While nothing comes, the connection costs no buffer.
pub(crate) async fn read(stream: &Stream, input: &mut Input) -> io::Result<usize> {
    loop {
        input.let_go();
        stream.readable().await?;
        match stream.try_read_buf(input.buffer()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read,
        }
    }
}

/// The name of a tube. The parser lets through none that is not one.
fn tube_name(tube: &str) -> Name {
    Name::new(tube).expect("the name of a tube is a name")
}
