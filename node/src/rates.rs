//! Rates that all nodes keep together: tokens are drawn from the home shard of a topic or queue, wherever that is.
//!
//! A node that is alone on its store keeps them by itself (`limits.rs`, and the board).

use std::collections::BTreeMap;

use punctual_core::store::ShardId;
use punctual_core::{Answer, Command, Drawn, Millis, Name, Refused, Subject, Told};

use crate::caller::Caller;
use crate::error::{Error, Outcome};
use crate::handle::Handle;
use crate::shared::Shared;
use punctual_core::shard_of;

/// How long a queue waits that could not draw, because its home shard is not there for now.
const AWAY: Drawn = Drawn { tokens: 0, wait: Millis(500) };

impl Shared {
    /// The shard from whose bucket a topic or queue draws.
    fn home(&self, name: &Name) -> ShardId {
        shard_of(name, "", self.config.shards)
    }

    /// Draws tokens for queues whose rates hold them back.
    pub fn draw(&self, draws: Vec<(Name, u32)>) {
        for (queue, tokens) in draws {
            let draw = Command::Draw { from: Subject::Queue(queue.clone()), tokens };
            self.tell(self.home(&queue), draw, Caller::Drawer(queue));
        }
    }

    /// What came of a draw for a queue: shards that have something for it look at the board.
    pub fn drawn(&self, queue: &Name, outcome: Outcome) {
        let drawn = outcome.map_or(AWAY, Drawn::by);
        let shards = self.board.lock().waiting.granted(queue, drawn, self.clock.now());
        shards.into_iter().for_each(|shard| self.inbox(shard).wake_up());
    }

    /// The topic of a command that takes a task in, if tokens have to be drawn for it.
    fn limited<'a>(&self, command: &'a Command) -> Option<&'a Name> {
        let Command::Schedule(schedule) = command else { return None };
        let topic = &schedule.task.topic;
        (self.peers.has_links() && self.entrances.is_limited(topic)).then_some(topic)
    }
}

/// Commands of a batch that wait for tokens, by their places in it.
pub(crate) type Held = Vec<(usize, ShardId, Command)>;

impl Handle {
    /// Lets a command wait until its topic may take in one more task.
    pub(crate) async fn enter(&self, command: &Command) -> Result<(), Error> {
        let Some(topic) = self.shared().limited(command) else { return Ok(()) };
        match self.draw(topic, 1).await? {
            Drawn { tokens: 0, wait } => Err(refusal(topic, wait)),
            _ => Ok(()),
        }
    }

    /// Takes those commands out of a batch that have to wait for tokens.
    pub(crate) fn hold_back(&self, commands: &mut [Result<(ShardId, Command), Error>]) -> Held {
        let mut held = Held::new();
        for (place, admitted) in commands.iter_mut().enumerate() {
            if admitted.as_ref().is_ok_and(|(_, command)| self.shared().limited(command).is_some())
                && let Ok((shard, command)) = std::mem::replace(admitted, Err(Error::Overloaded))
            {
                held.push((place, shard, command));
            }
        }
        held
    }

    /// Carries out what was held back, as far as there are tokens for it.
    pub(crate) async fn let_in(&self, held: Held) -> Vec<(usize, Outcome)> {
        let mut wanted: BTreeMap<Name, u32> = BTreeMap::new();
        let topic_of = |command: &Command| self.shared().limited(command).cloned();
        for topic in held.iter().filter_map(|(_, _, command)| topic_of(command)) {
            *wanted.entry(topic).or_default() += 1;
        }
        let mut drawn: BTreeMap<Name, Result<Drawn, Error>> = BTreeMap::new();
        for (topic, tokens) in wanted {
            let drew = self.draw(&topic, tokens).await;
            drawn.insert(topic, drew);
        }
        let (mut answers, mut places, mut commands) = (Vec::new(), Vec::new(), Vec::new());
        for (place, shard, command) in held {
            let refused = topic_of(&command).and_then(|topic| match drawn.get_mut(&topic)? {
                Ok(Drawn { tokens: 0, wait }) => Some(refusal(&topic, *wait)),
                Ok(Drawn { tokens, .. }) => {
                    *tokens -= 1;
                    None
                }
                Err(error) => Some(error.clone()),
            });
            match refused {
                Some(error) => answers.push((place, Err(error))),
                None => {
                    places.push(place);
                    commands.push((shard, command));
                }
            }
        }
        answers.extend(places.into_iter().zip(self.ask_several(commands).await));
        answers
    }

    /// Draws tokens for a topic. Nothing comes of it but what is drawn, so whatever goes wrong, nothing was done.
    async fn draw(&self, topic: &Name, tokens: u32) -> Result<Drawn, Error> {
        let draw = Command::Draw { from: Subject::Topic(topic.clone()), tokens };
        let mut outcomes = self.ask_several(vec![(self.shared().home(topic), draw)]).await;
        let outcome = outcomes.pop().unwrap_or(Ok(Answer::Drawn(AWAY)));
        outcome.map(Drawn::by).map_err(Error::of_a_look)
    }
}

fn refusal(topic: &Name, retry_after: Millis) -> Error {
    Refused::RateLimited { topic: topic.clone(), retry_after }.into()
}
