//! What a handler gets: a delivery, and word of its lease.

use std::future::Future;
use std::ops::Deref;

use punctual_wire::Delivery;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::delivery::DeliveryBody;
use crate::error::Error;

/// A delivery to work on. Its fields can be read as those of a [`Delivery`].
#[derive(Clone, Debug)]
pub struct Job {
    delivery: Delivery,
    lost: watch::Receiver<bool>,
}

impl Job {
    pub(crate) fn new(delivery: Delivery, lost: watch::Receiver<bool>) -> Job {
        Job { delivery, lost }
    }

    /// The body read from JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        self.delivery.json()
    }

    /// The body as it was handed in; JSON as its text.
    pub fn bytes(&self) -> &[u8] {
        self.delivery.bytes()
    }

    /// Whether the delivery is not ours any more: somebody else may be working on it, and what becomes of this
    /// handler's work is not told to the server.
    pub fn is_lease_lost(&self) -> bool {
        *self.lost.borrow()
    }

    /// Comes when the lease is lost, and never otherwise: for `tokio::select!` around work that can be given up.
    pub fn lease_lost(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut lost = self.lost.clone();
        async move {
            if lost.wait_for(|lost| *lost).await.is_err() {
                // Nobody can lose it any more, because it was settled.
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Deref for Job {
    type Target = Delivery;

    fn deref(&self) -> &Delivery {
        &self.delivery
    }
}
