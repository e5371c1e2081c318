//! Sweeps: changes to many tasks at once, that go on by themselves.

use http::Method;
use punctual_wire::{NewSweep, SweepInfo, SweepList, SweepPreview};

use crate::address::Path;
use crate::client::{Client, found};
use crate::error::Error;
use crate::transport::Repeat;

impl Client {
    /// What a sweep would do, without doing it.
    pub async fn preview_sweep(&self, sweep: &NewSweep) -> Result<SweepPreview, Error> {
        let sweep = NewSweep { dry_run: true, ..sweep.clone() };
        self.tell(Method::POST, Path::new("sweeps"), &sweep, Repeat::Safe).await
    }

    /// Begins a sweep. It goes on by itself: [`sweep`](Client::sweep) says how far it is.
    pub async fn begin_sweep(&self, sweep: &NewSweep) -> Result<SweepInfo, Error> {
        let sweep = NewSweep { dry_run: false, ..sweep.clone() };
        // A second attempt would be a second sweep.
        self.tell(Method::POST, Path::new("sweeps"), &sweep, Repeat::Undone).await
    }

    /// The sweeps that are running, and the latest that ran; the newest first.
    pub async fn sweeps(&self) -> Result<SweepList, Error> {
        self.read(Path::new("sweeps")).await
    }

    /// A sweep and how far it is.
    pub async fn sweep(&self, id: &str) -> Result<Option<SweepInfo>, Error> {
        found(self.read(sweep_path(id)).await, "no-such-sweep")
    }

    /// Ends a sweep; what it has changed stays changed. `None` if there is no such sweep.
    pub async fn stop_sweep(&self, id: &str) -> Result<Option<SweepInfo>, Error> {
        found(self.ask(Method::POST, sweep_path(id).verb("stop"), Repeat::Safe).await, "no-such-sweep")
    }

    /// Begins the sweep that undoes one. If that is not possible, it is a problem with the code `cannot-undo` that says why.
    pub async fn undo_sweep(&self, id: &str) -> Result<Option<SweepInfo>, Error> {
        found(self.ask(Method::POST, sweep_path(id).verb("undo"), Repeat::Undone).await, "no-such-sweep")
    }
}

fn sweep_path(id: &str) -> Path {
    Path::new("sweeps").name(id)
}
