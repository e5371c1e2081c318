//! Facts about sweeps that go on by themselves: what they match, what they change, and how that is taken back.

use crate::center::{Center, at, name, task};
use crate::sweeping::{LIVE, Sweeping, begin, counts, dead, herd, of_t, sweep, undo};
use punctual_core::{
    Among, Answer, Binding, Command, Millis, Overflow, Preview, QueueSettings, Reason, Ruling, Scope, Select,
    ShardConfig, Shift, Standing, Sweep, SweepAction, Swept, Task, TimeRange, TopicSettings,
};

#[test]
fn a_preview_says_what_comes_of_the_sweep_and_shows_some_of_it() {
    let mut center = Center::new();
    herd(&mut center, 600);
    center.schedule(task("taken", 0));
    let _ = center.take_one();
    let cancel = sweep(of_t(Among::Live), SweepAction::Cancel);
    let preview = center.preview(cancel.clone());
    assert_eq!((preview.swept, preview.more), (counts(601, 600, 1, 0), false));
    assert_eq!(preview.samples.len(), Preview::SAMPLES);
    assert_eq!(center.due("7"), Some(10_007), "nothing was changed");
    assert_eq!(center.swept(begin(1, cancel)), preview.swept);
    assert!(matches!(center.standing("7"), Some(Standing::Finished { .. })));
}

#[test]
fn a_window_of_time_is_what_comes_due_in_it() {
    let mut center = Center::new();
    herd(&mut center, 100);
    let time = TimeRange { from: at(10_010), until: at(10_020) };
    let cancel = sweep(Select { time, ..of_t(Among::Scheduled) }, SweepAction::Cancel);
    assert_eq!(center.swept(begin(1, cancel)), counts(10, 10, 0, 0));
    assert_eq!(
        (center.due("9"), center.due("10"), center.due("19"), center.due("20")),
        (Some(10_009), None, None, Some(10_020))
    );
}

#[test]
fn ids_keys_and_queues_narrow_what_is_meant() {
    let mut center = Center::new();
    center.schedule(Task { key: Some(name("ann")), ..task("a", 50) });
    center.schedule(Task { key: Some(name("bob")), ..task("b", 50) });
    center.schedule(Task { topic: name("u"), key: Some(name("ann")), ..task("c", 50) });
    center.schedule(task("ready", 0));
    let ids = Some(["a", "b", "none"].map(name).to_vec());
    let named = Select { ids, key: Some(name("ann")), ..of_t(Among::Live) };
    let preview = |center: &mut Center, select| center.preview(sweep(select, SweepAction::Cancel)).swept.matched;
    assert_eq!(preview(&mut center, named), 1);
    assert_eq!(preview(&mut center, Select { key: Some(name("ann")), ..LIVE }), 2);
    assert_eq!(preview(&mut center, Select { key: Some(name("ann")), ..of_t(Among::Live) }), 1);
    assert_eq!(preview(&mut center, Select { queue: Some(name("t")), ..LIVE }), 1, "what is ready there");
    assert_eq!(preview(&mut center, of_t(Among::Ready)), 1);
    assert_eq!(preview(&mut center, of_t(Among::Scheduled)), 2);
    assert_eq!(preview(&mut center, LIVE), 4);
    let within = Scope::of(["u".to_owned()]);
    let kept = Sweep { within, ..sweep(LIVE, SweepAction::Cancel) };
    assert_eq!(center.preview(kept).swept.matched, 1, "only of the topics that the caller may change");
}

#[test]
fn undoing_a_cancel_gives_back_due_times_priorities_and_bodies() {
    let mut center = Center::new();
    for number in 0..1_000_u32 {
        let task = Task { priority: Some(number), ..task(&number.to_string(), 10_000 + u64::from(number)) };
        center.schedule(task);
    }
    center.schedule(task("by-hand", 20_000));
    assert_eq!(center.cancel("by-hand"), Ruling::Done(()));
    let cancel = sweep(of_t(Among::Live), SweepAction::Cancel);
    assert_eq!(center.swept(begin(1, cancel)), counts(1_000, 1_000, 0, 0));
    center.pass(10);
    assert_eq!(center.swept(undo(2, 1)), counts(1_000, 1_000, 0, 0));
    for number in 0..1_000 {
        assert_eq!(center.due(&number.to_string()), Some(10_000 + number));
    }
    assert!(matches!(center.standing("by-hand"), Some(Standing::Finished { .. })), "that was somebody else");
    center.pass(60_000);
    let taken = center.take(2_000);
    assert_eq!(taken.len(), 1_000);
    for (number, delivery) in taken.iter().enumerate() {
        assert_eq!((delivery.priority, &delivery.body[..]), (number as u32, number.to_string().as_bytes()));
    }
    assert_eq!(center.swept(undo(3, 1)), counts(0, 0, 0, 0), "there is nothing left to take back");
}

#[test]
fn undoing_a_move_leaves_alone_what_somebody_changed_since() {
    let mut center = Center::new();
    herd(&mut center, 10);
    center.schedule(task("ready", 0));
    center.pass(5);
    let shift = SweepAction::Shift(Shift::By(-9_995));
    let moved = sweep(of_t(Among::Live), shift);
    assert_eq!(center.swept(begin(1, moved)), counts(11, 11, 0, 0));
    assert_eq!(center.due("9"), Some(14));
    assert_eq!(center.cancel("3"), Ruling::Done(()));
    center.pass(3);
    let taken: Vec<String> = center.take_ids();
    assert_eq!(taken, ["0", "ready", "1", "2"]);
    let undone = center.swept(undo(2, 1));
    assert_eq!(undone, counts(6, 6, 0, 0), "four were handed out and one was cancelled");
    for number in 4..10 {
        assert_eq!(center.due(&number.to_string()), Some(10_000 + number));
    }
}

#[test]
fn spreading_is_even_never_early_and_taken_back_to_the_old_times() {
    let mut center = Center::new();
    for number in 0..1_000 {
        center.schedule(task(&number.to_string(), 10_000));
    }
    let over = TimeRange { from: at(10_000), until: at(20_000) };
    assert_eq!(
        center.swept(begin(1, sweep(of_t(Among::Scheduled), SweepAction::Spread(over)))),
        counts(1_000, 1_000, 0, 0)
    );
    let mut seconds = [0; 10];
    for number in 0..1_000 {
        let due = center.due(&number.to_string()).unwrap();
        assert!((10_000..20_000).contains(&due), "{due}");
        seconds[(due as usize - 10_000) / 1_000] += 1;
    }
    assert!(seconds.iter().all(|second| (95..=105).contains(second)), "{seconds:?}");
    assert_eq!(center.swept(undo(2, 1)), counts(1_000, 1_000, 0, 0));
    assert!((0..1_000).all(|number| center.due(&number.to_string()) == Some(10_000)));
}

/// Moving onto the way of the sweep itself must not change anything twice.
#[test]
fn what_a_sweep_moves_ahead_of_itself_is_moved_once() {
    let mut center = Center::new();
    herd(&mut center, 1_000);
    let moved = sweep(of_t(Among::Scheduled), SweepAction::Shift(Shift::By(500)));
    assert_eq!(center.swept(begin(1, moved)), counts(1_000, 1_000, 0, 0));
    assert!((0..1_000).all(|number| center.due(&number.to_string()) == Some(10_500 + number)));
}

#[test]
fn hastened_tasks_are_due_now_as_far_as_there_is_room() {
    let mut center = Center::new();
    let full = QueueSettings { max_length: Some(4), overflow: Overflow::DropOldest, ..QueueSettings::default() };
    center.put_queue("t", full);
    herd(&mut center, 10);
    let hasten = sweep(of_t(Among::Scheduled), SweepAction::Hasten);
    assert_eq!(center.preview(hasten.clone()).swept, counts(10, 4, 0, 6));
    assert_eq!(center.swept(begin(1, hasten)), counts(10, 4, 0, 6));
    assert_eq!(center.queue_counts("t"), (4, 0, 0), "nothing was pushed out");
}

#[test]
fn dead_letters_are_chosen_by_reason_and_note() {
    let mut center = Center::new();
    for (id, note) in [("a", "timeout 10.0.3.7"), ("b", "timeout 10.0.3.9"), ("c", "no such order")] {
        center.schedule(task(id, 0));
        let lease = center.take_one().lease;
        let note = Some(note.to_owned());
        center.ask(Command::Reject { lease, note, priority: None }).unwrap();
    }
    let chosen = |reason, note: Option<&str>, note_prefix: Option<&str>| {
        let (note, note_prefix) = (note.map(str::to_owned), note_prefix.map(str::to_owned));
        sweep(of_t(Among::Dead { reason, note, note_prefix }), SweepAction::Purge)
    };
    assert_eq!(center.preview(chosen(Some(Reason::Expired), None, None)).swept.matched, 0);
    assert_eq!(center.preview(chosen(Some(Reason::Rejected), None, None)).swept.matched, 3);
    assert_eq!(center.preview(chosen(None, Some("timeout *"), None)).swept.matched, 2);
    assert_eq!(center.preview(chosen(None, None, Some("no such"))).swept.matched, 1);
    assert_eq!(center.swept(begin(1, chosen(None, Some("timeout *"), None))), counts(2, 2, 0, 0));
    assert_eq!(center.dead_in("t").len(), 1);
    let replay = sweep(of_t(dead()), SweepAction::Replay);
    assert_eq!(center.swept(begin(2, replay)), counts(1, 1, 0, 0));
    assert_eq!(center.take_ids(), ["c"]);
}

#[test]
fn finished_tasks_are_replayed_by_their_ending() {
    let mut center = Center::new();
    center.schedule(task("done", 0));
    let lease = center.take_one().lease;
    center.acknowledge(&lease).unwrap();
    center.schedule(task("cancelled", 50));
    center.cancel("cancelled");
    let ending = Some(punctual_core::Ending::Done);
    let replay = sweep(of_t(Among::History { ending }), SweepAction::Replay);
    assert_eq!(center.swept(begin(1, replay)), counts(1, 1, 0, 0));
    assert_eq!(center.take_ids(), ["done"]);
}

/// Cut short after every single step, a sweep and its undo come to the same end.
#[test]
fn a_sweep_and_its_undo_go_on_after_a_crash_at_any_step() {
    for action in [SweepAction::Cancel, SweepAction::Shift(Shift::By(700)), SweepAction::Purge] {
        for crash_after in 0..7 {
            let mut center = Center::new();
            herd(&mut center, 1_000);
            let mut among = Among::Live;
            if action == SweepAction::Purge {
                among = dead();
                center.pass(20_000);
                for delivery in center.take(1_000) {
                    center.begin(Command::Reject { lease: delivery.lease, note: None, priority: None });
                }
            }
            for (number, command) in [(1, begin(1, sweep(of_t(among.clone()), action))), (2, undo(2, 1))] {
                center.begin(command.clone());
                (0..crash_after).for_each(|_| center.step_once());
                center.restart();
                assert_eq!(center.ask(command), Ok(Answer::Noted), "it is told again, and has begun before");
                let progress = center.progress(number);
                assert!(progress.ended.is_some());
                let all = if number == 2 && action == SweepAction::Purge { 0 } else { 1_000 };
                assert_eq!(progress.swept, counts(all, all, 0, 0), "{action:?} {number} {crash_after}");
            }
            if action != SweepAction::Purge {
                assert!((0..1_000).all(|number| center.due(&number.to_string()) == Some(10_000 + number)));
            }
        }
    }
}

#[test]
fn a_sweep_of_ids_goes_on_after_a_crash() {
    let mut center = Center::new();
    herd(&mut center, 1_000);
    let ids = Some((0..1_000).map(|number: u64| name(&number.to_string())).collect());
    center.begin(begin(1, sweep(Select { ids, ..of_t(Among::Live) }, SweepAction::Cancel)));
    center.step_once();
    center.step_once();
    center.restart();
    assert_eq!(center.progress(1).swept, counts(1_000, 1_000, 0, 0));
}

#[test]
fn a_sweep_that_is_stopped_keeps_what_it_did_and_that_can_be_taken_back() {
    let mut center = Center::new();
    herd(&mut center, 1_000);
    center.begin(begin(1, sweep(of_t(Among::Live), SweepAction::Cancel)));
    center.step_once();
    assert_eq!(center.ask(Command::StopSweep { number: 1 }), Ok(Answer::Noted));
    let progress = center.progress(1);
    assert!(progress.ended.unwrap().is_stopped);
    let changed = progress.swept.changed;
    assert!(0 < changed && changed < 1_000, "{progress:?}");
    center.restart();
    assert_eq!(center.progress(1), progress);
    assert_eq!(center.swept(undo(2, 1)).changed, changed);
    assert!((0..1_000).all(|number| center.due(&number.to_string()) == Some(10_000 + number)));
    assert_eq!(center.ask(Command::StopSweep { number: 1 }), Ok(Answer::Noted), "it is over already");
    assert_eq!(center.ask(Command::StopSweep { number: 7 }), Err(punctual_core::Refused::NothingThere));
}

#[test]
fn consumers_and_a_sweep_divide_the_tasks_between_them() {
    let mut center = Center::with(ShardConfig { hand_outs: 40, ..ShardConfig::default() });
    for number in 0..1_000 {
        center.schedule(task(&number.to_string(), 0));
    }
    let cancel = begin(1, sweep(of_t(Among::Live), SweepAction::Cancel));
    center.begin(cancel);
    let mut given = 0;
    loop {
        let reply = center.post_only(&["t"], 40, 0);
        center.step_once();
        given += center.given(reply).map_or(0, |given| given.len() as u64);
        let progress = center.progress(1);
        let Swept { matched, changed, too_late, no_room } = progress.swept;
        assert_eq!(matched, changed + too_late + no_room);
        if progress.ended.is_some() {
            assert!(too_late > 0 && too_late <= given && changed + given == 1_000, "{progress:?} {given}");
            break;
        }
    }
}

#[test]
fn a_task_that_was_broadcast_is_cancelled_moved_and_taken_back_as_one() {
    let mut center = Center::new();
    let feeds = Some(vec![Binding::all(name("a")), Binding::all(name("b"))]);
    center.put_topic("t", TopicSettings { feeds, ..TopicSettings::default() });
    for id in ["1", "2", "3"] {
        center.schedule(task(id, 0));
    }
    let _ = center.take_from("a", 1);
    let later = sweep(of_t(Among::Live), SweepAction::Shift(Shift::By(5_000)));
    assert_eq!(center.preview(later.clone()).swept, counts(3, 2, 1, 0));
    assert_eq!(center.swept(begin(1, later)), counts(3, 2, 1, 0));
    assert_eq!((center.queue_counts("a").0, center.queue_counts("b").0), (0, 1));
    assert_eq!(center.swept(undo(2, 1)).changed, 2);
    assert_eq!((center.queue_counts("a").0, center.queue_counts("b").0), (2, 3));
    let cancel = sweep(of_t(Among::Live), SweepAction::Cancel);
    assert_eq!(center.swept(begin(3, cancel)), counts(3, 2, 1, 0));
    assert_eq!(center.swept(undo(4, 3)), counts(2, 2, 0, 0));
    assert_eq!((center.queue_counts("a").0, center.queue_counts("b").0), (2, 3));
}

#[test]
fn undoing_finds_no_place_in_a_queue_that_is_full() {
    let mut center = Center::new();
    center.put_queue("t", QueueSettings { max_length: Some(2), ..QueueSettings::default() });
    center.schedule(task("1", 0));
    center.schedule(task("2", 0));
    let later = sweep(of_t(Among::Ready), SweepAction::Shift(Shift::In(Millis(5_000))));
    assert_eq!(center.swept(begin(1, later)), counts(2, 2, 0, 0));
    center.schedule(task("3", 0));
    assert_eq!(center.swept(undo(2, 1)), counts(2, 1, 0, 1));
    assert_eq!(center.queue_counts("t").0, 2);
}

#[test]
fn many_sweeps_leave_a_bounded_trace_and_old_numbers_begin_nothing() {
    let mut center = Center::new();
    for number in 1_000..1_200 {
        center.ask(begin(number, sweep(of_t(Among::Live), SweepAction::Cancel))).unwrap();
    }
    let Ok(Answer::Sweeps(sweeps)) = center.ask(Command::Sweeps) else { panic!("they can be looked at") };
    assert_eq!((sweeps.len(), sweeps[0].number), (128, 1_072));
    center.schedule(task("a", 50));
    assert_eq!(center.ask(begin(1_000, sweep(of_t(Among::Live), SweepAction::Cancel))), Ok(Answer::Noted));
    center.restart();
    assert_eq!(center.due("a"), Some(50));
    let Ok(Answer::Sweeps(again)) = center.ask(Command::Sweeps) else { panic!("they can be looked at") };
    assert_eq!(again, sweeps);
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut center = Center::new();
    let purge = sweep(of_t(Among::Live), SweepAction::Purge);
    assert!(center.ask(begin(1, purge.clone())).is_err());
    assert!(center.ask(Command::Preview(Box::new(purge))).is_err());
}
