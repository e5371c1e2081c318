//! Sweeps over all shards of all nodes: begun by any of them, seen alike, and finished whoever stays.

use crate::stage::nodes::Nodes;
use crate::stage::{Stage, config, eventually, name, task, wait_for};
use punctual_center::Sweeps;
use punctual_core::store::Store;
use punctual_core::{
    Among, Matching, Millis, Name, Scope, Select, Shift, Standing, Sweep, SweepAction, Swept, TimeRange,
};
use punctual_node::{CannotUndo, Error, Handle, SweepView};

const TASKS: u64 = 600;

async fn fill(handle: &Handle, topic: &str) {
    for number in 0..TASKS {
        handle.schedule(task(topic, &number.to_string()).after(Millis::from_hours(1))).await.unwrap();
    }
}

fn sweep(topic: &str, action: SweepAction, ids: Option<Vec<Name>>) -> Sweep {
    let (among, topic) = (Among::Live, Some(name(topic)));
    let select = Select { among, topic, key: None, queue: None, time: TimeRange::ALL, ids };
    Sweep { matching: Matching::Tasks(Box::new(select)), within: Scope::ALL, action, dry_run: false }
}

/// Waits until a sweep is over, as a node sees it.
async fn over(handle: &Handle, number: u64) -> SweepView {
    let find = async || handle.find_sweep(number).await.ok().flatten().filter(|view| view.ended.is_some());
    eventually("it is over", async || find().await.is_some()).await;
    find().await.unwrap()
}

fn all(changed: u64) -> Swept {
    Swept { matched: changed, changed, ..Swept::default() }
}

async fn waiting(handle: &Handle, topic: &str) -> u64 {
    handle.topic(&name(topic)).await.unwrap().unwrap().counts.waiting
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_reaches_the_shards_of_all_nodes_and_is_undone_by_another_one() {
    let nodes = Nodes::start(2).await;
    let [first, second] = [&nodes.handles[0], &nodes.handles[1]];
    fill(first, "orders").await;
    let cancel = sweep("orders", SweepAction::Cancel, None);
    let (preview, samples) = second.preview(cancel.clone()).await.unwrap();
    assert_eq!((preview.swept, samples.len()), (all(TASKS), 5));
    let begun = first.begin_sweep(cancel, Some("amy".into())).await.unwrap();
    let number = begun.record.number;
    let seen = over(second, number).await;
    assert_eq!((seen.swept, seen.record.who.as_deref()), (all(TASKS), Some("amy")));
    assert_eq!(waiting(second, "orders").await, 0);
    let undo = second.undo_sweep(number, &Scope::ALL, None).await.unwrap().unwrap();
    assert_eq!(over(first, undo.record.number).await.swept, all(TASKS));
    assert_eq!(waiting(first, "orders").await, TASKS);
    let again = first.undo_sweep(number, &Scope::ALL, None).await.unwrap();
    assert_eq!(again, Err(CannotUndo::Undone { by: undo.record.number }));
    let listed: Vec<u64> = first.sweeps().await.unwrap().iter().map(|view| view.record.number).collect();
    assert_eq!(listed, [undo.record.number, number], "the newest first");
}

/// The node that wrote it down did not live to tell the shards.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_down_is_carried_out_though_nobody_told_the_shards() {
    let nodes = Nodes::start(2).await;
    fill(&nodes.handles[0], "orders").await;
    let ids = Some((0..TASKS / 2).map(|number| name(&number.to_string())).collect());
    let cancel = sweep("orders", SweepAction::Cancel, ids);
    let (sweeps, number) = Sweeps::default().begin(cancel, None, nodes.handles[0].now(), 7).unwrap();
    nodes.store.cluster_put(Sweeps::KEY, 0, &sweeps.lay()).unwrap().unwrap();
    let seen = over(&nodes.handles[1], number).await;
    assert_eq!((seen.swept, seen.record.ids), (all(TASKS / 2), TASKS / 2));
    assert_eq!(waiting(&nodes.handles[0], "orders").await, TASKS / 2);
    let written = async || {
        let entry = nodes.store.cluster_get(Sweeps::KEY).unwrap().unwrap();
        Sweeps::read(&entry.value).unwrap().record(number).unwrap().over
    };
    eventually("its end is written down", async || written().await.is_some()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_and_its_undo_go_on_after_a_restart() {
    for action in [SweepAction::Cancel, SweepAction::Shift(Shift::By(60_000))] {
        let mut stage = Stage::new(3);
        fill(&stage.handle, "orders").await;
        let mut number = stage.handle.begin_sweep(sweep("orders", action, None), None).await.unwrap().record.number;
        for _ in 0..2 {
            stage = tokio::task::block_in_place(|| stage.restart(config(3)));
            assert_eq!(over(&stage.handle, number).await.swept, all(TASKS), "{action:?}");
            if let Ok(undo) = stage.handle.undo_sweep(number, &Scope::ALL, None).await.unwrap() {
                number = undo.record.number;
            }
        }
        assert_eq!(waiting(&stage.handle, "orders").await, TASKS);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_that_is_stopped_says_so_and_others_can_begin() {
    let stage = Stage::new(2);
    fill(&stage.handle, "orders").await;
    let gate = stage.close_gate();
    let mut begun = Vec::new();
    for _ in 0..16 {
        let handle = stage.handle.clone();
        let cancel = sweep("orders", SweepAction::Cancel, None);
        begun.push(tokio::spawn(async move { handle.begin_sweep(cancel, None).await.unwrap().record.number }));
    }
    gate.open();
    let mut numbers = Vec::new();
    for begun in begun {
        numbers.push(begun.await.unwrap());
    }
    let stopped = stage.handle.stop_sweep(numbers[0]).await.unwrap().unwrap();
    assert!(stopped.record.is_stopped || stopped.ended.is_some());
    assert_eq!(stage.handle.stop_sweep(1).await.unwrap(), None, "there is no such sweep");
    let mut changed = 0;
    for number in numbers {
        let Swept { matched, changed: its, too_late, no_room } = over(&stage.handle, number).await.swept;
        assert_eq!(matched, its + too_late + no_room);
        changed += its;
    }
    assert_eq!(changed, TASKS, "each task is cancelled by one of them");
    assert!(stage.handle.begin_sweep(sweep("orders", SweepAction::Cancel, None), None).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn consumers_and_a_sweep_divide_the_tasks_between_them() {
    let stage = Stage::new(2);
    for number in 0..TASKS {
        stage.handle.schedule(task("orders", &number.to_string())).await.unwrap();
    }
    let consumer = tokio::spawn({
        let handle = stage.handle.clone();
        async move {
            let mut taken = 0;
            while let Some(delivery) =
                handle.reserve(wait_for(&handle, "orders", std::time::Duration::ZERO)).await.unwrap().pop()
            {
                handle.acknowledge(delivery.lease).await.unwrap();
                taken += 1;
            }
            taken
        }
    });
    let begun = stage.handle.begin_sweep(sweep("orders", SweepAction::Cancel, None), None).await.unwrap();
    let swept = over(&stage.handle, begun.record.number).await.swept;
    assert_eq!(swept.matched, swept.changed + swept.too_late);
    assert_eq!(consumer.await.unwrap() + swept.changed, TASKS);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_undone_says_why() {
    let stage = Stage::new(2);
    fill(&stage.handle, "orders").await;
    let hasten = Sweep { action: SweepAction::Hasten, ..sweep("orders", SweepAction::Cancel, None) };
    let number = stage.handle.begin_sweep(hasten, None).await.unwrap().record.number;
    assert_eq!(over(&stage.handle, number).await.swept, all(TASKS));
    let undone = stage.handle.undo_sweep(number, &Scope::ALL, None).await.unwrap();
    assert!(matches!(undone, Err(CannotUndo::Lasting(_))));
    assert_eq!(stage.handle.undo_sweep(1, &Scope::ALL, None).await.unwrap(), Err(CannotUndo::Unknown));
    let purge = sweep("orders", SweepAction::Purge, None);
    assert!(matches!(stage.handle.begin_sweep(purge, None).await, Err(Error::Refused(_))));
    let standing = stage.handle.get(&name("orders"), &name("7")).await.unwrap().unwrap().delivery.standing;
    assert!(matches!(standing, Standing::Ready { .. }), "{standing:?}");
}
