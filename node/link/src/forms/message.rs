//! Messages, one after the other as they stand in a frame: each with its length before it.

use bytes::{Buf, Bytes};
use prost::Message as _;
use punctual_center::{Error, Loan, Message, Outcome};
use punctual_core::Choice;

use super::Unclear;
use super::account::{AccountForm, InquiryForm};
use super::answer::AnswerForm;
use super::command::CommandForm;
use super::error::ErrorForm;
use super::event::EventForm;
use super::field::Field;
use super::plain::IncarnationForm;
use super::task::DeliveryForm;

choice! {
    MessageForm in message of Message, Message {
        1 Ask {
            #[prost(uint64, tag = 1)] id: u64,
            #[prost(uint32, tag = 2)] shard: u32,
            #[prost(uint32, tag = 3)] round: u32,
            #[prost(message, optional, tag = 4)] command: Option<CommandForm>,
            #[prost(string, optional, tag = 5)] by: Option<String>,
        },
        2 Handed {
            #[prost(uint32, tag = 1)] shard: u32,
            #[prost(uint64, tag = 2)] fence: u64,
        },
        3 Want { #[prost(string, repeated, tag = 1)] queues: Vec<String>, },
        4 Unwant { #[prost(string, repeated, tag = 1)] queues: Vec<String>, },
        5 Lend {
            #[prost(uint64, tag = 1)] id: u64,
            #[prost(message, optional, tag = 2)] loan: Option<LoanForm>,
        },
        6 Recall { #[prost(uint64, tag = 1)] id: u64, },
        7 Watch { #[prost(bool, tag = 1)] is_on: bool, },
        8 Answered {
            #[prost(uint64, tag = 1)] id: u64,
            #[prost(message, optional, tag = 2)] outcome: Option<OutcomeForm>,
        },
        9 NotHere {
            #[prost(uint64, tag = 1)] id: u64,
            #[prost(uint32, tag = 2)] shard: u32,
            #[prost(uint64, tag = 3)] fence: u64,
            #[prost(message, optional, tag = 4)] owner: Option<IncarnationForm>,
        },
        10 Stocked {
            #[prost(string, repeated, tag = 1)] queues: Vec<String>,
            #[prost(bool, tag = 2)] is_stocked: bool,
        },
        11 Served {
            #[prost(uint64, tag = 1)] id: u64,
            #[prost(message, repeated, tag = 2)] deliveries: Vec<DeliveryForm>,
            #[prost(string, repeated, tag = 3)] empty: Vec<String>,
        },
        12 Happened(#[prost(message, repeated, tag = 1)] events: Vec<EventForm>),
        13 Missed(#[prost(uint64, tag = 1)] rounds: u64),
        14 Inquire {
            #[prost(uint64, tag = 1)] id: u64,
            #[prost(message, optional, tag = 2)] inquiry: Option<InquiryForm>,
        },
        15 Accounted {
            #[prost(uint64, tag = 1)] id: u64,
            #[prost(message, optional, tag = 2)] account: Option<AccountForm>,
        },
        16 Farewell,
        17 Leaving,
    }
}

form! {
    LoanForm of Loan {
        #[prost(string, repeated, tag = 1)] queues: Vec<String>,
        #[prost(uint64, tag = 2)] max: u64,
        #[prost(uint64, optional, tag = 3)] lease: Option<u64>,
        #[prost(string, tag = 4)] consumer: String,
        #[prost(uint32, tag = 5)] choice: u32,
    }
}

choice! {
    OutcomeForm in outcome of Outcome, Result {
        1 Ok(#[prost(message, optional, tag = 1)] answer: Option<AnswerForm>),
        2 Err(#[prost(message, optional, tag = 1)] error: Option<ErrorForm>),
    }
}

numbered! { Choice { 1 InTurn, 2 Foremost, } }

/// No frame holds more messages, however short they are.
pub(crate) const MOST_MESSAGES: usize = 1 << 16;

/// A message on its way into a frame.
pub(crate) struct Formed {
    form: MessageForm,
    bytes: usize,
}

impl Formed {
    pub(crate) fn of(message: &Message) -> Formed {
        let form = MessageForm::put(message);
        let bytes = form.encoded_len();
        Formed { form, bytes: bytes + prost::length_delimiter_len(bytes) }
    }

    /// How much room it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn append_to(&self, frame: &mut Vec<u8>) {
        frame.reserve(self.bytes);
        self.form.encode_length_delimited(frame).expect("a vector has room");
    }
}

/// The bytes of these messages, one after the other.
pub fn encode(messages: &[Message]) -> Vec<u8> {
    let mut bytes = Vec::new();
    messages.iter().for_each(|message| Formed::of(message).append_to(&mut bytes));
    bytes
}

/// What came of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It was understood.
    Clear(Message),
    /// It was not, and this is how its sender is told so.
    Answer(Message, Unclear),
    /// It was not, and whoever waits for it is told this instead.
    Instead(Message, Unclear),
    /// It was not, and nobody waits for it.
    Lost(Unclear),
}

/// These bytes are not messages one after the other: whoever wrote them does not speak this language, or is broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these are no messages: {0}")]
pub struct Garbled(String);

/// Takes messages apart as they stand one after the other.
pub fn hear(mut bytes: Bytes) -> Result<Vec<Heard>, Garbled> {
    let mut heard = Vec::new();
    while bytes.has_remaining() {
        if heard.len() == MOST_MESSAGES {
            return Err(Garbled(format!("more than {MOST_MESSAGES} at once")));
        }
        let length = prost::decode_length_delimiter(&mut bytes).map_err(|error| Garbled(error.to_string()))?;
        if length > bytes.len() {
            return Err(Garbled(format!("{length} bytes are announced and {} are there", bytes.len())));
        }
        let form = MessageForm::decode(bytes.split_to(length)).map_err(|error| Garbled(error.to_string()))?;
        heard.push(understand(form));
    }
    Ok(heard)
}

/// Who is waiting for word of a message, by its id.
enum Awaited {
    /// Its sender: it is a request.
    Request(u64),
    /// Its sender: it is a loan.
    Loan(u64),
    /// Its sender: it is an inquiry.
    Inquiry(u64),
    /// Who is here: it is the answer to a request.
    Answer(u64),
    /// Who is here: it says that nothing was done.
    Denial(u64),
    /// Who is here: it is what came of a loan.
    Service(u64),
    /// Who is here: it is what came of an inquiry.
    Account(u64),
}

fn awaited(form: &MessageForm) -> Option<Awaited> {
    use message::Kind;
    Some(match form.kind.as_ref()? {
        Kind::Ask(ask) => Awaited::Request(ask.id),
        Kind::Lend(lend) => Awaited::Loan(lend.id),
        Kind::Inquire(inquire) => Awaited::Inquiry(inquire.id),
        Kind::Answered(answered) => Awaited::Answer(answered.id),
        Kind::NotHere(not_here) => Awaited::Denial(not_here.id),
        Kind::Served(served) => Awaited::Service(served.id),
        Kind::Accounted(accounted) => Awaited::Account(accounted.id),
        _ => return None,
    })
}

/// A message that is not understood does not leave anybody waiting for ever.
fn understand(form: MessageForm) -> Heard {
    let awaited = awaited(&form);
    let unclear = match form.take() {
        Ok(message) => return Heard::Clear(message),
        Err(unclear) => unclear,
    };
    let why = |what| format!("{what} is not understood by a node of another version ({unclear})");
    let nothing_left = |id| Message::Served { id, deliveries: Vec::new(), empty: Vec::new() };
    let not_done = |id, what| Message::Answered { id, outcome: Err(Error::nothing_done(why(what))) };
    let in_doubt = |id, what| Message::Answered { id, outcome: Err(Error::unknown_outcome(why(what))) };
    match awaited {
        Some(Awaited::Request(id)) => Heard::Answer(not_done(id, "the request"), unclear),
        Some(Awaited::Loan(id)) => Heard::Answer(nothing_left(id), unclear),
        Some(Awaited::Inquiry(id)) => Heard::Answer(Message::Accounted { id, account: None }, unclear),
        Some(Awaited::Answer(id)) => Heard::Instead(in_doubt(id, "the answer"), unclear),
        Some(Awaited::Denial(id)) => Heard::Instead(not_done(id, "where the shard is"), unclear),
        Some(Awaited::Service(id)) => Heard::Instead(nothing_left(id), unclear),
        Some(Awaited::Account(id)) => Heard::Instead(Message::Accounted { id, account: None }, unclear),
        None => Heard::Lost(unclear),
    }
}
