//! A receiver without manners: plain TCP, byte by byte under the test's control. It counts what reaches it and what it gets rid of.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Between two drops of what drips: far less than any time-out between two reads.
const DRIP: Duration = Duration::from_millis(50);
/// An answer that keeps its connection.
pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
/// A deflate stream of zeros, 158 times shorter than they are: its beginning, and what repeats.
const BOMB: ([u8; 12], [u8; 13]) = (
    [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x62, 0x18],
    [0x05, 0xa3, 0x60, 0x14, 0x8c, 0x82, 0x51, 0x30, 0x0a, 0x46, 0xc1, 0x28, 0x18],
);
const CHUNK: usize = 13 * 4096;

/// What it does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Manner {
    /// Says these bytes and waits for the next request.
    Says(Vec<u8>),
    /// Says these bytes and closes.
    SaysAndCloses(Vec<u8>),
    /// Says these bytes, and then a byte now and then, without end.
    SaysAndDrips(Vec<u8>),
    /// Says these bytes, and these others for as long as the connection takes them.
    SaysWithoutEnd(Vec<u8>, Vec<u8>),
    /// Says these bytes and resets the connection.
    SaysAndResets(Vec<u8>),
    /// Resets the connection without having read anything.
    Resets,
    /// Ends its side of the connection and goes on listening.
    HalfCloses,
}

impl Manner {
    /// An answer of this status that keeps its connection.
    pub(crate) fn status(status: u16) -> Self {
        Self::Says(format!("HTTP/1.1 {status} Said\r\ncontent-length: 0\r\n\r\n").into_bytes())
    }

    pub(crate) fn says(bytes: impl AsRef<[u8]>) -> Self {
        Self::Says(bytes.as_ref().to_vec())
    }

    /// An answer whose body never ends.
    pub(crate) fn endless(head: &str) -> Self {
        Self::SaysWithoutEnd(head.as_bytes().to_vec(), vec![b'x'; CHUNK])
    }

    /// An answer whose body is small on the wire only.
    pub(crate) fn gzip_bomb() -> Self {
        let mut head =
            b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-encoding: gzip\r\ncontent-length: 99999999\r\n\r\n"
                .to_vec();
        head.extend_from_slice(&BOMB.0);
        Self::SaysWithoutEnd(head, BOMB.1.repeat(CHUNK / BOMB.1.len()))
    }

    fn resets(&self) -> bool {
        matches!(self, Self::Resets | Self::SaysAndResets(_))
    }
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    closed: AtomicUsize,
    sent_bytes: AtomicU64,
    requests: Mutex<Vec<String>>,
}

/// A running rough receiver.
pub(crate) struct Rough {
    port: u16,
    seen: Arc<Seen>,
    server: JoinHandle<()>,
}

impl Rough {
    /// A receiver that meets the first requests so, in this order, and all others as the last.
    pub(crate) async fn start(manners: impl IntoIterator<Item = Manner>) -> Self {
        Self::start_through(manners, async |stream| Ok(stream)).await
    }

    /// The same behind a layer on top of TCP.
    pub(crate) async fn start_through<S, F>(
        manners: impl IntoIterator<Item = Manner>,
        layer: impl Fn(TcpStream) -> F + Send + Sync + 'static,
    ) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        F: Future<Output = io::Result<S>> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let script: Arc<Mutex<VecDeque<Manner>>> = Arc::new(Mutex::new(manners.into_iter().collect()));
        let seen = Arc::new(Seen::default());
        let told = Arc::clone(&seen);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                told.connections.fetch_add(1, Ordering::Relaxed);
                let resets = script.lock().unwrap().iter().any(Manner::resets);
                if resets {
                    // Whatever closes it resets it.
                    stream.set_zero_linger().unwrap();
                }
                if matches!(script.lock().unwrap().front(), Some(Manner::Resets)) {
                    next(&script);
                    continue;
                }
                let (told, script, layered) = (Arc::clone(&told), Arc::clone(&script), layer(stream));
                tokio::spawn(async move {
                    if let Ok(stream) = layered.await {
                        // Whoever cuts it off has seen enough.
                        let _ = serve(stream, &script, &told).await;
                    }
                    told.closed.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        Self { port, seen, server }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Where it listens; path and query are nobody else's business.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/secret-path?token=secret-token", self.port)
    }

    /// The requests that came whole, as text.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::Relaxed)
    }

    /// What it could get rid of: what was read, and what lies in the buffers of the two sockets.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.seen.sent_bytes.load(Ordering::Relaxed)
    }

    /// Returns when so many connections have come to their end.
    pub(crate) async fn until_closed(&self, connections: usize) {
        let closed = async {
            while self.seen.closed.load(Ordering::Relaxed) < connections {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), closed).await.expect("the connections are closed");
    }
}

impl Drop for Rough {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// The manner for the next request. The last stays.
fn next(script: &Mutex<VecDeque<Manner>>) -> Manner {
    let mut script = script.lock().unwrap();
    if script.len() > 1 { script.pop_front() } else { script.front().cloned() }.expect("a receiver has a manner")
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    script: &Mutex<VecDeque<Manner>>,
    seen: &Seen,
) -> io::Result<()> {
    while let Some(request) = read_request(&mut stream).await? {
        seen.requests.lock().unwrap().push(request);
        match next(script) {
            Manner::Says(bytes) => say(&mut stream, &bytes, seen).await?,
            Manner::SaysAndCloses(bytes) => {
                say(&mut stream, &bytes, seen).await?;
                return stream.shutdown().await;
            }
            Manner::SaysAndResets(bytes) => return say(&mut stream, &bytes, seen).await,
            Manner::SaysAndDrips(bytes) => {
                say(&mut stream, &bytes, seen).await?;
                let mut drops = tokio::time::interval(DRIP);
                loop {
                    drops.tick().await;
                    say(&mut stream, b"x", seen).await?;
                }
            }
            Manner::SaysWithoutEnd(bytes, rest) => {
                say(&mut stream, &bytes, seen).await?;
                loop {
                    say(&mut stream, &rest, seen).await?;
                }
            }
            Manner::Resets => return Ok(()),
            Manner::HalfCloses => stream.shutdown().await?,
        }
    }
    Ok(())
}

async fn say<S: AsyncWrite + Unpin>(stream: &mut S, mut bytes: &[u8], seen: &Seen) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = stream.write(bytes).await?;
        seen.sent_bytes.fetch_add(written as u64, Ordering::Relaxed);
        bytes = &bytes[written..];
    }
    stream.flush().await
}

/// The next request; `None` once there will be no more.
async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Ok(None);
        }
        bytes.extend_from_slice(&buffer[..length]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let told = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            if body.len() >= told.parse().unwrap() {
                return Ok(Some(text.into_owned()));
            }
        }
    }
}
