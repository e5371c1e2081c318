//! The numbers of rows: the shard and the model each give their own, but always the same one to the same row.

use std::collections::BTreeMap;

use punctual_core::store::Key;
use punctual_core::view::TaskView;
use punctual_core::{Answer, Reply, RowId};

use super::Pair;
use crate::model::Number;

/// A row as both sides know it.
#[derive(Clone, Debug)]
pub struct Known {
    pub key: Key,
    pub by_shard: u64,
    pub by_model: Number,
}

impl Known {
    pub fn for_shard(&self) -> RowId {
        RowId { key: self.key.clone(), number: self.by_shard }
    }

    pub fn for_model(&self) -> RowId {
        RowId { key: self.key.clone(), number: self.by_model }
    }
}

/// All rows that both sides have spoken of, by the model's numbers.
#[derive(Debug, Default)]
pub struct Numbers(BTreeMap<Number, Known>);

impl Numbers {
    pub fn all(&self) -> impl Iterator<Item = &Known> {
        self.0.values()
    }

    /// The model has forgotten all that got a higher number.
    pub fn forget_after(&mut self, last: Number) {
        self.0.retain(|number, _| *number <= last);
    }
}

impl Pair {
    /// Both sides speak of one row.
    fn same_row(&mut self, by_shard: u64, by_model: Number) {
        if let Some(known) = self.numbers.0.get(&by_model) {
            return assert_eq!(known.by_shard, by_shard, "{:?} keeps its number", known.key);
        }
        if let Some(row) = self.model.rows.get(&by_model) {
            self.numbers.0.insert(by_model, Known { key: row.key(), by_shard, by_model });
        }
    }

    /// Learns the numbers of the rows that an answer speaks of.
    pub fn learn_from_answer(&mut self, actual: &Reply, expected: &Reply) {
        match (actual, expected) {
            (Ok(Answer::Scheduled(actual)), Ok(Answer::Scheduled(expected))) => {
                self.same_row(actual.number, expected.number);
            }
            (Ok(Answer::Reserved(actual)), Ok(Answer::Reserved(expected))) => {
                for (actual, expected) in actual.iter().zip(expected) {
                    self.same_row(actual.number, expected.number);
                }
            }
            (Ok(Answer::First(Some(actual))), Ok(Answer::First(Some(expected)))) => {
                self.same_row(actual.position.seq, expected.position.seq);
            }
            _ => {}
        }
    }

    /// Learns the numbers of a task and its deliveries.
    pub fn learn_from_view(&mut self, actual: &TaskView, expected: &TaskView) {
        assert_eq!((actual.number, actual.number), (actual.position.seq, actual.delivery.number));
        self.same_row(actual.number, expected.number);
        for (actual, expected) in actual.parts.iter().zip(&expected.parts) {
            self.same_row(actual.number, expected.number);
        }
    }
}

/// Numbers and tokens are each side's own affair.
pub fn bare_reply(reply: Reply) -> Reply {
    reply.map(|answer| match answer {
        Answer::Scheduled(mut scheduled) => {
            scheduled.number = 0;
            Answer::Scheduled(scheduled)
        }
        Answer::Reserved(mut deliveries) => {
            deliveries.iter_mut().for_each(|delivery| (delivery.number, delivery.lease.token) = (0, 0));
            Answer::Reserved(deliveries)
        }
        Answer::First(mut first) => {
            first.iter_mut().for_each(|first| first.position.seq = 0);
            Answer::First(first)
        }
        other => other,
    })
}

/// The same view without numbers and tokens.
pub fn bare_view(view: &TaskView) -> TaskView {
    let mut view = view.clone();
    (view.number, view.position.seq) = (0, 0);
    for delivery in view.parts.iter_mut().chain([&mut view.delivery]) {
        delivery.number = 0;
        delivery.lease.iter_mut().for_each(|lease| lease.token = 0);
    }
    view
}
