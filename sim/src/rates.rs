//! Rates that all nodes keep together: boards draw tokens from the home shard of a queue, wherever that is.

use punctual_core::{Answer, Command, Drawn, Millis, Name, Reply, Subject};

use crate::demand::{Demand, Purpose, shard_of};
use crate::world::World;

/// How long a queue waits that could not draw.
const AWAY: Drawn = Drawn { tokens: 0, wait: Millis(500) };

impl World {
    /// A node draws tokens for the queues that its board could hand something out of.
    pub(crate) fn draw(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        let (life, draws) = (node.life, node.draws(self.moment));
        for (queue, tokens) in draws {
            let home = shard_of(&queue, "", self.profile.shards);
            let draw = Command::Draw { from: Subject::Queue(queue.clone()), tokens };
            self.census.count("draws");
            self.send(Demand::command(Purpose::Draw(queue), home, draw), Some((index, life)));
        }
    }

    /// What came of a draw.
    pub(crate) fn drawn(&mut self, index: usize, queue: &Name, reply: Option<&Reply>) {
        let drawn = match reply {
            Some(Ok(Answer::Drawn(drawn))) => *drawn,
            _ => AWAY,
        };
        self.nodes[index].granted(queue, drawn, self.moment);
    }
}
