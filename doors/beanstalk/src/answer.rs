//! What goes out: the words of the protocol, and the bytes that wait to be written.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes, BytesMut};

use crate::counters::Tally;

/// Bodies up to this size are copied among the lines; larger ones stay where they are and are written from there.
const COPIED: usize = 4 * 1024;

/// An answer that is always the same, or the word that says what went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The line is too long, or its arguments are not what the command takes.
    BadFormat,
    /// The line begins with no command.
    UnknownCommand,
    /// The body of a put did not end where it was said to.
    ExpectedCrlf,
    /// The body of a put is larger than a job may be.
    JobTooBig,
    /// There is no room for the job.
    OutOfMemory,
    /// The server is broken.
    InternalError,
    /// The server takes no jobs any more.
    Draining,
    /// There is no such job or tube, or it is not in the state for this.
    NotFound,
    /// No job came in time.
    TimedOut,
    /// The time to run of a reserved job is nearly over.
    DeadlineSoon,
    /// The last tube that is watched cannot be ignored.
    NotIgnored,
    /// The job is gone.
    Deleted,
    /// The job is back.
    Released,
    /// The job is set aside.
    Buried,
    /// The job was brought back.
    Kicked,
    /// The job's time to run began anew.
    Touched,
    /// The tube hands out nothing.
    Paused,
}

impl Word {
    /// How many words there are.
    pub const COUNT: usize = 17;

    /// The words that say that the client or the server did wrong.
    pub const ERRORS: [Word; 7] = [
        Word::BadFormat,
        Word::UnknownCommand,
        Word::ExpectedCrlf,
        Word::JobTooBig,
        Word::OutOfMemory,
        Word::InternalError,
        Word::Draining,
    ];

    /// The answer as it is written, with its end of a line.
    pub fn line(self) -> &'static str {
        match self {
            Word::BadFormat => "BAD_FORMAT\r\n",
            Word::UnknownCommand => "UNKNOWN_COMMAND\r\n",
            Word::ExpectedCrlf => "EXPECTED_CRLF\r\n",
            Word::JobTooBig => "JOB_TOO_BIG\r\n",
            Word::OutOfMemory => "OUT_OF_MEMORY\r\n",
            Word::InternalError => "INTERNAL_ERROR\r\n",
            Word::Draining => "DRAINING\r\n",
            Word::NotFound => "NOT_FOUND\r\n",
            Word::TimedOut => "TIMED_OUT\r\n",
            Word::DeadlineSoon => "DEADLINE_SOON\r\n",
            Word::NotIgnored => "NOT_IGNORED\r\n",
            Word::Deleted => "DELETED\r\n",
            Word::Released => "RELEASED\r\n",
            Word::Buried => "BURIED\r\n",
            Word::Kicked => "KICKED\r\n",
            Word::Touched => "TOUCHED\r\n",
            Word::Paused => "PAUSED\r\n",
        }
    }

    /// The word alone.
    pub fn name(self) -> &'static str {
        self.line().trim_end()
    }
}

/// The answers of a connection, in order, as the bytes that wait to be written.
///
/// Read them as [`Buf`]: `write_buf` and `write_all_buf` take as many segments at once as the socket does.
#[derive(Debug, Default)]
pub struct Output {
    /// What is written first; none of them is empty.
    segments: VecDeque<Bytes>,
    /// How many bytes the segments have.
    in_segments: usize,
    /// What is written after the segments, and grows.
    lines: BytesMut,
    tally: Tally,
}

impl Output {
    /// No answers.
    pub fn new() -> Output {
        Output::default()
    }

    /// A fixed answer.
    pub fn word(&mut self, word: Word) {
        self.tally.answer(word);
        self.lines.extend_from_slice(word.line().as_bytes());
    }

    /// A put was taken as this job.
    pub fn inserted(&mut self, id: u64) {
        self.text("INSERTED ");
        self.number(id);
        self.text("\r\n");
    }

    /// The used tube.
    pub fn using(&mut self, tube: &str) {
        self.text("USING ");
        self.text(tube);
        self.text("\r\n");
    }

    /// How many tubes are watched.
    pub fn watching(&mut self, tubes: usize) {
        self.text("WATCHING ");
        self.number(tubes as u64);
        self.text("\r\n");
    }

    /// How many jobs were brought back.
    pub fn kicked(&mut self, jobs: u32) {
        self.text("KICKED ");
        self.number(jobs.into());
        self.text("\r\n");
    }

    /// A job that is the client's for a while.
    pub fn reserved(&mut self, id: u64, body: &Bytes) {
        self.text("RESERVED ");
        self.job(id, body);
    }

    /// A job to look at.
    pub fn found(&mut self, id: u64, body: &Bytes) {
        self.text("FOUND ");
        self.job(id, body);
    }

    /// A document (see [`yaml`](crate::yaml)).
    pub fn ok(&mut self, document: &Bytes) {
        self.text("OK ");
        self.body(document);
    }

    /// The words that were answered since the tally was last drained.
    pub fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// Gives the memory back, if nothing waits to be written: for connections that fell silent.
    pub fn let_go(&mut self) {
        if !self.has_remaining() {
            self.lines = BytesMut::new();
            self.segments = VecDeque::new();
        }
    }

    fn job(&mut self, id: u64, body: &Bytes) {
        self.number(id);
        self.text(" ");
        self.body(body);
    }

    /// The length of the body, and the body on a line of its own.
    fn body(&mut self, body: &Bytes) {
        self.number(body.len() as u64);
        self.text("\r\n");
        if body.len() <= COPIED {
            self.lines.extend_from_slice(body);
        } else {
            let before = self.lines.split().freeze();
            self.in_segments += before.len() + body.len();
            self.segments.extend([before, body.clone()]);
        }
        self.text("\r\n");
    }

    fn text(&mut self, text: &str) {
        self.lines.extend_from_slice(text.as_bytes());
    }

    fn number(&mut self, number: u64) {
        self.text(itoa::Buffer::new().format(number));
    }
}

impl Buf for Output {
    fn remaining(&self) -> usize {
        self.in_segments + self.lines.len()
    }

    fn chunk(&self) -> &[u8] {
        self.segments.front().map_or(&self.lines, |segment| segment)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let lines = Some(&self.lines[..]).filter(|lines| !lines.is_empty());
        let chunks = self.segments.iter().map(|segment| &segment[..]).chain(lines);
        let mut filled = 0;
        for (slice, chunk) in slices.iter_mut().zip(chunks) {
            *slice = IoSlice::new(chunk);
            filled += 1;
        }
        filled
    }

    fn advance(&mut self, mut written: usize) {
        while let Some(segment) = self.segments.front_mut() {
            let of_this = written.min(segment.len());
            segment.advance(of_this);
            self.in_segments -= of_this;
            written -= of_this;
            if segment.has_remaining() {
                return;
            }
            self.segments.pop_front();
        }
        self.lines.advance(written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(output: &mut Output) -> String {
        let bytes = output.copy_to_bytes(output.remaining());
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn answers_are_written_in_their_order() {
        let mut output = Output::new();
        output.inserted(u64::MAX);
        output.using("a-b");
        output.watching(3);
        output.kicked(0);
        output.word(Word::NotFound);
        let expected = "INSERTED 18446744073709551615\r\nUSING a-b\r\nWATCHING 3\r\nKICKED 0\r\nNOT_FOUND\r\n";
        assert_eq!(output.remaining(), expected.len());
        assert_eq!(written(&mut output), expected);
        assert!(!output.has_remaining());
    }

    #[test]
    fn bodies_come_with_their_length_and_an_end_of_a_line() {
        let mut output = Output::new();
        output.reserved(7, &Bytes::from_static(b"a\r\nb"));
        output.found(8, &Bytes::new());
        output.ok(&Bytes::from_static(b"---\n"));
        assert_eq!(written(&mut output), "RESERVED 7 4\r\na\r\nb\r\nFOUND 8 0\r\n\r\nOK 4\r\n---\n\r\n");
    }

    #[test]
    fn large_bodies_are_written_from_where_they_are() {
        let mut output = Output::new();
        let body = Bytes::from(vec![b'x'; COPIED + 1]);
        output.word(Word::Deleted);
        output.reserved(1, &body);
        output.reserved(2, &body);
        let mut slices = [IoSlice::new(&[]); 16];
        assert_eq!(output.chunks_vectored(&mut slices), 5);
        assert_eq!(&slices[0][..], b"DELETED\r\nRESERVED 1 4097\r\n");
        assert_eq!(slices[1].as_ptr(), body.as_ptr(), "it was not copied");
        assert_eq!(&slices[2][..], b"\r\nRESERVED 2 4097\r\n");
        assert_eq!(&slices[4][..], b"\r\n");
        let mut few = [IoSlice::new(&[]); 2];
        assert_eq!(output.chunks_vectored(&mut few), 2, "no more than there is room for");
    }

    #[test]
    fn however_it_is_cut_the_same_is_written() {
        let fill = |output: &mut Output| {
            let body = Bytes::from(vec![b'y'; COPIED + 1]);
            output.word(Word::Touched);
            output.found(9, &body);
            output.inserted(10);
        };
        let mut whole = Output::new();
        fill(&mut whole);
        let whole = written(&mut whole);
        for step in [1, 7, 31, COPIED, whole.len()] {
            let mut output = Output::new();
            let mut taken = Vec::new();
            fill(&mut output);
            while output.has_remaining() {
                let chunk = output.chunk();
                let of_this = chunk.len().min(step);
                taken.extend_from_slice(&chunk[..of_this]);
                output.advance(of_this);
            }
            assert_eq!(taken, whole.as_bytes());
        }
    }

    #[test]
    fn memory_is_let_go_only_when_all_is_written() {
        let mut output = Output::new();
        output.word(Word::Paused);
        output.let_go();
        assert_eq!(written(&mut output), "PAUSED\r\n");
        output.let_go();
        assert_eq!(output.lines.capacity(), 0);
    }

    #[test]
    fn every_word_has_a_place_of_its_own() {
        assert_eq!(Word::Paused as usize + 1, Word::COUNT);
        for (place, word) in Word::ERRORS.into_iter().enumerate() {
            assert_eq!(word as usize, place);
            assert_eq!(format!("{}\r\n", word.name()), word.line());
        }
    }
}
