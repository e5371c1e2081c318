//! Links between nodes of one process: queues and threads, which can be cut and slowed down.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::Duration;

use punctual_center::{Ears, Greeting, LinkId, Links, Message, Peer, Unsent, Why};
use punctual_core::store::Incarnation;

/// All nodes that can reach each other, by their addresses.
#[derive(Default)]
pub struct Network {
    wires: Mutex<BTreeMap<String, Weak<Wires>>>,
    /// Pairs of addresses, from and to, between which nothing can be dialled.
    cut: Mutex<Vec<(String, String)>>,
    delay_micros: AtomicU64,
}

impl Network {
    /// The links of a node with this address.
    pub fn join(self: &Arc<Network>, address: &str) -> Arc<Wires> {
        let wires = Arc::new(Wires {
            network: Arc::clone(self),
            address: address.to_owned(),
            ears: Mutex::default(),
            peers: Mutex::default(),
            dialled: Mutex::default(),
            accepted: Mutex::default(),
        });
        self.wires.lock().unwrap().insert(address.to_owned(), Arc::downgrade(&wires));
        wires
    }

    /// Everything takes so long from now on.
    pub fn slow_down(&self, delay: Duration) {
        self.delay_micros.store(delay.as_micros() as u64, Ordering::SeqCst);
    }

    /// Breaks the link from one address to another, which is not made again before it is mended.
    pub fn cut(&self, from: &str, to: &str) {
        self.cut.lock().unwrap().push((from.into(), to.into()));
        if let Some(wires) = self.find(from) {
            wires.hang_up(|peer| peer.address == to);
        }
    }

    /// Lets all links be made again.
    pub fn mend(&self) {
        self.cut.lock().unwrap().clear();
    }

    fn find(&self, address: &str) -> Option<Arc<Wires>> {
        self.wires.lock().unwrap().get(address)?.upgrade()
    }

    fn is_cut(&self, from: &str, to: &str) -> bool {
        self.cut.lock().unwrap().iter().any(|(one, other)| one == from && other == to)
    }
}

/// The links of one node.
pub struct Wires {
    network: Arc<Network>,
    address: String,
    ears: Mutex<Option<(Incarnation, Arc<dyn Ears>)>>,
    peers: Mutex<Vec<Peer>>,
    dialled: Mutex<BTreeMap<LinkId, (Peer, Sender<Message>)>>,
    accepted: Mutex<BTreeMap<LinkId, Sender<Message>>>,
}

fn greeting(who: &Incarnation) -> Greeting {
    Greeting { who: who.clone(), software: "test".into(), levels: 1..=1 }
}

fn new_link() -> LinkId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    LinkId(NEXT.fetch_add(1, Ordering::SeqCst))
}

impl Wires {
    fn ears(&self) -> Option<(Incarnation, Arc<dyn Ears>)> {
        self.ears.lock().unwrap().clone()
    }

    fn dial(self: &Arc<Wires>, peer: &Peer) {
        if self.network.is_cut(&self.address, &peer.address) {
            return;
        }
        let (Some(other), Some((me, ears))) = (self.network.find(&peer.address), self.ears()) else { return };
        let Some((who, their_ears)) = other.ears().filter(|(who, _)| *who == peer.who) else { return };
        let (here, there) = (new_link(), new_link());
        let (asks, asked) = channel();
        let (answers, told) = channel();
        other.accepted.lock().unwrap().insert(there, answers);
        self.dialled.lock().unwrap().insert(here, (peer.clone(), asks));
        their_ears.joined(there, &greeting(&me));
        ears.linked(here, &greeting(&who));
        let (wires, network) = (Arc::clone(self), Arc::clone(&self.network));
        // The way there ends when the dialler hangs up, and takes the way back along.
        thread::spawn(move || {
            carry(&network, &asked, |messages| their_ears.asked(there, messages));
            other.accepted.lock().unwrap().remove(&there);
            their_ears.left(there);
        });
        thread::spawn(move || {
            carry(&wires.network, &told, |messages| ears.told(here, messages));
            wires.dialled.lock().unwrap().remove(&here);
            ears.unlinked(here, Vec::new());
        });
    }

    fn hang_up(&self, is_meant: impl Fn(&Peer) -> bool) {
        self.dialled.lock().unwrap().retain(|_, (peer, _)| !is_meant(peer));
    }

    fn redial(self: Arc<Wires>) {
        let weak = Arc::downgrade(&self);
        drop(self);
        thread::spawn(move || {
            while let Some(wires) = weak.upgrade().filter(|wires| wires.ears().is_some()) {
                let peers = wires.peers.lock().unwrap().clone();
                for peer in &peers {
                    let is_linked = wires.dialled.lock().unwrap().values().any(|(to, _)| to == peer);
                    if !is_linked {
                        wires.dial(peer);
                    }
                }
                drop(wires);
                thread::sleep(Duration::from_millis(5));
            }
        });
    }
}

/// Carries what comes until nobody can send any more.
fn carry(network: &Network, from: &Receiver<Message>, hear: impl Fn(Vec<Message>)) {
    loop {
        match from.recv_timeout(Duration::from_secs(3_600)) {
            Ok(first) => {
                thread::sleep(Duration::from_micros(network.delay_micros.load(Ordering::SeqCst)));
                hear(std::iter::once(first).chain(from.try_iter()).collect());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Wires are shared by the node and by the network.
#[derive(Clone)]
pub struct Shared(pub Arc<Wires>);

impl Links for Shared {
    fn open(&self, me: &Incarnation, ears: Arc<dyn Ears>) {
        *self.0.ears.lock().unwrap() = Some((me.clone(), ears));
        Arc::clone(&self.0).redial();
    }

    fn keep(&self, peers: &[Peer]) {
        *self.0.peers.lock().unwrap() = peers.to_vec();
        self.0.hang_up(|peer| !peers.contains(peer));
    }

    fn ask(&self, on: LinkId, message: Message) -> Result<(), Unsent> {
        let dialled = self.0.dialled.lock().unwrap();
        let unsent = |message| Unsent { message: Box::new(message), why: Why::Gone };
        match dialled.get(&on) {
            Some((_, asks)) => asks.send(message).map_err(|error| unsent(error.0)),
            None => Err(unsent(message)),
        }
    }

    fn answer(&self, on: LinkId, message: Message) {
        if let Some(answers) = self.0.accepted.lock().unwrap().get(&on) {
            _ = answers.send(message);
        }
    }

    fn is_congested(&self, _: LinkId) -> bool {
        false
    }

    fn close(&self) {
        self.0.hang_up(|_| true);
        self.0.accepted.lock().unwrap().clear();
        *self.0.ears.lock().unwrap() = None;
    }
}
