//! dynoxide behind its own loopback listener. Its server blocks its thread, so it runs on a separate one. The endpoint
//! forwards requests to it over kept-alive HTTP connections.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use dynoxide::Database;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::oneshot;

use crate::answer::JSON_1_0;
use crate::error::{OpenError, StoreError};

/// A placeholder signature: dynoxide requires the header but does not verify it. Callers of the local stack need none.
const AUTHORIZATION: &str = "AWS4-HMAC-SHA256 Credential=local/20000101/us-east-1/dynamodb/aws4_request, \
                             SignedHeaders=host;x-amz-date, Signature=0";
const AMZ_DATE: &str = "20000101T000000Z";

const MAX_IDLE_CONNECTIONS: usize = 32;

/// Time for running requests to finish at shutdown.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct Inner {
    address: SocketAddr,
    client: Client<HttpConnector, Full<Bytes>>,
    running: Mutex<Option<ServerHandle>>,
}

struct ServerHandle {
    /// Stops the server, also when it is dropped.
    stop: oneshot::Sender<()>,
    stopped: oneshot::Receiver<()>,
}

/// A response of the inner server.
pub(super) struct InnerAnswer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Inner {
    /// Opens the file and starts the server.
    pub(super) fn start(path: &Path) -> Result<Self, OpenError> {
        let failed = |what: &str| OpenError::new(format!("the local DynamoDB does not start: {what}"));
        let name = path.to_str().ok_or_else(|| failed("the data directory's name is not UTF-8"))?;
        let database = Database::new(name).map_err(|error| failed(&error.to_string()))?;
        // dynoxide opens with `synchronous = FULL`. Leaving its bulk mode sets `NORMAL` and small caches.
        database
            .enable_bulk_loading()
            .and_then(|()| database.disable_bulk_loading())
            .map_err(|error| failed(&error.to_string()))?;
        let io_failed = |error: std::io::Error| failed(&error.to_string());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(io_failed)?;
        listener.set_nonblocking(true).map_err(io_failed)?;
        let address = listener.local_addr().map_err(io_failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(io_failed)?;
        let (stop, stopping) = oneshot::channel::<()>();
        let (done, stopped) = oneshot::channel();
        std::thread::spawn(move || {
            let served = runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).map_err(|error| error.to_string())?;
                let stopping = async {
                    // An error means that the sender was dropped, which also stops the server.
                    let _ = stopping.await;
                };
                dynoxide::server::serve_with_shutdown(listener, database, stopping).await
            });
            if let Err(error) = served {
                tracing::error!(error, "the local DynamoDB has stopped");
            }
            // The runtime's tasks hold the database open.
            drop(runtime);
            // The receiver is gone if the stack was dropped without a shutdown.
            let _ = done.send(());
        });
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client =
            Client::builder(TokioExecutor::new()).pool_max_idle_per_host(MAX_IDLE_CONNECTIONS).build(connector);
        Ok(Self { address, client, running: Mutex::new(Some(ServerHandle { stop, stopped })) })
    }

    /// Forwards a request and reads the whole response.
    pub(super) async fn forward(&self, target: &str, body: Bytes) -> Result<InnerAnswer, StoreError> {
        let failed = |error: &dyn std::error::Error| StoreError::DynamoDb(error.to_string());
        let request = Request::post(format!("http://{}/", self.address))
            .header(header::CONTENT_TYPE, JSON_1_0)
            .header(header::AUTHORIZATION, AUTHORIZATION)
            .header("x-amz-date", AMZ_DATE)
            .header("x-amz-target", target)
            .body(Full::new(body))
            .map_err(|error| failed(&error))?;
        let (parts, body) = self.client.request(request).await.map_err(|error| failed(&error))?.into_parts();
        let body = body.collect().await.map_err(|error| failed(&error))?.to_bytes();
        Ok(InnerAnswer { status: parts.status, headers: parts.headers, body })
    }

    /// Lets running requests finish and closes the file.
    pub(super) async fn stop(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(ServerHandle { stop, stopped }) = running else { return };
        // An error means that the server has ended already.
        let _ = stop.send(());
        if tokio::time::timeout(STOP_TIMEOUT, stopped).await.is_err() {
            tracing::warn!("the local DynamoDB did not finish a request before the shutdown time-out");
        }
    }
}
