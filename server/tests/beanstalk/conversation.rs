//! Runs a script against a server and writes down what came. The language of scripts is in [`crate::script`].

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use crate::normal::{Ids, normal};
use crate::peer::Peer;
use crate::script::{Act, Script, bytes_of};
use crate::transcript::Transcript;
use crate::wire::{Manner, Wire};

/// A server learns of a signal when it learns of it; nobody says when.
const UNTIL_A_SIGNAL_IS_SEEN: Duration = Duration::from_millis(100);

struct Conversation<'a> {
    peer: &'a mut dyn Peer,
    manner: Manner,
    wires: BTreeMap<char, Wire>,
    ids: Ids,
    last: BTreeMap<char, Vec<u8>>,
    transcript: Transcript,
}

/// Goes through the script, as far as answers come.
pub fn converse(script: &Script, peer: &mut dyn Peer, manner: Manner) -> Transcript {
    let mut conversation = Conversation {
        peer,
        manner,
        wires: BTreeMap::new(),
        ids: Ids::default(),
        last: BTreeMap::new(),
        transcript: Transcript::default(),
    };
    if manner == Manner::Pipelined {
        conversation.say_everything(script);
    }
    for step in &script.steps {
        if !conversation.follow(&step.act, &step.source) {
            break;
        }
    }
    conversation.transcript.note("the ids", conversation.ids.in_common().into());
    conversation.transcript
}

impl Conversation<'_> {
    fn wire(&mut self, who: char) -> &mut Wire {
        let address = self.peer.address();
        self.wires.entry(who).or_insert_with(|| Wire::open(&address))
    }

    fn say(&mut self, who: char, text: &str) {
        let bytes = bytes_of(text, &|n| self.ids.nth(n));
        let manner = self.manner;
        self.wire(who).send(&bytes, manner);
    }

    /// All of A's lines in one write; they cannot depend on answers.
    fn say_everything(&mut self, script: &Script) {
        let said = script.steps.iter().filter_map(|step| match &step.act {
            Act::Say { who: 'A', text, .. } => Some(bytes_of(text, &|n| panic!("${n} is not known before its answer"))),
            _ => None,
        });
        let everything = said.collect::<Vec<_>>().concat();
        self.wire('A').send(&everything, Manner::Pipelined);
    }

    /// Takes a step, and says whether it makes sense to go on.
    fn follow(&mut self, act: &Act, source: &str) -> bool {
        match act {
            Act::Say { who, text, answers } => {
                let is_said = self.manner == Manner::Pipelined && *who == 'A';
                if !is_said {
                    self.say(*who, text);
                }
                return self.listen(*who, *answers, source);
            }
            Act::Await { who, answers } => return self.listen(*who, *answers, source),
            Act::Was { who, text } => {
                let expected = bytes_of(text, &|n| format!("${n}"));
                let last = self.last.get(who).map_or_else(String::new, |last| String::from_utf8_lossy(last).into());
                self.transcript.check(source, &String::from_utf8_lossy(&expected), &last);
            }
            Act::Silence { who } => {
                let came = self.wire(*who).overhear();
                self.transcript.note(source, came);
            }
            Act::Close { who } => {
                self.wires.remove(who);
                // Here the next command of anybody finds it gone.
                thread::sleep(self.peer.sees_a_close_within());
            }
            Act::HalfClose { who } => self.wire(*who).half_close(),
            Act::IsClosed { who } => {
                while self.listen(*who, 1, source) {}
                self.wires.remove(who);
            }
            Act::Sleep(time) => thread::sleep(*time),
            Act::Drain => {
                self.peer.drain();
                thread::sleep(UNTIL_A_SIGNAL_IS_SEEN);
            }
            Act::Restart | Act::Kill => {
                self.wires.clear();
                self.ids.skip();
                self.peer.start_again(matches!(act, Act::Kill));
            }
        }
        true
    }

    fn listen(&mut self, who: char, answers: usize, source: &str) -> bool {
        let sorts_tubes = self.peer.sorts_tubes() && source.ends_with(" list-tubes");
        for _ in 0..answers {
            match self.wire(who).answer() {
                Ok(answer) => {
                    let answer = normal(&answer, &mut self.ids, sorts_tubes);
                    self.last.insert(who, answer.clone());
                    self.transcript.note(source, answer);
                }
                Err(instead) => {
                    self.transcript.note(source, instead);
                    return false;
                }
            }
        }
        true
    }
}
