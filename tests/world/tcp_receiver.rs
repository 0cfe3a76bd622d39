//! A misbehaving receiver: plain TCP, byte by byte under the test's control. It counts its connections and sent bytes.

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

/// Interval of dripped bytes: far less than any read time-out.
const DRIP: Duration = Duration::from_millis(50);
/// An answer that keeps its connection open.
pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
/// A deflate stream of zeros, compressed 158 times: its beginning and its repeated part.
const BOMB: ([u8; 12], [u8; 13]) = (
    [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x62, 0x18],
    [0x05, 0xa3, 0x60, 0x14, 0x8c, 0x82, 0x51, 0x30, 0x0a, 0x46, 0xc1, 0x28, 0x18],
);
const CHUNK: usize = 13 * 4096;

/// How the receiver answers a request.
#[derive(Debug, Clone)]
pub(crate) enum TcpAnswer {
    /// Sends these bytes and waits for the next request.
    Sends(Vec<u8>),
    /// Sends these bytes and closes.
    SendsAndCloses(Vec<u8>),
    /// Sends these bytes, and then single bytes without end.
    SendsAndDrips(Vec<u8>),
    /// Sends the first bytes once and the second ones until the connection ends.
    SendsForever(Vec<u8>, Vec<u8>),
    /// Sends these bytes and resets the connection.
    SendsAndResets(Vec<u8>),
    /// Resets the connection without reading.
    Resets,
    /// Closes its sending side and keeps reading.
    HalfCloses,
}

impl TcpAnswer {
    /// An answer with this status that keeps its connection open.
    pub(crate) fn status(status: u16) -> Self {
        Self::Sends(format!("HTTP/1.1 {status} Said\r\ncontent-length: 0\r\n\r\n").into_bytes())
    }

    pub(crate) fn sends(bytes: impl AsRef<[u8]>) -> Self {
        Self::Sends(bytes.as_ref().to_vec())
    }

    /// An answer whose body never ends.
    pub(crate) fn endless(head: &str) -> Self {
        Self::SendsForever(head.as_bytes().to_vec(), vec![b'x'; CHUNK])
    }

    /// An answer whose body is small only on the wire.
    pub(crate) fn gzip_bomb() -> Self {
        let mut head =
            b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-encoding: gzip\r\ncontent-length: 99999999\r\n\r\n"
                .to_vec();
        head.extend_from_slice(&BOMB.0);
        Self::SendsForever(head, BOMB.1.repeat(CHUNK / BOMB.1.len()))
    }

    fn resets(&self) -> bool {
        matches!(self, Self::Resets | Self::SendsAndResets(_))
    }
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    closed: AtomicUsize,
    sent_bytes: AtomicU64,
    requests: Mutex<Vec<String>>,
}

/// A running TCP receiver.
pub(crate) struct TcpReceiver {
    port: u16,
    seen: Arc<Seen>,
    server: JoinHandle<()>,
}

impl TcpReceiver {
    /// Starts a receiver that answers by the script. The last answer repeats.
    pub(crate) async fn start(script: impl IntoIterator<Item = TcpAnswer>) -> Self {
        Self::start_through(script, async |stream| Ok(stream)).await
    }

    /// The same with a layer on top of TCP.
    pub(crate) async fn start_through<S, F>(
        script: impl IntoIterator<Item = TcpAnswer>,
        layer: impl Fn(TcpStream) -> F + Send + Sync + 'static,
    ) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        F: Future<Output = io::Result<S>> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let script: Arc<Mutex<VecDeque<TcpAnswer>>> = Arc::new(Mutex::new(script.into_iter().collect()));
        let seen = Arc::new(Seen::default());
        let counters = Arc::clone(&seen);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counters.connections.fetch_add(1, Ordering::Relaxed);
                let resets = script.lock().unwrap().iter().any(TcpAnswer::resets);
                if resets {
                    // Zero linger makes every close a reset.
                    stream.set_zero_linger().unwrap();
                }
                if matches!(script.lock().unwrap().front(), Some(TcpAnswer::Resets)) {
                    next(&script);
                    continue;
                }
                let (counters, script, layered) = (Arc::clone(&counters), Arc::clone(&script), layer(stream));
                tokio::spawn(async move {
                    if let Ok(stream) = layered.await {
                        // An error means that the client has hung up.
                        let _ = serve(stream, &script, &counters).await;
                    }
                    counters.closed.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        Self { port, seen, server }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// URL of the receiver, with a path and a query that must stay confidential.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/secret-path?token=secret-token", self.port)
    }

    /// Complete requests, as text.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::Relaxed)
    }

    /// Bytes sent so far: those that were read and those in the buffers of the two sockets.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.seen.sent_bytes.load(Ordering::Relaxed)
    }

    /// Returns once this many connections have ended.
    pub(crate) async fn until_closed(&self, connections: usize) {
        let closed = async {
            let mut polls = tokio::time::interval(Duration::from_millis(5));
            while self.seen.closed.load(Ordering::Relaxed) < connections {
                polls.tick().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), closed).await.expect("the connections are closed");
    }
}

impl Drop for TcpReceiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// The answer to the next request. The last one repeats.
fn next(script: &Mutex<VecDeque<TcpAnswer>>) -> TcpAnswer {
    let mut script = script.lock().unwrap();
    if script.len() > 1 { script.pop_front() } else { script.front().cloned() }.expect("a receiver has an answer")
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    script: &Mutex<VecDeque<TcpAnswer>>,
    seen: &Seen,
) -> io::Result<()> {
    while let Some(request) = read_request(&mut stream).await? {
        seen.requests.lock().unwrap().push(request);
        match next(script) {
            TcpAnswer::Sends(bytes) => send(&mut stream, &bytes, seen).await?,
            TcpAnswer::SendsAndCloses(bytes) => {
                send(&mut stream, &bytes, seen).await?;
                return stream.shutdown().await;
            }
            TcpAnswer::SendsAndResets(bytes) => return send(&mut stream, &bytes, seen).await,
            TcpAnswer::SendsAndDrips(bytes) => {
                send(&mut stream, &bytes, seen).await?;
                let mut drops = tokio::time::interval(DRIP);
                loop {
                    drops.tick().await;
                    send(&mut stream, b"x", seen).await?;
                }
            }
            TcpAnswer::SendsForever(bytes, rest) => {
                send(&mut stream, &bytes, seen).await?;
                loop {
                    send(&mut stream, &rest, seen).await?;
                }
            }
            TcpAnswer::Resets => return Ok(()),
            TcpAnswer::HalfCloses => stream.shutdown().await?,
        }
    }
    Ok(())
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, mut bytes: &[u8], seen: &Seen) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = stream.write(bytes).await?;
        seen.sent_bytes.fetch_add(written as u64, Ordering::Relaxed);
        bytes = &bytes[written..];
    }
    stream.flush().await
}

/// The next request, or `None` once the connection has ended.
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
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            if body.len() >= length.parse().unwrap() {
                return Ok(Some(text.into_owned()));
            }
        }
    }
}
