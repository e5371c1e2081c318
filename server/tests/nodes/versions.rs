//! Real servers together with a newer node: one in this process, with the code of today, that says it knows a level and a
//! version of the links' language which the servers do not.

use std::net::TcpListener;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use punctual_core::store::Store;
use punctual_core::{Choice, Clock, Millis, Name, Reserve, Task};
use punctual_engines::Postgres;
use punctual_link::{Credentials, Settings, TcpLinks};
use punctual_node::{Card, Node, NodeConfig, StoreClock};
use punctual_postgres::{Config, Database, PostgresStore};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::center::Center;
use crate::stage::{eventually, run};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A node of the next version.
struct Newer {
    node: Node,
    store: Arc<PostgresStore>,
    runtime: Runtime,
}

impl Newer {
    /// One on this database, which speaks these versions of the links' language.
    fn start(postgres: &Postgres, versions: RangeInclusive<u32>) -> Newer {
        let runtime = Runtime::new().unwrap();
        let store = Arc::new(PostgresStore::open(Config::new(postgres.url())).unwrap());
        let credentials = store.cluster_get("links").unwrap().expect("the servers have made them");
        let credentials = Credentials::from_bytes(&credentials.value).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let settings = Settings { versions, ..Settings::new(credentials, "next", LEVELS) };
        let links = TcpLinks::new(listener, settings, runtime.handle().clone()).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(StoreClock::new(Duration::ZERO, |_| {}));
        let config = NodeConfig {
            links: Some(Arc::new(links)),
            levels: LEVELS,
            card: Card { link: Some(address), version: Some("next".into()), ..Card::default() },
            ..NodeConfig::new(name("newer")).shards(16)
        };
        let node = Node::start(config, Arc::clone(&store) as _, clock).unwrap();
        Newer { node, store, runtime }
    }

    /// The level in force.
    fn level(&self) -> Option<String> {
        let entry = self.store.cluster_get("level").unwrap();
        entry.map(|entry| String::from_utf8(entry.value.to_vec()).unwrap())
    }
}

/// What the next version can read and write.
const LEVELS: RangeInclusive<u32> = 1..=2;

/// Who is there, and how many shards each has, as one of the servers sees it.
fn nodes(center: &Center, by: usize) -> Vec<Value> {
    center.server(by).get("/v1/nodes").expect(200).json()["nodes"].as_array().unwrap().clone()
}

#[test]
fn a_newer_node_works_with_older_servers_at_their_level_until_they_are_gone() {
    let postgres = Postgres::start();
    let center = Center::start(2, &postgres.url(), &[]);
    let newer = Newer::start(&postgres, 1..=2);
    eventually("it gets its part", || {
        nodes(&center, 0).iter().any(|node| node["name"] == "newer" && node["shards"].as_u64() >= Some(5))
    });
    let handle = newer.node.handle();
    for id in 0..32 {
        let task = json!({ "topic": "work", "id": id.to_string(), "text": "x" });
        center.server(id % 2).post("/v1/tasks", &task).expect(201);
        let task = Task::new(name("work"), "x".to_owned()).id(name(&format!("newer-{id}")));
        newer.runtime.block_on(handle.schedule(task)).unwrap();
    }
    // Each side gets what comes due at either.
    let (mut at_servers, mut at_newer) = (0, 0);
    while at_servers + at_newer < 64 {
        let reserve = json!({ "queues": ["work"], "wait": "10s", "max": 4, "lease": "1h" });
        let reserved = center.server(at_servers % 2).post("/v1/reserve", &reserve).expect(200).json();
        at_servers += reserved["deliveries"].as_array().unwrap().len();
        let (queues, consumer, choice) = (vec![name("work")], name("newer"), Choice::default());
        let (lease, until) = (Some(Millis::from_hours(1)), handle.after(Millis(10_000)));
        let reserve = Reserve { queues, max: 4, lease, until, consumer, choice };
        at_newer += newer.runtime.block_on(handle.reserve(reserve)).unwrap().len();
    }
    assert!(at_servers > 16 && at_newer > 16, "{at_servers} and {at_newer}");
    assert_eq!(newer.level(), None, "the servers could not read more");

    (0..2).for_each(|number| center.stop(number));
    eventually("it writes what it can", || newer.level().as_deref() == Some("2"));
    let refused = run(&mut center.server(0).command());
    assert!(refused.code == Some(1) && refused.stderr.contains("start a newer version"), "{refused:?}");
}

#[test]
fn a_server_that_meets_what_it_cannot_read_ends_and_says_why() {
    let postgres = Postgres::start();
    let center = Center::start(1, &postgres.url(), &[]);
    let store = PostgresStore::open(Config::new(postgres.url())).unwrap();
    store.cluster_put("level", 0, b"2").unwrap().unwrap();
    assert!(!center.server(0).wait().success());
    center.server(0).says("this version knows level 1 at most");
}

#[test]
fn versions_that_have_no_language_in_common_say_so() {
    let postgres = Postgres::start();
    let center = Center::start(1, &postgres.url(), &[]);
    let _newer = Newer::start(&postgres, 2..=2);
    center.server(0).says("the two nodes are of versions too far apart: upgrade the older one");
}
