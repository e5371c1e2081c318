//! A link at work: one task writes all that waits as one frame, another one hands over all that came at once.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use punctual_center::Message;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::{Instant, sleep_until, timeout};

use crate::forms::{Heard, hear};
use crate::frame::{self, Frame, HEAD, Kind, Sealing};
use crate::greet::Met;
use crate::line::Line;
use crate::meter::add;
use crate::outbox::{Bundle, Next};
use crate::rebuff::Lost;

/// How much is read at once, if there is so much.
const READ: usize = 64 << 10;

/// A connection, encrypted or not.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Carries messages until the link ends, and gives those back that nobody has heard. `hand_over` hears what comes, all that
/// there is at once.
pub(crate) async fn carry(
    line: &Arc<Line>,
    stream: Box<dyn Stream>,
    met: Met,
    hand_over: impl FnMut(Vec<Message>),
) -> Vec<Message> {
    let (from, to) = tokio::io::split(stream);
    let writer = Writer { line: Arc::clone(line), to, sealing: met.sealing, spare: Vec::new() };
    let mut writing = tokio::spawn(writer.run());
    let reader = Reader { line, from, opening: met.opening, came: BytesMut::new(), hand_over, is_confused: false };
    let reading = reader.run();
    tokio::pin!(reading);
    let half = tokio::select! {
        lost = &mut reading => {
            line.end(Some(lost));
            writing.await
        }
        half = &mut writing => {
            // After a farewell the other node hangs up as well: hanging up before could undo what was said last.
            if line.lost().is_none() {
                _ = timeout(line.pace.farewell, reading).await;
            }
            half
        }
    };
    line.end(None);
    let unsent = [half.ok().flatten(), Some(line.outbox.rest())];
    unsent.into_iter().flatten().flat_map(given_back).collect()
}

/// The messages of a bundle that was not written. They were laid out by this node: it understands them.
fn given_back(bundle: Bundle) -> Vec<Message> {
    let heard = hear(Bytes::from(bundle.frame).slice(HEAD..)).unwrap_or_default();
    let clear = heard.into_iter().map(|heard| if let Heard::Clear(message) = heard { Some(message) } else { None });
    clear.flatten().collect()
}

struct Writer {
    line: Arc<Line>,
    to: WriteHalf<Box<dyn Stream>>,
    sealing: Sealing,
    spare: Vec<u8>,
}

impl Writer {
    /// Writes until the end, and gives a frame back that was not written to its end: without its seal nobody believes it.
    async fn run(mut self) -> Option<Bundle> {
        let line = Arc::clone(&self.line);
        let mut ping_at = Instant::now();
        loop {
            // Also while there is much to say: the other node may have nothing to answer for a while.
            if line.is_dialled && Instant::now() >= ping_at {
                ping_at = Instant::now() + line.pace.ping;
                self.write(Kind::Ping, echo(line.ping())).await.ok()?;
            }
            match line.outbox.next(&mut self.spare) {
                Next::Pong(ping) => self.write(Kind::Pong, echo(ping)).await.ok()?,
                Next::Messages(bundle) => {
                    if let Err(half) = self.write(Kind::Messages, bundle).await {
                        return Some(half);
                    }
                }
                Next::Nothing if line.is_dialled => tokio::select! {
                    () = line.outbox.changed.notified() => {}
                    () = sleep_until(ping_at) => {}
                },
                Next::Nothing => line.outbox.changed.notified().await,
                Next::End => {
                    tokio::select! {
                        _ = self.to.shutdown() => {}
                        () = line.gone.notified() => {}
                    }
                    return None;
                }
            }
        }
    }

    async fn write(&mut self, kind: Kind, mut bundle: Bundle) -> Result<(), Bundle> {
        let payload_end = bundle.frame.len();
        self.sealing.seal(kind, &mut bundle.frame);
        let written = tokio::select! {
            written = self.to.write_all(&bundle.frame) => written,
            () = self.line.gone.notified() => Err(io::ErrorKind::Interrupted.into()),
        };
        if let Err(error) = written {
            self.line.end(Some(Lost::Broken(error)));
            bundle.frame.truncate(payload_end);
            return Err(bundle);
        }
        // From here on it may have been heard, whatever becomes of the link.
        let meter = &self.line.meter;
        add(&meter.bytes_out, bundle.frame.len());
        add(&meter.messages_out, bundle.messages);
        add(&meter.frames_out, usize::from(bundle.messages > 0));
        let flushed = tokio::select! {
            flushed = self.to.flush() => flushed,
            () = self.line.gone.notified() => Err(io::ErrorKind::Interrupted.into()),
        };
        if let Err(error) = flushed {
            self.line.end(Some(Lost::Broken(error)));
        }
        if bundle.messages > 0 {
            self.spare = bundle.frame;
        }
        Ok(())
    }
}

/// A frame of a ping or its echo.
fn echo(bytes: [u8; 8]) -> Bundle {
    let mut frame = frame::blank();
    frame.extend_from_slice(&bytes);
    Bundle { frame, messages: 0 }
}

struct Reader<'a, H> {
    line: &'a Line,
    from: ReadHalf<Box<dyn Stream>>,
    opening: Sealing,
    came: BytesMut,
    hand_over: H,
    /// Something was not understood, and the log has it.
    is_confused: bool,
}

impl<H: FnMut(Vec<Message>)> Reader<'_, H> {
    async fn run(mut self) -> Lost {
        loop {
            // A long frame is read in ever longer parts, so that it is not moved too often as its room grows.
            self.came.reserve(READ.max(self.came.len()));
            match timeout(self.line.pace.silence, self.from.read_buf(&mut self.came)).await {
                Err(_) => return Lost::Silent,
                Ok(Err(error)) => return Lost::Broken(error),
                Ok(Ok(0)) => return Lost::HungUp,
                Ok(Ok(bytes)) => add(&self.line.meter.bytes_in, bytes),
            }
            let mut messages = Vec::new();
            let taken = self.take_frames(&mut messages);
            if !messages.is_empty() {
                add(&self.line.meter.messages_in, messages.len());
                (self.hand_over)(messages);
            }
            if let Err(lost) = taken {
                return lost;
            }
        }
    }

    fn take_frames(&mut self, messages: &mut Vec<Message>) -> Result<(), Lost> {
        while let Some(Frame { kind, payload }) = self.opening.open(&mut self.came)? {
            if kind == Kind::Messages as u8 {
                for heard in hear(payload)? {
                    self.sort(heard, messages);
                }
            } else if kind == Kind::Ping as u8 {
                payload[..].try_into().into_iter().for_each(|ping| self.line.outbox.pong(ping));
            } else if kind == Kind::Pong as u8 {
                self.line.pong(&payload);
            }
        }
        Ok(())
    }

    fn sort(&mut self, heard: Heard, messages: &mut Vec<Message>) {
        let why = match heard {
            Heard::Clear(message) => return messages.push(message),
            Heard::Instead(message, why) => {
                messages.push(message);
                why
            }
            Heard::Answer(answer, why) => {
                self.line.answer(answer);
                why
            }
            Heard::Lost(why) => why,
        };
        add(&self.line.meter.unclear, 1);
        if !std::mem::replace(&mut self.is_confused, true) {
            tracing::warn!(node = %self.line.peer.node, %why, "a message of another node is not understood");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use punctual_center::{Greeting, LinkId};
    use punctual_core::store::{Incarnation, ShardId};
    use punctual_core::{Certainty, Command, Name};

    use super::*;
    use crate::credentials::Credentials;
    use crate::forms::encode;
    use crate::settings::Settings;

    #[tokio::test]
    async fn a_request_that_is_not_understood_is_answered_by_the_link_itself() {
        let who = Incarnation { node: Name::stored("a"), number: 1 };
        let greeting = Greeting { who: who.clone(), software: String::new(), levels: 1..=1 };
        let settings = Settings::new(Credentials::draw().unwrap(), "", 1..=1);
        let line = Arc::new(Line::new(LinkId(1), who, false, &settings, Arc::default()));
        let met = Met { greeting, sealing: Sealing::new([1; 32]), opening: Sealing::new([2; 32]) };
        let (here, mut there) = tokio::io::duplex(1 << 16);
        let carried = Arc::clone(&line);
        let carrying =
            tokio::spawn(async move { carry(&carried, Box::new(here), met, |heard| panic!("{heard:?}")).await });

        let command = Command::First { queue: Name::stored("abc") };
        let mut said = encode(&[Message::Ask { id: 7, shard: ShardId(1), round: 0, command, by: None }]);
        let name = said.windows(3).position(|bytes| bytes == b"abc").unwrap();
        said[name] = b' ';
        let mut frame = frame::blank();
        frame.extend_from_slice(&said);
        Sealing::new([2; 32]).seal(Kind::Messages, &mut frame);
        there.write_all(&frame).await.unwrap();

        let (mut came, mut opening) = (BytesMut::new(), Sealing::new([1; 32]));
        let answer = loop {
            there.read_buf(&mut came).await.unwrap();
            if let Some(frame) = opening.open(&mut came).unwrap() {
                break hear(frame.payload).unwrap();
            }
        };
        let [Heard::Clear(Message::Answered { id: 7, outcome: Err(error) })] = &answer[..] else {
            panic!("{answer:?}")
        };
        assert_eq!(error.certainty(), Certainty::NothingDone);
        assert_eq!(line.meter.unclear.load(Relaxed), 1);
        drop(there);
        assert_eq!(carrying.await.unwrap(), []);
        assert!(matches!(line.lost(), Some(Lost::HungUp)));
    }
}
