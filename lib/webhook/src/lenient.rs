//! Connections whose answers hyper can read: the heads of answers are rewritten to the fields that the client needs.
//!
//! The status decides whether a webhook was delivered, whatever the rest of the head looks like. The settings of hyper
//! 1.12 do not reach that: even with `http1_ignore_invalid_headers_in_responses` it rejects an answer for a NUL or a
//! bare carriage return, for contradictory lengths and for a head above 408 KiB, and it reads `Transfer-Encoding:
//! identity` to the end of the connection. h2 0.4 has no such setting: it resets the stream, or ends the connection
//! with all other requests on it.
//!
//! A head that does not end within [`HEAD_GRACE`] and [`MAX_HEAD_BYTES`] is treated as complete, and its connection is
//! closed.

mod hpack;
mod http1;
mod http2;

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::time::{Sleep, sleep};

use http1::Heads;
use http2::Frames;

/// Time for the rest of a head once its status line, or its first frame, is there.
pub(crate) const HEAD_GRACE: Duration = Duration::from_millis(500);
/// Limit of a head. Nothing behind it is read.
pub(crate) const MAX_HEAD_BYTES: u32 = 4 * 1024 * 1024;
/// Limit of a line in memory. The rest of a longer line is dropped.
const KEPT_LINE_BYTES: usize = 8 * 1024;
/// Limit of a `Retry-After`. A longer value is dropped.
const MAX_RETRY_AFTER_BYTES: usize = 100;
const CHUNK_BYTES: usize = 8 * 1024;

/// A connection to a receiver.
pub(crate) struct Lenient<T> {
    inner: T,
    answers: Box<dyn AnswerRewriter>,
    /// Rewritten bytes, and how many of them hyper has read.
    ahead: Vec<u8>,
    ahead_from: usize,
    head_timer: Option<Pin<Box<Sleep>>>,
    /// True after a flush: the next write begins a request.
    is_flushed: bool,
}

/// The rewriter of the answers on one connection.
trait AnswerRewriter: Send {
    /// Called when the next request is written. The next bytes are the head of its answer.
    fn expect_answer(&mut self) {}

    /// Returns true while bytes pass unchanged.
    fn passes(&self) -> bool {
        false
    }

    /// Returns true between the beginning and the end of a head.
    fn is_within(&self) -> bool;

    fn has_ended(&self) -> bool;

    /// Takes bytes from the connection, and appends the bytes for hyper to `out`.
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>);

    /// Ends the answer with the fields that are known, and the connection with it.
    fn give_up(&mut self, out: &mut Vec<u8>);
}

impl<T: Connection> Lenient<T> {
    /// Wraps a connection of the protocol that TLS has negotiated.
    pub(crate) fn new(inner: T) -> Self {
        let is_h2 = inner.connected().is_negotiated_h2();
        let answers: Box<dyn AnswerRewriter> = if is_h2 { Box::<Frames>::default() } else { Box::<Heads>::default() };
        Self { inner, answers, ahead: Vec::new(), ahead_from: 0, head_timer: None, is_flushed: false }
    }
}

impl<T> Lenient<T> {
    /// Called before each write. hyper writes an HTTP/1 request, flushes it, and reads its answer to the end before the
    /// next request.
    fn note_write(&mut self) {
        if std::mem::take(&mut self.is_flushed) {
            self.answers.expect_answer();
        }
    }

    /// Ready when the time for the rest of a head is over.
    fn poll_head_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.answers.is_within() {
            self.head_timer = None;
            return Poll::Pending;
        }
        self.head_timer.get_or_insert_with(|| Box::pin(sleep(HEAD_GRACE))).as_mut().poll(cx)
    }
}

impl<T: Read + Unpin> Read for Lenient<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, mut buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            let ahead = &this.ahead[this.ahead_from..];
            if !ahead.is_empty() {
                let count = ahead.len().min(buffer.remaining());
                buffer.put_slice(&ahead[..count]);
                this.ahead_from += count;
                return Poll::Ready(Ok(()));
            }
            this.ahead.clear();
            this.ahead_from = 0;
            if this.answers.has_ended() {
                return Poll::Ready(Ok(()));
            }
            if this.answers.passes() {
                return Pin::new(&mut this.inner).poll_read(cx, buffer);
            }
            if this.poll_head_timer(cx).is_ready() {
                this.answers.give_up(&mut this.ahead);
                continue;
            }
            let mut chunk = [0; CHUNK_BYTES];
            let mut chunk = ReadBuf::new(&mut chunk);
            let read = ready!(Pin::new(&mut this.inner).poll_read(cx, chunk.unfilled()));
            match read {
                Ok(()) if !chunk.filled().is_empty() => this.answers.feed(chunk.filled(), &mut this.ahead),
                // The connection has ended within a head.
                _ if this.answers.is_within() => this.answers.give_up(&mut this.ahead),
                ended => return Poll::Ready(ended),
            }
        }
    }
}

impl<T: Write + Unpin> Write for Lenient<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.note_write();
        Pin::new(&mut this.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.note_write();
        Pin::new(&mut this.inner).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.inner).poll_flush(cx))?;
        this.is_flushed = true;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

impl<T: Connection> Connection for Lenient<T> {
    fn connected(&self) -> Connected {
        self.inner.connected()
    }
}

/// A status of three digits, from 100 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Status(u16);

impl Status {
    fn parse(digits: &[u8]) -> Option<Self> {
        match digits {
            [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9'] => {
                Some(Self(digits.iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'))))
            }
            _ => None,
        }
    }

    /// Returns true if another status follows. After 101 follows another protocol.
    fn is_interim(self) -> bool {
        self.0 < 200 && self.0 != 101
    }

    fn has_no_body(self) -> bool {
        matches!(self.0, 204 | 304)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The value, if it is short visible ASCII.
fn kept_retry_after(value: &[u8]) -> Option<Vec<u8>> {
    let is_kept = value.len() <= MAX_RETRY_AFTER_BYTES && value.iter().all(|byte| matches!(byte, b' '..=b'~'));
    is_kept.then(|| value.to_vec())
}
