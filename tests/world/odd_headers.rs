//! Receiver connections whose answers carry headers that no library would send. Status lines are unchanged.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// Header lines to insert, in turn. The empty one stands for [`MANY`] lines.
const LINES: [&str; 6] = [
    "Allow-Credentials : true\r\n",
    "no colon\r\n: no name\r\n",
    "X-Folded: a\r\n b\r\n\tc\r\n",
    "X-Größe: groß\r\nX-Bell: \u{7}\r\n",
    "<html>: y\r\nConnection: keep-alive\r\n",
    "",
];
const MANY: usize = 500;

/// A listener whose connections insert odd headers.
pub(crate) struct OddListener(pub(crate) TcpListener);

/// One connection.
pub(crate) struct OddStream {
    stream: TcpStream,
    answers: usize,
    /// Rewritten bytes that have not been sent yet.
    held: Vec<u8>,
}

impl Listener for OddListener {
    type Io = OddStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (OddStream, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        (OddStream { stream, answers: usize::from(address.port()), held: Vec::new() }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl OddStream {
    fn poll_held(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.held.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.held))?;
            self.held.drain(..written);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for OddStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for OddStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_held(cx))?;
        let end = bytes.windows(2).position(|end| end == b"\r\n");
        let Some(end) = end.filter(|_| bytes.starts_with(b"HTTP/1.1 ")) else {
            return Pin::new(&mut this.stream).poll_write(cx, bytes);
        };
        this.answers += 1;
        let odd = match LINES[this.answers % LINES.len()] {
            "" => "x-many: y\r\n".repeat(MANY),
            lines => lines.to_owned(),
        };
        let (status_line, rest) = bytes.split_at(end + 2);
        this.held = [status_line, odd.as_bytes(), rest].concat();
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_held(cx))?;
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_held(cx))?;
        Pin::new(&mut this.stream).poll_shutdown(cx)
    }
}
