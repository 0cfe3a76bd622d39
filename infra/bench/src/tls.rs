//! The stack's AWS endpoint behind TLS 1.3, as AWS has it: a certificate by an authority that the functions are told to trust.

use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::error::{BenchError, because};
use crate::stand::Variables;

const HOST: &str = "localhost";

/// Serves the endpoint with TLS until the bench ends. Gives the variables with which functions find and trust it.
pub(crate) async fn serve(aws_port: u16, dir: &Path) -> Result<Variables, BenchError> {
    let (config, authority) = certificate().map_err(because("make a certificate"))?;
    let bundle = dir.join("roots.pem");
    std::fs::write(&bundle, authority).map_err(because(&bundle))?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(because("listen"))?;
    let port = listener.local_addr().map_err(because("listen"))?.port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // What AWS answers does not wait for more to send. A socket that cannot be told so is only slower.
            let _ = stream.set_nodelay(true);
            tokio::spawn(carry(acceptor.clone(), stream, aws_port));
        }
    });
    Ok([
        ("AWS_ENDPOINT_URL".to_owned(), format!("https://{HOST}:{port}")),
        ("AWS_CA_BUNDLE".to_owned(), bundle.display().to_string()),
        ("NODE_EXTRA_CA_CERTS".to_owned(), bundle.display().to_string()),
    ]
    .into())
}

async fn carry(acceptor: TlsAcceptor, stream: TcpStream, aws_port: u16) {
    // A connection that breaks is the client's to open again.
    let (Ok(mut outer), Ok(mut inner)) =
        (acceptor.accept(stream).await, TcpStream::connect(("127.0.0.1", aws_port)).await)
    else {
        return;
    };
    let _ = inner.set_nodelay(true);
    let _ = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
}

fn certificate() -> Result<(ServerConfig, String), Box<dyn std::error::Error>> {
    let root_key = KeyPair::generate()?;
    let mut root = CertificateParams::new(Vec::new())?;
    root.distinguished_name.push(DnType::CommonName, "The bench's authority");
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root_certificate = root.self_signed(&root_key)?;
    let authority = Issuer::new(root, root_key);
    let key = KeyPair::generate()?;
    let mut leaf = CertificateParams::new(vec![HOST.to_owned()])?;
    leaf.distinguished_name.push(DnType::CommonName, HOST);
    let leaf = leaf.signed_by(&key, &authority)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)?;
    Ok((config, root_certificate.pem()))
}
