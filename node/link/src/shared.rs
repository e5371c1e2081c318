//! What all links of a node have in common: which there are, and how one is carried to its end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use punctual_center::{LinkId, Message};
use punctual_core::store::Incarnation;
use tokio::time::timeout;

use crate::carry::{Stream, carry};
use crate::greet::Met;
use crate::line::Line;
use crate::meter::{Meter, add};
use crate::rebuff::Lost;
use crate::settings::Settings;

pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) meter: Arc<Meter>,
    lines: RwLock<BTreeMap<LinkId, Arc<Line>>>,
    next: AtomicU64,
}

impl Shared {
    pub(crate) fn new(settings: Settings) -> Shared {
        Shared { settings, meter: Arc::default(), lines: RwLock::default(), next: AtomicU64::new(1) }
    }

    /// A link that is up, if it is of this kind.
    pub(crate) fn line(&self, id: LinkId, is_dialled: bool) -> Option<Arc<Line>> {
        let lines = self.lines.read().unwrap_or_else(PoisonError::into_inner);
        lines.get(&id).filter(|line| line.is_dialled == is_dialled).cloned()
    }

    /// A new link to this node, or from it.
    pub(crate) fn enter(&self, peer: Incarnation, is_dialled: bool) -> Arc<Line> {
        let id = LinkId(self.next.fetch_add(1, Relaxed));
        let line = Arc::new(Line::new(id, peer, is_dialled, &self.settings, Arc::clone(&self.meter)));
        self.lines.write().unwrap_or_else(PoisonError::into_inner).insert(id, Arc::clone(&line));
        add(if is_dialled { &self.meter.links_dialled } else { &self.meter.links_answered }, 1);
        line
    }

    /// Ends the links that this node has dialled here.
    pub(crate) fn end_those_of(&self, peer: &Incarnation, why: Lost) {
        let lines = self.lines.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.values().find(|line| !line.is_dialled && line.peer == *peer) {
            line.end(Some(why));
        }
    }

    /// Carries a link to its end, or until it is to stop; gives back what nobody has heard.
    pub(crate) async fn carry(
        &self,
        line: &Arc<Line>,
        stream: Box<dyn Stream>,
        met: Met,
        stop: impl Future<Output = ()>,
        hand_over: impl FnMut(Vec<Message>),
    ) -> Vec<Message> {
        let carrying = carry(line, stream, met, hand_over);
        tokio::pin!(carrying);
        let unsent = tokio::select! {
            unsent = &mut carrying => unsent,
            () = stop => {
                line.finish();
                match timeout(self.settings.pace.farewell, &mut carrying).await {
                    Ok(unsent) => unsent,
                    Err(_) => {
                        line.end(None);
                        carrying.await
                    }
                }
            }
        };
        self.lines.write().unwrap_or_else(PoisonError::into_inner).remove(&line.id);
        if let Some(lost) = line.lost() {
            add(&self.meter.links_lost, 1);
            let dialled_by = if line.is_dialled { "this node" } else { "the other node" };
            tracing::info!(node = %line.peer.node, dialled_by, "link lost: {lost}");
        }
        unsent
    }
}
