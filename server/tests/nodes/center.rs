//! Several servers on one store.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::crowd::{Doors, Life, OPEN_BEANSTALK, Servers};
use crate::stage::{Server, eventually};

/// The servers of a test, each of which may be down for a while. Clients ask for their addresses while the test does
/// something to them.
pub struct Center {
    servers: Vec<Mutex<Server>>,
    /// The present one of each.
    lives: Vec<Mutex<Life>>,
}

impl Center {
    /// So many servers at one URL, with these further arguments, all of them started.
    pub fn start(count: usize, url: &str, more: &[&str]) -> Center {
        Center::at(&vec![url.to_owned(); count], |_| more.iter().map(|one| (*one).to_owned()).collect())
    }

    /// The same, of another build of the server if one is named.
    pub fn start_build(program: Option<&Path>, count: usize, url: &str) -> Center {
        Center::build_at(program, &vec![url.to_owned(); count], |_| Vec::new())
    }

    /// A server at each of these URLs of one store, with arguments of its own.
    pub fn at(urls: &[String], more: impl Fn(usize) -> Vec<String>) -> Center {
        Center::build_at(None, urls, more)
    }

    fn build_at(program: Option<&Path>, urls: &[String], more: impl Fn(usize) -> Vec<String>) -> Center {
        let server = |(number, url): (usize, &String)| {
            let name = format!("n{}", number + 1);
            let more = more(number);
            let own = ["--store", url, "--node-name", &name];
            let own = own.into_iter().chain(OPEN_BEANSTALK);
            let arguments: Vec<&str> = own.chain(more.iter().map(String::as_str)).collect();
            let mut server = Server::prepare(&arguments, &[]);
            server.program = program.map(Path::to_owned);
            server.start_again();
            Mutex::new(server)
        };
        let lives = urls.iter().map(|_| Mutex::default()).collect();
        let center = Center { servers: urls.iter().enumerate().map(server).collect(), lives };
        center.settle();
        center
    }

    /// How many servers there are.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// One of them. Clients that want its address wait as long as it is held.
    pub fn server(&self, number: usize) -> MutexGuard<'_, Server> {
        self.servers[number].lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Kills one of them with -9.
    pub fn kill(&self, number: usize) {
        self.life(number).end();
        self.server(number).kill();
    }

    /// Stops one of them in order.
    pub fn stop(&self, number: usize) {
        self.life(number).end();
        assert!(self.server(number).stop().success());
    }

    /// Starts one of them that was ended.
    pub fn start_again(&self, number: usize) {
        let mut server = self.server(number);
        server.start_again();
        *self.life(number) = Life::default();
    }

    fn life(&self, number: usize) -> MutexGuard<'_, Life> {
        self.lives[number].lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Waits until all of them are ready, and agree that the shards are shared out evenly.
    pub fn recover(&self) {
        eventually("all are ready", || (0..self.len()).all(|number| self.server(number).get("/readyz").status == 200));
        self.settle();
    }

    /// Where each shard is, as one of them sees it.
    pub fn owners(&self, by: usize) -> Vec<Option<String>> {
        let shards = self.server(by).get("/v1/shards").expect(200).json();
        let owner = |shard: &Value| shard["node"].as_str().map(str::to_owned);
        shards["shards"].as_array().unwrap().iter().map(owner).collect()
    }

    /// How many shards each of them has, as one of them sees it.
    pub fn shares(&self, by: usize) -> Vec<usize> {
        let owners = self.owners(by);
        let has = |number: usize| owners.iter().filter(|owner| **owner == Some(format!("n{}", number + 1))).count();
        (0..self.len()).map(has).collect()
    }

    /// Waits until all of them agree that the shards are shared out evenly among all.
    pub fn settle(&self) {
        let is_even = |by: usize| {
            let shares = self.shares(by);
            let all = self.owners(by).len();
            shares.iter().sum::<usize>() == all && shares.iter().all(|share| share.abs_diff(all / self.len()) <= 1)
        };
        eventually("the shards are shared out evenly", || {
            thread::sleep(Duration::from_millis(50));
            (0..self.len()).all(is_even)
        });
    }
}

impl Servers for Center {
    fn count(&self) -> usize {
        self.len()
    }

    fn doors(&self, number: usize) -> Option<Doors> {
        let mut server = self.server(number);
        server.is_running().then(|| Doors::of(&server, &self.life(number)))
    }
}
