//! A TLS 1.3 proxy before the stack's AWS endpoint. As with AWS, an intermediate authority has signed its RSA
//! certificate. The functions trust the root. `tls/make` generates all of them.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::error::{BenchError, context};
use crate::stack::Variables;

const HOST: &str = "localhost";

const AUTHORITY: &str = include_str!("tls/authority.pem");
const INTERMEDIATE: &[u8] = include_bytes!("tls/intermediate.der");
const LEAF: &[u8] = include_bytes!("tls/localhost.der");
const KEY: &[u8] = include_bytes!("tls/localhost.key.der");

/// Starts the proxy and returns the variables with which functions find and trust it.
pub(crate) async fn serve(aws_port: u16, dir: &Path) -> Result<Variables, BenchError> {
    let config = server().map_err(context("show a certificate"))?;
    let bundle = dir.join("roots.pem");
    std::fs::write(&bundle, AUTHORITY).map_err(context(&bundle))?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(context("listen"))?;
    let port = listener.local_addr().map_err(context("listen"))?.port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // AWS sends responses without delay. A failure here only makes the socket slower.
            let _ = stream.set_nodelay(true);
            tokio::spawn(proxy(acceptor.clone(), stream, aws_port));
        }
    });
    Ok([
        ("AWS_ENDPOINT_URL".to_owned(), format!("https://{HOST}:{port}")),
        ("AWS_CA_BUNDLE".to_owned(), bundle.display().to_string()),
        ("NODE_EXTRA_CA_CERTS".to_owned(), bundle.display().to_string()),
    ]
    .into())
}

async fn proxy(acceptor: TlsAcceptor, stream: TcpStream, aws_port: u16) {
    // The client reopens a broken connection.
    let (Ok(mut outer), Ok(mut inner)) =
        (acceptor.accept(stream).await, TcpStream::connect(("127.0.0.1", aws_port)).await)
    else {
        return;
    };
    let _ = inner.set_nodelay(true);
    let _ = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
}

fn server() -> Result<ServerConfig, rustls::Error> {
    let chain = [LEAF, INTERMEDIATE].map(CertificateDer::from).to_vec();
    ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, PrivatePkcs8KeyDer::from(KEY).into())
}
