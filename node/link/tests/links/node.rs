//! A node that only links: it writes down what it hears, and answers what it is asked.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Condvar, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use punctual_center::{Ears, Greeting, LinkId, Links, Message, Peer, Unsent};
use punctual_core::store::{Incarnation, ShardId};
use punctual_core::{Answer, Command, Name, Schedule, Task};
use punctual_link::{Credentials, Pace, Settings, TcpLinks};
use tokio::runtime::{Builder, Runtime};

/// Nothing takes longer than this, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What was heard.
#[derive(Clone, Debug, PartialEq)]
pub enum Word {
    Linked(LinkId, Greeting),
    Told(LinkId, Message),
    Unlinked(LinkId, Vec<Message>),
    Joined(LinkId, Greeting),
    Asked(LinkId, Message),
    Left(LinkId),
}

pub struct Node {
    pub who: Incarnation,
    pub links: Arc<TcpLinks>,
    pub log: Arc<Log>,
    _runtime: Runtime,
}

#[derive(Default)]
pub struct Log {
    words: Mutex<Vec<Word>>,
    changed: Condvar,
    links: OnceLock<Weak<TcpLinks>>,
    /// So many bytes come back for each request.
    pub answer_bytes: usize,
}

/// Everything goes faster than in real life.
pub fn brisk() -> Settings {
    let mut settings = Settings::new(Credentials::from_bytes(&[7; Credentials::BYTES]).unwrap(), "1.2.3", 1..=4);
    settings.pace = Pace {
        ping: Duration::from_millis(50),
        silence: Duration::from_secs(2),
        refused_wait: Duration::from_secs(2),
        ..Pace::default()
    };
    settings
}

impl Node {
    pub fn new(name: &str) -> Node {
        Node::with(name, brisk())
    }

    pub fn with(name: &str, settings: Settings) -> Node {
        Node::answering(name, settings, 0)
    }

    pub fn answering(name: &str, settings: Settings, answer_bytes: usize) -> Node {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let links = Arc::new(TcpLinks::new(listener, settings, runtime.handle().clone()).unwrap());
        let log = Arc::new(Log { answer_bytes, ..Log::default() });
        log.links.set(Arc::downgrade(&links)).unwrap();
        let who = Incarnation { node: Name::new(name).unwrap(), number: 1 };
        links.open(&who, Arc::clone(&log) as Arc<dyn Ears>);
        Node { who, links, log, _runtime: runtime }
    }

    pub fn port(&self) -> u16 {
        self.links.address().port()
    }

    pub fn peer(&self) -> Peer {
        self.peer_at(self.port())
    }

    /// The same, reached through a proxy.
    pub fn peer_at(&self, port: u16) -> Peer {
        Peer { who: self.who.clone(), address: format!("127.0.0.1:{port}") }
    }

    /// Dials this node, and waits for the link.
    pub fn link_to(&self, peer: Peer) -> LinkId {
        self.links.keep(std::slice::from_ref(&peer));
        self.linked_after(0, &peer.who)
    }

    /// The first link to a node that came up after so many words.
    pub fn linked_after(&self, words: usize, to: &Incarnation) -> LinkId {
        self.log.wait_for(words, |word| match word {
            Word::Linked(on, greeting) if greeting.who == *to => Some(*on),
            _ => None,
        })
    }

    pub fn ask(&self, on: LinkId, id: u64, body: usize) -> Result<(), Unsent> {
        self.links.ask(on, ask(id, body))
    }

    /// Why there is no link to somebody, once that is known.
    pub fn trouble(&self) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(trouble) = self.links.peers().into_iter().find_map(|peer| peer.trouble) {
                return trouble;
            }
            assert!(Instant::now() < until, "there is no trouble");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.links.close();
    }
}

/// A request with a body of this length.
pub fn ask(id: u64, body: usize) -> Message {
    let task = Task::new(Name::new("orders").unwrap(), vec![b'x'; body]);
    let command = Command::Schedule(Box::new(Schedule { task, id: Name::new("a").unwrap(), id_is_new: true }));
    Message::Ask { id, shard: ShardId(3), round: 0, command, by: None }
}

pub fn id_of(message: &Message) -> u64 {
    match message {
        Message::Ask { id, .. } | Message::Answered { id, .. } | Message::Served { id, .. } => *id,
        other => panic!("{other:?} has no id"),
    }
}

impl Log {
    pub fn words(&self) -> Vec<Word> {
        self.words.lock().unwrap().clone()
    }

    /// The requests that were heard, in order.
    pub fn asked(&self) -> Vec<u64> {
        let words = self.words.lock().unwrap();
        words
            .iter()
            .filter_map(|word| if let Word::Asked(_, message) = word { Some(id_of(message)) } else { None })
            .collect()
    }

    /// The answers that were heard, in order.
    pub fn told(&self) -> Vec<u64> {
        let words = self.words.lock().unwrap();
        words
            .iter()
            .filter_map(|word| if let Word::Told(_, message) = word { Some(id_of(message)) } else { None })
            .collect()
    }

    /// Waits until something was said, after so many words.
    pub fn wait_for<T>(&self, after: usize, mut what: impl FnMut(&Word) -> Option<T>) -> T {
        self.wait(|words| words[after.min(words.len())..].iter().find_map(&mut what))
    }

    /// Waits until all that was said makes something true.
    pub fn wait<T>(&self, mut what: impl FnMut(&[Word]) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        let mut words = self.words.lock().unwrap();
        loop {
            if let Some(found) = what(&words) {
                return found;
            }
            let left = until
                .checked_duration_since(Instant::now())
                .unwrap_or_else(|| panic!("waited in vain; the last of {} words: {:?}", words.len(), words.last()));
            words = self.changed.wait_timeout(words, left).unwrap().0;
        }
    }

    fn say(&self, said: impl IntoIterator<Item = Word>) {
        self.words.lock().unwrap().extend(said);
        self.changed.notify_all();
    }
}

impl Ears for Log {
    fn linked(&self, on: LinkId, to: &Greeting) {
        self.say([Word::Linked(on, to.clone())]);
    }

    fn told(&self, on: LinkId, messages: Vec<Message>) {
        self.say(messages.into_iter().map(|message| Word::Told(on, message)));
    }

    fn unlinked(&self, on: LinkId, unsent: Vec<Message>) {
        self.say([Word::Unlinked(on, unsent)]);
    }

    fn joined(&self, on: LinkId, by: &Greeting) {
        self.say([Word::Joined(on, by.clone())]);
    }

    fn asked(&self, on: LinkId, messages: Vec<Message>) {
        let links = self.links.get().and_then(Weak::upgrade);
        for message in &messages {
            let note = Answer::Deleted(self.answer_bytes as u64);
            let outcome = if self.answer_bytes == 0 { Ok(note) } else { Err(long(self.answer_bytes)) };
            if let Some(links) = &links {
                links.answer(on, Message::Answered { id: id_of(message), outcome });
            }
        }
        self.say(messages.into_iter().map(|message| Word::Asked(on, message)));
    }

    fn left(&self, on: LinkId) {
        self.say([Word::Left(on)]);
    }
}

fn long(bytes: usize) -> punctual_center::Error {
    punctual_center::Error::Full("x".repeat(bytes))
}
