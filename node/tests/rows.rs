//! Single rows by their numbers, and commands of many kinds at once.

use crate::stage::{Stage, name, next, task};
use punctual_core::store::Bodies;
use punctual_core::view::RowView;
use punctual_core::{Answer, Back, Command, Ending, Millis, Refused, Standing, Take, Task};
use punctual_node::{Error, Handle, Number};

const HOUR: Millis = Millis::from_hours(1);

/// Schedules a task; says its number.
async fn put(handle: &Handle, task: Task) -> Number {
    let topic = task.topic.clone();
    let scheduled = handle.schedule(task).await.unwrap();
    handle.number(&topic, &scheduled.id, scheduled.number)
}

async fn look(handle: &Handle, number: Number) -> Option<RowView> {
    handle.numbered(vec![number], Bodies::With).await.unwrap().pop().unwrap()
}

#[tokio::test]
async fn a_number_finds_its_task_in_every_state_and_after_a_restart() {
    let stage = Stage::new(3);
    let handle = stage.handle.clone();
    let mut numbers = Vec::new();
    for id in 0..20_u8 {
        numbers.push(put(&handle, task("orders", &id.to_string()).after(HOUR)).await);
    }
    let now = put(&handle, task("orders", "now")).await;
    let held = next(&handle, "orders").await;
    assert_eq!(handle.number(&held.topic, &held.id, held.number), now);
    assert!(matches!(look(&handle, now).await.unwrap().task.delivery.standing, Standing::Leased { .. }));

    let stage = stage.restart(crate::stage::config(3));
    for (id, number) in numbers.iter().enumerate() {
        let found = look(&stage.handle, *number).await.unwrap();
        assert_eq!(found.task.id.as_str(), id.to_string());
        assert_eq!(found.task.body.as_ref(), id.to_string().as_bytes());
    }
    assert_eq!(look(&stage.handle, Number(1 << 50)).await, None);
    let many = stage.handle.numbered(numbers.clone(), Bodies::Without).await.unwrap();
    let ids: Vec<String> = many.into_iter().map(|found| found.unwrap().task.id.to_string()).collect();
    assert_eq!(ids, (0..20).map(|id| id.to_string()).collect::<Vec<String>>());
}

#[tokio::test]
async fn acts_of_many_kinds_are_each_answered_by_themselves_and_in_order() {
    let Stage { handle, node: _node, .. } = Stage::new(2);
    let waiting = put(&handle, task("orders", "waiting").after(HOUR)).await;
    let late = put(&handle, task("orders", "late").after(HOUR)).await;
    put(&handle, task("orders", "held")).await;
    let held = next(&handle, "orders").await;
    let (waiting, late) = (look(&handle, waiting).await.unwrap().row, look(&handle, late).await.unwrap().row);
    let touch = Command::Extend { lease: held.lease.clone(), by: None };
    let outcomes = handle
        .carry_out(vec![
            handle.scheduling(task("orders", "new").after(HOUR)),
            Command::Remove { row: waiting.clone(), token: None },
            Command::Remove { row: waiting, token: None },
            Command::Hasten { row: late },
            touch.clone(),
            Command::Reject { lease: held.lease.clone(), note: None, priority: Some(3) },
            touch,
            Command::Total,
        ])
        .await;
    assert!(matches!(&outcomes[0], Ok(Answer::Scheduled(scheduled)) if scheduled.id.as_str() == "new"));
    assert_eq!(outcomes[1], Ok(Answer::Removed(Ending::Cancelled)));
    assert_eq!(outcomes[2], Err(Error::Refused(Refused::NothingThere)));
    assert!(matches!(outcomes[3], Ok(Answer::Hastened(Standing::Ready { .. }))));
    assert!(matches!(outcomes[4], Ok(Answer::Extended(_))));
    assert_eq!(outcomes[5], Ok(Answer::Rejected));
    assert!(matches!(outcomes[6], Err(Error::Refused(Refused::LeaseLost { .. }))));
    assert!(matches!(outcomes[7], Err(Error::Refused(Refused::Invalid { .. }))), "it is about no single task");
    assert_eq!(next(&handle, "orders").await.id.as_str(), "late");
}

#[tokio::test]
async fn a_row_is_taken_before_its_time_and_only_once() {
    let Stage { handle, node: _node, .. } = Stage::new(1);
    let number = put(&handle, task("orders", "7").after(HOUR)).await;
    let row = look(&handle, number).await.unwrap().row;
    let take = Take { row, consumer: name("ann"), lease: None };
    let taken = handle.take(take.clone()).await.unwrap();
    assert_eq!((taken.id.as_str(), taken.body.as_ref()), ("7", &b"7"[..]));
    assert_eq!(handle.take(take).await, Err(Error::Refused(Refused::NothingThere)));
}

#[tokio::test]
async fn the_first_of_a_queue_is_what_is_handed_out_next() {
    let Stage { handle, node: _node, .. } = Stage::new(3);
    assert_eq!(handle.first(&name("orders")).await.unwrap(), None);
    let mut numbers = Vec::new();
    for priority in [7, 3, 5] {
        let task = task("orders", &priority.to_string());
        numbers.push(put(&handle, Task { priority: Some(priority), ..task }).await);
    }
    assert_eq!(handle.first(&name("orders")).await.unwrap(), Some(numbers[1]));
}

#[tokio::test]
async fn what_is_abandoned_is_ready_again_and_counts_as_nothing() {
    let Stage { handle, node: _node, .. } = Stage::new(1);
    let number = put(&handle, task("orders", "7")).await;
    let held = next(&handle, "orders").await;
    let counts = handle.counts().await.unwrap();
    assert_eq!((counts.queues[0].ready, counts.queues[0].leased), (0, 1));
    handle.abandon(vec![held.lease.clone()]).await;
    let counts = handle.counts().await.unwrap();
    assert_eq!((counts.queues[0].ready, counts.queues[0].leased), (1, 0));
    let again = next(&handle, "orders").await;
    let seen = look(&handle, number).await.unwrap().task.delivery;
    assert_eq!((again.attempt, seen.failures, seen.past.releases), (2, 0, 0));
    let late = handle.release(held.lease, Back::After(Millis::ZERO), None, None).await;
    assert!(matches!(late, Err(Error::Refused(Refused::LeaseLost { .. }))), "{late:?}");
}
