//! `nodes` and `shards`: the servers of a delay center, and which of them has what.

use std::time::Duration;

use clap::{Args, Subcommand};
use punctual_wire::{NodeInfo, NodeList, ShardInfo};

use super::Session;
use super::failure::{Failure, help};
use super::output::{Columns, note};

/// How soon it is looked again whether a node is empty.
const LOOK: Duration = Duration::from_millis(250);

/// List the nodes of the delay center, and drain one before maintenance.
#[derive(Args, Debug)]
#[command(after_help = help!("\
Examples:
  punctual nodes
  punctual nodes drain node-2 --wait
  punctual nodes undrain node-2"))]
pub struct NodesArgs {
    #[command(subcommand)]
    command: Option<NodesCommand>,
}

#[derive(Subcommand, Debug)]
enum NodesCommand {
    /// List all nodes; the default.
    List,
    /// Have a node give its shards to the others, and get none until it is undrained.
    Drain {
        /// Its name.
        name: String,
        /// Come back when it has no shard any more.
        #[arg(long)]
        wait: bool,
    },
    /// Let a node have shards again.
    Undrain {
        /// Its name.
        name: String,
    },
}

/// What a server is asked about shards.
#[derive(Subcommand, Debug)]
pub enum ShardsCommand {
    /// List all shards; the default.
    List,
    /// Have a shard be at a node, whenever that is there and not drained.
    Pin {
        /// Its number.
        shard: u16,
        /// The name of the node.
        node: String,
    },
    /// Let a shard be at any node.
    Unpin {
        /// Its number.
        shard: u16,
    },
}

/// Does what was asked for about nodes.
pub async fn run(args: NodesArgs, mut session: Session) -> Result<(), Failure> {
    let list = match args.command.unwrap_or(NodesCommand::List) {
        NodesCommand::List => session.client.nodes().await?,
        NodesCommand::Drain { name, wait } => {
            let begun = session.client.drain_node(&name).await?;
            if wait { until_empty(&session, &name).await? } else { begun }
        }
        NodesCommand::Undrain { name } => session.client.undrain_node(&name).await?,
    };
    session.output.list(&list.nodes, "no nodes", table)
}

/// Waits until a node has no shard any more.
async fn until_empty(session: &Session, name: &str) -> Result<NodeList, Failure> {
    let mut last = None;
    loop {
        let list = session.client.nodes().await?;
        let left = list.nodes.iter().find(|node| node.name == name).map_or(0, |node| node.shards);
        if left == 0 {
            return Ok(list);
        }
        if last.replace(left) != Some(left) {
            note(format_args!("node {name} has {left} shards left"));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Does what was asked for about shards.
pub async fn shards(command: ShardsCommand, mut session: Session) -> Result<(), Failure> {
    let list = match command {
        ShardsCommand::List => session.client.shards().await?,
        ShardsCommand::Pin { shard, node } => session.client.pin_shard(shard, &node).await?,
        ShardsCommand::Unpin { shard } => session.client.unpin_shard(shard).await?,
    };
    session.output.list(&list.shards, "no shards", shards_table)
}

fn table(nodes: &[NodeInfo]) -> Columns {
    let mut columns = Columns::new(&["NODE", "#SHARDS", "STATE", "#SKEW", "VERSION", "URL"]);
    for node in nodes {
        let state = match (node.is_there, node.is_draining) {
            (false, _) => "silent",
            (true, true) => "draining",
            (true, false) => "there",
        };
        columns.row(vec![
            node.name.clone(),
            node.shards.to_string(),
            state.into(),
            node.skew_ms.map_or("-".into(), |skew| format!("{skew} ms")),
            node.version.clone().unwrap_or("-".into()),
            node.url.clone().unwrap_or("-".into()),
        ]);
    }
    columns
}

fn shards_table(shards: &[ShardInfo]) -> Columns {
    let mut columns = Columns::new(&["#SHARD", "NODE", "PINNED TO"]);
    for shard in shards {
        let or_none = |name: &Option<String>| name.clone().unwrap_or("-".into());
        columns.row(vec![shard.shard.to_string(), or_none(&shard.node), or_none(&shard.pinned_to)]);
    }
    columns
}
