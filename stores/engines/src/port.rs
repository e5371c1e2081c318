//! Ports that nobody uses.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where servers are looked for: below the ports that the system gives to connections, so that a server which comes back
/// finds its port as it left it.
const FIRST: u32 = 10_000;
const COUNT: u32 = 22_000;

/// A port of the loopback that was free a moment ago, and that this process is not given a second time.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Processes begin in different places, so that they seldom try the same one at once.
    let begin = std::process::id().wrapping_mul(97);
    for _ in 0..COUNT {
        let tried = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + tried % COUNT).expect("the last of them is below 2^16");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no port of the loopback is free");
}
