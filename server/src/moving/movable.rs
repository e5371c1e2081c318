//! A store that can be moved while the server works on it: two stores that look like one.

use std::sync::{Arc, PoisonError, RwLock};

use punctual_core::store::Store;
use punctual_moving::live::Transit;
use punctual_wire::StoreStats;

use crate::metrics::MetricsPage;
use crate::stores::OpenStore;

/// The store of the server, and the one it is moved into, if it is.
pub struct Movable {
    pub transit: Arc<Transit>,
    pub home: Arc<dyn Store>,
    face: Arc<dyn OpenStore>,
    other: RwLock<Option<Arc<dyn OpenStore>>>,
}

impl Movable {
    /// A store that is not being moved. The name has no secrets.
    pub fn new(home: Arc<dyn Store>, face: Arc<dyn OpenStore>, name: &str) -> Movable {
        let transit = Arc::new(Transit::new(Arc::clone(&home), name));
        Movable { transit, home, face, other: RwLock::default() }
    }

    /// It is being moved into this one.
    pub fn set_other(&self, other: Arc<dyn OpenStore>) {
        *self.other.write().unwrap_or_else(PoisonError::into_inner) = Some(other);
    }

    fn other(&self) -> Option<Arc<dyn OpenStore>> {
        self.other.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The one that is in charge.
    fn in_charge(&self) -> Arc<dyn OpenStore> {
        let other = self.other().filter(|_| self.transit.is_over());
        other.unwrap_or_else(|| Arc::clone(&self.face))
    }
}

impl OpenStore for Movable {
    fn line(&self) -> String {
        match self.other().filter(|_| self.transit.crossed().is_some()) {
            Some(other) => format!("{}\nmoving it to {}", self.face.line(), other.line()),
            None => self.in_charge().line(),
        }
    }

    fn warnings(&self) -> Vec<String> {
        self.face.warnings().into_iter().chain(self.other().iter().flat_map(|other| other.warnings())).collect()
    }

    fn whereabouts(&self) -> &'static str {
        self.in_charge().whereabouts()
    }

    fn stats(&self) -> StoreStats {
        self.in_charge().stats()
    }

    fn meter(&self, page: &mut MetricsPage) {
        self.in_charge().meter(page);
    }
}
