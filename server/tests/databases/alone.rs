//! Clients at work with one server, while something happens to the database under it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::json;

use crate::crowd::{Doors, Ledger, Life, Servers, confirms, works_through};
use crate::stage::{Server, eventually};

/// The one server.
struct Alone<'a>(Mutex<&'a mut Server>, Life);

impl<'a> Alone<'a> {
    fn server(&self) -> MutexGuard<'_, &'a mut Server> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Servers for Alone<'_> {
    fn count(&self) -> usize {
        1
    }

    fn doors(&self, _: usize) -> Option<Doors> {
        Some(Doors::of(&self.server(), &self.1))
    }
}

/// Lets clients work while something is done to what the server stands on. It must go on without a restart.
pub fn goes_through(server: &mut Server, trouble: impl FnOnce(&Ledger)) -> Ledger {
    let alone = Alone(Mutex::new(server), Life::default());
    let ledger = works_through(&alone, |ledger| {
        trouble(ledger);
        eventually("it is ready", || alone.server().get("/readyz").status == 200);
        // So many that each shard is among their homes.
        eventually("every shard works", || (0..64).all(|number| is_taken_in(&alone.server(), number)));
        confirms(ledger, 50);
    });
    assert!(alone.server().is_running(), "it is the one that was started");
    ledger
}

fn is_taken_in(server: &Server, number: usize) -> bool {
    let task = json!({ "topic": "others", "id": number.to_string(), "delay": "1h" });
    [200, 201].contains(&server.post("/v1/tasks", &task).status)
}
