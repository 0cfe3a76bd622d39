//! Connections to receivers: hyper's client with checked names and HTTP/2.
//!
//! hyper's client rather than `reqwest`: redirects, proxies, cookies, decoding and retries must not apply to receivers,
//! and leaving them out saves a third of a megabyte.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use runtime::BoxError;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::Service;

use crate::lenient::{Lenient, MAX_HEAD_BYTES};
use crate::resolve::CheckedResolver;

/// Time after which an idle connection is closed. Common servers wait longer, so a connection that they have closed is
/// not tried.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// Time that connecting may take beyond the deadline of an attempt, so that the deadline ends the attempt.
const CONNECT_GRACE: Duration = Duration::from_secs(1);
/// Interval and time-out of HTTP/2 pings. A dead connection is closed, so the next attempt does not wait for it.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// Flow-control windows: the bytes that a receiver may send in advance, per stream and per connection.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

/// A pool of connections to receivers.
pub(crate) type Client = legacy::Client<Connector, Full<Bytes>>;

/// A client for attempts that the caller ends at `deadline`. It follows no redirects, and knows no proxies or cookies.
pub(crate) fn client(resolver: CheckedResolver, tls: ClientConfig, is_https_only: bool, deadline: Duration) -> Client {
    let limit = deadline + CONNECT_GRACE;
    let mut tcp = TcpConnector::new_with_resolver(resolver);
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    // Divided among the addresses of a name: an address that drops packets leaves time for the next.
    tcp.set_connect_timeout(Some(limit));
    let mut https = HttpsConnector::from((tcp, tls));
    if is_https_only {
        https.enforce_https();
    }
    legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .http2_initial_stream_window_size(STREAM_WINDOW_BYTES)
        .http2_initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_max_header_list_size(MAX_HEAD_BYTES)
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_INTERVAL)
        .build(Connector { https, limit })
}

/// Opens connections, each within a limit of its own. If the attempt continues on another connection, no caller ends
/// the opening.
#[derive(Clone)]
pub(crate) struct Connector {
    https: HttpsConnector<TcpConnector<CheckedResolver>>,
    limit: Duration,
}

type Connection = Lenient<MaybeHttpsStream<TokioIo<TcpStream>>>;

impl Service<Uri> for Connector {
    type Response = Connection;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Connection, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.https.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = timeout(self.limit, self.https.call(uri));
        Box::pin(async move { Ok(Lenient::new(connecting.await??)) })
    }
}
