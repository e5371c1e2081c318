//! What is said is what is heard, of every kind; and what cannot be understood is told.

use std::collections::BTreeSet;
use std::fmt::Debug;

use bytes::Bytes;
use punctual_center::{Account, Error, Inquiry, Message, Outcome};
use punctual_chance::Chance;
use punctual_core::store::ShardId;
use punctual_core::{
    Adjustment, Among, Answer, Back, Backoff, Certainty, Chosen, Command, Matching, Name, Pattern, Refused, Ruling,
    ScheduleOutcome, Shift, Standing, Subject, SweepAction, Timestamp, What, When,
};

use super::examples::{Example, draw};
use super::field::{Field, Kinds};
use super::{Heard, account, answer, command, encode, error, event, hear, message, settings, task};

/// Draws values until each kind of them has come, and compares all of them with what comes back.
fn every_kind_comes_back<T, F>()
where
    T: Example + PartialEq + Debug,
    F: Field<T> + prost::Message + Default + Kinds,
{
    let mut chance = Chance::new(7);
    let mut unseen: BTreeSet<&str> = F::KINDS.iter().copied().collect();
    for _ in 0..100 * F::KINDS.len() {
        let value: T = draw(&mut chance);
        let form = F::put(&value);
        unseen.remove(form.kind());
        let back = F::decode(Bytes::from(form.encode_to_vec())).unwrap().take().unwrap();
        assert_eq!(back, value);
    }
    assert!(unseen.is_empty(), "no example of {unseen:?}");
}

#[test]
fn what_is_said_is_what_is_heard() {
    every_kind_comes_back::<Message, message::MessageForm>();
    every_kind_comes_back::<Inquiry, account::InquiryForm>();
    every_kind_comes_back::<Account, account::AccountForm>();
    every_kind_comes_back::<Outcome, message::OutcomeForm>();
    every_kind_comes_back::<Command, command::CommandForm>();
    every_kind_comes_back::<Shift, command::ShiftForm>();
    every_kind_comes_back::<Back, command::BackForm>();
    every_kind_comes_back::<Matching, command::MatchingForm>();
    every_kind_comes_back::<Among, command::AmongForm>();
    every_kind_comes_back::<SweepAction, command::SweepActionForm>();
    every_kind_comes_back::<Chosen, command::ChosenForm>();
    every_kind_comes_back::<Answer, answer::AnswerForm>();
    every_kind_comes_back::<ScheduleOutcome, answer::ScheduleOutcomeForm>();
    every_kind_comes_back::<Ruling<()>, answer::RulingForm>();
    every_kind_comes_back::<Ruling<Timestamp>, answer::DueRulingForm>();
    every_kind_comes_back::<Standing, answer::StandingForm>();
    every_kind_comes_back::<Error, error::ErrorForm>();
    every_kind_comes_back::<Refused, error::RefusedForm>();
    every_kind_comes_back::<What, event::WhatForm>();
    every_kind_comes_back::<When, task::WhenForm>();
    every_kind_comes_back::<Adjustment, settings::AdjustmentForm>();
    every_kind_comes_back::<Subject, settings::SubjectForm>();
    every_kind_comes_back::<Backoff, settings::BackoffForm>();
    every_kind_comes_back::<Pattern, settings::PatternForm>();
}

#[test]
fn messages_keep_their_order() {
    let mut chance = Chance::new(1);
    let messages: Vec<Message> = (0..1_000).map(|_| draw(&mut chance)).collect();
    let heard = hear(encode(&messages).into()).unwrap();
    assert_eq!(heard, messages.into_iter().map(Heard::Clear).collect::<Vec<_>>());
}

fn ask(queue: &str) -> Message {
    let command = Command::First { queue: Name::stored(queue) };
    Message::Ask { id: 7, shard: ShardId(1), round: 0, command, by: None }
}

/// A message with a few bytes in place of others of the same length.
fn altered(message: Message, from: &[u8], to: &[u8]) -> Vec<Heard> {
    let mut bytes = encode(&[message]);
    let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
    bytes[at..at + from.len()].copy_from_slice(to);
    hear(bytes.into()).unwrap()
}

#[test]
fn a_request_that_is_not_understood_is_answered_as_not_done() {
    let [Heard::Answer(Message::Answered { id: 7, outcome: Err(error) }, unclear)] =
        &altered(ask("abc"), b"abc", b"a c")[..]
    else {
        panic!("not answered");
    };
    assert_eq!(error.certainty(), Certainty::NothingDone);
    assert!(unclear.to_string().starts_with("Ask.command.First.queue: a name must consist of visible"), "{unclear}");
    assert!(error.to_string().contains("Ask.command.First.queue"), "{error}");
}

#[test]
fn a_command_of_a_newer_version_is_answered_as_not_done() {
    // The number of the command `First`, 26, and one that nobody has yet.
    let heard = altered(ask("abc"), &[26 << 3 & 0x7f | 0x82, 1], &[0xfa, 0x7f]);
    let [Heard::Answer(Message::Answered { id: 7, .. }, unclear)] = &heard[..] else { panic!("{heard:?}") };
    assert_eq!(unclear.to_string(), "Ask.command: missing, or not known to this version");
}

#[test]
fn an_answer_that_is_not_understood_leaves_the_outcome_unknown() {
    let outcome = Err(Error::nothing_done("abc"));
    let heard = altered(Message::Answered { id: 9, outcome }, b"abc\x10\x01", b"abc\x10\x63");
    let [Heard::Instead(Message::Answered { id: 9, outcome: Err(error) }, _)] = &heard[..] else { panic!("{heard:?}") };
    assert_eq!(error.certainty(), Certainty::Unknown);
}

#[test]
fn a_message_of_a_newer_version_is_passed_over_and_new_fields_too() {
    // A kind of message that nobody has yet; then one with a field more than it has, number 15 of one byte.
    let mut bytes = vec![4, 0xfa, 0x3f, 1, 0];
    let mut recall = encode(&[Message::Recall { id: 5 }]);
    recall.extend_from_slice(&[0x78, 1]);
    recall[0] += 2;
    recall[2] += 2;
    bytes.extend_from_slice(&recall);
    let heard = hear(bytes.into()).unwrap();
    assert!(matches!(&heard[..], [Heard::Lost(_), Heard::Clear(Message::Recall { id: 5 })]), "{heard:?}");
}

#[test]
fn what_is_cut_off_is_garbled() {
    let bytes = encode(&[ask("abc"), ask("def")]);
    let whole = [0, bytes.len() / 2, bytes.len()];
    for end in (0..=bytes.len()).filter(|end| !whole.contains(end)) {
        assert!(hear(bytes[..end].to_vec().into()).is_err(), "{end}");
    }
}

#[test]
fn a_frame_has_only_so_many_messages() {
    assert!(hear(vec![0; super::MOST_MESSAGES].into()).is_ok());
    assert!(hear(vec![0; super::MOST_MESSAGES + 1].into()).is_err());
}
