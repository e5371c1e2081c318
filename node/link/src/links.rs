//! The links of a node over TCP: the way from what it wants to the tasks that carry it out.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use punctual_center::{Ears, LinkId, Links, Message, Peer, Unsent, Why};
use punctual_core::store::Incarnation;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use crate::admit::Porter;
use crate::dial::{Dialled, Dialler, PeerStatus};
use crate::forms::Formed;
use crate::meter::Traffic;
use crate::settings::Settings;
use crate::shared::Shared;

/// Links over TCP.
pub struct TcpLinks {
    shared: Arc<Shared>,
    runtime: Handle,
    address: SocketAddr,
    course: Mutex<Course>,
}

/// How far it has come.
enum Course {
    /// Nobody is let in yet.
    Before(TcpListener),
    Open(Open),
    /// What is left to come to its end.
    Over(JoinSet<()>),
}

struct Open {
    me: Incarnation,
    ears: Arc<dyn Ears>,
    dialled: BTreeMap<Incarnation, Dialled>,
    /// Links to those who are not to be kept, on their way to the end.
    leaving: BTreeMap<Incarnation, AbortHandle>,
    tasks: JoinSet<()>,
    /// Ends the links that others dialled when it is dropped.
    _stop: watch::Sender<()>,
}

impl TcpLinks {
    /// Links that others dial at this listener, carried by this runtime. Nothing happens before [`Links::open`].
    pub fn new(listener: TcpListener, settings: Settings, runtime: Handle) -> io::Result<TcpLinks> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let course = Mutex::new(Course::Before(listener));
        Ok(TcpLinks { shared: Arc::new(Shared::new(settings)), runtime, address, course })
    }

    /// Where others reach this node, if they reach this address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What has gone over all links.
    pub fn traffic(&self) -> Traffic {
        self.shared.meter.read()
    }

    /// How it stands with the links to others, in the order of their names.
    pub fn peers(&self) -> Vec<PeerStatus> {
        match &*self.course() {
            Course::Open(open) => open.dialled.values().map(Dialled::status).collect(),
            Course::Before(_) | Course::Over(_) => Vec::new(),
        }
    }

    /// Waits until all links are closed, after [`Links::close`].
    pub async fn closed(&self) {
        let tasks = match &mut *self.course() {
            Course::Over(tasks) => std::mem::take(tasks),
            Course::Before(_) | Course::Open(_) => return,
        };
        tasks.join_all().await;
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Links for TcpLinks {
    fn open(&self, me: &Incarnation, ears: Arc<dyn Ears>) {
        let mut course = self.course();
        let Course::Before(listener) = &*course else { return };
        let _entered = self.runtime.enter();
        let listener = match listener.try_clone().and_then(tokio::net::TcpListener::from_std) {
            Ok(listener) => listener,
            Err(error) => return tracing::error!("no other node can link with this one: {error}"),
        };
        let (stop, stopped) = watch::channel(());
        let porter =
            Porter { shared: Arc::clone(&self.shared), me: me.clone(), ears: Arc::clone(&ears), stop: stopped };
        let mut tasks = JoinSet::new();
        tasks.spawn(porter.run(listener));
        *course = Course::Open(Open {
            me: me.clone(),
            ears,
            dialled: BTreeMap::new(),
            leaving: BTreeMap::new(),
            tasks,
            _stop: stop,
        });
    }

    fn keep(&self, peers: &[Peer]) {
        if let Course::Open(open) = &mut *self.course() {
            let _entered = self.runtime.enter();
            open.keep(peers, &self.shared);
        }
    }

    fn ask(&self, on: LinkId, message: Message) -> Result<(), Unsent> {
        let put = match self.shared.line(on, true) {
            Some(line) => line.outbox.put(&Formed::of(&message)),
            None => Err(Why::Gone),
        };
        put.map_err(|why| Unsent { message: Box::new(message), why })
    }

    fn answer(&self, on: LinkId, message: Message) {
        if let Some(line) = self.shared.line(on, false) {
            line.answer(message);
        }
    }

    fn is_congested(&self, on: LinkId) -> bool {
        [true, false]
            .into_iter()
            .filter_map(|is_dialled| self.shared.line(on, is_dialled))
            .any(|line| line.outbox.is_congested())
    }

    fn close(&self) {
        let mut course = self.course();
        let tasks = match &mut *course {
            Course::Open(open) => std::mem::take(&mut open.tasks),
            Course::Before(_) => JoinSet::new(),
            Course::Over(_) => return,
        };
        *course = Course::Over(tasks);
    }
}

impl Open {
    fn keep(&mut self, peers: &[Peer], shared: &Arc<Shared>) {
        while self.tasks.try_join_next().is_some() {}
        self.leaving.retain(|_, task| !task.is_finished());
        let is_kept = |who: &Incarnation| peers.iter().any(|peer| peer.who == *who);
        let left = self.dialled.extract_if(.., |who, _| !is_kept(who));
        self.leaving.extend(left.map(|(who, dialled)| (who, dialled.task)));
        for peer in peers {
            if peer.who == self.me || peer.address.is_empty() {
                continue;
            }
            match self.dialled.get(&peer.who) {
                Some(dialled) => dialled.is_at(&peer.address),
                // There is one link to a node at a time: the next one waits for the end of this one.
                None if self.leaving.contains_key(&peer.who) => {}
                None => self.dial(peer, shared),
            }
        }
    }

    fn dial(&mut self, peer: &Peer, shared: &Arc<Shared>) {
        let (address, told) = watch::channel(peer.address.clone());
        let watched = Arc::default();
        let dialler = Dialler {
            shared: Arc::clone(shared),
            me: self.me.clone(),
            ears: Arc::clone(&self.ears),
            who: peer.who.clone(),
            address: told,
            watched: Arc::clone(&watched),
        };
        let task = self.tasks.spawn(dialler.run());
        self.dialled.insert(peer.who.clone(), Dialled { who: peer.who.clone(), address, task, watched });
    }
}
