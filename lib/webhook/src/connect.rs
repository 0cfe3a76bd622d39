//! Connections to receivers: hyper's client over HTTP/1.1, with checked names and lenient about heads.
//!
//! hyper's client rather than `reqwest`: redirects, proxies, cookies, decoding and retries must not apply to receivers,
//! and leaving them out saves a third of a megabyte.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Extensions, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy;
use hyper_util::client::legacy::Error as ClientError;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use runtime::BoxError;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::Service;

use crate::resolve::CheckedResolver;
use crate::traffic::{Traffic, Watched};

/// Time for which an idle connection is used again. Common servers close theirs after 2 to 5 seconds.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);
/// Time that connecting may take beyond the deadline of an attempt, so that the deadline ends the attempt.
const CONNECT_GRACE: Duration = Duration::from_secs(1);
/// Limits of an answer's head. Common servers and proxies stop at 100 lines and 64 KiB.
const MAX_HEAD_LINES: usize = 1024;
const MAX_HEAD_BYTES: usize = 320 * 1024;

type Pool = legacy::Client<Connector, Full<Bytes>>;

/// Exchanges requests for answers over a pool of connections. Follows no redirects, and knows no proxies or cookies.
#[derive(Clone)]
pub(crate) struct Client {
    pool: Pool,
    /// Opens a connection for each request.
    fresh: Pool,
}

impl Client {
    /// A client for attempts that the caller ends at `deadline`.
    pub(crate) fn new(resolver: CheckedResolver, tls: ClientConfig, is_https_only: bool, deadline: Duration) -> Self {
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
        let connector = Connector { https, limit };
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .http1_ignore_invalid_headers_in_responses(true)
            .http1_allow_spaces_after_header_name_in_responses(true)
            .http1_allow_obsolete_multiline_headers_in_responses(true)
            .http1_max_headers(MAX_HEAD_LINES)
            .http1_max_buf_size(MAX_HEAD_BYTES);
        let pool = builder.build(connector.clone());
        Self { pool, fresh: builder.pool_max_idle_per_host(0).build(connector) }
    }

    /// Sends a request. A server may close an idle connection just when the request takes it. Such a request is sent
    /// once more, on a connection of its own.
    pub(crate) async fn request(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, ClientError> {
        match self.pool.request(request.clone()).await {
            Err(error) if was_lost_unanswered(&error) => self.fresh.request(request).await,
            result => result,
        }
    }
}

/// Returns true if a connection that had been used before ended without a byte of the answer.
fn was_lost_unanswered(error: &ClientError) -> bool {
    let mut extras = Extensions::new();
    if let Some(connected) = error.connect_info() {
        connected.get_extras(&mut extras);
    }
    extras.get::<Traffic>().is_some_and(Traffic::is_used_and_unanswered)
}

/// Opens connections, each within a limit of its own. If the attempt continues on another connection, no caller ends
/// the opening.
#[derive(Clone)]
pub(crate) struct Connector {
    https: HttpsConnector<TcpConnector<CheckedResolver>>,
    limit: Duration,
}

type Connection = Watched<MaybeHttpsStream<TokioIo<TcpStream>>>;

impl Service<Uri> for Connector {
    type Response = Connection;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Connection, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.https.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = timeout(self.limit, self.https.call(uri));
        Box::pin(async move { Ok(Watched::new(connecting.await??)) })
    }
}
