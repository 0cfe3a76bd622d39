//! Support for request targets with characters that a URI forbids: raw quotes, spaces, `<>`, bytes beyond ASCII.
//!
//! API Gateway passes such targets to functions unchanged, but hyper refuses them. So the first request line of a
//! connection is percent-encoded before hyper reads it, and the original target travels in a header. Later lines of a
//! connection stay as they are, since clients that send such targets do not reuse connections.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::serve::Listener;
use http::Uri;
use http::header::{HeaderMap, HeaderName};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

const HEADER: HeaderName = HeaderName::from_static("x-local-stack-target");
/// Longest request line that is encoded. hyper refuses a longer one.
const MAX_LINE_BYTES: usize = 64 * 1024;
const CHUNK_BYTES: usize = 4 * 1024;

/// A listener whose connections accept any request target.
pub struct AnyTarget(pub TcpListener);

/// One connection.
pub struct Connection {
    stream: TcpStream,
    state: ReadState,
}

enum ReadState {
    /// The part of the first line that has been read.
    FirstLine(Vec<u8>),
    /// Bytes that were read ahead of hyper, and how many of them hyper has read.
    Buffered(Vec<u8>, usize),
    /// hyper reads from the stream itself.
    PassThrough,
}

impl Listener for AnyTarget {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        (Connection { stream, state: ReadState::FirstLine(Vec::new()) }, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            match &mut this.state {
                ReadState::PassThrough => return Pin::new(&mut this.stream).poll_read(cx, buffer),
                ReadState::Buffered(bytes, from) => {
                    let count = buffer.remaining().min(bytes.len() - *from);
                    buffer.put_slice(&bytes[*from..*from + count]);
                    *from += count;
                    if *from == bytes.len() {
                        this.state = ReadState::PassThrough;
                    }
                    return Poll::Ready(Ok(()));
                }
                ReadState::FirstLine(read) => {
                    let mut chunk = [0; CHUNK_BYTES];
                    let mut chunk = ReadBuf::new(&mut chunk);
                    ready!(Pin::new(&mut this.stream).poll_read(cx, &mut chunk))?;
                    read.extend_from_slice(chunk.filled());
                    let line = read.iter().position(|byte| *byte == b'\n');
                    let ended = chunk.filled().is_empty() || read.len() > MAX_LINE_BYTES;
                    match line {
                        Some(end) => {
                            let rest = read.split_off(end + 1);
                            let mut buffered = encode_target(read);
                            buffered.extend(rest);
                            this.state = ReadState::Buffered(buffered, 0);
                        }
                        None if ended && read.is_empty() => this.state = ReadState::PassThrough,
                        None if ended => this.state = ReadState::Buffered(std::mem::take(read), 0),
                        None => {}
                    }
                }
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

/// Removes the header and returns the original target, or the URI when there is no such header.
pub(super) fn take_target(headers: &mut HeaderMap, uri: &Uri) -> String {
    let target = uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
    match headers.remove(HEADER) {
        // A client may send the header too, so its value must encode to the URI.
        Some(raw) if encoded(raw.as_bytes()) == target.as_bytes() => {
            String::from_utf8_lossy(raw.as_bytes()).into_owned()
        }
        _ => target,
    }
}

/// Encodes the target of a request line and appends a header with the original target. A valid line is returned
/// unchanged.
fn encode_target(line: &[u8]) -> Vec<u8> {
    let (Some(first), Some(last)) =
        (line.iter().position(|byte| *byte == b' '), line.iter().rposition(|byte| *byte == b' '))
    else {
        return line.to_vec();
    };
    let target = line.get(first + 1..last).unwrap_or_default();
    let well_formed = target.starts_with(b"/") && line[last..].starts_with(b" HTTP/1.") && line.ends_with(b"\r\n");
    let has_controls = target.iter().any(u8::is_ascii_control);
    let encoded = encoded(target);
    if !well_formed || has_controls || encoded == target {
        return line.to_vec();
    }
    let header = format!("{HEADER}: ");
    [&line[..=first], &encoded, &line[last..], header.as_bytes(), target, b"\r\n"].concat()
}

fn encoded(target: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(target.len());
    for byte in target {
        if byte.is_ascii_graphic() && !br#""<>"#.contains(byte) {
            encoded.push(*byte);
        } else {
            encoded.extend(format!("%{byte:02X}").bytes());
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(b"GET /a?b={}|^`%20 HTTP/1.1\r\n")]
    #[case(b"OPTIONS * HTTP/1.1\r\n")]
    #[case(b"GET /a b\r\n")]
    #[case(b"GET /a\x01\"b HTTP/1.1\r\n")]
    #[case(b"nonsense\r\n")]
    #[case(b"\r\n")]
    fn valid_and_malformed_lines_are_unchanged(#[case] line: &[u8]) {
        assert_eq!(encode_target(line), line);
    }

    #[rstest::rstest]
    #[case(b"/v1/ping?q=\"a<b>", "/v1/ping?q=%22a%3Cb%3E", "/v1/ping?q=\"a<b>")]
    #[case(b"/v1/ping?q=a b", "/v1/ping?q=a%20b", "/v1/ping?q=a b")]
    #[case(b"/v1/\xff", "/v1/%FF", "/v1/\u{fffd}")]
    fn invalid_targets_are_encoded_and_restored(#[case] target: &[u8], #[case] uri: &str, #[case] raw: &str) {
        let line = [b"GET ", target, b" HTTP/1.1\r\n"].concat();
        let encoded = encode_target(&line);
        let wanted = [format!("GET {uri} HTTP/1.1\r\nx-local-stack-target: ").as_bytes(), target, b"\r\n"].concat();
        assert_eq!(encoded, wanted);
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, http::HeaderValue::from_bytes(target).unwrap());
        assert_eq!(take_target(&mut headers, &uri.parse().unwrap()), raw);
        assert!(headers.is_empty());
    }

    #[test]
    fn a_forged_header_is_ignored() {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, "/other".parse().unwrap());
        assert_eq!(take_target(&mut headers, &"/a?b=1".parse().unwrap()), "/a?b=1");
    }
}
