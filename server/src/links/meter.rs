//! What the links to other servers count, for those who watch.

use std::sync::Arc;

use punctual_link::{TcpLinks, Traffic};

use crate::metrics::{Meter, MetricsPage, Series, Unit};

/// Writes what these links have counted.
pub fn meter(links: Arc<TcpLinks>) -> Meter {
    Box::new(move |page| {
        traffic(&links.traffic(), page);
        peers(&links, page);
    })
}

fn traffic(traffic: &Traffic, page: &mut MetricsPage) {
    let both = |sent: u64, received: u64| -> Series<1> {
        [("sent", sent), ("received", received)].map(|(way, count)| ([way.to_owned()], count)).into()
    };
    let about = "Messages between this server and others.";
    page.counters("link_messages", about, ["way"], &both(traffic.messages_out, traffic.messages_in));
    let about = "Bytes between this server and others.";
    page.counters("link_bytes", about, ["way"], &both(traffic.bytes_out, traffic.bytes_in));
    let about = "Frames sent to other servers: messages that wait together go together.";
    page.counter("link_frames", about, traffic.frames_out);
    page.counter("link_breaks", "Links to and from other servers that broke.", traffic.links_lost);
    let about = "Connections between servers that were refused by one of them; the log says why.";
    page.counter("link_refusals", about, traffic.rebuffs);
    let about = "Messages of other servers that were not understood, as between versions.";
    page.counter("link_unclear_messages", about, traffic.unclear);
}

fn peers(links: &TcpLinks, page: &mut MetricsPage) {
    let peers = links.peers();
    let is_up = peers.iter().map(|status| ([status.peer.who.node.to_string()], u64::from(status.is_up)));
    page.gauges("link_up", "1 if there is a link to the other server.", None, ["node"], &is_up.collect());
    let micros = peers.iter().filter_map(|status| {
        let trip = status.round_trip?.smoothed.as_micros() as u64;
        Some(([status.peer.who.node.to_string()], trip))
    });
    let about = "How long it takes to the other server and back.";
    page.measures("link_round_trip", about, Unit::Seconds, ["node"], &micros.collect(), 1e-6);
}
