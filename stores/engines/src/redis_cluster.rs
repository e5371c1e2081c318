//! A private Redis Cluster of three masters, and a private set of a master, a replica and sentinels.

use crate::port::free_port;
use crate::process::wait_until;
use crate::redis::Redis;

const SLOTS: u16 = 16_384;

/// Three masters that share the slots evenly.
pub struct RedisCluster {
    servers: Vec<Redis>,
}

impl RedisCluster {
    /// Starts three servers that sync each change, and brings them together.
    pub fn start() -> RedisCluster {
        RedisCluster::start_with(&["--appendfsync", "always"])
    }

    /// The same with settings as on a server's command line.
    pub fn start_with(settings: &[&str]) -> RedisCluster {
        let start = |_| {
            let bus = free_port().to_string();
            let how = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-port", &bus];
            (Redis::start_with(&[&how[..], settings].concat()), bus)
        };
        let started: Vec<(Redis, String)> = (0..3).map(start).collect();
        for (index, (server, _)) in started.iter().enumerate() {
            let (first, last) = share(index, started.len());
            server.command(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
            server.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
        }
        for (other, bus) in &started[1..] {
            started[0].0.command(&["CLUSTER", "MEET", "127.0.0.1", &other.port().to_string(), bus]);
        }
        let cluster = RedisCluster { servers: started.into_iter().map(|(server, _)| server).collect() };
        cluster.settle();
        cluster
    }

    /// Where it is.
    pub fn url(&self) -> String {
        let servers: Vec<String> = self.servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
        format!("redis+cluster://{}", servers.join(","))
    }

    /// Its masters.
    pub fn servers(&self) -> &[Redis] {
        &self.servers
    }

    /// One of them, to be killed and started again.
    pub fn server(&mut self, index: usize) -> &mut Redis {
        &mut self.servers[index]
    }

    /// The master that has the slot of a key.
    pub fn home(&self, slot: u16) -> usize {
        let has = |index: &usize| {
            let (first, last) = share(*index, self.servers.len());
            (first..=last).contains(&slot)
        };
        (0..self.servers.len()).find(has).expect("every slot has a home")
    }

    /// The slot of a key.
    pub fn slot(&self, key: &str) -> u16 {
        self.servers[0].command(&["CLUSTER", "KEYSLOT", key]).parse().expect("a slot is a number")
    }

    /// Waits until all of them say that all slots are served.
    pub fn settle(&self) {
        let is_well = |server: &Redis| {
            let info = server.command(&["CLUSTER", "INFO"]);
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        };
        wait_until("the cluster to be well", || self.servers.iter().all(is_well));
    }

    /// Begins to move a slot from one master to another.
    pub fn begin_move(&self, slot: u16, from: usize, to: usize) {
        let slot = slot.to_string();
        self.servers[to].command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &self.name(from)]);
        self.servers[from].command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &self.name(to)]);
    }

    /// Moves up to so many keys of a slot, and says how many it moved.
    pub fn move_keys(&self, slot: u16, from: usize, to: usize, count: usize) -> usize {
        let keys = self.servers[from].command(&["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), &count.to_string()]);
        let keys: Vec<&str> = keys.lines().filter(|key| !key.is_empty()).collect();
        let port = self.servers[to].port().to_string();
        for key in &keys {
            self.servers[from].command(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]);
        }
        keys.len()
    }

    /// Ends the move of a slot.
    pub fn end_move(&self, slot: u16, to: usize) {
        let (slot, name) = (slot.to_string(), self.name(to));
        // The new home first, or nobody has the slot for a moment.
        self.servers[to].command(&["CLUSTER", "SETSLOT", &slot, "NODE", &name]);
        for server in &self.servers {
            server.command(&["CLUSTER", "SETSLOT", &slot, "NODE", &name]);
        }
    }

    fn name(&self, index: usize) -> String {
        self.servers[index].command(&["CLUSTER", "MYID"])
    }
}

/// The slots of one master.
fn share(index: usize, masters: usize) -> (u16, u16) {
    let begin = |index: usize| u16::try_from(index * usize::from(SLOTS) / masters).expect("there are 16,384 slots");
    (begin(index), begin(index + 1) - 1)
}

/// A master and a replica, watched by three sentinels.
pub struct RedisSentinels {
    /// The one that is the master at the beginning.
    pub master: Redis,
    /// The one that follows it.
    pub replica: Redis,
    sentinels: Vec<Redis>,
}

impl RedisSentinels {
    /// Starts them all.
    pub fn start() -> RedisSentinels {
        let how = ["--appendfsync", "always"];
        let master = Redis::start_with(&how);
        let replica = Redis::replica_of(master.port(), &how);
        let sentinel = |_| {
            let lines = [
                format!("sentinel monitor main 127.0.0.1 {} 2", master.port()),
                "sentinel down-after-milliseconds main 500".to_owned(),
                "sentinel failover-timeout main 3000".to_owned(),
                String::new(),
            ];
            Redis::sentinel(free_port(), &lines)
        };
        let sentinels: Vec<Redis> = (0..3).map(sentinel).collect();
        let set = RedisSentinels { master, replica, sentinels };
        let knows = |sentinel: &Redis| {
            let said = sentinel.command(&["SENTINEL", "MASTER", "main"]);
            let lines: Vec<&str> = said.lines().collect();
            let value = |name: &str| lines.chunks(2).find(|pair| pair[0] == name).and_then(|pair| pair.get(1).copied());
            value("num-slaves") == Some("1") && value("num-other-sentinels") == Some("2")
        };
        wait_until("the sentinels to know each other", || set.sentinels.iter().all(knows));
        set
    }

    /// Where it is.
    pub fn url(&self) -> String {
        let places: Vec<String> = self.sentinels.iter().map(|one| format!("127.0.0.1:{}", one.port())).collect();
        format!("redis+sentinel://{}/main", places.join(","))
    }
}
