//! Memory: whatever is sent, the buffer stays as small as what it has to hold.

use bytes::Bytes;
use punctual_beanstalk::input::Next;

use crate::talk::Talk;

const ROOM: usize = 64 * 1024;
const MAX_JOB: u32 = 1024 * 1024;

/// Reads the bytes in pieces of this size, takes all that comes, and says how large the buffer ever was.
fn largest_buffer(talk: &mut Talk, bytes: &[u8], piece: usize) -> usize {
    let mut largest = 0;
    for mut piece in bytes.chunks(piece) {
        while !piece.is_empty() {
            let read = talk.read(piece);
            piece = &piece[read..];
            talk.take(usize::MAX);
            largest = largest.max(talk.input.buffer().capacity());
        }
    }
    largest
}

#[test]
fn an_endless_line_costs_no_more_than_a_read() {
    let mut talk = Talk::new(MAX_JOB);
    let largest = largest_buffer(&mut talk, &vec![b'x'; 4 * 1024 * 1024], usize::MAX);
    assert!(largest <= 2 * ROOM, "{largest}");
    assert!(talk.input.unread() < 224);
}

#[test]
fn a_body_that_is_too_big_costs_no_more_than_a_read() {
    let mut talk = Talk::new(MAX_JOB);
    talk.hear(b"put 0 0 1 4294967295\r\n");
    let largest = largest_buffer(&mut talk, &vec![b'x'; 4 * 1024 * 1024], usize::MAX);
    assert!(largest <= 2 * ROOM, "{largest}");
    assert_eq!(talk.input.unread(), 0);
    assert!(talk.said.is_empty());
}

#[test]
fn an_announced_body_costs_nothing_until_it_comes() {
    let mut talk = Talk::new(1024 * 1024 * 1024);
    talk.hear(b"put 0 0 1 1000000000\r\n");
    assert!(talk.input.buffer().capacity() <= ROOM);
    for came in [10_000, 100_000, 1_000_000] {
        let largest = largest_buffer(&mut talk, &vec![b'x'; came], 10_000);
        assert!(largest <= 2 * talk.input.unread() + ROOM, "{largest} of {}", talk.input.unread());
    }
}

#[test]
fn the_largest_body_costs_its_size_and_a_read() {
    for piece in [1_000, 16 * 1024, usize::MAX] {
        let mut talk = Talk::new(MAX_JOB);
        let mut bytes = format!("put 0 0 1 {MAX_JOB}\r\n").into_bytes();
        bytes.resize(bytes.len() + MAX_JOB as usize, b'x');
        bytes.extend_from_slice(b"\r\nstats\r\n");
        let largest = largest_buffer(&mut talk, &bytes, piece);
        assert!(largest <= MAX_JOB as usize + 2 + ROOM, "{largest}");
        assert_eq!(talk.said.len(), 2);
        assert!(talk.input.buffer().capacity() <= 2 * ROOM, "the large buffer went with the body");
    }
}

#[test]
fn a_large_body_is_moved_a_few_times_and_not_for_its_last_bytes() {
    let mut talk = Talk::new(MAX_JOB);
    talk.hear(b"put 0 0 1 700000\r\n");
    let body = vec![b'x'; 700_001];
    let mut moved_at = Vec::new();
    let mut place = talk.input.buffer().as_ptr();
    for piece in body.chunks(1_001) {
        talk.hear(piece);
        let now = talk.input.buffer().as_ptr();
        if now != place {
            moved_at.push(talk.input.unread());
        }
        place = now;
    }
    assert!(talk.said.is_empty());
    assert!(moved_at.len() <= 8, "it doubles: {moved_at:?}");
    assert!(moved_at.iter().all(|came| *came < 690_000), "by then all of it fits: {moved_at:?}");
}

#[test]
fn commands_are_read_into_the_same_memory_again_and_again() {
    let mut talk = Talk::new(MAX_JOB);
    let start = talk.input.buffer().as_ptr() as usize;
    for _ in 0..10_000 {
        talk.hear(b"delete 1234567\r\n");
        talk.said.clear();
        let buffer = talk.input.buffer();
        assert!((start..start + 16 * 1024).contains(&(buffer.as_ptr() as usize)));
        assert!(buffer.capacity() <= 16 * 1024, "reads that do not fill it do not make it grow");
    }
}

#[test]
fn reads_that_fill_the_buffer_make_it_grow_to_its_bound() {
    let mut talk = Talk::new(MAX_JOB);
    let largest = largest_buffer(&mut talk, &b"delete 1234567\r\n".repeat(100_000), usize::MAX);
    assert!((ROOM..=2 * ROOM).contains(&largest), "{largest}");
    assert_eq!(talk.said.len(), 100_000);
}

#[test]
fn bodies_that_live_on_keep_what_they_were() {
    let mut talk = Talk::new(MAX_JOB);
    let mut bodies: Vec<Bytes> = Vec::new();
    for number in 0..20_000u32 {
        let put = format!("put 0 0 1 8\r\n{number:08}\r\n");
        assert_eq!(talk.read(put.as_bytes()), put.len());
        let Next::Put(put) = talk.input.next() else { panic!("a put") };
        bodies.push(put.body);
    }
    for (number, body) in bodies.iter().enumerate() {
        assert_eq!(*body, format!("{number:08}"));
    }
}

#[test]
fn memory_is_let_go_only_when_nothing_is_unread() {
    let mut talk = Talk::new(MAX_JOB);
    talk.read(b"stats\r\nsta");
    talk.input.let_go();
    assert_eq!(talk.input.unread(), 10);
    talk.take(usize::MAX);
    talk.input.let_go();
    talk.hear(b"ts\r\n");
    talk.input.let_go();
    assert_eq!(talk.input.unread(), 0);
    talk.hear(b"stats\r\n");
    assert_eq!(talk.said, ["stats", "stats", "stats"]);
}

#[test]
fn memory_can_be_let_go_amid_a_body_or_a_skipped_line() {
    let mut talk = Talk::new(10);
    talk.hear(b"put 0 0 1 3\r\n");
    talk.input.let_go();
    talk.hear(b"abc\r\nput 0 0 1 11\r\nabc");
    talk.input.let_go();
    talk.hear(b"defghijk\r\n");
    talk.hear(&[b'x'; 224]);
    talk.input.let_go();
    talk.hear(b"\r\n");
    assert_eq!(talk.said, ["put 0 0 1 'abc'", "JOB_TOO_BIG", "BAD_FORMAT"]);
}
