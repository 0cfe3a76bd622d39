//! Counts what a connection carries: to bound an answer, and to tell whether a lost request met a closed connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};

/// Most bytes between two requests, interim answers included: a receiver that sends interim answers without end must
/// not occupy the processor.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// The traffic of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traffic(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    /// True once an answer to an earlier request has begun.
    is_used: AtomicBool,
    /// The bytes that were read since the latest write.
    read_bytes: AtomicUsize,
}

impl Traffic {
    /// Returns true if the connection answered an earlier request, and has not begun to answer the latest one.
    pub(crate) fn is_used_and_unanswered(&self) -> bool {
        self.0.is_used.load(Ordering::Relaxed) && self.0.read_bytes.load(Ordering::Relaxed) == 0
    }

    fn count_write(&self) {
        if self.0.read_bytes.swap(0, Ordering::Relaxed) > 0 {
            self.0.is_used.store(true, Ordering::Relaxed);
        }
    }

    fn count_read(&self, bytes: usize) -> io::Result<()> {
        let read_bytes = self.0.read_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if read_bytes > MAX_ANSWER_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the answer is too long"));
        }
        Ok(())
    }
}

/// A connection with its traffic, which the pool hands out with errors.
pub(crate) struct Watched<T> {
    inner: T,
    traffic: Traffic,
}

impl<T> Watched<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self { inner, traffic: Traffic::default() }
    }
}

impl<T: Connection> Connection for Watched<T> {
    fn connected(&self) -> Connected {
        self.inner.connected().extra(self.traffic.clone())
    }
}

impl<T: Read + Unpin> Read for Watched<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut chunk = [0; 8 * 1024];
        let most = chunk.len().min(buffer.remaining());
        let mut read = hyper::rt::ReadBuf::new(&mut chunk[..most]);
        ready!(Pin::new(&mut self.inner).poll_read(cx, read.unfilled()))?;
        self.traffic.count_read(read.filled().len())?;
        buffer.put_slice(read.filled());
        Poll::Ready(Ok(()))
    }
}

impl<T: Write + Unpin> Write for Watched<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.traffic.count_write();
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
