//! A stream whose reader may not fall asleep: what cannot be written for too long ends the connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A stream that fails when a write makes no progress for a time.
pub(crate) struct Stalling<S> {
    stream: S,
    patience: Duration,
    /// Runs while a write waits; made when one has to wait for the first time.
    timer: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl<S> Stalling<S> {
    pub fn new(stream: S, patience: Duration) -> Stalling<S> {
        Stalling { stream, patience, timer: None, is_waiting: false }
    }

    /// Passes progress on; without any, looks whether it has been too long.
    fn watch<T>(&mut self, cx: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.is_waiting = false;
            return progress;
        }
        let patience = self.patience;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(patience)));
        if !self.is_waiting {
            timer.as_mut().reset(Instant::now() + patience);
            self.is_waiting = true;
        }
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client is not reading its answer")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.watch(cx, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_flush(cx);
        self.watch(cx, progress)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.watch(cx, progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_sleeps_ends_the_connection() {
        let (ours, _theirs) = tokio::io::duplex(16);
        let mut stalling = Stalling::new(ours, Duration::from_secs(30));
        let error = stalling.write_all(&[0; 64]).await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_that_goes_on_is_served() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut stalling = Stalling::new(ours, Duration::from_secs(30));
        let read = tokio::spawn(async move {
            let mut piece = [0; 8];
            for _ in 0..8 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                tokio::io::AsyncReadExt::read_exact(&mut theirs, &mut piece).await.expect("it goes on");
            }
        });
        stalling.write_all(&[0; 64]).await.expect("it is read in time");
        read.await.expect("all is read");
    }
}
