//! Connections to receivers: hyper's client, as the calls to AWS have it too, over names that are checked and with
//! HTTP/2.

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

/// Shorter than the idle time-outs of common servers: a connection that they have closed is not tried.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// What connecting may take longer than all the rest, so that it is the deadline that ends it.
const CONNECT_GRACE: Duration = Duration::from_secs(1);
/// An HTTP/2 connection that does not answer is not used for the next attempt, which would wait for it in vain again.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// What an HTTP/2 receiver may send unasked, on a stream and on all streams of a connection.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

/// A pool of connections to receivers.
pub(crate) type Client = legacy::Client<Connector, Full<Bytes>>;

/// A client for attempts that whoever makes them ends by that deadline. It opens connections, and knows no redirects,
/// proxies or cookies.
pub(crate) fn client(resolver: CheckedResolver, tls: ClientConfig, is_https_only: bool, deadline: Duration) -> Client {
    let limit = deadline + CONNECT_GRACE;
    let mut tcp = TcpConnector::new_with_resolver(resolver);
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    // Shared out among the addresses of a name: one that drops packets leaves time for the next.
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

/// Opens connections, each within its time. An attempt may go on by another connection while its own is being opened:
/// nobody waits for that any more.
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
