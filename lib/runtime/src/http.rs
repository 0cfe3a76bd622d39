//! The HTTP client of the AWS SDK: HTTP/1.1 over TLS that trusts only Amazon's roots.
//!
//! This is hyper's client behind the SDK's interface. The SDK's own client adds half a megabyte: it always links
//! HTTP/2, which no service here uses. It also parses the operating system's roots, which is most of a cold start's
//! CPU. `AWS_CA_BUNDLE` names other roots, as for every SDK.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::connection::{CaptureSmithyConnection, ConnectionMetadata};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::retry::ErrorKind;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::{CaptureConnection, HttpConnector as TcpConnector, capture_connection};
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

/// Amazon's roots, from <https://www.amazontrust.com/repository/>.
const AMAZON_ROOTS: [&[u8]; 5] = [
    include_bytes!("amazon_roots/amazon-root-ca-1.der"),
    include_bytes!("amazon_roots/amazon-root-ca-2.der"),
    include_bytes!("amazon_roots/amazon-root-ca-3.der"),
    include_bytes!("amazon_roots/amazon-root-ca-4.der"),
    include_bytes!("amazon_roots/starfield-services-root-ca-g2.der"),
];

/// The roots that AWS's endpoints are signed by.
pub(crate) fn amazon_roots() -> RootCertStore {
    roots(AMAZON_ROOTS.map(CertificateDer::from)).expect("Amazon's roots are certificates")
}

/// A store of these root certificates.
pub(crate) fn roots<'a>(
    certificates: impl IntoIterator<Item = CertificateDer<'a>>,
) -> Result<RootCertStore, rustls::Error> {
    let mut roots = RootCertStore::empty();
    certificates.into_iter().try_for_each(|certificate| roots.add(certificate))?;
    Ok(roots)
}

/// A pool of connections, shared by all clients of a function.
#[derive(Debug, Clone)]
pub(crate) struct Http(Client<HttpsConnector<TcpConnector>, SdkBody>);

impl Http {
    /// A client that trusts `roots`. `connect_timeout` covers TCP; the attempt's time-out covers the rest.
    pub(crate) fn new(roots: RootCertStore, connect_timeout: Duration) -> Self {
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring speaks TLS 1.2 and 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = TcpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(connect_timeout));
        let https = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        Self(Client::builder(TokioExecutor::new()).build(https))
    }
}

impl HttpClient for Http {
    fn http_connector(
        &self,
        _settings: &HttpConnectorSettings,
        _components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Http {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let client = self.0.clone();
        HttpConnectorFuture::new(async move {
            let mut request = request.try_into_http1x().map_err(|error| ConnectorError::user(error.into()))?;
            let connection = capture_connection(&mut request);
            if let Some(capture) = request.extensions().get::<CaptureSmithyConnection>() {
                capture.set_connection_retriever(move || closable(&connection));
            }
            let response = client.request(request).await.map_err(connector_error)?;
            HttpResponse::try_from(response.map(SdkBody::from_body_1_x))
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

/// The connection of a request, for the SDK's `ConnectionPoisoningInterceptor`. After a transient error, such as a 500
/// or a 503, the SDK poisons the connection, and the pool closes it instead of using it again.
fn closable(connection: &CaptureConnection) -> Option<ConnectionMetadata> {
    let proxied = connection.connection_metadata().as_ref()?.is_proxied();
    let connection = connection.clone();
    let poison = move || {
        if let Some(connected) = connection.connection_metadata().as_ref() {
            connected.poison();
        }
    };
    Some(ConnectionMetadata::builder().proxied(proxied).poison_fn(poison).build())
}

/// Classifies an error for the SDK's retries. A connection error is retried: the next connection may work.
fn connector_error(error: ClientError) -> ConnectorError {
    let hyper = error.source().and_then(<dyn Error>::downcast_ref::<hyper::Error>);
    if hyper.is_some_and(hyper::Error::is_user) {
        return ConnectorError::user(error.into());
    }
    if hyper.is_some_and(hyper::Error::is_incomplete_message) {
        return ConnectorError::other(error.into(), Some(ErrorKind::TransientError));
    }
    ConnectorError::io(BoxError::from(error))
}

#[cfg(test)]
mod tests;
