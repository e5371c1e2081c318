//! Facts about the board.

use super::*;
use crate::settings::Rate;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn reserve(queues: &[&str], until: u64) -> Reserve {
    Reserve {
        queues: queues.iter().map(|queue| name(queue)).collect(),
        max: 1,
        lease: None,
        until: Timestamp::from_millis(until),
        consumer: name("c"),
        choice: Choice::InTurn,
    }
}

#[test]
fn the_longest_waiting_comes_first_at_each_of_its_queues() {
    let mut board = Board::default();
    let first = board.post(reserve(&["a", "b"], 10), 'x').ticket;
    let second = board.post(reserve(&["b"], 10), 'y').ticket;
    assert_eq!(board.longest_waiting("b"), Some(first));
    assert_eq!(board.withdraw(first).map(|(_, reply)| reply), Some('x'));
    assert_eq!(board.longest_waiting("b"), Some(second));
    assert_eq!(board.longest_waiting("a"), None);
}

#[test]
fn a_consumer_is_not_given_up_before_the_shards_it_was_sent_to_have_looked() {
    let mut board = Board::default();
    let shard = ShardId(3);
    board.stock(shard, &name("a"), true);
    let posted = board.post(reserve(&["a"], 10), 'x');
    assert_eq!(posted.ask, [shard]);
    assert_eq!(board.expire(Timestamp::from_millis(10)), []);
    board.looked(shard, &BTreeSet::new());
    assert_eq!(board.expire(Timestamp::from_millis(9)), []);
    assert_eq!(board.expire(Timestamp::from_millis(10)), ['x']);
}

#[test]
fn nobody_is_given_up_before_all_shards_that_were_opened_have_looked_or_are_gone() {
    let mut board = Board::default();
    board.post(reserve(&["a"], 10), 'x');
    board.expect(ShardId(0));
    board.expect(ShardId(1));
    assert_eq!(board.post(reserve(&["b"], 10), 'y').ask, []);
    assert_eq!(board.expire(Timestamp::from_millis(10)), []);
    board.looked(ShardId(0), &BTreeSet::new());
    assert_eq!(board.expire(Timestamp::from_millis(10)), []);
    board.forget_shard(ShardId(1));
    assert_eq!(board.expire(Timestamp::from_millis(10)), ['x', 'y']);
}

#[test]
fn nothing_is_kept_for_queues_nobody_asks_for() {
    let mut board = Board::default();
    let ticket = board.post(reserve(&["a", "b"], 10), ()).ticket;
    board.stock(ShardId(0), &name("c"), true);
    board.stock(ShardId(0), &name("c"), false);
    board.withdraw(ticket);
    assert!(board.by_queue.is_empty() && board.meetings.is_empty() && board.deadlines.is_empty());
}

#[test]
fn a_queue_that_was_served_is_remembered_until_it_is_deleted() {
    let mut board = Board::default();
    let ticket = board.post(reserve(&["a"], 10), ()).ticket;
    assert_eq!(board.hand_out(&name("a"), Timestamp::ZERO), Ok(()));
    board.withdraw(ticket);
    assert!(board.last_hand_out("a") > 0);
    board.forget_queue(ShardId(0), &name("a"));
    assert!(board.by_queue.is_empty());
}

#[test]
fn a_rate_smooths_what_is_handed_out() {
    let mut board = Board::default();
    let queue = name("a");
    board.limit(ShardId(0), &queue, Some(Rate { per_second: 10, burst: 1 }));
    board.post(reserve(&["a"], 10), ());
    assert_eq!(board.hand_out(&queue, Timestamp::from_millis(1_000)), Ok(()));
    assert_eq!(board.hand_out(&queue, Timestamp::from_millis(1_000)), Err(Millis(100)));
}

#[test]
fn a_rate_stays_until_the_last_shard_that_gave_it_takes_it_away() {
    let mut board = Board::default();
    let (queue, rate) = (name("a"), Some(Rate { per_second: 10, burst: 1 }));
    board.post(reserve(&["a"], 10), ());
    let mut is_limited = |change: &dyn Fn(&mut Board<()>)| {
        change(&mut board);
        board.by_queue["a"].valve.is_some()
    };
    assert!(is_limited(&|board| board.limit(ShardId(0), &queue, rate)));
    assert!(is_limited(&|board| board.limit(ShardId(1), &queue, None)), "there it came to be by use");
    assert!(is_limited(&|board| board.limit(ShardId(1), &queue, rate)));
    assert!(is_limited(&|board| board.forget_queue(ShardId(0), &queue)));
    assert!(is_limited(&|board| board.forget_shard(ShardId(1))), "the rate is kept wherever that shard is");
    assert!(!is_limited(&|board| board.limit(ShardId(0), &queue, None)), "nobody here says that there is one");
    assert!(is_limited(&|board| board.limit(ShardId(0), &queue, rate)));
    assert!(!is_limited(&|board| board.limit(ShardId(0), &queue, None)));
}

/// A board that knows of another node, which was told what is wanted.
fn wanting(queues: &[&str]) -> (Board<char>, Elsewhere) {
    let (mut board, there) = (Board::default(), Elsewhere(7));
    board.listen(true);
    for queue in queues {
        board.want(&name(queue), true);
        board.await_word(there, &name(queue));
    }
    (board, there)
}

#[test]
fn who_is_lent_is_served_by_nobody_here_and_comes_back_to_its_old_place() {
    let mut board = Board::default();
    let first = board.post(reserve(&["a", "b"], 10), 'x').ticket;
    let second = board.post(reserve(&["b"], 10), 'y').ticket;
    assert_eq!(board.lend(first).0.queues, [name("a"), name("b")]);
    assert_eq!((board.longest_waiting("a"), board.longest_waiting("b")), (None, Some(second)));
    assert_eq!(board.expire(Timestamp::from_millis(10)), ['y'], "its time is looked at when it is back");
    board.post(reserve(&["b"], 10), 'z');
    board.stock(ShardId(3), &name("a"), true);
    assert_eq!(board.take_back(first), [ShardId(3)]);
    assert_eq!(board.longest_waiting("b"), Some(first));
    assert_eq!(board.expire(Timestamp::from_millis(10)), ['z']);
    board.looked(ShardId(3), &BTreeSet::new());
    assert_eq!(board.expire(Timestamp::from_millis(10)), ['x']);
}

#[test]
fn a_shard_that_was_to_look_when_a_consumer_was_lent_is_counted_once() {
    let mut board = Board::default();
    board.stock(ShardId(3), &name("a"), true);
    let ticket = board.post(reserve(&["a"], 10), 'x').ticket;
    board.lend(ticket);
    assert_eq!(board.take_back(ticket), [ShardId(3)]);
    board.looked(ShardId(3), &BTreeSet::new());
    assert_eq!(board.expire(Timestamp::from_millis(10)), ['x']);
}

#[test]
fn who_leaves_while_it_is_lent_does_not_come_back() {
    let mut board = Board::default();
    let ticket = board.post(reserve(&["a"], 10), 'x').ticket;
    board.lend(ticket);
    assert_eq!(board.withdraw(ticket).map(|(_, reply)| reply), Some('x'));
    assert_eq!(board.take_back(ticket), []);
    assert!(board.is_empty() && board.by_queue.is_empty() && board.deadlines.is_empty());
}

#[test]
fn nobody_is_given_up_before_other_nodes_have_said_what_they_have_but_not_for_ever() {
    let (mut board, there) = wanting(&["a", "b"]);
    board.post(reserve(&["a"], 10), 'x');
    board.post(reserve(&["b"], 10), 'y');
    assert_eq!(board.expire(Timestamp::from_millis(10)), []);
    board.hear(there, &name("a"), false);
    assert_eq!(board.expire(Timestamp::from_millis(10)), ['x']);
    assert_eq!(board.next_deadline_after(Timestamp::from_millis(10)), Timestamp::from_millis(1_010));
    assert_eq!(board.expire(Timestamp::from_millis(1_009)), []);
    assert_eq!(board.expire(Timestamp::from_millis(1_010)), ['y']);
}

#[test]
fn a_node_that_does_not_say_what_it_has_is_not_waited_for_but_what_it_said_counts() {
    let (mut board, there) = wanting(&["a", "b"]);
    board.hear(there, &name("a"), true);
    board.post(reserve(&["a"], 10), 'x');
    board.post(reserve(&["b"], 10), 'y');
    ["a", "b"].iter().for_each(|queue| board.stop_awaiting(there, queue));
    assert_eq!(board.expire(Timestamp::from_millis(10)), ['y']);
    assert_eq!(board.stocked_elsewhere("a").collect::<Vec<_>>(), [there]);
}

#[test]
fn who_may_be_lent_is_told_when_it_comes_and_when_others_have_something() {
    let (mut board, there) = wanting(&["a"]);
    let ticket = board.post(reserve(&["a", "new"], 10), 'x').ticket;
    assert_eq!(board.take_news(), [name("new")].into(), "others were told of the other one");
    board.hear(there, &name("a"), true);
    assert_eq!(board.take_news(), [name("a")].into());
    assert_eq!(board.stocked_elsewhere("a").collect::<Vec<_>>(), [there]);
    assert_eq!(board.candidate("a"), Some(Candidate { ticket, is_expected_here: false }));
}

#[test]
fn a_guest_is_not_lent_on_and_waits_for_no_other_node() {
    let (mut board, there) = wanting(&["a"]);
    board.hear(there, &name("a"), true);
    board.host(reserve(&["a"], 10), 'g');
    assert_eq!((board.candidate("a"), board.take_news()), (None, BTreeSet::new()));
    board.expect(ShardId(0));
    assert_eq!(board.expire(Timestamp::from_millis(10)), ['g']);
}

#[test]
fn a_queue_is_wanted_while_somebody_waits_or_came_lately() {
    let (mut board, _) = wanting(&["a"]);
    let ticket = board.post(reserve(&["a"], 10), 'x').ticket;
    assert!(board.is_still_wanted("a") && board.is_still_wanted("a"), "somebody waits");
    board.withdraw(ticket);
    assert!(!board.is_still_wanted("a"));
    let passing = board.post(reserve(&["a"], 10), 'y').ticket;
    board.withdraw(passing);
    assert!(board.is_still_wanted("a") && !board.is_still_wanted("a"));
    board.want(&name("a"), false);
    assert!(board.by_queue.is_empty());
}

#[test]
fn a_watched_queue_concerns_the_shards_that_have_something_until_it_is_offered() {
    let mut board: Board<char> = Board::default();
    board.stock(ShardId(1), &name("a"), true);
    assert_eq!(board.watched(ShardId(1)).count(), 0);
    assert_eq!(board.watch(&name("a")), [ShardId(1)]);
    assert_eq!(board.watched(ShardId(1)).collect::<Vec<_>>(), [&name("a")]);
    let ticket = board.post(reserve(&["a"], 10), 'x').ticket;
    assert_eq!(board.watched(ShardId(1)).count(), 0, "it is for who waits here");
    board.withdraw(ticket);
    board.offer(&name("a"));
    assert_eq!((board.watched(ShardId(1)).count(), board.take_offers()), (0, [name("a")].into()));
    board.stock(ShardId(1), &name("a"), false);
    assert!(board.by_queue.is_empty() && board.meetings.is_empty());
}
